from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from ruamel.yaml import YAML

from ceph_tuner.cluster.sampler import ClusterSampler
from ceph_tuner.core.book.explanation import BOOK_OFF
from ceph_tuner.core.errors import ClusterTimeout, CommandFailed, RetryLater, TunerError
from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.slo import Slo, parse_objective
from ceph_tuner.core.measure.metrics import METRICS
from ceph_tuner.core.measure.pg_documents import UNHEARD
from ceph_tuner.core.measure.sample import NEVER_S, Sample
from ceph_tuner.core.moments import utc
from ceph_tuner_cli import watch
from ceph_tuner_cli.watch_page import Moment, page
from running_program import Run
from twin_cluster.cluster import TwinCluster
from twins import small_twin

SLO = Slo("cluster", tuple(parse_objective(text) for text in ("client.p95_ms <= 80", "recovery.bytes_s >= 20 MB/s")))
TRIAL = {"words": ["The automatic mode is on.", *(f"Sentence {number} " + "x" * 90 for number in range(9))]}


def drawn(moment: Moment, height: int = 24, colour: bool = False) -> str:
    console = Console(width=80, height=height, file=io.StringIO(), force_terminal=colour, highlight=False)
    console.print(page(moment, height))
    return console.file.getvalue()  # type: ignore[attr-defined]


def moment(**given: Any) -> Moment:
    means = dict.fromkeys(METRICS, 1.0)
    known: Dict[str, Any] = {"seconds": 30.0, "means": {**means, "client.p95_ms": 91.0, "recovery.finish_s": 7200.0}}
    known = {**known, "judge": Judge(SLO), "trial": TRIAL, **given}
    return Moment("lab", "20.2.4", 1.7e9, **{"newest": known["means"], **known})


def test_a_full_page_fits_a_terminal_of_80_columns_and_24_lines() -> None:
    lines = drawn(moment()).splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80


@given(
    st.integers(24, 60),
    st.dictionaries(st.sampled_from(sorted(METRICS)), st.floats(0, NEVER_S), max_size=len(METRICS)),
    st.sampled_from([None, SLO]),
    st.sampled_from([None, TRIAL, {"words": ["short"], "problem": "broken"}]),
    st.lists(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=200), max_size=5),
)
def test_no_page_is_larger_than_its_terminal(
    height: int, means: Dict[str, float], slo: Optional[Slo], trial: Any, notes: Any
) -> None:
    shown = drawn(moment(means=means, judge=Judge(slo), trial=trial, notes=tuple(notes)), height).splitlines()
    assert len(shown) <= height
    assert all(len(line) <= 80 for line in shown)


def test_the_page_says_in_words_what_it_says_in_colours() -> None:
    plain, coloured = drawn(moment()), drawn(moment(), colour=True)
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain
    (missed,) = [line for line in plain.splitlines() if line.startswith("client.p95_ms")]
    assert re.search(r"hard +91 ms +-14% +MISSED", missed)


def test_times_to_finish_and_trouble_are_said() -> None:
    shown = drawn(moment(means={"recovery.finish_s": 7200.0, "snaptrim.drain_s": NEVER_S, "ops.slow": 3.0}))
    assert re.search(r"recovery .*\b2 h", shown)
    assert re.search(r"snaptrim .*\bnever", shown)
    assert "TROUBLE: 3 slow operations" in shown
    assert "no slow operations" in drawn(moment(means={"ops.slow": 0.0}))


def test_what_is_left_and_what_is_wrong_is_of_the_last_look_and_not_a_mean() -> None:
    means = {"osds.down": 0.37, "recovery.objects_left": 373.0, "recovery.objects_s": 12.2, "recovery.finish_s": 60.0}
    shown = drawn(moment(means=means, newest={"osds.down": 1.0, "recovery.objects_left": 733.0}))
    assert "TROUBLE: 1 OSD down" in shown
    assert re.search(r"recovery +12.2 /s +733 +60 s", shown)


