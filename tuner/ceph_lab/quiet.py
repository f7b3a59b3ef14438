"""Wait until a lab does nothing by itself, and say what it was doing.

Deleted pools and objects go in the background for minutes and spoil whatever is measured meanwhile. PGs are asked at
their primaries, because the mgr's view is up to 5 s old.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Callable, Collection, Dict, List, Mapping, Sequence, Set, Tuple

from ceph_lab.loads import LabUnderLoad
from ceph_lab.loads.session import LabSession
from ceph_tuner.core.errors import NotQuiet
from ceph_tuner.core.profiles.in_force import kind_of, log_is_on_flash

BUSY_STATES = {
    "peering": "peering",
    "recovering": "recovering",
    "recovery_wait": "waiting to recover",
    "backfilling": "backfilling",
    "backfill_wait": "waiting to backfill",
    "scrubbing": "scrubbing",
    "snaptrim": "trimming snapshots",
    "snaptrim_wait": "waiting to trim snapshots",
    "down": "down",
}
"""Part of a PG's state -> what to call it."""

HELD_BY = {
    "norecover": ("recovering", "recovery_wait", "degraded", "undersized"),
    "nobackfill": ("backfilling", "backfill_wait", "remapped"),
    "nosnaptrim": ("snaptrim", "snaptrim_wait"),
}
"""With this flag set, PGs in these states only wait: they are quiet."""

FALLING_BYTES_S = 256 * 1024.0
"""OSDs' use falling faster than this is deletion; BlueStore's own housekeeping is slower."""

_INTERVAL = "bluestore_max_defer_interval"
_AT_ONCE_S = 0.05
"""As often as an OSD can look."""
LONGEST_TURN_S = 30.0
"""Loads run already: an interval that is longer gives no turns."""

HOLD_S = 2.0
"""Quiet must last this long."""


@dataclass(frozen=True)
class Quiet:
    """How long it took, and what else was running meanwhile."""

    waited_s: float
    seen: Tuple[str, ...]

    def __str__(self) -> str:
        """Whether the lab was quiet, after how long, and what was not."""
        if not self.seen:
            return "the lab is quiet"
        return f"the lab was quiet after {self.waited_s:.0f} s; before that: {', '.join(self.seen)}"


@dataclass(frozen=True)
class LabLook:
    """One look at the lab: PG states, bytes in use, and PGs being deleted, at a time in seconds."""

    at: float
    states: Sequence[str]
    used_bytes: float
    deleting_pgs: int
    silent_pgs: int = 0
    osds: int = 0
    """That run."""

    @property
    def left(self) -> Tuple[float, ...]:
        """What gets less while something is deleted, on so many OSDs."""
        return (self.osds, self.used_bytes, float(self.deleting_pgs))


def busy(before: LabLook, now: LabLook, flags: Sequence[str]) -> Dict[str, str]:
    """What is going on: a stable key, and words for people."""
    paused_states = {state for flag in flags for state in HELD_BY.get(flag, ())}
    work: Dict[str, str] = {}
    for state, words in BUSY_STATES.items():
        count = sum(state in pg.split("+") for pg in now.states)
        if count and state not in paused_states:
            work[state] = f"{count} PGs {words}"
    inactive = sum("active" not in pg.split("+") for pg in now.states) + now.silent_pgs
    if inactive:
        work["inactive"] = f"{inactive} PGs not active"
    if now.deleting_pgs:
        work["deleting"] = f"{now.deleting_pgs} PGs being deleted"
    seconds = now.at - before.at
    freed_bytes_s = (before.used_bytes - now.used_bytes) / seconds if seconds > 0 else 0.0
    if freed_bytes_s > FALLING_BYTES_S:
        work["falling"] = f"objects being deleted ({freed_bytes_s / 1e6:.1f} MB/s freed)"
    return work


