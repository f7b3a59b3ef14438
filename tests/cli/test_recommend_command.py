"""`ceph-tuner recommend` on a small cluster: a model that is quick to run, and few trials."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List

import numpy as np
import pytest
from small_cluster import CLUSTER

from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.releases import MCLOCK_NINE
from ceph_tuner.files import cluster_file, fit_file, profile_file, slo_file
from ceph_tuner.recommend import Prediction, Question, SearchEffort
from ceph_tuner.recommend.answer import answer
from ceph_tuner.recommend.search import SearchedSettings, search
from ceph_tuner.search.designs import informed_designs
from ceph_tuner.search.optimiser import SettingsProposal
from ceph_tuner.search.space import KnobSpace
from ceph_tuner.twin.discrepancy import Discrepancy
from ceph_tuner.twin.fit import Fit, FittedParameter
from ceph_tuner_cli.recommend_page import runs_told
from running_program import LITTLE, Run

pytestmark = pytest.mark.slow

SLO = "schema: 1\nname: wanted\nobjectives:\n  - client.p95_ms <= {}\n  - recovery.finish_s <= {}\n"


@pytest.fixture
def files(tmp_path: Path) -> Callable[..., List[str]]:
    def write(latency: str = "0.8 * baseline", finish: str = "12 h", cluster: str = CLUSTER) -> List[str]:
        (tmp_path / "cluster.yaml").write_text(cluster)
        (tmp_path / "slo.yaml").write_text(SLO.format(latency, finish))
        return ["recommend", str(tmp_path / "cluster.yaml"), "--slo", str(tmp_path / "slo.yaml")]

    return write


SHARES = ",".join(name for name in MCLOCK_NINE if "best_effort" not in name)
"""Knobs of the nine alone: with the chunk of recovery among them that is all that is left of a winner here."""


def few(arguments: List[str], trials: int = 6) -> List[str]:
    return [*arguments, "--trials", str(trials), "--processes", "1", "--live-only"]


def by_label(document: Dict[str, Any]) -> Dict[str, Any]:
    return {entry["label"]: entry for entry in document["predictions"]}


@pytest.mark.usefixtures("quick")
def test_the_answer_has_what_a_decision_needs(files: Callable[..., List[str]], run: Run, tmp_path: Path) -> None:
    output = tmp_path / "found.yaml"
    code, out, _ = run(*few(files()), "--knobs", SHARES, "--format", "json", "--output", str(output))
    document = json.loads(out)
    found = by_label(document)
    assert {"high_client_ops", "balanced", "high_recovery_ops"} < set(found)
    winner = found[document["recommended"]["winner"]]
    # in this cluster every built-in profile lets recovery crowd out the clients, and a limit on it cures that
    assert code == 0
    assert not any(
        all(verdict["met"] for verdict in found[name]["verdicts"])
        for name in ("high_client_ops", "balanced", "high_recovery_ops")
    )
    assert all(verdict["met"] for verdict in winner["verdicts"])
    for entry in document["predictions"]:
        low, high = entry["intervals"]["client.p95_ms"]
        assert low <= entry["means"]["client.p95_ms"] * 1.01
        assert high >= entry["means"]["client.p95_ms"] * 0.99
    assert document["confirmed"]
    assert winner["runs"] == LITTLE.fresh
    # a quarter of the trials on top looks between neighbours of the front, where there is a gap
    looked = len([entry for entry in document["tried"] if entry["label"].startswith("trial")])
    assert 6 <= looked <= 7
    runs = LITTLE.seeds * (3 + looked) + LITTLE.fresh * (3 + LITTLE.finalists)
    # what the winner's knobs are worth comes on top, in pairs of at least so many runs
    kept = [entry for entry in document["knobs"] if not entry["put_back"]]
    weighed = document["evidence"]["simulated"]["runs"] - runs
    assert weighed >= LITTLE.seeds * (1 + len(document["knobs"]))
    assert weighed % LITTLE.seeds == 0
    assert {entry["name"] for entry in kept} <= set(document["recommended"]["settings"])
    for entry in kept:
        low, high = entry["without"][0]["interval"]
        assert entry["value"] != entry["in_force"]
        assert low <= entry["without"][0]["ratio"] <= high
    assert document["missed"] == []
    assert 0 < document["needed"]["client"] < 1
    # it is written by what takes effect first, and taken back with the profile last
    assert document["commands"][0] == "ceph config set osd osd_mclock_profile custom"
    assert len([command for command in document["commands"] if "osd_mclock_scheduler" in command]) == 9
    bandwidth = "osd_mclock_max_sequential_bandwidth_hdd"
    profile_back, bandwidth_back = (f"ceph config rm osd {name}" for name in ("osd_mclock_profile", bandwidth))
    assert document["undo"][-4:] == ["sleep 10", profile_back, "sleep 10", bandwidth_back]
    done, undone = (
        {re.sub(r"^ceph config (set|rm) osd (\S+).*", r"\2", command) for command in document[way]} - {"sleep 10"}
        for way in ("commands", "undo")
    )
    assert undone == done | {bandwidth}
    profile = profile_file.read(output)
    settings = {name: value for name, value in document["recommended"]["settings"].items() if "profile" not in name}
    assert settings == profile.settings
    assert profile.slos[0]["name"] == "wanted"


@pytest.mark.usefixtures("quick")
def test_the_page_fits_80_columns_and_ends_with_the_commands(
    files: Callable[..., List[str]], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = run(*few(files()), "--knobs", SHARES)
    assert code == 0
    table = out[: out.index("To apply it")]
    assert max(len(line) for line in table.splitlines()) <= 80
    words_of_parts = ("✗", "✓", "without this knob", "held by", "depends on", "Evidence: ")
    for words in ("recommended", "high_", "balanced", "(in force)", *words_of_parts):
        assert words in table
    assert "\n  ceph config set osd osd_mclock_profile custom\n" in out
    # not asked for
    assert "Beyond live knobs" not in out
    assert re.search(r"^best so far +client.p95_ms  recovery.finish_s\n(.*\n)*trial \d+ +[0-9.]+ ms", err)


def test_runs_are_told_as_they_were_where_some_had_fewer() -> None:
    def after(count: int) -> Prediction:
        return Prediction("", {}, ({},) * count)

    assert runs_told([after(12), after(4), after(8)]) == "4 to 12 runs"
    assert runs_told([after(12), after(12)]) == "12 runs"


@pytest.mark.usefixtures("quick")
def test_one_knob_that_does_it_all_is_tried_by_itself(files: Callable[..., List[str]], run: Run) -> None:
    document = json.loads(run(*few(files()), "--format", "json")[1])
    assert set(document["recommended"]["settings"]) == {"osd_recovery_max_chunk"}
    assert document["undo"] == ["ceph config rm osd osd_recovery_max_chunk"]
    # a trial as it was made: nothing had to be put back
    assert document["recommended"]["winner"].startswith("trial ")
    assert not document["recommended"]["winner"].endswith(", simpler")
    assert [entry["name"] for entry in document["knobs"]] == ["osd_recovery_max_chunk"]


@pytest.mark.usefixtures("quick")
def test_where_one_knob_does_it_all_nothing_else_is_written(
    files: Callable[..., List[str]], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mixtures(space: KnobSpace, work: Iterable[str]) -> List[SettingsProposal]:
        return [design for design in informed_designs(space, work) if "nothing else" not in design.why]

    monkeypatch.setattr("ceph_tuner.recommend.search.informed_designs", mixtures)
    output = tmp_path / "found.yaml"
    code, out, _ = run(*few(files()), "--format", "json", "--output", str(output))
    document = json.loads(out)
    # small chunks of recovery keep the latency here, whatever the shares are
    assert code == 0
    assert set(document["recommended"]["settings"]) == {"osd_recovery_max_chunk"}
    assert document["recommended"]["winner"].endswith(", simpler")
    assert {entry["name"] for entry in document["knobs"] if not entry["put_back"]} == {"osd_recovery_max_chunk"}
    assert len([entry for entry in document["knobs"] if entry["put_back"]]) > 1
    assert document["undo"] == ["ceph config rm osd osd_recovery_max_chunk"]
    assert set(profile_file.read(output).settings) == {"osd_recovery_max_chunk"}


@pytest.mark.usefixtures("quick")
def test_the_same_seed_gives_the_same_answer(files: Callable[..., List[str]], run: Run) -> None:
    arguments = [*files(), "--trials", "3", "--format", "json"]
    first = json.loads(run(*arguments, "--processes", "1")[1])
    # however many processes do the work
    assert json.loads(run(*arguments, "--processes", "2")[1]) == first
    other = json.loads(run(*arguments, "--processes", "1", "--seed", "7", "--live-only")[1])
    assert other["predictions"][0]["means"] != first["predictions"][0]["means"]


@pytest.mark.usefixtures("quick")
def test_what_cannot_be_met_is_explained(files: Callable[..., List[str]], run: Run) -> None:
    code, out, _ = run(*few(files("10 us", "1 min"), 3), "--format", "json")
    document = json.loads(out)
    assert code == 1
    (recovery,) = [entry for entry in document["missed"] if entry["objective"].startswith("recovery.finish_s")]
    # 400 000 copies of 4 MiB in a minute, over four drives of 1 GB/s
    assert not recovery["met_without_other_work"]
    assert recovery["without_other_work"] > 60
    assert recovery["best_seen"] <= recovery["predicted"]
    assert sum(document["needed"].values()) > 1
    page = run(*few(files("10 us", "1 min"), 3))[1]
    # a trial comes closer to both bounds, and that is not told as if nothing were gained, nor as if they were met
    assert document["recommended"]["better"]
    assert page.startswith(f"No settings meet every hard objective. The least bad, {document['recommended']['winner']}")
    assert "Missed: recovery.finish_s" in page
    assert "of the capacity that mClock believes" in " ".join(page.split())


@pytest.mark.usefixtures("quick")
def test_only_the_chosen_knobs_are_moved(files: Callable[..., List[str]], run: Run) -> None:
    knob = "osd_mclock_scheduler_background_recovery_lim"
    _, out, err = run(*few(files(), 4), "--knobs", knob, "--format", "json")
    assert out, err
    document = json.loads(out)
    assert document["searched"] == [knob]
    for entry in document["predictions"]:
        if entry["label"].startswith("trial"):
            # balanced reserves .5, .5 and .05, of which a custom profile may have no more than 1
            own = [entry["settings"][name] for name in MCLOCK_NINE if name.endswith("_res")]
            assert own == [0.47, 0.47, 0.04]


@pytest.mark.usefixtures("quick")
def test_what_is_for_one_class_is_written_to_no_other(
    files: Callable[..., List[str]], run: Run, tmp_path: Path
) -> None:
    arguments = few(files(cluster=f"{CLUSTER}target: osd/class:archive\n"))
    code, out, _ = run(*arguments, "--knobs", SHARES, "--output", str(tmp_path / "found.yaml"))
    assert code == 0
    commands = re.findall(r"ceph config (?:set|rm) (\S+)", out)
    assert len(commands) > 18
    assert set(commands) == {"osd/class:archive"}
    assert "--cluster ceph --target osd/class:archive" in out
    # a word on the command line counts more than the file's
    code, out, _ = run(*arguments, "--knobs", SHARES, "--target", "osd/host:h1", "--format", "json")
    document = json.loads(out)
    assert document["recommended"]["target"] == "osd/host:h1"
    writes = [command for command in [*document["commands"], *document["undo"]] if command != "sleep 10"]
    assert all(" osd/host:h1 " in command for command in writes)


@pytest.mark.usefixtures("quick")
def test_what_is_in_force_is_where_the_way_back_leads(files: Callable[..., List[str]], run: Run) -> None:
    nine = dict(zip(MCLOCK_NINE, (0.2, 1, 0.0, 0.6, 4, 0.0, 0.1, 1, 0.0)))
    lines = "".join(f"  {name}: {value}\n" for name, value in nine.items())
    described = f"{CLUSTER}settings:\n  osd_mclock_profile: custom\n{lines}"
    document = json.loads(run(*few(files(cluster=described)), "--knobs", SHARES, "--format", "json")[1])
    assert document["predictions"][0]["label"] == "in force"
    assert {"high_client_ops", "balanced", "high_recovery_ops"} <= set(by_label(document))
    # what is left to write of the nine goes back to the values that are in force
    assert "ceph config set osd osd_mclock_scheduler_background_recovery_res 0.600000" in document["undo"]
    assert not [command for command in document["undo"] if " rm " in command]


@pytest.mark.usefixtures("quick")
def test_a_fit_of_the_cluster_replaces_what_was_described(
    files: Callable[..., List[str]], run: Run, tmp_path: Path
) -> None:
    model = cluster_file.from_text(CLUSTER).model
    fitted = FittedParameter(
        "osd.device.bandwidth_bytes_s", "B/s", "the drive", 5e8, 0.1, 1e9, 0.3, "determined", 1e8, 9e9
    )
    fit_file.write(tmp_path / "fit.json", Fit({"now": model}, (fitted,), np.eye(1) * 0.01, Discrepancy({}, 1.0, 4)))
    described = CLUSTER + "calibration: fit.json\n"
    plain = json.loads(run(*few(files(), 1), "--format", "json")[1])["predictions"][0]
    told = json.loads(run(*few(files(cluster=described), 1), "--format", "json")[1])["predictions"][0]
    assert told["means"]["recovery.bytes_s"] < 0.8 * plain["means"]["recovery.bytes_s"]


def test_the_error_of_the_twin_widens_an_interval() -> None:
    runs = tuple({"client.p95_ms": value} for value in (4.0, 4.1, 3.9, 4.2))
    narrow = Prediction("x", {}, runs).interval("client.p95_ms")
    wide = Prediction("x", {}, runs, errors={"client.p95_ms": (0.4, 9.0)}).interval("client.p95_ms")
    assert narrow is not None
    assert wide is not None
    assert wide[0] < 0.6 * narrow[0] < narrow[1] < 0.6 * wide[1]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("recovery.finish_s", "scrub.interval_s", "no scrub in the description"),
        ("recovery.finish_s <= 12 h", "ops.slow <= 0", "the twin does not predict"),
    ],
)
def test_an_objective_that_the_twin_cannot_answer_is_refused(
    files: Callable[..., List[str]], run: Run, tmp_path: Path, old: str, new: str, words: str
) -> None:
    arguments = files()
    path = tmp_path / "slo.yaml"
    path.write_text(path.read_text().replace(old, new))
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert words in err


def test_a_knob_that_does_nothing_and_a_file_that_exists_are_refused_first(
    files: Callable[..., List[str]], run: Run, tmp_path: Path
) -> None:
    code, _, err = run(*files(), "--knobs", "osd_scrub_cost")
    assert (code, "does nothing on Tentacle" in err) == (2, True)
    code, _, err = run(*files(), "--output", str(tmp_path / "slo.yaml"))
    assert (code, "--force" in err) == (2, True)


class Silent:
    def __init__(self, interrupt_at: int = -1) -> None:
        self.interrupt_at, self.seen = interrupt_at, 0

    def phase(self, text: str, done: int, total: int) -> None:
        if 0 <= self.interrupt_at <= done:
            self.interrupt_at = -1
            raise KeyboardInterrupt

    def best(self, prediction: Prediction) -> None:
        self.seen += 1


def searched(report: Silent, effort: SearchEffort = SearchEffort(trials=4, seeds=1, fresh=2)) -> SearchedSettings:  # noqa: B008 - frozen
    model = cluster_file.from_text(CLUSTER).model
    slo = slo_file.from_text(SLO.format("0.8 * baseline", "12 h")).slo
    return search(Question(model, slo), effort, report, processes=1)


@pytest.mark.parametrize(("done", "tried"), [(4, 4), (9, 7)])
def test_an_interrupt_leaves_the_best_so_far(done: int, tried: int) -> None:
    found = searched(Silent(interrupt_at=done))
    assert (found.interrupted, found.confirmed, len(found.tried)) == (True, False, tried)
    # in this cluster no built-in profile holds the latency, and a trial does
    assert found.choice.better
    met = [all_met(found, entry) for entry in found.tried]
    assert (met[:3], any(met[3:])) == ([False] * 3, True)
    assert found.winner in found.tried
    assert all_met(found, found.winner)
    written = [f"ceph config set osd {name} " for name in found.winner.settings if name != PROFILE]
    commands = answer(found).commands
    assert all(any(command.startswith(start) for command in commands) for start in written)
    assert written


def test_an_interrupt_before_the_first_trial_leaves_what_is_in_force() -> None:
    found = searched(Silent(interrupt_at=3))
    assert [entry.label for entry in found.tried] == ["balanced", "high_client_ops", "high_recovery_ops"]
    assert (found.interrupted, found.choice.better, found.winner) == (True, False, found.before)
    assert not answer(found).commands


def all_met(found: SearchedSettings, entry: Prediction) -> bool:
    return all(verdict.met for verdict in found.judge.verdicts(entry.means))


def test_an_interrupt_before_anything_is_known_ends_it() -> None:
    with pytest.raises(KeyboardInterrupt):
        searched(Silent(interrupt_at=0))


def test_the_winner_is_chosen_on_seeds_that_the_search_never_saw() -> None:
    found = searched(Silent())
    again = {entry.label: entry for entry in found.compared}
    before = {entry.label: entry for entry in found.tried}
    assert set(again) <= set(before)
    for label, entry in again.items():
        assert len(entry.runs) == 2
        assert before[label].runs[0] not in entry.runs


def test_ctrl_c_shows_the_best_so_far_and_exits_130(files: Callable[..., List[str]]) -> None:
    command = [sys.executable, "-c", "from ceph_tuner_cli.main import main; main()", *files(), "--trials", "400"]
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ), start_new_session=True
    )
    assert running.stderr is not None
    for line in running.stderr:
        if line.startswith("balanced"):
            break
    time.sleep(0.2)
    # as a terminal does: to every process of the group
    os.killpg(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    assert "Traceback" not in err
    assert "Interrupted; not yet run on fresh seeds." in out
    assert "balanced" in out


@pytest.mark.parametrize("late", ["weighed", "missed_objectives", "explained"])
@pytest.mark.usefixtures("quick")
def test_ctrl_c_after_the_search_still_shows_the_whole_answer_and_exits_130(
    files: Callable[..., List[str]], run: Run, monkeypatch: pytest.MonkeyPatch, late: str
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"ceph_tuner.recommend.recommendation.{late}", interrupted)
    code, out, _ = run(*few(files(), 2), "--format", "json")
    document = json.loads(out)
    assert code == 130
    assert document["confirmed"]
    assert document["recommended"]


def test_nothing_of_the_lab_is_needed() -> None:
    code = "import sys, ceph_tuner.recommend.limits, ceph_tuner.files.cluster_file\n"
    code += "assert not [name for name in sys.modules if name.startswith('ceph_lab')]"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.usefixtures("quick")
def test_what_lies_beyond_live_knobs_is_planned_and_never_among_the_commands(
    files: Callable[..., List[str]], run: Run, tmp_path: Path
) -> None:
    output = tmp_path / "found.yaml"
    arguments = [*files(), "--trials", "2", "--processes", "1", "--format", "json", "--output", str(output)]
    document = json.loads(run(*arguments)[1])
    beyond = document["beyond_live_knobs"]
    assert beyond["tried"] > 5
    assert {entry["kind"] for entry in (*beyond["changes"], *beyond["not_worth_it"])} == {"restart", "moves data"}
    assert not [command for command in document["commands"] if "osd_op_num" in command or "pg_num" in command]
    if output.exists():
        assert not set(profile_file.read(output).settings) & {"pg_num", "osd_op_num_shards_ssd"}
