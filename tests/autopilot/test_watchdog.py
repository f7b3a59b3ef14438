from __future__ import annotations

from typing import Dict, List, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.autopilot.policy import Policy
from ceph_tuner.core.autopilot.watchdog import RULES, Watchdog
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.guard import Breach, Sight
from ceph_tuner.core.goals.slo import Bound, Objective, Slo, parse_slo
from ceph_tuner.core.measure.metrics import METRICS

SLO = parse_slo({"objectives": ["client.p95_ms <= 80 ms", "client.iops >= 200", "recovery.bytes_s >= 10 MB/s"]})
BASELINE = {
    "client.p95_ms": 60.0,
    "client.iops": 250.0,
    "client.mean_ms": 20.0,
    "recovery.bytes_s": 26e6,
    "recovery.copies_s": 26.0,
    "recovery.objects_left": 1000.0,
}
BEFORE = Sight(0.0, "HEALTH_WARN", checks=frozenset({"PG_DEGRADED"}))


def watch(baseline: Dict[str, float] = BASELINE, before: Sight = BEFORE, slo: Slo = SLO, **policy: float) -> Watchdog:
    return Watchdog(slo, baseline, before, Policy(**policy))


def sight(health: str = "HEALTH_WARN", checks: frozenset = BEFORE.checks, **values: float) -> Sight:
    return Sight(0.0, health, {name.replace("__", "."): value for name, value in values.items()}, checks=checks)


def window(**values: float) -> Dict[str, float]:
    return {**BASELINE, **{name.replace("__", "."): value for name, value in values.items()}}


def rules(breaches: List[Optional[Breach]]) -> List[str]:
    assert all(breach.rule in RULES and breach.reason for breach in breaches if breach is not None)
    return [breach.rule if breach else "" for breach in breaches]


@given(st.integers(1, 6), st.integers(0, 8))
def test_a_hard_objective_may_be_broken_up_to_the_last_window_but_one(patience: int, others: int) -> None:
    guard = watch(guard_windows=patience)
    assert all(guard.close(window()) is None for _ in range(others))
    found = rules([guard.close(window(client__p95_ms=81.0)) for _ in range(patience)])
    assert found == [""] * (patience - 1) + ["slo"]


def test_windows_in_a_row_count_whichever_hard_objective_they_break() -> None:
    guard = watch()
    broken = [window(client__p95_ms=90.0), window(recovery__bytes_s=9e6), window(client__p95_ms=95.0)]
    assert rules([guard.close(means) for means in broken]) == ["", "", "slo"]
    guard = watch()
    between = [*broken[:2], window(), *broken[:2]]
    assert rules([guard.close(means) for means in between]) == [""] * 5


def test_the_reason_has_what_was_seen_and_the_bound() -> None:
    breach = [watch(guard_windows=1).close(window(client__p95_ms=91.23))][0]
    assert breach is not None
    assert breach.reason == "client.p95_ms at 91.2 ms, must be <= 80 ms: broken for 1 windows in a row"
    missed = watch({**BASELINE, "client.p95_ms": 100.0}, guard_windows=1)
    assert missed.close(window(client__p95_ms=119.0)) is None
    breach = missed.close(window(client__p95_ms=121.0))
    assert breach is not None
    assert "must be <= 120 ms" in breach.reason
    assert "missed already: 100 ms before the trial, and 20% worse is borne" in breach.reason


def test_a_window_that_saw_no_objective_neither_breaks_nor_keeps_them() -> None:
    guard = watch()
    found = [guard.close(window(client__p95_ms=90.0)), guard.close({}), guard.close(window(client__p95_ms=90.0))]
    assert rules([*found, guard.close(window(client__p95_ms=90.0))]) == ["", "", "", "slo"]


def test_soft_objectives_end_no_trial() -> None:
    soft = parse_slo({"objectives": [{"objective": "client.p95_ms <= 80 ms", "hard": False}]})
    assert rules([watch(slo=soft).close(window(client__p95_ms=900.0))] * 9) == [""] * 9


def test_work_that_ended_breaks_no_objective() -> None:
    guard = watch(guard_windows=1)
    assert guard.close(window(client__iops=20.0)) is None
    guard.look(sight(recovery__objects_left=0.0))
    assert guard.close(window(recovery__bytes_s=2e6, recovery__objects_left=40.0)) is None
    # fewer operations that take longer are the settings' doing
    assert rules([guard.close(window(client__iops=150.0, client__mean_ms=33.0))]) == ["slo"]


