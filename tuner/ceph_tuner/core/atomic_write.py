"""Writes a file whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path
from typing import Union

from ceph_tuner.core.errors import InputError, PermissionRefused

MODE = 0o644


def write_text(path: Union[str, Path], text: str, force: bool = False) -> None:
    """Write a file of text for everybody, as `write_bytes` does."""
    write_bytes(path, text.encode(), force)


def write_bytes(path: Union[str, Path], content: bytes, force: bool = False, mode: int = MODE) -> None:
    """Write a file so that a reader sees the old one or the whole new one, also after a crash.

    Raises InputError where there is a file already and `force` is not given, or where it cannot be written.
    """
    target = Path(path)
    way_out = "another name, or --force to replace it"
    try:
        if target.is_dir():
            raise InputError(str(target), "a directory", "the name of a file")
        # a link would be replaced by a file: write what it points to
        _check_planted(target.absolute())
        final = Path(os.path.realpath(target)) if target.is_symlink() else target
        if final.exists() and not force:
            raise InputError(str(target), "a file of that name", way_out)
        descriptor, temporary = tempfile.mkstemp(prefix=f".{final.name[:100]}.", dir=final.parent)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fchmod(stream.fileno(), mode)
                os.fsync(stream.fileno())
            _put(Path(temporary), final, force)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
        _sync(final.parent)
    except FileExistsError:
        raise InputError(str(target), "a file of that name", way_out) from None
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(str(target), f"no directory {target.parent}", "a directory that exists") from None
    except PermissionError:
        raise PermissionRefused(str(target), "no permission to write there", "a directory to write to") from None
    except OSError as error:
        raise InputError(str(target), error.strerror or str(error), "a place to write to") from None


def check_free(path: Union[str, Path], force: bool = False) -> None:
    """Say before long work, not after it, that a file cannot be written. Raises InputError."""
    target = Path(path)
    if target.exists() and not force:
        raise InputError(str(target), "a file of that name", "another name, or --force to replace it")
    parent = target.absolute().parent
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise InputError(str(target), f"no directory {parent} that can be written to", "another place")


def _check_planted(target: Path) -> None:
    """Raise InputError where a symbolic link on the way is one that another user planted in a shared directory."""
    for part in (target, *target.parents):
        if not part.is_symlink():
            continue
        link, directory = part.lstat(), part.parent.stat()
        is_shared = directory.st_mode & (stat.S_IWGRP | stat.S_IWOTH) or directory.st_uid not in (0, os.geteuid())
        if is_shared and link.st_uid not in (0, os.geteuid()):
            raise InputError(str(part), "a symbolic link of another user", "another name")


def _put(temporary: Path, final: Path, force: bool) -> None:
    if force:
        os.replace(temporary, final)
        return
    try:
        # unlike a rename, a link fails where somebody else has made the file meanwhile
        os.link(temporary, final)
    except FileExistsError:
        raise
    except OSError:
        # a file system without hard links
        if final.exists():
            raise FileExistsError(str(final)) from None
        os.replace(temporary, final)


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
