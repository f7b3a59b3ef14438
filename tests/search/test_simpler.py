from __future__ import annotations

from typing import Dict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.goals.slo import parse_slo
from ceph_tuner.core.goals.trial import FEWER_CHANGES
from ceph_tuner.core.knobs.releases import MCLOCK_NINE, TENTACLE, Settings
from ceph_tuner.core.knobs.settings import change_cost, check_settings
from ceph_tuner.core.measure.sample import Measure
from ceph_tuner.search.simpler import left_out, simpler_variants
from ceph_tuner.search.space import DEFERRED, KnobSpace, space_for
from ceph_tuner.tune.search import TuningSearch

BALANCED = TENTACLE.profiles["balanced"]
CLIENT = "osd_mclock_scheduler_client_"
units = st.floats(min_value=0, max_value=1, allow_nan=False)


def on_disks() -> KnobSpace:
    return space_for(TENTACLE, ["client", "recovery"], BALANCED, kind="hdd")


def test_the_first_variant_leaves_a_built_in_profile_as_it_is() -> None:
    space = on_disks()
    found = {**space.nearest(BALANCED), DEFERRED: 4, CLIENT + "wgt": 9}
    assert simpler_variants(space, found, BALANCED, True)[0] == {DEFERRED: 4}
    # one write as well, and one knob, where the nine are custom already
    assert {DEFERRED: 4} in simpler_variants(space, found, BALANCED, False)[:2]


def test_what_a_knob_needs_beside_it_stays_with_it() -> None:
    active = "osd_recovery_max_active_ssd"
    space = space_for(TENTACLE, ["recovery"], BALANCED, [active, CLIENT + "wgt"])
    assert space.always
    found = {**space.nearest(BALANCED), active: 9, CLIENT + "wgt": 9}
    with_it, without = simpler_variants(space, found, BALANCED, True)
    assert with_it == {**space.always, active: 9}
    assert not set(without) & {*space.always, active}


def test_what_is_moved_alone_has_nothing_to_leave_out() -> None:
    space = on_disks()
    assert simpler_variants(space, {**space.nearest(BALANCED), DEFERRED: 4}, BALANCED, True) == []
    assert simpler_variants(space, space.nearest(BALANCED), BALANCED, True) == []


def test_it_is_named_what_a_variant_leaves_out() -> None:
    space = on_disks()
    found = {**space.nearest(BALANCED), DEFERRED: 4, CLIENT + "wgt": 9}
    assert left_out(space, found, {DEFERRED: 4}) == [CLIENT + "wgt"]
    assert left_out(space, found, found) == []


@pytest.mark.parametrize("built_in", [True, False])
@given(data=st.data())
def test_each_variant_can_be_written_and_takes_fewer_moves(built_in: bool, data: st.DataObject) -> None:
    space = on_disks()
    point = data.draw(st.lists(units, min_size=space.size, max_size=space.size))
    kept = data.draw(st.sets(st.sampled_from(space.free), max_size=4))
    # a few knobs moved, as far as the space has that
    drawn, start = space.decode(point), space.nearest(BALANCED)
    found = space.nearest({**start, **{name: drawn[name] for name in kept}})
    costs = []
    for variant in simpler_variants(space, found, BALANCED, built_in):
        check_settings(variant, TENTACLE)
        assert left_out(space, found, variant)
        costs.append(change_cost(variant, start, built_in))
        assert costs[-1].moved < change_cost(found, start, built_in).moved
        # what is written of a variant is what it moves, and the nine together
        assert all(name in MCLOCK_NINE or value != start[name] for name, value in variant.items())
    assert costs == sorted(costs)


def test_a_tuning_search_proposes_the_one_knob_that_its_trials_show_to_matter() -> None:
    slo = parse_slo({"objectives": ["client.p95_ms <= 90 ms", "recovery.bytes_s >= 10 MB/s"]})
    free = [DEFERRED, CLIENT + "res", CLIENT + "wgt"]
    space = space_for(TENTACLE, ["client", "recovery"], BALANCED, free, kind="hdd")
    search = TuningSearch(space, slo, BALANCED, {}, 1)

    def measured(settings: Settings) -> Dict[str, Measure]:
        # by the batch alone
        p95 = 60.0 + float(settings[DEFERRED])
        return {
            name: Measure(value, value / 50, 5) for name, value in (("client.p95_ms", p95), ("recovery.bytes_s", 3e7))
        }

    start = space.nearest(BALANCED)
    search.tell(start, measured(start))
    drawn = np.random.default_rng(1).random((10, space.size))
    for settings in [space.decode(list(point)) for point in drawn]:
        search.tell(settings, measured(settings))
    found = {**space.decode(list(drawn[0])), DEFERRED: 4}
    search.tell(found, measured(found))
    proposal = search.simpler(found, True)
    assert proposal is not None
    assert proposal.settings == {DEFERRED: 4}
    assert proposal.why.startswith(f"{FEWER_CHANGES}osd_mclock_scheduler_client_")
    assert set(proposal.expected) == {"client.p95_ms", "recovery.bytes_s"}
    assert search.simpler({DEFERRED: 4}, True) is None