def test_the_regime_and_the_page_in_force_are_said() -> None:
    rows = [
        {"scope": "", "regime": "busy+recovering", "since": 1.7e9 - 60},
        {"scope": "class=ssd", "regime": "idle", "since": 1.7e9 - 600, "turns_at": 1.7e9 + 600},
    ]
    book = [
        "the book is on, holding since then",
        "page 3 is in force, for the regime busy+recovering",
        "1 of 12 switches",
    ]
    shown = drawn(moment(trial={**TRIAL, "regimes": rows, "book": book}), 40)
    assert "regime: busy+recovering since 2023-11-14 22:12:20" in shown
    assert "regime of class=ssd: idle since 2023-11-14 22:03:20 UTC; the calendar turns it at" in " ".join(
        shown.split()
    )
    assert "page 3 is in force" in shown
    assert "1 of 12 switches" not in shown
    assert "the book" not in drawn(moment(trial={**TRIAL, "regimes": rows, "book": [BOOK_OFF]}), 40)


def test_the_policy_of_the_calendar_that_holds_is_said_and_until_when(twin: TwinCluster, run: Run) -> None:
    assert "policy" not in drawn(moment())
    for until, words in ((1.7e9 + 600, "until 2023-11-14 22:23 UTC"), (None, "for more than a year")):
        assert f"policy: office, {words}\n" in drawn(moment(policy={"name": "office", "until": until}), 40)

    def policy(*options: str) -> Any:
        out = run("watch", "--cluster", "twin", "--once", "--interval", "5", "--format", "json", *options)[1]
        return json.loads(out)["policy"]

    assert policy() is None
    twin.store.set("slo", json.dumps(SLO.to_dict()))
    assert policy() is None
    office = {"name": "office", "hours": "mon-sun 00:00-24:00", "objectives": ["client.p95_ms <= 8 ms"]}
    twin.store.set("slo", json.dumps({**SLO.to_dict(), "calendar": {"policies": [office]}}))
    assert policy() == {"name": "office", "until": None}
    twin.store.set("slo", "{")
    assert policy() is None


def test_the_policy_is_that_of_the_file_where_one_is_given(twin: TwinCluster, run: Run, tmp_path: Path) -> None:
    office = {"name": "office", "hours": "mon-sun 00:00-24:00", "objectives": ["client.p95_ms <= 8 ms"]}
    twin.store.set("slo", json.dumps({**SLO.to_dict(), "calendar": {"policies": [office]}}))
    file = tmp_path / "slo.yaml"
    file.write_text(json.dumps({"schema": 1, **SLO.to_dict(), "calendar": {"policies": [{**office, "name": "day"}]}}))
    options = ("--cluster", "twin", "--once", "--interval", "5", "--slo", str(file))
    document = json.loads(run("watch", *options, "--format", "json")[1])
    assert document["policy"] == {"name": "day", "until": None}
    assert document["verdicts"][-1]["objective"] == "client.p95_ms <= 8 ms"
    assert "policy: day, for more than a year" in run("watch", *options)[1]


def test_where_nothing_is_to_recover_its_rate_is_not_missed() -> None:
    idle = {"recovery.bytes_s": 0.0, "recovery.objects_s": 0.0, "recovery.objects_left": 0.0}
    (line,) = [line for line in drawn(moment(means=idle)).splitlines() if line.startswith("recovery.bytes_s")]
    assert line.split()[-1] == "unknown"
    busy = {**idle, "recovery.objects_left": 7.0}
    (line,) = [line for line in drawn(moment(means=busy)).splitlines() if line.startswith("recovery.bytes_s")]
    assert line.split()[-1] == "MISSED"


def test_the_longest_queue_has_the_longest_bar() -> None:
    means = {"queue.client": 10.0, "queue.background_recovery": 5.0, "queue.background_best_effort": 0.0}
    assert "queue per OSD: client 10 ##########, recovery 5 #####, best effort 0\n" in drawn(moment(means=means))


def test_wider_terminals_have_longer_lines() -> None:
    console = Console(width=120, height=40, file=io.StringIO(), highlight=False)
    console.print(page(moment(), 40, 120))
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert 80 < max(map(len, lines)) <= 120
    assert "Sentence 8 " + "x" * 90 in lines


@pytest.fixture
def twin(monkeypatch: pytest.MonkeyPatch) -> TwinCluster:
    opened = small_twin()
    monkeypatch.setattr(watch, "open_cluster", lambda name: opened)
    return opened


