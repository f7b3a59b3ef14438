"""The loop's interfaces on a real cluster: what is in force, who writes, who looks out."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from ceph_tuner.core.bounded import MISREAD
from ceph_tuner.core.ceph.commands import parsed
from ceph_tuner.core.ceph.ports import Clock, Commander
from ceph_tuner.core.changes.applier import Applier
from ceph_tuner.core.changes.journal import Entry
from ceph_tuner.core.errors import TunerError
from ceph_tuner.core.goals.guard import Sight
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.cost import Hardware
from ceph_tuner.core.knobs.releases import Release, Settings, nine
from ceph_tuner.core.measure.osd_documents import slow_ops
from ceph_tuner.core.profiles.translation import to_release_units

_ANY: Settings = {PROFILE: "custom", **nine((0.4, 2, 0), (0.3, 1, 0), (0.1, 1, 0))}


class JournalledWriter:
    """`tune.Writer` by the applier: each write is journalled as a trial, so that a killed run is taken back."""

    def __init__(
        self,
        applier: Applier,
        targets: Tuple[str, ...],
        release: Release,
        hardware: Hardware,
        why: str,
        moves: Callable[[Settings], Settings] = dict,
    ) -> None:
        """`moves` gives what of some settings is to be written to each target, with shares as fractions."""
        self._applier, self._targets, self._why = applier, targets, why
        self._release, self._hardware, self._moves = release, hardware, moves
        self._entries: List[Entry] = []

    def check(self) -> None:
        """Raise InputError where every custom profile would be refused: better now than after an hour of measuring."""
        for target in self._targets:
            self._applier.plan(target, to_release_units(_ANY, self._release, self._hardware))

    def apply(self, settings: Settings) -> None:
        """Write settings; their shares are fractions, whatever the release takes."""
        settings = self._moves(settings)
        if not settings:
            return
        own_units = to_release_units(settings, self._release, self._hardware)
        for target in self._targets:
            _, entry = self._applier.plan_and_apply(target, own_units, self._why, trial=True)
            self._entries += [] if entry is None else [entry]

    def undo(self) -> None:
        """Take back what was written last. Raises TunerError where the cluster does not go back; call it again then."""
        while self._entries:
            self._applier.undo_entry(self._entries[-1])
            del self._entries[-1]

    def keep(self) -> None:
        """Make what was written last permanent."""
        while self._entries:
            self._applier.keep(self._entries[-1])
            del self._entries[-1]


class ClusterLookout:
    """`tune.TrialLookout` by one `status` command."""

    def __init__(self, commander: Commander, clock: Clock) -> None:
        self._commander, self._clock = commander, clock

    def look(self) -> Optional[Sight]:
        """Give health, OSDs down, inactive PGs and slow operations."""
        try:
            status = parsed(self._commander.mon("status", {"format": "json"}), "status")
            return Sight(self._clock.now(), _health(status), _values(status), _words(status))
        except (TunerError, *MISREAD):
            return None


def _health(status: Mapping[str, Any]) -> str:
    return str(status["health"]["status"])


def _words(status: Mapping[str, Any]) -> str:
    checks = status["health"].get("checks", {})
    serious = [name for name, check in checks.items() if check.get("severity") == "HEALTH_ERR"]
    return f"({', '.join(serious)})" if serious else ""


def _values(status: Mapping[str, Any]) -> Dict[str, float]:
    osds = status["osdmap"]
    # nested once more up to Pacific
    osds = osds.get("osdmap", osds)
    states = status["pgmap"].get("pgs_by_state", [])
    inactive = sum(int(row["count"]) for row in states if "active" not in str(row["state_name"]).split("+"))
    laggy = sum(int(row["count"]) for row in states if "laggy" in str(row["state_name"]).split("+"))
    return {
        "osds.down": float(max(0, int(osds["num_in_osds"]) - int(osds["num_up_osds"]))),
        "pgs.inactive": float(inactive),
        "pgs.laggy": float(laggy),
        "ops.slow": slow_ops(status["health"]),
    }
