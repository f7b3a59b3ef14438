from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, List, Tuple

import pytest

from ceph_tuner.core.knobs.catalogue import KNOBS, WORKS
from ceph_tuner.core.knobs.releases import RELEASES, format_version, parse_version
from ceph_tuner_cli.knobs import shown
from running_program import Run


def document(out: str) -> List[Any]:
    return list(json.loads(out))


def test_every_knob_of_every_release_is_there_for_programs(run: Run) -> None:
    code, out, _ = run("knobs", "--format", "json")
    found = document(out)
    assert code == 0
    assert [entry["name"] for entry in found] == list(KNOBS)
    assert all(set(entry["releases"]) == set(RELEASES) for entry in found)


def test_a_release_may_be_a_version(run: Run) -> None:
    (found,) = document(run("knobs", "osd_scrub_cost", "--release", "18.2.7", "--format", "json")[1])
    assert (found["release"], found["works"], found["default"]) == ("reef", False, 50 * 2**20)
    assert "osd_scrub_chunk_max" in found["instead"]


@pytest.mark.parametrize("release", RELEASES)
def test_no_name_is_cut_off_on_a_terminal_of_80_columns(run: Run, release: str) -> None:
    code, out, _ = run("knobs", "--release", release)
    assert code == 0
    assert all(name in out for name in KNOBS)


def test_a_sleep_says_that_it_works_under_wpq(run: Run) -> None:
    assert (
        "  under wpq: works on OSDs on flash, where osd_recovery_sleep is 0"
        in run("knobs", "osd_recovery_sleep_ssd")[1]
    )
    (found,) = document(run("knobs", "osd_requested_scrub_priority", "--format", "json")[1])
    assert found["under_wpq"].startswith("works")


def names(out: str) -> List[str]:
    return [entry["name"] for entry in document(out)]


def test_the_knobs_of_a_kind_of_work_are_its_own_and_the_shares_of_its_class(run: Run) -> None:
    assert names(run("knobs", "--work", "snaptrim", "--format", "json")[1]) == [
        "osd_mclock_profile",
        "osd_mclock_scheduler_background_best_effort_res",
        "osd_mclock_scheduler_background_best_effort_wgt",
        "osd_mclock_scheduler_background_best_effort_lim",
        "osd_snap_trim_cost",
        "osd_pg_max_concurrent_snap_trims",
        "osd_max_trimming_pgs",
        "osd_snap_trim_sleep",
        "osd_snap_trim_sleep_hdd",
        "osd_snap_trim_sleep_hybrid",
        "osd_snap_trim_sleep_ssd",
    ]


@pytest.mark.parametrize(("release", "service_class"), [("17.2.6", "background_recovery"), ("17.2.7", "best_effort")])
def test_the_shares_of_a_work_are_those_of_the_class_that_has_it_in_that_release(
    release: str, service_class: str, run: Run
) -> None:
    of_backfill = names(run("knobs", "--work", "backfill", "--release", release, "--format", "json")[1])
    assert [name for name in of_backfill if name.endswith("_lim")] == [
        f"osd_mclock_scheduler_{'background_' if service_class == 'best_effort' else ''}{service_class}_lim"
    ]


@pytest.mark.parametrize("work", WORKS)
def test_every_kind_of_work_has_knobs_that_are_tuned(work: str, run: Run) -> None:
    assert any(entry["searched"] for entry in document(run("knobs", "--work", work, "--format", "json")[1]))


def test_a_knob_that_is_not_tuned_says_why(run: Run) -> None:
    assert "  not tuned: mClock sets every sleep to 0" in run("knobs", "osd_snap_trim_sleep")[1]
    said = {entry["name"]: entry["not_tuned"] for entry in document(run("knobs", "--format", "json")[1])}
    assert {name for name, reason in said.items() if reason is None} == {
        name for name, entry in KNOBS.items() if entry.searched
    }


