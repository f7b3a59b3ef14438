"""Writes what the program consists of, as CycloneDX in JSON (`make sbom`).

cyclonedx-py describes all that is installed in this environment. What stays is the program and what
requirements/program.txt pins for this Python, in the versions that it pins.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Container, Dict, Mapping, Optional, Sequence

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.utils import canonicalize_name
from packaging.version import Version

import pins
from ceph_tuner.core.atomic_write import write_text
from ceph_tuner.core.errors import InputError
from pins import Pin

PROGRAM = "ceph-tuner"
SPECIFICATION = SchemaVersion.V1_6


def describe() -> Dict[str, Any]:
    """All that is installed in this environment, as a CycloneDX document. InputError where that cannot be told."""
    command = ["-m", "cyclonedx_py", "environment", "--output-reproducible", "--no-validate"]
    command += ["--spec-version", SPECIFICATION.to_version(), "--output-format", "JSON", sys.executable]
    # what it describes is validated once it is cut down
    # isolated: `-m` would look for modules in the current directory first
    done = subprocess.run([sys.executable, "-I", *command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise InputError(sys.prefix, done.stderr.strip()[-500:], "an environment that cyclonedx-py can describe")
    document: Dict[str, Any] = json.loads(done.stdout)
    return document


def of_program(document: Mapping[str, Any], pinned: Mapping[str, Pin], direct: Container[str]) -> Dict[str, Any]:
    """The part of a description that is the program, its main component, which needs those packages itself.

    Raises InputError where the environment is not what the lock file says.
    """
    components = {canonicalize_name(each["name"]): each for each in document["components"]}
    for name, pin in pinned.items():
        version = components[name]["version"] if name in components else None
        if version is None or Version(version) != pin.version:
            raise InputError(f"{sys.prefix} {name}", version or "nothing", f"{pin.version} (`make setup`)")
    # where it was installed from is a place on this machine
    program = {key: value for key, value in components[PROGRAM].items() if key != "externalReferences"}
    kept = [components[name] for name in sorted(pinned)]
    names = {each["bom-ref"]: canonicalize_name(each["name"]) for each in [program, *kept]}
    dependencies = []
    for entry in document["dependencies"]:
        if entry["ref"] in names:
            needed = [each for each in entry.get("dependsOn", ()) if each in names]
            if names[entry["ref"]] == PROGRAM:
                # what its extras need is described as needed, too
                needed = [each for each in needed if names[each] in direct]
            dependencies.append({"ref": entry["ref"], **({"dependsOn": needed} if needed else {})})
    metadata = {**document["metadata"], "component": {**program, "type": "application"}}
    return {**document, "metadata": metadata, "components": kept, "dependencies": dependencies}


def check(text: str) -> None:
    """Raise InputError for what is no CycloneDX."""
    fault = JsonStrictValidator(SPECIFICATION).validate_str(text)
    if fault is not None:
        raise InputError("SBOM", str(fault), f"CycloneDX {SPECIFICATION.to_version()}")


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path)
    output = parser.parse_args(arguments).output
    try:
        direct = {canonicalize_name(requirement.name) for requirement in pins.declared()[""]}
        document = of_program(describe(), pins.for_this_python(pins.read(pins.PROGRAM)), direct)
        text = json.dumps(document, indent=2, sort_keys=True) + "\n"
        check(text)
        output.parent.mkdir(parents=True, exist_ok=True)
        write_text(output, text, force=True)
    except InputError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(f"{output}: {PROGRAM} and {len(document['components'])} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
