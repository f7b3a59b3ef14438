"""Carries a plan out: so many PGs at a time, the next as soon as one is where it belongs.

How many is the pace. After a window of moves that kept the objectives there may be more, after one that missed any half
as many. What is begun goes on to its end: Ceph has no command that pauses one PG's backfill.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Collection, Dict, FrozenSet, List, Mapping, Optional, Sequence, Set, Tuple

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.ceph.uninterrupted import uninterrupted
from ceph_tuner.core.changes.lock import Lock
from ceph_tuner.core.errors import CommandFailed, TunerError
from ceph_tuner.core.hours import Hours
from ceph_tuner.core.moments import utc_minute
from ceph_tuner.core.wording import first_of
from ceph_tuner.moves import MapView, MapWrite, MovePlan, total_bytes
from ceph_tuner.moves.forecast import FinishTime, MoveForecast, open_s
from ceph_tuner.moves.map_view import read_map
from ceph_tuner.moves.record import MoveRecord, MoveStore
from ceph_tuner.moves.reweight_plan import ReweightPlan
from ceph_tuner.moves.switches import autoscaled, balancer_on
from ceph_tuner.moves.under_way import UnderWay
from ceph_tuner.moves.weights import nothing_to_do, weighs, weights_begun, write_weights
from ceph_tuner.pacing.client_watch import LOOK_S, SAME, STRICTER, WINDOW_S, ClientWatch, Silence
from ceph_tuner.pacing.pace import Pace
from ceph_tuner.pacing.wanted import WantedObjectives

NAMED_PGS = 8
STOPPING = ("norebalance", "nobackfill", "norecover", "pauserd", "pausewr")
"""Flags under which no data moves: the operator's, so they are waited for, never cleared. `pause` is the last two."""

DONE, STUCK, HOURS_OVER, INTERRUPTED = "done", "stuck", "its hours are over", "interrupted"


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
    """PGs whose data is on its way."""
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
    """DONE, STUCK, HOURS_OVER or INTERRUPTED."""
    moved: int
    moved_bytes: float
    steps: int
    """Looks at which something was begun."""
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


def never_again(hours: Hours, now: float) -> bool:
    """Whether none of the hours is still to come, as all of them are dates that have passed."""
    return bool(hours) and hours.begins(now) is None


