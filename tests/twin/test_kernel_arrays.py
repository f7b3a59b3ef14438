"""A model becomes the arrays of the kernel: the same ones for the same seed, each thing with a segment of its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from drawn_models import models
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from ceph_tuner.errors import InputError
from ceph_tuner.twin import kernel
from ceph_tuner.twin.kernel_arrays import START_S, KernelArrays
from ceph_tuner.twin.model import ClientStream, ClusterModel, Device, OsdModel, Pool, ScrubWork

MODEL = ClusterModel(4, OsdModel(Device(1000.0, 1e8)), (Pool("rbd", 32),), clients=(ClientStream("rbd", depth=32),))


@hypothesis_settings(deadline=None)
@given(models(), st.integers(0, 100))
def test_segments_follow_one_another_and_fill_the_arrays(model: ClusterModel, seed: int) -> None:
    arrays = KernelArrays(model, seed)
    for whole, names in ((arrays.floats, kernel.FLOAT_SEGMENTS), (arrays.ints, kernel.INT_SEGMENTS)):
        begins = [int(arrays.ints[getattr(kernel, name)]) for name in names]
        ends = [begin + len(arrays.named[name]) for begin, name in zip(begins, names)]
        assert [*begins[1:], len(whole)] == ends
        assert all(np.shares_memory(whole, arrays.named[name]) for name in names if len(arrays.named[name]))


@hypothesis_settings(deadline=None)
@given(models(), st.integers(0, 100))
def test_the_same_seed_lays_out_alike(model: ClusterModel, seed: int) -> None:
    one, other = KernelArrays(model, seed), KernelArrays(model, seed)
    assert one.floats.tobytes() == other.floats.tobytes()
    assert one.ints.tobytes() == other.ints.tobytes()


def test_nothing_happens_before_the_clock_begins() -> None:
    arrays = KernelArrays(replace(MODEL, scrub=(ScrubWork("rbd", 500),)), 0)
    events = int(arrays.ints[kernel.C_HEAP])
    assert events
    assert arrays.named["HT"][:events].min() >= START_S
    turns = arrays.named["RT"][arrays.ints[kernel.C_TURN_HEAD] : arrays.ints[kernel.C_TURN_TAIL]]
    assert len(turns) == 32
    assert turns.min() >= START_S


def test_more_at_a_time_than_one_event_may_bring_about_is_refused() -> None:
    with pytest.raises(InputError, match="simulated_osds"):
        KernelArrays(replace(MODEL, clients=(ClientStream("rbd", depth=kernel.SCRATCH),)), 0)


def test_limits_are_those_of_one_osd() -> None:
    arrays = KernelArrays(MODEL, 0)
    arrays.write_limits(2, {"osd_max_scrubs": 2})
    rows = arrays.named["KN"].reshape(-1, kernel.N_INTS)
    assert rows[2, kernel.N_MAX_SCRUBS] == 2
    assert not rows[[0, 1, 3]].any()