def test_once_gives_programs_what_was_seen_and_how_it_compares(twin: TwinCluster, run: Run) -> None:
    twin.store.set("slo", json.dumps(SLO.to_dict()))
    code, out, _ = run("watch", "--cluster", "twin", "--once", "--interval", "10", "--format", "json")
    document = json.loads(out)
    assert code == 0
    assert document["seconds"] == pytest.approx(10, rel=0.1)
    # the twin's clients offer 300 operations a second
    assert document["means"]["client.iops"] == pytest.approx(300, rel=0.2)
    assert [verdict["objective"] for verdict in document["verdicts"]] == [one.text for one in SLO.objectives]
    assert document["automatic"] is None
    _, out, _ = run("watch", "--cluster", "twin", "--once", "--interval", "10", "--format", "yaml")
    assert set(YAML(typ="safe").load(out)) == set(document)


def test_what_a_tuning_run_or_a_rollout_has_on_trial_is_shown_until_it_is_taken_back(
    twin: TwinCluster, run: Run
) -> None:
    def seen() -> Any:
        return json.loads(run("watch", "--cluster", "twin", "--once", "--interval", "5", "--format", "json")[1])

    own = twin.applier()
    entry = own.apply(own.plan("osd", {"osd_max_scrubs": 2}), "trial 3 of 8", trial=True)
    assert entry is not None
    assert [(trial["change"], trial["why"]) for trial in seen()["on_trial"]] == [(entry.number, "trial 3 of 8")]
    shown = drawn(replace(moment(on_trial=(entry,)), at=entry.changed + 42.0))
    assert "On trial for 42 s: change 1, target osd: trial 3 of 8\n" in shown
    # it is whole where there is room, and one line where there is none
    long_words = replace(entry, why="most likely to meet every constraint, " * 4)
    crowded = replace(moment(on_trial=(long_words,)), at=entry.changed)
    assert " ".join(drawn(crowded, height=100).split()).count("every constraint") == 4
    assert "constraint, most likely" not in drawn(crowded, height=26).partition("On trial")[2]
    own.undo_entry(entry)
    assert seen()["on_trial"] == []


