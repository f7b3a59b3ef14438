"""What the plugin exported: in an hour of a lab, rebuilt from what was recorded of it; and of a boost on the twin.

The gathered state (`tests/data/lab`) has each minute's window, the objectives, the regimes, the audit trail and the
journal. The record of the soak (`benchmarks/results/soak.jsonl`) has, each half minute, the phase of the automatic
mode, how old the newest sample was and how long it took. The plugin's own code makes the metrics of them.

Of a trial's effects only those at its end were recorded, and of the first two trials not what was on the OSDs: there
are gaps. Failures of samples are told from their age. Nothing was boosted in that hour, and the book was off.
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import mgr_stand_in
from automatic_on_twin import OnTwin
from prometheus_client.parser import text_string_to_metric_families

from ceph_tuner.cluster.prometheus import Prometheus, Span
from ceph_tuner.core.autopilot.audit_log import APPLY, KEPT, KINDS, REFUSED, TAKEN_BACK, Audit, AuditRecord
from ceph_tuner.core.autopilot.state import AUTO
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.changes.journal import UNDONE, Entry, Journal
from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.goals.stored_slo import stored_slo
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.releases import nine
from ceph_tuner.core.measure.history import History
from ceph_tuner.core.measure.sample import Window
from ceph_tuner.core.measure.timeline import REGIME, TimelineEntry, timeline
from ceph_tuner.gather.replay import open_state, state_of
from ceph_tuner.twin.model import RecoveryWork
from dashboard_queries import chosen
from documented import DOCS, ROOT
from prometheus_server import Lines, remembering
from tuner.exposition import ExportedState, ModeDocument, exposition
from twins import small_twin

assert mgr_stand_in.REGISTRY is not None
sys.path.insert(0, str(DOCS))

from draw_dashboard import Source  # noqa: E402 - it lies beside the documentation

STATE = ROOT / "tests" / "data" / "lab" / "nvme.tar.zst"
SOAK = ROOT / "benchmarks" / "results" / "soak.jsonl"
SCRAPE_S = 30.0
"""Between two lines of the soak."""
CLUSTER = "lab"
Past = Tuple[Lines, float, float]
"""Every scrape, and when the first and the last were."""


class Trial(NamedTuple):
    """Something that was on trial."""

    begun: float
    ended: float
    effects: Sequence[Dict[str, Any]]
    """At its end."""


class Hour(NamedTuple):
    """What was recorded."""

    made_by: str
    release: str
    slo: Optional[Slo]
    windows: List[Window]
    regimes: List[TimelineEntry]
    records: List[AuditRecord]
    entries: List[Entry]
    soak: List[Dict[str, Any]]

    def entries_of(self, trial: Optional[Trial]) -> Optional[List[Entry]]:
        """What a trial wrote, leg by leg; None where the journal no longer has its beginning."""
        if trial is None:
            return []
        if trial.begun < self.entries[0].at:
            return None
        return [entry for entry in self.entries if trial.begun <= entry.at < trial.ended]


@lru_cache(maxsize=1)
def hour() -> Hour:
    """The hour before the state was gathered."""
    cluster = open_state(STATE)
    store, gathered = cluster.store, cluster.clock.now()
    lines = [json.loads(line) for line in SOAK.read_text(encoding="utf-8").splitlines()]
    history = History(store)
    windows = history.windows(gathered, gathered - 3700.0)
    begin, end = windows[0].start, windows[-1].end
    return Hour(
        state_of(cluster).made_by.split()[-1],
        cluster.version,
        stored_slo(store, lambda: gathered),
        windows,
        [entry for entry in timeline(history) if entry.kind == REGIME and not entry.scope],
        [record for record in Audit(store).newest() if record.at >= begin and not record.refers],
        [entry for entry in Journal(store).entries() if entry.at >= begin],
        [line for line in lines if begin < line["at"] <= end and line["sampling"]["age"] is not None],
    )


def trials(records: Sequence[AuditRecord]) -> Iterator[Trial]:
    """From the first write of each to its end."""
    begun: Optional[float] = None
    for record in records:
        if record.what == APPLY:
            begun = record.at if begun is None else begun
        elif record.what in (KEPT, TAKEN_BACK) and begun is not None:
            yield Trial(begun, record.at, record.detail.get("effects", ()))
            begun = None
    if begun is not None:
        yield Trial(begun, float("inf"), ())


def taken_off(entry: Entry, at: float) -> bool:
    """Whether an entry's settings were taken back by then: a window with them, and one without, were compared."""
    return entry.state == UNDONE and entry.changed <= at


def on_osds(entry: Entry, at: float) -> bool:
    """Whether an entry's settings were on the OSDs then."""
    return entry.at <= at and not taken_off(entry, at)


