from __future__ import annotations

import math
import re
from typing import Any, Dict, Iterator, List, Set, Tuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mode_documents import mode
from pages import holds
from prometheus_client.parser import text_string_to_metric_families

from ceph_tuner.core.autopilot.contract import UNKNOWN, Effect
from ceph_tuner.core.autopilot.state import AUTO, MODES, PHASES, TRYING
from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.slo import Slo, parse_objective
from ceph_tuner.core.measure.metrics import METRICS
from ceph_tuner.core.measure.sample import Measure, Window
from ceph_tuner.core.printable import printable
from tuner.exposition import FAMILIES, ExportedState, exposition

SLO = Slo("cluster", tuple(parse_objective(text) for text in ("client.p95_ms <= 80", "recovery.bytes_s >= 50 MB/s")))
SEEN = {"client.p95_ms": 91.0, "recovery.bytes_s": 60e6}

Series = Dict[Tuple[str, Tuple[Tuple[str, str], ...]], float]


def series(text: str) -> Series:
    """Every series of an exposition, read by Prometheus's own parser and by the format's grammar."""
    strict(text)
    found: Series = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found[sample.name, tuple(sorted(sample.labels.items()))] = sample.value
    return found


NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\\\|\\"|\\n)*"'
SAMPLE = re.compile(rf"({NAME})(\{{{LABEL}(?:,{LABEL})*\}})? (-?\d[\d.e+-]*)")


def strict(text: str) -> None:
    """The text format 0.0.4: one HELP and one TYPE before a family's samples, no series twice, finite numbers."""
    assert not text or text.endswith("\n")
    seen: Set[str] = set()
    described: List[str] = []
    lines = iter(text.split("\n")[:-1])
    for line in lines:
        if line.startswith("# HELP "):
            name = line.split(" ")[2]
            assert name not in described
            described.append(name)
            assert re.fullmatch(rf"# TYPE {name} (gauge|counter)", next(lines))
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        assert match[1] == described[-1]
        assert math.isfinite(float(match[3]))
        assert (match[1] + (match[2] or "")) not in seen
        seen.add(match[1] + (match[2] or ""))


def whole() -> ExportedState:
    """A document with everything in it."""
    measures = {name: Measure(float(place), 0.0, 1) for place, name in enumerate(METRICS, start=1)}
    return {
        "version": "0.1.0",
        "release": "20.2.4",
        "sample": {"at": 1_800_000_000.5, "values": {}},
        "window": Window(0.0, 60.0, measures).to_dict(),
        "modes": [mode(SLO, SEEN)],
        "boost": {"kind": "recovery", "left_s": 3600.0, "finish_s": 900.0},
        "books": [{"regime": "recovering", "on": True, "page": 3, "switches": 2}],
        "policies": {"base": False, "office": True},
        "tick_s": 0.0084,
        "sampling_failures": 0,
    }


def one(found: Series, name: str, **labels: str) -> float:
    return found[f"ceph_tuner_{name}", tuple(sorted((key.rstrip("_"), value) for key, value in labels.items()))]


def test_every_metric_of_the_cluster_is_a_series_of_its_own_in_base_units() -> None:
    document = whole()
    for name, metric in METRICS.items():
        alone: ExportedState = {"window": {"measures": {name: [8.0, 0.0, 1]}}}
        found = series(exposition(alone))
        assert len(found) == 1, name
        assert list(found.values()) == [pytest.approx(0.008 if metric.unit == "ms" else 8.0)]
        (family,) = {key[0] for key in found}
        # a name says its unit
        assert ("_seconds" in family) == (metric.unit in ("ms", "s"))
        assert ("bytes" in family) == (metric.unit == "B/s")
        assert family.endswith("_per_second") == metric.unit.endswith("/s")
    assert len(series(exposition({"window": document["window"]}))) == len(METRICS)


def test_latencies_are_seconds_by_quantile() -> None:
    found = series(exposition(whole()))
    place = list(METRICS).index("client.read_p99_ms") + 1
    assert one(found, "client_latency_seconds", direction="read", quantile="0.99") == pytest.approx(place / 1000.0)


