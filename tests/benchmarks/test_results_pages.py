"""What stands on a page of results is what its raw data say."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Callable

import changes
import kills_on_lab
import mgr_scale
import pytest
import repeatability
import runs_file
import search_table
import shards
import tuning_on_lab
import why_on_lab
from measured_page import measured

import search

TESTS = Path(__file__).resolve().parents[1]
RESULTS = TESTS.parent / "benchmarks" / "results"
sys.path.append(str(TESTS / "fuzz"))

import campaign  # noqa: E402


@pytest.mark.parametrize(
    ("name", "tables"),
    [
        ("changes", changes.table),
        ("fuzz", campaign.table),
        ("kills", kills_on_lab.table),
        ("mgr-scale", mgr_scale.table),
        ("repeatability", repeatability.table),
        ("shards", shards.table),
        ("tuning-on-lab", tuning_on_lab.tables),
        ("why-on-lab", why_on_lab.table),
    ],
)
def test_a_page_says_what_its_data_say(name: str, tables: Callable[..., str]) -> None:
    assert measured(RESULTS / f"{name}.md") == tables(runs_file.lines_of(RESULTS / f"{name}.jsonl"))


def test_the_page_of_the_search_says_what_its_runs_say() -> None:
    runs = search.read(RESULTS / "search.jsonl.gz")
    assert len(runs) == 392
    assert measured(RESULTS / "search.md") == search_table.tables(runs, ())
