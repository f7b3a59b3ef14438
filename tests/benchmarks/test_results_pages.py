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
import shards
import soak_on_lab
import tuning_on_lab
import why_on_lab
from measured_page import measured

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
        ("soak", soak_on_lab.table),
        ("tuning-on-lab", tuning_on_lab.tables),
        ("why-on-lab", why_on_lab.table),
    ],
)
def test_a_page_says_what_its_data_say(name: str, tables: Callable[..., str]) -> None:
    assert measured(RESULTS / f"{name}.md") == tables(runs_file.lines_of(RESULTS / f"{name}.jsonl"))