def test_clients_left_waiting_grossly_are_rescued_within_samples() -> None:
    guard = watch()
    assert rules([guard.look(sight(client__p95_ms=170.0)) for _ in range(3)]) == ["", "", "slo"]
    quiet = watch()
    assert rules([quiet.look(sight(client__iops=10.0, client__mean_ms=19.0)) for _ in range(9)]) == [""] * 9


@pytest.mark.parametrize(
    ("bad", "rule", "samples"),
    [
        (sight(osds__down=1.0), "osds.down", 1),
        (sight("HEALTH_ERR"), "health", 1),
        (sight(checks=frozenset({"OSD_NEARFULL"})), "near-full", 1),
        (sight(ops__slow=1.0), "ops.slow", 3),
        (sight(pgs__inactive=1.0), "pgs.inactive", 3),
        (sight(pgs__laggy=1.0), "pgs.laggy", 3),
        (None, "blind", 3),
    ],
)
def test_a_state_worse_than_before_ends_it_after_its_patience(bad: Optional[Sight], rule: str, samples: int) -> None:
    guard = watch()
    assert guard.look(sight()) is None
    assert rules([guard.look(bad) for _ in range(samples)]) == [""] * (samples - 1) + [rule]


def test_slow_operations_up_to_the_policy_s_number_are_borne() -> None:
    guard = watch(before=sight(ops__slow=2.0), guard_slow_ops=3, guard_patience=1)
    assert guard.look(sight(ops__slow=5.0)) is None
    assert rules([guard.look(sight(ops__slow=6.0))]) == ["ops.slow"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"guard_tolerance": 0.0},
        {"guard_gross": 1.0},
        {"guard_recovery": 1.0},
        {"guard_patience": 0},
        {"guard_slow_ops": -1},
    ],
)
def test_a_policy_that_would_guard_nothing_or_everything_is_refused(wrong: Dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        Policy(**wrong)


def test_what_others_changed_ends_it_at_once() -> None:
    assert rules([watch().look(sight(), ["osd osd_max_scrubs"])]) == ["drift"]
    assert rules([watch().look(None, (), ["osd.1 osd_mclock_profile: balanced"])]) == ["manual"]


def test_degraded_objects_that_become_more_and_more_end_it() -> None:
    guard = watch()
    lefts = [900.0, 1010.0, 1020.0, 1030.0]
    assert rules([guard.close(window(recovery__objects_left=left)) for left in lefts]) == ["", "", "", "recovery"]
    falling = watch()
    lefts = [900.0, 910.0, 920.0, 930.0, 940.0]
    assert rules([falling.close(window(recovery__objects_left=left)) for left in lefts]) == [""] * 5


def slow_recovery(rate: float, left: float, **more: float) -> Dict[str, float]:
    return window(recovery__copies_s=rate, recovery__objects_left=left, **more)


def test_recovery_that_falls_below_its_share_ends_it_unless_it_is_nearly_done() -> None:
    guard = watch()
    assert rules([guard.close(slow_recovery(12.0, 900.0 - n)) for n in range(3)]) == ["", "", "recovery"]
    above = watch()
    assert rules([above.close(slow_recovery(14.0, 900.0 - n)) for n in range(9)]) == [""] * 9
    nearly = watch()
    assert rules([nearly.close(slow_recovery(5.0, 100.0 - n)) for n in range(9)]) == [""] * 9
    # objects that begin to move mend no degraded copies
    moving = watch()
    found = [moving.close(slow_recovery(6.0, 900.0 - n, recovery__objects_s=46.0)) for n in range(3)]
    assert rules(found) == ["", "", "recovery"]


def test_where_nothing_was_mended_before_recovery_is_nobody_s_fault() -> None:
    stuck = {**BASELINE, "recovery.copies_s": 0.0, "recovery.bytes_s": 0.0}
    guard = watch(stuck)
    lefts = [1000.0 + 10 * n for n in range(9)]
    assert rules([guard.close({**stuck, "recovery.objects_left": left}) for left in lefts]) == [""] * 9


FEW = ["client.p95_ms", "client.mean_ms", "client.iops", "recovery.bytes_s", "recovery.copies_s", "scrub.interval_s"]
STATES = ["recovery.objects_left", "backfill.objects_s", "ops.slow", "osds.down", "pgs.laggy", "pgs.inactive"]
values = st.dictionaries(st.sampled_from(FEW + STATES), st.sampled_from([0.0, 1.0, 7.5, 40.0, 1e6]) | st.floats(0, 1e9))


@st.composite
def slos(draw: st.DrawFn) -> Slo:
    metrics = draw(st.lists(st.sampled_from(FEW), min_size=1, max_size=4, unique=True))
    return Slo(
        "drawn",
        tuple(
            Objective(
                metric,
                "<=" if METRICS[metric].lower_is_better else ">=",
                draw(st.builds(Bound, st.floats(0.1, 1e6), st.booleans())),
                draw(st.booleans()),
            )
            for metric in metrics
        ),
    )


@given(
    slos(), values, values, st.sampled_from(["HEALTH_OK", "HEALTH_ERR"]), st.frozensets(st.sampled_from(["OSD_FULL"]))
)
def test_what_is_as_it_was_before_is_never_a_breach(
    slo: Slo, baseline: Dict[str, float], states: Dict[str, float], health: str, checks: frozenset
) -> None:
    # clients as in the baseline; everything else as it was just before
    before = Sight(0.0, health, {**states, **baseline}, "", checks)
    guard = Watchdog(slo, baseline, before, Policy(guard_windows=1, guard_patience=1, guard_blind=1))
    for _ in range(4):
        assert guard.look(before) is None
        assert guard.close(baseline) is None


STARVING = {"client.iops": 0.0, "queue.client": 9.0, "recovery.bytes_s": 26e6}
"""A window in which recovery is well and no operation of clients ends."""
WELL = {**BASELINE, "queue.client": 1.0}
UNSEEN = {name: value for name, value in WELL.items() if name != "client.p95_ms"}


def test_clients_that_wait_unseen_break_their_objective_however_well_the_rest_is() -> None:
    guard = watch()
    breaches = [guard.close(STARVING) for _ in range(3)]
    assert rules(breaches) == ["", "", "slo"]
    assert breaches[-1] is not None
    assert "client.p95_ms is not seen, as clients wait" in breaches[-1].reason
    assert rules([watch(guard_windows=1).close({**STARVING, "queue.client": 0.0})]) == [""]


def test_clients_that_wait_unseen_are_rescued_within_samples() -> None:
    guard = watch()
    values = {name.replace(".", "__"): value for name, value in STARVING.items()}
    assert rules([guard.look(sight(**values)) for _ in range(3)]) == ["", "", "slo"]


@given(st.lists(st.sampled_from(["broken", "well", "unseen"]), max_size=12))
def test_a_window_that_does_not_show_the_clients_neither_breaks_nor_clears(kinds: List[str]) -> None:
    windows = {"broken": window(client__p95_ms=90.0), "well": WELL, "unseen": UNSEEN}
    with_holes, without = watch(), watch()
    found = [guard.close(windows[kind]) for guard in (with_holes,) for kind in kinds]
    told = [breach is not None for breach, kind in zip(found, kinds) if kind != "unseen"]
    assert told == [without.close(windows[kind]) is not None for kind in kinds if kind != "unseen"]


def test_what_the_old_settings_do_in_their_turn_is_not_held_against_the_new_ones() -> None:
    guard = watch()
    bad, values = window(client__p95_ms=500.0), sight(client__p95_ms=500.0)
    turns = [guard.close(bad), guard.close(bad, in_force=False), guard.close(bad)]
    assert rules([*turns, guard.close(bad, in_force=False), guard.close(bad)]) == ["", "", "", "", "slo"]
    patient = watch()
    assert rules([patient.look(values, in_force=False) for _ in range(9)]) == [""] * 9
    assert rules([patient.look(sight(osds__down=1.0), in_force=False)]) == ["osds.down"]
    assert rules([patient.close(slow_recovery(12.0, 900.0 - n), in_force=False) for n in range(3)])[-1] == "recovery"


def test_a_window_without_the_rate_of_recovery_does_not_clear_it() -> None:
    guard = watch()
    unseen = {name: value for name, value in slow_recovery(12.0, 900.0).items() if name != "recovery.copies_s"}
    rows = [slow_recovery(12.0, 900.0), slow_recovery(12.0, 899.0), unseen, slow_recovery(12.0, 898.0)]
    assert rules([guard.close(row) for row in rows]) == ["", "", "", "recovery"]
