"""Rates out of cumulative counters that stop, start again and arrive late.

A counter only rises while its daemon lives. Whatever else it does (falls, comes with an older stamp, belongs to
a daemon that was restarted, was silent for a minute) makes no rate, and never a negative or an absurd one.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import takewhile
from typing import Deque, Dict, Hashable, Iterable, List, Mapping, Optional, Sequence, Tuple


@dataclass(frozen=True)
class DaemonReport:
    """A daemon's counters at `at` (seconds, by the clock that stamps them); `born` changes when it is restarted."""

    at: float
    values: Mapping[str, float]
    born: int = 0


@dataclass(frozen=True)
class Rise:
    """How much a daemon's counters rose during the `seconds` up to `at`."""

    at: float
    seconds: float
    values: Mapping[str, float]

    def rate(self, counter: str) -> Optional[float]:
        """Rise per second; None for a counter that the daemon does not have."""
        value = self.values.get(counter)
        return None if value is None else value / self.seconds


_Kept = Tuple[float, int, Tuple[str, ...], Tuple[float, ...]]
"""A report's time and birth, its counters' names and values.

A tuple of plain values, which Python's garbage collection leaves out: of 10 000 daemons they would be most of its work.
"""


class Meter:
    """Turns successive reports of daemons into rises.

    A daemon whose report has not changed since the last look keeps its last rise for `hold_s`: daemons report at
    their own beat, and a look that falls between two reports must not see half of the cluster stand still.
    """

    def __init__(self, hold_s: float = 15.0, longest_s: float = 60.0) -> None:
        if not 0 <= hold_s <= longest_s:
            raise ValueError(f"hold_s must be in 0..{longest_s}, got {hold_s}")
        self._hold_s, self._longest_s = hold_s, longest_s
        self._reports: Dict[Hashable, _Kept] = {}
        self._names: Dict[Tuple[str, ...], Tuple[str, ...]] = {}
        """Names of counters, once for all daemons that have the same."""
        self._rises: Dict[Hashable, Rise] = {}

    def look(self, daemon: Hashable, report: DaemonReport, now: float, turn_s: float = 0.0) -> Optional[Rise]:
        """Rise up to this report, or None where there is nothing to compare it with.

        `turn_s` is how long it may take until a daemon is looked at again; silence is counted beyond it.
        """
        last_report = self._reports.get(daemon)
        at, born = (last_report[0], last_report[1]) if last_report is not None else (report.at, report.born)
        if last_report is not None and born == report.born and report.at <= at:
            # not newer; a stamp that goes back is a clock that was set, and the baseline must follow it at once:
            # once the stamps have caught up, all that was done meanwhile would count as done in a moment
            if report.at < at:
                self._start(daemon, report)
            last_rise = self._rises.get(daemon)
            return last_rise if last_rise and abs(now - last_rise.at) <= self._hold_s else None
        self._start(daemon, report)
        if last_report is None or born != report.born or report.at - at > self._longest_s + turn_s:
            return None
        before = dict(zip(last_report[2], last_report[3]))
        values = {name: value - before[name] for name, value in report.values.items() if name in before}
        if values and min(values.values()) < 0:
            return None
        rise = Rise(report.at, report.at - at, values)
        if turn_s <= self._hold_s:
            # looked at less often than that, a daemon always has a newer report
            self._rises[daemon] = rise
        return rise

    def keep_only(self, daemons: Iterable[Hashable]) -> None:
        """Forget daemons that are gone, so that one that comes back starts afresh."""
        for daemon in self._reports.keys() - daemons:
            del self._reports[daemon]
            self._rises.pop(daemon, None)

    def _start(self, daemon: Hashable, report: DaemonReport) -> None:
        names = tuple(report.values)
        names = self._names.setdefault(names, names)
        self._reports[daemon] = (report.at, report.born, names, tuple(report.values.values()))
        self._rises.pop(daemon, None)


