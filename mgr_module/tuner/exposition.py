"""The tuner's metrics in Prometheus's text format 0.0.4, from a plain document of what was seen last.

Names begin with `ceph_tuner_`; units are base units (seconds, bytes, ratios). What was not seen is absent, never 0.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, Mapping, Optional, Sequence, TypedDict

from ceph_tuner.core.autopilot.state import MODES, PHASES
from ceph_tuner.core.boost.kinds import KINDS
from ceph_tuner.core.measure.exported_metrics import PREFIX, exported_at, labelled, scale_of, scope_labels
from ceph_tuner.core.measure.metrics import CLASS, Scope, parted
from ceph_tuner.core.measure.prometheus_text import CONTENT_TYPE as CONTENT_TYPE
from ceph_tuner.core.measure.prometheus_text import Family, Series, prometheus_text


class ModeDocument(TypedDict, total=False):
    """What is exported of an automatic mode."""

    device_class: str
    """Empty: the mode of the whole cluster."""
    slo: Sequence[Mapping[str, Any]]
    """`Verdict.to_dict()` of each objective."""
    mode: str
    phase: str
    paused: bool
    stage: int
    """From 1; 0 while nothing is on trial."""
    stages: int
    changes_on_trial: int
    """Journal entries that a trial has on the cluster."""
    trial_windows: int
    effects: Sequence[Mapping[str, Any]]
    """`Effect.to_dict()` of each metric of the trial that is under way."""
    counts: Mapping[str, Any]
    """`Announcer.counts()`."""
    worker_failures: int
    """In a row."""


class ExportedState(TypedDict, total=False):
    """What is exported, as the service gives it. Everything may be missing or None."""

    version: str
    release: str
    """The oldest among the OSDs."""
    sample: Optional[Mapping[str, Any]]
    """`Sample.to_dict()` of the newest sample; `at` is used."""
    window: Optional[Mapping[str, Any]]
    """`Window.to_dict()` of the last minute: rates and latencies."""
    modes: Sequence[ModeDocument]
    boost: Mapping[str, Any]
    """`kind` of the boost that is on, empty for none; `left_s` until its time is up, `finish_s` until it is done."""
    books: Sequence[Mapping[str, Any]]
    """Of the cluster and of classes: `device_class`; `regime`, empty before one is told; whether the book is `on`;
    `page` in force or 0; `switches` of an hour."""
    policies: Mapping[str, bool]
    """Whether each policy of the objectives' calendar holds; empty without a calendar."""
    tick_s: float
    sampling_failures: int
    """In a row."""


