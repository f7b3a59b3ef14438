"""A model becomes the tables of the kernel: the same ones for the same seed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from drawn_models import models
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from ceph_tuner.core.errors import InputError
from ceph_tuner.twin.kernel import records
from ceph_tuner.twin.kernel.state import SimulationState, bring_back, over_objects
from ceph_tuner.twin.kernel_tables import START_S, KernelTables
from ceph_tuner.twin.model import ClientStream, ClusterModel, Device, OsdModel, Pool, ScrubWork

MODEL = ClusterModel(4, OsdModel(Device(1000.0, 1e8)), (Pool("rbd", 32),), clients=(ClientStream("rbd", depth=32),))


@hypothesis_settings(deadline=None)
@given(models(), st.integers(0, 100))
def test_the_same_seed_lays_out_alike(model: ClusterModel, seed: int) -> None:
    one, other = KernelTables(model, seed).tables, KernelTables(model, seed).tables
    assert all(one[name].tobytes() == other[name].tobytes() for name in SimulationState._fields)


@hypothesis_settings(deadline=None, max_examples=20)
@given(models(), st.integers(0, 100))
def test_tables_come_back_from_objects_as_they_were(model: ClusterModel, seed: int) -> None:
    tables = KernelTables(model, seed).tables
    before = {name: table.tobytes() for name, table in tables.items()}
    state = over_objects(tables)
    for name, table in tables.items():
        # parameters do not change, and numbers are not copied
        if name != "parameters" and table.dtype.names:
            table.view("i8")[:] = -7
    bring_back(state, tables)
    assert {name: table.tobytes() for name, table in tables.items()} == before
    state.entering[3] = 5
    assert tables["entering"][3] == 5


@hypothesis_settings(deadline=None)
@given(models(), st.integers(0, 100))
def test_each_task_is_in_the_order_of_its_primary_once(model: ClusterModel, seed: int) -> None:
    layout = KernelTables(model, seed)
    osds, order = layout.tables["osds"], layout.tables["task_order"]
    width = int(layout.tables["parameters"]["width"][0])
    listed = []
    for number, osd in enumerate(osds):
        for kind in range(records.WORK_KINDS):
            for task in order[osd["task_begin"][kind] : osd["task_end"][kind]]:
                row = layout.tables["tasks"][task]
                assert row["kind"] == kind
                assert layout.tables["slots"]["osd"][row["pg"] * width] == number
                listed.append(int(task))
    assert sorted(listed) == list(range(len(layout.work)))


@pytest.mark.parametrize("in_turn", [True, False])
def test_scrubs_come_due_in_the_order_of_their_pgs_or_in_none(in_turn: bool) -> None:
    model = replace(MODEL, scrub=(ScrubWork("rbd", 50_000, in_turn=in_turn),))
    tables = KernelTables(model, 0).tables
    lines = [
        tables["task_order"][osd["task_begin"][records.SCRUB] : osd["task_end"][records.SCRUB]]
        for osd in tables["osds"]
    ]
    pgs = [tables["tasks"]["pg"][line].tolist() for line in lines]
    assert all(sorted(line) == line for line in pgs) == in_turn


def test_nothing_happens_before_the_clock_begins() -> None:
    tables = KernelTables(replace(MODEL, scrub=(ScrubWork("rbd", 500),)), 0).tables
    progress = tables["progress"][0]
    assert progress["heap_size"]
    assert tables["events"]["time_s"][: progress["heap_size"]].min() >= START_S
    turns = tables["turns"]["time_s"][progress["turn_head"] : progress["turn_tail"]]
    assert len(turns) == 32
    assert turns.min() >= START_S
    assert (np.diff(turns) >= 0).all()


def test_more_at_a_time_than_one_event_may_bring_about_is_refused() -> None:
    with pytest.raises(InputError, match="simulated_osds"):
        KernelTables(replace(MODEL, clients=(ClientStream("rbd", depth=records.SCRATCH),)), 0)


def test_limits_are_those_of_one_osd() -> None:
    layout = KernelTables(MODEL, 0)
    layout.write_limits(2, {"osd_max_scrubs": 2})
    limits = layout.tables["osds"]["limits"]
    assert limits["max_scrubs"][2] == 2
    assert not any(limits[name][[0, 1, 3]].any() for name in limits.dtype.names)


def test_rates_are_those_of_one_osd_s_shards() -> None:
    layout = KernelTables(MODEL, 0)
    layout.write_rates(2, ((4.0, 2.0, 0.0), (0.0, 1.0, 8.0), (1.0, 4.0, 2.0)))
    classes = layout.tables["shards"]["queue"]["classes"].reshape(4, MODEL.osd.shards, 3)
    assert (classes["reservation_s_per_byte"][2] == (0.25, 0.0, 1.0)).all()
    assert (classes["weight_inverse"][2] == (0.5, 1.0, 0.25)).all()
    assert (classes["limit_s_per_byte"][2] == (0.0, 0.125, 0.5)).all()
    assert not classes["weight_inverse"][[0, 1, 3]].any()
