"""The `ceph` that tests keep says what a new one says."""

from __future__ import annotations

import subprocess
from typing import Iterator, List

import pytest

from ceph_lab.cluster import Lab
from lab_ceph import KeptCeph, may_be_kept


@pytest.fixture
def ceph(any_lab: Lab) -> Iterator[KeptCeph]:
    started = KeptCeph(any_lab)
    yield started
    started.end()


@pytest.mark.parametrize(
    "words",
    [
        ["osd", "dump", "--format", "json"],
        ["osd", "pool", "get", "rbd", "size"],
        ["config", "get", "osd.0", "osd_max_scrubs"],
        ["osd", "crush", "tree"],
        ["tell", "osd.1", "config", "get", "osd_max_scrubs"],
        # refused by the monitors, by the program, and where there is nobody
        ["config", "set", "osd", "osd_max_scrubs", "many"],
        ["osd", "pool", "set", "nosuch", "size", "2"],
        ["osd", "pool", "nonsense", "rbd"],
        ["osd", "pool", "get", "rbd"],
        ["tell", "osd.99", "config", "show"],
    ],
    ids=" ".join,
)
def test_output_errors_and_exit_code_are_those_of_the_program(any_lab: Lab, ceph: KeptCeph, words: List[str]) -> None:
    new = subprocess.run(any_lab.argv(["ceph", *words]), capture_output=True, text=True, check=False, timeout=60)
    for _ in range(2):
        assert ceph.ask(words, 60) == (new.returncode, new.stdout, new.stderr)


def test_what_has_ended_answers_nothing(any_lab: Lab) -> None:
    ceph = KeptCeph(any_lab)
    ceph.end()
    assert not ceph.alive
    assert ceph.ask(["status"], 10) is None


@pytest.mark.parametrize(
    ("command", "may"),
    [
        (["ceph", "osd", "dump"], True),
        (["ceph", "-s"], False),
        (["ceph", "-n", "client.x", "osd", "dump"], False),
        (["ceph", "config-key", "set", "x", "-i", "/lab/x"], False),
        (["ceph", "tell", "osd.0", "bench", "1"], False),
        (["rados", "ls"], False),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_options_of_the_program_itself_are_left_to_a_new_one(command: List[str], may: bool) -> None:
    assert may_be_kept(command, None) == may
    assert not may_be_kept(command, "a payload")
