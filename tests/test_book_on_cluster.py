"""The book on a real cluster: it switches with the load, another mgr goes on, and the way back is that of before it."""

from __future__ import annotations

import json
import subprocess
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple

import pytest

import waiting
from ceph_lab.cluster import Lab
from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.cluster.plugin import OPTION_PREFIX
from ceph_tuner.core.book.state import HOLDING, RESTING, WATCHING
from ceph_tuner.core.ceph.ports import ConfigEntry
from ceph_tuner.core.changes.journal import APPLIED, Journal
from ceph_tuner.core.errors import TunerError
from ceph_tuner.core.knobs.catalogue import PROFILE
from config_dump import osd_entries
from lab_mgrs import LabMgrs
from lab_plugin import with_plugin
from running_program import Run

pytestmark = [pytest.mark.cluster, pytest.mark.long]

INTERVAL_S = 1
QUICK = {"sample_interval": INTERVAL_S, "book_watch": 30, "book_dead_time": 0}
BOUNDS: Dict[str, Any] = {
    "dwell_s": 5,
    "markers": [{"name": "busy", "metric": "client.iops", "enter": 50, "leave": 10, "hold_s": 3}],
}
PAGES: List[Dict[str, Any]] = [
    {"number": 1, "regime": "idle", "settings": {PROFILE: "high_recovery_ops", "osd_max_scrubs": 2}},
    {"number": 2, "regime": "busy", "settings": {PROFILE: "high_client_ops", "osd_max_trimming_pgs": 1}},
]
_EVIDENCE = {"state": "validated", "origin": "trial", "at": 1.0}
RECOVERING = {"name": "recovering", "metric": "recovery.objects_left", "enter": 1, "leave": 0, "hold_s": 3}
SLO = """
schema: 1
name: clients
objectives:
  - client.p95_ms <= 0.8 * baseline
  - recovery.bytes_s >= 0.3 * baseline
"""
IMAGE = "rbd/book"
BENCH = ["rbd", "bench", "--io-type", "write", "--io-size"]
ENDLESS = ["--io-threads", "16", "--io-total", "100G", "--io-pattern", "rand"]
SLACK_S = 2.0
"""Of an interval and a write, on a busy machine, between the regime and its page."""


class BookLab:
    """A lab with the plugin and two regimes that the load makes."""

    def __init__(self, lab: Lab, cluster: Cluster) -> None:
        self.lab, self.cluster = lab, cluster
        self.mgrs = LabMgrs(lab, cluster.commander)

    def tuner(self, *words: str) -> Any:
        """A command's answer as a document."""
        return json.loads(self.lab.run(["ceph", "tuner", *words, "--format", "json"]))

    def book(self) -> Dict[str, Any]:
        """Its document; empty while no mgr answers."""
        with suppress(TunerError, ValueError):
            return dict(self.tuner("book", "show"))
        return {}

    def write_pages(self) -> None:
        """Pages of elsewhere, which an operator pins."""
        for command, document in (("bounds", BOUNDS), ("import", {"pages": [{**_EVIDENCE, **page} for page in PAGES]})):
            self.lab.run(["ceph", "tuner", "book", command, "-i", "-"], payload=json.dumps(document))
        assert [page["state"] for page in self.book()["pages"]] == ["unvalidated", "unvalidated"]
        for number in ("1", "2"):
            self.tuner("book", "pin", number)

    def page_and_phase(self) -> Tuple[int, str]:
        """Of one look; 0 and nothing while no mgr answers."""
        switching = self.book().get("switching", {})
        return int(switching.get("page", 0)), str(switching.get("phase", ""))

    def page(self) -> int:
        return self.page_and_phase()[0]

    def phase(self) -> str:
        return self.page_and_phase()[1]

    def config(self) -> List[ConfigEntry]:
        return osd_entries(self.cluster.config)

    def in_force(self) -> List[int]:
        return [entry.number for entry in Journal(self.cluster.store).entries() if entry.state == APPLIED]

    def until(self, holds: Callable[[], bool], seconds: float) -> None:
        waiting.until(holds, seconds, lambda: json.dumps(self.book(), indent=1), pause=0.5)

    @contextmanager
    def lacking_copies(self) -> Iterator[None]:
        """They are not rebuilt while this lasts."""
        self.lab.stop_osd(2)
        try:
            yield
        finally:
            self.lab.start_osd(2)

    @contextmanager
    def bench(self) -> Iterator[None]:
        """Clients, for as long as this lasts."""
        quiet = subprocess.DEVNULL
        with subprocess.Popen(self.lab.argv([*BENCH, "4096", *ENDLESS, IMAGE]), stdout=quiet, stderr=quiet) as bench:
            try:
                yield
            finally:
                bench.terminate()


@pytest.fixture(scope="module")
def book_lab(any_lab: Lab) -> Iterator[BookLab]:
    with with_plugin(any_lab) as cluster:
        for option, value in QUICK.items():
            any_lab.run(["ceph", "config", "set", "mgr", OPTION_PREFIX + option, str(value)])
        any_lab.run(["rbd", "create", IMAGE, "--size", "256M"])
        with any_lab.in_haste():
            # objects whose recovery clients feel
            any_lab.run([*BENCH, "1M", "--io-total", "256M", IMAGE])
        try:
            found = BookLab(any_lab, cluster)
            found.write_pages()
            yield found
        finally:
            any_lab.run(["rbd", "rm", IMAGE])
            for option in QUICK:
                any_lab.run(["ceph", "config", "rm", "mgr", OPTION_PREFIX + option])