_ALL = [
    Family("build_info", "gauge", "version, release", "Always 1; the version of ceph-tuner and the OSDs' release."),
    Family("operations_per_second", "gauge", "class", "Client operations served."),
    Family("client_operations_per_second", "gauge", "direction", "Client reads and writes served."),
    Family("bytes_per_second", "gauge", "class", "Bandwidth by class of work."),
    Family("client_bytes_per_second", "gauge", "direction", "Client bandwidth, reads and writes."),
    Family("objects_per_second", "gauge", "class", "Objects or copies worked on by class of background work."),
    Family("copies_per_second", "gauge", "class", "Degraded object copies mended."),
    Family("objects_left", "gauge", "class", "Copies still to recover or to move."),
    Family(
        "finish_seconds", "gauge", "class", "Time until background work is done at the present rate; ten years: never."
    ),
    Family("scrub_interval_seconds", "gauge", "", "Time to deep-scrub the whole cluster at the present rate."),
    Family("scrub_preemptions_per_second", "gauge", "", "Chunks of scrubs that clients' writes preempt."),
    Family("scrub_late_pgs", "gauge", "", "PGs past their deep-scrub date."),
    Family("snaptrim_queue", "gauge", "", "Snapshots of PGs that wait to be trimmed."),
    Family("client_latency_seconds", "gauge", "direction, quantile", "Client latency as the OSDs see it, by quantile."),
    Family("client_latency_mean_seconds", "gauge", "direction", "Mean client latency as the OSDs see it."),
    Family("queue_items", "gauge", "class", "Items that wait in an OSD's mClock queues, mean per OSD."),
    Family("slow_operations", "gauge", "", "Operations that Ceph calls slow."),
    Family("inactive_pgs", "gauge", "", "PGs that serve no I/O."),
    Family("laggy_pgs", "gauge", "", "PGs that wait for a replica's lease."),
    Family("down_osds", "gauge", "", "OSDs that are in and down."),
    Family("slo_bound", "gauge", "metric, kind", "Bound of an objective, in base units."),
    Family("slo_seen", "gauge", "metric, kind", "Value of an objective's metric, in base units."),
    Family(
        "slo_margin_ratio", "gauge", "metric, kind", "How far inside the bound, as a share of it; negative: outside."
    ),
    Family("slo_met", "gauge", "metric, kind", "Whether an objective is met: 1 or 0; absent where it was not seen."),
    Family("mode", "gauge", "mode", "1 for the mode of the automatic mode, 0 for the others."),
    Family("phase", "gauge", "phase", "1 for the phase that the automatic mode is in, 0 for the others."),
    Family("paused", "gauge", "", "Whether the automatic mode is paused: 1 or 0."),
    Family("stage", "gauge", "", "Stage of the trial under way, from 1 for the canary; 0: none."),
    Family("stages", "gauge", "", "Stages of the trial under way."),
    Family("changes_on_trial", "gauge", "", "Changes on the cluster that are not permanent yet."),
    Family("trial_windows", "gauge", "", "Windows of the present stage that were compared."),
    Family("effect_ratio", "gauge", "metric", "Effect of the trial on a metric, as a share: -0.2 is 20% less."),
    Family("effect_low_ratio", "gauge", "metric", "Lower end of the effect's interval; absent while unbounded."),
    Family("effect_high_ratio", "gauge", "metric", "Upper end of the effect's interval; absent while unbounded."),
    Family("boost", "gauge", "class", "1 for the background work that is boosted, 0 for the others."),
    Family("boost_limit_seconds", "gauge", "", "Time after which the boost ends, whatever is left."),
    Family("boost_finish_seconds", "gauge", "", "Time until the boosted work is done, by what became less of late."),
    Family("regime", "gauge", "regime", "1 for the regime that the whole cluster, or a device class, is in."),
    Family("policy", "gauge", "policy", "1 for the policy of the objectives' calendar that holds, 0 for the others."),
    Family("book_on", "gauge", "", "Whether the book switches settings by the regime: 1 or 0."),
    Family("book_page", "gauge", "", "Number of the book's page whose settings are in force; 0: none."),
    Family("book_switches", "gauge", "", "Switches to a page of the book in the last hour."),
    Family("changes_total", "counter", "", "Forward moves since this mgr became the active one."),
    Family("rollbacks_total", "counter", "rule", "Trials taken back since then, by the rule that stopped them."),
    Family("events_total", "counter", "what", "Records of the audit trail since then, by kind."),
    Family("sample_timestamp_seconds", "gauge", "", "When the newest sample was taken, since the epoch."),
    Family("tick_seconds", "gauge", "", "How long taking the newest sample took."),
    Family("sampling_failures", "gauge", "", "Samples in a row that failed."),
    Family("worker_failures", "gauge", "", "Answers of the optimiser in a row that were not usable."),
]

FAMILIES: Dict[str, Family] = {f"{PREFIX}{family.name}": family for family in _ALL}
"""Every metric by its full name, in the order of the exposition."""


def exposition(document: ExportedState) -> str:
    """The document in Prometheus's text format; empty where there is nothing to say."""
    return prometheus_text(FAMILIES, _series(document))


