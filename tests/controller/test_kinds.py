from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any, Dict, Iterator, Tuple

import pytest

from ceph_tuner.controller.kinds import ALL, MODE, SLO, ResourceKind, structural
from ceph_tuner.core.autopilot.policy import option_name, options
from ceph_tuner.files.slo_file import SLO_SCHEMA
from kubernetes_server import DEPLOY


def definitions() -> Dict[str, str]:
    spec = importlib.util.spec_from_file_location("write_definitions", DEPLOY / "write_definitions.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made: Dict[str, str] = module.definitions()
    return made


def test_the_files_are_those_that_the_schemas_give() -> None:
    files = {path.name: path.read_text("utf-8") for path in (DEPLOY / "crds").iterdir()}
    assert files == definitions(), "python deploy/kubernetes/write_definitions.py"


def test_an_slo_has_the_keys_of_its_file_but_for_those_that_make_no_sense_here() -> None:
    assert set(SLO.spec["properties"]) == set(SLO_SCHEMA["properties"]) - {"schema", "lab"}


def test_a_policy_has_every_option_of_the_automatic_mode_with_its_bounds() -> None:
    made = structural(MODE.spec)["properties"]["policy"]["properties"]
    assert list(made) == [option_name(item) for item in options()]
    for item in options():
        part = made[option_name(item)]
        assert (part.get("minimum"), part.get("maximum")) == (item.metadata["low"], item.metadata["high"])


def parts(schema: Dict[str, Any], place: Tuple[str, ...] = ()) -> Iterator[Tuple[Tuple[str, ...], Dict[str, Any]]]:
    yield place, schema
    for name, part in schema.get("properties", {}).items():
        yield from parts(part, (*place, name))
    if "items" in schema:
        yield from parts(schema["items"], (*place, "[]"))


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)
def test_a_definition_lets_unknown_keys_through_for_the_controller_to_refuse(kind: ResourceKind) -> None:
    for place, part in parts(structural(kind.spec)):
        if part.get("type") == "object" or "type" not in part:
            assert part["x-kubernetes-preserve-unknown-fields"], place


def test_names_of_files_are_names_of_kinds() -> None:
    assert {Path(name).stem for name in definitions()} == {kind.plural for kind in ALL}
