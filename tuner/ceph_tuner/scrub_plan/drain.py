"""Asks Ceph for deep scrubs one after the other, in the order of their dates, at the pace that objectives leave.

Each is asked for by `ceph pg deep-scrub PGID`, on every release. That is the one way that leaves the PG's stamps alone:
`ceph tell PGID schedule-deep-scrub` and Reef's `deep_scrub` set them back (docs/ceph-behaviour.md). Scrubs that are
asked for so do not heed `osd_max_scrubs` in Tentacle, nor hours, flags and load on any release. So the drain heeds
them itself: it counts the scrubs on each OSD and host, whoever asked for them, and waits outside of the hours.

Nothing is kept about a drain. What is done is told by the PGs' own stamps, so one that was killed goes on where it was:
it asks again, in the same order, for what it had asked for and what has not begun. To be asked twice changes nothing.
"""

from __future__ import annotations

import errno
from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Deque, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Tuple

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.cluster.sampler import deep_scrub_interval
from ceph_tuner.core.changes.lock import Lock
from ceph_tuner.core.errors import CommandFailed, Locked, RetryLater, TunerError
from ceph_tuner.core.goals.guard import HEALTH_ERR, Sight
from ceph_tuner.core.measure.sample import Window
from ceph_tuner.core.wording import first_of
from ceph_tuner.pacing.client_watch import LOOK_S, SAME, STRICTER, WINDOW_S, ClientWatch, Silence
from ceph_tuner.pacing.judged_windows import judged_s
from ceph_tuner.pacing.objectives import about_clients
from ceph_tuner.pacing.pace import Pace
from ceph_tuner.pacing.wanted import WantedObjectives
from ceph_tuner.scrub_plan import ScrubPg, ScrubRules, ScrubView
from ceph_tuner.scrub_plan.beginning import Beginning, beginning_of
from ceph_tuner.scrub_plan.cluster_view import read_again
from ceph_tuner.scrub_plan.obstacles import next_opening, open_at, trims_next, waiting_trims
from ceph_tuner.scrub_plan.pace import (
    TRUSTED_PGS,
    Expectation,
    ScrubLimits,
    finished,
    held_osds,
    next_scrubs,
    ready,
)
from ceph_tuner.scrub_plan.rates import lasts_s, usual_pace
from ceph_tuner.scrub_plan.rates_ahead import RatesAhead

LOOK_S_PER_PG = 1e-3
"""Between two looks, beyond the least: what listing the PGs costs, about 4 KiB of JSON each."""
LOOKS_S = 600.0
"""Looks that are older tell nothing of a window: the plugin's are three minutes old at most."""
ASK_AGAIN_S = 900.0
"""A PG that has not begun by then is asked for again: its primary may have been restarted since."""
TRIM_BEGINS_S = 900.0
"""So long a PG with snapshots to trim is not asked for: trimming is to begin first. A queue that is not trimmed by then
is one that nobody trims."""
UNREADY = "PGs that Ceph would not scrub now: unclean, trimmed, on OSDs that recover or scrub others"
FOUND_BY_SCRUB = frozenset(("OSD_SCRUB_ERRORS", "PG_DAMAGED"))
"""Health checks that scrubs raise: to find damage is what they are for."""


class ScrubLook(NamedTuple):
    """What of the goal was scrubbed by a look."""

    at: float
    pgids: FrozenSet[str]
    """Scrubbed at that moment, or since the look before."""


@dataclass(frozen=True)
class DrainTask:
    """What is to be done, and within which bounds."""

    order: Tuple[ScrubPg, ...]
    by: float
    limits: ScrubLimits
    wanted: WantedObjectives
    rates: RatesAhead
    """The forecast."""
    baseline: Mapping[str, float] = field(default_factory=dict)
    """What relative bounds refer to; what is missing is measured before the first scrub."""
    any_hour: bool = False
    despite_flags: bool = False
    window_s: float = WINDOW_S


@dataclass(frozen=True)
class DrainProgress:
    """How far it is."""

    at: float
    total: int
    done: int
    running: int
    """PGs of the drain that are being scrubbed."""
    asked: int
    """PGs that were asked for and have not begun."""
    left_bytes: float
    at_once: Optional[int]
    """Scrubs at a time that the objectives allow now; None: they are no limit."""
    finish_at: Optional[float]
    waits_for: str = ""
    """Why nothing is asked for now; empty where something is."""
    means: Mapping[str, float] = field(default_factory=dict)
    keeps: str = ""
    """Which objectives hold now, for people."""
    trims_wait: Mapping[str, Optional[float]] = field(default_factory=dict)
    """PGs whose trimming waits for their scrub -> when that can go on; None: nobody knows."""