def _series(document: ExportedState) -> Iterator[Series]:
    if document.get("version"):
        yield (
            "build_info",
            labelled(version=str(document.get("version")), release=str(document.get("release") or "")),
            1,
        )
    for metric, (mean, *_) in ((document.get("window") or {}).get("measures") or {}).items():
        place = exported_at(metric)
        if place is not None:
            yield (*place, _in_base_unit(metric, mean))
    for mode in document.get("modes") or []:
        own = Scope(CLASS, mode["device_class"]) if mode.get("device_class") else None
        for verdict in mode.get("slo") or []:
            yield from _verdict(verdict, own)
        for name, labels, value in _automatic(mode):
            yield name, (*labels, *scope_labels(own)), value
        for effect in mode.get("effects") or []:
            yield from _effect(effect, own)
    boost = document.get("boost")
    if boost is not None:
        for kind in KINDS:
            yield "boost", labelled(**{"class": kind}), kind == boost.get("kind")
        yield "boost_limit_seconds", (), boost.get("left_s")
        yield "boost_finish_seconds", (), boost.get("finish_s")
    for book in document.get("books") or []:
        yield from _book(book)
    for policy, holds in (document.get("policies") or {}).items():
        yield "policy", labelled(policy=policy), holds
    yield "sample_timestamp_seconds", (), (document.get("sample") or {}).get("at")
    yield "tick_seconds", (), document.get("tick_s")
    yield "sampling_failures", (), document.get("sampling_failures")


def _book(book: Mapping[str, Any]) -> Iterator[Series]:
    of = scope_labels(Scope(CLASS, book["device_class"]) if book.get("device_class") else None)
    if book.get("regime"):
        yield "regime", (*labelled(regime=str(book["regime"])), *of), 1
    yield "book_on", of, book.get("on")
    yield "book_page", of, book.get("page")
    yield "book_switches", of, book.get("switches")


def _verdict(verdict: Mapping[str, Any], own: Optional[Scope]) -> Iterator[Series]:
    # not its whole text: a bound that is moved is the same objective
    metric, scope = parted(str(verdict["objective"]).split()[0])
    of = (*labelled(metric=metric, kind="hard" if verdict["hard"] else "soft"), *scope_labels(scope or own))
    yield "slo_bound", of, _in_base_unit(metric, verdict["bound"])
    yield "slo_seen", of, _in_base_unit(metric, verdict["seen"])
    yield "slo_margin_ratio", of, verdict["margin"]
    yield "slo_met", of, verdict["met"]


def _automatic(document: ModeDocument) -> Iterator[Series]:
    mode, phase = document.get("mode"), document.get("phase")
    if mode:
        for value in MODES:
            yield "mode", labelled(mode=value), value == mode
    if phase:
        for value in PHASES:
            yield "phase", labelled(phase=value), value == phase
    yield "paused", (), document.get("paused")
    yield "stage", (), document.get("stage")
    yield "stages", (), document.get("stages")
    yield "changes_on_trial", (), document.get("changes_on_trial")
    yield "trial_windows", (), document.get("trial_windows")
    counts = document.get("counts") or {}
    yield "changes_total", (), counts.get("changes")
    for rule, count in (counts.get("rollbacks") or {}).items():
        yield "rollbacks_total", labelled(rule=rule), count
    for what, count in (counts.get("events") or {}).items():
        yield "events_total", labelled(what=what), count
    yield "worker_failures", (), document.get("worker_failures")


def _effect(effect: Mapping[str, Any], own: Optional[Scope]) -> Iterator[Series]:
    metric, scope = parted(effect["metric"])
    of = (*labelled(metric=metric), *scope_labels(scope or own))
    yield "effect_ratio", of, effect["change"]
    yield "effect_low_ratio", of, effect["low"]
    yield "effect_high_ratio", of, effect["high"]


def _in_base_unit(metric: str, value: Optional[float]) -> Optional[float]:
    return None if value is None else value * scale_of(metric)
