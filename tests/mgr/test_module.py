from __future__ import annotations

import inspect
from typing import get_type_hints

import pytest
from mgr_stand_in import REGISTRY

import tuner
from tuner.options import DEFAULTS, OPTIONS

READ_ONLY = {
    "tuner status",
    "tuner sample",
    "tuner history",
    "tuner slo ls",
    "tuner profile ls",
    "tuner profile show",
    "tuner profile export",
    "tuner recommend",
    "tuner why",
    "tuner auto explain",
    "tuner boost foretell",
    "tuner boost status",
    "tuner capacity ls",
    "tuner book show",
    "tuner book export",
}
WRITING = {
    "tuner slo set",
    "tuner slo rm",
    "tuner profile import",
    "tuner profile apply",
    "tuner rollback",
    "tuner auto on",
    "tuner auto off",
    "tuner auto pause",
    "tuner auto resume",
    "tuner auto retry",
    "tuner approve",
    "tuner reject",
    "tuner boost recovery",
    "tuner boost backfill",
    "tuner boost scrub",
    "tuner boost snaptrim",
    "tuner boost cancel",
    "tuner capacity measure",
    "tuner book bounds",
    "tuner book on",
    "tuner book off",
    "tuner book pin",
    "tuner book unpin",
    "tuner book strike",
    "tuner book restore",
    "tuner book copy",
    "tuner book import",
    "tuner capacity measure-class",
}


def test_every_command_is_there_and_reading_ones_need_read_capability_only() -> None:
    assert tuner.Module.MODULE_OPTIONS
    assert {name for name, (permission, _) in REGISTRY.items() if permission == "r"} == READ_ONLY
    assert {name for name, (permission, _) in REGISTRY.items() if permission == "w"} == WRITING


@pytest.mark.parametrize("name", sorted(READ_ONLY | WRITING))
def test_ceph_can_read_the_types_of_a_command(name: str) -> None:
    handler = REGISTRY[name][1]
    # Ceph takes the annotations as they stand: texts would not do
    assert not any(isinstance(found, str) for found in inspect.getfullargspec(handler).annotations.values())
    assert get_type_hints(handler)
    assert (handler.__doc__ or "").strip()


@pytest.mark.parametrize("name", sorted(READ_ONLY | WRITING))
def test_no_argument_has_a_name_that_the_ceph_program_takes_for_itself(name: str) -> None:
    arguments = set(inspect.getfullargspec(REGISTRY[name][1]).args)
    # found live: the program puts "target": ["mon-mgr", ""] into the command
    assert not arguments & {"target", "prefix", "module", "cmd"}


def test_options_have_defaults_within_their_bounds() -> None:
    assert set(DEFAULTS) == {option.name for option in OPTIONS}
    for option in OPTIONS:
        if option.low is not None:
            assert option.low <= option.default <= option.high
