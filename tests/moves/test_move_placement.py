from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, List, Optional, Sequence, Tuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.errors import InputError
from ceph_tuner.moves import NONE, CrushRule, MapView, MoveOsd, MovePg, MovePool, Pairs
from ceph_tuner.moves.drain_plan import DrainPlan, UpIs
from ceph_tuner.moves.map_view import _rule
from ceph_tuner.moves.placement import best_target, check_upmap, held, legal, redirected, upmap_command

GIB = 1 << 30
HOST_RULE = CrushRule((("default", ""),), ("host",))


def osd(number: int, host: Optional[str] = None, **changes: Any) -> MoveOsd:
    places = {
        "osd": f"osd.{number}",
        "host": host or f"h{number}",
        "rack": changes.pop("rack", "r0"),
        "root": "default",
    }
    given_: Dict[str, Any] = {"size_bytes": 100.0 * GIB, "used_bytes": 10.0 * GIB, **changes}
    return MoveOsd(number, given_.pop("alive", True), given_.pop("weight", 1.0), given_.pop("device_class", "ssd"),
                   places, **given_)  # fmt: skip


def view(osds: Sequence[MoveOsd], rule: CrushRule = HOST_RULE, **changes: Any) -> MapView:
    pool = MovePool(1, "rbd", False, 0, 8, 8, 8, 8, "off")
    return MapView(0.0, (), {1: pool}, {each.number: each for each in osds}, {0: rule}, **changes)


def pg(*up: int, **changes: Any) -> MovePg:
    return MovePg("1.0", 1, up, up, changes.pop("copy_bytes", GIB), frozenset(("active", "clean")))


def test_no_two_copies_come_into_one_failure_domain() -> None:
    osds = [osd(0, "a"), osd(1, "b"), osd(2, "b"), osd(3, "c")]
    assert best_target(view(osds), pg(0, 1), 0, set(), {}) == 3
    # the place of the one that leaves is free
    assert legal(HOST_RULE, [osds[0]], osds[1], osds[2])
    assert not legal(HOST_RULE, [osds[1]], osds[0], osds[2])


def test_a_rule_of_several_levels_keeps_the_outer_ones() -> None:
    rule = CrushRule((("default", ""),), ("rack", "host"))
    osds = [osd(0, rack="r0"), osd(1, rack="r1"), osd(2, rack="r1", used_bytes=0.0), osd(3, rack="r0")]
    assert best_target(view(osds, rule), pg(0, 1), 0, set(), {}) == 3


def test_a_rule_s_device_class_and_root_are_kept() -> None:
    rule = CrushRule((("default", "hdd"),), ("host",))
    osds = [osd(0, device_class="hdd"), osd(1, device_class="hdd"), osd(2), osd(3, device_class="hdd")]
    assert best_target(view(osds, rule), pg(0, 1), 0, set(), {}) == 3
    elsewhere = replace(osds[3], places={**osds[3].places, "root": "other"})
    assert best_target(view([*osds[:3], elsewhere], rule), pg(0, 1), 0, set(), {}) is None


@pytest.mark.parametrize("changes", [{"alive": False}, {"weight": 0.0}, {"used_bytes": 88.0 * GIB}])
def test_an_osd_that_is_down_out_or_full_gets_nothing(changes: Dict[str, Any]) -> None:
    assert best_target(view([osd(0), osd(1), osd(2, **changes)]), pg(0, 1), 0, set(), {}) is None


def test_what_is_on_its_way_counts_as_there() -> None:
    osds = [osd(0), osd(1), osd(2), osd(3)]
    assert best_target(view(osds), pg(0, 1), 0, set(), {2: 20.0 * GIB}) == 3
    assert best_target(view(osds), pg(0, 1), 0, {3}, {2: 20.0 * GIB}) == 2