def document(past: Hour, line: Dict[str, Any], at: float) -> ExportedState:
    """What the plugin knew when a line of the soak was written."""
    sampling = line["sampling"]
    window = next((each for each in past.windows if each.start < at <= each.end), None)
    known = [record for record in past.records if record.at <= at]
    events = Counter(record.what for record in known)
    taken_back = Counter(record.detail["rule"] for record in known if record.what == TAKEN_BACK)
    trial = next((each for each in trials(past.records) if each.begun <= at < each.ended), None)
    regime = [entry.name for entry in past.regimes if entry.at <= at][-1]
    means = window.means if window is not None else {}
    written = past.entries_of(trial)
    of_trial: ModeDocument = {}
    if written is not None:
        of_trial = {
            "changes_on_trial": len([entry for entry in written if on_osds(entry, at)]),
            "trial_windows": len([entry for entry in written if taken_off(entry, at)]),
        }
    return {
        "version": past.made_by,
        "release": past.release,
        "sample": {"at": at - sampling["age"]},
        "window": window.to_dict() if window is not None else None,
        "modes": [
            {
                "slo": [verdict.to_dict() for verdict in Judge(past.slo).verdicts(means)] if past.slo else [],
                "mode": AUTO,
                "phase": line["phase"],
                "paused": False,
                "stage": int(trial is not None),
                "stages": int(trial is not None),
                **of_trial,
                "effects": trial.effects if trial is not None and trial.ended - at <= 2 * SCRAPE_S else [],
                "counts": {
                    "changes": events[APPLY],
                    "rollbacks": taken_back,
                    "events": {kind: events[kind] for kind in KINDS},
                },
                "worker_failures": events[REFUSED],
            }
        ],
        "boost": {"kind": ""},
        "books": [{"regime": regime, "on": False, "page": 0, "switches": 0}],
        "tick_s": sampling["tick_ms"] / 1000.0,
        "sampling_failures": max(0, int(sampling["age"] // sampling["interval"]) - 1),
    }


def scraped(at: float, text: str, lines: Lines) -> None:
    """Add an exposition as Prometheus would have it."""
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = {**sample.labels, "cluster": CLUSTER, "instance": "mgr:9285"}
            of = ",".join(f"{name}={json.dumps(value)}" for name, value in sorted(labels.items()))
            lines.setdefault(sample.name, []).append((of, sample.value, at))


def of_the_lab() -> Past:
    """Scraped for the hour, always at the same distance, as a server does: each time the line that is nearest to it."""
    past = hour()
    lines: Lines = {}
    first, last = (round(past.soak[place]["at"] / SCRAPE_S) for place in (0, -1))
    for at in (SCRAPE_S * number for number in range(first, last + 1)):
        line = min(past.soak, key=lambda each: abs(float(each["at"]) - at))
        scraped(at, exposition(document(past, line, at)), lines)
    return lines, SCRAPE_S * first, SCRAPE_S * last


def of_a_boost() -> Past:
    """The plugin on a twin that recovers, while it boosts under a policy: scraped for some minutes."""
    limited = {PROFILE: "custom", **nine((0.6, 2, 0), (0.1, 1, 0.2), (0.05, 1, 0.2))}
    aboard = OnTwin(small_twin(limited, recovery=(RecoveryWork("rbd", 100_000, 1 << 20),)))
    office = {"name": "office", "hours": "mon-sun 00:00-24:00", "objectives": ["client.p95_ms <= 30 s"]}
    wanted = {"objectives": ["client.p95_ms <= 60 s"], "calendar": {"policies": [office]}}
    aboard.service.slo_commands.set("", False, 1.0, json.dumps(wanted), True)
    aboard.sample(14)
    aboard.during(lambda: aboard.modes.boosts.begin("recovery", at_most="2h"))
    begin = aboard.twin.clock.now()
    lines: Lines = {}
    for _ in range(5):
        aboard.sample(6)
        scraped(aboard.twin.clock.now(), exposition(aboard.modes._metrics()), lines)
    return lines, begin, aboard.twin.clock.now()


@contextmanager
def dashboard_source(directory: Path, past: Callable[[], Past] = of_the_lab) -> Iterator[Source]:
    """What a real Prometheus server answers of a past, for a drawing of the dashboard."""
    lines, begin, end = past()
    # what is a scrape older than the last is gone; the past may be older than what a server keeps by itself
    options = (f"--query.lookback-delta={1.5 * SCRAPE_S:g}s", "--storage.tsdb.retention.time=10y")
    with remembering(directory, lines, *options) as server:
        client = Prometheus(CLUSTER, server.url, SystemClock())
        first = math.ceil(begin / SCRAPE_S) * SCRAPE_S
        yield Source(client, partial(chosen, cluster=CLUSTER), Span.of(first, end, SCRAPE_S))
        client.close()
