"""Plans beyond live knobs: what is tried, what moves, what it costs, and when it is worth it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Dict, List, Sequence, Tuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.ranking import RankingChoice
from ceph_tuner.core.knobs.catalogue import KNOBS, MCLOCK_NINE
from ceph_tuner.core.knobs.releases import QUINCY_EARLY, REEF, TENTACLE
from ceph_tuner.files import slo_file
from ceph_tuner.recommend import IN_FORCE, Prediction, Question, SearchEffort
from ceph_tuner.recommend.paired_effect import LEAST_PAIRS
from ceph_tuner.recommend.rebuild import (
    MOVES_DATA,
    PGS_PER_OSD,
    RESTART,
    RebuildChange,
    by_pool,
    changes,
    pgs_per_osd,
)
from ceph_tuner.recommend.rebuild_cost import (
    DUPS_TRACKED,
    LOG_LEAST,
    LOG_MOST,
    LOG_TARGET,
    RESTART_S,
    cost_of,
    log_entries,
    moved_share,
    stable_mod,
)
from ceph_tuner.recommend.rebuild_plan import judged, plan_rebuild
from ceph_tuner.recommend.runs import Runs
from ceph_tuner.recommend.search import SearchedSettings, fresh_seeds, in_rounds
from ceph_tuner.twin.model import MIB, ClientStream, ClusterModel, Device, OsdModel, Pool, RecoveryWork, ScrubWork

OSD = OsdModel(Device(2000, 100 * MIB), capacity_iops=1900, bandwidth_bytes_s=95 * MIB, shards=2, threads_per_shard=2)
MODEL = ClusterModel(
    4, OSD, (Pool("rbd", 64), Pool("idle", 8)), (ClientStream("rbd", rate=200.0, read_share=0.5),), hosts=0
)
LIES = replace(MODEL, pools=(Pool("rbd", 64, acting=((0, 1, 2),) * 64), MODEL.pool("idle")))
"""The same, told where its PGs are."""
BALANCED = dict(TENTACLE.profiles["balanced"])
SLO = slo_file.from_text("schema: 1\nname: s\nobjectives:\n  - client.p95_ms <= 10 ms\n").slo

pg_counts = st.integers(1, 300)


@settings(deadline=None)
@given(pg_counts, st.integers(0, 2**20))
def test_an_object_is_in_a_pg_that_there_is_and_stays_in_it_or_its_child(pgs: int, seed: int) -> None:
    hashes = np.arange(seed, seed + 700)
    found = stable_mod(hashes, pgs)
    assert found.min() >= 0
    assert found.max() < pgs
    more = stable_mod(hashes, pgs + 1)
    # one PG more takes objects from one PG alone
    moved = more != found
    assert set(more[moved]) <= {pgs}
    assert len(set(found[moved])) <= 1


@settings(deadline=None, max_examples=40)
@given(pg_counts, pg_counts, st.integers(4, 12), st.sampled_from([0, 2]), st.integers(0, 99))
def test_what_moves_there_moves_back_and_nothing_moves_without_a_change(
    before: int, after: int, osds: int, k: int, seed: int
) -> None:
    pool = Pool("a", before, 3, k)
    there = moved_share(pool, before, after, osds, 0, np.random.default_rng(seed))
    back = moved_share(pool, after, before, osds, 0, np.random.default_rng(seed))
    assert there == pytest.approx(back)
    assert 0 <= there < 1
    assert moved_share(pool, before, before, osds, 0, np.random.default_rng(seed)) == 0


@pytest.mark.parametrize(("factor", "size", "osds"), [(2, 3, 12), (4, 3, 12), (2, 2, 40), (2, 3, 3)])
def test_of_a_split_pool_the_children_move_but_for_copies_that_lie_right_already(
    factor: int, size: int, osds: int
) -> None:
    share = moved_share(Pool("a", 1024, size), 1024, 1024 * factor, osds, 0, np.random.default_rng(3))
    # a drawn OSD is one of the parent's by chance
    assert share == pytest.approx((1 - 1 / factor) * (1 - size / osds), abs=0.02)


def test_shards_of_an_erasure_code_have_places_of_their_own() -> None:
    share = moved_share(Pool("a", 2048, 3, 2), 2048, 4096, 3, 0, np.random.default_rng(3))
    # all OSDs have a shard before and after, but one in three the same one
    assert share == pytest.approx(0.5 * 2 / 3, abs=0.02)


@given(st.floats(1, 2000))
def test_logs_keep_what_the_osd_may_have_and_dups_fill_up(pgs: float) -> None:
    entries, dups = log_entries(pgs)
    assert LOG_LEAST * pgs - 1 <= entries <= LOG_MOST * pgs + 1
    assert entries <= max(LOG_TARGET, LOG_LEAST * pgs) + 1
    assert entries + dups >= DUPS_TRACKED * pgs - 2
    if pgs <= LOG_TARGET / DUPS_TRACKED:
        assert dups == 0


def test_pg_numbers_are_powers_of_two_within_bounds_and_only_of_pools_with_work() -> None:
    found = changes(MODEL, MOVES_DATA)
    assert [change.values["pg_num"] for change in found] == [(64, 32), (64, 128), (64, 256)]
    assert {change.pool for change in found} == {"rbd"}
    for change in found:
        assert PGS_PER_OSD[0] <= pgs_per_osd(change.model) <= PGS_PER_OSD[1]
        assert change.model.pool("idle") == MODEL.pool("idle")
    # where the PGs are now says nothing of where others will be
    assert [change.model for change in changes(LIES, MOVES_DATA)] == [change.model for change in found]
    odd = replace(MODEL, pools=(Pool("rbd", 48),))
    assert [change.values["pg_num"][1] for change in changes(odd, MOVES_DATA)] == [64, 128]
    # 800 PGs on three OSDs is too many already
    full = replace(MODEL, osds=3, pools=(Pool("rbd", 800),))
    assert changes(full, MOVES_DATA) == []


@pytest.mark.parametrize("device_class", ["ssd", "hdd"])
def test_layouts_are_of_the_device_class_and_keep_about_as_many_threads(device_class: str) -> None:
    model = replace(MODEL, osd=replace(OSD, device_class=device_class, shards=1, threads_per_shard=5))
    found = changes(model, RESTART)
    assert found
    for change in found:
        assert all(name.endswith(device_class) for name in change.values)
        assert all(KNOBS[name].change == "restart" for name in change.values)
        assert all(before != after for before, after in change.values.values())
        assert 2.5 <= change.model.osd.shards * change.model.osd.threads_per_shard <= 10
    layouts = [(change.model.osd.shards, change.model.osd.threads_per_shard) for change in found]
    assert len(set(layouts)) == len(layouts)
    # what Ceph had for hard disks before 18.2.5
    assert ((5, 1) in layouts) == (device_class == "hdd")


def layout(model: ClusterModel, shards: int) -> RebuildChange:
    (name,) = (name for name in KNOBS if name == f"osd_op_num_shards_{model.osd.device_class}")
    other = replace(model, osd=replace(model.osd, shards=shards))
    return RebuildChange(RESTART, other, {name: (model.osd.shards, shards)})


def test_osds_are_restarted_one_failure_domain_at_a_time_and_the_way_back_is_the_same() -> None:
    change = layout(MODEL, 1)
    there = [(step.command, step.each) for step in change.steps(BALANCED)]
    assert there == [
        ("ceph config set osd osd_op_num_shards_ssd 1", ""),
        ("ceph osd set noout", ""),
        ("systemctl restart ceph-osd@ID", "OSD"),
        ("ceph osd unset noout", ""),
    ]
    back = [(step.command, step.each) for step in change.undo(BALANCED, MODEL)]
    assert back == [("ceph config set osd osd_op_num_shards_ssd 2", ""), *there[1:]]
    hosts = layout(replace(MODEL, hosts=2), 1).steps(BALANCED)
    assert [step.each for step in hosts if step.each] == ["host"]


def test_where_shares_are_iops_per_shard_they_are_written_again_for_other_shards() -> None:
    model = replace(MODEL, release=QUINCY_EARLY)
    nine: Dict[str, object] = {name: BALANCED[name] for name in MCLOCK_NINE}
    change = layout(model, 1)

    def reservation(steps: Sequence[object]) -> float:
        (found,) = [str(step.command).split()[-1] for step in steps if "client_res" in step.command]
        return float(found)

    # half of 1 900 IOPS, on one shard and on two
    assert reservation(change.steps(nine)) == 950
    assert reservation(change.undo(nine, model)) == 475
    assert len(layout(replace(MODEL, release=REEF), 1).steps(BALANCED)) == 4


def runs(values: Sequence[float]) -> Tuple[Dict[str, float], ...]:
    return tuple({"client.p95_ms": value} for value in values)


NOISE = [0.0, 0.3, -0.2, 0.1, -0.4, 0.2]


@pytest.mark.parametrize(
    ("before", "after", "worth"),
    [
        # over the bound of 10 ms, and within it in all runs
        ([12.0 + n for n in NOISE], [8.0 - n for n in NOISE], True),
        # the same
        ([12.0 + n for n in NOISE], [12.0 - n for n in NOISE], False),
        # better by mean, and by chance
        ([12.0, 30.0, 11.0, 12.0, 13.0, 12.0], [11.0, 9.0, 31.0, 10.0, 9.5, 8.0], False),
        # kept anyway, with hardly more headroom
        ([5.0 + n for n in NOISE], [4.9 + n for n in NOISE], False),
        # kept anyway, with far more
        ([9.0 + n for n in NOISE], [2.0 + n for n in NOISE], True),
        # worse
        ([8.0 + n for n in NOISE], [12.0 + n for n in NOISE], False),
    ],
)
def test_a_change_is_worth_it_by_more_than_chance_and_by_enough(
    before: List[float], after: List[float], worth: bool
) -> None:
    found = judged(
        layout(MODEL, 1), MODEL, Prediction("a", {}, runs(before)), Prediction("b", {}, runs(after)), Judge(SLO)
    )
    assert found.worth is worth
    (effect,) = found.effects
    assert effect.ratio is not None
    mean, low, high = effect.ratio
    assert low < mean < high
    ratios = [math.log(new / old) for old, new in zip(before, after)]
    assert mean == pytest.approx(math.exp(sum(ratios) / len(ratios)))


def test_what_costs_more_must_bring_more() -> None:
    split = changes(MODEL, MOVES_DATA)[0]
    old, new = Prediction("a", {}, runs([8.0] * 5)), Prediction("b", {}, runs([4.0] * 5))
    assert judged(layout(MODEL, 1), MODEL, old, new, Judge(SLO)).worth
    assert not judged(split, MODEL, old, new, Judge(SLO)).worth


def test_a_pool_holds_what_the_file_says_or_what_is_scrubbed() -> None:
    scrubbed = replace(MODEL, scrub=(ScrubWork("rbd", 100, 5), ScrubWork("idle", 7, 2)))
    assert by_pool({}, scrubbed) == {"rbd": 500, "idle": 14}
    assert by_pool({"rbd": 3.0}, scrubbed) == {"rbd": 3.0, "idle": 14}


EFFORT = SearchEffort(trials=1, batch=1, seeds=1, finalists=1, fresh=2)


def test_the_cost_of_a_split_is_what_moves_at_the_rate_that_is_simulated() -> None:
    change = next(entry for entry in changes(MODEL, MOVES_DATA) if entry.values["pg_num"] == (64, 128))
    with Runs(Question(MODEL, SLO), EFFORT, 4.0, processes=1) as simulated:
        cost = cost_of(change, MODEL, BALANCED, {}, {"rbd": 1e12}, simulated, range(2))
        unknown = cost_of(change, MODEL, BALANCED, {}, {}, simulated, range(2))
    assert cost.moved_bytes == pytest.approx(3e12 * cost.moved_share)
    assert cost.rate_bytes_s is not None
    assert 0 < cost.rate_bytes_s <= MODEL.osds * 100 * MIB
    assert cost.time_s == pytest.approx(cost.moved_bytes / cost.rate_bytes_s)
    assert cost.meanwhile is not None
    assert "client.p95_ms" in cost.meanwhile.means
    assert (unknown.moved_share, unknown.moved_bytes, unknown.time_s) == (cost.moved_share, None, None)
    assert cost.memory_bytes == 0
    # PGs that are described move as others do
    with Runs(Question(LIES, SLO), EFFORT, 4.0, processes=1) as simulated:
        assert cost_of(change, LIES, BALANCED, {}, {}, simulated, range(2)).moved_share == cost.moved_share


def test_meanwhile_scrubs_go_on_beside_what_moves_and_wait_for_it_osd_by_osd() -> None:
    model = replace(MODEL, scrub=(ScrubWork("rbd", 1_000_000, MIB),))
    change = next(entry for entry in changes(model, MOVES_DATA) if entry.values["pg_num"] == (64, 128))
    with Runs(Question(MODEL, SLO), EFFORT, 4.0, processes=1) as simulated:
        cost = cost_of(change, model, BALANCED, {}, {"rbd": 1e12}, simulated, range(2))
        idle = Prediction("scrub", BALANCED, simulated.start(model, BALANCED, range(2)).collect())
    assert cost.meanwhile is not None
    meanwhile = cost.meanwhile.means
    assert meanwhile["backfill.objects_s"] > 0
    # in turns, it would be scrubbed as if nothing moved
    assert meanwhile["scrub.bytes_s"] < 0.9 * idle.means["scrub.bytes_s"]


def test_a_restart_takes_longer_where_clients_write_meanwhile() -> None:
    with Runs(Question(MODEL, SLO), EFFORT, 4.0, processes=1) as simulated:
        written = cost_of(layout(MODEL, 1), MODEL, BALANCED, {"client.write_iops": 100.0}, {}, simulated, range(2))
        small = cost_of(
            layout(MODEL, 1), MODEL, BALANCED, {"client.write_iops": 100.0}, {"rbd": 4 * MIB}, simulated, range(2)
        )
        read = cost_of(layout(MODEL, 1), MODEL, BALANCED, {}, {}, simulated, range(2))
    assert (written.restarts, written.rounds) == (4, 4)
    assert read.time_s == 4 * RESTART_S
    assert written.round_s is not None
    assert small.round_s is not None
    # a pool of one object can miss no more than that
    assert RESTART_S < small.round_s < written.round_s


def test_a_plan_is_tried_on_the_fresh_seeds_of_the_winner() -> None:
    model = replace(MODEL, osd=replace(OSD, shards=1, threads_per_shard=1), pools=(Pool("rbd", 64),), osds=6)
    model = replace(model, recovery=(RecoveryWork("rbd", 10_000),))
    effort = replace(EFFORT, shortest_s=2.0, seeds=2, fresh=4)
    with Runs(Question(model, SLO), effort, 2.0, processes=1) as simulated:
        before = Prediction(IN_FORCE, BALANCED, simulated.start(model, BALANCED, fresh_seeds(effort)).collect())
    choice = RankingChoice(before.candidate, (), before.candidate, False, "nothing better")
    found = SearchedSettings(Question(model, SLO), effort, 2.0, 0, (before,), (before,), choice, True)
    seen: List[str] = []

    class Heard:
        def phase(self, text: str, done: int, total: int) -> None:
            seen.append(text)

        def best(self, prediction: Prediction) -> None:
            raise AssertionError("the winner stays")

    plan = plan_rebuild(found, {}, Heard(), processes=1)
    labels = [change.label for kind in (RESTART, MOVES_DATA) for change in changes(model, kind)]
    assert plan.tried == len(labels) > 2
    assert plan.runs >= plan.tried + 2 * LEAST_PAIRS
    assert {text.split(": ", 1)[1] for text in seen} == set(labels)
    for entry in (*plan.changes, *plan.rejected):
        assert entry.after.label in labels
        # what the first of them rule out runs on no others
        first = len(in_rounds(fresh_seeds(effort), effort)[0])
        assert len(entry.after.runs) in ({effort.fresh} if entry.may_be_worth else {first, effort.fresh})
        assert len(entry.before.runs) == effort.fresh
        assert (entry.cost is not None) == entry.worth == (entry in plan.changes)


def test_of_a_device_class_what_is_read_at_the_start_goes_to_each_osd() -> None:
    """A value under the class would never reach them."""
    change = changes(MODEL, RESTART)[0]
    for steps in (change.steps(BALANCED, "osd/class:ssd"), change.undo(BALANCED, MODEL, "osd/class:ssd")):
        writes = [step for step in steps if step.command.startswith("ceph config set")]
        assert len(writes) == len(change.values)
        assert {(step.command.split()[3], step.each) for step in writes} == {("osd.ID", "OSD of osd/class:ssd")}
    assert {step.each for step in change.steps(BALANCED) if step.command.startswith("ceph config set")} == {""}
