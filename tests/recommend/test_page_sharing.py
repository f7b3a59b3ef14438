"""Which settings regimes share, and what a page says of work that its regime lacks."""

from __future__ import annotations

from typing import Any, Dict

import pytest

from ceph_tuner.core.book.page import TWIN, UNVALIDATED, Page
from ceph_tuner.recommend.page_sharing import shared_settings, with_knobs_of_other_work

CHUNK, TRIMS, SCRUBS = "osd_recovery_max_chunk", "osd_max_trimming_pgs", "osd_max_scrubs"
WEIGHT = "osd_mclock_scheduler_client_wgt"
WORK = {
    "idle": ("client",),
    "busy": ("client",),
    "recovering": ("client", "recovery"),
    "trimming": ("client", "snaptrim"),
    "busy+recovering": ("client", "recovery"),
    "busy+backfilling": ("client", "recovery", "backfill"),
    "busy+recovering+trimming": ("client", "recovery", "snaptrim"),
}


def test_the_fewest_settings_that_serve_everywhere_are_taken() -> None:
    margins = {
        "idle": {"idle": 0.5, "busy": 0.4},
        "busy": {"busy": 0.3, "recovering": 0.2},
        "recovering": {"recovering": 0.3, "busy": 0.1},
    }
    assert set(shared_settings(margins).values()) == {"busy"}


def test_of_settings_that_serve_as_many_those_with_the_most_room_for_clients_are_taken() -> None:
    tight, roomy = "busy+recovering+trimming", "busy"
    margins = {regime: {tight: 0.45, roomy: 0.4} for regime in ("idle", "busy", "recovering")}
    margins["trimming"] = {tight: 0.05, roomy: 0.3}
    assert set(shared_settings(margins).values()) == {roomy}
    # what is beyond half of the bound decides nothing: that of the most work does
    margins["trimming"] = {tight: 0.6, roomy: 0.9}
    margins.update({regime: {tight: 0.6, roomy: 0.9} for regime in ("idle", "busy", "recovering")})
    assert set(shared_settings(margins).values()) == {tight}


def test_settings_that_break_the_bound_in_a_run_serve_only_where_none_keep_it() -> None:
    margins = {"busy": {"busy": 0.2, "idle": -0.1}, "idle": {"idle": 0.5}, "trimming": {"idle": -0.3}}
    assert shared_settings(margins) == {"busy": "busy", "idle": "idle", "trimming": "idle"}


def test_settings_that_serve_one_regime_more_give_way_where_as_few_have_more_room() -> None:
    wide, steady, other = "busy+recovering", "recovering", "trimming"
    margins: Dict[str, Dict[str, float]] = {
        "idle": {wide: 0.01, steady: 0.4},
        "recovering": {wide: 0.01, steady: 0.4},
        "busy+recovering": {wide: 0.01, other: 0.4},
        "trimming": {other: 0.4},
    }
    chosen = shared_settings(margins)
    assert chosen == {"idle": steady, "recovering": steady, "busy+recovering": other, "trimming": other}


def test_a_regime_that_nothing_serves_has_none() -> None:
    assert shared_settings({"idle": {}, "busy": {"busy": 0.1}}) == {"busy": "busy"}
    assert shared_settings({}) == {}


def page(number: int, regime: str, **settings: Any) -> Page:
    return Page(number, regime, settings, UNVALIDATED, TWIN, 5.0)


def test_a_page_has_the_knobs_of_work_that_its_regime_lacks_from_the_nearest_one() -> None:
    pages = (
        page(1, "busy", **{WEIGHT: 4, SCRUBS: 1}),
        page(2, "recovering", **{CHUNK: 2_000_000}),
        page(3, "busy+recovering", **{CHUNK: 500_000, WEIGHT: 9}),
        page(4, "busy+recovering+trimming", **{CHUNK: 700_000, TRIMS: 1}),
    )
    busy, recovering, both, _ = with_knobs_of_other_work(pages, WORK)
    # once an OSD is lost this page is in force for some samples more
    assert busy.settings == {WEIGHT: 4, SCRUBS: 1, CHUNK: 500_000, TRIMS: 1}
    assert recovering.settings == {CHUNK: 2_000_000, TRIMS: 1}
    assert both.settings == {CHUNK: 500_000, WEIGHT: 9, TRIMS: 1}


@pytest.mark.parametrize("regime", ["recovering", "busy+backfilling"])
def test_a_knob_of_work_that_the_regime_has_is_left_to_its_own_page(regime: str) -> None:
    # what is moved is recovered as well
    pages = (page(1, regime, **{SCRUBS: 1}), page(2, "busy+recovering", **{CHUNK: 500_000}))
    assert with_knobs_of_other_work(pages, WORK)[0].settings == {SCRUBS: 1}


def test_a_knob_is_taken_from_no_regime_that_lacks_its_work_as_well() -> None:
    pages = (page(1, "idle", **{WEIGHT: 4}), page(2, "busy", **{CHUNK: 500_000}))
    assert with_knobs_of_other_work(pages, WORK)[0].settings == {WEIGHT: 4}
