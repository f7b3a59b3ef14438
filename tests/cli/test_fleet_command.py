from __future__ import annotations

import json
import socket
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, Iterator, List, Tuple

import distributed
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.goals.stored_slo import BASELINE, SLO_KEY
from ceph_tuner.core.knobs.releases import TENTACLE
from ceph_tuner.core.measure.history import History
from ceph_tuner.core.measure.sample import Measure, Window
from ceph_tuner.fleet import portable_file
from ceph_tuner.fleet.contract import Member
from ceph_tuner.fleet.portable import sealed
from ceph_tuner.workers import dask_workers
from ceph_tuner_cli import fleet_foresight, fleet_profiles, fleet_rollout
from ceph_tuner_profiles import catalogue
from fake_dashboard import PAGES, PASSWORD, USER, FakeDashboard, serving
from monitors import ManualClock, Monitors, keep_slo
from running_program import Run

pytestmark = pytest.mark.slow

DESCRIPTION = """\
schema: 1
release: 20.2.4
osds: 3
osd:
  drive: {iops: 1075 IOPS, bandwidth: 60 MiB/s}
  capacity_iops: 935 IOPS
  bandwidth: 60 MiB/s
  shards: 1
  threads_per_shard: 5
  throttle: 256 KiB
pools:
  - {name: rbd, pgs: 32, size: 3}
clients:
  - {pool: rbd, rate: 100, depth: 64}
background:
  scrub:
    - {pool: rbd, objects: 200 k, object_size: 64 KiB}
"""

LOAD = {"client.iops": 300.0, "client.write_iops": 300.0, "client.bytes_s": 1.2e6, "client.p95_ms": 20.0}


class Commands:
    """What the fake monitors have no command for."""

    def mon(self, prefix: str, arguments: Any, payload: str = "") -> str:
        version = {"osd": {"ceph version 20.2.4 (x) tentacle (stable)": 3}}
        health: Any = {"status": "HEALTH_OK", "checks": {}}
        return json.dumps({"health": health, "versions": version, "osd metadata": []}[prefix])


def listed(tmp_path: Path, **urls: str) -> str:
    clusters = [
        f"  {name}:\n    dashboard: {{url: '{url}', verify: false, username: {USER}, password: {{env: PW}}}}\n"
        f"    labels: {{site: {name[0]}}}\n"
        for name, url in urls.items()
    ]
    path = tmp_path / "fleet.yaml"
    path.write_text("schema: 1\nclusters:\n" + "".join(clusters))
    return str(path)


@pytest.fixture
def nobody() -> Iterator[str]:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{unused.getsockname()[1]}"


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Tuple[FakeDashboard, FakeDashboard]]:
    monkeypatch.setenv("PW", PASSWORD)
    quiet: Dict[str, Any] = json.loads(json.dumps(PAGES))
    quiet["/api/health/full"]["health"]["checks"] = []
    quiet["/api/cluster_conf"][0]["value"][0]["value"] = "balanced"
    with serving(FakeDashboard(dict(PAGES))) as missing, serving(FakeDashboard(quiet)) as fine:
        yield missing, fine


def test_each_cluster_has_a_row_whatever_the_others_do(
    run: Run, tmp_path: Path, fakes: Tuple[FakeDashboard, FakeDashboard], nobody: str
) -> None:
    with serving(FakeDashboard(dict(PAGES))) as mad:
        mad.before = lambda asked: (200, b"<html>") if asked.method == "GET" else None
        path = listed(tmp_path, berlin=fakes[0].url, rome=fakes[1].url, down=nobody, mad=mad.url)
        code, out, err = run("fleet", "status", "--fleet", path)
    assert code == 1
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines()}
    assert rows["berlin"] == ["20.2.4", "1/2", "ok", "missed", "high_client_ops?", "?", "?"]
    assert rows["rome"] == ["20.2.4", "1/2", "ok", "?", "balanced?", "?", "?"]
    assert rows["down"] == ["down", *["-"] * 6]
    assert rows["mad"] == ["nonsense", *["-"] * 6]
    assert max(map(len, out.splitlines())) <= 80
    assert "berlin: TUNER_SLO_MISSED" in err
    assert f"down: found no dashboard at {nobody}" in err
    assert "instead of JSON" in err
    assert PASSWORD not in out + err


