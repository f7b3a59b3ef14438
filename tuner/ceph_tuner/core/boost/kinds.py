"""What can be boosted: what is left of it, and the rates by which settings are compared."""

from __future__ import annotations

from typing import Dict, Mapping, NamedTuple, Optional, Tuple

from ceph_tuner.core.goals.slo_calendar import BOOSTS

RECOVERY, BACKFILL, SCRUB, SNAPTRIM = BOOSTS


class Kind(NamedTuple):
    """One kind of background work."""

    name: str
    left: Tuple[str, ...]
    """Metrics that are all 0 when it is done."""
    what: str
    """What they count, for people."""
    mended: Tuple[str, ...]
    """Rates at which what is left becomes less; none where no metric says."""
    speed: Tuple[str, ...]
    """Rates by which settings are compared, the best one first."""

    def left_in(self, means: Mapping[str, float]) -> Optional[float]:
        """What is left; None where it was not seen."""
        return sum(means[name] for name in self.left) if all(name in means for name in self.left) else None

    def rate_in(self, means: Mapping[str, float]) -> Optional[float]:
        """What becomes less in a second by the rates of this window; None where none was seen."""
        rate = sum(means.get(name, 0.0) for name in self.mended)
        return rate if rate > 0 else None


_DEGRADED, _MISPLACED = "recovery.objects_left", "backfill.objects_left"

KINDS: Dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            RECOVERY,
            (_DEGRADED,),
            "degraded object copies",
            ("recovery.copies_s",),
            ("recovery.copies_s", "recovery.objects_s", "recovery.bytes_s"),
        ),
        Kind(
            BACKFILL,
            (_DEGRADED, _MISPLACED),
            "degraded and misplaced object copies",
            ("recovery.copies_s", "backfill.objects_s"),
            ("backfill.objects_s", "recovery.copies_s"),
        ),
        Kind(SCRUB, ("scrub.pgs_late",), "PGs past their deep-scrub date", (), ("scrub.bytes_s", "scrub.objects_s")),
        Kind(SNAPTRIM, ("snaptrim.queue",), "snapshots of PGs in the snaptrim queue", (), ("snaptrim.objects_s",)),
    )
}
