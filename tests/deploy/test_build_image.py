"""What builds the image: its context, its command, and what it refuses."""

from __future__ import annotations

import hashlib
import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

from kubernetes_server import DEPLOY

IMAGE = DEPLOY.parent / "image"


def _loaded() -> Any:
    spec = importlib.util.spec_from_file_location("build_image", IMAGE / "build_image.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


build_image = _loaded()


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "ceph_tuner-1.2.3-py3-none-any.whl"
    path.write_bytes(b"a wheel")
    return path


def test_the_context_has_what_the_containerfile_copies(wheel: Path, tmp_path: Path) -> None:
    folder = tmp_path / "context"
    folder.mkdir()
    build_image.lay_out(wheel, folder)
    text = (folder / "Containerfile").read_text("utf-8").replace("${VERSION}", build_image.version_of(wheel))
    (names,) = re.findall(r"^COPY (.*) \S+$", text, re.MULTILINE)
    assert set(names.split()) == {path.name for path in folder.iterdir()} - {"Containerfile"}


def test_every_package_is_installed_by_its_hash() -> None:
    text = (IMAGE / "Containerfile").read_text("utf-8")
    assert "--require-hashes" in text
    assert re.search(r"^USER [1-9][0-9]*:[1-9][0-9]*$", text, re.MULTILINE)


@pytest.mark.parametrize("builder", ["podman", "buildah", "docker"])
def test_a_builder_is_told_version_base_and_tag(builder: str, tmp_path: Path) -> None:
    words = build_image.command(builder, tmp_path, "1.2.3", "registry/x:1", "base:2", ["--network", "host"])
    assert words[:2] == [builder, "build"]
    assert "VERSION=1.2.3" in words
    assert "BASE=base:2" in words
    assert words[-1] == str(tmp_path)
    assert words[words.index("--tag") + 1] == "registry/x:1"


@pytest.mark.parametrize("name", ["ceph_tuner-1.2.3.tar.gz", "other-1.2.3-py3-none-any.whl"])
def test_what_is_no_wheel_of_ours_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(SystemExit, match="expected a wheel"):
        build_image.main([str(tmp_path / name)])


def test_a_wheel_that_is_not_the_releases_is_refused(wheel: Path) -> None:
    sums = wheel.with_name("SHA256SUMS")
    sums.write_text(f"{hashlib.sha256(b'a wheel').hexdigest()}  {wheel.name}\n", "utf-8")
    build_image.check_sum(wheel)
    wheel.write_bytes(b"another wheel")
    with pytest.raises(SystemExit, match="checksum"):
        build_image.check_sum(wheel)
    sums.write_text("", "utf-8")
    with pytest.raises(SystemExit, match="checksum"):
        build_image.main([str(wheel)])
