"""Snaptrim of the clients' own image: which objects get clones, and what the twin is told."""

from __future__ import annotations

from typing import Any, List

import pytest
from host_lab import HostLab

from ceph_lab import scenarios
from ceph_lab.loads import Load
from ceph_lab.loads.client import ClientLoad
from ceph_lab.loads.image_snaptrim import ImageSnaptrimLoad
from ceph_lab.loads.session import LabSession
from ceph_lab.loads.snaptrim import SnaptrimLoad
from ceph_lab.options import LabOptions
from ceph_lab.twin_model import lab_model
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.cost import Hardware
from ceph_tuner.core.knobs.releases import TENTACLE

KIB, CLONES = 1 << 10, 5000


def loads(monkeypatch: pytest.MonkeyPatch, **options: Any) -> List[Load]:
    answers = {"osd_mclock_max_sequential_bandwidth_ssd": "62914560", "osd_mclock_max_capacity_iops_ssd": "900"}
    monkeypatch.setattr(
        LabSession,
        "mon",
        lambda _, prefix, **given: answers[given["key"]] if prefix == "config get" else {"rotational": "0"},
    )
    return list(scenarios.scenario("client-snaptrim", HostLab(""), clones=CLONES, seconds=1.0, **options).loads)


def test_a_scenario_trims_clones_of_what_its_clients_write_where_that_is_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clients, own = loads(monkeypatch, trimmed="clients", clone_bytes=64 * KIB)
    assert isinstance(clients, ClientLoad)
    assert isinstance(own, ImageSnaptrimLoad)
    assert own.pool is clients.pool
    assert (own.object_bytes, own.objects, own.clones) == (64 * KIB, 16384, CLONES)
    assert clients.work.object_bytes == 64 * KIB


def test_else_snaptrim_has_a_pool_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    clients, own = loads(monkeypatch)
    assert isinstance(clients, ClientLoad)
    assert type(own) is SnaptrimLoad
    assert own.pool.name != clients.pool.name
    assert own.objects == CLONES


def test_the_clones_are_of_the_image_s_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    clients, own = loads(monkeypatch, trimmed="clients")
    assert isinstance(own, ImageSnaptrimLoad)
    monkeypatch.setattr(clients, "objects", lambda: [f"rbd_data.17.{number:016x}" for number in range(4096)])
    assert own.fill(4096)[-1] == "rbd_data.17.0000000000000fff"
    # the objects themselves take no further room
    assert own.stores() == dict.fromkeys(range(3), CLONES * 4096.0)


def test_trimming_somebody_else_s_pool_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="trimmed"):
        loads(monkeypatch, trimmed="rbd")


def test_the_twin_is_told_that_clients_write_what_is_trimmed() -> None:
    options, hardware = LabOptions.from_dict({"osds": "3xnvme"}), Hardware(1860, 56e6, 8, "ssd")
    model = lab_model(options, hardware, "client-snaptrim", TENTACLE, work={"trimmed": "clients"})
    (work,) = model.snaptrim
    assert (work.pool, work.object_bytes, work.heads, work.clone_bytes) == ("client", 256 * KIB, 4096, 4 * KIB)
    assert "snaptrim" not in [pool.name for pool in model.pools]
    (apart,) = lab_model(options, hardware, "client-snaptrim", TENTACLE).snaptrim
    assert (apart.pool, apart.heads) == ("snaptrim", 2424)
