from __future__ import annotations

from typing import Dict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.goals.slo import parse_slo
from ceph_tuner.core.goals.trial import FEWER_CHANGES
from ceph_tuner.core.knobs.releases import TENTACLE, Settings
from ceph_tuner.core.knobs.settings import change_cost, check_settings, moves_alone
from ceph_tuner.core.measure.sample import Measure
from ceph_tuner.search.simpler import MOST_MOVED, left_out, simpler_variants
from ceph_tuner.search.space import DEFERRED, KnobSpace, space_for
from ceph_tuner.tune.search import TuningSearch

BALANCED = TENTACLE.profiles["balanced"]
CLIENT = "osd_mclock_scheduler_client_"
units = st.floats(min_value=0, max_value=1, allow_nan=False)


def on_disks() -> KnobSpace:
    return space_for(TENTACLE, ["client", "recovery"], BALANCED, kind="hdd")


def test_the_first_variant_leaves_a_built_in_profile_as_it_is() -> None:
    space = on_disks()
    start = space.nearest(BALANCED)
    found = {**start, DEFERRED: 4, CLIENT + "wgt": 9}
    first, second = simpler_variants(space, found, BALANCED, True)
    assert (first, second) == ({**start, DEFERRED: 4}, {**start, CLIENT + "wgt": 9})
    assert moves_alone(first, start, TENTACLE) == {DEFERRED: 4}


def test_what_is_moved_alone_has_nothing_to_leave_out() -> None:
    space = on_disks()
    assert simpler_variants(space, {**space.nearest(BALANCED), DEFERRED: 4}, BALANCED, True) == []
    assert simpler_variants(space, space.nearest(BALANCED), BALANCED, True) == []


def test_of_too_many_moves_no_combinations_are_looked_at() -> None:
    space = space_for(TENTACLE, ["client", "recovery", "scrub", "snaptrim"], BALANCED, shards=8, kind="hdd")
    drawn = space.decode(list(np.random.default_rng(1).random(space.size)))
    assert len(left_out(space, drawn, space.nearest(BALANCED))) > MOST_MOVED
    assert simpler_variants(space, drawn, BALANCED, True) == []


def test_it_is_named_what_a_variant_leaves_out() -> None:
    space = on_disks()
    found = {**space.nearest(BALANCED), DEFERRED: 4, CLIENT + "wgt": 9}
    assert left_out(space, found, {**space.nearest(BALANCED), DEFERRED: 4}) == [CLIENT + "wgt"]
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
        check_settings(moves_alone(variant, start, TENTACLE), TENTACLE)
        assert left_out(space, found, variant)
        costs.append(change_cost(variant, start, built_in))
        assert costs[-1].moved < change_cost(found, start, built_in).moved
    assert costs == sorted(costs)


def test_a_tuning_search_proposes_the_one_knob_that_its_trials_show_to_matter() -> None:
    slo = parse_slo({"objectives": ["client.p95_ms <= 90 ms", "recovery.bytes_s >= 10 MB/s"]})
    free = [DEFERRED, CLIENT + "res", CLIENT + "wgt"]
    space = space_for(TENTACLE, ["client", "recovery"], BALANCED, free, kind="hdd")
    search = TuningSearch(space, slo, BALANCED, {}, 1)

    def measured(settings: Settings) -> Dict[str, Measure]:
        # by the batch alone
        values = {"client.p95_ms": 60.0 + float(settings[DEFERRED]), "recovery.bytes_s": 3e7}
        return {name: Measure(value, value / 50, 5) for name, value in values.items()}

    start = space.nearest(BALANCED)
    search.tell(start, measured(start))
    drawn = np.random.default_rng(1).random((10, space.size))
    for settings in [space.decode(list(point)) for point in drawn]:
        search.tell(settings, measured(settings))
    found = {**space.decode(list(drawn[0])), DEFERRED: 4}
    search.tell(found, measured(found))
    proposal = search.simpler(found, True)
    assert proposal is not None
    assert proposal.settings == {**start, DEFERRED: 4}
    assert proposal.why.startswith(f"{FEWER_CHANGES}{CLIENT}")
    assert set(proposal.expected) == {"client.p95_ms", "recovery.bytes_s"}
    assert search.simpler(proposal.settings, True) is None