def test_programs_get_a_document_for_each_in_the_order_of_the_file(
    run: Run, tmp_path: Path, fakes: Tuple[FakeDashboard, FakeDashboard], nobody: str
) -> None:
    path = listed(tmp_path, down=nobody, rome=fakes[1].url)
    code, out, _ = run("fleet", "status", "--fleet", path, "--format", "json")
    down, rome = json.loads(out)
    assert code == 1
    assert (down["cluster"], down["answer"], down["status"]) == ("down", "failed", None)
    assert (rome["reached_by"], rome["labels"], rome["status"]["version"]) == ("dashboard", {"site": "r"}, "20.2.4")


def test_a_fleet_in_which_all_is_well_ends_with_0(
    run: Run, tmp_path: Path, fakes: Tuple[FakeDashboard, FakeDashboard], nobody: str
) -> None:
    path = listed(tmp_path, down=nobody, rome=fakes[1].url)
    assert run("fleet", "status", "rome", "--fleet", path)[0] == 0
    assert run("fleet", "status", "--label", "site=r", "--fleet", path)[0] == 0
    code, _, err = run("fleet", "status", "paris", "--fleet", path)
    assert (code, "one of down, rome" in err) == (2, True)


def test_differences_are_told_by_value(
    run: Run, tmp_path: Path, fakes: Tuple[FakeDashboard, FakeDashboard], nobody: str
) -> None:
    path = listed(tmp_path, berlin=fakes[0].url, rome=fakes[1].url, down=nobody)
    code, out, err = run("fleet", "diff", "--fleet", path, "--format", "json")
    found = {entry["knob"]: entry["values"] for entry in json.loads(out)}
    assert found["osd_mclock_profile"] == [
        {"value": "high_client_ops", "clusters": ["berlin"]},
        {"value": "balanced", "clusters": ["rome"]},
    ]
    assert code == 1
    assert "down is left out" in err
    assert run("fleet", "diff", "rome", "--fleet", path)[1] == "nothing to compare\n"


@pytest.fixture
def monitors(monkeypatch: pytest.MonkeyPatch) -> Dict[str, Monitors]:
    """Two clusters alike, behind the ports."""
    found = {"paris": Monitors(), "rome": Monitors()}
    for monitor in found.values():
        keep_slo(monitor, "client.p95_ms <= 100 ms")
        measures = {name: Measure(value, 0.0, 12) for name, value in LOAD.items()}
        History(monitor.store).add_window(Window(999_900.0, 999_960.0, measures))

    def opening(member: Member, timeout: float) -> Cluster:
        own = found[member.name]
        return Cluster(member.name, Commands(), own, own.store, TENTACLE, "20.2.4", clock=ManualClock())  # type: ignore[arg-type]

    for module in (fleet_foresight, fleet_profiles, fleet_rollout):
        monkeypatch.setattr(module, "open_member", opening)
    return found


@pytest.fixture
def two(tmp_path: Path) -> List[str]:
    path = tmp_path / "fleet.yaml"
    for name in ("paris", "rome"):
        (tmp_path / f"{name}.cluster.yaml").write_text(DESCRIPTION)
    clusters = [f"  {name}: {{lab: {name}, description: {name}.cluster.yaml}}\n" for name in ("paris", "rome")]
    path.write_text("schema: 1\nclusters:\n" + "".join(clusters))
    return ["--fleet", str(path)]


def test_a_profile_travels_from_one_cluster_to_another(
    run: Run, tmp_path: Path, monitors: Dict[str, Monitors], two: List[str]
) -> None:
    file = str(tmp_path / "paris.yaml")
    monitors["paris"].set("osd", "osd_max_scrubs", "2")
    assert run("fleet", "export", "paris", "--output", file, *two)[0] == 0
    before = monitors["rome"].dump()
    code, out, err = run("fleet", "import", file, "rome", *two)
    assert code == 0
    assert "ceph config set osd osd_max_scrubs 2" in out
    assert "rome: would write to 3 OSDs" in err
    assert "nothing is changed" in err
    assert monitors["rome"].dump() == before
    code, out, err = run("fleet", "import", file, "rome", *two, "--yes", "--format", "json")
    assert code == 0
    assert json.loads(out)[0]["change"] == 1
    assert "rome: written as change 1" in err
    assert {entry.value for entry in monitors["rome"].dump() if entry.name == "osd_max_scrubs"} == {"2"}


