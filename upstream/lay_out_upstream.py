"""Lays out what a pull request to Ceph consists of (`make upstream`).

`python upstream/lay_out_upstream.py CEPH OUTPUT`: CEPH is a checkout of Ceph, which is only read. OUTPUT gets new
files and changed ones, at their places in Ceph's tree. The module is one package there: `ceph_tuner.core` becomes
`tuner.core`. The optimiser is no part of it: the option `worker_python` names a Python that has the package ceph-tuner.
"""

from __future__ import annotations

import re
import shutil
import sys
import tokenize
from pathlib import Path
from typing import Dict, List, Tuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tuner"))

import ceph_tuner  # noqa: E402 - found there
from ceph_tuner.shipped.plugin_files import LIBRARY, MODULE, sources  # noqa: E402 - found there

NEW = ROOT / "upstream" / "new"
MODULES = "src/pybind/mgr"

INIT = """# flake8: noqa
import os

if 'UNITTEST' in os.environ:
    import tests

from .module import Module
"""

_RPM_PACKAGE = """%package mgr-tuner
BuildArch:      noarch
Summary:        Ceph Manager module that tunes mClock to objectives
%if 0%{?suse_version}
Group:          System/Filesystems
%endif
Requires:       ceph-mgr = %{_epoch_prefix}%{version}-%{release}
%description mgr-tuner
ceph-mgr-tuner is a ceph-mgr module that tunes the OSDs' mClock scheduler
to service-level objectives.

"""

_RPM_FILES = """%files mgr-tuner
%{_datadir}/ceph/mgr/tuner

%post mgr-tuner
if [ $1 -eq 1 ] ; then
    /usr/bin/systemctl try-restart ceph-mgr.target >/dev/null 2>&1 || :
fi

%postun mgr-tuner
if [ $1 -eq 1 ] ; then
    /usr/bin/systemctl try-restart ceph-mgr.target >/dev/null 2>&1 || :
fi

"""

_DEBIAN_PACKAGE = """
Package: ceph-mgr-tuner
Architecture: all
Depends: ceph-mgr (= ${binary:Version}),
         ${misc:Depends},
         ${python3:Depends},
Description: tuner module for ceph-mgr
 Ceph is a massively scalable, open-source, distributed
 storage system that runs on commodity hardware and delivers object,
 block and file system storage.
 .
 This package contains the TUNER module for ceph-mgr's mClock objectives
"""

_RELEASE_NOTE = """* MGR: A new module, ``tuner``, tunes the OSDs' mClock scheduler to service-level
  objectives: it samples, tries settings in guarded trials, and takes them back.
  It is off until ``ceph mgr module enable tuner``.
"""

BEFORE: Dict[str, List[Tuple[str, str]]] = {
    f"{MODULES}/CMakeLists.txt": [("  volumes)\n", "  tuner\n")],
    f"{MODULES}/tox.ini": [
        ("           -m volumes", "           -m tuner \\\n"),
        ("    smb\ncommands", "    tuner \\\n"),
    ],
    "ceph.spec.in": [("%package mgr-rook\n", _RPM_PACKAGE), ("%files mgr-rook\n", _RPM_FILES)],
    "doc/mgr/index.rst": [("    Progress Module <progress>\n", "    Tuner module <tuner>\n")],
}
"""Of a file of Ceph: the text that is put before another one, which has to be there once."""


def lay_out(ceph: Path, output: Path) -> List[str]:
    """Write all of it; what of Ceph's files is not in that checkout."""
    shutil.copytree(NEW, output, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    for path, text in module_files().items():
        _write(output / MODULES / path, text)
    missing = []
    for name in [*BEFORE, "debian/control", "PendingReleaseNotes"]:
        if (ceph / name).is_file():
            _write(output / name, changed(name, (ceph / name).read_text(encoding="utf-8")))
        else:
            missing.append(name)
    return missing


def module_files() -> Dict[str, str]:
    """The module as one package: path below Ceph's modules -> text."""
    files = {}
    for path, text in sources().items():
        if path.startswith((f"{MODULE}/", f"{LIBRARY}/core/")):
            files[path.replace(f"{LIBRARY}/core/", f"{MODULE}/core/")] = renamed(text)
    files[f"{MODULE}/__init__.py"] = INIT
    files[f"{MODULE}/core/__init__.py"] += f'\n__version__ = "{ceph_tuner.__version__}"\n'
    return files


def renamed(text: str) -> str:
    """The source of a module under the names that it has in Ceph."""
    text = re.sub(r"\bceph_tuner\.core\b", "tuner.core", text)
    return closed_up(text.replace("from ceph_tuner import __version__", "from tuner.core import __version__"))


def closed_up(text: str) -> str:
    """Without blanks before the colons of slices, which Ceph's flake8 refuses (E203)."""
    lines, brackets = text.splitlines(keepends=True), []
    cuts = []
    for token in tokenize.generate_tokens(iter(lines).__next__):
        if token.type == tokenize.OP and token.string in "([{":
            brackets.append(token.string)
        elif token.type == tokenize.OP and token.string in ")]}":
            brackets.pop()
        elif token.type == tokenize.OP and token.string == ":" and brackets[-1:] == ["["]:
            cuts.append(token.start)
    for row, column in reversed(cuts):
        line = lines[row - 1]
        before = line[:column].rstrip(" ")
        # a colon that begins a line, or a slice without a start, has nothing before it to be cut from
        lines[row - 1] = before + line[column:] if before and before[-1] not in "[," else line
    return "".join(lines)


def changed(name: str, text: str) -> str:
    """A file of Ceph with our part in it. ValueError where its place cannot be told."""
    if name == "debian/control":
        return text.rstrip("\n") + "\n" + _DEBIAN_PACKAGE
    if name == "PendingReleaseNotes":
        return _RELEASE_NOTE + text
    for place, added in BEFORE[name]:
        if text.count(place) != 1:
            raise ValueError(f"{name}: expected {place!r} once, found {text.count(place)}")
        text = text.replace(place, added + place)
    return text


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def main() -> None:
    """Lay it out, and name what could not be changed."""
    ceph, output = map(Path, sys.argv[1:])
    shutil.rmtree(output, ignore_errors=True)
    for name in lay_out(ceph, output):
        print(f"note: not in {ceph}, so not changed: {name}", file=sys.stderr)
    print(output)


if __name__ == "__main__":
    main()
