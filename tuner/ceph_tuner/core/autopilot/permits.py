"""When a forward move is permitted. Taking back never asks here.

Recovery, backfill and scrub under way are no reason to wait: objectives are about them, and they are when tuning is
wanted. What blocks is a cluster that is not steady, as whatever is measured then says nothing: OSDs or monitors down,
OSDs that came or went, PGs that serve no I/O, slow operations, space running out, a rebalancing that has just begun.
Other warnings (ours, `POOL_APP_NOT_ENABLED`, flags, old crashes) may stand for weeks, and do not block.
OSD map epochs are not looked at: snapshots and each PG that ends its backfill make new ones all the time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import List, Mapping, Optional, Sequence

from ceph_tuner.core.autopilot.policy import Policy
from ceph_tuner.core.goals.guard import HEALTH_ERR, NEAR_FULL, Sight
from ceph_tuner.core.hours import DAY_S, parse_hours
from ceph_tuner.core.moments import utc

UNWATCHED_S = 60.0
"""A longer stretch without a sample counts as unrest: what happened in it is not known. A failover is shorter."""

_UNSTEADY = NEAR_FULL | {
    "MON_DOWN",
    "PG_AVAILABILITY",
    "PG_BACKFILL_FULL",
    "PG_RECOVERY_FULL",
    "SLOW_OPS",
    "OSD_SLOW_PING_TIME_BACK",
    "OSD_SLOW_PING_TIME_FRONT",
}
_DOWN = re.compile(r"OSD_([A-Z]+_)?DOWN")
"""OSD_DOWN, and OSD_HOST_DOWN and the like, one for each type of CRUSH bucket."""

_STATES = (
    ("osds.down", "OSDs down"),
    ("pgs.inactive", "inactive PGs"),
    ("pgs.laggy", "laggy PGs"),
    ("ops.slow", "slow operations"),
)


def unsteady(sight: Sight) -> str:
    """What of the cluster is not steady now, in words; empty where all is."""
    reasons = [f"{HEALTH_ERR} {sight.words}".rstrip()] if sight.health == HEALTH_ERR else []
    reasons += [f"{sight.values[name]:g} {words}" for name, words in _STATES if sight.values.get(name, 0.0) > 0]
    reasons += sorted(check for check in sight.checks if check in _UNSTEADY or _DOWN.fullmatch(check))
    return ", ".join(reasons)


@dataclass(frozen=True)
class Calm:
    """Since when the cluster is steady. Feed it every sight."""

    seen: Optional[float] = None
    """When it was looked at last."""
    unrest: float = 0.0
    """When it was last seen not to be steady."""
    why: str = ""
    """What there was then."""
    osds: int = 0
    """Stands for which OSDs are up, and since which map."""
    moving: bool = False
    """Whether copies were misplaced."""

    def after(self, sight: Sight, osds: Mapping[int, int]) -> Calm:
        """Take a sight. `osds`: id of each OSD that is up -> the map since which it is (`up_from`)."""
        up = hash(frozenset(osds.items()))
        moves = sight.values.get("backfill.objects_left", float(self.moving)) > 0
        why = unsteady(sight)
        if not why and self.seen is None:
            why = "it was not watched before"
        elif not why and self.seen is not None and sight.at - self.seen > UNWATCHED_S:
            why = f"it was not watched for {sight.at - self.seen:.0f} s"
        elif not why and up != self.osds:
            why = "OSDs came, went or started anew"
        elif not why and moves and not self.moving:
            why = "a rebalancing began"
        now = replace(self, seen=sight.at, osds=up, moving=moves)
        return replace(now, unrest=sight.at, why=why) if why else now


def reason_to_wait(
    at: float,
    policy: Policy,
    calm: Calm,
    moves: Sequence[float] = (),
    failures: int = 0,
    failed_at: float = 0.0,
    declined_at: float = 0.0,
) -> Optional[str]:
    """Say what a forward move waits for and until when, all reasons together; None where it is permitted.

    `moves`: times of forward writes; `failures`: trials in a row that were taken back, the last one at `failed_at`;
    `declined_at`: when a proposal was last rejected, or only told in a dry run. All times are seconds since the epoch.
    Raises InputError for hours that cannot be read.
    """
    reasons = [
        outside_hours(at, policy),
        _unrest(at, policy, calm),
        _back_off(at, policy, failures, failed_at),
        _pause_after_rejection(at, policy, declined_at),
        _budget(at, policy, moves),
    ]
    return "; ".join(reason for reason in reasons if reason) or None


def outside_hours(at: float, policy: Policy) -> Optional[str]:
    """Say why the operator's hours do not permit anything now, and until when; None where they do."""
    opens = permitted_from(at, policy)
    if opens == at:
        return None
    blackout = parse_hours(policy.blackout, "blackout").covers(at)
    why = f"blackout ({policy.blackout})" if blackout else f"outside of the hours ({policy.hours})"
    return f"{why}: {'for ever' if opens is None else f'until {utc(opens)}'}"


def permitted_from(at: float, policy: Policy) -> Optional[float]:
    """Give the first moment from `at` on that hours and blackout permit; None where there is none."""
    hours, blackout = parse_hours(policy.hours), parse_hours(policy.blackout, "blackout")
    moment: Optional[float] = at
    while moment is not None and moment < at + max(hours.reach_s, blackout.reach_s):
        if blackout.covers(moment):
            moment = blackout.ends(moment)
        elif hours and not hours.covers(moment):
            moment = hours.begins(moment)
        else:
            return moment
    return None


def back_off_s(policy: Policy, failures: int) -> float:
    """Seconds of pause after so many trials in a row that were taken back: doubled each time, up to the most."""
    return min(policy.back_off * 2.0 ** min(failures - 1, 60), policy.back_off_most) if failures > 0 else 0.0


def _unrest(at: float, policy: Policy, calm: Calm) -> Optional[str]:
    if calm.seen is None:
        return "the cluster was not looked at yet"
    if calm.unrest == calm.seen:
        return f"the cluster has to be steady for {policy.quiet:.0f} s: {calm.why}"
    if at < calm.unrest + policy.quiet:
        until = utc(calm.unrest + policy.quiet)
        return f"the cluster has to be steady for {policy.quiet:.0f} s: until {until} ({calm.why})"
    return None


def _back_off(at: float, policy: Policy, failures: int, failed_at: float) -> Optional[str]:
    until = failed_at + back_off_s(policy, failures)
    if failures < 1 or at >= until:
        return None
    return f"pause after {failures} trial{'s' if failures > 1 else ''} taken back in a row: until {utc(until)}"


def _pause_after_rejection(at: float, policy: Policy, declined_at: float) -> Optional[str]:
    until = declined_at + back_off_s(policy, 1)
    return None if at >= until else f"pause after a proposal that was not tried: until {utc(until)}"


def _budget(at: float, policy: Policy, moves: Sequence[float]) -> Optional[str]:
    recent: List[float] = sorted(move for move in moves if move > at - DAY_S)
    if len(recent) < policy.changes_per_day:
        return None
    until = utc(recent[-policy.changes_per_day] + DAY_S)
    return f"{len(recent)} changes in 24 hours, at most {policy.changes_per_day}: until {until}"
