"""The automatic mode on real clusters when something dies in a trial: the configuration is as before, or as planned.

CEPH_TUNER_ALL_BOUNDARIES=1 has the mgr die at each boundary that a whole trial has, not at one of each kind only.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from html import unescape
from pathlib import Path
from typing import Iterator, List, NamedTuple

import pytest

from automatic_lab import KNOB, AutomaticLab
from ceph_lab.cluster import Lab
from ceph_tuner.cluster import open_cluster
from ceph_tuner.core.autopilot.audit_log import (
    ACTS,
    APPLY,
    AUDIT_MARK,
    FAILOVER,
    KEPT,
    TAKEN_BACK,
    AuditRecord,
    without_outcome,
)
from ceph_tuner.core.autopilot.state import ASKING, HOLDING, OBSERVING, OFF, TRYING
from ceph_tuner.core.ceph.ports import ConfigEntry
from ceph_tuner.core.changes.journal import APPLIED
from ceph_tuner.core.changes.lock import LEASE_S
from ceph_tuner.core.changes.lock import PREFIX as LOCK
from chromium import chromium, opened
from lab_mgrs import kill
from waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.long_on_reef]

WITHIN_S = 30.0
"""From a standby's activation, or from what cut a trial off."""


class Death(NamedTuple):
    """Where the mgr dies: just before a boundary's command, or with it on its way."""

    at: int
    name: str
    in_flight: bool


KINDS = [
    ("lock claimed", True),
    ("lock held", False),
    ("journal applying", True),
    ("step set osd/host:h0", True),
    ("check", False),
    ("journal applied", False),
    ("audit apply, outcome", False),
    ("state trying", True),
    ("step set osd", True),
    ("journal undoing", False),
    ("step rm osd/host:h0", True),
    ("journal undone", True),
    ("journal kept", False),
    ("journal kept", True),
    ("audit kept, outcome", False),
    ("lock removed", False),
]
"""One of each: claim, journal, first and last step, check, commit, audit, state, the masks' undoing, keep."""


@pytest.fixture(scope="module")
def automatic(any_lab: Lab) -> Iterator[AutomaticLab]:
    with closing(open_cluster(any_lab.name, timeout=10)) as cluster:
        lab = AutomaticLab(any_lab, cluster)
        try:
            lab.set_up()
            yield lab
        finally:
            lab.close()


def deaths(names: List[str], release: str) -> List[Death]:
    if os.environ.get("CEPH_TUNER_ALL_BOUNDARIES") == "1":
        every = [(at, name, in_flight) for at, name in enumerate(names) for in_flight in (False, True)]
        # to ask changes nothing on its way
        return [Death(*row) for row in every if not (row[1] == "check" and row[2])]
    # the first check of a change is the one after its first step
    first = {"check": names.index("step set osd/host:h0")}
    # each kind on one of the releases
    kinds = [kind for place, kind in enumerate(KINDS) if (place % 3 == 0) == (release == "reef")]
    return [Death(names.index(name, first.get(name, 0)), name, in_flight) for name, in_flight in kinds]


def knob_of(config: List[ConfigEntry]) -> List[ConfigEntry]:
    return [entry for entry in config if entry.name == KNOB]


def assert_whole(automatic: AutomaticLab, before: List[AuditRecord]) -> None:
    """Nothing of the trail is lost, and nothing in it is left open."""
    records = automatic.records()
    assert records[: len(before)] == before
    first = records[0].number
    assert [record.number for record in records] == list(range(first, first + len(records)))
    failovers = [record.number for record in records if record.what == FAILOVER]
    # the record after tells what the next mgr found
    assert all(any(number > act.number for number in failovers) for act in without_outcome(records))


def test_wherever_the_mgr_dies_in_a_trial_the_next_one_leaves_all_as_before_or_as_planned(
    automatic: AutomaticLab,
) -> None:
    names = automatic.boundaries()
    assert {"lock held", "journal applying", "step set osd", "check", "journal kept"} <= set(names)
    assert set(ACTS[:1]) <= {record.what for record in automatic.records()}
    every = deaths(names, automatic.lab.release)
    # the next mgr alone, and a guardian that wants the lock as well
    with automatic.guardian():
        for death in every[::2]:
            die(automatic, death, names)
    for death in every[1::2]:
        die(automatic, death, names)


def die(automatic: AutomaticLab, death: Death, names: List[str]) -> None:
    before, trail, changes = automatic.config(), automatic.records(), automatic.entries()
    gone = automatic.mgrs.seen()
    automatic.die_at(death.name, names[: death.at + 1].count(death.name), death.in_flight)
    automatic.mgrs.fail_over(gone)
    automatic.until(automatic.settled, WITHIN_S)
    after = automatic.config()
    kept = [entry for entry in automatic.entries() if entry.state == APPLIED and entry not in changes]
    if kept:
        (step,) = kept[0].steps
        planned = {entry for entry in before if entry.name != KNOB} | {ConfigEntry("osd", KNOB, str(step.new))}
        assert set(after) == planned, death
    else:
        assert after == before, death
    if death.at < names.index("journal kept"):
        assert not kept, death
    value = knob_of(after)[0].value
    automatic.until(lambda: set(automatic.shown()) == {value}, WITHIN_S)
    assert_whole(automatic, trail)
    outcome = "as planned" if kept else "as before"
    print(f"{death.at} {death.name}{', in flight' if death.in_flight else ''}: {outcome}")  # noqa: T201


