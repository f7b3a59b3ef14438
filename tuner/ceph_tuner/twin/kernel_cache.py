"""Where the kernel's machine code is kept: a folder for each state of its sources.

Every process names its folder by a digest of all of them, of this machine's processor and of numba's version. Files are
replaced in one step, so processes may write at once. Folders that nobody used for a week go.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
import time
from pathlib import Path
from typing import Iterable, Iterator, Optional

FOLDER = "ceph-tuner-kernel"
UNUSED_S = 7 * 86400.0


def digest_of(sources: Iterable[Path], made_for: str = "") -> str:
    """Digest of files, by their names and what is in them, and of what else their machine code depends on."""
    digest = hashlib.sha256(f"{made_for}\n".encode())
    for path in sorted(sources):
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:24]


def folder_for(digest: str, beside: Path) -> Optional[Path]:
    """A folder of that digest that can be written; None where there is none.

    In order: in NUMBA_CACHE_DIR where that is set; in `__pycache__` beside the sources; in the user's cache directory.
    """
    for root in _roots(beside):
        folder = root / FOLDER / digest
        try:
            for part in (folder.parent, folder):
                part.mkdir(0o755, parents=True, exist_ok=True)
                _check_own(part)
            # root may write where nothing can be written, and a directory may be full
            with tempfile.TemporaryFile(dir=folder):
                pass
            os.utime(folder)
        except OSError:
            continue
        _remove_unused(folder)
        return folder
    return None


def _check_own(folder: Path) -> None:
    """Raise OSError where somebody else may write there, or has planted a link: what is kept there is run."""
    about = folder.lstat()
    if not stat.S_ISDIR(about.st_mode) or about.st_uid not in (0, os.geteuid()) or about.st_mode & stat.S_IWOTH:
        raise PermissionError(f"{folder} is another user's")


def _roots(beside: Path) -> Iterator[Path]:
    if os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(os.environ["NUMBA_CACHE_DIR"])
        return
    yield beside / "__pycache__"
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if os.path.isabs(home):
        yield Path(home)


def _remove_unused(folder: Path) -> None:
    """Remove the other folders beside this one that nobody used for a week: a process that did marks its own."""
    for other in folder.parent.iterdir():
        try:
            unused = other != folder and time.time() - other.stat().st_mtime > UNUSED_S
        except OSError:
            # another process was quicker
            continue
        if unused:
            shutil.rmtree(other, ignore_errors=True)