def test_one_knob_is_told_in_full(run: Run) -> None:
    out = run("knobs", "osd_scrub_cost")[1]
    assert "Quincy up to 17.2.6: default 50 MiB; works" in out
    assert "use osd_mclock_scheduler_background_best_effort_lim" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("knobs", "osd_max_scrub"),
            "knob: found 'osd_max_scrub', expected a known knob such as osd_max_scrubs",
        ),
        (("knobs", "--release", "pacific"), "error: --release: found 'pacific'"),
        (("knobs", "--release", "16.2.1"), "expected one of quincy-early"),
        (("knobs", "--work", "scrubs"), "error: --work: found 'scrubs', expected one of client, recovery"),
        (("knobs", "osd_max_scrubs", "--work", "scrub"), "error: --work: found scrub beside the names of knobs"),
    ],
)
def test_a_fault_is_one_line_and_exit_code_2(run: Run, arguments: Tuple[str, ...], message: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "version", "works", "default"),
    [
        ("osd_max_scrubs", "17.2.7", True, 1),
        ("osd_max_scrubs", "17.2.8", True, 3),
        ("osd_max_scrubs", "18.2.3", True, 1),
        ("osd_max_scrubs", "18.2.4", True, 3),
        ("osd_snap_trim_cost", "18.2.1", True, 1048576),
        ("osd_snap_trim_cost", "18.2.4", False, 1048576),
        ("osd_op_num_shards_hdd", "18.2.4", True, 5),
        ("osd_op_num_shards_hdd", "18.2.5", True, 1),
        ("osd_op_num_shards_hdd", "19.2.2", True, 5),
        ("osd_op_num_shards_hdd", "19.2.3", True, 1),
        ("osd_scrub_chunk_max", "19.2.0", True, 25),
        ("osd_scrub_chunk_max", "19.2.1", True, 15),
        ("osd_max_backfills", "17.2.5", False, 1000),
        ("osd_max_backfills", "17.2.6", True, 10),
        ("osd_scrub_cost", "17.2.6", True, 52428800),
        ("osd_scrub_cost", "17.2.7", False, 52428800),
    ],
)
def test_a_patch_level_is_honoured_on_either_side_of_a_boundary(
    name: str, version: str, works: bool, default: int, run: Run
) -> None:
    (found,) = document(run("knobs", name, "--release", version, "--format", "json")[1])
    assert (found["works"], found["default"]) == (works, default)


PAGES = Path(__file__).resolve().parents[2] / "docs" / "knobs"
_SPAN = re.compile(r"^\| from (\d+\.\d+\.\d+) \| ([^|]+) \| (works|does nothing)", re.MULTILINE)


def spans(name: str) -> List[Tuple[str, ...]]:
    """What a page says: from which version on, the default, and whether it works."""
    return [match.groups() for match in _SPAN.finditer((PAGES / f"{name}.md").read_text(encoding="utf-8"))]


BOUNDARIES = [(name, *both) for name in KNOBS for both in zip(spans(name), spans(name)[1:])]


@pytest.mark.parametrize(("name", "before", "after"), BOUNDARIES, ids=[f"{one[0]}-{one[2][0]}" for one in BOUNDARIES])
def test_the_program_answers_as_the_page_on_either_side_of_every_boundary_that_a_page_names(
    name: str, before: Tuple[str, ...], after: Tuple[str, ...], run: Run
) -> None:
    series, release, point = parse_version(after[0])
    levels = {after[0]: after}
    if point:
        levels[format_version((series, release, point - 1))] = before
    for level, (_, default, word) in levels.items():
        (found,) = document(run("knobs", name, "--release", level, "--format", "json")[1])
        own = "absent" if found["default"] is None else shown(KNOBS[name], found["default"])
        assert (own, found["works"]) == (default, word == "works"), level


def test_the_pages_name_boundaries() -> None:
    assert len(BOUNDARIES) > 20
