from __future__ import annotations

from dataclasses import replace

import pytest

from ceph_lab.cluster import Lab
from ceph_lab.loads import backfill, client, recovery, scrub, snaptrim
from ceph_lab.loads.layout import PoolLayout
from ceph_lab.options import LabOptions
from ceph_lab.places import LabPlaces
from ceph_lab.recipes import RECIPES
from ceph_lab.state import UP, LabState
from ceph_lab.twin_model import SCENARIOS, lab_model
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.cost import Hardware
from ceph_tuner.core.knobs.releases import TENTACLE
from ceph_tuner.twin.simulation import Simulation

HARDWARE = Hardware(811.7, 60.0 * (1 << 20), 1, "ssd")

LOADS = {
    "client": (client.PGS, client.REPLICAS),
    "backfill": (3, backfill.REPLICAS),
    "scrub": (scrub.PGS, scrub.REPLICAS),
    "snaptrim": (snaptrim.PGS, snaptrim.REPLICAS),
}
"""Pool -> PGs and copies, as the lab makes it by default."""


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_twin_is_told_of_the_work_that_the_labs_recipe_has(name: str) -> None:
    model, has = lab_model(LabOptions("tentacle"), HARDWARE, name, TENTACLE), RECIPES[name].options
    assert bool(model.snaptrim) == ("clones" in has)
    assert bool(model.scrub) == ("scrub_objects" in has)
    # as configuration.py sets it
    assert model.scrub_backoff_ratio == 0.0
    assert bool(model.recovery) == ("object_bytes" in has)
    assert {work.pool for work in (*model.recovery, *model.scrub, *model.snaptrim)} <= {p.name for p in model.pools}
    assert {p.name: (p.pgs, p.size) for p in model.pools if p.name in LOADS}.items() <= LOADS.items()
    for work in model.recovery:
        if work.degraded:
            pool = model.pool(work.pool)
            assert (pool.pgs, pool.size) == (recovery.pgs_for(work.objects, 3, 2), recovery.REPLICAS)
            # those that have the OSD share the objects
            assert work.objects / (pool.pgs * 2 / 3) <= recovery.OBJECTS_PER_PG


def test_pools_lie_where_the_lab_puts_them_and_their_pgs_come_due_in_turn() -> None:
    options = LabOptions.from_dict({"osds": "3xnvme,4xhdd"})
    model = lab_model(options, Hardware(30.0, 4e6, 1, "hdd"), "mixed", TENTACLE, work={"device_class": "hdd"})
    layout = PoolLayout(3, device_class="hdd")
    # the class's OSDs are the twin's, from 0 on
    on_lab = [layout.placement([3, 4, 5, 6], pg) for pg in range(scrub.PGS)]
    assert model.pool("scrub").acting == tuple(tuple(osd - 3 for osd in osds) for osds in on_lab)
    assert [pool.name for pool in model.pools if not pool.acting] == ["rbd", ".mgr"]
    assert model.scrub[0].in_turn


@pytest.mark.parametrize(
    ("slower", "rate", "mean_s"), [(1, 250, 4.0e-3), (2, 250, 6.8e-3), (4, 62, 8.8e-3), (6, 42, 12.3e-3)]
)
def test_a_write_alone_takes_as_long_as_on_labs_of_four_speeds(slower: float, rate: float, mean_s: float) -> None:
    """`benchmarks/results/repeatability.md`: what is the drive's grows with the factor, the machine's part stays."""
    hardware = Hardware(1740 / slower, 56e6 / slower, 8, "ssd")
    options = LabOptions.from_dict({"osds": "3xnvme", "slower": float(slower)})
    model = lab_model(options, hardware, "client", TENTACLE, work={"rate": float(rate), "engine": "librbd"})
    simulation = Simulation(model, {}, 1)
    simulation.advance(60.0)
    clients = simulation.clients()[0]
    assert clients.seconds / clients.operations == pytest.approx(mean_s, rel=0.1)


@pytest.mark.parametrize(("slower", "rate", "mean_s"), [(1, 250, 4.0e-3), (6, 42, 12.3e-3)])
def test_it_does_so_with_the_machine_s_processors_as_well(slower: float, rate: float, mean_s: float) -> None:
    """And some wait for a processor then: 29 to 35% of two were busy at the lab's own speed."""
    hardware = Hardware(1740 / slower, 56e6 / slower, 8, "ssd")
    options = LabOptions.from_dict({"osds": "3xnvme", "slower": float(slower)})
    work = {"rate": float(rate), "engine": "librbd"}
    simulation = Simulation(lab_model(options, hardware, "client", TENTACLE, work=work, processors=2), {}, 1)
    simulation.advance(60.0)
    clients = simulation.clients()[0]
    assert clients.seconds / clients.operations == pytest.approx(mean_s, rel=0.1)
    assert simulation.processors_busy == pytest.approx({1: 0.31, 6: 0.05}[int(slower)], rel=0.1)


def test_both_kinds_of_work_are_those_of_each_alone() -> None:
    both, recovery, snaptrim = (
        lab_model(LabOptions("tentacle"), HARDWARE, name, TENTACLE)
        for name in ("client-snaptrim-recovery", "client-recovery", "client-snaptrim")
    )
    assert replace(both, snaptrim=(), pools=recovery.pools) == recovery
    assert both.snaptrim == snaptrim.snaptrim


def test_it_is_told_of_the_scenarios_own_pools_and_of_the_osds_that_they_lie_on() -> None:
    options = LabOptions.from_dict({"osds": "3xnvme,4xhdd"})
    spinning = Hardware(30.0, 4e6, 1, "hdd")
    with pytest.raises(InputError, match="OSDs on hdd and nvme"):
        lab_model(options, spinning, "client-recovery", TENTACLE)
    coded = lab_model(
        options,
        spinning,
        "client-recovery",
        TENTACLE,
        work={"pool": "ec:2+1", "device_class": "hdd", "read_share": 0.5},
    )
    assert coded.osds == 4
    sizes = {pool.name: (pool.size, pool.k) for pool in coded.pools}
    assert sizes == {"client": (3, 2), "recovery": (3, 2), "rbd": (3, 0), ".mgr": (3, 0)}
    assert coded.recovery[0].target == 3
    assert coded.clients[0].read_share == 0.5
    copied = lab_model(options, spinning, "client-recovery", TENTACLE, work={"device_class": "hdd"})
    # a chunk is half an object, and has a place of its own
    assert 1.7 * copied.recovery[0].objects < coded.recovery[0].objects < 2 * copied.recovery[0].objects
    assert (
        copied.osd.device != lab_model(options, HARDWARE, "client", TENTACLE, work={"device_class": "ssd"}).osd.device
    )
    with pytest.raises(InputError, match="device_class: found 'tape'"):
        lab_model(options, HARDWARE, "client", TENTACLE, work={"device_class": "tape"})


def test_a_lab_states_its_flash_and_leaves_disks_to_a_guess() -> None:
    def lab(drive: str) -> Lab:
        options = LabOptions.from_dict({"release": "tentacle", "osds": 3, "drive": drive})
        return Lab(LabPlaces("none"), LabState("none", options, UP, port=1, fsid="f", chroot="/c", created=0.0))

    told = lab_model(LabOptions("tentacle"), replace(HARDWARE, shards=8), "client", TENTACLE)
    assert lab("nvme").drive(0) == told.osd.device
    assert [lab(drive).drive(0) for drive in ("hdd", "hybrid", "throttle")] == [None, None, None]
