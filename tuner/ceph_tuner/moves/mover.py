"""Carries a plan out: one small step after the other, each once the last one's data is where it belongs.

A step is some PGs at a time. After a window of moves that kept the objectives the next may be larger, after one that
missed any it is half as large. What is begun goes on to its end: Ceph has no command that pauses one PG's backfill.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.ceph.uninterrupted import uninterrupted
from ceph_tuner.core.changes.lock import Lock
from ceph_tuner.core.errors import CommandFailed, TunerError
from ceph_tuner.core.hours import Hours
from ceph_tuner.core.moments import utc_minute
from ceph_tuner.core.wording import first_of
from ceph_tuner.moves import MapWrite, MovePlan, total_bytes
from ceph_tuner.moves.forecast import FinishTime, MoveForecast, open_s
from ceph_tuner.moves.map_view import read_map
from ceph_tuner.moves.pgs_plan import PoolIs
from ceph_tuner.moves.record import MoveRecord, MoveStore
from ceph_tuner.moves.reweight_plan import ReweightPlan
from ceph_tuner.moves.switches import autoscaled, balancer_on
from ceph_tuner.moves.weights import nothing_to_do, weighs, weights_begun, write_weights
from ceph_tuner.pacing.client_watch import LOOK_S, SAME, STRICTER, WINDOW_S, ClientWatch, Silence
from ceph_tuner.pacing.pace import Pace
from ceph_tuner.pacing.wanted import WantedObjectives

REPORTED_S = 10.0
"""PGs say where they are some seconds after a map that moves them; those that do not tell by which map they say it."""
REFUSED_S = 30.0
"""An entry that is not in the map by then was dropped by the monitors."""
REFUSALS = 3
"""So often an entry is written before its PG is passed over."""
NAMED_PGS = 8
STOPPING = ("norebalance", "nobackfill", "norecover", "pauserd", "pausewr")
"""Flags under which no data moves: the operator's, so they are waited for, never cleared. `pause` is the last two."""

DONE, STUCK, INTERRUPTED = "done", "stuck", "interrupted"


@dataclass(frozen=True)
class MoveTask:
    """Within which bounds data is moved."""

    wanted: WantedObjectives = field(default_factory=WantedObjectives)
    baseline: Mapping[str, float] = field(default_factory=dict)
    window_s: float = WINDOW_S
    hours: Hours = field(default_factory=Hours)
    """Of the week; none is all of it."""
    at_most: int = 8
    """PGs at a time."""
    balancer_fights: str = ""
    """What the balancer would do about it; empty where it does nothing."""
    autoscaled_pools: FrozenSet[str] = frozenset()
    """Pools whose autoscaler would undo it."""


@dataclass(frozen=True)
class MoveProgress:
    """How far it is."""

    at: float
    left: Optional[int]
    """PGs that are still to be moved; None before CRUSH has the weights, when nobody knows which will be."""
    left_bytes: float
    moved: int
    moved_bytes: float
    under_way: int
    at_once: int
    finish: Optional[FinishTime]
    waits_for: str = ""
    means: Mapping[str, float] = field(default_factory=dict)
    keeps: str = ""
    """Which objectives hold now, for people."""


@dataclass(frozen=True)
class MoveOutcome:
    """How it ended."""

    began: float
    ended: float
    reason: str
    """DONE, STUCK or INTERRUPTED."""
    moved: int
    moved_bytes: float
    steps: int
    windows: int
    windows_missed: int
    left: Tuple[str, ...] = ()
    held: int = 0
    """PGs that entries of this move hold where they are."""
    remarks: Tuple[str, ...] = ()

    def to_dict(self) -> Dict[str, Any]:
        """Plain values, for programs."""
        return {**self.__dict__, "left": list(self.left), "remarks": list(self.remarks)}


Listener = Callable[[MoveProgress], None]


