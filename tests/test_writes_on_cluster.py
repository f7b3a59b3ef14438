"""Writes and their undoing on real clusters of both releases: what the OSDs do, not what they say."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from contextlib import closing, contextmanager, nullcontext
from typing import Dict, Iterator, List

import pytest

from ceph_lab.cluster import Lab
from ceph_tuner.cluster import Cluster, open_cluster
from ceph_tuner.core.changes.config_database import winner
from ceph_tuner.core.changes.journal import APPLIED, STANDING, UNDONE, Entry, Journal
from ceph_tuner.core.changes.lock import Claim, Holder, break_lock, claims
from ceph_tuner.core.changes.osd_poll import EFFECT_S
from ceph_tuner.core.changes.plan import Restore, Step
from ceph_tuner.core.changes.standing import StandingApplier
from ceph_tuner.core.errors import CommandFailed, InputError, JournalDamaged, Locked, UnknownOption
from ceph_tuner.core.knobs.catalogue import MCLOCK_NINE, PROFILE
from ceph_tuner.core.knobs.releases import Value, nine
from ceph_tuner.core.knobs.settings import format_settings
from config_dump import Dump, config_dump
from waiting import until

CUSTOM: Dict[str, Value] = nine((0.3, 3, 0.8), (0.2, 1, 0.5), (0.05, 1, 0.4))
SLOW: Dict[str, Value] = nine((0.02, 1, 0.02), (0.5, 1, 0), (0, 1, 0))
"""Clients at 2% of the capacity: nobody takes that for noise."""
FULL = {**CUSTOM, "osd_max_scrubs": 2, "osd_scrub_chunk_max": 6}
LIMIT = "osd_mclock_scheduler_client_lim"


@pytest.fixture(scope="module")
def cluster(any_lab: Lab) -> Iterator[Cluster]:
    opened = open_cluster(any_lab.name)
    yield opened
    opened.close()


@pytest.fixture
def before(any_lab: Lab, cluster: Cluster) -> Iterator[Dump]:
    """An operator's own entries, some for the very options that are tuned; after the test only Ceph's are left."""
    initial = cluster.config.dump()
    host = cluster.config.places()[1].locations["host"]
    own = [
        ("osd", "osd_max_scrubs", "4"),
        ("osd", "osd_scrub_chunk_max", "12"),
        (f"osd/host:{host}", "osd_snap_trim_sleep", "0.1"),
        ("osd/host:elsewhere", LIMIT, "0.700000"),
        ("osd/class:hdd", PROFILE, "high_client_ops"),
        ("osd.77", LIMIT, "0.600000"),
        ("global", "osd_max_trimming_pgs", "3"),
    ]
    for who, name, value in own:
        cluster.config.set(who, name, value)
    yield config_dump(any_lab)
    for who, name, _ in own:
        cluster.config.remove(who, name)
    assert cluster.config.dump() == initial


def rates(lab: Lab, seconds: int = 3) -> float:
    """Client writes per second through the queue, of 64 or of that many seconds: so few are soon removed."""
    load = ["rados", "bench", "-p", "rbd", str(seconds), "write", "-b", "4096", "-t", "16", "--max-objects", "64"]
    found = lab.run(load, timeout=90)
    matched = re.search(r"Average IOPS:\s+(\d+)", found)
    assert matched, found
    return float(matched[1])


def runs_freely(lab: Lab, free: float) -> bool:
    """Whether one of three looks has half of that: other tests may take the processors, and a limit stays in each."""
    return any(rates(lab) > free / 2 for _ in range(3))


def shown(cluster: Cluster, osd: int, names: List[str]) -> Dict[str, str]:
    effective = cluster.config.effective(osd)
    return {name: effective[name] for name in names}


@contextmanager
def bucket(lab: Lab, host: str) -> Iterator[None]:
    """A rack for one host."""
    lab.run(["ceph", "osd", "crush", "add-bucket", "shelf", "rack"])
    lab.run(["ceph", "osd", "crush", "move", "shelf", "root=default"])
    lab.run(["ceph", "osd", "crush", "move", host, "rack=shelf"])
    try:
        yield
    finally:
        lab.run(["ceph", "osd", "crush", "move", host, "root=default"])
        lab.run(["ceph", "osd", "crush", "rm", "shelf"])


def test_an_effect_is_seen_within_seconds_and_undo_restores_the_database_byte_for_byte(
    any_lab: Lab, cluster: Cluster, before: Dump
) -> None:
    applier = cluster.applier()
    plan = applier.plan("osd", FULL)
    began = time.monotonic()
    assert applier.apply(plan) is not None
    assert time.monotonic() - began < 15
    assert plan.osds == tuple(any_lab.osds)
    for osd in any_lab.osds:
        assert shown(cluster, osd, list(plan.expected)) == dict(plan.expected)
    assert config_dump(any_lab) != before
    (undone,) = applier.undo()
    assert not undone.drift
    assert not undone.unseen
    assert config_dump(any_lab) == before


@pytest.mark.parametrize("kind", ["osd", "class", "host", "rack", "osd.N"])
def test_every_kind_of_target_reaches_its_osds_and_no_other(
    any_lab: Lab, cluster: Cluster, before: Dump, kind: str
) -> None:
    place = cluster.config.places()[0]
    host = place.locations["host"]
    targets = {"osd": "osd", "class": f"osd/class:{place.device_class}", "host": f"osd/host:{host}",
               "rack": "osd/rack:shelf", "osd.N": f"osd.{place.osd}"}  # fmt: skip
    covered = set(any_lab.osds) if kind in ("osd", "class") else {place.osd}
    with bucket(any_lab, host) if kind == "rack" else nullcontext():
        untouched = {osd: shown(cluster, osd, [PROFILE, LIMIT, "osd_max_scrubs"]) for osd in any_lab.osds}
        applier = cluster.applier()
        plan = applier.plan(targets[kind], FULL)
        assert set(plan.osds) == covered
        applier.apply(plan)
        for osd in any_lab.osds:
            found = shown(cluster, osd, [PROFILE, LIMIT, "osd_max_scrubs"])
            assert (found == untouched[osd]) == (osd not in covered)
        applier.undo()
        assert {osd: shown(cluster, osd, [PROFILE, LIMIT, "osd_max_scrubs"]) for osd in any_lab.osds} == untouched
    assert config_dump(any_lab) == before


def test_undo_gives_the_scheduler_back_where_the_documented_order_leaves_it_as_it_was(
    any_lab: Lab, cluster: Cluster
) -> None:
    initial = config_dump(any_lab)
    free = rates(any_lab)
    applier = cluster.applier()
    applier.apply(applier.plan("osd", SLOW))
    limited = rates(any_lab)
    assert limited < free / 3, "the limit must bite, or the rest says nothing"

    applier.undo()
    assert runs_freely(any_lab, free)
    assert config_dump(any_lab) == initial

    # as Ceph's documentation has it: the profile first, then the keys
    applier.apply(applier.plan("osd", SLOW))
    cluster.config.remove("osd", PROFILE)
    for name in MCLOCK_NINE:
        cluster.config.remove("osd", name)
    time.sleep(1)
    assert config_dump(any_lab) == initial
    assert shown(cluster, 0, [LIMIT]) == {LIMIT: "0.000000"}, "the OSD says that there is no limit"
    assert rates(any_lab) < free / 3, "Ceph has lost the trap: docs/safe-writes.md can be simplified"

    # what was taken back by hand like this, rollback repairs
    (undone,) = applier.undo()
    assert undone.drift == ()
    assert runs_freely(any_lab, free)
    assert config_dump(any_lab) == initial


@contextmanager
def asleep(lab: Lab, cluster: Cluster, who: str) -> Iterator[None]:
    """A limit that nobody overlooks, under a built-in profile; afterwards osd.1 is as before."""
    initial = config_dump(lab)
    for name, value in format_settings(SLOW, cluster.release).items():
        cluster.config.set(who, name, value)
    try:
        yield
    finally:
        for name in MCLOCK_NINE:
            cluster.config.remove(who, name)
        for value in ("custom", "balanced"):
            cluster.config.set("osd.1", PROFILE, value)
            time.sleep(1)
        cluster.config.remove("osd.1", PROFILE)
        assert config_dump(lab) == initial


def restart(lab: Lab, osd: int) -> None:
    lab.stop_osd(osd)
    lab.start_osd(osd)
    time.sleep(2)


def test_values_under_a_built_in_profile_wake_up_when_its_entry_is_touched(any_lab: Lab, cluster: Cluster) -> None:
    with asleep(any_lab, cluster, "global"):
        with pytest.raises(InputError, match=r"`global` = 0\.02"):
            cluster.applier().plan("osd", CUSTOM)
        assert shown(cluster, 1, [PROFILE, LIMIT]) == {PROFILE: "balanced", LIMIT: "0.020000"}
        free = rates(any_lab)
        # the profile that it has already
        cluster.config.set("osd.1", PROFILE, "balanced")
        time.sleep(1)
        assert rates(any_lab) < free / 2


def test_an_osd_that_starts_goes_by_values_under_its_built_in_profile(any_lab: Lab, cluster: Cluster) -> None:
    """Why a plan looks at OSDs that are down, too."""
    with asleep(any_lab, cluster, "global"):
        any_lab.stop_osd(1)
        cluster.config.set("osd.1", PROFILE, "balanced")
        with pytest.raises(InputError, match=r"osd\.1, which is down"):
            cluster.applier().plan("osd", CUSTOM)
        cluster.config.remove("osd.1", PROFILE)
        restart(any_lab, 1)
        limited = rates(any_lab)
    assert limited < rates(any_lab) / 3


def test_an_osd_that_starts_does_not_know_yet_what_stands_under_its_class(any_lab: Lab, cluster: Cluster) -> None:
    mask = f"osd/class:{cluster.config.places()[1].device_class}"
    shards = cluster.config.effective(1)["osd_op_num_shards"]
    with asleep(any_lab, cluster, mask):
        cluster.config.set(mask, "osd_op_num_shards", "2")
        try:
            restart(any_lab, 1)
            assert shown(cluster, 1, [LIMIT, "osd_op_num_shards"]) == {LIMIT: "0.020000", "osd_op_num_shards": shards}
        finally:
            cluster.config.remove(mask, "osd_op_num_shards")
        free = rates(any_lab)
        cluster.config.set("osd.1", PROFILE, "balanced")
        time.sleep(1)
        assert rates(any_lab) < free / 3


def test_a_built_in_profile_takes_a_custom_one_away_with_its_behaviour(any_lab: Lab, cluster: Cluster) -> None:
    initial = config_dump(any_lab)
    applier = cluster.applier()
    applier.apply(applier.plan("osd", SLOW))
    limited = rates(any_lab)
    applier.apply(applier.plan("osd", {PROFILE: "high_client_ops"}))
    assert rates(any_lab) > 2 * limited
    expected = format_settings(cluster.release.profiles["high_client_ops"], cluster.release)
    assert shown(cluster, 0, list(MCLOCK_NINE)) == expected
    assert len(applier.undo(everything=True)) == 2
    assert config_dump(any_lab) == initial


def test_an_operators_custom_profile_comes_back_with_its_values(any_lab: Lab, cluster: Cluster) -> None:
    initial = config_dump(any_lab)
    own = format_settings(CUSTOM, cluster.release)
    cluster.config.set("osd", PROFILE, "custom")
    for name, value in own.items():
        cluster.config.set("osd", name, value)
    theirs = config_dump(any_lab)
    applier = cluster.applier()
    applier.apply(applier.plan("osd", {**SLOW, "osd_max_scrubs": 1}))
    applier.undo()
    assert config_dump(any_lab) == theirs
    assert shown(cluster, 1, list(own)) == own
    for name in MCLOCK_NINE:
        cluster.config.remove("osd", name)
    cluster.config.remove("osd", PROFILE)
    assert config_dump(any_lab) == initial


def test_osds_remove_a_changed_key_from_osd_and_not_from_masks_under_a_built_in_profile(cluster: Cluster) -> None:
    place = cluster.config.places()[0]
    mask = f"osd/host:{place.locations['host']}"
    cluster.config.set(mask, LIMIT, "0.9")
    cluster.config.set("osd", LIMIT, "0.8")
    end = time.monotonic() + 10
    while any(entry.who == "osd" and entry.name == LIMIT for entry in cluster.config.dump()):
        assert time.monotonic() < end, "Ceph keeps it: the fake monitors of the unit tests are wrong"
        time.sleep(0.1)
    assert (mask, LIMIT, "0.900000") in cluster.config.dump()
    cluster.config.remove(mask, LIMIT)


def test_a_mask_outranks_an_osds_own_entry_unless_another_option_stands_between_them(cluster: Cluster) -> None:
    name, config = "osd_target_pg_log_entries_per_osd", cluster.config
    place = config.places()[1]
    mask, own = f"osd/host:{place.locations['host']}", f"osd.{place.osd}"
    others = [entry for entry in config.dump() if entry.who == own]
    for entry in others:
        config.remove(own, entry.name)

    def decided_by(who: str, value: str) -> bool:
        entry = winner(config.dump(), name, place)
        assert entry is not None
        assert (entry.who, entry.value) == (who, value)
        return config.effective(place.osd)[name] == value

    try:
        config.set(mask, name, "250000")
        config.set(own, name, "260000")
        until(lambda: decided_by(mask, "250000"), 10)
        config.set(own, "osd_client_message_cap", "300")
        until(lambda: decided_by(own, "260000"), 10)
        config.remove(own, "osd_client_message_cap")
        until(lambda: decided_by(mask, "250000"), 10)
        # what would not take effect is refused
        config.remove(own, name)
        config.remove(mask, name)
        config.set(mask, "osd_shallow_scrub_chunk_max", "60")
        with pytest.raises(InputError, match=rf"an entry that would still decide: `{mask}` = 60"):
            cluster.applier().plan(own, {"osd_shallow_scrub_chunk_max": 70})
    finally:
        for who, option in (
            (mask, name),
            (own, name),
            (own, "osd_client_message_cap"),
            (mask, "osd_shallow_scrub_chunk_max"),
        ):
            config.remove(who, option)
        for entry in others:
            config.set(own, entry.name, entry.value)


def test_what_somebody_changed_meanwhile_stays_and_is_reported(any_lab: Lab, cluster: Cluster, before: Dump) -> None:
    applier = cluster.applier()
    applier.apply(applier.plan("osd", FULL))
    cluster.config.set("osd", "osd_scrub_chunk_max", "9")
    (undone,) = applier.undo()
    assert [str(drift) for drift in undone.drift] == [
        "osd osd_scrub_chunk_max: found 9 instead of our 6, left as it is"
    ]
    assert ("osd", "osd_scrub_chunk_max", "9") in cluster.config.dump()
    cluster.config.set("osd", "osd_scrub_chunk_max", "12")
    assert config_dump(any_lab) == before


def test_a_change_over_settings_that_are_replaced_meanwhile_leaves_the_way_back_to_what_was_before_them(
    any_lab: Lab, cluster: Cluster, before: Dump
) -> None:
    """As a page of the book stands, and a boost has the profile that was there before the page."""
    lock = cluster.lock()
    book = StandingApplier(cluster.config, cluster.store, cluster.clock, lock, cluster.release, f"mgr.x{STANDING}")
    operator, boost = cluster.applier(), cluster.applier()
    operator.apply(operator.plan("osd", {PROFILE: "high_recovery_ops"}))
    page = book.apply(book.plan("osd", {PROFILE: "balanced"}))
    boosted = boost.apply(boost.plan("osd", {PROFILE: "high_recovery_ops", "osd_max_scrubs": 5}))
    assert page is not None
    assert boosted is not None
    boost.undo_entry(boosted)
    page = book.keep(book.replace(page, "osd", {PROFILE: "balanced", "osd_max_scrubs": 5}))
    book.undo_entry(page)
    assert ("osd", PROFILE, "high_recovery_ops") in cluster.config.dump()
    operator.undo()
    assert config_dump(any_lab) == before


def test_a_step_that_the_monitor_refuses_leaves_nothing_half_done(
    any_lab: Lab, cluster: Cluster, before: Dump, monkeypatch: pytest.MonkeyPatch
) -> None:
    applier = cluster.applier()
    plan = applier.plan("osd", FULL)
    real = type(cluster.config).set

    def set_wrong(self: object, who: str, name: str, value: str) -> None:
        real(self, who, name, "7.5" if name == MCLOCK_NINE[6] and value == plan.expected[name] else value)  # type: ignore[arg-type]

    monkeypatch.setattr(type(cluster.config), "set", set_wrong)
    with pytest.raises(CommandFailed, match="exceeds maximum"):
        applier.apply(plan)
    assert applier.history()[-1].state == UNDONE
    assert config_dump(any_lab) == before


def test_a_value_told_to_one_osd_that_would_defeat_the_write_is_refused_before_it(
    any_lab: Lab, cluster: Cluster, before: Dump
) -> None:
    any_lab.run(["ceph", "tell", "osd.1", "config", "set", "osd_max_scrubs", "5"])
    try:
        with pytest.raises(InputError, match=r"osd_max_scrubs on osd\.1: found 5 from the OSD's own"):
            cluster.applier().plan("osd", {"osd_max_scrubs": 1})
    finally:
        any_lab.run(["ceph", "tell", "osd.1", "config", "unset", "osd_max_scrubs"])
    assert config_dump(any_lab) == before


# the program itself, stopped on its way

_STOPPED = """
import os, signal, sys
from ceph_tuner.core.ceph.commands import CommandConfig
write, at, count = CommandConfig.set, {at}, 0
def counted(self, *arguments):
    global count
    count += 1
    if count == at and {early}:
        os.kill(os.getpid(), {signal})
    write(self, *arguments)
    if count == at:
        os.kill(os.getpid(), {signal})
