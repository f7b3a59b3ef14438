"""The page's example is run as it is printed."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any, Dict

import pytest

from ceph_tuner.optimise import Options, SafeOptimiser
from ceph_tuner.optimise.contract import STATES

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "bayesian.md").read_text(encoding="utf-8")


def test_the_example_runs_and_finds_the_best_that_its_bound_allows(capsys: pytest.CaptureFixture) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    world: Dict[str, Any] = {}
    exec(compile(example, "docs/bayesian.md", "exec"), world)  # noqa: S102
    search: SafeOptimiser = world["search"]
    best = search.best()
    truth = world["measure"](**best.settings)
    at_start = world["measure"](**world["start"])
    assert truth["latency_ms"].mean <= 20.0
    assert truth["hours"] < at_start["hours"] - 2
    assert not search.verdict().go_on
    assert search.verdict().reason in capsys.readouterr().out


def test_every_option_is_on_the_page_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (\S+) \|", PAGE, flags=re.MULTILINE))
    defaults = {option.name: getattr(Options(), option.name) for option in fields(Options)}
    assert rows == {name: str(default) if default else "none" for name, default in defaults.items()}


def test_every_verdict_is_on_the_page() -> None:
    assert re.findall(r"^\| `([a-z ]+)` \| [^|]+ \|$", PAGE, flags=re.MULTILINE) == list(STATES)
