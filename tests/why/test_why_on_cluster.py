"""Each cause is made on a real cluster of a lab's own, and named first; of a healthy one nothing is."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from typing import Any, Iterator, Mapping

import pytest
from made_causes import HEALTHY, MADE, ON_COMMON_LAB, MadeCause, made

from ceph_lab.bringup import up
from ceph_lab.cluster import Lab
from ceph_lab.teardown import down
from running_program import Run

pytestmark = [pytest.mark.cluster, pytest.mark.long]


CASES = {**HEALTHY, **MADE}
COMMON = [name for name, cause in CASES.items() if cause.lab == ON_COMMON_LAB]


@pytest.fixture(scope="module", params=["tentacle", "reef"])
def own_lab(request: pytest.FixtureRequest, needs_lab: None) -> Iterator[Lab]:
    yield from _lab(request.param, ON_COMMON_LAB)


@pytest.fixture(params=["tentacle", "reef"])
def release(request: pytest.FixtureRequest, needs_lab: None) -> str:
    return str(request.param)


def _lab(release: str, options: Mapping[str, Any]) -> Iterator[Lab]:
    name = f"test-{os.getpid()}-why-{release}-{len(str(options))}"
    try:
        yield up(name, {"release": release, **options}, lambda line: None)
    finally:
        down(name, lambda line: None)


def check(lab: Lab, cause: MadeCause, run: Run) -> None:
    with made(lab, cause):
        code, out, _ = run("why", "--cluster", lab.name, "--format", "json")
    causes = [(each["cause"], each["work"]) for each in json.loads(out)["causes"]]
    assert code == 0
    assert causes[:1] == ([(cause.name, cause.work)] if cause.name else []), causes


@pytest.mark.parametrize("name", COMMON)
def test_a_cause_that_was_made_is_named_first(own_lab: Lab, name: str, run: Run) -> None:
    check(own_lab, CASES[name], run)


@pytest.mark.parametrize("name", [name for name in CASES if name not in COMMON])
def test_a_cause_that_needs_another_lab_is_named_first(release: str, name: str, run: Run) -> None:
    with contextmanager(_lab)(release, CASES[name].lab) as lab:
        check(lab, CASES[name], run)
