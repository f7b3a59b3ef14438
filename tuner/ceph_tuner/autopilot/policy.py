"""What the automatic mode may do and when, as numbers: each is an option of the mgr module with this default."""

from __future__ import annotations

from dataclasses import dataclass

from ceph_tuner.autopilot.hours import parse_hours

CANARY_KINDS = ("auto", "host", "rack", "osd", "alternate")


@dataclass(frozen=True)
class Policy:
    """Times in seconds, shares from 0 to 1."""

    window: float = 30.0
    """Length of the windows that decisions are based on."""
    settle: float = 15.0
    """After a change this long is not counted: queues that built up under the old settings drain first."""
    baseline_windows: int = 6
    """Windows before a trial in which canary and control are compared under the same settings."""
    least_windows: int = 4
    """Windows that a stage takes at least."""
    most_windows: int = 40
    """Windows after which a stage that shows neither harm nor gain is inconclusive."""
    hold_windows: int = 10
    """Windows that settings are watched on all OSDs before they are kept."""
    confidence: float = 0.95
    """Of a trial's verdict, however often it is looked at."""
    tolerance: float = 0.05
    """Share by which a hard objective's metric may be worse on the canary before that is harm."""
    canary: str = "auto"
    """Which OSDs come first: a host, a rack, some OSDs of the device class, or no control at all (alternate)."""
    canary_share: float = 0.34
    """Largest share of the OSDs in the first stage."""
    trials: int = 8
    """Proposals that are tried for one state of the cluster before it gives up."""
    changes_per_day: int = 12
    """Writes of forward moves in 24 hours; taking back is never counted."""
    back_off: float = 3600.0
    """Pause after a trial was taken back; doubled each time in a row."""
    back_off_most: float = 86400.0
    hours: str = ""
    """When forward moves are permitted, as `mon-fri 22:00-06:00, sat-sun`; empty: always. In UTC."""
    blackout: str = ""
    """When they are not, in the same form; outranks `hours`."""
    quiet: float = 300.0
    """The cluster has to be healthy this long before a forward move."""
    changed_factor: float = 2.0
    """Factor on the load, either way, beyond which it counts as another one."""
    changed_windows: int = 20
    """Windows that a change of load or hardware has to last before trials begin again."""

    guard_windows: int = 3
    """Windows in a row in which a hard objective may be broken because of the settings."""
    guard_slow_ops: int = 0
    """Slow operations above those before the trial that are borne."""
    guard_blind: int = 3
    """Samples in a row that may be missing."""
    guard_recovery: float = 0.5
    """Share of its rate before the trial that recovery may fall to while objects are degraded."""
    guard_tolerance: float = 0.2
    """Share by which a hard objective that was missed before already may be worse without counting as broken.

    Wider than `tolerance`, as the guard has three windows to go by: where windows scatter by 10%, three in a row are
    beyond 5% in half of all harmless trials of 40 windows, beyond 20% in 1%.
    """
    guard_gross: float = 2.0
    """Factor off the bound, and off what was seen before, at which clients are not left waiting for whole windows."""
    guard_patience: int = 3
    """Samples in a row that must show slow operations, inactive or laggy PGs, or a gross miss: they may pass."""

    def __post_init__(self) -> None:
        """Refuse what makes no sense: ValueError, for hours InputError naming the part."""
        parse_hours(self.hours), parse_hours(self.blackout, "blackout")
        for name in ("window", "settle", "back_off", "back_off_most", "quiet"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ValueError(f"{name} (={getattr(self, name)}) must be at least 0 s and finite")
        counts = ("baseline_windows", "least_windows", "most_windows", "hold_windows", "trials", "guard_windows")
        for name in (*counts, "changes_per_day", "changed_windows", "guard_blind", "guard_patience"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} (={getattr(self, name)}) must be at least 1")
        if self.window <= 0 or self.least_windows > self.most_windows:
            raise ValueError(
                f"window (={self.window}) must be above 0, least_windows (={self.least_windows}) "
                f"at most most_windows (={self.most_windows})"
            )
        if not 0.5 <= self.confidence < 1 or not 0 < self.tolerance < 1 or not 0 < self.canary_share <= 0.5:
            raise ValueError(
                f"confidence (={self.confidence}) must be in 0.5..1, tolerance (={self.tolerance}) in 0..1, "
                f"canary_share (={self.canary_share}) in 0..0.5"
            )
        if not self.changed_factor > 1 or not self.guard_gross > 1 or self.guard_slow_ops < 0:
            raise ValueError(
                f"changed_factor (={self.changed_factor}) and guard_gross (={self.guard_gross}) must be above 1, "
                f"guard_slow_ops (={self.guard_slow_ops}) at least 0"
            )
        if not 0 < self.guard_tolerance < 1 or not 0 < self.guard_recovery < 1:
            raise ValueError(
                f"guard_tolerance (={self.guard_tolerance}) and guard_recovery (={self.guard_recovery}) must be in 0..1"
            )
        if self.canary not in CANARY_KINDS:
            raise ValueError(f"canary (={self.canary!r}) must be one of {', '.join(CANARY_KINDS)}")