def test_it_switches_with_the_load_and_off_is_as_before(book_lab: BookLab) -> None:
    lab = book_lab
    before = lab.config()
    lab.until(lambda: [each["regime"] for each in lab.book().get("regimes", [])][:1] == ["idle"], 60)
    lab.tuner("book", "on")
    lab.until(lambda: lab.page() == 1, 60)
    assert {ConfigEntry("osd", PROFILE, "high_recovery_ops"), ConfigEntry("osd", "osd_max_scrubs", "2")} <= set(
        lab.config()
    )
    (standing,) = lab.in_force()

    with lab.bench():
        lab.until(lambda: lab.page() == 2, 60)
        shown = lab.book()
        busy = shown["regimes"][0]
        assert busy["regime"] == "busy"
        # written within an interval of the sample that told the regime
        assert shown["switching"]["switches"][-1] - busy["since"] < INTERVAL_S + SLACK_S + 3.0
        table = set(lab.config())
        assert {
            ConfigEntry("osd", PROFILE, "high_client_ops"),
            ConfigEntry("osd", "osd_max_trimming_pgs", "1"),
        } <= table
        assert [entry.value for entry in table if entry.name == "osd_max_scrubs"] == [
            entry.value for entry in before if entry.name == "osd_max_scrubs"
        ]
        assert lab.in_force() == [standing]
        lab.until(lambda: lab.phase() == HOLDING, 60)
        # another mgr goes on with it
        lab.lab.run(["ceph", "mgr", "fail"])
        lab.until(lambda: lab.phase() == HOLDING, 60)
        assert lab.page() == 2
        assert set(lab.config()) == table

    lab.until(lambda: lab.page() == 1, 90)
    assert lab.in_force() == [standing]
    lab.tuner("book", "off")
    lab.until(lambda: lab.phase() == RESTING, 60)
    assert lab.config() == before
    assert lab.in_force() == []


@pytest.mark.parametrize("phase", [WATCHING, HOLDING])
def test_a_mgr_that_is_killed_with_a_page_in_force_leaves_one_change_and_the_same_page(
    book_lab: BookLab, phase: str
) -> None:
    """A standby goes on where there is one; else the same mgr does, once it runs again."""
    lab = book_lab
    before = lab.config()
    lab.tuner("book", "on")
    lab.until(lambda: lab.page_and_phase() == (1, HOLDING), 90)
    with lab.bench():
        lab.until(lambda: lab.page_and_phase() == (2, phase), 90)
        during, standing = lab.config(), lab.in_force()
        lab.mgrs.kill_active()
        # what was still watched is taken back, and written again; what was kept stays
        lab.until(lambda: lab.page_and_phase() == (2, HOLDING), 120)
        assert lab.config() == during
        assert len(lab.in_force()) == 1
        assert (lab.in_force() == standing) == (phase == HOLDING)
    lab.until(lambda: lab.page() == 1, 90)
    lab.tuner("book", "off")
    lab.until(lambda: lab.phase() == RESTING, 60)
    assert lab.config() == before
    assert lab.in_force() == []


def test_somebody_elses_value_ends_it_and_stays(book_lab: BookLab) -> None:
    lab = book_lab
    before = lab.config()
    lab.tuner("book", "on")
    lab.until(lambda: lab.page() == 1, 60)
    lab.lab.run(["ceph", "config", "set", "osd", "osd_max_scrubs", "5"])
    lab.until(lambda: lab.phase() == RESTING, 60)
    assert set(lab.config()) == {*before, ConfigEntry("osd", "osd_max_scrubs", "5")}
    # health is told with the next sample
    lab.until(lambda: "TUNER_BOOK_STOPPED" in lab.lab.json(["ceph", "health"])["checks"], 30)
    lab.lab.run(["ceph", "config", "rm", "osd", "osd_max_scrubs"])
    assert lab.config() == before


def test_a_page_that_the_twin_found_holds_in_its_regime(book_lab: BookLab, run: Run, tmp_path: Path) -> None:
    lab, slo = book_lab, tmp_path / "slo.yaml"
    slo.write_text(SLO)
    before = lab.config()
    bounds = {**BOUNDS, "markers": [*BOUNDS["markers"], RECOVERING]}
    lab.lab.run(["ceph", "tuner", "book", "bounds", "-i", "-"], payload=json.dumps(bounds))
    words = ("--slo", str(slo), "--regime", "busy+recovering", "--trials", "10", "--add", "--format", "json")
    with lab.bench():
        # a description has the clients of now
        lab.until(lambda: "busy" in [row["regime"] for row in lab.book().get("regimes", [])], 60)
        code, out, err = run("book", "predict", "--cluster", lab.lab.name, *words)
    assert code == 0, (out, err)
    (made,) = json.loads(out)["regimes"]
    (page,) = [page for page in lab.book()["pages"] if page["regime"] == "busy+recovering"]
    assert (page["state"], page["origin"], page["settings"]) == ("unvalidated", "twin", made["settings"])
    assert made["effects"]["client.p95_ms"]["after"] < made["effects"]["client.p95_ms"]["before"]
    assert lab.config() == before

    option = OPTION_PREFIX + "book_unvalidated"
    lab.lab.run(["ceph", "config", "set", "mgr", option, "twin"])
    try:
        with lab.lacking_copies(), lab.bench():
            lab.tuner("book", "on")
            lab.until(lambda: lab.page() == page["number"], 60)
            assert {("osd", name) for name in made["settings"]} <= {(entry.who, entry.name) for entry in lab.config()}
        lab.until(lambda: lab.page() != page["number"], 120)
    finally:
        lab.tuner("book", "off")
        lab.until(lambda: lab.phase() == RESTING, 60)
        lab.lab.run(["ceph", "config", "rm", "mgr", option])
    assert lab.config() == before