def test_a_changed_file_and_an_unlike_cluster_are_refused_and_nothing_is_written(
    run: Run, tmp_path: Path, monitors: Dict[str, Monitors], two: List[str]
) -> None:
    file = tmp_path / "paris.yaml"
    monitors["paris"].set("osd", "osd_max_scrubs", "2")
    run("fleet", "export", "paris", "--output", str(file), *two)
    sound = file.read_text()
    file.write_text(sound.replace("osd_max_scrubs: 2", "osd_max_scrubs: 4"))
    code, _, err = run("fleet", "import", str(file), "rome", *two, "--yes")
    assert (code, "the file was changed" in err) == (2, True)
    file.write_text(sound)
    keep_slo(monitors["rome"], "scrub.bytes_s >= 1 MB/s")
    before = monitors["rome"].dump()
    code, _, err = run("fleet", "import", str(file), "paris", "rome", *two, "--yes")
    assert code == 2
    assert "rome does not get it" in err
    assert "found for client, here it is scrub" in err
    assert monitors["rome"].dump() == before
    assert run("fleet", "import", str(file), "rome", *two, "--although-unlike", "--yes")[0] == 0
    assert monitors["rome"].dump() != before


def test_a_signature_is_made_and_asked_for(
    run: Run, tmp_path: Path, monitors: Dict[str, Monitors], two: List[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # by the clusters' clock
    monkeypatch.setattr(fleet_profiles, "time", SimpleNamespace(time=ManualClock().now))
    key = Ed25519PrivateKey.generate()
    private, public, file = tmp_path / "key.pem", tmp_path / "key.pub", str(tmp_path / "paris.yaml")
    pem = serialization.Encoding.PEM
    private.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    private.chmod(0o600)
    public.write_bytes(key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo))
    assert run("fleet", "export", "paris", "-o", file, *two)[0] == 0
    code, _, err = run("fleet", "import", file, "rome", *two, "--trust", str(public))
    assert (code, "found no signature" in err) == (2, True)
    assert run("fleet", "export", "paris", "-o", file, "--force", "--sign", str(private), *two)[0] == 0
    code, _, err = run("fleet", "import", file, "rome", *two, "--trust", str(public))
    assert (code, "signed by" in err) == (0, True)


def test_a_cluster_that_is_reached_by_rest_gets_nothing_written(
    run: Run, tmp_path: Path, fakes: Tuple[FakeDashboard, FakeDashboard]
) -> None:
    file = tmp_path / "tuned.yaml"
    origin = {"cluster": "paris", "exported": "2026-11-21T19:00:00Z"}
    portable_file.write(file, sealed(catalogue.load("tuned/lab-recovery"), origin))
    path = listed(tmp_path, berlin=fakes[0].url)
    code, _, err = run("fleet", "import", str(file), "--fleet", path, "--although-unlike", "--yes")
    assert code == 2
    assert "berlin does not get it" in err
    assert "asked of its dashboard's REST API" in err
    assert {asked.method for asked in fakes[0].asked if asked.path != "/api/auth"} == {"GET"}


@pytest.fixture
def large_chunks(run: Run, tmp_path: Path, monitors: Dict[str, Monitors], two: List[str]) -> str:
    """A profile of scrubs in large pieces, which hold clients up for longer."""
    for monitor in monitors.values():
        keep_slo(monitor, "client.p95_ms <= 100 ms", "scrub.bytes_s >= 1 MB/s")
    file = str(tmp_path / "scrubs.yaml")
    monitors["paris"].set("osd", "osd_scrub_chunk_max", "25")
    assert run("fleet", "export", "paris", "--output", file, *two)[0] == 0
    return file


def test_what_twins_say_is_shown_before_anything_is_written(
    run: Run, monitors: Dict[str, Monitors], two: List[str], large_chunks: str
) -> None:
    code, out, _ = run("fleet", "import", large_chunks, "rome", *two)
    assert code == 0
    assert "client.p95_ms <= 100 ms" in out
    assert "in force" in out
    assert max(map(len, out.split("ceph config")[0].splitlines())) <= 80
    code, out, _ = run("fleet", "import", large_chunks, "rome", *two, "--format", "json")
    (document,) = json.loads(out)
    client, scrub = document["prediction"]["objectives"]
    assert (client["in_force"]["met"], scrub["profile"]["met"]) == (True, True)
    assert client["profile"]["value"] > client["in_force"]["value"]
    low, high = client["profile"]["interval"]
    assert low < client["profile"]["value"] < high


def test_twins_of_many_clusters_say_in_other_processes_what_they_would_say_here(
    run: Run, monitors: Dict[str, Monitors], two: List[str], large_chunks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(*more: str) -> Tuple[int, List[Any]]:
        code, out, _ = run("fleet", "import", large_chunks, *two, "--format", "json", *more)
        return code, [document["prediction"] for document in json.loads(out)]

    here = said()
    monkeypatch.setattr(fleet_foresight, "_ALONE", 1)
    assert said() == here
    assert (here[0], len(here[1])) == (0, 2)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address=":0", silence_logs=50
    ) as cluster:
        assert said("--dask", cluster.scheduler_address, "--insecure") == here


@pytest.mark.parametrize("command", ["import", "apply"])
@pytest.mark.parametrize(
    ("more", "words"), [((), "no scheduler"), (("--unpredicted",), "--unpredicted as well, expected one of them")]
)
def test_workers_that_are_not_there_or_not_needed_are_an_error(
    run: Run,
    monitors: Dict[str, Monitors],
    two: List[str],
    large_chunks: str,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    more: Tuple[str, ...],
    words: str,
) -> None:
    monkeypatch.setattr(dask_workers, "DaskWorkers", partial(dask_workers.DaskWorkers, connect_s=0.5))
    before = [monitor.dump() for monitor in monitors.values()]
    code, _, err = run(
        "fleet", command, large_chunks, *two, "--yes", "--dask", "tcp://127.0.0.1:1", "--insecure", *more
    )
    assert (code, words in err) == (2, True), err
    assert [monitor.dump() for monitor in monitors.values()] == before


@pytest.mark.parametrize("command", ["import", "apply"])
def test_a_profile_that_a_twin_advises_against_is_written_nowhere(
    run: Run, monitors: Dict[str, Monitors], two: List[str], large_chunks: str, command: str
) -> None:
    _, out, _ = run("fleet", "import", large_chunks, "rome", *two, "--format", "json")
    client = json.loads(out)[0]["prediction"]["objectives"][0]
    between = (client["in_force"]["value"] * client["profile"]["value"]) ** 0.5
    # paris, the first, has nothing against it
    keep_slo(monitors["rome"], f"client.p95_ms <= {between} ms", "scrub.bytes_s >= 1 MB/s")
    before = {name: monitor.dump() for name, monitor in monitors.items()}
    arguments = ("--watch", "0", "--blind") if command == "apply" else ()
    code, out, err = run("fleet", command, large_chunks, *two, *arguments, "--yes", "--format", "json")
    assert code == 2
    told = json.loads(out)
    rome = told["predictions"]["rome"] if command == "apply" else told[1]["prediction"]
    assert "kept now" in rome["refused"]
    assert "rome does not get it" in err
    assert "kept now" in err
    assert "--unpredicted" in err
    assert {name: monitor.dump() for name, monitor in monitors.items()} == before
    assert run("fleet", command, large_chunks, *two, *arguments, "--unpredicted", "--yes")[0] == 0
    assert monitors["rome"].dump() != before["rome"]


def test_a_cluster_is_held_against_the_slo_of_its_file_and_the_clients_of_its_description(
    run: Run, tmp_path: Path, monitors: Dict[str, Monitors], two: List[str], large_chunks: str
) -> None:
    for key in monitors["rome"].store.keys(""):
        monitors["rome"].store.remove(key)
    (tmp_path / "slo.yaml").write_text("schema: 1\nobjectives: [scrub.bytes_s >= 1 kB/s]\n")
    fleet = Path(two[1])
    whole = fleet.read_text().replace("rome.cluster.yaml", "rome.cluster.yaml, slo: slo.yaml")
    fleet.write_text(whole)
    code, _, err = run("fleet", "import", large_chunks, "rome", *two)
    assert (code, "clients took" in err) == (2, True)
    # of 3 OSDs of 21 500 IOPS, as much as there
    (tmp_path / "rome.cluster.yaml").write_text(DESCRIPTION.replace("rate: 100", "rate: 300"))
    code, _, err = run("fleet", "import", large_chunks, "rome", *two)
    assert (code, "unlike" in err) == (0, False)


def test_a_cluster_without_a_twin_or_an_slo_is_left_alone_unless_that_is_asked_for(
    run: Run, tmp_path: Path, monitors: Dict[str, Monitors], two: List[str], large_chunks: str
) -> None:
    before = monitors["rome"].dump()
    fleet = Path(two[1])
    whole = fleet.read_text()
    (tmp_path / "broken.yaml").write_text(DESCRIPTION.replace("osds: 3", "osds: 2"))
    fleet.write_text(whole.replace("rome.cluster.yaml", "broken.yaml"))
    code, _, err = run("fleet", "import", large_chunks, "rome", *two, "--yes")
    assert (code, "rome does not get it" in err, "or --unpredicted" in err) == (2, True, True)
    fleet.write_text(whole)
    monitors["rome"].store.remove(SLO_KEY)
    code, _, err = run("fleet", "import", large_chunks, "rome", *two, "--although-unlike", "--yes")
    assert (code, "found no SLO" in err, "or --unpredicted" in err) == (2, True, True)
    assert monitors["rome"].dump() == before
    code, _, _ = run("fleet", "import", large_chunks, "rome", *two, "--although-unlike", "--unpredicted", "--yes")
    assert (code, monitors["rome"].dump() == before) == (0, False)


def test_a_relative_bound_is_of_the_baseline_that_the_cluster_keeps_or_it_is_said_of_what(
    run: Run, monitors: Dict[str, Monitors], two: List[str], large_chunks: str
) -> None:
    keep_slo(monitors["rome"], "client.p95_ms <= 3 * baseline", "scrub.bytes_s >= 1 MB/s")
    monitors["rome"].store.set(BASELINE, json.dumps({"client.p95_ms": 20.0}))
    code, _, err = run("fleet", "import", large_chunks, "rome", *two)
    assert code == 0
    # its description says nothing of what was measured
    assert "of what is in force now, as client.p95_ms was not measured" in " ".join(err.split())


def test_a_load_that_is_another_one_when_its_wave_comes_is_no_breach(
    run: Run, tmp_path: Path, monitors: Dict[str, Monitors], two: List[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = str(tmp_path / "paris.yaml")
    monitors["paris"].set("osd", "osd_max_scrubs", "2")
    run("fleet", "export", "paris", "--output", file, *two)
    monitors["paris"].remove("osd", "osd_max_scrubs")
    write, busy = monitors["rome"].set, {name: Measure(20 * value, 0.0, 12) for name, value in LOAD.items()}
    busy["client.p95_ms"] = Measure(20.0, 0.0, 12)

    def set_while_paris_gets_busy(*given: Any) -> Any:
        History(monitors["paris"].store).add_window(Window(999_961.0, 999_991.0, busy))
        return write(*given)

    monkeypatch.setattr(monitors["rome"], "set", set_while_paris_gets_busy)
    arguments = ("--canary", "rome", "--watch", "0", "--unpredicted", "--yes", "--format", "json")
    code, out, _ = run("fleet", "apply", file, *two, *arguments)
    assert (code, json.loads(out)["kept"]) == (0, ["rome", "paris"])
    # asked now it would be refused
    assert run("fleet", "import", file, "paris", *two, "--unpredicted")[0] == 2


def scrubs(monitors: Monitors) -> List[str]:
    return [entry.value for entry in monitors.dump() if entry.name == "osd_max_scrubs"]


def test_a_rollout_shows_its_waves_then_keeps_goes_on_and_is_taken_back(
    run: Run, tmp_path: Path, monitors: Dict[str, Monitors], two: List[str]
) -> None:
    file = str(tmp_path / "paris.yaml")
    monitors["paris"].set("osd", "osd_max_scrubs", "2")
    run("fleet", "export", "paris", "--output", file, *two)
    monitors["paris"].remove("osd", "osd_max_scrubs")
    code, out, err = run("fleet", "apply", file, *two, "--canary", "rome", "--format", "json")
    assert (code, json.loads(out)["waves"]) == (0, [["rome"], ["paris"]])
    assert json.loads(out)["predictions"]["paris"]["refused"] is None
    assert scrubs(monitors["rome"]) == []
    # the second is unwell: it is not touched, the first keeps it
    slo = monitors["paris"].store.get(SLO_KEY) or ""
    monitors["paris"].store.set(SLO_KEY, json.dumps({"name": "x", "objectives": ["client.p95_ms <= 5 ms"]}))
    code, out, err = run("fleet", "apply", file, *two, "--canary", "rome", "--watch", "0", "--yes", "--format", "json")
    assert code == 4
    assert (json.loads(out)["kept"], json.loads(out)["left"]) == (["rome"], ["paris"])
    assert "paris: a hard objective is missed" in err
    assert (scrubs(monitors["rome"]), scrubs(monitors["paris"])) == (["2"], [])
    monitors["paris"].store.set(SLO_KEY, slo)
    code, out, _ = run("fleet", "apply", file, *two, "--canary", "rome", "--watch", "0", "--yes", "--format", "json")
    assert (code, json.loads(out)["before"], json.loads(out)["kept"]) == (0, ["rome"], ["paris"])
    code, _, err = run("fleet", "rollback", file, *two)
    assert code == 0
    assert scrubs(monitors["rome"]) == scrubs(monitors["paris"]) == []
