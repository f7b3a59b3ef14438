"""Real clusters for the tests: one lab of each release, brought up on first use and shared by all tests.

A test that changes a lab restores it. CEPH_TUNER_LAB=0 leaves the real-cluster tests out.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Iterator, List

import pytest

from ceph_tuner.errors import TunerError
from ceph_tuner.lab.bringup import up
from ceph_tuner.lab.chroot import check_host
from ceph_tuner.lab.cluster import Lab
from ceph_tuner.lab.state import lab_names
from ceph_tuner.lab.teardown import down
from ceph_tuner.lab.throttle import host_throttle

_LAB_FIXTURES = {"tentacle_lab", "reef_lab", "any_lab", "needs_lab"}


def pytest_collection_modifyitems(items: List[pytest.Item]) -> None:
    """Whatever uses a lab is a real-cluster test."""
    for item in items:
        if _LAB_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.cluster)


@pytest.fixture(scope="session")
def needs_lab() -> None:
    """Skip where this machine can have no lab."""
    if os.environ.get("CEPH_TUNER_LAB") == "0":
        pytest.skip("real-cluster tests skipped: CEPH_TUNER_LAB is 0")
    try:
        check_host()
        host_throttle()
    except TunerError as error:
        pytest.skip(f"real-cluster tests skipped: {error}")
    for name in lab_names():
        # left behind by a test run that was killed
        match = re.fullmatch(r"test-(\d+)-.*", name)
        if match and not Path(f"/proc/{match[1]}").exists():
            down(name, lambda line: None)


def _session_lab(release: str) -> Iterator[Lab]:
    name = f"test-{os.getpid()}-{release}"
    try:
        yield up(name, {"release": release}, lambda line: None)
    finally:
        down(name, lambda line: None)


@pytest.fixture(scope="session")
def tentacle_lab(needs_lab: None) -> Iterator[Lab]:
    """The Tentacle lab of this test run: three OSDs, one mgr, a pool named rbd."""
    yield from _session_lab("tentacle")


@pytest.fixture(scope="session")
def reef_lab(needs_lab: None) -> Iterator[Lab]:
    """The Reef lab of this test run."""
    yield from _session_lab("reef")


@pytest.fixture(scope="session", params=["tentacle", "reef"])
def any_lab(request: pytest.FixtureRequest) -> Any:
    """Each lab in turn."""
    return request.getfixturevalue(f"{request.param}_lab")
