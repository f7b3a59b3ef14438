"""`ceph-tuner tune` from its arguments to the OSDs and back, on a twin behind the ports of a real cluster."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any, Callable, List

import pytest

from ceph_tuner.core.ceph.target import Place
from ceph_tuner.core.changes.journal import UNDONE, Journal
from ceph_tuner.core.changes.lock import PREFIX
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.trial import Run
from ceph_tuner.core.measure.history import History
from ceph_tuner.tune.past import learnt_of
from ceph_tuner.tune.twin_prior import TwinPrior
from ceph_tuner.twin.model import MIB, ScrubWork
from ceph_tuner_cli import tune, tune_prior
from ceph_tuner_cli.tune_page import TuneProgress
from ceph_tuner_cli.tune_parts import canary_of
from running_program import Run as Program
from twin_cluster.cluster import TwinCluster
from twins import small_twin

pytestmark = pytest.mark.slow


SLO = """\
schema: 1
name: scrub
objectives:
  - client.p95_ms <= 1.1 * baseline
  - objective: scrub.bytes_s >= 0.5 * baseline
"""

# as far as the twin knows it: the same OSDs, fewer of them
MODEL = """\
schema: 1
release: tentacle
osds: 4
osd:
  drive: {iops: 1 kIOPS, bandwidth: 60 MiB/s}
pools:
  - {name: rbd, pgs: 32, size: 2}
  - {name: other, pgs: 16, size: 3}
clients:
  - {pool: rbd, rate: 300 IOPS, read_share: 0.2, block: 4 KiB}
background:
  scrub:
    - {pool: other, objects: 2 k, object_size: 1 MiB}