@dataclass(frozen=True)
class DrainOutcome:
    """How it ended."""

    began: float
    ended: float
    total: int
    done: int
    gone: int
    """PGs that are not there any more."""
    scrubbed_bytes: float
    windows: int
    """That objectives were held against; those that overlap count once."""
    windows_missed: int
    reason: str
    """DONE, TIME_UP or INTERRUPTED."""
    left: Tuple[str, ...] = ()
    remarks: Tuple[str, ...] = ()

    def to_dict(self) -> Dict[str, Any]:
        """Plain values, for programs."""
        return {**self.__dict__, "left": list(self.left), "remarks": list(self.remarks)}


def foretold_end(task: DrainTask, view: ScrubView) -> Optional[float]:
    """When a drain that begins now would be done, as it says itself at its beginning; None: not within 60 days."""
    has_objectives = bool(about_clients(task.wanted.at(view.at).slo))
    beginning = beginning_of(view.pgs, task.limits.per_osd, judged_s(len(view.hosts), task.window_s))
    left_bytes = sum((1 - pg.progress) * pg.raw_bytes for pg in task.order)
    return _expectation(task).finish_at(view.at, left_bytes, _rules(task, view), beginning if has_objectives else None)


def _expectation(task: DrainTask) -> Expectation:
    mean = sum(pg.raw_bytes for pg in task.order) / max(1, len(task.order))
    return Expectation(task.rates, TRUSTED_PGS * mean)


def _rules(task: DrainTask, view: ScrubView) -> ScrubRules:
    """Ceph's own, without its hours where the drain heeds none."""
    return replace(view.rules, hours=(0, 0), days=(0, 0)) if task.any_hour else view.rules


DONE, TIME_UP, INTERRUPTED = "done", "time is up", "interrupted"

Listener = Callable[[DrainProgress], None]


