"""What keeps the work of a boost from going on, whatever the settings: flags, and targets without room."""

from __future__ import annotations

from typing import Any, Dict, FrozenSet, List, Mapping, NamedTuple, Tuple

from ceph_tuner.core.boost.kinds import KINDS
from ceph_tuner.core.goals.slo_calendar import BOOSTS
from ceph_tuner.core.measure.pg_documents import flags_of

RECOVERY, BACKFILL, SCRUB, SNAPTRIM = BOOSTS

_STOPS: Dict[str, Tuple[str, ...]] = {
    # backfill waits for it as well; late deep scrubs do not wait for noscrub
    RECOVERY: ("norecover",),
    BACKFILL: ("norecover", "nobackfill"),
    SCRUB: ("nodeep-scrub",),
    SNAPTRIM: ("nosnaptrim",),
}
_HOLDS_SOME: Dict[str, Dict[str, str]] = {
    RECOVERY: {"nobackfill": "degraded copies that only backfill restores wait"},
    BACKFILL: {"norebalance": "PGs that are whole wait"},
}
"""Flags that hold a part of the work, and which part."""
_NO_ROOM = ("recovery_toofull", "backfill_toofull")


class Obstacles(NamedTuple):
    """In words, for people."""

    stops: Tuple[str, ...] = ()
    """What lets none of the work go on."""
    holds: Tuple[str, ...] = ()
    """What holds some of it."""

    @property
    def words(self) -> List[str]:
        """All of it."""
        return [*self.stops, *self.holds]


NOTHING = Obstacles()


def obstacles(kind: str, flags: FrozenSet[str], means: Mapping[str, float], pg_states: Mapping[str, int]) -> Obstacles:
    """Of a kind of work. `flags`: of the OSD map; `means` and `pg_states`: what was seen last."""
    stopping = list(_STOPS[kind])
    holding = dict(_HOLDS_SOME.get(kind, {}))
    if kind == BACKFILL and means.get("recovery.objects_left") == 0:
        # with no degraded PG left there is nothing that it leaves alone
        stopping += holding
        holding = {}
    stops = [f"{_set(flag)}, so {kind} does not go on: {_unset(flag)}" for flag in stopping if flag in flags]
    holds = [f"{_set(flag)}, and {words}: {_unset(flag)}" for flag, words in holding.items() if flag in flags]
    for state in _NO_ROOM if "recovery.objects_left" in KINDS[kind].left else ():
        count = sum(number for words, number in pg_states.items() if state in words.split("+"))
        if count:
            pgs, have = ("PG", "has") if count == 1 else ("PGs", "have")
            holds.append(
                f"{count} {pgs} in {state} {have} no room on the target: no setting helps, see `ceph pg ls {state}` "
                "and `ceph osd df tree`"
            )
    return Obstacles(tuple(stops), tuple(holds))


def _set(flag: str) -> str:
    return f"the flag {flag} is set"


def _unset(flag: str) -> str:
    return f"`ceph osd unset {flag}` lets it go on"


def flags_in(health: Mapping[str, Any]) -> FrozenSet[str]:
    """Flags of the OSD map, out of the document of `ceph health`, which names those that hold something."""
    summary = health.get("checks", {}).get("OSDMAP_FLAGS", {}).get("summary", {})
    # such as `norecover,noout flag(s) set`
    return flags_of(str(summary.get("message", "")).partition(" ")[0])