def test_a_guardian_takes_back_what_a_disabled_module_has_left(automatic: AutomaticLab) -> None:
    before, trail = automatic.config(), automatic.records()
    with automatic.guardian():
        automatic.begin(TRYING)
        assert automatic.config() != before
        automatic.disable()
        # the mgr lives, and renews its claim no more
        seconds = automatic.until(lambda: automatic.config() == before, LEASE_S + WITHIN_S)
        print(f"taken back {seconds:.1f} s after the module was disabled")  # noqa: T201
        automatic.until(lambda: automatic.cluster.store.keys(LOCK) == [], WITHIN_S)
    automatic.enable()
    automatic.until(automatic.settled, WITHIN_S)
    assert automatic.config() == before
    assert_whole(automatic, trail)


def test_without_a_guardian_a_trial_stays_until_a_mgr_has_the_module_again(automatic: AutomaticLab) -> None:
    before, trail = automatic.config(), automatic.records()
    automatic.begin(TRYING)
    during = automatic.config()
    assert any("ceph-tuner guardian" in note for note in json.loads(automatic.mon("tuner auto explain"))["notes"])
    automatic.disable()
    assert automatic.config() == during
    automatic.enable()
    seconds = automatic.until(lambda: automatic.config() == before, WITHIN_S)
    print(f"taken back {seconds:.1f} s after the module was enabled again")  # noqa: T201
    automatic.until(automatic.settled, WITHIN_S)
    assert_whole(automatic, trail)


def test_switched_off_in_a_trial_it_takes_the_trial_back(automatic: AutomaticLab) -> None:
    before = automatic.config()
    automatic.begin(TRYING)
    progress = json.loads(automatic.mon("progress json"))
    ours = [event for event in [*progress["events"], *progress["completed"]] if event["id"].startswith("tuner-")]
    # as Ceph's dashboard reads them; what it cannot read breaks its landing page
    assert all(dict(event["refs"])["tuner"] == event["id"] for event in ours)
    assert ours
    automatic.mon("tuner auto off")
    automatic.until(lambda: automatic.config() == before, WITHIN_S)
    automatic.until(automatic.settled, WITHIN_S)
    assert automatic.state().mode == OFF
    automatic.mon("tuner auto on")


def test_a_worker_that_is_killed_costs_a_message_and_nothing_else(automatic: AutomaticLab) -> None:
    before, gid = automatic.config(), automatic.mgrs.seen()["active_gid"]
    automatic.worker_hangs.touch()
    try:
        automatic.begin(ASKING)
        automatic.until(lambda: automatic.processes("/lab/worker") != [], WITHIN_S)
        for pid in automatic.processes("/lab/worker"):
            os.kill(pid, signal.SIGKILL)
        automatic.until(lambda: automatic.state().phase == OBSERVING, WITHIN_S)
    finally:
        automatic.worker_hangs.unlink()
    assert automatic.records()[-1].what == "refused"
    assert automatic.config() == before
    assert automatic.mgrs.seen()["active_gid"] == gid
    automatic.mon("tuner auto retry")


def test_an_osd_that_dies_ends_the_trial(automatic: AutomaticLab) -> None:
    before, trail = automatic.config(), automatic.records()
    osd = automatic.lab.osds[-1]
    automatic.begin(TRYING)
    kill(automatic.lab, f"osd.{osd}")
    try:
        automatic.until(lambda: automatic.config() == before, 2 * WITHIN_S)
        automatic.until(automatic.settled, WITHIN_S)
        assert_whole(automatic, trail)
    finally:
        automatic.lab.start_osd(osd)
        automatic.until(lambda: "OSD_DOWN" not in json.loads(automatic.mon("health"))["checks"], 30)


def test_a_monitor_that_dies_and_comes_back_leaves_all_as_before_or_as_planned(automatic: AutomaticLab) -> None:
    before, trail, state = automatic.config(), automatic.records(), automatic.state()
    automatic.begin(HOLDING)
    kill(automatic.lab, "mon.a")
    time.sleep(3)
    automatic.lab.start_daemon("mon.a")
    automatic.until(automatic.settled, 2 * WITHIN_S)
    kept = automatic.state().kept != state.kept
    assert (automatic.config() == before) != kept
    assert len(knob_of(automatic.config())) == 1
    assert_whole(automatic, trail)


def test_a_log_collector_gets_each_record_whole(automatic: AutomaticLab) -> None:
    newest = automatic.records()[-1]

    def collected() -> List[AuditRecord]:
        lines = automatic.lab.run(["ceph", "log", "last", "1000", "info", "audit"]).splitlines()
        told = [line.partition(f" {AUDIT_MARK}")[2] for line in lines if f" {AUDIT_MARK}" in line]
        return [AuditRecord.from_dict(json.loads(document)) for document in told]

    # the monitors write their log some seconds later
    until(lambda: newest in collected(), 30, collected, pause=1)


def test_what_it_did_is_on_a_page_for_people(automatic: AutomaticLab, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    words = ["report", "--cluster", automatic.lab.name, "--output", str(path)]
    subprocess.run([sys.executable, "-c", "from ceph_tuner_cli.main import main; main()", *words], check=True)
    page = unescape(path.read_text(encoding="utf-8"))
    # the oldest may be beyond what a page has
    told = [record for record in automatic.records() if record.what in (APPLY, KEPT, TAKEN_BACK) and not record.refers]
    assert {record.what for record in told[-20:]} == {APPLY, KEPT, TAKEN_BACK}
    for record in told[-20:]:
        assert f'data-name="what">{record.what}' in page
        assert f'data-name="why">{record.why}<' in page
    assert f'data-name="what">apply: {KNOB} ' in page
    # what is in force can be taken back by what the page says
    assert ("To take it back" in page) == any(entry.state == APPLIED for entry in automatic.entries())
    with chromium() as browser, opened(browser, path, 360) as shown:
        assert shown.holds(360), shown
