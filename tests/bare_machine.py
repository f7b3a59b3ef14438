"""README's two commands from a fresh clone on a Debian that holds git, make and python3 alone: `make bare` runs this.

What is committed is cloned. Both of Ceph's trees are built there, side by side, as `make test` does on a new machine.
Of the tests themselves one of each kind runs: all the others run on this machine.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Iterator

import pytest

import pristine

CLONE = "/root/ceph-tuner"

ONE_OF_EACH = (
    # on each release's lab, with the plugin in its mgr, on both side by side, and on none
    "tests/test_plugin_on_cluster.py::test_the_module_loads_and_ceph_has_no_complaint_about_it",
    "tests/lab/test_lab.py::test_both_releases_run_side_by_side",
    "tests/lab/test_lab.py::test_taking_down_what_is_not_there_says_so",
    # what is fetched for the tests alone: a browser, Prometheus, an old Python
    "tests/report/test_in_browser.py::test_it_prints_dark_on_white[long]",
    "tests/mgr/test_dashboards.py::test_promtool_accepts_the_alerts_and_every_query_of_the_dashboard",
    "tests/test_rules_between_parts.py::test_the_core_imports_on_python_3_9",
)


@pytest.fixture(scope="module", params=["bookworm", "trixie"])
def bare(request: pytest.FixtureRequest) -> Iterator[pristine.Machine]:
    with pristine.machine(request.param) as machine:
        clone = ["git", "clone", "--quiet", "--depth", "1", f"file://{pristine.ROOT}", f"{machine.root}{CLONE}"]
        subprocess.run(clone, check=True)
        yield machine


def make(bare: pristine.Machine, log: Path, timeout: float, *words: str) -> str:
    code = bare.run(["make", *words], log, timeout, folder=CLONE)
    said = log.read_text(encoding="utf-8")
    assert code == 0, said[-6000:]
    return said


@pytest.mark.timeout(900)
def test_make_recommend_sets_itself_up_and_answers(bare: pristine.Machine, tmp_path: Path) -> None:
    said = make(bare, tmp_path / "log", 800, "recommend")
    assert "ceph config set osd osd_mclock_profile custom" in said


@pytest.mark.timeout(2400)
def test_make_test_brings_both_labs_up_and_skips_nothing(bare: pristine.Machine, tmp_path: Path) -> None:
    said = make(bare, tmp_path / "log", 2300, "test", f"TESTS={' '.join(ONE_OF_EACH)}")
    # the plugin's runs on each release
    assert f" {len(ONE_OF_EACH) + 1} passed" in said
    assert "skipped" not in said
