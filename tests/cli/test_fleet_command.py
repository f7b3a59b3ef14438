from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ceph_tuner.clusters.opening import Cluster
from ceph_tuner.files import portable_file
from ceph_tuner.fleet.contract import Member
from ceph_tuner.fleet.portable import sealed
from ceph_tuner.fleet.status import SLO_KEY
from ceph_tuner.history import History
from ceph_tuner.releases import TENTACLE
from ceph_tuner.sample import Measure, Window
from ceph_tuner_cli import fleet_profiles, fleet_rollout
from ceph_tuner_profiles import catalogue
from fake_dashboard import PAGES, PASSWORD, USER, FakeDashboard, serving
from monitors import ManualClock, Monitors

Run = Callable[..., Tuple[int, str, str]]
LOAD = {"client.iops": 300.0, "client.write_iops": 300.0, "client.bytes_s": 1.2e6, "client.p95_ms": 20.0}


class Commands:
    """What the fake monitors have no command for."""

    def mon(self, prefix: str, arguments: Any, payload: str = "") -> str:
        version = {"osd": {"ceph version 20.2.4 (x) tentacle (stable)": 3}}
        return json.dumps({"health": {"status": "HEALTH_OK", "checks": {}}, "versions": version}[prefix])


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
        monitor.store.set(SLO_KEY, json.dumps({"name": "night", "objectives": ["client.p95_ms <= 80 ms"]}))
        measures = {name: Measure(value, 0.0, 12) for name, value in LOAD.items()}
        History(monitor.store).add_window(Window(999_900.0, 999_960.0, measures))

    def opening(member: Member, timeout: float) -> Cluster:
        own = found[member.name]
        return Cluster(member.name, Commands(), own, own.store, TENTACLE, "20.2.4", clock=ManualClock())  # type: ignore[arg-type]

    monkeypatch.setattr(fleet_profiles, "open_member", opening)
    monkeypatch.setattr(fleet_rollout, "open_member", opening)
    return found


@pytest.fixture
def two(tmp_path: Path) -> List[str]:
    path = tmp_path / "fleet.yaml"
    path.write_text("schema: 1\nclusters:\n  paris: {lab: paris}\n  rome: {lab: rome}\n")
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
    monitors["rome"].store.set(SLO_KEY, json.dumps({"name": "x", "objectives": ["scrub.bytes_s >= 1 MB/s"]}))
    before = monitors["rome"].dump()
    code, _, err = run("fleet", "import", str(file), "paris", "rome", *two, "--yes")
    assert code == 2
    assert "rome does not get it" in err
    assert "found for client, here it is scrub" in err
    assert monitors["rome"].dump() == before
    assert run("fleet", "import", str(file), "rome", *two, "--although-unlike", "--yes")[0] == 0
    assert monitors["rome"].dump() != before


def test_a_signature_is_made_and_asked_for(
    run: Run, tmp_path: Path, monitors: Dict[str, Monitors], two: List[str]
) -> None:
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
    assert "asked of its dashboard's REST API" in err
    assert {asked.method for asked in fakes[0].asked if asked.path != "/api/auth"} == {"GET"}


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
    assert (code, json.loads(out)) == (0, [["rome"], ["paris"]])
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
