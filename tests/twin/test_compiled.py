"""Compiled or plain, in one piece or in many: the same numbers, bit for bit."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, List, Tuple

import pytest
from drawn_models import models, settings
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.twin import compiled
from ceph_tuner.twin.kernel import loop
from ceph_tuner.twin.kernel.layout import Record
from ceph_tuner.twin.kernel.state import SimulationState, bring_back, over_objects
from ceph_tuner.twin.model import ClusterModel, Device, OsdModel, Pool
from ceph_tuner.twin.simulation import Simulation

pytestmark = pytest.mark.usefixtures("kernel_compiled")
unhurried = hypothesis_settings(deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)

SECONDS = 0.06
"""Plain Python does some thousand events meanwhile."""
PIECES = st.lists(st.tuples(st.floats(0, SECONDS), settings()), min_size=1, max_size=3)


def same_bits(one: Simulation, other: Simulation) -> bool:
    return all(one._tables[name].tobytes() == other._tables[name].tobytes() for name in SimulationState._fields)


@hypothesis_settings(unhurried, max_examples=60)
@given(models(), settings(), PIECES, st.integers(0, 100))
def test_compiled_and_plain_runs_agree_in_every_bit(
    model: ClusterModel, first: Settings, pieces: List[Tuple[float, Settings]], seed: int
) -> None:
    quick, plain = Simulation(model, first, seed), Simulation(model, first, seed, compiled=False)
    for seconds, changed in pieces:
        for simulation in (quick, plain):
            simulation.advance(seconds)
            simulation.configure(changed)
    for simulation in (quick, plain):
        simulation.advance(SECONDS)
    assert quick._functions.compiled
    assert not plain._functions.compiled
    assert same_bits(quick, plain)


class WithinBounds(List[Any]):
    """A table of plain Python whose indices are places: compiled, one below 0 would be before the table."""

    def __getitem__(self, place: Any) -> Any:
        assert 0 <= place < len(self)
        return super().__getitem__(place)

    def __setitem__(self, place: Any, value: Any) -> None:
        assert 0 <= place < len(self)
        super().__setitem__(place, value)


def guarded(held: Any) -> Any:
    if isinstance(held, Record):
        for name, value in vars(held).items():
            setattr(held, name, guarded(value))
    elif isinstance(held, memoryview):
        # numbers alone
        return WithinBounds(held)
    elif isinstance(held, list):
        return WithinBounds(map(guarded, held))
    return held


@hypothesis_settings(unhurried, max_examples=60)
@given(models(), settings(), settings(), st.integers(0, 100))
def test_every_index_is_a_place_in_its_table(model: ClusterModel, first: Settings, then: Settings, seed: int) -> None:
    simulation = Simulation(model, first, seed, compiled=False)
    for changed in (first, then):
        simulation.configure(changed)
        state = over_objects(simulation._tables)
        loop.run(SimulationState._make(map(guarded, state)), simulation._clock + SECONDS)
        bring_back(state, simulation._tables)


@hypothesis_settings(unhurried, max_examples=60)
@given(models(), settings(), st.lists(st.floats(0, 1), max_size=4), st.integers(0, 100))
def test_time_may_pass_in_pieces(model: ClusterModel, chosen: Settings, cuts: List[float], seed: int) -> None:
    whole, pieces = Simulation(model, chosen, seed), Simulation(model, chosen, seed)
    whole.advance(1.0)
    for until in [*sorted(cuts), 1.0]:
        pieces.advance(max(0.0, until - pieces.now))
    pieces.advance(max(0.0, whole.now - pieces.now))
    # the sum of the pieces may miss the end by a rounding: what happened is the same, but for the clock itself
    assert pieces.now == pytest.approx(whole.now, abs=1e-9)
    whole._tables["progress"]["now_s"] = pieces._tables["progress"]["now_s"]
    assert same_bits(whole, pieces)


@hypothesis_settings(unhurried, max_examples=25)
@given(models(), settings(), st.integers(0, 100))
def test_the_same_seed_gives_the_same_run(model: ClusterModel, chosen: Settings, seed: int) -> None:
    one, again = Simulation(model, chosen, seed), Simulation(model, chosen, seed)
    one.advance(1.0)
    again.advance(0.5)
    again.advance(0.5)
    assert same_bits(one, again)


def test_a_copy_of_a_simulation_runs_on_tables_of_its_own() -> None:
    simulation, alone = (
        Simulation(ClusterModel(1, OsdModel(Device(1e3, 1e8)), (Pool("rbd", 1, 1),)), {}) for _ in "ab"
    )
    for each in (simulation, alone):
        each.advance(1.0)
    copied = copy.deepcopy(simulation)
    copied.advance(30.0)
    assert same_bits(simulation, alone)
    alone.advance(30.0)
    assert same_bits(copied, alone)


def test_the_environment_switches_the_compiler_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CEPH_TUNER_NUMBA", "0")
    compiled.functions.cache_clear()
    try:
        assert not compiled.available()
        assert compiled.functions().run is loop.run
    finally:
        compiled.functions.cache_clear()


def test_every_function_that_is_called_rather_than_inlined_is_one_of_the_kernel() -> None:
    for module, name in compiled.SELDOM:
        assert module in compiled.MODULES
        assert getattr(module, name).__module__ == module.__name__


def test_every_module_of_the_kernel_with_functions_that_take_its_state_is_compiled() -> None:
    package = Path(loop.__file__).parent
    of_records = {"__init__", "layout", "osd_records", "records", "state"}
    names = {path.stem for path in package.glob("*.py")} - of_records
    assert {module.__name__.rpartition(".")[2] for module in compiled.MODULES} == names


def test_no_file_of_the_kernel_is_longer_than_400_lines() -> None:
    for path in Path(loop.__file__).parent.glob("*.py"):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 400, path.name
