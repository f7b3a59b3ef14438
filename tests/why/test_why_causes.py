from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable, List, Tuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from waits import NOON, healthy, osd, pg, queued, served, some, with_osd

from ceph_tuner.core.measure.queue_dump import ServedClass
from ceph_tuner.core.why import examine
from ceph_tuner.core.why.cause import Cause, Evidence
from ceph_tuner.core.why.examination import behind
from ceph_tuner.core.why.facts import OsdNow, PoolNow, Slots, WhyFacts

DEGRADED = "active+recovering+degraded"
WAITS = "active+recovery_wait+degraded"
BACKFILLS = "active+backfill_wait"
LOST = "active+undersized+degraded+remapped"
THROTTLE = {"bluestore_throttle_bytes": "4096"}


def recovers(count: int = 1) -> WhyFacts:
    return some(healthy(), count, states=DEGRADED, degraded=5)


def full(facts: WhyFacts) -> WhyFacts:
    taken = Slots(1, ("1.0",), ("1.1", "1.2"))
    return replace(facts, osds=tuple(replace(own, local=taken) for own in facts.osds))


def flagged(facts: WhyFacts, *names: str) -> WhyFacts:
    return replace(facts, flags=frozenset(names))


def limited(lim: str = "0.02", capacity: str = "20000", served_by_limit: bool = True) -> WhyFacts:
    options = {
        "osd_mclock_scheduler_background_recovery_lim": lim,
        "osd_mclock_max_capacity_iops_ssd": capacity,
    }
    item = ServedClass(0, "background_recovery", True, served_by_limit)
    return with_osd(recovers(), osd(0, options, queues=queued("background_recovery", 1, 1.5), served=(item,)))


def starved() -> WhyFacts:
    """A primary whose clients spend their time in the queue, behind replica writes."""
    own = osd(0, rises=served(200, 1.0, queue_ms=40.0), queues=queued("client", 8, 0.0), strict=(9, 12, 7, 8, 9, 11))
    return with_osd(healthy(), own)


def stopped(chunks: int, copies: int, **options: str) -> WhyFacts:
    """A late PG that osd.0 scrubs, and counts so much of."""
    rises = {
        **served(100, 1.0),
        "osd.scrub_replicated_io_intersects": chunks + 2.0,
        "osd.scrub_replicated_io_blocked": 2.0,
        "osd.scrub_replicated_stats_cnt": float(copies),
    }
    own = osd(0, {"osd_scrub_chunk_max": "15", "osd_scrub_chunk_min": "5", **options}, rises=rises)
    return with_osd(some(healthy(), 1, states="active+clean+scrubbing+deep", deep_late=True), own)


