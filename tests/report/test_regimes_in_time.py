"""What held when, out of the timeline, the trail and the windows."""

from __future__ import annotations

from typing import Any, List

from ceph_tuner.core.autopilot.audit_log import APPLY, BOOK, BOOK_BACK, AuditRecord
from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.slo import parse_slo
from ceph_tuner.core.measure.sample import Measure, Window
from ceph_tuner.core.measure.timeline import NO_POLICY, POLICY, REGIME, TimelineEntry
from ceph_tuner.report import Span
from ceph_tuner.report.regimes_in_time import MISSED, MOST_ROWS, PAGE, draw, rows_of, spans_of

JUDGE = Judge(parse_slo({"name": "wanted", "objectives": ["client.p95_ms <= 5"]}))
ENTRIES = [
    TimelineEntry(0, REGIME, "", "idle"),
    TimelineEntry(100, REGIME, "", "busy"),
    TimelineEntry(150, REGIME, "class=ssd", "recovering"),
    TimelineEntry(450, REGIME, "class=ssd", "idle"),
    TimelineEntry(160, REGIME, "pool=rbd", "trimming"),
    TimelineEntry(400, REGIME, "", "idle"),
    TimelineEntry(200, POLICY, "", "night"),
    TimelineEntry(300, POLICY, "", NO_POLICY),
]


def record(at: float, what: str, refers: int = 0, **detail: Any) -> AuditRecord:
    return AuditRecord(int(at), at, "mgr.x", what, "", detail, refers=refers)


TRAIL = [
    record(110, BOOK, page=3, regime="busy"),
    record(112, BOOK, refers=110),
    record(120, APPLY),
    record(220, BOOK, page=4, regime="busy"),
    record(250, BOOK_BACK),
]


def minute(start: float, latency: float) -> Window:
    return Window(start, start + 60, {"client.p95_ms": Measure(latency, 0.5, 6)})


SAMPLED = [Window(start, start + 60, {}) for start in range(0, 480, 60)]


def of(kind: str, spans: List[Span]) -> List[Any]:
    return [(span.name, span.start, span.end) for span in spans if span.kind == kind]


def test_what_held_ends_where_the_next_begins_and_pools_are_left_out() -> None:
    spans = spans_of(ENTRIES, TRAIL, SAMPLED, (), JUDGE, 0, 500)
    of_cluster = [("idle", 0, 100), ("busy", 100, 400), ("idle", 400, 500)]
    assert of(REGIME, spans) == [*of_cluster, ("ssd: recovering", 150, 450), ("ssd: idle", 450, 500)]
    assert of(PAGE, spans) == [("3 (busy)", 110, 220), ("4 (busy)", 220, 250)]
    assert of(POLICY, spans) == [("night", 200, 300)]


def test_a_device_class_has_pages_beside_those_of_another() -> None:
    trail = [
        record(110, BOOK, page=3, regime="busy", device_class="hdd"),
        record(130, BOOK, page=4, regime="idle", device_class="nvme"),
        record(140, BOOK_BACK, device_class="hdd"),
    ]
    spans = spans_of(ENTRIES, trail, SAMPLED, (), JUDGE, 0, 500)
    assert of(PAGE, spans) == [("hdd: 3 (busy)", 110, 140), ("nvme: 4 (idle)", 130, 500)]


def test_what_began_before_the_page_is_cut_there_and_what_ended_before_is_left_out() -> None:
    spans = spans_of(ENTRIES, TRAIL, SAMPLED, (), JUDGE, 230, 500)
    assert of(REGIME, spans)[:2] == [("busy", 230, 400), ("idle", 400, 500)]
    assert of(PAGE, spans) == [("4 (busy)", 230, 250)]


def test_a_regime_is_drawn_where_samples_were_taken() -> None:
    entries = [TimelineEntry(0, REGIME, "", "busy"), TimelineEntry(90_000, REGIME, "", "idle")]
    minutes = [Window(start, start + 60, {}) for start in (90_000, 90_060)]
    hours = [Window(0, 3600, {}), Window(3600, 7200, {})]
    # the mgr was without the plugin for most of a day; the last window is not the last sample
    spans = spans_of(entries, TRAIL, minutes, hours, JUDGE, 0, 90_150)
    assert of(REGIME, spans) == [("busy", 0, 7200), ("idle", 90_000, 90_150)]
    assert of(PAGE, spans) == [("3 (busy)", 110, 220), ("4 (busy)", 220, 250)]
    assert of(REGIME, spans_of(entries, (), (), (), JUDGE, 0, 90_150)) == []


def test_windows_that_miss_an_objective_are_joined_until_a_gap() -> None:
    windows = [minute(0, 9), minute(60, 9), minute(120, 4), minute(180, 9), minute(4000, 9)]
    spans = of(MISSED, spans_of((), (), windows, (), JUDGE, 0, 5000))
    text = JUDGE.verdicts_at_work({"client.p95_ms": 9})[0].objective.text
    assert spans == [(text, 0, 120), (text, 180, 240), (text, 4000, 4060)]


def test_rows_are_by_kind_then_the_longest_first_and_not_too_many() -> None:
    many = [Span(REGIME, f"marker-{number}", 0, number) for number in range(1, 40)]
    rows = rows_of([*many, Span(MISSED, "slow", 0, 1000), Span(REGIME, "marker-1", 50, 90)])
    assert len(rows) == MOST_ROWS
    assert next(iter(rows)) == "regime marker-1"
    assert list(rows)[-1] == "missed slow"


def test_a_cluster_in_which_nothing_changed_has_no_timeline() -> None:
    assert draw((), "wide") is None
    assert draw([Span(REGIME, "idle", 0, 100)], "wide") is None


def test_every_row_has_its_name_in_the_picture() -> None:
    spans = spans_of(ENTRIES, TRAIL, [minute(0, 9), *SAMPLED[1:]], (), JUDGE, 0, 500)
    for size in ("wide", "narrow"):
        drawn = draw(spans, size)
        assert drawn is not None
        assert all(name[:20] in drawn for name in rows_of(spans))