def wait_until_quiet(
    lab: LabUnderLoad,
    session: LabSession,
    timeout: float = 300.0,
    tell: Callable[[str], None] = lambda line: None,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Quiet:
    """Return when nothing has happened for HOLD_S. Raises NotQuiet that says what still is going on.

    `timeout`: seconds for which nothing was deleted any more. Slow drives delete for much longer, and come to an end.
    """
    began = now()
    work: Dict[str, str] = {}
    before = look(lab, session, now)
    least, less_at = before.left, before.at
    quiet_since = None
    while True:
        sleep(1.0)
        current = look(lab, session, now)
        going_on = busy(before, current, _flags(session))
        before = current
        if not going_on:
            quiet_since = current.at if quiet_since is None else quiet_since
            if current.at - quiet_since >= HOLD_S - 1.0:
                return Quiet(current.at - began, tuple(work.values()))
            continue
        quiet_since = None
        for key, words in going_on.items():
            work.setdefault(key, words)
        tell(f"waiting until the lab is quiet: {', '.join(going_on.values())}")
        # an OSD that came up has brought its own
        fewest = tuple(map(min, least, current.left)) if current.left[0] == least[0] else current.left
        least, less_at = (fewest, current.at) if fewest != least else (least, less_at)
        if current.at - less_at > timeout:
            waited_s = current.at - began
            raise NotQuiet(f"lab {lab.name!r} is not quiet after {waited_s:.0f} s: {', '.join(going_on.values())}")


def compact(lab: LabUnderLoad, session: LabSession, before: Collection[int] = ()) -> Set[int]:
    """What was written leaves RocksDB work to do: done now, so that every window begins with the same.

    Not again on the OSDs of `before` whose RocksDB has its log on a disk: it goes on in another place after a
    compaction, and a write waits for the head's way there and back. So windows under the same settings would differ by
    a factor of two. Gives the OSDs that were compacted.
    """
    osds = {
        osd
        for osd in _up(session, lab)
        if osd not in before or not _log_is_on_a_disk(session.mon("osd metadata", id=osd))
    }
    for osd in sorted(osds):
        session.osd(osd, "compact")
    return osds


def _log_is_on_a_disk(metadata: Mapping[str, Any]) -> bool:
    return kind_of(metadata) == "hdd" and not log_is_on_flash(metadata)


def send_deferred_in_turn(lab: LabUnderLoad, session: LabSession) -> None:
    """Let the OSDs on disks send their deferred writes one after the other, at the same moments in every window.

    Each sends them once in an interval, from when it has started on. A write waits for the batches of all its OSDs, so
    that chance would decide for a whole window how many there are. Takes an interval.
    """
    disks = [osd for osd in _up(session, lab) if kind_of(session.mon("osd metadata", id=osd)) == "hdd"]
    waits_s = {osd: float(session.osd(osd, "config get", var=_INTERVAL)[_INTERVAL]) for osd in disks}
    with ExitStack() as hurried:
        # every one of them goes back, whatever another answers; to what it goes by otherwise, whoever has set that
        turns = {osd: hurried.enter_context(ExitStack()) for osd in disks}
        for osd, turn in turns.items():
            turn.callback(session.osd, osd, "config unset", var=_INTERVAL)
            session.osd(osd, "config set", var=_INTERVAL, val=[str(_AT_ONCE_S)])
        for osd, turn in turns.items():
            time.sleep(min(waits_s[osd], LONGEST_TURN_S) / len(disks))
            turn.close()


def look(lab: LabUnderLoad, session: LabSession, now: Callable[[], float] = time.monotonic) -> LabLook:
    """Ask every PG's primary and every OSD."""
    pgids = _pgids(session.mon("osd dump"))
    pgs = session.pgs(pgids)
    counters = [session.osd(osd, "perf dump", logger="osd")["osd"] for osd in _up(session, lab)]
    return LabLook(
        now(),
        [str(pg["state"]) for pg in pgs],
        float(sum(entry["stat_bytes_used"] for entry in counters)),
        sum(int(entry.get("numpg_removing", 0)) for entry in counters),
        len(pgids) - len(pgs),
        len(counters),
    )


def _pgids(osdmap: Mapping[str, Any]) -> List[str]:
    return [f"{pool['pool']}.{number:x}" for pool in osdmap["pools"] for number in range(pool["pg_num"])]


def _up(session: LabSession, lab: LabUnderLoad) -> List[int]:
    up = {entry["osd"] for entry in session.mon("osd dump")["osds"] if entry["up"]}
    return [osd for osd in lab.osds if osd in up]


def _flags(session: LabSession) -> List[str]:
    return list(session.mon("osd dump")["flags_set"])