def waits_in(view: MapView, own_pools: Collection[str], begun: Collection[str] = ()) -> str:
    """Why a cluster as it is lets nothing begin; empty where it does.

    `own_pools`: those whose number of PGs is the move's own; `begun`: its PGs that are on their way.
    """
    flags = [flag for flag in STOPPING if flag in view.flags]
    if flags:
        return f"{', '.join(flags)} to be unset: nothing moves until then, nor what is on its way"
    pools = [
        pool.name
        for pool in view.pools.values()
        if pool.name not in own_pools and (pool.pg_num, pool.pgp_num) != (pool.pg_num_target, pool.pgp_num_target)
    ]
    if pools:
        return f"pg_num of {', '.join(pools)}, which Ceph is changing"
    degraded = sum(pg.degraded and pg.pgid not in begun for pg in view.pgs)
    return f"recovery of {degraded} degraded PGs, which goes first" if degraded else ""


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
        self._under_way = UnderWay()
        self._owed: List[MapWrite] = []
        """What has to follow a write, and could not be written."""
        self._forecast = MoveForecast()
        self._arrived: List[MapWrite] = []
        """In this round: as many PGs as are moved at a time."""
        self._took_s = 0.0
        """How long the round lasts, closed hours in which nothing was on its way left out."""
        self._looked = self._clock.now(), self._clock.monotonic()
        """Durations are told by the clock that nobody sets."""
        self._round_since = self._changed = self._clock.now()
        """`_changed`: what came after it is judged. Rounds of one pace that follow each other are judged together."""
        self._moving = self._kept = False
        """Whether data has been on its way since the last change, and whether a window of that kept the objectives."""
        self._waited = True
        self._missed_in_round = False
        self._rests_until = self._clock.monotonic()
        self._moved = self._steps = 0
        self._moved_bytes = 0.0
        self._remarks: List[str] = []

    def run(self) -> MoveOutcome:
        """Move. Raises Locked where the lock is lost, TunerError where the cluster is silent for ten minutes."""
        began = self._clock.now()
        silence, reason = Silence(), DONE
        self._record = self._store.save(self._record, began)
        if self._record.weighed:
            self._take_held()
        if nothing_to_do(self._view, self._plan) and not self._half_weighed():
            # nothing to measure objectives for
            return self._over(began, DONE)
        try:
            self._watch.begin(self._tell)
            self._begin_round()
            self._changed = self._clock.now()
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
        steps = self._forecast.steps or self._record.steps
        self._store.save(self._record.changed(state=reason, steps=steps), self._clock.now())
        return outcome

    def _turn(self) -> str:
        """One look: what has arrived, whether more may begin. Gives how it ended, once it has."""
        self._write_owed()
        if self._half_weighed():
            # what is not held moves already: hours and clients are no reason to wait
            self._weigh(self._plan.weights_first or self._plan.weights_last)
            return ""
        self._settle()
        waits_for = self._waits_for()
        if self._plan.weights_first and not (self._record.weighed and self._are_in_force(self._plan.weights_first)):
            if not waits_for and not self._under_way.begun:
                self._weigh(self._plan.weights_first)
                return ""
        elif self._under_way.begun or self._bytes_to_do():
            if not waits_for:
                waits_for = self._begin()
                if waits_for and self._none_moves():
                    self._remarks.append(waits_for)
                    return STUCK
        elif self._under_way.passed_over:
            return STUCK
        elif not waits_for or self._are_in_force(self._plan.weights_last):
            # where nothing is left to be written, neither hours nor clients are a reason to hold the lock
            return self._last()
        if not self._under_way.begun and never_again(self._task.hours, self._clock.now()):
            # it would wait, and hold the lock, for ever
            return HOURS_OVER
        self._waited |= bool(waits_for)
        self._tell(waits_for)
        return ""

    def _are_in_force(self, weights: Mapping[int, float]) -> bool:
        """Whether these weights are in force."""
        return all(weighs(self._view, osd, weight) for osd, weight in weights.items())

    def _take_held(self) -> None:
        """Which PGs are held, once all are."""
        if isinstance(self._plan, ReweightPlan):
            self._plan = replace(self._plan, held=self._store.held(self._record))

    def _half_weighed(self) -> bool:
        """Whether weights were written and not all PGs held: it was killed, or a monitor did not answer."""
        weights = self._plan.weights_first or self._plan.weights_last
        any_in_force = any(weighs(self._view, osd, weight) for osd, weight in weights.items())
        return any_in_force and not self._record.weighed and weights_begun(self._store, self._record, weights)

    def _last(self) -> str:
        weights = self._plan.weights_last
        if not self._are_in_force(weights):
            self._weigh(weights)
        return DONE

    def _weigh(self, weights: Mapping[int, float]) -> None:
        weights = {osd: weight for osd, weight in weights.items() if osd in self._view.osds}
        with uninterrupted():
            if self._record.weighed:
                self._record = self._store.save(self._record.changed(weighed=False), self._clock.now())
            loose = write_weights(self._cluster, self._lock, self._store, self._record, self._view, weights)
            self._take_held()
        if loose:
            self._remarks.append(f"no entry can hold these PGs, so they move at once: {first_of(loose, NAMED_PGS)}")
        self._record = self._store.save(self._record.changed(weighed=True), self._clock.now())
        self._begin_round()
        self._changed = self._clock.now()

    def _begin_round(self) -> None:
        self._arrived, self._took_s, self._round_since = [], 0.0, self._clock.now()
        self._looked = self._round_since, self._clock.monotonic()

    def _settle(self) -> None:
        """Take what has arrived. A round is over once as many PGs are there as are moved at a time, or all are."""
        (before, since), now, monotonic = self._looked, self._clock.now(), self._clock.monotonic()
        # closed hours are counted where the forecast comes to them, and not as part of a round
        closed_s = 0.0 if self._under_way.begun else max(0.0, now - before - open_s(before, now, self._task.hours))
        self._took_s += max(0.0, monotonic - since - closed_s)
        self._looked = now, monotonic
        arrived = self._under_way.settle(self._view, monotonic)
        self._moved += len(arrived)
        self._moved_bytes += sum(write.moved_bytes for write in arrived)
        self._arrived += arrived
        if not self._arrived or (self._under_way.begun and len(self._arrived) < self._pace.at_once):
            return
        pgs = sum(write.moved_pgs for write in self._arrived)
        if pgs:
            # a split moves no PG
            self._forecast = self._forecast.after(pgs, sum(each.moved_bytes for each in self._arrived), self._took_s)
        self._begin_round()
        may_speed_up = self._kept or not self._watch.sets_the_pace
        if may_speed_up and not self._missed_in_round and self._pace.at_once < self._task.at_most:
            faster = self._pace.faster()
            self._pace_is(replace(faster, at_once=min(faster.at_once, self._task.at_most)))
        self._missed_in_round = False

    def _waits_for(self) -> str:
        """Why nothing may begin; nothing where something may."""
        self._look_at_objectives()
        now = self._clock.now()
        reason = self._watch.reason()
        if reason:
            return reason
        rest_s = self._rests_until - self._clock.monotonic()
        if rest_s > 0:
            return f"a rest of {rest_s:.0f} s: one PG at a time was too much"
        hours = self._task.hours
        if hours and not hours.covers(now):
            begins = hours.begins(now)
            return f"--hours, at {utc_minute(begins)}" if begins is not None else "--hours"
        reason = waits_in(self._view, self._task.autoscaled_pools, self._under_way.begun)
        if reason:
            return reason
        if self._task.balancer_fights and balancer_on(self._cluster):
            return f"the balancer to be off: {self._task.balancer_fights}"
        on = set(autoscaled(self._view, self._view.pools.values())) & self._task.autoscaled_pools
        return f"pg_autoscale_mode of {', '.join(sorted(on))} to be off" if on else ""

    def _look_at_objectives(self) -> None:
        change = self._watch.follow()
        if change != SAME:
            # what was learnt, and what is to be rested from, was under other bounds
            self._pace_is(Pace() if change == STRICTER else replace(self._pace, rest=0))
            self._rests_until, self._missed_in_round = self._clock.monotonic(), False
        # a clock that was set back must not put the windows of hours before that moment
        self._changed = min(self._changed, self._clock.now())
        window = self._watch.judge(self._changed)
        if window is None or not self._moving:
            return
        if self._watch.missed:
            self._pace_is(self._pace.slower())
            self._missed_in_round = bool(self._under_way.begun)
            self._rests_until = self._clock.monotonic() + self._pace.rest * self._watch.window_s
        else:
            self._kept |= self._watch.keeps_all

    def _pace_is(self, pace: Pace) -> None:
        """What was judged so far says nothing of it."""
        self._pace, self._changed = pace, self._clock.now()
        self._moving, self._kept = bool(self._under_way.begun), False

    def _in_flight(self) -> Set[str]:
        """PGs whose data is on its way, also those that an earlier run has sent."""
        begun = self._under_way.begun.keys() & {pg.pgid for pg in self._view.pgs}
        return begun | self._plan.on_its_way(self._view)

    def _begin(self) -> str:
        """Write what there are places for. Gives why nothing could be, where nothing is on its way either."""
        begun, in_flight = self._under_way.begun, self._in_flight()
        places, passed_over = self._pace.at_once - len(in_flight), frozenset(self._under_way.passed_over)
        writes = self._plan.writes(self._view, places, passed_over, begun.keys()) if places > 0 else []
        if not writes:
            if begun:
                return ""
            if in_flight:
                return f"PGs that are on their way already: {first_of(sorted(in_flight), NAMED_PGS)}"
            return f"PGs that can be moved now: {first_of(self._bytes_to_do(), NAMED_PGS)} cannot"
        if not begun:
            self._round_since = self._clock.now()
        if self._waited:
            # what was kept while nothing moved says nothing of what moves now
            self._changed, self._kept = self._clock.now(), False
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
                self._under_way.passed_over[write.key] = failure.message.strip()[:200]
                if any(each.follows for each in writes[number + 1 :]):
                    return
                continue
            except TunerError:
                # it may have been heard, so what has to follow is written before all else
                self._owed = [each for each in writes[number:] if each.follows]
                raise
            self._under_way.begin(write, self._clock.monotonic())

    def _write_owed(self) -> None:
        if self._owed:
            self._lock.check()
            self._write(self._owed)
            self._owed = []

    def _none_moves(self) -> bool:
        """Whether waiting would change nothing: all PGs are where they are to be."""
        return all(pg.settled for pg in self._view.pgs)

    def _bytes_to_do(self) -> Dict[str, float]:
        return self._plan.left(self._view, frozenset(self._under_way.passed_over))

    def _tell(self, waits_for: str) -> None:
        to_do = self._bytes_to_do()
        now, left_bytes = self._clock.now(), total_bytes(to_do)
        # before CRUSH has the weights, nobody knows what moves
        unknown = bool(self._plan.weights_first) and not self._record.weighed
        rest_s = max(0.0, self._rests_until - self._clock.monotonic())
        since = self._round_since if self._under_way.begun else now + rest_s
        # as much as was left when the round began
        pgs = len(to_do) + sum(write.moved_pgs for write in self._arrived)
        bytes_to_do = left_bytes + sum(write.moved_bytes for write in self._arrived)
        self._listen(
            MoveProgress(
                now,
                None if unknown else len(to_do),
                left_bytes,
                self._moved,
                self._moved_bytes,
                len(self._in_flight()),
                self._pace.at_once,
                None if unknown else self._forecast.finish(now, since, pgs, bytes_to_do, self._task.hours),
                waits_for,
                self._watch.means,
                self._watch.words,
            )
        )

    def _outcome(self, began: float, reason: str) -> MoveOutcome:
        to_do = list(self._bytes_to_do()) if reason != DONE else []
        passed_over, begun = self._under_way.passed_over, self._under_way.begun
        remarks = [*self._remarks, *(f"{key} was not taken: {why}" for key, why in passed_over.items())]
        if begun:
            remarks.append(f"what is on its way goes on to its end: {first_of(begun, NAMED_PGS)}")
        if isinstance(self._plan, ReweightPlan):
            held_pgs = [pgid for pgid in self._plan.held_pgs(self._view) if pgid not in begun]
        else:
            held_pgs = list(self._store.held(self._record))
        return MoveOutcome(
            began,
            self._clock.now(),
            reason,
            self._moved,
            self._moved_bytes,
            self._steps,
            self._watch.windows,
            self._watch.windows_missed,
            (*to_do, *passed_over),
            len(held_pgs),
            tuple(remarks),
        )
