"""The SBOM is the program with what is locked for it, and CycloneDX."""

from __future__ import annotations

import json
from typing import Any, Dict, List

import pytest
from packaging.utils import canonicalize_name
from packaging.version import Version

import pins
import write_sbom
from ceph_tuner import __version__
from ceph_tuner.core.errors import InputError

INSTALLED = {"ceph-tuner": "0.1.0", "Jinja2": "3.1.6", "MarkupSafe": "3.0.4", "pytest": "9.1.1"}
NEEDS = {"ceph-tuner": ["Jinja2", "MarkupSafe", "pytest"], "Jinja2": ["MarkupSafe"]}


def reference(name: str) -> str:
    return f"{name}=={INSTALLED[name]}"


def description() -> Dict[str, Any]:
    components: List[Dict[str, Any]] = [
        {"bom-ref": reference(name), "name": name, "version": version, "type": "library"}
        for name, version in INSTALLED.items()
    ]
    components[0]["externalReferences"] = [{"type": "distribution", "url": "file:///home/somebody"}]
    dependencies = [
        {"ref": reference(name), "dependsOn": [reference(each) for each in NEEDS.get(name, ())]} for name in INSTALLED
    ]
    return {
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "metadata": {},
        "components": components, "dependencies": dependencies,
    }  # fmt: skip


def pinned(**versions: str) -> Dict[str, pins.Pin]:
    return {name: pins.Pin(name, Version(version), None, ()) for name, version in versions.items()}


def test_what_the_tools_brought_and_need_is_left_out() -> None:
    document = write_sbom.of_program(description(), pinned(jinja2="3.1.6", markupsafe="3.0.4"), {"jinja2"})
    assert document["metadata"]["component"]["name"] == "ceph-tuner"
    assert [each["name"] for each in document["components"]] == ["Jinja2", "MarkupSafe"]
    assert document["dependencies"] == [
        {"ref": "ceph-tuner==0.1.0", "dependsOn": ["Jinja2==3.1.6"]},
        {"ref": "Jinja2==3.1.6", "dependsOn": ["MarkupSafe==3.0.4"]},
        {"ref": "MarkupSafe==3.0.4"},
    ]
    write_sbom.check(json.dumps(document))


@pytest.mark.parametrize(("versions", "found"), [({"jinja2": "3.1.5"}, "3.1.6"), ({"numpy": "2.4.6"}, "nothing")])
def test_an_environment_that_is_not_what_is_locked_is_refused(versions: Dict[str, str], found: str) -> None:
    with pytest.raises(InputError, match=f"found {found}, expected .* \\(`make setup`\\)"):
        write_sbom.of_program(description(), pinned(**versions), set())


@pytest.mark.parametrize("wrong", [{"bomFormat": "SPDX"}, {"components": [{"name": "numpy"}]}, {"unknown": 1}])
def test_what_is_no_cyclonedx_is_refused(wrong: Dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"expected CycloneDX 1\.6"):
        write_sbom.check(json.dumps({**description(), **wrong}))


@pytest.mark.slow
def test_the_sbom_of_this_environment_is_the_program_with_its_pins() -> None:
    locked = pins.for_this_python(pins.read(pins.PROGRAM))
    declared = {canonicalize_name(requirement.name) for requirement in pins.declared()[""]}
    document = write_sbom.of_program(write_sbom.describe(), locked, declared)
    text = json.dumps(document)
    write_sbom.check(text)
    assert all(each["purl"].startswith("pkg:pypi/") for each in document["components"])
    described = {f"{canonicalize_name(each['name'])} {each['version']}" for each in document["components"]}
    assert described == {str(pin) for pin in locked.values()}
    (program,) = [each for each in document["dependencies"] if each["ref"] == f"ceph-tuner=={__version__}"]
    direct = {canonicalize_name(reference.split("==")[0]) for reference in program["dependsOn"]}
    assert direct == declared
    assert "file://" not in text
