"""Lays out what a package of Debian or RPM holds; both are built with it, by the system's own Python.

`lay_out.py module DIRECTORY` puts the ceph-mgr module below DIRECTORY/usr/share/ceph/mgr.
`lay_out.py program DIRECTORY WHEELS` makes the program's environment in DIRECTORY/usr/lib/ceph-tuner: a virtual
environment with this program and the packages that requirements/program.txt pins, taken from the folder of wheels and
nowhere else, with its byte code. It is bound to the minor version of the Python that runs this. The units of systemd
that start it as a guardian, and for work that lasts, lie beside it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Dict

ROOT = Path(__file__).resolve().parent.parent
MODULES = "usr/share/ceph/mgr"
HOME = "usr/lib/ceph-tuner"
OWNER = "ceph-mgr-tuner"
UNITS = ROOT / "packages/systemd"

sys.path.insert(0, str(ROOT / "tuner"))

from ceph_tuner.shipped.plugin_files import MODULE, PACKAGE_FILE, put_in_place, sources  # noqa: E402 - found there


def module(destination: Path) -> None:
    """The module as `mgr install` copies it, and whose it is."""
    modules = destination / MODULES
    modules.mkdir(parents=True, exist_ok=True)
    put_in_place(modules, sources())
    owner = modules / MODULE / PACKAGE_FILE
    owner.write_text(OWNER + "\n", encoding="utf-8")
    owner.chmod(0o644)


def program(destination: Path, wheels: Path) -> None:
    """The program with all that it needs, as if it had been made at its place."""
    home = destination / HOME
    _python(sys.executable, "-m", "venv", "--without-pip", "--symlinks", str(home))
    with tempfile.TemporaryDirectory() as scratch:
        # what builds the program's wheel is no part of the program
        builder = f"{scratch}/builder/bin/python"
        _python(sys.executable, "-m", "venv", f"{scratch}/builder")
        offline = ["--no-deps", "--no-index", "--find-links", str(wheels), "--disable-pip-version-check", "--quiet"]
        # newer than what a bookworm puts there
        _python(builder, "-m", "pip", "install", *offline, "--upgrade", "setuptools")
        _python(builder, "-m", "pip", "wheel", *offline, "--no-build-isolation", "-w", scratch, str(ROOT))
        (own,) = Path(scratch).glob("ceph_tuner-*.whl")
        into = [builder, "-m", "pip", "--python", str(home / "bin/python"), "install", "--no-compile", *offline]
        locked = Path(scratch) / "program.txt"
        locked.write_text(_without_the_build_backend((ROOT / "requirements/program.txt").read_text("utf-8")), "utf-8")
        _python(*into, "--require-hashes", "-r", str(locked))
        _python(*into, str(own))
    _relocate(home)
    # unchecked: no file is written where a clock or a copy has changed the age of a source
    quiet = ["-q", "--invalidation-mode", "unchecked-hash", "-s", str(destination), "-p", "/"]
    _python(sys.executable, "-m", "compileall", *quiet, str(home / "lib"))
    command = destination / "usr/bin/ceph-tuner"
    command.parent.mkdir(parents=True, exist_ok=True)
    command.symlink_to("../lib/ceph-tuner/bin/ceph-tuner")
    units = destination / "usr/lib/systemd/system"
    units.mkdir(parents=True, exist_ok=True)
    for unit in UNITS.glob("*.service"):
        shutil.copyfile(unit, units / unit.name)
        (units / unit.name).chmod(0o644)


def _without_the_build_backend(lock: str) -> str:
    """Of a lock file; a pin and its hashes are one logical line."""
    return re.sub(r"^setuptools==.*?[^\\]\n", "", lock, flags=re.MULTILINE | re.DOTALL)


def _relocate(home: Path) -> None:
    """Leave no word of where it was made: only Python and the program's own command stay in `bin`."""
    command = home / "bin/ceph-tuner"
    _, _, body = command.read_text(encoding="utf-8").partition("\n")
    for path in (home / "bin").iterdir():
        if not path.name.startswith("python"):
            path.unlink()
    command.write_text(f"#!/{HOME}/bin/python\n{body}", encoding="utf-8")
    command.chmod(0o755)
    settings = home / "pyvenv.cfg"
    kept = [line for line in settings.read_text("utf-8").splitlines(True) if not line.startswith("command")]
    settings.write_text("".join(kept), encoding="utf-8")
    for written in home.glob("lib/*/site-packages/*.dist-info/direct_url.json"):
        written.unlink()
    for folder in home.rglob("__pycache__"):
        shutil.rmtree(folder)


def _python(*command: str) -> None:
    kept: Dict[str, str] = {
        name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON"))
    }
    # the same byte code each time: the order in sets goes by the hashes of strings; and from here, as `-m` looks for
    # modules in the current directory first
    subprocess.run(command, check=True, cwd=ROOT, env={**kept, "PYTHONHASHSEED": "0"}, umask=0o022)


def main() -> None:
    """Lay out one of the two."""
    what, destination, *wheels = sys.argv[1:]
    if what == "module":
        module(Path(destination))
    else:
        program(Path(destination).resolve(), Path(wheels[0]).resolve())


if __name__ == "__main__":
    main()