def test_a_drain_counts_what_it_has_sent_before_its_pgs_tell_so() -> None:
    osds = [osd(0), osd(1), osd(2), osd(3, used_bytes=10.5 * GIB)]
    pgs = tuple(replace(pg(0, 1, copy_bytes=10.0 * GIB), pgid=f"1.{number}") for number in range(3))
    seen = replace(view(osds), pgs=pgs)
    plan = DrainPlan(frozenset({0}))

    def next_pairs(seen: MapView, begun: frozenset[str]) -> Sequence[str]:
        return [write.command[1]["id"] for write in plan.writes(seen, 1, frozenset(), begun)]

    assert next_pairs(seen, frozenset()) == ["0 2"]
    # 1.0 is as it was: its entry says where it goes
    sent = replace(seen, upmaps={"1.0": ((0, 2),)})
    assert next_pairs(sent, frozenset({"1.0"})) == ["0 3"]
    # and then the PG itself
    moving = replace(pgs[0], up=(2, 1), state=frozenset(("active", "remapped", "backfilling")))
    assert next_pairs(replace(sent, pgs=(moving, *pgs[1:])), frozenset({"1.0"})) == ["0 3"]
    assert next_pairs(replace(sent, pgs=(moving, *pgs[1:])), frozenset()) == ["0 3"]
    assert plan.on_its_way(replace(sent, pgs=(moving, *pgs[1:]))) == {"1.0"}
    assert plan.on_its_way(seen) == frozenset()


def test_where_a_pg_has_all_of_its_osds_said_nothing_is_changed() -> None:
    osds = [osd(0), osd(1), osd(2)]
    assert best_target(view(osds, whole_upmaps=frozenset(("1.0",))), pg(0, 1), 0, set(), {}) is None


@pytest.mark.parametrize(
    ("pairs", "leaving", "target", "after"),
    [
        ((), 3, 5, ((3, 5),)),
        (((0, 3),), 3, 5, ((0, 5),)),
        (((0, 3),), 3, 0, ()),
        (((1, 2),), 3, 5, ((1, 2), (3, 5))),
        # it was sent elsewhere, and has not told yet: one of the two would have no effect
        (((3, 4), (1, 2)), 3, 5, ((1, 2), (3, 5))),
    ],
)
def test_no_pair_begins_where_another_ends(pairs: Pairs, leaving: int, target: int, after: Pairs) -> None:
    assert redirected(pairs, leaving, target) == after


def applied(raw: Sequence[int], pairs: Pairs) -> Tuple[int, ...]:
    """As `OSDMap::_apply_upmap`: each pair once, unless its end is there already."""
    places = list(raw)
    for first, last in pairs:
        if first in places and last not in places:
            places[places.index(first)] = last
    return tuple(places)


@given(st.permutations(range(8)), st.permutations(range(8)), st.integers(1, 4))
def test_held_pairs_lead_back_to_where_a_pg_was(raw: Sequence[int], wanted: Sequence[int], size: int) -> None:
    now, before = tuple(raw[:size]), tuple(wanted[:size])
    pairs = held((), now, before, erasure=False)
    assert pairs is not None
    assert set(applied(now, pairs)) == set(before)


@given(st.permutations(range(8)), st.permutations(range(8)), st.integers(1, 4))
def test_held_pairs_of_an_erasure_code_keep_each_shard_s_place(
    raw: Sequence[int], wanted: Sequence[int], size: int
) -> None:
    now, before = tuple(raw[:size]), tuple(wanted[:size])
    pairs = held((), now, before, erasure=True)
    if pairs is None:
        # two shards would change places, which no pair can say
        assert set(now) & set(before)
    else:
        assert applied(now, pairs) == before


@given(st.permutations(range(8)), st.permutations(range(8)), st.integers(1, 3), st.integers(0, 2))
def test_held_pairs_go_on_from_an_entry_that_is_there(
    raw: Sequence[int], wanted: Sequence[int], size: int, place: int
) -> None:
    first, last = raw[place % size], raw[size]
    entry = ((first, last),)
    now, before = applied(raw[:size], entry), tuple(wanted[:size])
    pairs = held(entry, now, before, erasure=False)
    assert pairs is not None
    assert set(applied(raw[:size], pairs)) == set(before)


def test_a_place_that_no_osd_fills_cannot_be_held() -> None:
    assert held((), (1, NONE, 3), (1, 2, 3), erasure=True) is None


def test_an_entry_without_pairs_is_removed() -> None:
    assert upmap_command("1.0", ()) == ("osd rm-pg-upmap-items", {"pgid": "1.0"})
    assert upmap_command("1.0", ((1, 2), (3, 4)))[1]["id"] == "1 2 3 4"


def test_clients_that_know_no_entries_are_a_refusal() -> None:
    check_upmap(view([]))
    with pytest.raises(InputError, match="set-require-min-compat-client luminous"):
        check_upmap(view([], min_compat_client="jewel"))


