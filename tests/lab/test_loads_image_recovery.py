"""Degraded objects of the clients' own image: which are written while an OSD is away, and what the twin is told."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Optional, Sequence

import pytest
from host_lab import HostLab

from ceph_lab import scenarios
from ceph_lab.loads.client import ClientLoad
from ceph_lab.loads.client_work import ClientWork
from ceph_lab.loads.image_recovery import ImageRecoveryLoad
from ceph_lab.loads.layout import PoolLayout
from ceph_lab.loads.recovery import RecoveryLoad
from ceph_lab.loads.session import LabSession
from ceph_lab.options import LabOptions
from ceph_lab.twin_model import lab_model
from ceph_tuner.core.errors import InputError, LoadFailed
from ceph_tuner.core.knobs.cost import Hardware
from ceph_tuner.core.knobs.releases import TENTACLE

MIB = 1 << 20
WORK = ClientWork(rate=20, image_bytes=64 * MIB, object_bytes=MIB)
POOL = "load-client-replicated-3"


class ImagedLab(HostLab):
    """A lab of three OSDs with the clients' image, which writes down what happens to it."""

    def __init__(self, filled: str = "67108864 in 1048576") -> None:
        super().__init__("")
        self.log: List[str] = []
        self.up, self.filled = {0, 1, 2}, filled

    def run(self, command: Sequence[str], payload: Optional[str] = None, timeout: float = 60) -> str:
        self.log.append(" ".join(command))
        if command[:2] == ["rbd", "info"]:
            return json.dumps({"block_name_prefix": "rbd_data.17"})
        return self.filled if command[:3] == ["rbd", "image-meta", "get"] else ""

    def stop_osd(self, osd: int) -> None:
        self.log.append(f"stop {osd}")
        self.up.remove(osd)

    def start_osd(self, osd: int) -> None:
        self.log.append(f"start {osd}")
        self.up.add(osd)


class Session(LabSession):
    """Its cluster: a pool of 32 PGs, of whose objects so many are degraded."""

    def __init__(self, lab: ImagedLab, degraded: int = 0) -> None:
        super().__init__(lab)
        self.lab, self.degraded = lab, degraded
        self.written: List[str] = []

    def ask(self, request: Dict[str, Any], timeout: Optional[float] = None) -> Any:
        command = request.get("command", {})
        prefix = command.get("prefix", request["do"])
        if prefix in ("osd set", "osd unset"):
            self.lab.log.append(f"{prefix} {command['key']}")
        if prefix == "pgs_of":
            return [f"5.{int(name[-16:], 16) % 32:x}" for name in request["names"]]
        if prefix == "write":
            self.lab.log.append(f"write {len(request['names'])} of {request['size']} in {request['pool']}")
            assert request["offset"] is None, "whole: of what is written in parts only these are recovered"
            self.written += request["names"]
        if prefix == "pgs":
            each, more = divmod(self.degraded, 32)
            return [
                {"pgid": pgid, "state": "active", "up": [0, 1, 2],
                 "stats": {"stat_sum": {"num_objects_degraded": each + (number < more)}}}
                for number, pgid in enumerate(request["pgids"])
            ]  # fmt: skip
        pools = [{"pool": 5, "pool_name": POOL, "size": 3, "pg_num": 32}]
        osds = [{"osd": osd, "up": int(osd in self.lab.up)} for osd in range(3)]
        return json.dumps({"flags_set": [], "pools": pools, "osds": osds})


def load(share: float, degraded: int = 0, work: ClientWork = WORK, layout: Optional[PoolLayout] = None) -> Any:
    lab = ImagedLab()
    session = Session(lab, degraded)
    return ImageRecoveryLoad(ClientLoad(lab, session, work, layout=layout), share), lab, session


def test_a_share_of_the_image_is_written_while_an_osd_is_away() -> None:
    own, lab, session = load(0.5)
    own.prepare()
    assert lab.log == [
        "osd set noout",
        "osd set norecover",
        "rbd info load-client-replicated-3/clients --format json",
        "stop 2",
        f"write 32 of {MIB} in {POOL}",
        "start 2",
    ]
    names = {f"rbd_data.17.{number:016x}" for number in range(64)}
    assert len(set(session.written)) == 32
    assert set(session.written) < names
    assert own.held_by == ("noout", "norecover")


