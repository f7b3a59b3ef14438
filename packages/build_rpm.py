"""Builds the RPM packages from the source distribution, by rpmbuild (`make packages`).

`python packages/build_rpm.py OUTPUT [--wheels FOLDER]`: ceph-mgr-tuner, and with the wheels also ceph-tuner. The latter
fits the minor version of Python that it is built with.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Dict, List, Optional

import package_command

SPEC = "packages/rpm/ceph-tuner.spec"


def build(sdist: Path, output: Path, seconds: int, wheels: Optional[Path] = None) -> List[Path]:
    """The packages' paths."""
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        top = Path(scratch)
        (top / "SOURCES").mkdir()
        shutil.copy(sdist, top / "SOURCES")
        inside = f"{sdist.name[: -len('.tar.gz')]}/{SPEC}"
        subprocess.run(["tar", "-xzf", str(sdist.resolve()), "--strip-components=3", inside], cwd=top, check=True)
        macros: Dict[str, str] = {
            "_topdir": scratch,
            "tuner_version": sdist.name[len("ceph_tuner-") : -len(".tar.gz")],
            # the same bytes again, on another machine too
            "use_source_date_epoch_as_buildtime": "1",
            "clamp_mtime_to_source_date_epoch": "1",
            "_buildhost": "localhost",
            "_binary_payload": "w3.zstdio",
            **({"wheels": str(wheels.resolve())} if wheels else {}),
        }
        defined = [word for name, value in macros.items() for word in ("--define", f"{name} {value}")]
        environment = {**os.environ, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "SOURCE_DATE_EPOCH": str(seconds)}
        done = subprocess.run(
            # Debian's rpm knows no packages that are installed
            ["rpmbuild", "-bb", "--nodeps", *defined, str(top / Path(SPEC).name)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            umask=0o022,
            check=False,
        )
        if done.returncode:
            sys.exit(f"error: rpmbuild: {done.stdout.decode(errors='replace')[-4000:]}")
        return [Path(shutil.move(str(path), output / path.name)) for path in sorted(top.glob("RPMS/*/*.rpm"))]


if __name__ == "__main__":
    package_command.run(build, __doc__)