def test_a_copy_stays_below_the_root_that_its_step_of_a_rule_takes() -> None:
    rule = CrushRule((("dc1", ""), ("dc2", "")), ("host",))
    osds = [replace(each, places={**each.places, "root": root}) for each, root in (
        (osd(0), "dc1"), (osd(1), "dc2"), (osd(2, used_bytes=0.0), "dc2"), (osd(3), "dc1"))]  # fmt: skip
    assert best_target(view(osds, rule), pg(0, 1), 0, set(), {}) == 3
    assert best_target(view(osds[:3], rule), pg(0, 1), 0, set(), {}) is None


def test_where_steps_of_a_rule_have_domains_of_their_own_no_copy_is_moved() -> None:
    steps = [
        {"op": "take", "item_name": "dc1"}, {"op": "chooseleaf_firstn", "type": "host"}, {"op": "emit"},
        {"op": "take", "item_name": "dc2"}, {"op": "chooseleaf_firstn", "type": "rack"}, {"op": "emit"},
    ]  # fmt: skip
    rule = _rule({"steps": steps})
    osds = [osd(0), osd(1), osd(2), osd(3)]
    placed = [replace(each, places={**each.places, "root": "dc2"}) for each in osds]
    assert best_target(view(placed, rule), pg(0, 1), 0, set(), {}) is None
    alike = _rule({"steps": [steps[0], steps[1], steps[2], steps[3], steps[1], steps[5]]})
    assert best_target(view(placed, alike), pg(0, 1), 0, set(), {}) == 2


def test_an_entry_of_which_a_needless_pair_was_dropped_is_not_refused() -> None:
    write = UpIs("1.0", frozenset((1, 3)), ((0, 3), (7, 8)))
    on_its_way = replace(pg(3, 1), acting=(0, 1), state=frozenset(("active", "remapped", "backfilling")))
    seen = replace(view([osd(0), osd(1), osd(3)]), pgs=(on_its_way,), upmaps={"1.0": ((0, 3),)})
    assert not write.arrived(seen)
    assert not write.refused(seen)
    assert write.refused(replace(seen, pgs=(pg(0, 1),), upmaps={}))


def test_an_osd_with_too_many_pgs_is_the_last_choice_and_one_that_leaves_pgs_inactive_is_none() -> None:
    osds = [osd(0), osd(1), osd(2, pgs=250, used_bytes=0.0), osd(3, pgs=249, used_bytes=50.0 * GIB)]
    assert best_target(view(osds), pg(0, 1), 0, set(), {}) == 3
    assert best_target(view(osds, most_pgs=251.0), pg(0, 1), 0, set(), {}) == 2
    assert best_target(view(osds), pg(0, 1), 0, {3}, {}) == 2
    assert best_target(view(osds, hard_most_pgs=250.0), pg(0, 1), 0, {3}, {}) is None


def test_a_drain_goes_round_osds_with_too_many_pgs_and_tells_of_those_that_it_cannot() -> None:
    osds = [osd(0), osd(1), osd(2, pgs=249, used_bytes=0.0), osd(3, pgs=249, used_bytes=20.0 * GIB)]
    pgs = tuple(replace(pg(0, 1), pgid=f"1.{number}") for number in range(4))
    placed = DrainPlan(frozenset({0})).placed(replace(view(osds, hard_most_pgs=252.0), pgs=pgs), 9)
    assert [write.arrival.pairs for write in placed.writes] == [((0, 2),), ((0, 3),), ((0, 2),), ((0, 2),)]  # type: ignore[attr-defined]
    assert (placed.nowhere, placed.crowded) == ([], {2: 252})
    placed = DrainPlan(frozenset({0})).placed(replace(view(osds, hard_most_pgs=250.0), pgs=pgs), 9)
    assert (placed.nowhere, placed.crowded) == (["1.2", "1.3"], {})


def test_of_many_osds_few_are_held_against_the_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    osds = [osd(number, used_bytes=(10.0 + number % 7) * GIB) for number in range(500)]
    held_against: List[int] = []

    def counted(rule: CrushRule, others: Sequence[MoveOsd], source: MoveOsd, target: MoveOsd) -> bool:
        held_against.append(target.number)
        return legal(rule, others, source, target)

    monkeypatch.setattr("ceph_tuner.moves.placement.legal", counted)
    # the emptiest have its copies already, or are in the way
    assert best_target(view(osds), pg(0, 7), 0, {14}, {}) == 21
    assert held_against == [0, 7, 21]