@dataclass(frozen=True)
class WorkRates:
    """What `daemons` did together: the sums of their rates."""

    daemons: int
    rates: Mapping[str, float]

    @classmethod
    def of(cls, rises: Sequence[Rise]) -> WorkRates:
        """Add up the rises of several daemons, each over its own stretch of time."""
        rates: Dict[str, float] = {}
        for rise in rises:
            for name, value in rise.values.items():
                rates[name] = rates.get(name, 0.0) + value / rise.seconds
        return cls(len(rises), rates)

    def scaled(self, factor: float) -> WorkRates:
        """The same with other rates."""
        return WorkRates(self.daemons, {name: factor * rate for name, rate in self.rates.items()})


class WorkInTurns:
    """Adds up the work of daemons that are looked at in turns: each part's last work, held until its next turn."""

    def __init__(self) -> None:
        self._count = 1
        self._parts: Dict[int, Tuple[float, WorkRates]] = {}

    def put(self, part: int, count: int, at: float, work: WorkRates) -> None:
        """Take the work of part `part` of `count`; another count begins anew."""
        if count != self._count:
            self._count, self._parts = count, {}
        self._parts.pop(part, None)
        if work.daemons:
            self._parts[part] = (at, work)

    def together(self, since: float) -> Tuple[Optional[WorkRates], float]:
        """Work of the parts that were seen since then, and their share of all parts."""
        self._parts = {part: (at, work) for part, (at, work) in self._parts.items() if at >= since}
        if not self._parts:
            return None, 0.0
        works: List[WorkRates] = [work for _, work in self._parts.values()]
        names = {name: None for work in works for name in work.rates}
        total = WorkRates(
            sum(work.daemons for work in works),
            {name: sum(work.rates.get(name, 0.0) for work in works) for name in names},
        )
        return total, len(works) / self._count


class Trend:
    """Ups and downs of one number, each averaged over `span_s` seconds, apart from each other.

    For numbers of the whole cluster that the mgr adds up from reports which arrive one by one, about every 5 s:
    the difference of two looks that are as close as that shows none, one or two of them.
    Every change counts once, however far apart the looks are: rate times time since the look before adds up to it, once
    a whole span is known. Before that a rate is the one of what is known. With a look every 5 s a change counts for
    15 s.
    """

    def __init__(self, span_s: float = 10.0) -> None:
        if not span_s > 0:
            raise ValueError(f"span_s must be > 0, got {span_s}")
        self._span_s = span_s
        self._points: Deque[Tuple[float, float]] = deque()

    def add(self, at: float, value: Optional[float]) -> None:
        """Take a number; a gap or a clock that goes back starts a new trend."""
        if value is None or (self._points and not 0 < at - self._points[-1][0] <= 4 * self._span_s):
            self._points.clear()
        # what lies a whole span before the last look has been counted in full
        while len(self._points) > 2 and self._points[1][0] <= self._points[-1][0] - self._span_s:
            self._points.popleft()
        if value is not None:
            self._points.append((at, value))

    def rising(self) -> Optional[float]:
        """All increases per second; None until there are two points."""
        return self._per_second(1.0)

    def falling(self) -> Optional[float]:
        """All decreases per second; None until there are two points."""
        return self._per_second(-1.0)

    def _per_second(self, sign: float) -> Optional[float]:
        """How the sum of what went one way, averaged over the last span, has grown since the look before.

        Between two looks the sum grows evenly. Of a span that began before the first point the known part counts.
        """
        if len(self._points) < 2:
            return None
        points = list(self._points)
        before, now = points[-2][0], points[-1][0]
        grown = seconds = 0.0
        for (begin, old), (end, new) in zip(points, points[1:]):
            weight = self._averaged(now, begin, end) - self._averaged(before, begin, end)
            grown += weight * max(sign * (new - old), 0.0) / (end - begin)
            seconds += weight
        return grown / seconds

    def _averaged(self, at: float, begin: float, end: float) -> float:
        """Of a sum that grew by 1 a second from `begin` to `end`, the average over the span up to `at`."""
        return (self._area(at - begin) - self._area(at - end)) / self._span_s

    def _area(self, since: float) -> float:
        """Under a sum that grows by 1 a second for `since` seconds, as far as the span reaches."""
        if since <= 0:
            return 0.0
        return since * since / 2 if since <= self._span_s else self._span_s * (since - self._span_s / 2)


