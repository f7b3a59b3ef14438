"""What held when: regimes, pages of the book, policies, and objectives that were missed, each in a row of its own."""

from __future__ import annotations

from typing import Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.core.autopilot.audit_log import BOOK, BOOK_BACK, AuditRecord
from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.measure.metrics import CLASS
from ceph_tuner.core.measure.sample import Window
from ceph_tuner.core.measure.timeline import NO_POLICY, POLICY, REGIME, TimelineEntry
from ceph_tuner.report import Span
from ceph_tuner.report.plots_in_time import SIZES, time_axis, when
from ceph_tuner.report.svg import BLUE, GREEN, PURPLE, RED, drawing, figure, inline
from ceph_tuner.report.unknown import LONGEST_GAP_S

PAGE, MISSED = "page", "missed"
COLOURS: Mapping[str, str] = {REGIME: BLUE, PAGE: GREEN, POLICY: PURPLE, MISSED: RED}
MOST_ROWS = 16
"""Of regimes that were met, the longest ones have rows first."""


def spans_of(
    entries: Sequence[TimelineEntry],
    trail: Sequence[AuditRecord],
    windows: Sequence[Window],
    hours: Sequence[Window],
    judge: Judge,
    since: float,
    now: float,
) -> List[Span]:
    """Spans from `since` to `now` (seconds since the epoch): of the cluster; regimes and pages of classes too.

    `windows` are of minutes, `hours` of hours. A regime is told from samples: it is drawn where there were some.
    """
    spans = [
        *_where_sampled(_regimes(entries, now), [(window.start, window.end) for window in (*windows, *hours)], now),
        *_pages(trail, now),
        *_until_the_next(POLICY, ((entry.at, _policy(entry)) for entry in entries if entry.kind == POLICY), now),
        *_missed(windows, judge),
    ]
    return [Span(span.kind, span.name, max(span.start, since), span.end) for span in spans if span.end > since]


def rows_of(spans: Sequence[Span]) -> Dict[str, List[Span]]:
    """Spans by row, `regime busy` for one; kinds in their order, of each the longest first, at most MOST_ROWS."""
    kinds = list(COLOURS)
    rows: Dict[Tuple[int, str], List[Span]] = {}
    for span in spans:
        rows.setdefault((kinds.index(span.kind), span.name), []).append(span)
    lengths = {row: sum(span.end - span.start for span in held) for row, held in rows.items()}
    longest = set(sorted(rows, key=lambda row: -lengths[row])[:MOST_ROWS])
    ordered = sorted(longest, key=lambda row: (row[0], -lengths[row], row[1]))
    return {f"{kinds[kind]} {name}": rows[kind, name] for kind, name in ordered}


def draw(spans: Sequence[Span], size: str) -> Optional[str]:
    """Draw the rows as bars over time; None where nothing changed."""
    rows = rows_of(spans)
    if len(rows) < 2:
        return None
    with drawing():
        chart = figure(SIZES[size][0], 64 + 19 * len(rows))
        axes = chart.subplots()
        for place, held in enumerate(rows.values()):
            bars = [(when(span.start), when(span.end) - when(span.start)) for span in held]
            axes.broken_barh(bars, (place - 0.36, 0.72), color=COLOURS[held[0].kind])
        axes.set_yticks(range(len(rows)), [_short(name, size) for name in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        time_axis(axes, size)
        return inline(chart, f"{size}-regimes", "regimes, pages of the book and missed objectives over time")


def _regimes(entries: Iterable[TimelineEntry], now: float) -> Iterator[Span]:
    """Of the cluster as a whole, and of each device class that has objectives of its own."""
    changes: Dict[str, List[Tuple[float, str]]] = {}
    for entry in entries:
        kind, _, device_class = entry.scope.partition("=")
        if entry.kind == REGIME and kind in ("", CLASS):
            changes.setdefault(entry.scope, []).append((entry.at, _of_class(device_class, entry.name)))
    for of_scope in changes.values():
        yield from _until_the_next(REGIME, of_scope, now)


def _of_class(device_class: str, name: str) -> str:
    """The name of what held, for a row; empty where nothing did."""
    return f"{device_class}: {name}" if device_class and name else name


def _policy(entry: TimelineEntry) -> str:
    return "" if entry.name == NO_POLICY else entry.name


def _until_the_next(kind: str, changes: Iterable[Tuple[float, str]], now: float) -> Iterator[Span]:
    """Each name holds until the next one; an empty one is none."""
    begun = sorted(changes)
    for (start, name), (end, _) in zip(begun, [*begun[1:], (now, "")]):
        if name and end > start:
            yield Span(kind, name, start, end)


def _where_sampled(spans: Iterable[Span], sampled: Sequence[Tuple[float, float]], now: float) -> Iterator[Span]:
    """Parts of spans that lie in stretches without a gap; what began after the last window is as new as that."""
    stretches: List[List[float]] = []
    for start, end in sorted(sampled):
        if stretches and start - stretches[-1][1] <= LONGEST_GAP_S:
            stretches[-1][1] = max(stretches[-1][1], end)
        else:
            stretches.append([start, end])
    if stretches and now - stretches[-1][1] <= LONGEST_GAP_S:
        stretches[-1][1] = now
    for span in spans:
        for begin, end in stretches:
            first, last = max(span.start, begin), min(span.end, end)
            if first < last:
                yield Span(span.kind, span.name, first, last)


def _pages(trail: Iterable[AuditRecord], now: float) -> Iterator[Span]:
    """Of the cluster as a whole, and of each device class that has pages of its own."""
    changes: Dict[str, List[Tuple[float, str]]] = {}
    for record in trail:
        if record.what not in (BOOK, BOOK_BACK) or record.refers:
            continue
        device_class = str(record.detail.get("device_class", ""))
        name = f"{record.detail.get('page')} ({record.detail.get('regime')})" if record.what == BOOK else ""
        changes.setdefault(device_class, []).append((record.at, _of_class(device_class, name)))
    for of_class in changes.values():
        yield from _until_the_next(PAGE, of_class, now)


def _missed(windows: Iterable[Window], judge: Judge) -> Iterator[Span]:
    open_spans: Dict[str, Span] = {}
    for window in windows:
        for verdict in judge.verdicts_at_work(window.means):
            name = verdict.objective.text
            before = open_spans.get(name)
            if before is not None and (verdict.met or window.start - before.end > LONGEST_GAP_S):
                yield open_spans.pop(name)
            if verdict.met is False:
                start = open_spans[name].start if name in open_spans else window.start
                open_spans[name] = Span(MISSED, name, start, window.end)
    yield from open_spans.values()


def _short(name: str, size: str) -> str:
    most = 22 if size == "narrow" else 48
    return name if len(name) <= most else f"{name[: most - 1]}…"
