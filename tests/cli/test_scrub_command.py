from __future__ import annotations

import json
from datetime import timezone
from pathlib import Path
from typing import Any, Callable, Dict, Sequence, Tuple, cast

import pytest

from ceph_tuner.cluster.prometheus import Span
from ceph_tuner.core.changes.lock import claims
from ceph_tuner.core.goals.stored_slo import SLO_KEY, store_slo
from ceph_tuner.core.measure.history import History
from ceph_tuner.core.measure.sample import Measure, Window
from ceph_tuner.core.moments import stamp
from ceph_tuner.fleet import past
from ceph_tuner.fleet.contract import Member
from ceph_tuner.fleet.past import Course, PastMetrics
from ceph_tuner.gather import state_file
from ceph_tuner.gather.read_commands import gather
from ceph_tuner.scrub_plan.rates import HANDOVER_S
from ceph_tuner.twin.described_cluster import DescribedCluster
from ceph_tuner.twin.model import Pool, ScrubWork
from ceph_tuner_cli import cluster_option, render, scrub, scrub_rates
from ceph_tuner_cli.scrub_rates import of_late_pools
from keeping import by_day_and_night
from overdue import DAY, HOUR, MB, overdue_twin, pg, view
from running_program import Run
from twin_cluster.cluster import TwinCluster
from twins import small_model

pytestmark = pytest.mark.slow


LATE = {f"1.{number:x}": 20.0 - number for number in range(12)}


def with_windows(twin: TwinCluster, scrubbed: float = 50 * MB, p95_ms: float = 10.0, minutes: int = 30) -> TwinCluster:
    history, now = History(twin.store), twin.clock.now()
    values = {
        "client.iops": 300.0,
        "client.read_iops": 60.0,
        "client.write_iops": 240.0,
        "client.bytes_s": 1.2e6,
        "client.p95_ms": p95_ms,
        "scrub.bytes_s": scrubbed,
    }
    measures = {name: Measure(value, 0.0, 12) for name, value in values.items()}
    for minute in range(minutes, 0, -1):
        history.add_window(Window(now - 60 * minute, now - 60 * minute + 60, measures))
    return twin


@pytest.fixture
def opening(monkeypatch: pytest.MonkeyPatch) -> Callable[[TwinCluster], TwinCluster]:
    def opened(twin: TwinCluster) -> TwinCluster:
        for module in (scrub, cluster_option):
            monkeypatch.setattr(module, "open_cluster", lambda name: twin)
        return twin

    return opened


@pytest.fixture
def twin(opening: Callable[[TwinCluster], TwinCluster]) -> TwinCluster:
    return opening(with_windows(overdue_twin(LATE)))


def document(run: Run, *words: str) -> Tuple[int, Dict[str, Any]]:
    code, out, err = run("scrub", *words, "--cluster", "twin", "--format", "json")
    assert out, err
    return code, json.loads(out)


def test_a_plan_says_what_is_late_when_it_is_gone_and_why(twin: TwinCluster, run: Run) -> None:
    code, found = document(run, "plan", "--keep", "client.p95_ms<=20")
    assert code == 0
    assert [row["pgid"] for row in found["late"]] == sorted(LATE, key=lambda pgid: -LATE[pgid])
    assert twin.clock.now() < found["gone_at"] < twin.clock.now() + HOUR
    first, last = found["gone_between"]
    assert first <= found["gone_at"] <= last
    assert found["objectives"] == ["client.p95_ms <= 20 ms"]
    assert {rate["source"] for rate in found["rates"]} <= {"measured", "measured at other hours"}
    assert {"osd_max_scrubs", "osd_scrub_load_threshold"} <= {row["name"] for row in found["obstacles"]}
    for hour in found["hours"]:
        assert hour["planned_bytes"] <= hour["share_bytes"] + 1


def test_a_plan_is_about_what_scrub_pgs_late_counts(twin: TwinCluster, run: Run) -> None:
    from ceph_tuner.cluster.sampler import ClusterSampler

    _, found = document(run, "plan")
    assert len(found["late"]) == ClusterSampler(twin.commander, twin.clock).read().pgs_late == 12


def test_a_pool_s_own_interval_wins(twin: TwinCluster, run: Run) -> None:
    twin.commander.mon("osd pool set", {"pool": "rbd", "var": "deep_scrub_interval", "val": str(15 * DAY)})
    _, found = document(run, "plan")
    assert [row["pgid"] for row in found["late"]] == ["1.0", "1.1", "1.2", "1.3", "1.4"]


