"""Builds the packages of Debian from the source distribution, by Debian's own tools (`make packages`).

`python packages/build_debian.py OUTPUT [--wheels FOLDER]`: ceph-mgr-tuner, which fits every Debian, and with the wheels
also ceph-tuner, which fits this Debian's Python.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Dict, List, Optional

import package_command

MAINTAINER = "ceph-tuner maintainers <maintainers@ceph-tuner.invalid>"


def build(sdist: Path, output: Path, seconds: int, wheels: Optional[Path] = None) -> List[Path]:
    """The packages' paths."""
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run(["tar", "-xzf", str(sdist.resolve())], cwd=scratch, check=True, umask=0o022)
        (tree,) = Path(scratch).iterdir()
        shutil.copytree(tree / "packages/debian", tree / "debian")
        version = tree.name.partition("-")[2]
        (tree / "debian/changelog").write_text(_changelog(version, seconds), encoding="utf-8")
        # on a machine whose Python is not Debian's, the latter builds
        environment: Dict[str, str] = {
            **os.environ,
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "SOURCE_DATE_EPOCH": str(seconds),
            "WHEELS": str(wheels.resolve()) if wheels else "",
        }
        kind = "-b" if wheels else "-A"
        command = ["dpkg-buildpackage", kind, "-us", "-uc", "--no-sign", "-tc"]
        done = subprocess.run(
            command,
            cwd=tree,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            umask=0o022,
            check=False,
        )
        if done.returncode:
            sys.exit(f"error: dpkg-buildpackage: {done.stdout.decode(errors='replace')[-4000:]}")
        return [Path(shutil.move(str(path), output / path.name)) for path in sorted(Path(scratch).glob("*.deb"))]


def _changelog(version: str, seconds: int) -> str:
    """Of the packaging, in Debian's form; what changed is in CHANGELOG.md, which goes into the packages as well."""
    date = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(seconds))
    return f"ceph-tuner ({version}-1) stable; urgency=medium\n\n  * {version}.\n\n -- {MAINTAINER}  {date}\n"


if __name__ == "__main__":
    package_command.run(build, __doc__)
