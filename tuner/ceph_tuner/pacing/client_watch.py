"""Watches clients while background work is done: are objectives kept, is the cluster well, is anything seen at all."""

from __future__ import annotations

from typing import Callable, Dict, List, Mapping, Optional, Tuple

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.errors import CommandFailed, InputError, Locked, PermissionRefused, RetryLater, TunerError
from ceph_tuner.core.goals.guard import Guard, Sight, Streaks
from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.slo import Objective
from ceph_tuner.core.goals.slo_calendar import SloCalendar
from ceph_tuner.core.measure.sample import Window
from ceph_tuner.core.moments import utc
from ceph_tuner.pacing.judged_windows import JudgedWindows, judged_s, judged_windows
from ceph_tuner.pacing.objectives import NO_OBJECTIVE, about_clients, bounds_of, metrics_of, missed, unseen
from ceph_tuner.pacing.wanted import WantedObjectives, stricter
from ceph_tuner.tune.on_cluster import ClusterLookout

LOOK_S = 5.0
"""Between two looks at least."""
WINDOW_S = 30.0
"""Seconds that objectives are judged by, where nobody says otherwise."""
SILENT_S = 600.0
"""So long a cluster may say nothing before the work ends."""
BLIND_WINDOWS = 3.0
"""So many windows' time without one that could be judged, and clients count as not seen."""

Excuse = Callable[[Sight], Sight]
"""Takes out of a sight what the work itself brings about and nobody is to wait for."""


def unexcused(sight: Sight) -> Sight:
    """Nothing is excused."""
    return sight


SAME, LOOSER, STRICTER = "same", "looser", "stricter"
"""What became of the objectives since the last look; stricter where a bound is new or tighter."""


