from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.slo import parse_slo
from ceph_tuner.core.goals.stored_slo import SLO_KEY
from ceph_tuner.fleet.contract import ByLab, Member, PrometheusServer
from ceph_tuner.fleet.descriptions import described, wanted
from ceph_tuner.twin.model import MIB, ScrubWork
from twin_cluster.cluster import TwinCluster
from twins import small_twin

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
RECOVERY = parse_slo({"name": "recovery", "objectives": ["recovery.bytes_s >= 1 MB/s"]})


def member(description: str = "", slo: str = "") -> Member:
    return Member("rome", ByLab("rome"), description=description, slo=slo)


@pytest.fixture
def twin() -> TwinCluster:
    return small_twin(scrub=(ScrubWork("rbd", 9000, MIB),))


def test_files_come_first(twin: TwinCluster) -> None:
    twin.store.set(SLO_KEY, json.dumps(RECOVERY.to_dict()))
    own = member(str(EXAMPLES / "cluster-nvme-node.yaml"), str(EXAMPLES / "slo-nvme-node.yaml"))
    assert described(own, twin).name == "nvme-node"
    assert wanted(own, twin).name == "nvme-node"
    assert wanted(member(), twin) == RECOVERY


def test_without_a_file_the_cluster_is_described_with_the_work_that_its_slo_is_about(twin: TwinCluster) -> None:
    assert described(member(), twin).model.recovery == ()
    assert described(member(), twin, RECOVERY).model.recovery != ()
    twin.store.set(SLO_KEY, json.dumps(RECOVERY.to_dict()))
    assert described(member(), twin).model.recovery != ()


def test_a_server_that_hangs_leaves_the_cluster_time_to_be_described_as_it_is_now(twin: TwinCluster) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        at = PrometheusServer(f"http://127.0.0.1:{mute.getsockname()[1]}")
        found = described(Member("rome", ByLab("rome"), prometheus=at), twin, within_s=3.0)
    assert found.model.clients
    (note,) = [note for note in found.notes if "not of their busiest hour" in note]
    assert "did not answer within 1 s" in note
    assert any("was sampled for 1 s" in note for note in found.notes)


def test_what_is_missing_is_said_with_the_next_step(twin: TwinCluster) -> None:
    with pytest.raises(InputError, match=r"rome: found no SLO, expected `slo:` in fleet.yaml"):
        wanted(member(), twin)
    twin.store.set(SLO_KEY, "{nonsense")
    with pytest.raises(InputError, match="the stored SLO"):
        wanted(member(), twin)
