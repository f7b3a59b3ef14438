"""The page as a document: all of it there, nothing from elsewhere, and no name in it is taken for markup."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from typing import Any, Dict, List, Tuple

import pytest
from example_answers import AT, LIMIT, recommendation, tuning

from ceph_tuner.core.changes.forecast_pairs import ForecastPair
from ceph_tuner.core.measure.forecast_record import ForecastInterval
from ceph_tuner.report import HISTORY, Findings, Mark, answer_file
from ceph_tuner.report.answers import findings_of
from ceph_tuner.report.page import page

pytestmark = pytest.mark.slow

HOSTILE = "</title></style></svg><script>alert(1)</script><img src=http://evil/x onerror='alert(1)'>\"'&$x^2$ {{ 7*7 }}"


class Seen(HTMLParser):
    """Tags with their attributes, and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: List[Tuple[str, Dict[str, str]]] = []
        self.text: List[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: List[Tuple[str, Any]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def values(self, name: str) -> List[str]:
        return [attributes[name] for _, attributes in self.tags if name in attributes]

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())


def read(document: Any) -> Findings:
    return findings_of(answer_file.parse(json.dumps(document).encode(), "answer.json"))


def written(document: Any, source: str = "answer.json") -> str:
    return page(read(document), AT, source)


@pytest.fixture(scope="module")
def recommended() -> str:
    return written(recommendation())


@pytest.fixture(scope="module")
def tuned() -> str:
    return written(tuning())


@pytest.fixture(params=["recommended", "tuned"])
def text(request: pytest.FixtureRequest, recommended: str, tuned: str) -> str:
    return {"recommended": recommended, "tuned": tuned}[request.param]


def test_a_recommendation_is_told_with_all_of_its_parts(recommended: str) -> None:
    seen = Seen(recommended)
    for words in (
        "nvme-node: recommendation",
        "trial 7: meets client.p95_ms",
        "3.8 ms ✓ met 3.42–4.18",
        "6.6 ms ✗ missed",
        f"{LIMIT} no limit 0.4",
        "On the grey line lies what nothing that was tried is better than",
        "recovery.bytes_s depends on hardly any knob",
        "cannot be kept together",
        "client needs 36% of an OSD, and mClock owes it 30%",
        f"ceph config set osd {LIMIT} 0.400000",
        f"ceph config rm osd {LIMIT}",
        "pg_num of rbd 64 to 128",
        "# wait until done",
        "What this page does not know",
        "no history was given",
        "2026-01-01 00:00 UTC",
    ):
        assert words in seen.words
    # two objectives, a trade-off, what matters, two curves, the search, capacity
    assert len([tag for tag, _ in seen.tags if tag == "svg"]) == 8


def test_each_knob_is_told_with_what_becomes_of_the_metrics_without_it(recommended: str) -> None:
    words = Seen(recommended).words
    assert "What each knob is worth" in words
    assert "recovery limit +80% +62% to +98% 0 B/s" in words
    assert "was worth nothing: osd_pg_max_concurrent_snap_trims." in words
    # answers of earlier versions have none
    earlier = recommendation()
    del earlier["knobs"]
    assert "What each knob is worth" not in Seen(written(earlier)).words


def test_a_tuning_run_is_told_over_time(tuned: str) -> None:
    seen = Seen(tuned)
    for words in ("lab: tuning run", "The tuning run", "client.p95_ms is 20 ms at best", "4.2 ms ✓ met"):
        assert words in seen.words
    assert "wide" in seen.values("class")
    assert "narrow" in seen.values("class")


def test_the_page_asks_nothing_of_anybody(text: str) -> None:
    seen = Seen(text)
    assert not {tag for tag, _ in seen.tags} & {"script", "iframe", "object", "embed", "form", "base", "img", "audio"}
    assert all(link.startswith("#") or link == "data:," for name in ("href", "src") for link in seen.values(name))
    assert set(re.findall(r"url\((.)", text)) <= {"#"}
    assert "@import" not in text
    assert not any(name.startswith("on") for _, attributes in seen.tags for name in attributes)
    assert "default-src 'none'" in seen.values("content")[0]


def test_names_in_the_page_are_unique_and_references_lead_somewhere(text: str) -> None:
    seen = Seen(text)
    names = seen.values("id")
    assert len(names) == len(set(names))
    wanted = {link[1:] for link in seen.values("href") if link.startswith("#")}
    wanted |= set(re.findall(r"url\(#([^)]*)\)", text)) | set(seen.values("aria-labelledby"))
    assert wanted <= set(names)


def test_each_plot_says_what_it_shows_and_tables_have_headings(recommended: str) -> None:
    seen = Seen(recommended)
    assert all(attributes.get("aria-label") for tag, attributes in seen.tags if tag == "svg")
    assert all(attributes.get("role") == "img" for tag, attributes in seen.tags if tag == "svg")
    assert all(attributes.get("scope") in ("col", "row") for tag, attributes in seen.tags if tag == "th")


def foretold() -> Tuple[ForecastPair, ...]:
    interval = ForecastInterval(5.0, 4.0, 8.0)
    return tuple(
        ForecastPair(AT + number, f"change {number} <b>", "client.p95_ms", 0.9, interval, seen)
        for number, seen in enumerate((5.0, 0.0, 7.9, 400.0))
    )


def test_what_the_twin_said_stands_beside_what_was_measured_with_its_coverage(recommended: str) -> None:
    text = page(replace(read(recommendation()), forecasts=foretold()), AT, "answer.json")
    seen = Seen(text)
    assert "client.p95_ms: 2 of 4 inside (50%); promised 90%" in seen.words
    assert "change 1 <b>" in seen.words
    assert "What the twin said before" not in Seen(recommended).words


def test_hostile_names_stay_text(recommended: str) -> None:
    answer = json.loads(json.dumps(recommendation()).replace("trial 7", "XX").replace("nvme-node", "XX"))
    text = json.dumps(answer).replace('"XX"', json.dumps(HOSTILE))
    hostile = json.loads(text)
    hostile["notes"] = hostile["searched"] = [HOSTILE]
    hostile["elsewhere"][0]["reason"] = hostile["capacity"][0]["name"] = hostile["capacity"][0]["held_by"] = HOSTILE
    hostile["explanation"]["importance"]["client.p95_ms"]["knobs"][0]["name"] = HOSTILE
    hostile["explanation"]["partial_dependence"][0]["name"] = HOSTILE
    hostile["beyond_live_knobs"]["changes"][0]["change"] = HOSTILE
    hostile["predictions"][2]["settings"][HOSTILE] = HOSTILE
    benign = Seen(recommended)
    seen = Seen(page(read(hostile), AT, HOSTILE))
    assert {tag for tag, _ in seen.tags} == {tag for tag, _ in benign.tags}
    assert {name for _, attributes in seen.tags for name in attributes} <= {
        name for _, attributes in benign.tags for name in attributes
    }
    assert " ".join(HOSTILE.split()) in seen.words
    assert "49" not in [part.strip() for part in seen.text]


def test_hostile_trials_and_changes_stay_text() -> None:
    document = tuning()
    document["trials"][2] = {**document["trials"][2], "label": HOSTILE, "why": HOSTILE, "notes": [HOSTILE]}
    found = read(document)
    mark = Mark(AT + 50, HOSTILE, HOSTILE, HOSTILE, HOSTILE)
    seen = Seen(page(Findings(**{**found.__dict__, "marks": (mark,)}), AT, "x"))
    assert "script" not in {tag for tag, _ in seen.tags}
    assert seen.words.count("alert(1)") >= 6


def test_a_page_with_next_to_nothing_says_so() -> None:
    seen = Seen(page(Findings(HISTORY, "lab", "No tuning run is remembered."), AT, "x"))
    assert "No tuning run is remembered." in seen.words
    assert "There is nothing to write." in seen.words
    assert "svg" not in {tag for tag, _ in seen.tags}


def test_the_same_findings_give_the_same_page(recommended: str) -> None:
    assert written(recommendation()) == recommended


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_colours_stand_out_as_wcag_wants_for_text(scheme: int) -> None:
    style = files("ceph_tuner.report").joinpath("page.css").read_text(encoding="utf-8")
    block = re.findall(r":root \{([^}]*)\}", style)[scheme]
    colours = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block))
    for paper in ("paper", "soft"):
        for name in ("ink", "muted", "blue", "orange", "green", "red", "purple"):
            light, dark = sorted((luminance(colours[paper]), luminance(colours[name])), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (name, paper)
