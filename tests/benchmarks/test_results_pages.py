"""What stands on a page of results is what its raw data say."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, List

import automatic_on_lab
import changes
import day
import day_on_lab
import false_alarms
import flight
import front_on_lab
import kills_on_lab
import mgr_scale
import pytest
import queues_on_lab
import recommendations
import recovery_limits
import repeatability
import runs_file
import scrub_backlog
import search_table
import shards
import soak_on_lab
import tuning
import tuning_on_lab
import twin_ahead
import twin_fitted
import twin_on_lab
import twin_repeated
import why_on_lab
from day_kinds import OFFICE_HOURS
from measured_page import measured

import search
import twin
from ceph_tuner.core.knobs.settings import settings_key

TESTS = Path(__file__).resolve().parents[1]
RESULTS = TESTS.parent / "benchmarks" / "results"
sys.path.append(str(TESTS / "fuzz"))

import campaign  # noqa: E402


@pytest.mark.parametrize(
    ("name", "tables"),
    [
        ("changes", changes.table),
        ("day", day.table),
        ("day-office", partial(day.table, kind=OFFICE_HOURS)),
        ("day-on-lab", day_on_lab.table),
        ("false-alarms", false_alarms.table),
        ("flight", flight.page),
        ("fuzz", campaign.table),
        ("kills", kills_on_lab.table),
        ("mgr-scale", mgr_scale.table),
        ("queues-on-lab", queues_on_lab.table),
        ("recovery-limits", recovery_limits.table),
        ("repeatability", repeatability.table),
        ("scrub-backlog", scrub_backlog.table),
        ("shards", shards.table),
        ("soak", soak_on_lab.table),
        ("tuning-on-lab", tuning_on_lab.tables),
        ("twin-ahead", twin_ahead.table),
        ("why-on-lab", why_on_lab.table),
    ],
)
def test_a_page_says_what_its_data_say(name: str, tables: Callable[..., str]) -> None:
    assert measured(RESULTS / f"{name}.md") == tables(runs_file.lines_of(RESULTS / f"{name}.jsonl"))


def test_a_page_says_what_the_twin_said_when_it_was_written() -> None:
    windows = runs_file.lines_of(RESULTS / "twin-ahead.jsonl")
    today = runs_file.lines_of(RESULTS / twin_ahead.AGAIN.name)
    assert len(today) == len(windows) == len({tuple(line[key] for key in twin_ahead.WINDOW) for line in today})
    assert measured(RESULTS / "twin-ahead.md", "again") == twin_ahead.again_table(today, windows)


def test_a_page_says_what_a_fitted_twin_said_of_settings_that_it_had_not_seen() -> None:
    windows = runs_file.lines_of(RESULTS / "twin-ahead.jsonl")
    fitted = runs_file.lines_of(RESULTS / "twin-fitted.jsonl")
    assert measured(RESULTS / "twin-ahead.md", "fitted") == twin_fitted.table(fitted, windows)
    assert all(line["label"].startswith(twin_fitted.DRAWN) for line in fitted)


def test_a_page_says_what_the_twin_says_of_windows_of_the_same_settings() -> None:
    windows, said = (runs_file.lines_of(RESULTS / f"{name}.jsonl") for name in ("repeatability", "twin-repeated"))
    assert measured(RESULTS / "twin-ahead.md", "repeated") == twin_repeated.table(said, windows)
    assert {(line["drive"], line["load"], line["seconds"]) for line in said} == set(twin_repeated.kinds_of(windows))
    shared = runs_file.lines_of(RESULTS / "twin-repeated-shared.jsonl")
    assert measured(RESULTS / "twin-ahead.md", "repeated, shared") == twin_repeated.table(shared, windows)


@pytest.mark.parametrize("name", ["hdd", "hdd-ec", "hybrid", "nvme-2"])
def test_a_twin_is_fitted_on_four_settings_at_most_and_on_none_that_it_predicts(name: str) -> None:
    path = RESULTS / f"twin-ahead-{name}.json"
    lines = [line for line in runs_file.lines_of(RESULTS / "twin-ahead.jsonl") if line["ahead_file"] == path.name]
    given = twin_fitted.windows_of(json.loads(path.read_text(encoding="utf-8")), lines)
    seen = twin_fitted.fitted_on(given)
    others = {window.same for window in given.observations if window not in seen}
    assert 1 <= len({settings_key(window.settings) for window in seen}) <= 4
    assert len(others) >= 3
    assert others.isdisjoint(window.same for window in seen)


@pytest.mark.parametrize("grid", front_on_lab.GRIDS.values(), ids=lambda grid: grid.name)
def test_the_page_of_the_front_says_what_its_grid_and_its_searches_say(grid: front_on_lab.Grid) -> None:
    entries, windows = (runs_file.lines_of(RESULTS / f"{name}.jsonl") for name in ("tuning-on-lab", "twin-ahead"))
    said = front_on_lab.page(grid, front_on_lab.searches_of(grid, entries), windows)
    assert measured(RESULTS / "front-on-lab.md", grid.name) == said


def test_the_page_of_the_automatic_mode_says_what_its_runs_say() -> None:
    lines = runs_file.lines_of(RESULTS / "automatic-on-lab.jsonl")
    assert measured(RESULTS / "automatic.md") == automatic_on_lab.table(lines)


def test_the_page_of_speed_says_what_recommendations_cost_and_are_worth() -> None:
    lines = runs_file.lines_of(RESULTS / "recommendations.jsonl")
    assert measured(RESULTS / "twin-speed.md") == recommendations.table(lines)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["families", "fresh-seeds", "new-scenarios", "scenarios", "untested-twin"])
def test_a_page_of_the_search_says_what_its_runs_say(suffix: str) -> None:
    name = f"search-{suffix}"
    runs = search.read(RESULTS / f"{name}.jsonl.gz")
    assert measured(RESULTS / f"{name}.md") == search_table.tables(runs, ())


@pytest.mark.slow
def test_the_page_of_the_search_says_what_its_runs_say() -> None:
    runs = search.read(RESULTS / "search.jsonl.gz")
    assert len(runs) == 392
    assert measured(RESULTS / "search.md") == search_table.tables(runs, ())


def test_windows_were_measured_against_predictions_that_are_still_the_same() -> None:
    for line in runs_file.lines_of(RESULTS / "twin-ahead.jsonl"):
        ahead = RESULTS / line["ahead_file"]
        assert line["ahead"] == twin_ahead.digest_of(ahead)
        (row,) = [
            row
            for row in json.loads(ahead.read_text(encoding="utf-8"))["rows"]
            if (row["load"], row["label"]) == (line["load"], line["label"])
        ]
        assert (row["settings"], row["predicted"]) == (line["settings"], line["predicted"])


def test_both_queues_were_measured_against_predictions_that_are_still_the_same() -> None:
    ahead = RESULTS / "queues-on-lab.json"
    digest = twin_ahead.digest_of(ahead)
    rows = {(row["load"], row["pool"]): row for row in json.loads(ahead.read_text(encoding="utf-8"))["rows"]}
    windows = queues_on_lab.windows_of(runs_file.lines_of(RESULTS / "queues-on-lab.jsonl"))
    assert {(line["load"], line["pool"]) for line in windows} == set(rows)
    for line in windows:
        row, label = rows[line["load"], line["pool"]], line["label"]
        assert line["ahead"] == digest
        assert line["predicted"] == row["predicted"].get(label, {})
        assert line["orders"] == queues_on_lab.choices_of(row).get(label, {}).get("orders", [])
    assert digest in (RESULTS / "queues-on-lab.md").read_text(encoding="utf-8")


def test_errors_coverage_and_pairs_of_predictions_are_counted() -> None:
    """Of three windows one is off by a fifth, and one pair of three differs by less than that."""

    def line(predicted: float, measured: float) -> Dict[str, Any]:
        of_metric = {"client.p95_ms": [predicted, predicted / 1.1, predicted * 1.1]}
        settings = {"osd_max_scrubs": predicted}
        return {"settings": settings, "predicted": of_metric, "measured": {"client.p95_ms": measured}}

    lines = [line(100, 100), line(120, 150), line(130, 140)]
    errors = twin_ahead.errors_of(lines, "client.p95_ms")
    assert [round(error, 2) for error, _ in errors] == [0.0, 0.2, 0.07]
    assert [held for _, held in errors] == [True, False, True]
    assert twin_ahead.told_rightly(lines, "client.p95_ms") == (2, 2)
    assert twin_ahead.told_rightly([*lines, line(110, 90)], "client.p95_ms") == (4, 4)
    assert twin_ahead.told_rightly([*lines, line(140, 90)], "client.p95_ms") == (2, 4)
    # neither window of the same settings is the better one, however far they differ
    assert twin_ahead.told_rightly([line(100, 100), line(100, 200)], "client.p95_ms") == (0, 0)


def test_shares_of_a_lab_are_held_against_what_is_wanted() -> None:
    """Intervals may hold too much as well, and what is shown decides."""
    counts = [
        twin_ahead.Count(84, 100, 94, 100),
        twin_ahead.Count(952, 1000, 949, 1000),
        twin_ahead.Count(96, 100, 1, 1),
    ]
    assert [count.share_held() for count in counts] == ["84% (missed)", "95%", "96% (missed)"]
    assert [count.share_right() for count in counts] == ["94% (missed)", "95%", "100%"]
    assert twin_ahead.Count(1, 1, 0, 0).share_right() == "no pairs"
    assert twin_ahead.total(counts[:2]) == (1036, 1100, 1043, 1100)


def test_pairs_are_of_the_same_load_and_rates_that_are_offered_say_nothing() -> None:
    def line(metric: str, predicted: float, measured: float) -> Dict[str, Any]:
        of_metric = {metric: [predicted, predicted, predicted]}
        return {"settings": {"osd_max_scrubs": predicted}, "predicted": of_metric, "measured": {metric: measured}}

    lines = [line("client.p95_ms", 10, 10), line("client.p95_ms", 20, 30)]
    assert twin_ahead.count_of(lines) == (1, 2, 1, 1)
    assert twin_ahead.count_of([*lines, line("client.iops", 5, 50)]) == (1, 2, 1, 1)


def markdown_tables(text: str) -> List[str]:
    """Every table of a text, whole."""
    blocks = "\n".join(line if line.startswith("|") else "" for line in text.split("\n")).split("\n\n")
    return [block.strip("\n") for block in blocks if block.strip("\n")]


def speed_table(document: Dict[str, Any]) -> str:
    return twin.render(document["measured"])


@pytest.mark.parametrize(
    ("data", "page", "tables", "count"),
    [
        ("tuning-nvme-recovery", "tuning", tuning.table, 1),
        ("tuning-nvme-scrub", "tuning", tuning.table, 1),
        ("tuning-recovery", "tuning", tuning.table, 1),
        ("tuning-scrub", "tuning", tuning.table, 1),
        ("twin", "twin", twin_on_lab.tables, 3),
        ("twin-speed", "twin-speed", speed_table, 1),
    ],
)
def test_each_table_of_measured_data_stands_on_its_page(
    data: str, page: str, tables: Callable[[Dict[str, Any]], str], count: int
) -> None:
    made = markdown_tables(tables(json.loads((RESULTS / f"{data}.json").read_text(encoding="utf-8"))))
    on_page = markdown_tables((RESULTS / f"{page}.md").read_text(encoding="utf-8"))
    assert len(made) == count
    assert [table for table in made if table not in on_page] == []


def test_the_page_of_the_twin_tells_the_coverage_of_its_data() -> None:
    text = twin_on_lab.tables(json.loads((RESULTS / "twin.json").read_text(encoding="utf-8")))
    (told,) = [line for line in text.split("\n") if line.startswith("Inside their 90 % intervals")]
    assert told in (RESULTS / "twin.md").read_text(encoding="utf-8").split("\n")
