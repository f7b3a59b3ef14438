"""The files of the ceph-mgr plugin: which they are, which build they make, and how they come into a module path.

Needs the standard library alone: Debian's and RPM's packages are laid out by the system's own Python.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import Dict, Optional, Set

import ceph_tuner
from ceph_tuner.core.errors import InputError, PermissionRefused
from ceph_tuner.shipped import shipped

MODULE = "tuner"
LIBRARY = "ceph_tuner"
BUILD_FILE = "build.txt"
PACKAGE_FILE = "package.txt"
"""In the module's directory where it belongs to a package: the name of that."""

_ROOT_OF_LIBRARY = Path(ceph_tuner.__file__).resolve().parent
_PARTS = ("core", "search", "optimise")
"""What of the library is installed beside the plugin: it runs the first, and the optimiser's worker the others, in a
Python of its own."""


def sources() -> Dict[str, str]:
    """The files to install: path below the module path -> text. Raises InputError where this program has no plugin."""
    plugin = shipped(f"mgr_module/{MODULE}", f"mgr/{MODULE}", "module.py")
    paths = {f"{MODULE}/{path.name}": path for path in sorted(plugin.glob("*.py"))}
    library = [
        _ROOT_OF_LIBRARY / "__init__.py",
        *(path for part in _PARTS for path in (_ROOT_OF_LIBRARY / part).rglob("*.py")),
    ]
    paths.update({f"{LIBRARY}/{path.relative_to(_ROOT_OF_LIBRARY)}": path for path in sorted(library)})
    return {inside: path.read_text(encoding="utf-8") for inside, path in paths.items()}


def build_of(files: Dict[str, str]) -> str:
    """Version and a hash of the files, to tell what runs from what is installed."""
    digest = hashlib.sha256()
    for inside, text in sorted(files.items()):
        digest.update(f"{inside}\0{text}\0".encode())
    return f"{ceph_tuner.__version__}+{digest.hexdigest()[:12]}"


def package_of(modules: Path) -> Optional[str]:
    """Name of the package that the files in a module path belong to; None for copied ones."""
    marker = modules / MODULE / PACKAGE_FILE
    return marker.read_text(encoding="utf-8").strip() if marker.is_file() else None


def put_in_place(modules: Path, files: Dict[str, str]) -> None:
    """Put the files into a mgr's module path, so that nothing of another version stays.

    Raises PermissionRefused, InputError.

    Directories that are there stay the same ones: a container into which one is mounted goes on seeing it when it
    is removed, and never the one that takes its name. All is written beside them before the first file is replaced;
    `module.py`, by which a mgr knows a module, comes after what it imports, and the build last of all.
    """
    for directory in (modules / LIBRARY, modules / MODULE):
        if directory.is_symlink():
            raise InputError(str(directory), "a symbolic link", "a directory, or nothing")
    fresh, build = modules / f".{MODULE}.new", f"{MODULE}/{BUILD_FILE}"
    in_order = sorted(files, key=lambda inside: (inside.startswith(f"{MODULE}/"), inside == f"{MODULE}/module.py"))
    try:
        shutil.rmtree(fresh, ignore_errors=True)
        for inside, text in {**files, build: build_of(files) + "\n"}.items():
            (fresh / inside).parent.mkdir(parents=True, exist_ok=True)
            (fresh / inside).write_text(text, encoding="utf-8")
            (fresh / inside).chmod(0o644)
        (modules / build).unlink(missing_ok=True)
        for directory in sorted({(modules / inside).parent for inside in files}):
            directory.mkdir(parents=True, exist_ok=True)
            directory.chmod(0o755)
        for inside in in_order:
            os.replace(fresh / inside, modules / inside)
        for name in (LIBRARY, MODULE):
            _prune(modules / name, {modules / inside for inside in files})
        os.replace(fresh / build, modules / build)
    except PermissionError as exc:
        raise PermissionRefused(str(modules), f"{exc.strerror}", "root, or --path of a directory to write") from exc
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _prune(directory: Path, files: Set[Path]) -> None:
    """Remove every other file below it, and the directories that this empties."""
    for path in sorted(directory.rglob("*"), reverse=True):  # what is inside of a directory before it
        if path.is_symlink() or not path.is_dir():
            if path not in files:
                path.unlink(missing_ok=True)
        elif not any(path.iterdir()):
            path.rmdir()