def test_what_still_lacks_a_copy_is_not_written_again_and_else_all_of_it_is() -> None:
    """Clients have recovered some of them, in no order that anybody knows."""
    for degraded, written in ((32, 0), (31, 0), (20, 32)):
        own, lab, session = load(0.5, degraded)
        own.prepare()
        assert len(session.written) == written
        assert ("stop 2" in lab.log) == (written > 0)
        session.written.clear()
        own.prepare()
        assert len(session.written) == written


def test_its_space_is_the_image_s() -> None:
    own, _, _ = load(0.5)
    assert own.stores() == {}
    assert [pool.name for pool in own.pools] == [POOL]


def test_more_objects_than_the_logs_of_the_pgs_hold_are_refused() -> None:
    """Beyond osd_async_recovery_min_cost the OSD recovers outside of the acting set, and no write waits."""
    many = ClientWork(rate=20, image_bytes=4096 * MIB, object_bytes=MIB)
    load(0.4, work=many)
    with pytest.raises(LoadFailed, match="logs of 32 PGs"):
        load(0.5, work=many)


def test_more_objects_than_the_osd_has_are_refused() -> None:
    own, lab, _ = load(1.0, layout=PoolLayout(2))
    lab.log.clear()
    with pytest.raises(LoadFailed, match=r"of the image's 64 objects, fewer than 64"):
        own._whole_objects()


@pytest.mark.parametrize("size", [1000, 3 * MIB, 64 * MIB])
def test_objects_of_an_image_have_a_size_that_rbd_takes(size: int) -> None:
    with pytest.raises(LoadFailed, match="a power of two"):
        ClientWork(object_bytes=size)


@pytest.mark.parametrize(
    ("filled", "made"), [("67108864 in 1048576", False), ("67108864 in 4194304", True), ("67108864", True)]
)
def test_an_image_of_other_objects_is_made_anew(filled: str, made: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = ImagedLab(filled)
    monkeypatch.setattr(ClientLoad, "_fill", lambda *_, **__: None)
    ClientLoad(lab, Session(lab), WORK).prepare()
    created = [line for line in lab.log if line.startswith("rbd create")]
    assert bool(created) == made
    assert all("--object-size 1048576B" in line for line in created)


def scenario(monkeypatch: pytest.MonkeyPatch, **options: Any) -> scenarios.Scenario:
    answers = {"osd_mclock_max_sequential_bandwidth_ssd": "62914560", "osd_mclock_max_capacity_iops_ssd": "900"}
    monkeypatch.setattr(
        LabSession,
        "mon",
        lambda _, prefix, **given: answers[given["key"]] if prefix == "config get" else {"rotational": "0"},
    )
    return scenarios.scenario("client-recovery", ImagedLab(), **options)


def test_a_scenario_recovers_what_its_clients_write_where_that_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    clients, own = scenario(monkeypatch, degraded_share=0.25).loads
    assert isinstance(clients, ClientLoad)
    assert isinstance(own, ImageRecoveryLoad)
    assert (clients.work.object_bytes, clients.work.objects, own.objects) == (MIB, 1024, 256)
    assert own.pool is clients.pool
    clients, apart = scenario(monkeypatch).loads
    assert isinstance(clients, ClientLoad)
    assert type(apart) is RecoveryLoad
    assert clients.work.object_bytes == ClientWork().object_bytes
    for share in (1.5, -1):
        with pytest.raises(InputError, match="degraded_share"):
            scenario(monkeypatch, degraded_share=share)


def test_the_twin_is_told_of_as_many_objects_as_the_lab_has(monkeypatch: pytest.MonkeyPatch) -> None:
    options = LabOptions.from_dict({"osds": "3xnvme", "slower": 6.0})
    hardware = Hardware(307, 9.4e6, 8, "ssd")
    own = scenario(monkeypatch, degraded_share=0.5).loads[-1]
    assert isinstance(own, ImageRecoveryLoad)
    model = lab_model(options, hardware, "client-recovery", TENTACLE, work={"degraded_share": 0.5, "rate": 20.0})
    (work,) = model.recovery
    assert (work.pool, work.objects, work.object_bytes, work.among) == ("client", own.objects, MIB, 1024)
    assert (work.target, work.degraded) == (own.osd, True)
    assert "recovery" not in [pool.name for pool in model.pools]
    apart = lab_model(options, hardware, "client-recovery", TENTACLE, work={"rate": 20.0})
    assert [(work.pool, work.among) for work in apart.recovery] == [("recovery", 0)]
