"""Every pattern of the product against text that is made to keep it busy: its time grows as the text does."""

from __future__ import annotations

import importlib
import pkgutil
import re
import sre_constants
import sre_parse
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest

import ceph_tuner
import ceph_tuner_cli
import tuner
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.slo import parse_slo

SHORT, LONG = 1500, 6000
AT_MOST = 9.0
"""Fourfold for four times the text; sixteenfold were quadratic."""
NOTICED_S = 0.004


def modules() -> Iterator[Any]:
    for package in (ceph_tuner, ceph_tuner_cli, tuner):
        yield package
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            # programs for another Python, and what needs Dask
            if not found.name.endswith(("session_child", ".agent", "dask_workers", "__main__")):
                yield importlib.import_module(found.name)


ANYWHERE = ("search", "sub", "finditer", "findall", "split")


def inside(value: Any) -> Iterator[re.Pattern[Any]]:
    """Patterns that a table of any kind has."""
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, (tuple, list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from inside(item)


def patterns() -> Dict[str, re.Pattern[Any]]:
    found: Dict[str, re.Pattern[Any]] = {}
    for module in modules():
        text = Path(str(module.__file__)).read_text(encoding="utf-8")
        for name, value in vars(module).items():
            if isinstance(value, re.Pattern):
                # `match` alone begins at one place
                way = "search" if re.search(rf"\b{name}\.({'|'.join(ANYWHERE)})\(", text) else "match"
                found[f"{module.__name__}.{name} {way}"] = value
            elif isinstance(value, (tuple, list, dict)):
                for number, pattern in enumerate(inside(value)):
                    found[f"{module.__name__}.{name}.{number} search"] = pattern
        literal = r"""re\.(match|search|fullmatch|sub|split)\(\s*r?(["'])((?:(?!\2).)+)\2"""
        for number, (called, _, pattern) in enumerate(re.findall(literal, text)):
            way = "search" if called in ANYWHERE else "match"
            found[f"{module.__name__}#{number} {way}"] = re.compile(pattern)
    return found


def letters(tree: Any) -> Iterator[str]:
    """One text for each part of a pattern that repeats, and its literals."""
    for kind, value in tree:
        if kind is sre_constants.LITERAL:
            yield chr(value)
        elif kind in (sre_constants.MAX_REPEAT, sre_constants.MIN_REPEAT):
            inner = list(letters(value[2]))
            yield from inner
            yield "".join(inner)
        elif kind is sre_constants.SUBPATTERN:
            inner = list(letters(value[3]))
            yield from inner
            yield "".join(inner)
        elif kind is sre_constants.BRANCH:
            for branch in value[1]:
                yield from letters(branch)
        elif kind is sre_constants.IN:
            for inside, which in value:
                if inside is sre_constants.LITERAL:
                    yield chr(which)
                elif inside is sre_constants.RANGE:
                    yield chr(which[0])
                elif inside is sre_constants.CATEGORY:
                    yield {"CATEGORY_DIGIT": "1", "CATEGORY_SPACE": " "}.get(str(which), "a")
        elif kind is sre_constants.ANY:
            yield "a"


def attacks(pattern: re.Pattern[Any]) -> List[str]:
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    single = list(dict.fromkeys(letters(sre_parse.parse(text))))[:40]
    literal = "".join(one for one in single if len(one) == 1)
    return [*single, *(f"{one} " for one in single), literal, " ", "1", "a", "1 ", "a1", '"', "{", "."]


def seconds(pattern: re.Pattern[Any], way: str, text: str) -> float:
    best = 1e9
    for _ in range(3):
        # of this thread alone, as the machine may have other work
        began = time.thread_time()
        getattr(pattern, way)(text)
        best = min(best, time.thread_time() - began)
    return best


def grows_faster_than_the_text(pattern: re.Pattern[Any], way: str) -> str:
    first = pattern.pattern[:1]
    heads = list(dict.fromkeys(["", first if first.isalnum() else "", "1", "a<=", "a <= 1"]))
    for unit in filter(None, attacks(pattern)):
        for head in heads:
            short, long = (f"{head}{unit * (size // len(unit))}\0" for size in (SHORT, LONG))
            slow = seconds(pattern, way, long)
            if slow > NOTICED_S and slow > AT_MOST * seconds(pattern, way, short):
                return f"{head!r} + {unit!r} * n"
    return ""


def test_a_pattern_that_backtracks_is_noticed() -> None:
    assert grows_faster_than_the_text(re.compile(r"^\s*([A-Za-z0-9_.]+)\s*(<=|>=)\s*(.+?)\s*$"), "match")
    assert grows_faster_than_the_text(re.compile(r"[a-z]+\Z"), "search")
    assert not grows_faster_than_the_text(re.compile(r"[a-z]+\Z"), "match")


def test_no_pattern_of_the_product_takes_longer_than_its_text_grows() -> None:
    found = patterns()
    assert len(found) > 30
    faults = {name: grows_faster_than_the_text(pattern, name.split()[1]) for name, pattern in found.items()}
    assert {name: fault for name, fault in faults.items() if fault} == {}


@pytest.mark.parametrize("unit", [" ", "1", "a", "<=", "\t \n", "1 ", "1/"])
@pytest.mark.parametrize("head", ["", "client.p95_ms <= ", "client.p95_ms <= 80", "client.p95_ms", "x"])
def test_an_objective_of_a_megabyte_is_refused_at_once(head: str, unit: str) -> None:
    began = time.process_time()
    for text in (head + unit * (2**20 // len(unit)), head + unit * 90 + "!"):
        with pytest.raises(InputError) as refusal:
            parse_slo({"objectives": [text]})
        assert len(str(refusal.value)) < 1000
    assert time.process_time() - began < 0.5