CommandConfig.set = counted
from ceph_tuner_cli.main import main
sys.argv = ["ceph-tuner", *{arguments}]
main()
"""


def options() -> List[str]:
    return [f"--set={name}={value}" for name, value in FULL.items()]


def program(*arguments: str) -> subprocess.CompletedProcess[str]:
    code = "from ceph_tuner_cli.main import main; main()"
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)


def stopped(lab: Lab, at: int, by: int, early: bool) -> subprocess.CompletedProcess[str]:
    arguments = ["apply", "--cluster", lab.name, "--yes", *options()]
    script = _STOPPED.format(at=at, early=early, signal=by, arguments=arguments)
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("at", "early"), [(1, True), (1, False), (7, False), (12, False)])
def test_killed_between_two_steps_the_next_run_takes_it_back(
    any_lab: Lab, cluster: Cluster, before: Dump, at: int, early: bool
) -> None:
    assert stopped(any_lab, at, signal.SIGKILL, early).returncode == -signal.SIGKILL
    assert (config_dump(any_lab) == before) is early
    done = program("rollback", "--cluster", any_lab.name)
    assert done.returncode == 0, done.stderr
    assert "is taken back" in done.stdout
    assert config_dump(any_lab) == before
    assert cluster.applier().leftover() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_ctrl_c_takes_the_change_back_and_ends_with_130(
    any_lab: Lab, cluster: Cluster, before: Dump, number: signal.Signals
) -> None:
    done = stopped(any_lab, 6, number, True)
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr
    assert config_dump(any_lab) == before
    assert cluster.applier().leftover() == []


def test_two_tuners_at_once_the_second_is_refused_with_exit_code_3(
    any_lab: Lab, cluster: Cluster, before: Dump
) -> None:
    with cluster.lock("the first"):
        done = program("apply", "--cluster", any_lab.name, "--yes", *options())
        assert done.returncode == 3
        assert "the first" in done.stderr
        assert "Traceback" not in done.stderr
        assert config_dump(any_lab) == before
    with pytest.raises(Locked), cluster.lock("again"), cluster.lock("and another"):
        pass


def test_without_yes_nothing_is_written(any_lab: Lab, before: Dump) -> None:
    keys = any_lab.run(["ceph", "config-key", "dump", "mgr/tuner/", "-f", "json"])
    done = program("apply", "--cluster", any_lab.name, *options())
    assert done.returncode == 0, done.stderr
    assert "ceph config set osd osd_mclock_profile custom" in done.stdout
    assert "nothing is changed" in done.stderr
    assert config_dump(any_lab) == before
    assert any_lab.run(["ceph", "config-key", "dump", "mgr/tuner/", "-f", "json"]) == keys


def test_the_printed_commands_do_what_is_written(any_lab: Lab, cluster: Cluster) -> None:
    initial = config_dump(any_lab)
    applier = cluster.applier()
    plan = applier.plan("osd.0", FULL)
    for command in plan.commands:
        any_lab.run(command.split())
    typed = config_dump(any_lab)
    for step in reversed(plan.steps):
        cluster.config.remove(*step.key)
    assert config_dump(any_lab) == initial
    applier.apply(plan)
    assert config_dump(any_lab) == typed
    applier.undo()
    assert config_dump(any_lab) == initial


def test_a_claim_in_the_cluster_is_seen_by_every_client_and_gone_after_use(any_lab: Lab, cluster: Cluster) -> None:
    with cluster.lock() as lock:
        lock.check()
        assert "lock/" in any_lab.run(["ceph", "config-key", "dump", "mgr/tuner/"])
        assert [claim.holder for claim in lock.others()] == []
    assert "lock/" not in any_lab.run(["ceph", "config-key", "dump", "mgr/tuner/"])


def test_what_an_upgrade_has_retired_comes_back_as_it_was(reef_lab: Lab) -> None:
    """Reef does not have every option of Tentacle: here it stands for the newer of two releases."""
    name, initial = "osd_deep_scrub_interval_cv", config_dump(reef_lab)
    with closing(open_cluster(reef_lab.name)) as cluster:
        with pytest.raises(UnknownOption):
            cluster.config.set("osd", name, "0.1")
        cluster.config.set_unknown("osd", name, "0.1")
        before = config_dump(reef_lab)
        try:
            cluster.config.set_unknown("osd", name, "0.2")
            step, restore = Step("osd", name, "0.1", "0.2"), Restore("osd", name, "0.1", frozenset({"0.2"}))
            journal, now = Journal(cluster.store), time.time()
            entry = Entry(
                journal.next_number(), APPLIED, now, now, "before", "", "tentacle", "osd", (step,), (restore,)
            )
            journal.write(entry)
            began = time.monotonic()
            (undone,) = cluster.applier().undo()
            # no OSD is waited for that can never show it
            assert time.monotonic() - began < EFFECT_S
            assert undone.remarks == (f"osd {name}: 0.1 as before; the release has no such option",)
            assert config_dump(reef_lab) == before
        finally:
            cluster.config.remove("osd", name)
    assert config_dump(reef_lab) == initial


def test_what_somebody_puts_into_the_store_keeps_nobody_from_taking_back(
    any_lab: Lab, cluster: Cluster, before: Dump
) -> None:
    forged = {
        "journal/README": "hello",
        "journal/00009998": "[" * 60_000,
        "journal/00009999": '{"restores": [{"who": "osd.0-1000000", "name": "osd_max_scrubs", "value": "--id=x"}]}',
        "lock-generation": "9" * 400,
        # watched for a lease, as nobody renews it
        "lock/forged": Claim("lock/forged", Holder("x"), 0.0, 1e300, True).to_text(),
    }
    applier = cluster.applier()
    assert applier.apply(applier.plan("osd", FULL), trial=True) is not None
    try:
        for key, value in forged.items():
            cluster.store.set(key, value)
        (undone,) = cluster.applier().recover()
        assert (undone.drift, undone.unseen) == ((), ())
        assert config_dump(any_lab) == before
        assert {item.key for item in applier.set_aside()} == {key for key in forged if key.startswith("journal/")}
        with pytest.raises(JournalDamaged, match="journal/0000999"):
            applier.apply(applier.plan("osd", FULL))
        assert config_dump(any_lab) == before
    finally:
        for key in forged:
            cluster.store.remove(key)
    with cluster.lock() as held:
        assert [claim.generation for claim in claims(cluster.store)] == [held.generation]
        broken = break_lock(cluster.store)
        assert [claim.held for claim in broken] == [True]
        with pytest.raises(Locked, match="lost"):
            held.check()