class Drain:
    """One drain of a cluster, under the lock. `run` ends when all is scrubbed, when time is up, or by Ctrl-C."""

    def __init__(
        self, cluster: Cluster, view: ScrubView, task: DrainTask, lock: Lock, listen: Listener = lambda progress: None
    ) -> None:
        self._cluster, self._view, self._task, self._lock, self._listen = cluster, view, task, lock, listen
        self._clock = cluster.clock
        self._goal = {pg.pgid: pg.deep_scrubbed_at for pg in task.order}
        self._bytes = {pg.pgid: pg.raw_bytes for pg in task.order}
        self._requests: Dict[str, float] = {}
        """When they were asked for; durations go by the clock that nobody sets."""
        self._trims_since: Dict[str, float] = {}
        """PGs whose trimming is to begin -> since when."""
        self._interval = deep_scrub_interval(cluster.commander)
        self._look_s = max(LOOK_S, LOOK_S_PER_PG * len(view.pgs))
        self._pace = Pace()
        self._changed = self._clock.now()
        self._looks: Deque[ScrubLook] = deque()
        """Since the last change."""
        self._limited = False
        """Whether the pace was what kept the last look from asking for more."""
        pace = usual_pace(task.order)
        self._longest_s = max((lasts_s(pg, pace) for pg in task.order), default=0.0)
        """Of a scrub of the drain."""
        self._done: FrozenSet[str] = frozenset()
        self._scrubbing = False
        """Whether scrubs of the drain were under way since the last change."""
        self._rests_until = self._clock.monotonic()
        self._damage = False
        self._expectation = _expectation(task)
        self._watch = ClientWatch(
            cluster, task.wanted, task.baseline, task.window_s, len(view.hosts), self._look_s, self._without_damage
        )
        self._beginning = beginning_of(view.pgs, task.limits.per_osd, self._watch.window_s)

    def run(self) -> DrainOutcome:
        """Drain. Raises Locked where the lock is lost, TunerError where the cluster is silent for ten minutes."""
        began = before = self._clock.now()
        last_look = self._clock.monotonic()
        silence = Silence()
        reason, waits_for = DONE, ""
        if not self._goal:
            # nothing to measure objectives for
            return self._outcome(began, DONE)
        if self._is_open(began):
            self._beginning = replace(self._beginning, at=began)
        try:
            self._watch.begin(self._tell)
            self._changed = self._clock.now()
            while True:
                now = self._clock.now()
                try:
                    self._view = read_again(self._cluster, self._view, self._interval)
                    silence.ended()
                except TunerError as failure:
                    silence.bear(failure, self._clock.monotonic())
                    self._clock.sleep(self._look_s)
                    continue
                self._settle_requests()
                self._note_scrubs(now)
                bytes_done = self._scrubbed_bytes() + self._half_done_bytes()
                monotonic = self._clock.monotonic()
                self._expectation = self._expectation.after(
                    before, monotonic - last_look, bytes_done, self._ahead, self._is_open(before)
                )
                before, last_look = now, monotonic
                if not self._pgids_to_do():
                    break
                if now >= self._task.by:
                    reason = TIME_UP
                    break
                had_to_wait, waits_for = bool(waits_for), self._waits_for()
                if had_to_wait and not waits_for:
                    # what was kept while nothing was asked for says nothing of what is asked for now
                    self._changed = now
                if not waits_for:
                    self._ask()
                self._tell(waits_for or ("" if self._under_way() else UNREADY))
                self._clock.sleep(self._look_s)
        except KeyboardInterrupt:
            reason = INTERRUPTED
        return self._outcome(began, reason)

    def _settle_requests(self) -> None:
        """Forget what has begun, is done or gone, and what did not begin for long and cannot now."""
        now = self._clock.monotonic()
        done, unready_osds = finished(self._goal, self._view), held_osds(self._view)
        able = {
            pg.pgid
            for pg in self._view.pgs
            if pg.pgid in self._requests and ready(pg, self._view.rules, unready_osds, self._task.despite_flags)
        }
        under_way = {pg.pgid for pg in self._view.pgs if pg.scrubbing}
        self._requests = {
            pgid: at
            for pgid, at in self._requests.items()
            if pgid in done and not done[pgid] and pgid not in under_way and (now - at < ASK_AGAIN_S or pgid in able)
        }

    def _note_scrubs(self, now: float) -> None:
        """Keep what of the goal is scrubbed at this look, or was since the one before."""
        done = frozenset(pgid for pgid, is_done in finished(self._goal, self._view).items() if is_done)
        under_way = {pg.pgid for pg in self._view.pgs if pg.scrubbing and pg.pgid in self._goal}
        if self._watch.has_objectives:
            # nobody asks for them otherwise, and a drain may go on for weeks
            self._looks.append(ScrubLook(now, frozenset(under_way | (done - self._done))))
        while self._looks and self._looks[0].at < now - LOOKS_S - 10 * self._watch.window_s:
            self._looks.popleft()
        self._done = done

    def _may_go_faster(self, window: Window) -> bool:
        """Whether scrubs at the whole pace ran in a window, and the pace alone is their limit."""
        while self._looks and self._looks[0].at <= window.start:
            self._looks.popleft()
        return self._limited and self._pace.tried_by([look.pgids for look in self._looks if look.at <= window.end])

    def _waits_for(self) -> str:
        """Why nothing may be asked for now; nothing where something may."""
        rules, now = self._view.rules, self._view.at
        self._look_at_objectives()
        reason = self._watch.reason()
        if reason:
            return reason
        rest_s = self._rests_until - self._clock.monotonic()
        if rest_s > 0:
            return f"a rest of {rest_s:.0f} s: one scrub at a time was too much"
        if not self._is_open(now):
            opens = next_opening(rules, now, self._task.rates.zone)
            return f"Ceph's own scrub hours, in {(opens - now) / 3600:.1f} h"
        to_do = self._pgids_to_do()
        with_flag = [pg for pg in self._view.pgs if pg.pgid in to_do and rules.forbids_deep(pg.pool)]
        if len(with_flag) == len(to_do) and not self._task.despite_flags:
            return "nodeep-scrub to be unset"
        return ""

    def _is_open(self, at: float) -> bool:
        return self._task.any_hour or open_at(self._view.rules, at, self._task.rates.zone)

    @property
    def _ahead(self) -> Optional[Beginning]:
        """What is lost until the pace is found; None where no objective limits it."""
        return self._beginning if self._watch.sets_the_pace else None

    def _look_at_objectives(self) -> None:
        """Judge the newest window since the last change, and change the pace by it."""
        change = self._watch.follow()
        if change != SAME:
            # what was learnt, and what is to be rested from, was under other bounds
            self._pace = Pace() if change == STRICTER else replace(self._pace, rest=0)
            if change == STRICTER:
                self._beginning = replace(self._beginning, at=self._clock.now())
            self._rests_until, self._changed = self._clock.monotonic(), self._clock.now()
            self._scrubbing = False
            self._looks.clear()
        self._scrubbing |= self._under_way() > 0
        # a clock that was set back must not put the windows of hours before that moment
        self._changed = min(self._changed, self._clock.now())
        window = self._watch.judge(self._changed)
        if window is None:
            return
        now = self._clock.now()
        if self._watch.missed and self._scrubbing:
            self._pace = self._pace.slower()
            self._rests_until = self._clock.monotonic() + self._pace.rest * self._watch.window_s
        elif self._watch.keeps_all and self._may_go_faster(window):
            self._pace = self._pace.faster()
        elif not self._watch.missed:
            return
        self._changed, self._scrubbing = now, self._under_way() > 0
        self._looks.clear()

    def _at_once(self) -> Optional[int]:
        """Scrubs at a time that may be asked for; None: OSDs and hosts alone limit them.

        Those that last into a stricter policy are few: what Ceph was asked for, it does to its end.
        """
        if self._watch.stricter_within(self._longest_s):
            return Pace().at_once
        return self._pace.at_once if self._watch.sets_the_pace else None

    def _ask(self) -> None:
        now = self._clock.monotonic()
        at_once = self._at_once()
        batch = next_scrubs(
            self._goal,
            self._view,
            set(self._requests),
            self._task.limits,
            at_once,
            self._task.despite_flags,
            self._trimmed_first(),
        )
        if batch and self._beginning.at is None:
            # its first window came before
            self._beginning = replace(self._beginning, at=self._clock.now() - self._watch.window_s)
        self._limited = at_once is not None and self._under_way() + len(batch) >= at_once
        overdue = [pgid for pgid, at in self._requests.items() if now - at >= ASK_AGAIN_S]
        for pgid in [*overdue, *(pg.pgid for pg in batch)]:
            if self._clock.monotonic() - now >= LOOK_S:
                # guard, hours, flags and time are looked at before the others
                break
            self._lock.check()
            try:
                self._cluster.commander.mon("pg deep-scrub", {"pgid": pgid})
            except CommandFailed as failure:
                if failure.code not in (-errno.EAGAIN, -errno.ENOENT):
                    raise
                # its primary is not there just now, or the PG was merged: the next look shows which
                continue
            except RetryLater as failure:
                if isinstance(failure, Locked):
                    raise
                # it may have been heard: it counts as asked for, and asking twice changes nothing
            self._requests[pgid] = now

    def _trimmed_first(self) -> FrozenSet[str]:
        """PGs that are not asked for, so that their snapshots are trimmed first."""
        now = self._clock.monotonic()
        pgids = [pg.pgid for pg in self._view.pgs if pg.pgid in self._goal and trims_next(pg, self._view.rules)]
        self._trims_since = {pgid: self._trims_since.get(pgid, now) for pgid in pgids}
        return frozenset(pgid for pgid, since in self._trims_since.items() if now - since < TRIM_BEGINS_S)

    def _without_damage(self, sight: Sight) -> Sight:
        """The guard is not to stop scrubs for what scrubs found."""
        errors = {name for name in sight.words.strip("()").split(", ") if name}
        if sight.health != HEALTH_ERR or not errors or not errors <= FOUND_BY_SCRUB:
            return sight
        self._damage = True
        return replace(sight, health="HEALTH_WARN", words="")

    def _pgids_to_do(self) -> List[str]:
        return [pgid for pgid, done in finished(self._goal, self._view).items() if not done]

    def _under_way(self) -> int:
        under_way = {pg.pgid for pg in self._view.pgs if pg.scrubbing and pg.pgid in self._goal}
        return len(under_way | set(self._requests))

    def _scrubbed_bytes(self) -> float:
        return sum(self._bytes[pgid] for pgid, done in finished(self._goal, self._view).items() if done)

    def _half_done_bytes(self) -> float:
        to_do = set(self._pgids_to_do())
        return sum(pg.progress * pg.raw_bytes for pg in self._view.pgs if pg.pgid in to_do)

    def _tell(self, waits_for: str) -> None:
        to_do = set(self._pgids_to_do())
        under_way = {pg.pgid for pg in self._view.pgs if pg.scrubbing and pg.pgid in to_do}
        left_bytes = sum(self._bytes[pgid] for pgid in to_do) - self._half_done_bytes()
        self._listen(
            DrainProgress(
                self._clock.now(),
                len(self._goal),
                len(self._goal) - len(to_do),
                len(under_way),
                len(set(self._requests) - under_way),
                left_bytes,
                self._at_once(),
                self._expectation.finish_at(
                    self._clock.now() + max(0.0, self._rests_until - self._clock.monotonic()),
                    left_bytes,
                    _rules(self._task, self._view),
                    self._ahead,
                ),
                waits_for,
                self._watch.means,
                self._watch.words,
                waiting_trims(self._view),
            )
        )

    def _outcome(self, began: float, reason: str) -> DrainOutcome:
        done = finished(self._goal, self._view)
        to_do = tuple(pgid for pgid in self._goal if pgid in done and not done[pgid])
        remarks = []
        under_way = [pg.pgid for pg in self._view.pgs if pg.scrubbing and pg.pgid in to_do]
        if to_do and (under_way or self._requests):
            pgids = first_of(dict.fromkeys([*under_way, *self._requests]), 8)
            remarks.append(f"scrubs that were asked for go on to their end: {pgids}")
        if self._damage:
            remarks.append("scrubs found damage: see `ceph health detail`")
        return DrainOutcome(
            began,
            self._clock.now(),
            len(self._goal),
            sum(done.values()),
            len(self._goal) - len(done),
            self._scrubbed_bytes(),
            self._watch.windows,
            self._watch.windows_missed,
            reason,
            to_do,
            tuple(remarks),
        )