def test_objectives_are_shown_in_base_units() -> None:
    found = series(exposition(whole()))
    of = {"metric": "client.p95_ms", "kind": "hard"}
    assert one(found, "slo_bound", **of) == 0.08
    assert one(found, "slo_seen", **of) == 0.091
    assert one(found, "slo_met", **of) == 0.0
    assert one(found, "slo_margin_ratio", **of) == pytest.approx(-11.0 / 80.0)
    assert one(found, "slo_bound", metric="recovery.bytes_s", kind="hard") == 50e6
    assert one(found, "slo_met", metric="recovery.bytes_s", kind="hard") == 1.0


def test_an_objective_that_was_not_seen_is_neither_met_nor_missed() -> None:
    found = series(exposition({"modes": [{"slo": [verdict.to_dict() for verdict in Judge(SLO).verdicts({})]}]}))
    assert {name for name, _ in found} == {"ceph_tuner_slo_bound"}


def test_mode_and_phase_are_sets_of_which_one_is_true() -> None:
    found = series(exposition(whole()))
    for name, known, now in (("mode", MODES, AUTO), ("phase", tuple(PHASES), TRYING)):
        shown = {labels[0][1]: value for (family, labels), value in found.items() if family == f"ceph_tuner_{name}"}
        assert shown == {state: float(state == now) for state in known}


def test_an_interval_that_is_still_open_has_no_end() -> None:
    effect = Effect("client.iops", 0.1, float("-inf"), 0.5, 2, UNKNOWN)
    found = series(exposition({"modes": [{"effects": [effect.to_dict()]}]}))
    assert {name for name, _ in found} == {"ceph_tuner_effect_ratio", "ceph_tuner_effect_high_ratio"}


def test_nothing_seen_is_an_empty_page() -> None:
    assert exposition({}) == ""
    assert exposition({"sample": None, "window": None, "modes": [{"slo": [], "effects": [], "counts": {}}]}) == ""


def test_what_is_no_finite_number_is_left_out() -> None:
    for value in (math.nan, math.inf, -math.inf, None, "12"):
        document: Any = {"tick_s": value, "modes": [{"worker_failures": 3}]}
        assert list(series(exposition(document)).values()) == [3.0]


def test_a_whole_document_shows_every_family_with_the_labels_that_are_documented() -> None:
    found = series(exposition(whole()))
    assert {name for name, _ in found} == set(FAMILIES)
    for name, labels in found:
        assert sorted(key for key, _ in labels) == sorted(filter(None, FAMILIES[name].labels.split(", ")))


@given(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8")), st.floats(allow_nan=False))
def test_texts_of_any_kind_survive_as_labels_as_far_as_they_can_be_shown(rule: str, release: str, tick: float) -> None:
    text = exposition(
        {"version": "1", "release": release, "tick_s": tick, "modes": [{"counts": {"rollbacks": {rule: 3}}}]}
    )
    # the format's line ends are "\n" alone; Prometheus's Python parser splits at no other, too
    found = series(text)
    assert one(found, "rollbacks_total", rule=printable(rule, lines=True)) == 3.0
    assert one(found, "build_info", version="1", release=printable(release, lines=True)) == 1.0
    if math.isfinite(tick):
        assert one(found, "tick_seconds") == tick


def rows() -> Iterator[str]:
    for name, family in FAMILIES.items():
        labels = ", ".join(f"`{label}`" for label in filter(None, family.labels.split(", ")))
        yield f"| `{name}` | {family.type} | {labels} | {family.help} |\n"


def test_the_documentation_lists_every_metric() -> None:
    assert holds("metrics.md", f"| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n{''.join(rows())}")


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_names_follow_the_customs_of_prometheus(name: str) -> None:
    family = FAMILIES[name]
    assert re.fullmatch(r"ceph_tuner_[a-z]+(_[a-z]+)*", name)
    assert name.endswith("_total") == (family.type == "counter")
    assert not re.search(r"_(ms|milliseconds|minutes|percent|kib|mb)(_|$)", name)
    assert family.help.endswith(".")
