"""Laws of writing and taking back, for any database and any settings."""

from __future__ import annotations

import itertools
from contextlib import suppress
from dataclasses import replace
from typing import Dict, Mapping

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from appliers import Killed, applier, apply, kill_at, survive
from ceph_tuner.core.ceph.target import covered
from ceph_tuner.core.changes.journal import APPLIED, UNDONE
from ceph_tuner.core.changes.plan import ChangePlan
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.catalogue import MCLOCK_NINE, PROFILE
from ceph_tuner.core.knobs.releases import Value, nine
from ceph_tuner.core.knobs.settings import format_settings
from monitors import TENTACLE, Monitors, Table

pytestmark = pytest.mark.slow

_SECTIONS = [
    "global",
    "osd",
    "osd/class:ssd",
    "osd/class:hdd",
    "osd/rack:r0",
    "osd/host:h0",
    "osd/host:h2",
    "osd.0",
    "osd.1",
]
_TARGETS = ["osd", "osd/class:ssd", "osd/rack:r0", "osd/host:h0", "osd.1"]
_PROFILES = ["balanced", "high_client_ops", "high_recovery_ops"]


@st.composite
def nines(draw: st.DrawFn) -> Dict[str, Value]:
    shares = []
    for _ in range(3):
        reservation = draw(st.integers(0, 30)) / 100
        limit = draw(st.sampled_from([0.0, 0.35, 0.5, 1.0]))
        shares.append((reservation, draw(st.integers(1, 9)), limit))
    return nine(*shares)


@st.composite
def some_settings(draw: st.DrawFn) -> Dict[str, Value]:
    wanted: Dict[str, Value] = {}
    kind = draw(st.sampled_from(["nine", "profile", "others"]))
    if kind == "nine":
        wanted.update(draw(nines()))
    if kind == "profile":
        wanted[PROFILE] = draw(st.sampled_from(_PROFILES))
    if kind == "others" or draw(st.booleans()):
        wanted["osd_max_scrubs"] = draw(st.integers(1, 4))
    if draw(st.booleans()):
        wanted["osd_pg_max_concurrent_snap_trims"] = draw(st.integers(1, 4))
    if draw(st.booleans()):
        wanted.update(osd_mclock_override_recovery_settings=True, osd_max_backfills=draw(st.integers(1, 4)))
    return wanted


@st.composite
def databases(draw: st.DrawFn) -> Table:
    table: Table = {}
    for who in draw(st.lists(st.sampled_from(_SECTIONS), max_size=3, unique=True)):
        if draw(st.booleans()):
            # values of an operator's custom profile, or old ones that were never removed
            texts = format_settings(draw(nines()), TENTACLE)
            table.update({(who, name): text for name, text in texts.items()})
            if draw(st.booleans()):
                table[who, PROFILE] = draw(st.sampled_from(["custom", *_PROFILES]))
        else:
            table[who, PROFILE] = draw(st.sampled_from(_PROFILES))
        if draw(st.booleans()):
            table[who, "osd_max_scrubs"] = str(draw(st.integers(1, 4)))
    return table


def planned(monitors: Monitors, target: str, wanted: Mapping[str, object]) -> ChangePlan:
    try:
        plan = applier(monitors).plan(target, wanted)
    except InputError:
        assume(False)
        raise
    assume(not any("under custom without" in warning for warning in plan.warnings))
    return plan


law = settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)
places = st.sampled_from(_TARGETS)
batches = st.integers(1, 6)


@law
@given(databases(), places, some_settings(), batches)
def test_apply_then_undo_is_identity_of_database_and_schedulers(
    table: Table, target: str, wanted: Dict[str, Value], batch: int
) -> None:
    monitors = Monitors(table=table)
    schedulers = monitors.schedulers()
    monitors.batch = batch
    plan = planned(monitors, target, wanted)
    entry = applier(monitors).apply(plan)
    for osd in plan.osds:
        shown = monitors.effective(osd)
        assert {name: shown[name] for name in plan.expected} == plan.expected
        used = monitors.osd[osd].scheduler
        if PROFILE in plan.expected:
            assert used == {name: shown[name] for name in MCLOCK_NINE}
        else:
            assert used == schedulers[osd]
    if entry is not None:
        (undone,) = applier(monitors).undo()
        assert undone.drift == ()
        assert undone.unseen == ()
    assert monitors.table == table
    assert monitors.schedulers() == schedulers


