"""Deep scrub of the clients' own image: whose PGs are scrubbed, and what the twin is told."""

from __future__ import annotations

from typing import Any, List

import pytest
from host_lab import HostLab

from ceph_lab import scenarios
from ceph_lab.loads import Load
from ceph_lab.loads.client import ClientLoad
from ceph_lab.loads.client_work import ClientWork
from ceph_lab.loads.image_scrub import ImageScrubLoad
from ceph_lab.loads.scrub import ScrubLoad
from ceph_lab.options import LabOptions
from ceph_lab.twin_model import lab_model
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.cost import Hardware
from ceph_tuner.core.knobs.releases import TENTACLE

KIB = 1 << 10


def loads(**options: Any) -> List[Load]:
    return list(scenarios.scenario("client-scrub", HostLab(""), **options).loads)


def test_a_scenario_scrubs_what_its_clients_write_where_that_is_wanted() -> None:
    clients, own = loads(scrubbed="clients", scrub_object_bytes=64 * KIB)
    assert isinstance(clients, ClientLoad)
    assert isinstance(own, ImageScrubLoad)
    assert own.pool is clients.pool
    assert (own.object_bytes, own.objects) == (clients.work.object_bytes, clients.work.objects) == (64 * KIB, 16384)


def test_else_scrub_has_a_pool_of_its_own() -> None:
    clients, own = loads()
    assert isinstance(clients, ClientLoad)
    assert type(own) is ScrubLoad
    assert own.pool.name != clients.pool.name
    assert clients.work.object_bytes == ClientWork().object_bytes


def test_the_image_is_neither_written_again_nor_counted_twice() -> None:
    _, own = loads(scrubbed="clients")
    assert isinstance(own, ImageScrubLoad)
    assert own.stores() == {}
    # a session to no cluster: it would raise
    own.prepare()


def test_scrubbing_somebody_else_s_pool_is_refused() -> None:
    with pytest.raises(InputError, match="scrubbed"):
        loads(scrubbed="rbd")


def test_the_twin_is_told_that_clients_write_what_is_scrubbed() -> None:
    options, hardware = LabOptions.from_dict({"osds": "3xnvme"}), Hardware(1860, 56e6, 8, "ssd")
    model = lab_model(options, hardware, "client-scrub", TENTACLE, work={"scrubbed": "clients"})
    (work,) = model.scrub
    assert (work.pool, work.objects, work.object_bytes, work.in_turn) == ("client", 4096, 256 * KIB, True)
    assert "scrub" not in [pool.name for pool in model.pools]
    apart = lab_model(options, hardware, "client-scrub", TENTACLE)
    assert [work.pool for work in apart.scrub] == ["scrub"]