class Mover:
    """One move, under the lock. `run` ends when all is moved, when nothing can be, or by Ctrl-C."""

    def __init__(
        self,
        cluster: Cluster,
        task: MoveTask,
        plan: MovePlan,
        record: MoveRecord,
        lock: Lock,
        listen: Listener = lambda progress: None,
    ) -> None:
        self._cluster, self._task, self._plan, self._record = cluster, task, plan, record
        self._lock, self._listen, self._clock = lock, listen, cluster.clock
        self._store = MoveStore(cluster.store)
        self._view = read_map(cluster)
        self._watch = ClientWatch(cluster, task.wanted, task.baseline, task.window_s, len(self._view.osds))
        self._pace = Pace()
        self._begun: Dict[str, Tuple[MapWrite, float]] = {}
        self._epochs: Dict[str, int] = {}
        """PGs that are on their way -> an OSD map that has their entry."""
        self._there_since: Dict[str, float] = {}
        """Pools' numbers that are as wanted -> since when all of their PGs have been settled."""
        self._owed: List[MapWrite] = []
        """What has to follow a write, and could not be written."""
        self._passed_over: Dict[str, str] = {}
        """What the monitors did not take, and why."""
        self._refusals: Dict[str, int] = {}
        self._forecast = MoveForecast()
        self._step_bytes, self._step_pgs, self._arrived = 0.0, 0, 0
        self._stepped = self._changed = self._clock.now()
        """`_changed`: what came after it is judged. Steps of one pace that follow each other are judged together."""
        self._ended = self._step_began = self._clock.monotonic()
        """When the last step ended, and this one began; durations are told by the clock that nobody sets."""
        self._before_step_s = 0.0
        """From the one to the other, closed hours left out."""
        self._moving = self._kept = False
        """Whether data has been on its way since the last change, and whether a window of that kept the objectives."""
        self._waited = True
        self._missed_in_step = False
        self._rests_until = self._clock.monotonic()
        self._moved = self._steps = 0
        self._moved_bytes = 0.0
        self._remarks: List[str] = []

    def run(self) -> MoveOutcome:
        """Move. Raises Locked where the lock is lost, TunerError where the cluster is silent for ten minutes."""
        began = self._clock.now()
        silence, reason = Silence(), DONE
        self._record = self._store.save(self._record, began)
        self._take_held()
        if nothing_to_do(self._view, self._plan) and not self._half_weighed():
            # nothing to measure objectives for
            return self._over(began, DONE)
        try:
            self._watch.begin(self._tell)
            self._changed = self._stepped = self._clock.now()
            self._ended = self._clock.monotonic()
            while True:
                try:
                    self._view = read_map(self._cluster)
                    over = self._turn()
                    silence.ended()
                except TunerError as failure:
                    silence.bear(failure, self._clock.monotonic())
                    over = ""
                if over:
                    reason = over
                    break
                self._clock.sleep(LOOK_S)
        except KeyboardInterrupt:
            reason = INTERRUPTED
            with uninterrupted():
                self._write_owed()
        return self._over(began, reason)

    def _over(self, began: float, reason: str) -> MoveOutcome:
        outcome = self._outcome(began, reason)
        self._store.save(self._record.changed(state=reason), self._clock.now())
        return outcome

    def _turn(self) -> str:
        """One look: what has arrived, whether the next step may begin. Gives how it ended, once it has."""
        self._write_owed()
        if self._half_weighed():
            # what is not held moves already: hours and clients are no reason to wait
            self._weigh(self._plan.weights_first or self._plan.weights_last)
            return ""
        self._settle()
        waits_for = self._waits_for()
        self._waited |= bool(waits_for)
        if not self._begun:
            if not waits_for and self._plan.weights_first and not (self._record.weighed and self._weights_are()):
                self._weigh(self._plan.weights_first)
                return ""
            self._take_held()
            if not self._bytes_to_do():
                if self._passed_over:
                    return STUCK
                if not waits_for:
                    return self._last()
            elif not waits_for:
                waits_for = self._begin_step()
                if waits_for and self._none_moves():
                    self._remarks.append(waits_for)
                    return STUCK
        self._tell(waits_for)
        return ""

    def _weights_are(self) -> bool:
        """Whether the weights that come first are in force."""
        weights = self._plan.weights_first
        return all(weighs(self._view, osd, weight) for osd, weight in weights.items())

    def _take_held(self) -> None:
        """Which PGs are held, once all are."""
        if isinstance(self._plan, ReweightPlan) and self._record.weighed:
            self._plan = replace(self._plan, held=self._store.held(self._record))

    def _half_weighed(self) -> bool:
        """Whether weights were written and not all PGs held: it was killed, or a monitor did not answer."""
        weights = self._plan.weights_first or self._plan.weights_last
        any_in_force = any(weighs(self._view, osd, weight) for osd, weight in weights.items())
        return any_in_force and not self._record.weighed and weights_begun(self._store, self._record, weights)

    def _last(self) -> str:
        weights = self._plan.weights_last
        if not all(weighs(self._view, osd, weight) for osd, weight in weights.items()):
            self._weigh(weights)
        return DONE

    def _weigh(self, weights: Mapping[int, float]) -> None:
        weights = {osd: weight for osd, weight in weights.items() if osd in self._view.osds}
        with uninterrupted():
            if self._record.weighed:
                self._record = self._store.save(self._record.changed(weighed=False), self._clock.now())
            loose = write_weights(self._cluster, self._lock, self._store, self._record, self._view, weights)
        if loose:
            self._remarks.append(f"no entry can hold these PGs, so they move at once: {first_of(loose, NAMED_PGS)}")
        self._record = self._store.save(self._record.changed(weighed=True), self._clock.now())
        self._changed = self._stepped = self._clock.now()
        self._ended = self._clock.monotonic()

    def _settle(self) -> None:
        now = self._clock.monotonic()
        told_epochs = {pg.pgid: pg.told_epoch for pg in self._view.pgs}
        # a map that is read after the write has it
        self._epochs = {key: self._epochs.get(key, self._view.epoch) for key in self._begun}
        for key, (write, at) in list(self._begun.items()):
            if now - at < REPORTED_S and told_epochs.get(key, -1) < self._epochs[key]:
                continue
            if write.arrival.arrived(self._view):
                # the mgr changes a pool's numbers some time after the write, and PGs tell of it later still
                if isinstance(write.arrival, PoolIs) and now - self._there_since.setdefault(key, now) < REPORTED_S:
                    continue
                self._there_since.pop(key, None)
                self._moved += 1
                self._moved_bytes += write.moved_bytes
                self._step_pgs += write.moved_pgs
                self._step_bytes += write.moved_bytes
                self._arrived += 1
                del self._begun[key]
                continue
            self._there_since.pop(key, None)
            if now - at >= REFUSED_S and write.arrival.refused(self._view):
                # a merge of the PG drops its entry as well: it is written again
                self._refusals[key] = self._refusals.get(key, 0) + 1
                if self._refusals[key] >= REFUSALS:
                    self._passed_over[key] = "another entry is there than was written"
                del self._begun[key]
        if self._begun or not self._arrived:
            return
        if self._step_pgs:
            # a split moves no PG
            took_s = self._before_step_s + now - self._step_began
            self._forecast = self._forecast.after(self._step_pgs, self._step_bytes, took_s)
        self._step_bytes, self._step_pgs, self._arrived = 0.0, 0, 0
        self._stepped, self._ended = self._clock.now(), now
        may_speed_up = self._kept or not self._watch.sets_the_pace
        if may_speed_up and not self._missed_in_step and self._pace.at_once < self._task.at_most:
            faster = self._pace.faster()
            self._pace_is(replace(faster, at_once=min(faster.at_once, self._task.at_most)))
        self._missed_in_step = False

    def _waits_for(self) -> str:
        """Why no step may begin; nothing where one may."""
        self._look_at_objectives()
        now = self._clock.now()
        reason = self._watch.reason()
        if reason:
            return reason
        rest_s = self._rests_until - self._clock.monotonic()
        if rest_s > 0:
            return f"a rest of {rest_s:.0f} s: one PG at a time was too much"
        hours = self._task.hours
        if (hours.spans or hours.dated) and not hours.covers(now):
            begins = hours.begins(now)
            return f"--hours, at {utc_minute(begins)}" if begins is not None else "--hours"
        flags = [flag for flag in STOPPING if flag in self._view.flags]
        if flags:
            return f"{', '.join(flags)} to be unset: nothing moves until then, nor what is on its way"
        pools = [
            pool.name
            for pool in self._view.pools.values()
            if pool.name not in self._task.autoscaled_pools
            and (pool.pg_num, pool.pgp_num) != (pool.pg_num_target, pool.pgp_num_target)
        ]
        if pools:
            return f"pg_num of {', '.join(pools)}, which Ceph is changing"
        pgids = [pg.pgid for pg in self._view.pgs if pg.degraded and pg.pgid not in self._begun]
        if pgids:
            return f"recovery of {len(pgids)} degraded PGs, which goes first"
        if self._task.balancer_fights and balancer_on(self._cluster):
            return f"the balancer to be off: {self._task.balancer_fights}"
        on = set(autoscaled(self._view, self._view.pools.values())) & self._task.autoscaled_pools
        return f"pg_autoscale_mode of {', '.join(sorted(on))} to be off" if on else ""

    def _look_at_objectives(self) -> None:
        change = self._watch.follow()
        if change != SAME:
            # what was learnt, and what is to be rested from, was under other bounds
            self._pace_is(Pace() if change == STRICTER else replace(self._pace, rest=0))
            self._rests_until, self._missed_in_step = self._clock.monotonic(), False
        # a clock that was set back must not put the windows of hours before that moment
        self._changed = min(self._changed, self._clock.now())
        window = self._watch.judge(self._changed)
        if window is None or not self._moving:
            return
        if self._watch.missed:
            self._pace_is(self._pace.slower())
            self._missed_in_step = bool(self._begun)
            self._rests_until = self._clock.monotonic() + self._pace.rest * self._task.window_s
        else:
            self._kept |= self._watch.keeps_all

    def _pace_is(self, pace: Pace) -> None:
        """What was judged so far says nothing of it."""
        self._pace, self._changed = pace, self._clock.now()
        self._moving, self._kept = bool(self._begun), False

    def _begin_step(self) -> str:
        """Write the next step. Gives why nothing could be."""
        writes = self._plan.writes(self._view, self._pace.at_once, frozenset(self._passed_over))
        if not writes:
            return f"PGs that can be moved now: {first_of(self._bytes_to_do(), NAMED_PGS)} cannot"
        self._step_began, now = self._clock.monotonic(), self._clock.now()
        # closed hours are counted where the forecast comes to them, and not as part of a step
        closed_s = max(0.0, now - self._stepped - open_s(self._stepped, now, self._task.hours))
        self._before_step_s = max(0.0, self._step_began - self._ended - closed_s)
        if self._waited:
            # what was kept while nothing moved says nothing of what moves now
            self._changed, self._kept = now, False
        self._moving, self._waited = True, False
        self._steps += 1
        for write in writes:
            self._store.remember_undo(self._record, write.key, write.undo)
        # an interrupt must not come between a write and the one that has to follow it
        with uninterrupted() if any(write.follows for write in writes) else nullcontext():
            self._write(writes)
        return ""

    def _write(self, writes: Sequence[MapWrite]) -> None:
        for number, write in enumerate(writes):
            if not write.follows:
                self._lock.check()
            prefix, arguments = write.command
            try:
                self._cluster.commander.mon(prefix, arguments)
            except CommandFailed as failure:
                self._passed_over[write.key] = failure.message.strip()[:200]
                if any(each.follows for each in writes[number + 1 :]):
                    return
                continue
            except TunerError:
                # it may have been heard, so what has to follow is written before all else
                self._owed = [each for each in writes[number:] if each.follows]
                raise
            self._begun[write.key] = (write, self._clock.monotonic())
            self._epochs.pop(write.key, None)

    def _write_owed(self) -> None:
        if self._owed:
            self._lock.check()
            self._write(self._owed)
            self._owed = []

    def _none_moves(self) -> bool:
        """Whether waiting would change nothing: all PGs are where they are to be."""
        return all(pg.settled for pg in self._view.pgs)

    def _bytes_to_do(self) -> Dict[str, float]:
        return self._plan.left(self._view, frozenset(self._passed_over))

    def _tell(self, waits_for: str) -> None:
        to_do = self._bytes_to_do()
        now = self._clock.now()
        # before CRUSH has the weights, nobody knows what moves
        unknown = bool(self._plan.weights_first) and not self._record.weighed
        since = self._stepped if self._begun else now + max(0.0, self._rests_until - self._clock.monotonic())
        self._listen(
            MoveProgress(
                now,
                None if unknown else len(to_do),
                total_bytes(to_do),
                self._moved,
                self._moved_bytes,
                len(self._begun),
                self._pace.at_once,
                None
                if unknown
                else self._forecast.finish(now, since, len(to_do), total_bytes(to_do), self._task.hours),
                waits_for,
                self._watch.means,
                self._watch.words,
            )
        )

    def _outcome(self, began: float, reason: str) -> MoveOutcome:
        to_do = list(self._bytes_to_do()) if reason != DONE else []
        remarks = [*self._remarks, *(f"{key} was not taken: {why}" for key, why in self._passed_over.items())]
        if self._begun:
            remarks.append(f"what is on its way goes on to its end: {first_of(self._begun, NAMED_PGS)}")
        held_pgs = len(self._store.held(self._record)) if not isinstance(self._plan, ReweightPlan) else len(to_do)
        return MoveOutcome(
            began,
            self._clock.now(),
            reason,
            self._moved,
            self._moved_bytes,
            self._steps,
            self._watch.windows,
            self._watch.windows_missed,
            (*to_do, *self._passed_over),
            held_pgs,
            tuple(remarks),
        )
