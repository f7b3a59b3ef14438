from __future__ import annotations

import json
from pathlib import Path
from typing import Any, List, Sequence

import pytest

from ceph_lab.cluster import Lab, lab_of
from ceph_tuner.cluster.cephcli import CephCli
from ceph_tuner.cluster.dashboard import Dashboard
from ceph_tuner.cluster.session import Session
from ceph_tuner.core.errors import CommandFailed, InputError, PermissionRefused
from ceph_tuner.core.knobs.releases import TENTACLE
from ceph_tuner.fleet import fleet_file
from ceph_tuner.fleet.connection import as_whom, open_member
from ceph_tuner.fleet.contract import ByCeph, ByDashboard, ByLab, Member
from ceph_tuner.fleet.secret import Secret
from ceph_tuner.rook.configuration import RookConfig
from fake_dashboard import PAGES, PASSWORD, USER, FakeDashboard, serving
from stand_in_ceph import programs_on_the_path
from twins import small_twin


def by_dashboard(url: str, **trust: Any) -> Member:
    return Member("berlin", ByDashboard((url,), USER, Secret("env", "PW"), **trust))


def test_a_dashboard_is_opened_with_the_password_that_its_secret_names(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(FakeDashboard(dict(PAGES))) as fake:
        monkeypatch.setenv("PW", PASSWORD)
        cluster = open_member(by_dashboard(fake.url, verify=False))
        assert isinstance(cluster.commander, Dashboard)
        assert (cluster.name, cluster.release, cluster.version) == ("berlin", TENTACLE, "20.2.4")
        cluster.close()
        monkeypatch.delenv("PW")
        with pytest.raises(InputError, match="nothing in the environment variable PW"):
            open_member(by_dashboard(fake.url, verify=False))


@pytest.mark.parametrize(
    "member",
    [
        Member("paris", ByCeph("/nowhere/ceph.conf")),
        Member("paris", ByCeph(__file__, "/nowhere/keyring")),
        by_dashboard("https://127.0.0.1:1", ca="/nowhere/ca.pem"),
    ],
)
def test_a_file_that_is_not_there_is_named_before_anything_is_asked(member: Member) -> None:
    with pytest.raises(InputError, match=rf"cluster {member.name}: found no file /nowhere/"):
        open_member(member)


@pytest.mark.parametrize("words", ["ssh admin@mon1 sudo", "kubectl exec deploy/rook-ceph-tools --"])
def test_a_cluster_behind_a_prefix_is_opened_by_the_program_over_there(
    words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"schema: 1\nclusters:\n  rome:\n    prefix_command: {words}\n"
    (member,) = fleet_file.from_text(text).members
    with programs_on_the_path(small_twin().commander, monkeypatch) as programs:
        cluster = open_member(member)
        assert (cluster.name, cluster.release, member.access.kind) == ("rome", TENTACLE, "prefix_command")
        assert cluster.config.osds("osd") == [0, 1, 2, 3]
        assert programs.given


def test_a_lab_is_opened_by_its_name(tentacle_lab: Lab) -> None:
    cluster = open_member(Member("practice", ByLab(tentacle_lab.name)))
    assert lab_of(cluster) is not None
    cluster.close()


@pytest.fixture
def looker(tentacle_lab: Lab) -> ByCeph:
    """A user of the lab who may look and not write."""
    keyring = "/lab/looker.keyring"
    caps: List[str] = ["mon", "allow r", "osd", "allow r", "mgr", "allow r"]
    tentacle_lab.run(["ceph", "auth", "get-or-create", "client.looker", *caps, "-o", keyring])
    return ByCeph("/lab/ceph.conf", keyring, "client.looker")


@pytest.mark.parametrize("kind", [Session, CephCli])
def test_the_keyring_and_the_name_decide_who_asks(tentacle_lab: Lab, looker: ByCeph, kind: Any) -> None:
    def launch(command: Sequence[str]) -> List[str]:
        return tentacle_lab.argv(as_whom(looker, command))

    commander = kind(launch)
    assert "fsid" in json.loads(commander.mon("status", {}))
    with pytest.raises((PermissionRefused, CommandFailed), match=r"(?i)denied|EACCES|capabilities"):
        commander.mon("config set", {"who": "osd", "name": "osd_max_scrubs", "value": "2"})


def test_the_program_s_own_environment_is_not_changed(tmp_path: Path) -> None:
    words = as_whom(ByCeph("c.conf", str(tmp_path / "k"), "client.tuner"), ["ceph", "status"])
    assert words == [
        "env",
        f"CEPH_ARGS=--name=client.tuner --keyring={tmp_path / 'k'}",
        "ceph",
        "status",
    ]


ROOK = "schema: 1\nclusters:\n  rome:\n    prefix_command: kubectl exec deploy/tools --\n    rook: {}\n"


def test_a_cluster_of_rook_is_written_to_in_its_resource(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    user = {"contexts": [{"name": "rome", "context": {"cluster": "rome"}}]}
    server = {"clusters": [{"name": "rome", "cluster": {"server": "https://127.0.0.1:1"}}]}
    (tmp_path / "kubeconfig").write_text(json.dumps({**user, **server}), "utf-8")
    text = ROOK.format("{cephcluster: storage/main, kubeconfig: kubeconfig, context: rome}")
    (member,) = fleet_file.from_text(text, str(tmp_path / "fleet.yaml")).members
    with programs_on_the_path(small_twin().commander, monkeypatch):
        config = open_member(member).config
    assert isinstance(config, RookConfig)
    assert str(config.resource) == "storage/main"


@pytest.mark.parametrize(
    ("rook", "words"),
    [("{cephcluster: main}", "NAMESPACE/NAME"), ("{kubeconfig: a}", "cephcluster"), ("storage/main", "rook")],
)
def test_a_resource_that_is_not_named_right_is_told_with_its_line(rook: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as refusal:
        fleet_file.from_text(ROOK.format(rook))
    assert "fleet.yaml:5" in str(refusal.value)


def test_a_cluster_of_rook_may_be_left_to_its_monitors() -> None:
    (member,) = fleet_file.from_text(ROOK.format("{cephcluster: none}")).members
    assert member.rook.text == "none"