class ClientWatch:
    """Objectives and the guard's rules, for as long as the work goes on. `begin` comes first, `follow` at each look."""

    def __init__(
        self,
        cluster: Cluster,
        wanted: WantedObjectives,
        baseline: Mapping[str, float],
        window_s: float,
        osds: int,
        look_s: float = LOOK_S,
        excuse: Excuse = unexcused,
    ) -> None:
        """`baseline`: what relative bounds refer to; what it lacks is measured by `begin`."""
        self._cluster, self._name, self._clock = cluster, cluster.name, cluster.clock
        self._wanted, self._baseline, self._osds = wanted, baseline, osds
        self._read_s, self._look_s, self._excuse = window_s, look_s, excuse
        self.window_s = judged_s(osds, window_s)
        """How long a window is."""
        self._now = wanted.at(self._clock.now())
        self._read_at = self._clock.monotonic()
        """When the objectives were read last."""
        self._scopes = wanted.scopes
        self._window_source: Optional[JudgedWindows] = (
            judged_windows(cluster, osds, self._scopes, window_s) if wanted.ever else None
        )
        self._without_windows = ""
        """Why there can be none."""
        self._lookout = ClusterLookout(cluster.commander, cluster.clock)
        self._guard: Optional[Guard] = None
        self._before: Optional[Sight] = None
        self._streaks = Streaks()
        self._usual: Dict[str, float] = dict(baseline)
        self._had_any = False
        """Whether there was an objective about clients since the work began."""
        self._held: Dict[Objective, float] = {}
        self._boundless: List[Objective] = []
        """Relative to a baseline that is not known."""
        self._hold()
        self._edge: Tuple[Optional[SloCalendar], Optional[int]] = (None, None)
        """A calendar, and when another policy of it begins next."""
        self._unseen: List[Objective] = []
        self._first = False
        """Whether nothing was held against these objectives yet."""
        self._judged_at = self._clock.now()
        """When the last window that was judged ended."""
        self._judged_monotonic = self._clock.monotonic()
        """The same by the clock that nobody sets."""
        self._counted_until = 0.0
        self.means: Mapping[str, float] = {}
        """Of the last window."""
        self.missed: List[Objective] = []
        """By the last window."""
        self.windows = self.windows_missed = 0
        """That objectives were held against; those that overlap count once."""

    @property
    def has_objectives(self) -> bool:
        """Whether there is an objective about clients now."""
        return bool(self._held or self._boundless)

    @property
    def sets_the_pace(self) -> bool:
        """Whether work goes on at the pace that objectives allowed.

        A policy of the calendar may lift them. Where they are gone otherwise, nobody said that all may go at once: an
        operator may be about to set others.
        """
        lifted = self._wanted.calendar is not None and bool(self._wanted.calendar.policies)
        return self.has_objectives or (self._had_any and not lifted)

    def stricter_within(self, seconds: float) -> bool:
        """Whether a policy begins within that time whose bounds are new or tighter: what is begun now lasts into it."""
        calendar, now = self._wanted.calendar, self._clock.now()
        if calendar is None or not calendar.policies:
            return False
        edge_of, begins = self._edge
        if edge_of is not calendar or begins is None or begins <= now:
            begins = calendar.ends(now)
            self._edge = (calendar, begins)
        if begins is None or begins - now > seconds:
            return False
        return stricter(self._bounds(), bounds_of(self._wanted.at(begins).slo, self._usual))

    @property
    def keeps_all(self) -> bool:
        """Whether the last window showed every objective, and kept it."""
        return not (self.missed or self._unseen or self._first or self._boundless or self._without_windows)

    @property
    def words(self) -> str:
        """What is kept now, for people."""
        return f"{self._now.words}{self._wanted.problem}"

    def begin(self, tell: Callable[[str], None]) -> None:
        """A window without the work: what relative bounds refer to, and what clients usually do.

        Raises InputError where it does not show an objective, RetryLater where the cluster is not seen.
        """
        self._measure_first(tell)
        sight = self._lookout.look()
        if sight is None:
            raise RetryLater(f"the state of {self._name} is not seen", "see whether `ceph -s` answers")
        self._before = self._excuse(sight)
        self._guard = self._guarded()

    def _guarded(self) -> Optional[Guard]:
        if self._before is None:
            return None
        return Guard(Judge(self._now.slo or NO_OBJECTIVE, self._usual), self._before, streaks=self._streaks)

    def _hold(self) -> None:
        """Take the bounds of what is wanted now."""
        bounds = bounds_of(self._now.slo, self._usual)
        self._held = {objective: bound for objective, bound in bounds.items() if bound is not None}
        self._boundless = [objective for objective, bound in bounds.items() if bound is None]
        self._had_any |= bool(bounds)

    def _measure_first(self, tell: Callable[[str], None]) -> None:
        if self._window_source is None:
            return
        self._window_source.look()
        start, began = self._clock.now(), self._clock.monotonic()
        window = None
        while window is None:
            if self._clock.monotonic() - began > SILENT_S:
                raise RetryLater(f"{self._name} gave no window for {SILENT_S:g} s", "see whether `ceph -s` answers")
            tell("a first window, before anything is begun")
            self._clock.sleep(min(LOOK_S, self.window_s / 3))
            self._window_source.look()
            window = self._window_source.window(start)
        self._usual = {**window.means, **self._baseline}
        self._hold()
        absent = unseen(about_clients(self._now.slo), window.means)
        if absent:
            words = f"{metrics_of(absent)}, which the first window does not show"
            raise InputError("--keep", words, "a metric of clients that is seen (`ceph-tuner watch --once`)")
        if self._boundless:
            words = f"{metrics_of(self._boundless)} relative to a baseline in which no client was seen"
            raise InputError("--keep", words, "a bound in units, such as client.p95_ms<=20")
        if self.has_objectives:
            self._take(window)

    def follow(self) -> str:
        """Hold the work to what is wanted now: another policy of the calendar, or what an operator set meanwhile.

        Gives SAME, LOOSER or STRICTER. What is stored is read again once a window. New objectives let nothing begin
        before a window was held against them.
        """
        monotonic = self._clock.monotonic()
        if monotonic - self._read_at >= self._read_s:
            self._wanted.read_again()
            self._read_at = monotonic
            # what was measured at the beginning stays what it is compared with
            self._usual = {**self._wanted.newer_baseline(), **self._usual}
        now = self._wanted.at(self._clock.now())
        before, had_any = self._bounds(), self.has_objectives
        if now != self._now or self._boundless:
            self._now = now
            self._hold()
            self._guard = self._guarded()
        if not self.has_objectives:
            self.missed, self._unseen, self._first, self._without_windows = [], [], False, ""
            return LOOSER if had_any else SAME
        if self._bounds() == before:
            self._find_windows()
            return SAME
        if not had_any or not set(self._wanted.scopes) <= set(self._scopes):
            # nobody has looked, or not at all of it
            self._window_source, self._scopes = None, self._wanted.scopes
        self._find_windows()
        if self._first:
            self.missed, self._unseen = [], []
        else:
            self.missed = missed(self._held, self.means, self._usual)
            self._unseen = unseen(self._held, self.means)
        return STRICTER if stricter(before, self._bounds()) else LOOSER

    def _bounds(self) -> Dict[Objective, Optional[float]]:
        return {**self._held, **dict.fromkeys(self._boundless)}

    def _find_windows(self) -> None:
        """Begin to look at clients where there are objectives and nobody looks."""
        if not self.has_objectives or (self._window_source is not None and not self._without_windows):
            return
        try:
            self._window_source = judged_windows(self._cluster, self._osds, self._scopes, self.window_s)
        except TunerError as fault:
            # such as too many OSDs to look from here, and no plugin that does: nothing more begins
            self._without_windows = str(fault)
            return
        self._without_windows, self._first = "", True
        self._judged_at, self._judged_monotonic = self._clock.now(), self._clock.monotonic()

    def judge(self, since: float) -> Optional[Window]:
        """Hold the newest window of what came after a moment against the objectives; None while there is none."""
        if self._window_source is None or not self.has_objectives:
            return None
        self._window_source.look()
        window = self._window_source.window(since)
        if window is not None:
            self._take(window)
        return window

    def reason(self) -> str:
        """Why nothing may be begun now; empty where something may."""
        sight = self._lookout.look()
        breach = None if self._guard is None else self._guard.watch(None if sight is None else self._excuse(sight))
        if breach is not None:
            return breach.reason
        if not self.has_objectives:
            return ""
        if self._without_windows:
            return f"{metrics_of(list(self._held))} to be seen: {self._without_windows}"
        if self._boundless:
            return f"a baseline of {metrics_of(self._boundless)}, which is relative to one"
        if self._blind():
            return f"clients are not seen since {utc(self._judged_at)}"
        if self._first:
            return "a first window under other objectives"
        if self.missed:
            return "; ".join(self._words(objective) for objective in self.missed)
        return f"{metrics_of(self._unseen)} is not seen" if self._unseen else ""

    def _blind(self) -> bool:
        """Whether no window came for so long that the last one says nothing of the present."""
        if self._window_source is None:
            return False
        age_s = self._clock.monotonic() - self._judged_monotonic
        return age_s > BLIND_WINDOWS * max(self._window_source.seconds, self._look_s)

    def _take(self, window: Window) -> None:
        means = window.means
        if window.end != self._judged_at:
            self._judged_monotonic = self._clock.monotonic() - max(0.0, self._clock.now() - window.end)
        self.means, self._judged_at, self._first = means, window.end, False
        self.missed = missed(self._held, means, self._usual)
        self._unseen = unseen(self._held, means) if not self.missed else []
        if self._unseen:
            # it was held against none of them
            return
        if window.start < self._counted_until - 0.5:
            # windows slide: most of this one is counted
            return
        self._counted_until = window.end
        self.windows += 1
        self.windows_missed += bool(self.missed)

    def _words(self, objective: Objective) -> str:
        value = self.means.get(objective.metric)
        words = "not seen while clients wait" if value is None else f"at {value:.4g}"
        return f"{objective.metric} {words}, to be {objective.comparison} {self._held[objective]:.4g}"


class Silence:
    """Bears a cluster that does not answer for a while, as during a failover of its mgr."""

    def __init__(self) -> None:
        self._since: Optional[float] = None

    def ended(self) -> None:
        """It answered."""
        self._since = None

    def bear(self, failure: Exception, now: float) -> None:
        """Raise the failure where it is none that passes by itself, or where ten minutes went by."""
        is_transient = isinstance(failure, (RetryLater, CommandFailed))
        if not is_transient or isinstance(failure, (Locked, PermissionRefused)):
            raise failure
        self._since = now if self._since is None else self._since
        if now - self._since >= SILENT_S:
            raise failure
