from __future__ import annotations

from dataclasses import replace

import pytest

from ceph_tuner.cost import Hardware
from ceph_tuner.lab.options import LabOptions
from ceph_tuner.lab.recipes import RECIPES
from ceph_tuner.lab.twin_model import SCENARIOS, lab_model
from ceph_tuner.releases import TENTACLE

HARDWARE = Hardware(811.7, 60.0 * (1 << 20), 1, "ssd")


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_twin_is_told_of_the_work_that_the_labs_recipe_has(name: str) -> None:
    model, has = lab_model(LabOptions("tentacle"), HARDWARE, name, TENTACLE), RECIPES[name].options
    assert bool(model.snaptrim) == ("clones" in has)
    assert bool(model.scrub) == ("scrub_objects" in has)
    assert bool(model.recovery) == ("object_bytes" in has)
    assert {work.pool for work in (*model.recovery, *model.scrub, *model.snaptrim)} <= {p.name for p in model.pools}


def test_both_kinds_of_work_are_those_of_each_alone() -> None:
    both, recovery, snaptrim = (
        lab_model(LabOptions("tentacle"), HARDWARE, name, TENTACLE)
        for name in ("client-snaptrim-recovery", "client-recovery", "client-snaptrim")
    )
    assert replace(both, snaptrim=(), pools=recovery.pools) == recovery
    assert both.snaptrim == snaptrim.snaptrim
