"""Builds the image of ceph-tuner from a released wheel, by podman, buildah or docker.

    python deploy/image/build_image.py build/release/1.2.3/ceph_tuner-1.2.3-py3-none-any.whl --tag registry/tuner:1.2.3

The wheel is checked against the SHA256SUMS beside it, where a release has them.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import List, Optional, Sequence

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILDERS = {"podman": ["podman", "build"], "buildah": ["buildah", "build"], "docker": ["docker", "build"]}
_WHEEL = re.compile(r"ceph_tuner-([0-9][A-Za-z0-9.+]*)-py3-none-any\.whl")


def version_of(wheel: Path) -> str:
    """Give the version in a wheel's name. Raises SystemExit for another file."""
    match = _WHEEL.fullmatch(wheel.name)
    if match is None or not wheel.is_file():
        raise SystemExit(f"{wheel}: expected a wheel such as ceph_tuner-1.2.3-py3-none-any.whl")
    return match[1]


def check_sum(wheel: Path) -> None:
    """Hold the wheel against the release's checksums, where they lie beside it. Raises SystemExit."""
    sums = wheel.with_name("SHA256SUMS")
    if not sums.is_file():
        return
    rows = dict(reversed(line.split(maxsplit=1)) for line in sums.read_text("utf-8").splitlines() if line.strip())
    by_name = {name.lstrip("*"): digest for name, digest in rows.items()}
    if by_name.get(wheel.name) != hashlib.sha256(wheel.read_bytes()).hexdigest():
        raise SystemExit(f"{wheel}: its checksum is not that of {sums}")


def lay_out(wheel: Path, folder: Path) -> None:
    """Put the context into a folder."""
    shutil.copyfile(HERE / "Containerfile", folder / "Containerfile")
    shutil.copyfile(ROOT / "requirements" / "program.txt", folder / "program.txt")
    shutil.copyfile(wheel, folder / wheel.name)


def command(builder: str, folder: Path, version: str, tag: str, base: str, further: Sequence[str]) -> List[str]:
    """Give the command line that builds a context."""
    arguments = ["--build-arg", f"VERSION={version}", *(["--build-arg", f"BASE={base}"] if base else [])]
    file = ["--file", str(folder / "Containerfile")]
    return [*BUILDERS[builder], *arguments, *further, "--tag", tag, *file, str(folder)]


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Build it; give the builder's exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="what follows -- goes to the builder",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--tag", default="", help="name of the image; by default ceph-tuner:VERSION")
    parser.add_argument("--base", default="", help="image with Ceph's client, of the cluster's release or newer")
    parser.add_argument("--builder", choices=sorted(BUILDERS), help="by default the first that is installed")
    words = list(sys.argv[1:] if arguments is None else arguments)
    end = words.index("--") if "--" in words else len(words)
    options, further = parser.parse_args(words[:end]), words[end + 1 :]
    version = version_of(options.wheel)
    check_sum(options.wheel)
    builder = options.builder or next((name for name in BUILDERS if shutil.which(name)), None)
    if builder is None:
        raise SystemExit(f"none of {', '.join(BUILDERS)} is installed")
    with tempfile.TemporaryDirectory() as folder:
        lay_out(options.wheel, Path(folder))
        tag = options.tag or f"ceph-tuner:{version}"
        return subprocess.call(command(builder, Path(folder), version, tag, options.base, further))


if __name__ == "__main__":
    sys.exit(main())