def test_the_past_by_prometheus_stands_in_the_place_of_the_windows(
    twin: TwinCluster, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def known(member: Member, metrics: Sequence[str], span: Span, timeout: float = 30.0) -> PastMetrics:
        # scrubs run at 10 MB/s, and between 8 and 20 h the objective is missed
        ends = [(span.start + number * span.step) / 1000 for number in range(1, span.count)]
        busy = {at: 8 <= (at - 1) % DAY / HOUR < 20 for at in ends}
        points = {
            "client.p95_ms": tuple((at, 30.0 if busy[at] else 10.0) for at in ends),
            "client.iops": tuple((at, 100.0) for at in ends),
            "scrub.bytes_s": tuple((at, 10 * MB) for at in ends),
        }
        courses = {name: Course(name, "plugin", span, points[name]) for name in metrics}
        return PastMetrics(member.name, span, courses, {})

    monkeypatch.setattr(past, "past_of", known)
    (tmp_path / "fleet.yaml").write_text(
        "schema: 1\nclusters:\n  north: {lab: a, prometheus: {url: 'http://127.0.0.1:9'}}\n"
    )
    words = ("--past", "north", "--fleet", str(tmp_path / "fleet.yaml"), "--keep", "client.p95_ms<=20")
    _, found = document(run, "plan", *words)
    assert [rate["mean"] > 0 for rate in found["rates"]] == [hour < 8 or hour >= 20 for hour in range(24)]
    assert {rate["source"] for rate in found["rates"]} == {"measured"}
    assert found["rates"][3]["mean"] == pytest.approx(10 * MB)


def test_each_hour_of_a_plan_is_judged_by_its_own_policy_of_the_calendar(
    opening: Callable[[TwinCluster], TwinCluster], run: Run
) -> None:
    # clients are at 30 ms: too much by day, and of no matter at night
    twin = opening(with_windows(overdue_twin(LATE), p95_ms=30.0))
    store_slo(twin.store, by_day_and_night("20"))
    _, found = document(run, "plan", "--days", "1")
    rates = {(row["hour"], row["policy"]): row["mean"] for row in found["rates"]}
    assert {rates[hour, "night"] for hour in (0, 1, 5, 22, 23)} == {50 * MB}
    assert {rates[hour, "base"] for hour in range(6, 22)} == {0.0}
    assert {hour["share_bytes"] > 0 for hour in found["hours"] if 6 <= hour["start"] % DAY / HOUR < 22} == {False}
    assert found["gone_at"] is not None
    assert found["policies"] == {"base": ["client.p95_ms <= 20 ms"], "night": []}
    _, out, _ = run("scrub", "plan", "--cluster", "twin", "--days", "1")
    assert "Objectives (night): none" in out
    assert "Objectives (base): client.p95_ms <= 20 ms" in out
    assert any(line.split()[:2] == ["06-22", "base"] for line in out.splitlines())


def test_a_drain_says_which_policy_holds_when_it_changes(
    opening: Callable[[TwinCluster], TwinCluster], run: Run
) -> None:
    twin = opening(with_windows(overdue_twin(LATE, objects=6400)))
    ends = twin.clock.now() // 60 * 60 + 120
    store_slo(twin.store, by_day_and_night("12", f"00:00-{stamp(ends)[11:16]}"))
    code, out, err = run("scrub", "drain", "--cluster", "twin", "--by", "4min", "--per-osd", "1", "--yes")
    assert code in (0, 1), out
    said = " ".join(err.split())
    night, base = (said.index(words) for words in ("keeps nothing: the policy night", "keeps client.p95_ms <= 12 ms"))
    assert night < base
    assert said.count("keeps ") == 2


def test_a_plan_changes_nothing(twin: TwinCluster, run: Run) -> None:
    before = twin.commander.mon("pg ls", {}), twin.store.keys("")
    document(run, "plan")
    assert (twin.commander.mon("pg ls", {}), twin.store.keys("")) == before
    assert twin.twin.requested_scrubs == []


def test_where_objectives_leave_nothing_the_exit_code_is_1(
    opening: Callable[[TwinCluster], TwinCluster], run: Run
) -> None:
    opening(with_windows(overdue_twin(LATE), p95_ms=30.0))
    code, found = document(run, "plan", "--keep", "client.p95_ms<=20")
    assert (code, found["gone_at"]) == (1, None)
    assert sorted(found["unplaced"])[:12] == sorted(LATE)


def test_a_flag_is_the_first_thing_that_a_plan_says(twin: TwinCluster, run: Run) -> None:
    twin.commander.mon("osd set", {"key": "nodeep-scrub"})
    code, out, _ = run("scrub", "plan", "--cluster", "twin")
    assert code == 1
    assert "nodeep-scrub is set, so nothing is done about it." in out
    assert "ceph osd unset nodeep-scrub" in out


def test_without_windows_the_twin_of_the_cluster_is_asked_and_that_is_said(
    opening: Callable[[TwinCluster], TwinCluster], run: Run
) -> None:
    opening(with_windows(overdue_twin(LATE), scrubbed=0.0))
    _, found = document(run, "plan", "--keep", "client.p95_ms<=200")
    assert {rate["source"] for rate in found["rates"]} == {"twin"}
    assert any("twin of this cluster" in note for note in found["notes"])
    assert found["there_bytes_s"] > 0


def test_the_twin_scrubs_the_pools_with_late_pgs() -> None:
    late, other = Pool("rbd", 16, 2), Pool("other", 16, 2)
    works = tuple(ScrubWork(pool.name, 320) for pool in (late, other))
    description = DescribedCluster("c", small_model(pools=(late, other), scrub=works), {})
    scrubbed = [pg("1.0", 3, pool="rbd"), pg("2.0", -3, pool="other")]
    assert of_late_pools(description, view(scrubbed)).model.scrub == works[:1]
    assert of_late_pools(description, view(scrubbed[1:])).model.scrub == works


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("more", [(), ("--all",)])
def test_pages_fit(
    twin: TwinCluster, run: Run, monkeypatch: pytest.MonkeyPatch, width: int, more: Tuple[str, ...]
) -> None:
    monkeypatch.setattr(render.console, "_width", width)
    twin.commander.mon("osd set", {"key": "nodeep-scrub"})
    _, out, _ = run("scrub", "plan", "--cluster", "twin", *more)
    assert max(map(len, out.splitlines())) <= width
    assert "12 of 16 PGs are late" in out


def test_a_drain_scrubs_what_is_late_and_says_so(twin: TwinCluster, run: Run) -> None:
    code, found = document(run, "drain", "--by", "8h", "--keep", "client.p95_ms<=200", "--yes")
    assert code == 0
    assert (found["reason"], found["done"], found["total"], found["left"]) == ("done", 12, 12, [])
    _, found = document(run, "plan")
    assert found["late"] == []


def test_a_drain_without_a_terminal_says_how_far_it_is_and_when_it_is_done(twin: TwinCluster, run: Run) -> None:
    code, out, err = run("scrub", "drain", "--cluster", "twin", "--by", "8h", "--yes")
    assert code == 0
    assert "12 of 12 PGs are deep-scrubbed, done at" in out
    assert "0 of 12 PGs" in err
    assert "done by" in err


def test_time_that_is_up_is_exit_code_1(twin: TwinCluster, run: Run) -> None:
    code, found = document(run, "drain", "--by", "2min", "--keep", "client.p95_ms<=0.01", "--yes")
    assert (code, found["reason"], len(found["left"])) == (1, "time is up", 12)


@pytest.mark.parametrize("more", [(), ("--dry-run",), ("--dry-run", "--yes")])
def test_without_yes_a_drain_shows_the_order_and_asks_for_nothing(
    twin: TwinCluster, run: Run, more: Tuple[str, ...]
) -> None:
    code, found = document(run, "drain", "--by", "8h", *more)
    assert code == 0
    assert found["commands"][:2] == ["ceph pg deep-scrub 1.0", "ceph pg deep-scrub 1.1"]
    assert found["keeps"] == "keeps nothing: no objective is set; --keep 'client.p95_ms<=20' sets one"
    code, out, err = run("scrub", "drain", "--cluster", "twin", "--by", "8h", "--keep", "client.p95_ms<=20", *more)
    assert code == 0
    assert "It keeps client.p95_ms <= 20 ms." in out
    assert "nothing is asked for: add --yes" in err
    assert twin.twin.requested_scrubs == []
    assert claims(twin.store) == []


def test_where_nothing_is_due_a_drain_says_so(opening: Callable[[TwinCluster], TwinCluster], run: Run) -> None:
    opening(with_windows(overdue_twin({})))
    code, out, err = run("scrub", "drain", "--cluster", "twin", "--by", "1h")
    assert code == 0
    assert " ".join(out.split()).startswith("No PG is late, and none is due by ")
    assert "in this order" not in out
    assert err.rstrip().endswith("nothing is asked for: there is nothing to do")


def test_a_drain_has_the_lock_of_the_product_while_it_goes_on(
    twin: TwinCluster, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    holders, ask = [], type(twin.commander).mon

    def look(commander: Any, prefix: str, arguments: Dict[str, str], payload: str = "") -> str:
        if prefix == "pg deep-scrub":
            holders.append([claim.holder.name for claim in claims(twin.store) if claim.held])
        return ask(commander, prefix, arguments, payload)

    monkeypatch.setattr(type(twin.commander), "mon", look)
    assert run("scrub", "drain", "--cluster", "twin", "--by", "8h", "--yes")[0] == 0
    assert len(holders) == 12
    assert all(len(names) == 1 and "ceph-tuner scrub drain" in names[0] for names in holders)
    assert claims(twin.store) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("plan", "--keep", "client.p95_ms=20"), "client.p95_ms <="),
        (("plan", "--keep", "scrub.bytes_s>=1MB/s"), "an objective about clients"),
        (("plan", "--time-zone", "Mars/Olympus"), "Europe/Berlin"),
        (("drain", "--by", "yesterday"), "2030-12-01"),
        (("drain", "--by", "2020-01-01"), "a time to come"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(twin: TwinCluster, run: Run, words: Tuple[str, ...], said: str) -> None:
    code, out, err = run("scrub", *words, "--cluster", "twin")
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1


def gathered(twin: TwinCluster, folder: Path) -> str:
    """The path of its state. What it says live is to be asked for before: two samples take their time."""
    path = folder / "state.tar.zst"
    state_file.write(path, gather(twin, interval_s=1.0))
    return str(path)


@pytest.mark.parametrize("keep", [(), ("--keep", "client.p95_ms<=20")])
def test_a_plan_by_a_gathered_file_is_that_of_the_cluster_then(
    twin: TwinCluster, run: Run, tmp_path: Path, keep: Tuple[str, ...]
) -> None:
    twin.store.set(SLO_KEY, json.dumps({"name": "x", "objectives": ["client.p95_ms <= 11"]}))
    twin.config.set("osd", "osd_scrub_begin_hour", "22")
    twin.config.set("osd", "osd_scrub_end_hour", "6")
    twin.commander.mon("osd pool set", {"pool": "rbd", "var": "deep_scrub_interval", "val": str(15 * DAY)})
    code, live = document(run, "plan", *keep)
    path = gathered(twin, tmp_path)
    twin.twin.pass_over(3 * HOUR)
    later, out, err = run("scrub", "plan", "--from", path, "--format", "json", *keep)
    assert (later, json.loads(out)) == (code, live), err
    assert len(live["late"]) == 5
    assert f"{path}: as of 2026-01-01 00:0" in err


def test_a_plan_by_a_file_says_of_when_it_is(twin: TwinCluster, run: Run, tmp_path: Path) -> None:
    code, out, err = run("scrub", "plan", "--from", gathered(twin, tmp_path))
    assert code == 0, err
    assert "12 of 16 PGs are late" in out
    assert "as of 2026-01-01 00:0" in err


def test_a_file_knows_which_pools_there_were(twin: TwinCluster, run: Run, tmp_path: Path) -> None:
    path = gathered(twin, tmp_path)
    code, _, err = run("scrub", "plan", "--from", path, "--keep", "client.mean_ms{pool=volumes}<=5")
    assert (code, "there is no pool called volumes" in " ".join(err.split())) == (2, True), err


def test_without_windows_the_twin_of_a_file_s_cluster_is_asked(
    opening: Callable[[TwinCluster], TwinCluster], run: Run, tmp_path: Path
) -> None:
    path = gathered(opening(with_windows(overdue_twin(LATE), scrubbed=0.0)), tmp_path)
    code, out, err = run("scrub", "plan", "--from", path, "--keep", "client.p95_ms<=200", "--format", "json")
    assert code in (0, 1), err
    assert "twin" in {rate["source"] for rate in json.loads(out)["rates"]}


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_of_a_drain_a_file_has_the_order_alone(
    twin: TwinCluster, run: Run, tmp_path: Path, more: Tuple[str, ...]
) -> None:
    _, live = document(run, "drain", "--by", "8h")
    path = gathered(twin, tmp_path)
    code, out, err = run("scrub", "drain", "--from", path, "--by", "8h", *more, "--format", "json")
    assert (code, json.loads(out)["commands"]) == (0, live["commands"]), err
    code, out, err = run("scrub", "drain", "--from", path, "--by", "8h", "--yes")
    assert (code, out) == (2, "")
    assert "a drain, which asks for scrubs, expected a live cluster (--cluster), or no --yes" in " ".join(err.split())


def test_a_plan_needs_a_cluster_or_a_file(twin: TwinCluster, run: Run, tmp_path: Path) -> None:
    for words in (("plan",), ("drain", "--by", "8h")):
        code, _, err = run("scrub", *words)
        assert (code, "a cluster, or a file of `ceph-tuner gather`" in " ".join(err.split())) == (2, True)
    code, _, err = run("scrub", "plan", "--from", gathered(twin, tmp_path), "--cluster", "twin")
    assert (code, "--cluster twin beside it" in err) == (2, True)


def test_pools_with_the_flag_are_left_out_of_a_drain(opening: Callable[[TwinCluster], TwinCluster], run: Run) -> None:
    twin = opening(with_windows(overdue_twin({**LATE, "2.0": 30.0}, pools=(Pool("rbd", 16, 2), Pool("archive", 1, 2)))))
    twin.twin.deep_scrubbed("2.0", twin.clock.now() - 30 * DAY)
    twin.commander.mon("osd pool set", {"pool": "archive", "var": "nodeep-scrub", "val": "1"})
    code, found = document(run, "drain", "--by", "8h", "--yes")
    assert (code, found["total"]) == (0, 12)
    assert "2.0" not in {pgid for _, pgid in twin.twin.requested_scrubs}


def test_where_osd_max_scrubs_is_0_nothing_is_planned_and_a_drain_needs_a_number(
    opening: Callable[[TwinCluster], TwinCluster], run: Run
) -> None:
    opening(with_windows(overdue_twin(LATE, {"osd_max_scrubs": 0})))
    code, found = document(run, "plan")
    assert (code, found["gone_at"]) == (1, None)
    code, out, _ = run("scrub", "drain", "--cluster", "twin", "--by", "8h")
    assert (code, "osd_max_scrubs is 0" in " ".join(out.split())) == (0, True)
    code, _, err = run("scrub", "drain", "--cluster", "twin", "--by", "8h", "--yes")
    assert code == 2
    assert "--per-osd" in err


def test_a_preview_says_whether_the_date_can_be_kept(opening: Callable[[TwinCluster], TwinCluster], run: Run) -> None:
    twin = opening(with_windows(overdue_twin(LATE), scrubbed=1 * MB))
    code, found = document(run, "drain", "--by", "8h")
    assert (code, twin.clock.now() < found["done_by"] <= found["by"]) == (0, True)
    _, out, _ = run("scrub", "drain", "--cluster", "twin", "--by", "8h")
    assert "all are done by 2026-" in out
    assert "(too late)" not in out
    _, out, _ = run("scrub", "drain", "--cluster", "twin", "--by", "5min")
    assert "(too late), if it begins now." in " ".join(out.split())


def test_a_drain_against_a_flag_is_shown_and_refused_with_what_to_do(twin: TwinCluster, run: Run) -> None:
    twin.commander.mon("osd set", {"key": "nodeep-scrub"})
    code, found = document(run, "drain", "--by", "8h")
    assert (code, len(found["would"]), len(found["commands"]), len(found["refused"])) == (0, 12, 12, 1)
    code, out, err = run("scrub", "drain", "--cluster", "twin", "--by", "8h")
    refusal = "With --yes it is refused: the cluster: nodeep-scrub is set. Use `ceph osd unset nodeep-scrub`"
    assert (code, refusal in " ".join(out.split())) == (0, True)
    assert "nothing is asked for: with --yes it is refused" in err
    code, _, err = run("scrub", "drain", "--cluster", "twin", "--by", "8h", "--yes")
    assert code == 2
    assert "ceph osd unset nodeep-scrub" in err
    code, found = document(run, "drain", "--by", "8h", "--despite-flags", "--yes")
    assert (code, found["done"]) == (0, 12)


@pytest.mark.parametrize("words", [("plan",), ("drain", "--by", "8h")])
def test_an_objective_about_a_pool_that_is_not_there_is_refused_by_name(
    twin: TwinCluster, run: Run, words: Tuple[str, ...]
) -> None:
    code, _, err = run("scrub", *words, "--cluster", "twin", "--keep", "client.mean_ms{pool=volumes}<=5")
    assert code == 2
    assert "there is no pool called volumes" in " ".join(err.split())
    assert twin.twin.requested_scrubs == []


def test_between_past_scrubs_nothing_is_read_in_as_many_places_as_their_pace_is_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pgs = [pg(f"2.{number}", raw_bytes=300 * MB, scrub_s=30.0, acting=(number, number + 1)) for number in range(12)]
    seen = view(pgs, max_scrubs=1)
    monkeypatch.setattr(scrub_rates._Rates, "_twin_pace", lambda self, wanted: (None, ()))
    rates, _ = scrub_rates._Rates(overdue_twin({}), seen, (), timezone.utc)._by_bounds(cast(Any, None), {})
    assert [each.mean for each in rates] == pytest.approx([300 * MB / (30.0 + HANDOVER_S)] * 24)
