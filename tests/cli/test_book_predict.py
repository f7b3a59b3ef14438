"""`ceph-tuner book predict`: from a described cluster to pages that the book takes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, List, Mapping, Tuple

import pytest
from small_cluster import CLUSTER

from ceph_tuner.core.book.book import Book, parse_book
from ceph_tuner.core.book.choice import OF_THE_TWIN, choose
from ceph_tuner.core.ceph.ports import Commander
from ceph_tuner.core.goals.slo import parse_slo
from ceph_tuner.core.goals.slo_calendar import SloCalendar, parse_slo_calendar
from ceph_tuner.core.goals.stored_slo import store_slo
from ceph_tuner.core.knobs.releases import RELEASES, format_version
from ceph_tuner.core.measure.history import History
from ceph_tuner.core.measure.sample import Measure, Window
from ceph_tuner.core.measure.timeline import REGIME, TimelineEntry
from ceph_tuner.core.regimes.bounds import BOUNDS_KEY, DEFAULT, Marker, PolicyMarker, RegimeBounds
from ceph_tuner.recommend import Question, recommendation
from ceph_tuner.recommend.search import WorkOver
from ceph_tuner.twin.model import MIB, RecoveryWork
from ceph_tuner_cli import book_predict, cluster_option
from running_program import Run
from twin_cluster.cluster import TwinCluster
from twins import Answering, small_twin

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick")]

SLO = "schema: 1\nname: wanted\nobjectives:\n  - client.p95_ms <= 0.8 * baseline\n  - recovery.finish_s <= 12 h\n"


@pytest.fixture
def files(tmp_path: Path) -> List[str]:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "slo.yaml").write_text(SLO)
    return [str(tmp_path / "cluster.yaml"), "--slo", str(tmp_path / "slo.yaml"), "--trials", "6", "--processes", "1"]


def test_a_regime_whose_work_the_twin_does_not_see_costs_the_others_nothing(
    run: Run, files: List[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    recommend = recommendation.recommend

    def over(question: Question, *arguments: Any, **named: Any) -> Any:
        if not question.model.recovery:
            raise WorkOver("scrub.bytes_s >= 1 MB/s", "nothing of it is left", "it left out")
        return recommend(question, *arguments, **named)

    monkeypatch.setattr(recommendation, "recommend", over)
    code, out, err = run("book", "predict", *files, "--format", "json")
    assert code == 0
    assert {"recovering"} <= {row["regime"] for row in json.loads(out)["regimes"]} <= {"recovering", "busy+recovering"}
    assert "left out: regime idle: scrub.bytes_s >= 1 MB/s: found nothing of it is left" in " ".join(err.split())
    # what was named has to be answered
    assert run("book", "predict", *files, "--regime", "idle")[0] == 2


def test_a_described_cluster_gives_pages_that_the_book_takes(run: Run, files: List[str], tmp_path: Path) -> None:
    output = tmp_path / "pages.json"
    code, out, err = run("book", "predict", *files, "--output", str(output), "--format", "json")
    document = json.loads(out)
    assert code == 0
    rows = {row["regime"]: row for row in document["regimes"]}
    # what the file has no work for is left out, and said
    assert list(rows) == ["idle", "busy", "recovering", "busy+recovering"]
    # that was not met: the pages of the others are tried there
    assert [row["searched"] for row in rows.values()] == [True, True, True, False]
    assert "left out: regime trimming: found no snaptrim in the description" in err
    assert rows["recovering"]["page"] == 1
    assert rows["recovering"]["work"] == ["client", "recovery"]
    assert rows["idle"]["left_out"] == ["recovery.finish_s <= 12 h"]
    # whoever imports it elsewhere is told of another release
    assert document["book"]["ceph"] == format_version(RELEASES["tentacle"].newest)
    book = Book().imported(parse_book(json.loads(output.read_text()), "pages").pages, 7.0)
    page, together = book.pages
    assert (page.regime, page.state, page.origin) == ("recovering", "unvalidated", "twin")
    assert (together.regime, together.settings) == ("busy+recovering", page.settings)
    assert rows["busy+recovering"]["reason"] == together.verdict
    assert page.effects["client.p95_ms"] < -0.2
    # only where the operator allows it
    assert choose(book, "recovering") is None
    assert choose(book, "recovering", OF_THE_TWIN) == page
    assert run("book", "predict", *files, "--output", str(output))[0] == 2


def test_the_page_on_the_screen_says_what_changes(run: Run, files: List[str]) -> None:
    code, out, _ = run("book", "predict", *files, "-R", "recovering", "--seed", "2")
    lines = out.splitlines()
    assert code == 0
    assert lines[0].startswith("recovering: page 1: ")
    assert lines[1] == "  clients ask for 4000 /s; client, recovery"
    assert any(line.startswith("  client.p95_ms ") and " -> " in line and "(-" in line for line in lines)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--regime", "trimming"], "no snaptrim in the description"),
        (["--regime", "sleeping"], "expected idle, or with + between them"),
        (["--add"], "no --cluster"),
        (["--cluster", "a"], "CLUSTER_FILE beside --cluster or --from"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_searched(
    run: Run, files: List[str], arguments: List[str], words: str
) -> None:
    code, _, err = run("book", "predict", *files, *arguments)
    assert code == 2
    assert words in " ".join(err.split())


def test_regimes_of_a_described_cluster_may_name_the_policies_of_its_calendar(
    run: Run, files: List[str], tmp_path: Path
) -> None:
    policies = [{"name": "office", "hours": "mon-fri 08:00-20:00", "objectives": ["client.p95_ms <= 0.6 * baseline"]}]
    slo, markers = tmp_path / "slo.yaml", tmp_path / "markers.json"
    slo.write_text(f"{SLO}calendar:\n  policies: {json.dumps(policies)}\n")
    degraded = Marker("degraded", "recovery.objects_left", 1.0, 0.0)
    markers.write_text(json.dumps(RegimeBounds((PolicyMarker("office", "office"), degraded)).to_dict()))
    code, out, err = run("book", "predict", *files, "--bounds", str(markers), "--format", "json")
    rows = {row["regime"]: row for row in json.loads(out)["regimes"]}
    assert code == 0
    assert {name: row["policy"] for name, row in rows.items()} == {
        "idle": "base",
        "office": "office",
        "degraded": "base",
        "office+degraded": "office",
    }
    assert "no marker names these policies" not in err
    markers.write_text('{"markers": [{"name": "office"}]}')
    code, _, err = run("book", "predict", *files, "--bounds", str(markers))
    assert (code, f"{markers}.markers.0" in "".join(err.split())) == (2, True)


def test_a_described_cluster_has_no_objectives_of_its_own(run: Run, files: List[str]) -> None:
    code, _, err = run("book", "predict", files[0])
    assert (code, "an SLO file" in err) == (2, True)


def test_without_anything_better_there_is_no_page(run: Run, files: List[str]) -> None:
    code, out, _ = run("book", "predict", *files, "-R", "idle", "--format", "json")
    document = json.loads(out)
    assert (code, document["book"]["pages"], document["regimes"][0]["page"]) == (1, [], None)


class BookBeside(Answering):
    """The plugin's book beside a twin's commands."""

    def __init__(self, commander: Commander) -> None:
        super().__init__(commander, {})
        self.books: List[Any] = []

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        if prefix == "tuner book import":
            self.books.append(json.loads(payload))
            return json.dumps({"notes": ["1 of 3 pages are imported"]})
        return super().mon(prefix, arguments, payload)


def with_book(monkeypatch: pytest.MonkeyPatch) -> Tuple[TwinCluster, BookBeside]:
    """A recovering cluster that the program opens by any name, and its plugin's book."""
    twin = small_twin(seed=3, recovery=(RecoveryWork("rbd", 500_000, MIB),))
    twin.twin.advance(120.0)
    plugin = BookBeside(twin.commander)
    cluster = replace(twin, commander=plugin)
    monkeypatch.setattr(book_predict, "open_cluster", lambda name: cluster)
    monkeypatch.setattr(cluster_option, "open_cluster", lambda name: cluster)
    return cluster, plugin


