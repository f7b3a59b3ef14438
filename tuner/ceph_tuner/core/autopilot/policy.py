"""What the automatic mode may do and when, as numbers: each is an option of the mgr module with this default."""

from __future__ import annotations

from dataclasses import Field, dataclass, fields
from typing import Any, List

from ceph_tuner.core.autopilot.option_field import check_bounds, option_field
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.hours import parse_hours

CANARY_KINDS = ("auto", "host", "rack", "osd", "alternate")


@dataclass(frozen=True)
class Policy:
    """Times in seconds, shares from 0 to 1."""

    window: float = option_field(30.0, "Length of the windows that decisions are based on", 5.0, 300.0)
    settle: float = option_field(
        15.0,
        "After a change this long is not counted: queues that built up under the old settings drain first",
        0.0,
        3600.0,
    )
    miss_windows: int = option_field(
        6,
        "Windows that must miss an objective, all but a fifth, before settings are asked for",
        1,
        1000,
    )
    baseline_windows: int = option_field(
        20, "Windows before a trial in which canary and control are compared under the same settings", 2, 1000
    )
    least_windows: int = option_field(4, "Windows that a stage takes at least", 2, 1000)
    most_windows: int = option_field(
        40, "Windows after which a stage that shows neither harm nor gain is inconclusive", 2, 10000
    )
    hold_windows: int = option_field(10, "Windows that settings are watched on all OSDs before they are kept", 1, 10000)
    confidence: float = option_field(0.95, "Of a trial's verdict, however often it is looked at", 0.5, 0.9999)
    tolerance: float = option_field(
        0.05, "Share by which a hard objective's metric may be worse on the canary before that is harm", 0.001, 0.9
    )
    canary: str = option_field(
        "auto", "Which OSDs come first: a host, a rack, some OSDs of the device class, or no control at all (alternate)"
    )
    canary_share: float = option_field(0.34, "Largest share of the OSDs in the first stage", 0.001, 0.5)
    trials: int = option_field(8, "Proposals that are tried for one state of the cluster before it gives up", 1, 1000)
    changes_per_day: int = option_field(
        12, "Writes of forward moves in 24 hours; taking back is never counted", 1, 10000
    )
    back_off: float = option_field(
        3600.0, "Pause after a trial was taken back; doubled each time in a row", 0.0, 604800.0
    )
    back_off_most: float = option_field(86400.0, "Longest pause after trials that were taken back", 0.0, 2592000.0)
    hours: str = option_field(
        "",
        "When forward moves are permitted, as `mon-fri 22:00-06:00, sat-sun Europe/Berlin`; empty: always. "
        "Without a zone in UTC",
    )
    blackout: str = option_field("", "When they are not, in the same form; outranks `hours`")
    quiet: float = option_field(300.0, "The cluster has to be healthy this long before a forward move", 0.0, 86400.0)
    changed_factor: float = option_field(
        2.0, "Factor on the load, either way, beyond which it counts as another one", 1.01, 100.0
    )
    changed_windows: int = option_field(
        20, "Windows that a change of load or hardware has to last before trials begin again", 1, 10000
    )
    guard_windows: int = option_field(
        3, "Windows in a row in which a hard objective may be broken because of the settings", 1, 100
    )
    guard_slow_ops: int = option_field(0, "Slow operations above those before the trial that are borne", 0, 1000000)
    guard_blind: int = option_field(3, "Samples in a row that may be missing", 1, 100)
    guard_recovery: float = option_field(
        0.5, "Share of its rate before the trial that recovery may fall to while objects are degraded", 0.01, 0.99
    )
    guard_tolerance: float = option_field(
        0.2,
        "Share by which a hard objective that was missed before already may be worse without counting as broken",
        0.001,
        0.99,
    )
    """Wider than `tolerance`, as the guard has three windows to go by: where windows scatter by 10%, three in a row are
    beyond 5% in half of all harmless trials of 40 windows, beyond 20% in 1%."""
    guard_gross: float = option_field(
        2.0,
        "Factor off the bound, and off the value before, at which clients are not left waiting for whole windows",
        1.01,
        100.0,
    )
    guard_patience: int = option_field(
        3,
        "Samples in a row that must show slow operations, inactive or laggy PGs, or a gross miss: they may pass",
        1,
        100,
    )

    @property
    def least_trial_s(self) -> float:
        """Seconds that a trial takes at least from its first write until its settings are kept."""
        return (self.least_windows + self.hold_windows) * self.window + 2 * self.settle

    def windows_before(self, alternating: bool) -> int:
        """Windows under the old settings before a trial.

        One that takes turns is compared with its own old turns; what was before is what the guard holds it to, as many
        windows as it takes to break that.
        """
        return self.guard_windows if alternating else self.baseline_windows

    def __post_init__(self) -> None:
        """Raise InputError for what makes no sense, with the option's name."""
        parse_hours(self.hours)
        parse_hours(self.blackout, "blackout")
        check_bounds(self, option_name)
        if self.canary not in CANARY_KINDS:
            raise InputError("auto_canary", repr(self.canary), f"one of {', '.join(CANARY_KINDS)}")
        if self.least_windows > self.most_windows:
            raise InputError(
                "auto_least_windows", f"{self.least_windows}", f"at most auto_most_windows ({self.most_windows})"
            )


def option_name(item: Field[Any]) -> str:
    """Name of a field as an option of the module."""
    return item.name if item.name.startswith("guard_") else f"auto_{item.name}"


def options() -> List[Field[Any]]:
    """Every field; its metadata has `meaning`, and bounds as `low` and `high`."""
    return list(fields(Policy))
