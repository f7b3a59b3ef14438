"""Each cause is made on a real cluster of a lab's own, and named first; of a healthy one nothing is."""

from __future__ import annotations

import json
import os
from typing import Callable, Iterator, Tuple

import pytest
from made_causes import HEALTHY, MADE, MadeCause, made

from ceph_lab.bringup import up
from ceph_lab.cluster import Lab
from ceph_lab.teardown import down

Run = Callable[..., Tuple[int, str, str]]

pytestmark = [pytest.mark.cluster, pytest.mark.long]


@pytest.fixture(scope="module", params=["tentacle", "reef"])
def own_lab(request: pytest.FixtureRequest, needs_lab: None) -> Iterator[Lab]:
    yield from _lab(request.param, "3xnvme")


@pytest.fixture(params=["tentacle", "reef"])
def uneven_lab(request: pytest.FixtureRequest, needs_lab: None) -> Iterator[Lab]:
    """One of its OSDs is on a slower drive than its class."""
    yield from _lab(request.param, MADE["slow-drive"].osds)


def _lab(release: str, osds: str) -> Iterator[Lab]:
    name = f"test-{os.getpid()}-why-{release}-{len(osds)}"
    try:
        yield up(name, {"release": release, "osds": osds}, lambda line: None)
    finally:
        down(name, lambda line: None)


def check(lab: Lab, cause: MadeCause, run: Run) -> None:
    with made(lab, cause):
        code, out, _ = run("why", "--cluster", lab.name, "--format", "json")
    causes = [(each["cause"], each["work"]) for each in json.loads(out)["causes"]]
    assert code == 0
    assert causes[:1] == ([(cause.name, cause.work)] if cause.name else []), causes


@pytest.mark.parametrize("name", [name for name in (*HEALTHY, *MADE) if name != "slow-drive"])
def test_a_cause_that_was_made_is_named_first(own_lab: Lab, name: str, run: Run) -> None:
    check(own_lab, {**HEALTHY, **MADE}[name], run)


def test_a_drive_that_is_slower_than_its_class_is_named_first(uneven_lab: Lab, run: Run) -> None:
    check(uneven_lab, MADE["slow-drive"], run)