class Mended:
    """Falls of what is left to recover, as far as recovery was at work: the count falls for other reasons as well.

    When an OSD returns, peering finds most of the copies there and drops them from the count at once. Deleted objects
    leave it too. What recovery mended is at most the objects that it finished, times the copies that each may lack.
    """

    HOLD_S = 8.0
    """For how long a finished object may explain a fall, and at least up to the next look.

    Backfill takes it from the count one report later, and the monitors hear of the count after the mgr does.
    """

    def __init__(self) -> None:
        self._trend = Trend()
        self._last: Optional[Tuple[float, float, Optional[float]]] = None
        """The look before: when it was, what was left, and what was recovered."""
        self._credit: Deque[Tuple[float, float]] = deque()
        """When objects were seen to be finished, with the copies of theirs that have explained no fall yet."""
        self._total = 0.0

    def add(self, at: float, remainder: Optional[float], recovered: Optional[float], per_object: float) -> None:
        """Take what is left, and how many objects were ever recovered (None: not known, then each fall counts).

        `per_object`: of an object, the copies that may have been mended as it was recovered, at most.
        """
        last, self._last = self._last, None if remainder is None else (at, remainder, recovered)
        if last is not None and remainder is not None:
            before, left_before, recovered_before = last
            fall = max(left_before - remainder, 0.0)
            if recovered is not None and recovered_before is not None:
                self._forget(min(before, at - self.HOLD_S), at)
                self._credit.append((at, per_object * max(recovered - recovered_before, 0.0)))
                fall = self._explained(fall)
            self._total += fall
        self._trend.add(at, None if remainder is None else self._total)

    def rate(self) -> Optional[float]:
        """Copies mended per second; None until there are two looks."""
        return self._trend.rising()

    def _forget(self, since: float, at: float) -> None:
        """Objects that were finished before; and after, where the clock was set back."""
        while self._credit and not since <= self._credit[0][0] <= at:
            self._credit.popleft()

    def _explained(self, fall: float) -> float:
        """How much of a fall the finished objects explain: each copy explains it once."""
        rest = fall
        while self._credit and rest > 0:
            finished_at, copies = self._credit.popleft()
            if copies > rest:
                self._credit.appendleft((finished_at, copies - rest))
            rest = max(rest - copies, 0.0)
        return fall - rest


@dataclass(frozen=True)
class EpisodeProgress:
    """A count that begins again at 0 with each episode (a PG's scrub, a PG's trim).

    `episode` changes when an episode ends; `running` says whether one was under way at this look.
    """

    at: float
    count: int
    running: bool
    episode: str = ""


_Look = Tuple[float, int, bool, str]
"""The fields of a `EpisodeProgress`, as a tuple for the same reason as `_Kept`."""


class Episodes:
    """Turns progress that begins again into rates."""

    def __init__(self, longest_s: float = 900.0) -> None:
        self._longest_s = longest_s
        self._seen: Dict[str, _Look] = {}
        self._begun: Dict[str, float] = {}

    def look(self, name: str, progress: EpisodeProgress) -> Optional[float]:
        """Done per second since the last look; None for the first look and after a long gap."""
        # at the end again: those that were looked at longest ago come first
        before = self._seen.pop(name, None)
        self._seen[name] = (progress.at, progress.count, progress.running, progress.episode)
        if before is None:
            at, count, was_on, episode = float("-inf"), 0, False, progress.episode
        else:
            at, count, was_on, episode = before
        if not progress.running:
            self._begun.pop(name, None)
        elif not was_on or progress.episode != episode:
            self._begun[name] = progress.at
        if not 0 < progress.at - at <= self._longest_s:
            return None
        began_again = progress.count < count or (progress.episode != episode and not was_on)
        rise = progress.count if began_again else progress.count - count
        return rise / (progress.at - at)

    def forget_before(self, at: float) -> None:
        """Drop what was not looked at since."""
        for name in list(takewhile(lambda each: self._seen[each][0] < at, self._seen)):
            del self._seen[name]
            self._begun.pop(name, None)

    def oldest(self) -> Optional[float]:
        """When the oldest episode under way was first seen; None where none is."""
        return min(self._begun.values(), default=None)
