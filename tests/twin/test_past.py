from __future__ import annotations

from typing import Any, Dict

from ceph_tuner.core.knobs.releases import TENTACLE
from ceph_tuner.core.measure.history import History
from ceph_tuner.core.measure.sample import Measure, Window
from ceph_tuner.twin.past import AT_ONCE, IN_FORCE, SETTLED_S, past_of

BALANCED = TENTACLE.profiles["balanced"]


class Shelf:
    """A store in memory."""

    def __init__(self) -> None:
        self._kept: Dict[str, str] = {}

    def get(self, key: str) -> Any:
        return self._kept.get(key)

    def set(self, key: str, value: str) -> None:
        self._kept[key] = value

    def remove(self, key: str) -> None:
        self._kept.pop(key, None)

    def keys(self, prefix: str) -> Any:
        return sorted(key for key in self._kept if key.startswith(prefix))


def trial(label: str, settings: Dict[str, Any], at: float, **more: Any) -> Dict[str, Any]:
    measures = {"client.iops": [250.0, 5.0, 5], "client.mean_ms": [20.0, 2.0, 5]}
    return {
        "kind": "trial",
        "label": label,
        "settings": settings,
        "at": at,
        "seconds": 30.0,
        "measures": measures,
        **more,
    }


def test_trials_and_minutes_since_the_last_change_are_windows() -> None:
    history = History(Shelf())
    history.add_trial(trial("old baseline", {}, at=100.0))
    history.add_trial(trial("baseline", {}, at=2000.0))
    history.add_trial(trial("fast", {"osd_mclock_profile": "high_recovery_ops"}, at=2100.0))
    history.add_trial(trial("one more scrub", {"osd_max_scrubs": 4}, at=2200.0))
    history.add_trial(trial("broken", {}, at=2300.0, failed="the guard stopped it"))
    for minute in range(30):
        start = 1500.0 + 60.0 * minute
        history.add_window(Window(start, start + 60.0, {"client.mean_ms": Measure(20.0 + minute, 1.0, 6)}))
    found, skipped = past_of(history, "client", BALANCED, 1900.0, TENTACLE)
    by_label = {entry.label: entry for entry in found}
    assert set(by_label) == {"baseline", "fast", "one more scrub", IN_FORCE}
    assert by_label["baseline"].settings == BALANCED
    assert by_label["fast"].settings == TENTACLE.profiles["high_recovery_ops"]
    assert by_label["one more scrub"].settings == {**BALANCED, "osd_max_scrubs": 4}
    assert any("old baseline: of settings in force before" in reason for reason in skipped)
    assert any("the guard stopped it" in reason for reason in skipped)
    minutes = [entry for entry in found if entry.label == IN_FORCE]
    # from 1900 s on, less what settles, 22 whole minutes are left
    assert sum(entry.measures["client.mean_ms"].count for entry in minutes) == 6 * sum(
        1500.0 + 60.0 * minute >= 1900.0 + SETTLED_S for minute in range(30)
    )
    assert all(entry.seconds <= 60.0 * AT_ONCE for entry in minutes)


def test_minutes_before_anybody_touched_the_settings_are_left_out_and_trials_in_force_are_not() -> None:
    history = History(Shelf())
    history.add_trial(trial("baseline", {}, at=1000.0))
    for start in (900.0, 1300.0, 1400.0):
        history.add_window(Window(start, start + 60.0, {"client.mean_ms": Measure(start, 1.0, 6)}))
    found, _ = past_of(history, "client", BALANCED, 500.0, TENTACLE, touched_at=1320.0)
    assert [(entry.label, entry.measures.get("client.mean_ms")) for entry in found][1:] == [
        (IN_FORCE, Measure(1400.0, 1.0, 6))
    ]
    assert found[0].label == "baseline"


def test_an_empty_history_has_no_windows() -> None:
    assert past_of(History(Shelf()), "client", BALANCED, 0.0, TENTACLE) == ([], [])


def test_windows_without_any_metric_of_the_twin_are_left_out() -> None:
    history = History(Shelf())
    history.add_window(Window(1000.0, 1060.0, {"ops.slow": Measure(0.0, 0.0, 6)}))
    found, skipped = past_of(history, "client", BALANCED, 0.0, TENTACLE)
    assert found == []
    assert skipped == ["1 windows without any metric that the twin predicts"]