def in_reads(threads: int = 16, share: float = 0.95, **given: Any) -> OsdNow:
    """An OSD whose threads wait for reads in that share of their time, while clients wait for a thread."""
    options = {
        "osd_op_num_shards": "0",
        "osd_op_num_shards_ssd": str(threads // 2),
        "osd_op_num_shards_hdd": str(threads // 2),
        "osd_op_num_threads_per_shard": "2",
    }
    rises = {
        **served(200, 1.0, queue_ms=40.0),
        "bluestore.read_wait_aio_lat.sum": share * threads * 10,
        "bluestore.read_wait_aio_lat.count": 40_000.0,
    }
    return osd(0, options, **{"rises": rises, "queues": queued("client", 8, 0.0), **given})


def every(own: Callable[[int], object]) -> WhyFacts:
    return replace(healthy(), osds=tuple(own(number) for number in range(3)))  # type: ignore[misc]


PLANTED: List[Tuple[str, str, WhyFacts]] = [
    ("flag-pause", "client", flagged(healthy(), "pauserd", "pausewr")),
    ("flag-norecover", "recovery", flagged(some(healthy(), 3, states=WAITS, degraded=5), "norecover")),
    ("flag-nobackfill", "backfill", flagged(some(healthy(), 3, states=BACKFILLS, misplaced=9), "nobackfill")),
    ("flag-norebalance", "backfill", flagged(some(healthy(), 3, states="active+remapped", misplaced=9), "norebalance")),
    ("flag-nosnaptrim", "snaptrim", flagged(some(healthy(), 3, snaptrim_queue=2), "nosnaptrim")),
    ("flag-nodeep-scrub", "scrub", flagged(some(healthy(), 3, deep_late=True), "nodeep-scrub")),
    ("flag-noscrub", "scrub", flagged(some(healthy(), 3, scrub_late=True), "noscrub")),
    (
        "flag-nodeep-scrub",
        "scrub",
        replace(some(healthy(), 3, deep_late=True), pools={1: PoolNow("rbd", flags=frozenset(("nodeep-scrub",)))}),
    ),
    ("scrub-hours", "scrub", some(every(lambda at: osd(at, {"osd_scrub_begin_hour": "1", "osd_scrub_end_hour": "5"})),
                                  3, deep_late=True)),
    ("scrub-behind-recovery", "scrub", some(recovers(2), 0)),
    ("scrub-slots", "scrub", some(every(lambda at: osd(at, {"osd_max_scrubs": "0"})), 3, deep_late=True)),
    ("reservation-slots", "recovery", full(some(some(healthy(), 5, states=WAITS, degraded=5), 1, states=DEGRADED))),
    ("reservation-slots", "backfill", full(some(healthy(), 5, states="active+backfill_wait", misplaced=5))),
    ("too-full", "backfill", some(healthy(), 5, states="active+backfill_toofull", misplaced=5)),
    ("too-full", "backfill", some(healthy(), 5, states=f"{LOST}+backfill_toofull", degraded=5)),
    ("flag-nobackfill", "backfill", flagged(some(healthy(), 3, states=LOST, degraded=5), "nobackfill")),
    ("snaptrim-slots", "snaptrim", some(some(healthy(), 12, states="active+clean+snaptrim_wait", snaptrim_queue=1),
                                        9, states="active+clean+snaptrim")),
    ("limit", "recovery", limited()),
    ("capacity", "recovery", limited("0.9", "40")),
    ("stale-shards", "recovery", limited("0")),
    ("strict-queue", "client", starved()),
    ("op-threads", "client", with_osd(healthy(), in_reads())),
    ("strict-queue", "client", with_osd(healthy(), in_reads(strict=(9, 12, 7, 8, 9, 11)))),
    # what holds the strict queue comes before it
    (
        "throttle",
        "client",
        every(lambda at: osd(at, THROTTLE, rises=served(300, 0.05, 9.0, 20.0), queues=queued("client", 8, 0.0),
                             strict=(9, 12, 7, 8, 9, 11))),
    ),
    ("throttle", "client", every(lambda at: osd(at, THROTTLE, rises=served(300, 0.05, 9.0)))),
    ("slow-drive", "client", with_osd(healthy(), osd(2, rises=served(100, 30.0)))),
    ("drive-saturated", "client", every(lambda at: osd(at, rises=served(12_000, 4.0)))),
    ("stopped-scrubs", "scrub", stopped(12, 180)),
    (
        "share",
        "recovery",
        replace(recovers(), osds=tuple(osd(at, queues=queued("background_recovery", 2, 0.0)) for at in range(3))),
    ),
]  # fmt: skip
for _place, (_name, _work, _facts) in enumerate(PLANTED):
    if _name == "scrub-behind-recovery":
        late = tuple(replace(each, deep_late=each.pgid in ("1.5", "1.6")) for each in _facts.pgs)
        PLANTED[_place] = (_name, _work, replace(_facts, pgs=late))


def test_nothing_is_named_where_nothing_waits() -> None:
    assert examine(healthy()) == []
    assert examine(WhyFacts(NOON)) == []


@pytest.mark.parametrize(("name", "work", "facts"), PLANTED, ids=[f"{name} {work}" for name, work, _ in PLANTED])
def test_what_is_planted_is_named_first(name: str, work: str, facts: WhyFacts) -> None:
    causes = examine(facts)
    assert [(cause.name, cause.work) for cause in causes][:1] == [(name, work)]
    assert causes[0].waiting > 0
    assert all(evidence.words and evidence.command.startswith("ceph ") for evidence in causes[0].evidence)


@pytest.mark.parametrize(
    "facts",
    [
        flagged(healthy(), "norecover", "nobackfill", "nodeep-scrub", "noscrub", "nosnaptrim"),
        every(lambda at: osd(at, {"osd_scrub_begin_hour": "1", "osd_scrub_end_hour": "5"})),
        full(healthy()),
        some(healthy(), 3, states="active+clean+scrubbing+deep"),
        # the best-effort limit is reached by scrubs that are in time
        replace(
            some(healthy(), 1, states="active+clean+scrubbing+deep"),
            osds=tuple(osd(at, queues=queued("background_best_effort", 2, 0.5)) for at in range(3)),
        ),
        every(lambda at: osd(at, rises=served(10, 4.0))),
        every(lambda at: osd(at, strict=(0, 3, 0, 0, 1, 0))),
        with_osd(healthy(), in_reads(share=0.7)),
        # a hard disk has one head
        with_osd(healthy(), in_reads(kind="hdd")),
        # of how many threads there are nothing is known
        with_osd(healthy(), in_reads(threads=0)),
        # nobody waits for one
        with_osd(healthy(), in_reads(rises={**served(200, 1.0), "bluestore.read_wait_aio_lat.sum": 159.0}, queues=())),
    ],
)
def test_what_could_hold_work_is_not_named_while_none_waits(facts: WhyFacts) -> None:
    assert examine(facts) == []


def of_many(facts: WhyFacts, asked: int = 3) -> WhyFacts:
    """The same PGs four times over: the first on OSDs that were asked, the others on OSDs that were not."""
    pgs = tuple(
        replace(each, pgid=f"{each.pgid}{turn}", acting=places, up=places)
        for turn in range(5)
        for each in facts.pgs
        for places in [tuple(osd + asked * turn for osd in each.acting)]
    )
    return replace(facts, pgs=pgs)


JUDGED_BY_OSDS = ("scrub-hours", "scrub-behind-recovery", "scrub-slots", "reservation-slots", "snaptrim-slots", "limit",
                  "capacity", "stale-shards", "stopped-scrubs", "share", "throttle", "drive-saturated",
                  "slow-drive")  # fmt: skip


OF_OSDS = [(name, facts) for name, _, facts in PLANTED if name in JUDGED_BY_OSDS]


@pytest.mark.parametrize(("name", "facts"), OF_OSDS, ids=[name for name, _ in OF_OSDS])
def test_osds_that_were_not_asked_make_a_cause_no_smaller(name: str, facts: WhyFacts) -> None:
    few, many = examine(facts), examine(of_many(facts))
    assert [(cause.name, round(cause.held, 6)) for cause in many] == [
        (cause.name, round(cause.held, 6)) for cause in few
    ]


def many_drives(count: int, own: OsdNow) -> WhyFacts:
    """PGs over many OSDs at ease, of which this one is another."""
    osds = tuple(own if at == own.id else osd(at) for at in range(count))
    places = (tuple((at + step) % count for step in range(3)) for at in range(count))
    return replace(healthy(), osds=osds, pgs=tuple(pg(at, acting) for at, acting in enumerate(places)))


def test_one_slow_drive_of_many_counts_by_the_time_that_it_takes() -> None:
    (cause,) = examine(many_drives(60, osd(7, rises=served(100, 100.0))))
    assert (cause.name, cause.osds) == ("slow-drive", (7,))
    # a twentieth of the PGs wait for it, a hundred times as long
    assert cause.held > 0.5
    assert examine(many_drives(60, osd(7, rises=served(100, 3.2)))) == []


def test_a_drive_that_scrubs_or_is_filled_is_not_called_slow() -> None:
    slower = served(100, 60.0)
    facts = many_drives(60, osd(7, rises=slower))
    scrubbed = tuple(
        replace(each, states=each.states | {"scrubbing"}) if 7 in each.osds else each for each in facts.pgs
    )
    places = {place for each in scrubbed if "scrubbing" in each.states for place in each.osds}
    osds = tuple(replace(each, rises=slower) if each.id in places else each for each in facts.osds)
    assert [cause.name for cause in examine(replace(facts, pgs=scrubbed, osds=osds))] == []
    filled = replace(osd(7, rises={**slower, "osd.subop_push_in_bytes": 1e9}))
    moved = tuple(replace(each, states=frozenset(("active", "backfilling"))) if 7 in each.osds else each
                  for each in facts.pgs)  # fmt: skip
    assert [cause.name for cause in examine(with_osd(replace(facts, pgs=moved), filled))] == []
    # nor is one that clients write three times as much to
    hot = many_drives(60, osd(7, rises=served(300, 60.0)))
    assert [cause for cause in examine(hot) if cause.name == "slow-drive"] == []


def test_without_a_list_of_pgs_one_osd_is_one_of_those_asked() -> None:
    facts = replace(many_drives(60, osd(7, rises=served(12_000, 4.0))), pgs=())
    assert [cause for cause in examine(facts) if cause.held > 0.1] == []
    full_one = replace(many_drives(60, osd(7, THROTTLE, rises=served(300, 0.05, 9.0))), pgs=())
    assert examine(full_one) == []


def test_a_hard_disk_behind_a_throttle_of_ceph_s_own_size_is_at_its_end() -> None:
    options = {"osd_mclock_max_capacity_iops_hdd": "315"}
    rises = served(60, 90.0, 300.0)
    facts = every(lambda at: replace(osd(at, options, rises=rises), kind="hdd"))
    assert [cause.name for cause in examine(facts)] == ["drive-saturated"]


@pytest.mark.parametrize(("major", "named"), [(18, ["scrub-slots"]), (20, [])])
def test_from_tentacle_on_scrubs_of_copies_take_no_slot_of_a_primary(major: int, named: List[str]) -> None:
    # each OSD leads two scrubs and has a copy in four
    facts = some(some(healthy(), 10, deep_late=True), 6, states="active+clean+scrubbing+deep")
    osds = tuple(osd(at, {"osd_max_scrubs": "5"}, major=major) for at in range(3))
    assert [cause.name for cause in examine(replace(facts, osds=osds))] == named


def test_a_flag_for_shallow_scrubs_leaves_deep_ones_to_their_slots() -> None:
    facts = some(every(lambda at: osd(at, {"osd_max_scrubs": "0"})), 3, deep_late=True)
    assert [cause.name for cause in examine(flagged(facts, "noscrub"))] == ["scrub-slots"]
    # PGs of a pool whose flag forbids it wait for no slot
    pools = {1: PoolNow("rbd", flags=frozenset(("nodeep-scrub",)))}
    assert [cause.name for cause in examine(replace(facts, pools=pools))] == ["flag-nodeep-scrub"]


def test_a_queue_that_needs_no_override_is_told_of_none() -> None:
    facts = full(some(healthy(), 5, states=BACKFILLS, misplaced=5))
    assert len(examine(facts)[0].commands) == 2
    wpq = tuple(replace(own, options={**own.options, "osd_op_queue": "wpq"}) for own in facts.osds)
    assert examine(replace(facts, osds=wpq))[0].commands == ("ceph config set osd osd_max_backfills 2",)


def test_a_pool_s_name_is_one_word_of_the_command() -> None:
    pool = PoolNow("a; rm -r b", flags=frozenset(("nodeep-scrub",)))
    (cause,) = examine(replace(some(healthy(), 3, deep_late=True), pools={1: pool}))
    assert cause.commands == ("ceph osd pool set 'a; rm -r b' nodeep-scrub 0",)


def test_hours_are_told_beside_the_time_that_they_are_held_against() -> None:
    (facts,) = (facts for name, _, facts in PLANTED if name == "scrub-hours")
    assert "it is 12:00 UTC by the clock here" in examine(facts)[0].evidence[0].words


def test_bytes_on_erasure_code_are_those_that_the_drive_is_given() -> None:
    options = {"osd_mclock_max_sequential_bandwidth_ssd": "1000000000"}
    # 8+3: clients send the primary eight times what it keeps
    sent = {**served(2000, 1.0), "osd.op_w_in_bytes": 8e9, "osd.subop_in_bytes": 1.4e9}
    written = {"bluestore.write_big_bytes": 2.4e9, "bluestore.write_small_bytes": 0.0}
    assert examine(every(lambda at: osd(at, options, rises={**sent, **written}))) == []
    written["bluestore.write_small_bytes"] = 6e9
    full_drives = every(lambda at: osd(at, options, rises={**sent, **written}))
    assert [cause.name for cause in examine(full_drives)] == ["drive-saturated"]


def test_a_scrub_s_chunks_that_writes_preempt_are_paid_for_whole() -> None:
    (cause,) = examine(stopped(12, 180))
    # twelve chunks of 15 objects, beside 60 objects of three copies each
    assert cause.held == pytest.approx(180 / (180 + 60))
    counts = "writes preempted 12 chunks in 10 s, while 180 copies of objects were scrubbed"
    assert cause.evidence[0].words == f"osd.0: {counts}"
    assert cause.commands == ("ceph config set osd osd_scrub_chunk_max 5",)
    (small,) = examine(stopped(36, 180, osd_scrub_chunk_max="5"))
    assert small.commands == ("ceph config set osd osd_scrub_max_preemptions 0",)


@pytest.mark.parametrize(
    "facts",
    [
        stopped(2, 0),
        stopped(12, 9000),
        stopped(12, 180, osd_op_queue="wpq"),
        replace(stopped(12, 180), pgs=some(healthy(), 1, states="active+clean+scrubbing+deep").pgs),
        replace(stopped(12, 180), pgs=some(healthy(), 1, states="active+clean+scrubbing", deep_late=True).pgs),
        stopped(12, 180, osd_scrub_chunk_min="many"),
    ],
    ids=[
        "chance",
        "a small part",
        "wpq, whose items have one price",
        "scrubs in time",
        "a shallow scrub",
        "no size that is known",
    ],
)
def test_few_stopped_chunks_hold_nothing(facts: WhyFacts) -> None:
    assert examine(facts) == []


ODD_NUMBERS = ["nan", "inf", "-5", "1e999", "", "many"]


@pytest.mark.parametrize("number", ODD_NUMBERS)
@pytest.mark.parametrize(
    "option",
    ["osd_max_scrubs", "osd_max_trimming_pgs", "osd_mclock_max_capacity_iops_ssd", "bluestore_throttle_bytes",
     "osd_mclock_scheduler_background_recovery_lim", "osd_scrub_begin_hour"],
)  # fmt: skip
def test_an_option_that_is_no_sensible_number_ends_nothing(option: str, number: str) -> None:
    for _, _, facts in PLANTED:
        odd = tuple(replace(own, options={**own.options, option: number}) for own in facts.osds)
        examine(replace(facts, osds=odd))


def test_backfill_of_what_lacks_copies_is_held_by_recovery_s_limit() -> None:
    backfills = "active+undersized+degraded+remapped+backfilling"
    facts = replace(limited(), pgs=some(healthy(), 3, states=backfills, degraded=5).pgs)
    assert [(cause.name, cause.work) for cause in examine(facts)] == [("limit", "recovery")]
    forced = some(facts, 3, states="active+remapped+backfilling+forced_backfill", degraded=0, misplaced=5)
    assert [(cause.name, cause.work) for cause in examine(forced)] == [("limit", "recovery")]
    # what only lies elsewhere is best effort's
    misplaced = some(facts, 3, states="active+remapped+backfilling", degraded=0, misplaced=5)
    assert examine(misplaced) == []


def test_recovery_that_was_forced_and_waits_is_not_at_work() -> None:
    facts = full(some(some(healthy(), 5, states=f"{WAITS}+forced_recovery", degraded=5), 1, states=DEGRADED))
    (cause,) = examine(facts)
    assert cause.name == "reservation-slots"
    assert "4 PGs in recovery_wait, 1 at work" in cause.evidence[0].words


def test_clients_that_a_limit_holds_are_not_sent_to_a_profile_for_recovery() -> None:
    own = osd(0, {"osd_mclock_scheduler_client_lim": "0.1"}, rises=served(200, 1.0, queue_ms=40.0),
              queues=queued("client", 8, 0.5))  # fmt: skip
    cause = examine(with_osd(healthy(), own))[0]
    assert (cause.name, cause.work) == ("limit", "client")
    assert cause.commands == ("ceph-tuner apply high_client_ops --cluster NAME",)


def test_a_state_that_was_not_there_at_the_first_look_is_no_wait() -> None:
    begun = tuple(replace(own, states=frozenset(("active", "backfill_wait"))) for own in healthy().pgs)
    assert examine(full(replace(healthy(), pgs=begun))) == []


def test_slots_come_behind_what_holds_those_that_have_them() -> None:
    pgs = some(some(healthy(), 6, states=WAITS, degraded=5), 1, states=DEGRADED, degraded=5).pgs
    causes = examine(full(replace(limited(), pgs=pgs)))
    assert [cause.name for cause in causes] == ["limit"]


def test_pgs_that_are_deleted_beside_it_are_told() -> None:
    options = {"osd_mclock_scheduler_background_best_effort_lim": "0.3"}
    own = osd(0, options, queues=queued("background_best_effort", 1, 1.0), removing=4)
    (cause,) = examine(with_osd(some(healthy(), 1, states="active+clean+snaptrim", snaptrim_queue=1), own))
    assert (cause.name, cause.work) == ("limit", "snaptrim")
    assert "osd.0: 4 PGs are being deleted, in the same class" in [evidence.words for evidence in cause.evidence]


@given(st.lists(st.tuples(st.sampled_from(["limit", "reservation-slots"]), st.floats(0, 1)), max_size=6))
def test_nothing_is_ever_held_more_by_standing_behind_another(rows: List[Tuple[str, float]]) -> None:
    seen = (Evidence("seen", "ceph -s"),)
    causes = [Cause(name, "recovery", (), "", held, 1.0, "PGs", seen, "") for name, held in rows]
    after = behind(causes)
    assert [cause.name for cause in after] == [cause.name for cause in causes]
    assert all(0 <= now.held <= then.held for now, then in zip(after, causes))


@pytest.mark.parametrize(("work", "held", "evidence"), [("sleep", 0.5, 1), ("scrub", 1.5, 1), ("scrub", 0.5, 0)])
def test_a_cause_without_evidence_or_sense_is_refused(work: str, held: float, evidence: int) -> None:
    with pytest.raises(ValueError, match="must be known"):
        Cause("limit", work, (), "", held, 1.0, "PGs", (Evidence("seen", "ceph -s"),) * evidence, "")