def test_a_cluster_is_asked_for_its_own_bounds_regimes_and_load_and_gets_the_pages(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, plugin = with_book(monkeypatch)
    wanted = parse_slo({"objectives": ["client.p95_ms <= 0.8 * baseline", "recovery.bytes_s >= 1 kB/s"]})
    store_slo(cluster.store, SloCalendar(wanted))
    loaded = Marker("loaded", "client.iops", 250.0, 200.0)
    degraded = Marker("degraded", "recovery.objects_left", 1.0, 0.0)
    cluster.store.set(BOUNDS_KEY, json.dumps(RegimeBounds((loaded, degraded)).to_dict()))
    now, history = cluster.clock.now(), History(cluster.store)
    history.add_change(TimelineEntry(now - 60.0, REGIME, "", "loaded+degraded").to_dict())
    # the last two are of a clock that was ahead
    for hour, rate in ((3, 400.0), (2, 100.0), (-48, 900.0), (-49, 900.0)):
        at = now - hour * 3600.0
        history.add_window(Window(at - 60.0, at, {"client.iops": Measure(rate, 0.0, 1)}))
    before = cluster.config.dump()
    code, out, err = run("book", "predict", "-c", "a", "--trials", "6", "--processes", "1", "--add", "--format", "json")
    document = json.loads(out)
    assert "note: 1 of 3 pages are imported" in err
    asked = {row["regime"]: row["client_iops"] for row in document["regimes"]}
    assert list(asked) == ["idle", "degraded", "loaded", "loaded+degraded"]
    assert asked["loaded"] == 400.0
    assert asked["idle"] < 250.0
    assert code == 0
    assert document["added"] == len(document["book"]["pages"]) > 0
    assert plugin.books == [document["book"]]
    assert cluster.config.dump() == before


@pytest.mark.parametrize(
    ("own", "regimes"),
    [
        ((), "idle"),
        (("busy",), "recovering"),
        (("recovering", "busy"), "busy+recovering"),
        (("recovering", "busy"), ""),
    ],
)
def test_pages_by_bounds_that_the_cluster_does_not_have_are_not_added(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own: Tuple[str, ...], regimes: str
) -> None:
    cluster, plugin = with_book(monkeypatch)
    policy = {"name": "night", "hours": "00:00-23:59"}
    wanted = {"objectives": ["client.p95_ms <= 60 s"], "calendar": {"policies": [policy]}}
    store_slo(cluster.store, parse_slo_calendar(wanted))
    markers = {each.name: each for each in DEFAULT.markers}
    # without markers of its own its policies have one each, so that no regime is without
    stored = [markers[name] for name in own] or [PolicyMarker("night", "night"), PolicyMarker("day", "base")]
    cluster.store.set(BOUNDS_KEY, json.dumps(RegimeBounds(tuple(stored)).to_dict()))
    file = tmp_path / "markers.json"
    file.write_text(json.dumps(RegimeBounds((markers["busy"], markers["recovering"])).to_dict()))
    named = ("-R", regimes) if regimes else ()
    code, _, err = run("book", "predict", "-c", "a", "--bounds", str(file), *named, "--add")
    assert code == 2
    assert f"by its own bounds: {regimes or 'busy+recovering'}" in " ".join(err.split())
    assert "book bounds" in err
    assert plugin.books == []


def test_a_regime_of_a_policy_is_asked_of_under_its_objectives_and_at_the_clients_of_its_hours(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, _ = with_book(monkeypatch)
    now = cluster.clock.now()
    hour_of_day = int(now % 86400 // 3600)
    policies = [
        # the hour before the last one, and one that is not kept
        {"name": "office", "hours": hours((hour_of_day - 2) % 24), "objectives": ["client.p95_ms <= 0.8 * baseline"]},
        {"name": "lunch", "hours": hours((hour_of_day + 5) % 24), "without": ["recovery.bytes_s"]},
    ]
    base = ["client.p95_ms <= 60 s", "recovery.bytes_s >= 1 kB/s"]
    store_slo(cluster.store, parse_slo_calendar({"objectives": base, "calendar": {"policies": policies}}))
    degraded = Marker("degraded", "recovery.objects_left", 1.0, 0.0)
    bounds = RegimeBounds((PolicyMarker("office", "office"), PolicyMarker("night", "night"), degraded))
    cluster.store.set(BOUNDS_KEY, json.dumps(bounds.to_dict()))
    history = History(cluster.store)
    for back, rate in ((2, 300.0), (1, 100.0)):
        start = now // 3600.0 * 3600.0 - back * 3600.0
        history.add_window(Window(start, start + 3540.0, {"client.iops": Measure(rate, 0.0, 1)}))
    history.add_window(Window(now - 60.0, now, {"client.iops": Measure(100.0, 0.0, 1)}))
    arguments = ("book", "predict", "-c", "a", "--trials", "6", "--processes", "1")
    regimes = ("-R", "degraded", "-R", "office+degraded")
    code, out, err = run(*arguments, *regimes, "--format", "json")
    rows = {row["regime"]: row for row in json.loads(out)["regimes"]}
    assert code == 0
    assert {name: row["policy"] for name, row in rows.items()} == {"degraded": "base", "office+degraded": "office"}
    assert rows["office+degraded"]["client_iops"] == 300.0
    # by the objectives of the base nothing is better than what is in force, and those of the other serve as well
    assert rows["degraded"]["reason"].startswith("found for office+degraded, and keeps the objectives here too")
    assert not rows["office+degraded"]["reason"].startswith("found for")
    seen = rows["office+degraded"]["effects"]["client.p95_ms"]
    assert seen["after"] < 0.8 * seen["before"]
    assert "no marker names these policies, so pages found for the base hold under them too: lunch" in err
    code, out, err = run(*arguments, "-R", "office")
    assert "  objectives of the policy office; clients ask for 300 /s; client" in out.splitlines()
    code, _, err = run(*arguments, "-R", "night")
    assert (code, "no policy night in the calendar" in " ".join(err.split())) == (2, True)
    code, _, err = run(*arguments, "-R", "office+night")
    assert (code, "one policy of the calendar at a time" in " ".join(err.split())) == (2, True)


def hours(hour: int) -> str:
    return f"{hour:02d}:00-{(hour + 1) % 24:02d}:00"
