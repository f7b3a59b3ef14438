"""The image, really built by buildah, and its program run as in a pod: no root, no capability, no place to write to."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Dict, Iterator, List, Tuple

import pytest
from test_build_image import build_image

import debian_packages
import pristine
import python_distributions
from ceph_tuner import __version__

pytestmark = pytest.mark.long

BASE, TAG = "localhost/base:test", "localhost/ceph-tuner:test"
_AS_IN_A_POD = """
set -eu
mount --bind "$root" "$root"
mount -o remount,ro,bind "$root"
mount -t tmpfs tmpfs "$root/tmp"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
exec chroot "$root" setpriv --reuid 10001 --regid 10001 --clear-groups --no-new-privs --bounding-set=-all \\
    --inh-caps=-all env -i HOME=/tmp PYTHONDONTWRITEBYTECODE=1 PATH=/usr/bin:/bin "$@"
"""


class Buildah:
    """buildah with a store of its own; it needs no daemon and no container runtime."""

    def __init__(self, folder: Path) -> None:
        settings = folder / "storage.conf"
        places = f'graphroot = "{folder / "graph"}"\nrunroot = "{folder / "run"}"\n'
        settings.write_text(f'[storage]\ndriver = "vfs"\n{places}', "utf-8")
        self.environment = {
            **os.environ,
            "CONTAINERS_STORAGE_CONF": str(settings),
            "STORAGE_DRIVER": "vfs",
            "BUILDAH_ISOLATION": "chroot",
        }

    def __call__(self, *words: str) -> str:
        done = subprocess.run(["buildah", *words], capture_output=True, text=True, check=False, env=self.environment)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout.strip()


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tuple[Buildah, Path]]:
    """The image on a Debian in the place of Ceph's own base, and where its files are."""
    debian_packages.install(("buildah",))
    folder = tmp_path_factory.mktemp("image")
    buildah = Buildah(folder)
    with pristine.machine("bookworm") as machine:
        log = folder / "machine.log"
        for words in (["apt-get", "update"], ["apt-get", "install", "-qy", "--no-install-recommends", "python3-venv"]):
            assert machine.run(words, log, 600) == 0, log.read_text("utf-8")[-2000:]
        container = buildah("from", "scratch")
        buildah("copy", "--quiet", container, str(machine.root), "/")
        # how packages are reached here
        for name, value in machine.variables.items():
            if name.startswith("PIP_"):
                buildah("config", "--env", f"{name}={value}", container)
        buildah("commit", "--quiet", "--rm", container, BASE)
        volumes = [word for path in machine.folders for word in ("--volume", f"{path}:{path}:ro")]
        _, wheel = python_distributions.build(pristine.ROOT, folder / "dist")
        own = {"CONTAINERS_STORAGE_CONF", "STORAGE_DRIVER", "BUILDAH_ISOLATION"}
        with pytest.MonkeyPatch.context() as patched:
            for name in own:
                patched.setenv(name, buildah.environment[name])
            words = [str(wheel), "--builder", "buildah", "--base", BASE, "--tag", TAG, "--", *volumes]
            assert build_image.main(words) == 0
    container = buildah("from", TAG)
    try:
        yield buildah, Path(buildah("mount", container))
    finally:
        buildah("rm", "--all")
        buildah("rmi", "--all")


def in_a_pod(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment: Dict[str, str] = {**os.environ, "root": str(root)}
    command: List[str] = ["unshare", "--mount", "--propagation", "private", "sh", "-c", _AS_IN_A_POD, "sh", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=environment)


def test_the_program_runs_without_root_on_a_read_only_root(image: Tuple[Buildah, Path]) -> None:
    root = image[1]
    program = "/opt/ceph-tuner/bin/ceph-tuner"
    assert in_a_pod(root, program, "--version").stdout.strip() == f"ceph-tuner {__version__}"
    assert "CephSLO" in in_a_pod(root, program, "controller", "--help").stdout
    # it comes as far as the pod's account, which is not there
    refusal = in_a_pod(root, program, "controller", "--cluster", "ceph", "--namespace", "rook-ceph")
    assert refusal.returncode == 2
    assert "a pod's service account" in refusal.stderr
    assert "Read-only file system" in in_a_pod(root, "touch", "/opt/x").stderr
    rights = in_a_pod(root, "cat", "/proc/self/status").stdout
    assert "CapEff:\t0000000000000000" in rights
    assert "NoNewPrivs:\t1" in rights


def test_it_says_who_runs_what(image: Tuple[Buildah, Path]) -> None:
    shown = image[0](
        "inspect", "--type", "image", "--format", "{{.OCIv1.Config.User}} {{.OCIv1.Config.Entrypoint}}", TAG
    )
    assert shown == "10001:10001 [/opt/ceph-tuner/bin/ceph-tuner]"


def test_nothing_that_it_was_built_from_is_left(image: Tuple[Buildah, Path]) -> None:
    assert not (image[1] / "tmp/context").exists()