@law
@given(databases(), places, some_settings())
def test_applying_twice_writes_nothing_more(table: Table, target: str, wanted: Dict[str, Value]) -> None:
    monitors = Monitors(table=table)
    applier(monitors).apply(planned(monitors, target, wanted))
    after, writes = dict(monitors.table), len(monitors.writes)
    assert apply(monitors, target, wanted) is None
    assert monitors.table == after
    assert len(monitors.writes) == writes


@law
@given(databases(), places, some_settings(), st.data(), batches)
def test_killed_at_any_write_the_next_run_leaves_it_as_before_or_as_planned(
    table: Table, target: str, wanted: Dict[str, Value], data: st.DataObject, batch: int
) -> None:
    monitors = Monitors(table=table)
    schedulers = monitors.schedulers()
    monitors.batch = batch
    plan = planned(monitors, target, wanted)
    assume(plan.steps)
    # the lock, the journal's entry, the steps, the journal's entry again: all are writes
    landed = data.draw(st.booleans(), "its last write landed")
    kill = kill_at(monitors, data.draw(st.integers(1, len(plan.steps) + 12), "apply dies at"), landed)
    try:
        applier(monitors, "dead").apply(plan)
    except Killed:
        # and the run that takes it back dies as well
        kill_at(monitors, data.draw(st.integers(1, len(plan.steps) + 20), "recover dies at"), landed)
        with suppress(Killed):
            applier(monitors, "dead too").recover()
        survive(monitors)
        applier(monitors, "alive").recover()
        entries = applier(monitors).history()
        if not entries or entries[-1].state == UNDONE:
            assert monitors.table == table
            assert monitors.schedulers() == schedulers
        else:
            assert entries[-1].state == APPLIED
            assert applier(monitors).plan(target, wanted).steps == ()
    else:
        assert not kill.dead


def starts_at(monitors: Monitors, osd: int, at: int) -> None:
    """The OSD is down, and starts before the write of that number."""
    fake, count = monitors.osd[osd], itertools.count(1)
    fake.place = replace(fake.place, up=False)

    def before() -> None:
        if next(count) == at:
            start(monitors, osd)

    monitors.before_write = before


def start(monitors: Monitors, osd: int) -> None:
    monitors.osd[osd].place = replace(monitors.osd[osd].place, up=True)
    monitors.start(osd)


def without_us(table: Table, osd: int, started: bool, early: bool) -> Monitors:
    """The same cluster, where only that OSD stopped and started."""
    monitors = Monitors(table=table)
    monitors.early = early
    if started:
        start(monitors, osd)
    return monitors


@law
@given(databases(), places, some_settings(), st.integers(0, 2), st.integers(1, 30), st.booleans(), batches)
def test_an_osd_that_starts_meanwhile_makes_no_difference(
    table: Table, target: str, wanted: Dict[str, Value], osd: int, at: int, early: bool, batch: int
) -> None:
    monitors = Monitors(table=table)
    monitors.batch, monitors.early = batch, early
    starts_at(monitors, osd, at)
    plan = planned(monitors, target, wanted)
    entry = applier(monitors).apply(plan)
    other = any(f"osd.{osd} is down, and will have" in warning for warning in plan.warnings)
    if osd in covered(target, monitors.places()) and PROFILE in plan.expected and not other:
        shown = monitors.effective(osd)
        assert monitors.osd[osd].scheduler == {name: shown[name] for name in MCLOCK_NINE}
    if entry is not None:
        applier(monitors).undo()
    survive(monitors)
    expected = without_us(table, osd, monitors.osd[osd].place.up, early)
    assert monitors.schedulers() == expected.schedulers()
    assert monitors.table == expected.table


@law
@given(databases(), places, some_settings(), st.integers(0, 2), st.integers(1, 30), st.integers(0, 30), st.booleans())
def test_an_osd_that_starts_while_a_killed_change_is_taken_back_makes_no_difference(
    table: Table, target: str, wanted: Dict[str, Value], osd: int, killed_at: int, at: int, early: bool
) -> None:
    monitors = Monitors(table=table)
    monitors.early = early
    starts_at(monitors, osd, 0)
    plan = planned(monitors, target, wanted)
    kill_at(monitors, killed_at, landed=True)
    with suppress(Killed):
        applier(monitors, "dead").apply(plan, trial=True)
    survive(monitors)
    starts_at(monitors, osd, at)
    if at == 0:
        start(monitors, osd)
    applier(monitors, "alive").recover()
    survive(monitors)
    expected = without_us(table, osd, monitors.osd[osd].place.up, early)
    assert monitors.schedulers() == expected.schedulers()
    assert monitors.table == expected.table
