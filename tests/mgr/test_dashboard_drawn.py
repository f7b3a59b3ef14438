"""The Grafana dashboard as a picture: an hour of a lab in every panel, no text cut, light and dark."""

from __future__ import annotations

import copy
import re
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest
from lab_hour import Past, dashboard_source, of_a_boost, of_the_lab

from chromium import opened
from dashboard_queries import DASHBOARD, panels
from documented import DOCS

sys.path.insert(0, str(DOCS))

from draw_dashboard import EMPTY, UNITS, WIDTH, Part, Source, page, parts
from write_pictures import DASHBOARD as PICTURES
from write_pictures import THEMES

pytestmark = pytest.mark.cluster

OF_A_BOOST = {"Boosted", "Boost: until it is done, and until its time is up"}
"""Nothing was boosted in the hour of the lab."""
SILENT = {*OF_A_BOOST, "Policy"}
"""Nor had its objectives a calendar."""
UNCOUNTED = "PGs past their deep-scrub date"
"""Beside these the plugin of that hour counted no chunks that writes preempt."""

SEEN = """() => [...document.querySelectorAll('.panel')].map(panel => {
 const within = (one, box) => one.left >= box.left - 1 && one.right <= box.right + 1 &&
                              one.top >= box.top - 1 && one.bottom <= box.bottom + 1;
 const frame = panel.getBoundingClientRect(), cut = [];
 for (const one of panel.querySelectorAll('h3, .body, .legend, .stat'))
   if (one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 1) cut.push(one.textContent);
 for (const one of panel.querySelectorAll('svg text, .legend span, .stat b, .stat span, td, th, .absent')) {
   const holder = one.closest('svg') || one.closest('.legend') || panel;
   if (!within(one.getBoundingClientRect(), holder.getBoundingClientRect())) cut.push(one.textContent);
 }
 // curves are clipped to the axes as the grid is, which has its own colour; marks have no width
 const curves = [...panel.querySelectorAll('svg path[clip-path]')].filter(path =>
   !(path.getAttribute('style') || '').includes('--grid') && path.getBoundingClientRect().width > 4);
 return {title: panel.querySelector('h3').textContent, kind: panel.dataset.kind, cut,
         curves: curves.length, legends: panel.querySelectorAll('.legend span').length,
         shown: panel.querySelectorAll('.stat b, td').length,
         absent: [...panel.querySelectorAll('.absent')].map(one => one.textContent)}})"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Source]:
    with dashboard_source(tmp_path_factory.mktemp("lab")) as source:
        yield source


@pytest.fixture(scope="module")
def boosted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Source]:
    with dashboard_source(tmp_path_factory.mktemp("twin"), of_a_boost) as source:
        yield source


def drawn(source: Source) -> List[Part]:
    return [part for _, part in parts(DASHBOARD, source) if part.kind != "row"]


def seen(browser: Any, text: str, scheme: str, directory: Path) -> List[Dict[str, Any]]:
    file = directory / "dashboard.html"
    file.write_text(text, encoding="utf-8")
    with opened(browser, file, WIDTH, scheme) as shown:
        assert shown.holds(WIDTH)
        found: List[Dict[str, Any]] = shown.tab.evaluate(SEEN)
    return found


def empty(panel: Dict[str, Any]) -> bool:
    if panel["absent"]:
        return True
    return panel["curves"] < panel["legends"] or not (panel["curves"] or panel["shown"])


def test_every_query_has_series_in_the_hour_of_the_lab_but_those_of_boosts_and_policies(lab: Source) -> None:
    silent = {part.title: part.silent for part in drawn(lab) if part.silent}
    assert set(silent) == {*SILENT, UNCOUNTED}
    assert silent[UNCOUNTED] == ("chunks that writes preempt, per second",)


def test_queries_of_boosts_and_policies_have_series_while_the_plugin_boosts_under_one(boosted: Source) -> None:
    silent = {part.title for part in drawn(boosted) if part.silent}
    assert not silent & SILENT


@pytest.mark.parametrize("scheme", THEMES)
def test_no_panel_is_empty_and_no_text_is_cut(browser: Any, lab: Source, scheme: str, tmp_path: Path) -> None:
    found = seen(browser, page(DASHBOARD, lab), scheme, tmp_path)
    assert [panel["title"] for panel in found] == [panel["title"] for panel in panels()]
    assert {panel["title"]: panel["cut"] for panel in found if panel["cut"]} == {}
    assert {panel["title"] for panel in found if empty(panel)} == SILENT
    # what is empty says why
    assert {words for panel in found for words in panel["absent"]} == {"nothing is boosted", "no calendar"}


@pytest.mark.parametrize("scheme", THEMES)
def test_panels_of_a_boost_and_a_policy_are_full_while_there_is_one(
    browser: Any, boosted: Source, scheme: str, tmp_path: Path
) -> None:
    found = seen(browser, page(DASHBOARD, boosted, PICTURES["dashboard-mode"]), scheme, tmp_path)
    assert {panel["title"]: panel["cut"] for panel in found if panel["cut"]} == {}
    assert [panel["title"] for panel in found if panel["title"] in SILENT and empty(panel)] == []


def test_an_empty_panel_and_a_title_that_is_cut_are_seen(browser: Any, lab: Source, tmp_path: Path) -> None:
    document = copy.deepcopy(DASHBOARD)
    first, second = [panel for panel in document["panels"] if panel["type"] == "stat"][:2]
    first["targets"][0]["expr"] = "ceph_tuner_nothing"
    del first["fieldConfig"]["defaults"]["noValue"]
    second["title"] = "A title that is longer than its panel is wide"
    found = {panel["title"]: panel for panel in seen(browser, page(document, lab, ("Objectives",)), "light", tmp_path)}
    assert empty(found[first["title"]])
    assert found[first["title"]]["absent"] == [EMPTY]
    assert found[second["title"]]["cut"] == [second["title"]]


def test_rows_that_are_drawn_lie_together_and_keep_their_places(lab: Source) -> None:
    chosen = [part for _, part in parts(DASHBOARD, lab, ("Latency and queues", "Trouble, and the plugin itself"))]
    tops = [int(top) for part in chosen for top in re.findall(r"top: (\d+)px", part.style)]
    # a row's title, two rows of panels, and the same with one
    assert sorted(set(tops)) == [0, 38, 304, 570, 608]


def test_stats_show_what_holds_now_and_nothing_that_ended(lab: Source) -> None:
    shown = {part.title: part.body for part in drawn(lab)}
    for title, now, before in (("Phase", "trying", "observing"), ("Regime", "scrub-late", "trimming")):
        assert now in shown[title]
        assert before not in shown[title]


def test_the_table_says_which_value_is_the_bound(lab: Source) -> None:
    (table,) = (part.body for part in drawn(lab) if part.kind == "table")
    assert "<th>seen</th><th>bound</th>" in table
    assert "Value #" not in table


def test_every_trial_that_was_taken_back_is_counted(lab: Source) -> None:
    (panel,) = (panel for panel in panels() if panel["title"] == "Changes and rollbacks in an hour")
    (target,) = (target for target in panel["targets"] if target["legendFormat"].startswith("taken back {{device"))
    (series,) = lab.answers(target)
    assert round(series.points[-1][1]) == 3


def test_changes_are_marked_where_prometheus_scrapes_once_a_minute_too(tmp_path: Path) -> None:
    def each_minute() -> Past:
        lines, begin, end = of_the_lab()
        # not at the moments that are asked for, as scrapes never are
        kept = {
            name: [(labels, value, at + 10) for labels, value, at in samples if at % 60 == 0]
            for name, samples in lines.items()
        }
        return kept, begin, end

    with dashboard_source(tmp_path, each_minute) as source:
        marked = [source.answers(annotation) for annotation in DASHBOARD["annotations"]["list"]]
    assert [len(series) for series in marked] == [1, 1]


@pytest.mark.parametrize("part", ["type", "unit", "transformation"])
def test_what_is_not_drawn_is_refused(lab: Source, part: str) -> None:
    document = copy.deepcopy(DASHBOARD)
    (table,) = (panel for panel in document["panels"] if panel["type"] == "table")
    if part == "type":
        table["type"] = "gauge"
    elif part == "unit":
        table["fieldConfig"]["defaults"]["unit"] = "hertz"
    else:
        table["transformations"].append({"id": "sortBy", "options": {}})
    with pytest.raises(ValueError, match="not drawn"):
        page(document, lab, ("Objectives",))


def test_units_are_written_as_people_read_them() -> None:
    assert [UNITS["s"](value) for value in (0.0124, 3.2, 900.0)] == ["12.4 ms", "3.2 s", "15 min"]
    assert [UNITS["ops"](value) for value in (0.5, 250.0, 1200.0)] == ["0.5 ops/s", "250 ops/s", "1.2 kops/s"]
    assert UNITS["percentunit"](-0.25) == "-25%"