def test_pages_follow_each_other_where_there_is_no_terminal_until_ctrl_c(
    twin: TwinCluster, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleep, naps = twin.clock.sleep, []

    def until_the_third(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) > 2:
            raise KeyboardInterrupt
        sleep(seconds)

    monkeypatch.setattr(type(twin.clock), "sleep", lambda clock, seconds: until_the_third(seconds))
    code, out, err = run("watch", "--cluster", "twin")
    assert code == 0
    assert out.count("queue per OSD:") == 2
    assert max(len(line) for line in out.splitlines()) <= 80
    assert err == ""


def test_a_look_that_fails_is_a_note_and_what_was_seen_stays(
    twin: TwinCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = watch.ClusterView(twin, None, 30.0)
    twin.clock.sleep(5)
    before = view.look()

    def silent(sampler: Any) -> None:
        raise ClusterTimeout("`osd dump` did not answer in time")

    monkeypatch.setattr(type(view._sampler), "sample", silent)
    twin.clock.sleep(5)
    after = view.look()
    assert after.notes == ("`osd dump` did not answer in time",)
    assert after.means == before.means
    assert after.at > before.at


def failing(monkeypatch: pytest.MonkeyPatch, twin: TwinCluster, seconds: float, error: TunerError) -> None:
    """Looks fail for so long, as during a failover of the mgr."""
    sample, end = ClusterSampler.sample, twin.clock.now() + seconds

    def until_then(sampler: ClusterSampler) -> Optional[Sample]:
        if twin.clock.now() < end:
            raise error
        return sample(sampler)

    monkeypatch.setattr(ClusterSampler, "sample", until_then)


@pytest.mark.parametrize(
    "error", [RetryLater(UNHEARD), ClusterTimeout("`pg ls` did not answer"), CommandFailed("pg ls", -11, "no mgr")]
)
def test_a_first_look_that_falls_into_a_failover_of_the_mgr_is_waited_for(
    twin: TwinCluster, run: Run, monkeypatch: pytest.MonkeyPatch, error: TunerError
) -> None:
    failing(monkeypatch, twin, 35.0, error)
    code, out, err = run("watch", "--cluster", "twin", "--once", "--format", "json")
    assert (code, json.loads(out)["seconds"]) == (0, pytest.approx(5, rel=0.1))
    # once, not with every try
    assert err == f"{twin.name} cannot be looked at yet: {error}; waiting for 60 s more at most\n"


def test_a_cluster_that_cannot_be_looked_at_for_a_minute_ends_with_3_and_what_to_do(
    twin: TwinCluster, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, twin, 1e6, RetryLater(UNHEARD))
    began = twin.clock.now()
    code, out, err = run("watch", "--cluster", "twin")
    assert (code, out) == (3, "")
    assert err.splitlines()[-1] == (
        f"error: {twin.name} could not be looked at for 60 s: {UNHEARD}. "
        "Next: see by `ceph -s` whether the monitors answer and a mgr is active, then try again"
    )
    assert 60 <= twin.clock.now() - began <= 65


def test_what_a_cluster_refuses_for_a_minute_ends_with_4(
    twin: TwinCluster, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, twin, 1e6, CommandFailed("pg ls", -22, "invalid command"))
    code, _, err = run("watch", "--cluster", "twin")
    assert code == 4
    assert "error: `pg ls` failed with -22: invalid command" in err


def test_ctrl_c_ends_the_waiting(twin: TwinCluster, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(clock: Any, seconds: float) -> None:
        raise KeyboardInterrupt

    failing(monkeypatch, twin, 1e6, RetryLater(UNHEARD))
    monkeypatch.setattr(type(twin.clock), "sleep", interrupted)
    assert run("watch", "--cluster", "twin")[:2] == (0, "")
    # a script that asked for one look has none
    assert run("watch", "--cluster", "twin", "--once")[:2] == (130, "")


def test_what_was_seen_before_the_window_is_shown_no_longer(twin: TwinCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    view = watch.ClusterView(twin, SLO, 30.0)
    twin.clock.sleep(5)
    seen_at = view.look().at

    def silent(sampler: Any) -> None:
        raise ClusterTimeout("`osd dump` did not answer in time")

    monkeypatch.setattr(type(view._sampler), "sample", silent)
    twin.twin.pass_over(3600)
    found = view.look()
    assert (found.means, found.newest, found.seconds) == ({}, {}, 0.0)
    assert found.notes == ("`osd dump` did not answer in time", f"last seen at {utc(seen_at)}")
    assert {verdict.met for verdict in found.verdicts()} == {None}
    shown = drawn(found)
    assert "no sample\n" in shown
    assert f"note: last seen at {utc(seen_at)}" in shown


def test_what_a_sample_lacks_is_a_note_on_the_page(twin: TwinCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    view, tell = watch.ClusterView(twin, None, 30.0), type(twin.commander).tell

    def without_osd_2(commander: Any, daemon: str, prefix: str, arguments: Any) -> str:
        if daemon == "osd.2":
            raise ClusterTimeout("no answer")
        return tell(commander, daemon, prefix, arguments)

    monkeypatch.setattr(type(twin.commander), "tell", without_osd_2)
    twin.clock.sleep(5)
    found = view.look()
    assert found.notes == ("no answer of osd.2",)
    assert "note: no answer of osd.2" in drawn(found)


def test_at_the_longest_interval_a_look_still_has_rates(
    twin: TwinCluster, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleep = type(twin.clock).sleep
    # asking 64 OSDs takes a while
    monkeypatch.setattr(type(twin.clock), "sleep", lambda clock, seconds: sleep(clock, seconds + 8.0))
    words = ("watch", "--cluster", "twin", "--once", "--format", "json", "--interval")
    code, out, _ = run(*words, str(watch.LONGEST_S))
    assert code == 0
    assert "client.iops" in json.loads(out)["means"]
    code, _, _ = run(*words, str(watch.LONGEST_S + 1))
    assert code == 2


def test_means_are_of_the_window_alone(twin: TwinCluster) -> None:
    view = watch.ClusterView(twin, None, 12.0)
    for _ in range(6):
        twin.clock.sleep(5)
        seen = view.look()
    assert 5 <= seen.seconds <= 17
