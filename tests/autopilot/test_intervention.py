from __future__ import annotations

from typing import Dict, List, Tuple

from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.autopilot.intervention import interventions
from ceph_tuner.core.ceph.ports import ConfigEntry
from ceph_tuner.core.ceph.target import Place
from ceph_tuner.core.changes.plan import Restore
from ceph_tuner.core.knobs.catalogue import PROFILE

LIMIT, SCRUBS = "osd_mclock_scheduler_client_lim", "osd_max_scrubs"
CAPACITY = "osd_mclock_max_capacity_iops_ssd"
H0 = [Place(0, "ssd", {"host": "h0"}), Place(1, "ssd", {"host": "h0"})]
OURS = [
    Restore("osd/host:h0", PROFILE, None, frozenset({"custom"})),
    Restore("osd/host:h0", LIMIT, None, frozenset({"0.5"})),
]
ON_TRIAL = {("osd/host:h0", PROFILE): "custom", ("osd/host:h0", LIMIT): "0.500000"}
Table = Dict[Tuple[str, str], str]


def rows(table: Table) -> List[ConfigEntry]:
    return [ConfigEntry(who, name, value) for (who, name), value in table.items()]


def found(now: Table, before: Table) -> Tuple[Tuple[str, ...], Tuple[str, ...]]:
    return interventions(rows(before), rows(now), OURS, H0)


def test_a_trial_that_nobody_touches_shows_nothing() -> None:
    before = {("osd", SCRUBS): "3"}
    assert found({**before, **ON_TRIAL}, before) == ((), ())


def test_a_value_of_ours_that_somebody_changed_or_removed_is_drift() -> None:
    (drift,), manual = found({**ON_TRIAL, ("osd/host:h0", LIMIT): "0.7"}, {})
    assert "osd/host:h0 osd_mclock_scheduler_client_lim: found 0.7 instead of our 0.5" in drift
    assert manual == ()
    (gone,), _ = found({("osd/host:h0", LIMIT): "0.5"}, {})
    assert "found no entry instead of our custom" in gone


def test_another_knob_of_the_same_osds_is_a_manual_intervention() -> None:
    _, manual = found({**ON_TRIAL, ("osd", SCRUBS): "5"}, {("osd", SCRUBS): "3"})
    assert manual == ("osd osd_max_scrubs: 5, before the trial 3",)
    _, manual = found({**ON_TRIAL, ("osd.1", PROFILE): "high_recovery_ops"}, {})
    assert manual == ("osd.1 osd_mclock_profile: high_recovery_ops, before the trial no entry",)
    _, manual = found(ON_TRIAL, {("osd", SCRUBS): "3"})
    assert manual == ("osd osd_max_scrubs: no entry, before the trial 3",)


def test_other_osds_other_options_and_a_bench_at_boot_are_nobody_s_business() -> None:
    others = {("osd/host:h1", SCRUBS): "5", ("mon", "mon_max_pg_per_osd"): "500", ("osd.1", CAPACITY): "900"}
    assert found({**ON_TRIAL, **others}, {}) == ((), ())


def test_what_the_tuner_never_sets_is_the_operator_s_during_a_trial_too() -> None:
    others = {("osd", "osd_scrub_begin_hour"): "22", ("global", "target_max_misplaced_ratio"): "0.02"}
    assert found({**ON_TRIAL, **others}, {}) == ((), ())


def test_one_value_written_in_two_ways_is_no_change() -> None:
    assert found({**ON_TRIAL, ("osd", LIMIT): "0.30"}, {("osd", LIMIT): "0.300000"}) == ((), ())


@given(
    st.dictionaries(
        st.tuples(
            st.sampled_from(["osd", "osd.0", "osd/host:h0", "osd/host:h1", "mgr"]), st.sampled_from([LIMIT, SCRUBS])
        ),
        st.sampled_from(["1", "2", "0.5"]),
    )
)
def test_what_was_there_before_is_never_held_against_anybody(before: Table) -> None:
    assert found({**before, **ON_TRIAL}, before) == ((), ())