"""


def short(cluster: str = "twin") -> List[str]:
    # the OSDs have no percentiles for a window without operations; a window of 30 s has thousands
    return ["--cluster", cluster, "--window", "30", "--settle", "5", "--trials", "2", "--format", "json"]


@pytest.fixture
def twin(monkeypatch: pytest.MonkeyPatch) -> TwinCluster:
    opened = small_twin(scrub=(ScrubWork("other", 2000, MIB),))
    monkeypatch.setattr(tune, "open_cluster", lambda name: opened)
    return opened


@pytest.fixture
def slo(tmp_path: Path) -> str:
    path = tmp_path / "slo.yaml"
    path.write_text(SLO, encoding="utf-8")
    return str(path)


def database(cluster: TwinCluster) -> str:
    return cluster.commander.mon("config dump", {})


def test_without_consent_nothing_is_measured_or_written_and_what_is_promised_is_said(
    twin: TwinCluster, slo: str, run: Program
) -> None:
    before, at = database(twin), twin.clock.now()
    for more in ([], ["--no-write-back"]):
        code, out, _ = run("tune", "--slo", slo, *short(), "--safe-probability", "0.9", *more)
        assert code == 0
        promised = " ".join(json.loads(out)["would"])
        assert "nothing was changed" in promised
        assert "with 90% probability" in promised
    assert (database(twin), twin.clock.now()) == (before, at)
    assert History(twin.store).trials() == []


def test_a_canary_gets_all_settings_before_the_others_and_each_once(twin: TwinCluster, slo: str, run: Program) -> None:
    _, out, _ = run("tune", "--slo", slo, *short(), "--canary", "host:h0")
    promised = " ".join(json.loads(out)["would"])
    assert "would write to 4 OSDs, all settings for 15 s to osd/host:h0 alone before the others" in promised
    arguments = (*short(), "--yes", "--no-prior", "--no-write-back", "--canary", "host:h0")
    before = database(twin)
    code, out, err = run("tune", "--slo", slo, *arguments)
    assert code in (0, 1), err
    tried = [trial["label"] for trial in json.loads(out)["trials"] if trial["kind"] == "trial"]
    # what is in force may be measured once more, and needs no write
    tried = [label for label in tried if label != "settings in force"]
    entries = sorted(Journal(twin.store).entries(), key=lambda entry: entry.number)
    assert {entry.state for entry in entries} == {UNDONE}
    firsts = [number for number, entry in enumerate(entries) if entry.target == "osd/host:h0"]
    assert len(firsts) == len(set(tried)) > 0
    for number in firsts:
        alone, everywhere = entries[number : number + 2]
        assert everywhere.target == "osd"
        assert [step.new for step in alone.steps if step.new] == [step.new for step in everywhere.steps if step.new]
    assert database(twin) == before


@pytest.mark.parametrize(
    ("canary", "words"),
    [
        ("host:h9", "covers no running OSD"),
        ("h0", "found `osd/h0`"),
        ("class:ssd", "found class:ssd, whose OSDs are no part of osd"),
        ("root:default", "found root:default, whose OSDs are no part of osd"),
    ],
)
def test_a_canary_is_a_part_of_the_target(twin: TwinCluster, slo: str, run: Program, canary: str, words: str) -> None:
    at = twin.clock.now()
    code, _, err = run("tune", "--slo", slo, *short(), "--yes", "--canary", canary)
    assert (code, words in " ".join(err.split())) == (2, True), err
    assert twin.clock.now() == at


def test_above_fifty_osds_a_host_goes_first_unless_none_is_to() -> None:
    places = [Place(osd, "ssd", {"host": f"h{osd % 17}", "root": "default"}) for osd in range(51)]
    places.append(Place(99, "ssd", {"host": "away"}, up=False))
    assert canary_of(None, "osd", places) == ("osd/host:h0", ("osd/host:h0",), 3)
    assert canary_of("none", "osd", places) is None
    racked = [*places, Place(60, "ssd", {"host": "x", "rack": "r1"})]
    assert canary_of("rack:r1", "osd", racked) == ("osd/rack:r1", ("osd/rack:r1",), 1)
    assert canary_of(None, "osd", places[:50]) is None
    # of the smallest hosts the first one
    assert canary_of(None, "osd", [*places, Place(70, "ssd", {"host": "small"})]) == (
        "osd/host:small",
        ("osd/host:small",),
        1,
    )
    with pytest.raises(InputError, match="51 OSDs and no host that is a part of osd"):
        canary_of(None, "osd", [Place(osd, "ssd", {"host": "one"}) for osd in range(51)])


def test_of_hosts_with_other_classes_the_canary_has_the_targets_osds_alone() -> None:
    mixed = [Place(osd, "hdd" if osd % 13 else "ssd", {"host": f"h{osd // 26}"}) for osd in range(1040)]
    first = canary_of(None, "osd/class:hdd", mixed)
    assert first == (
        "the 24 OSDs of osd/class:hdd on host h0",
        tuple(f"osd.{osd}" for osd in range(26) if osd % 13),
        24,
    )
    assert canary_of("host:h0", "osd/class:hdd", mixed) == first
    # a host of disks alone is one mask; what is down counts, as it follows when it starts
    alone = Place(1040, "hdd", {"host": "disks"})
    assert canary_of(None, "osd/class:hdd", [*mixed, alone]) == ("osd/host:disks", ("osd/host:disks",), 1)
    beside = Place(1041, "ssd", {"host": "disks"}, up=False)
    found = canary_of("host:disks", "osd/class:hdd", [*mixed, alone, beside])
    assert found is not None
    assert found.targets == ("osd.1040",)
    # hundreds of sections are no canary
    rooted = [Place(each.osd, each.device_class, {**each.locations, "root": "r"}) for each in mixed]
    rooted.append(Place(2000, "hdd", {"host": "far", "root": "other"}))
    with pytest.raises(InputError, match="found root:r, whose OSDs are no part of osd/class:hdd"):
        canary_of("root:r", "osd/class:hdd", rooted)


def test_what_could_not_be_written_is_told_before_anything_is_measured(
    twin: TwinCluster, slo: str, run: Program
) -> None:
    twin.config.set("global", "osd_mclock_scheduler_client_lim", "0.5")
    at = twin.clock.now()
    code, _, err = run("tune", "--slo", slo, *short(), "--yes", "--no-prior")
    assert (code, "`global` = 0.5" in " ".join(err.split())) == (2, True), err
    assert twin.clock.now() - at < 5
    assert History(twin.store).trials() == []
    assert [key for key in twin.store.keys(PREFIX) if twin.store.get(key)] == []


def test_a_run_keeps_its_promises_and_leaves_either_its_winner_or_nothing(
    twin: TwinCluster, slo: str, run: Program
) -> None:
    # what is in force misses it: where all is met, there may be nothing to try
    Path(slo).write_text(SLO.replace("<= 1.1 * baseline", "<= 0.9 * baseline"), encoding="utf-8")
    before = database(twin)
    code, out, err = run("tune", "--slo", slo, *short(), "--yes", "--profiles", "--no-prior")
    result = json.loads(out)
    assert code == (0 if result["winner"]["better"] and not result["withdrawn"] else 1), err
    kinds = [trial["kind"] for trial in result["trials"]]
    assert kinds[:3] == ["baseline", "profile", "profile"]
    assert result["search"]["unsafe"] == []
    assert (database(twin) == before) != result["written"]
    assert set(result["explanation"]["importance"]) == {"client.p95_ms", "scrub.bytes_s"}
    assert result["capacity"] == []
    bound = result["winner"]["verdicts"][0]["bound"]
    assert bound == pytest.approx(0.9 * result["baseline"]["client.p95_ms"])
    (began,) = {record["run"] for record in History(twin.store).trials()}
    assert began < result["trials"][0]["at"] + 1
    kept = learnt_of(History(twin.store), began)
    assert kept == {"run": began, "explanation": result["explanation"], "capacity": result["capacity"]}


@pytest.mark.usefixtures("quick")
def test_the_twin_is_asked_first_where_the_cluster_is_described(
    twin: TwinCluster, slo: str, run: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tune_prior, "TwinPrior", partial(TwinPrior, designs=24))
    described = tmp_path / "model.yaml"
    described.write_text(MODEL, encoding="utf-8")
    lock = TwinCluster.lock

    def late_lock(self: TwinCluster, *names: str) -> Any:
        # somebody writes another file while the lock is waited for
        described.write_text("nonsense", encoding="utf-8")
        return lock(self, *names)

    monkeypatch.setattr(TwinCluster, "lock", late_lock)
    _, out, err = run("tune", "--slo", slo, *short(), "--yes", "--no-write-back", "--model", str(described))
    result = json.loads(out)
    assert set(result["search"]["trust"]) == {"client.p95_ms", "scrub.bytes_s"}, err
    assert "        expected: client.p95_ms " in err
    held_by = {entry["name"]: entry["held_by"] for entry in result["capacity"]}
    assert held_by["client"] == "its own load"
    assert held_by["background_recovery"] == "no work"
    other = MODEL.replace("tentacle", "reef")
    described.write_text(other, encoding="utf-8")
    code, _, err = run("tune", "--slo", slo, *short(), "--yes", "--model", str(described))
    assert code == 2
    assert "a cluster of Reef" in err
    # said before anything is asked of the cluster
    described.write_text(f"{MODEL}target: osd/class:hdd\n", encoding="utf-8")
    code, _, err = run("tune", "--slo", slo, *short(), "--model", str(described))
    assert (code, "a description of osd/class:hdd, while osd is written to" in err) == (2, True)


def test_an_interrupted_run_is_resumed_with_the_same_proposals(
    twin: TwinCluster, slo: str, run: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    phase: Callable[..., Any] = TuneProgress.phase

    def strike(self: TuneProgress, doing: Run, number: int, total: int, what: str, seconds: float) -> None:
        phase(self, doing, number, total, what, seconds)
        if number == 2 and what == "measuring":
            raise KeyboardInterrupt

    before = database(twin)
    arguments = ["tune", "--slo", slo, *short(), "--yes", "--no-prior", "--no-write-back"]
    monkeypatch.setattr(TuneProgress, "phase", strike)
    code, _, err = run(*arguments)
    assert code == 130, err
    assert database(twin) == before
    assert twin.store.keys(PREFIX) == []
    monkeypatch.setattr(TuneProgress, "phase", phase)
    kept = History(twin.store).trials()
    _, out, err = run(*arguments, "--resume")
    assert "measured before the interruption" in err
    trials = json.loads(out)["trials"]
    assert trials[: len(kept)] == [{name: record[name] for name in trials[0]} for record in kept]
    assert len({record["run"] for record in History(twin.store).trials()}) == 1
    code, _, err = run(*arguments, "--resume", "--seed", "7")
    assert code == 2
    assert "differs in seed" in err


def test_a_second_run_learns_from_the_first(twin: TwinCluster, slo: str, run: Program) -> None:
    arguments = ["tune", "--slo", slo, *short(), "--yes", "--no-prior", "--no-write-back"]
    first = json.loads(run(*arguments)[1])
    twin.clock.sleep(60)
    assert json.loads(run(*arguments)[1])["search"]["lessons"] >= len(first["trials"]) - 1
    twin.clock.sleep(60)
    assert json.loads(run(*arguments, "--no-past")[1])["search"]["lessons"] == 0


@pytest.mark.parametrize(
    ("option", "value"), [("--safe-probability", "1"), ("--step-limit", "0"), ("--gross", "1"), ("--knobs", ",")]
)
def test_options_that_make_no_sense_are_refused(
    twin: TwinCluster, slo: str, run: Program, option: str, value: str
) -> None:
    code, _, err = run("tune", "--slo", slo, *short(), option, value)
    assert code == 2
    assert option in err
