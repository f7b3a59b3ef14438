"""The source distribution and the wheel, the same bytes from the same commit.

`python packages/python_distributions.py FOLDER` builds both from the files that git has here, changes included. The
wheel is built from the unpacked source distribution, so that this one is whole.
"""

from __future__ import annotations

import argparse
import gzip
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Dict, Optional, Sequence, Tuple

ROOT = Path(__file__).resolve().parent.parent


def epoch(repository: Path) -> int:
    """SOURCE_DATE_EPOCH where it is set, or the moment of the newest commit: the age of all files in packages."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    return int(given if given else _output(["git", "log", "-1", "--format=%ct"], repository))


def export(repository: Path, target: Path) -> None:
    """Copy the files that git has, and those that it does not ignore; modes are 755 or 644, whatever the umask."""
    listed = _output(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], repository)
    for name in sorted(filter(None, listed.split("\0"))):
        if (repository / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(repository / name, target / name)
            (target / name).chmod(0o755 if os.access(repository / name, os.X_OK) else 0o644)


def build(repository: Path, output: Path) -> Tuple[Path, Path]:
    """Put the source distribution and the wheel into a folder; their paths."""
    sdist = build_sdist(repository, output)
    with tempfile.TemporaryDirectory() as scratch:
        made = _folder(Path(scratch) / "made")
        _output(["tar", "-xzf", str(sdist.resolve())], Path(scratch))
        wheel = output / _build("wheel", Path(scratch) / sdist.name[: -len(".tar.gz")], made, epoch(repository))
        shutil.copyfile(made / wheel.name, wheel)
    return sdist, wheel


def build_sdist(repository: Path, output: Path) -> Path:
    """Put the source distribution alone into a folder; its path."""
    seconds = epoch(repository)
    with tempfile.TemporaryDirectory() as scratch:
        made, tree = _folder(Path(scratch) / "made"), Path(scratch) / "tree"
        export(repository, tree)
        sdist = _folder(output) / _build("sdist", tree, made, seconds)
        repack(made / sdist.name, sdist, seconds)
    return sdist


def _folder(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path


def repack(original: Path, target: Path, seconds: int) -> None:
    """The same archive with names in order, one age, and no trace of who packed it."""
    packed = io.BytesIO()
    with tarfile.open(original) as read, tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as written:
        for member in sorted(read.getmembers(), key=lambda each: each.name):
            member.mtime, member.pax_headers = seconds, {}
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            written.addfile(member, read.extractfile(member) if member.isfile() else None)
    with target.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=seconds) as compressed:
        compressed.write(packed.getvalue())


def _build(kind: str, tree: Path, made: Path, seconds: int) -> str:
    """Name of the file that the build backend makes; it is the one of this environment, nothing is fetched."""
    script = f"from setuptools import build_meta; print(build_meta.build_{kind}({str(made)!r}))"
    return _output([sys.executable, "-c", script], tree, {"SOURCE_DATE_EPOCH": str(seconds)}).splitlines()[-1]


def _output(command: Sequence[str], folder: Path, more: Optional[Dict[str, str]] = None) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **(more or {})},
        capture_output=True,
        text=True,
        umask=0o022,
        check=False,
    )
    if done.returncode:
        sys.exit(f"error: `{' '.join(command[:3])}` in {folder}: {done.stderr[-2000:]}")
    return done.stdout


def main() -> None:
    """Build both, and name them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    for path in build(ROOT, parser.parse_args().folder):
        print(path)


if __name__ == "__main__":
    main()
