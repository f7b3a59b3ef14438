"""Reads what anybody may have written: files and JSON of bounded size, depth and numbers.

One reader for files, the cluster's store, answers of processes and of servers. It raises `Malformed`, and nothing else,
for whatever is too large, too deep, no text, no JSON, or holds numbers that nothing here can reckon with.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
from typing import Any, BinaryIO, List, Union

from ceph_tuner.core.errors import InputError, Malformed, PermissionRefused

VALUE = 256 << 10
"""Bytes of a value of the store: the monitors take 64 KiB."""
DOCUMENT = 16 << 20
"""Bytes of a file, or of a server's answer."""
ANSWER = 320 << 20
"""Bytes of what Ceph's own daemons answer: some MiB for a thousand OSDs, and 4 to 5 KiB for each PG that `pg ls` lists.
A pool has 65 536 of them at most (`mon_max_pool_pg_num`)."""

MAX_DEPTH = 64
ITEMS_PER_MIB = 1 << 17
"""Values in a document, for each MiB that it may have: eight bytes of text for each, which take some hundred here."""
SERVER_ITEMS_PER_MIB = 1 << 16
"""Of what servers answer, of whom many are asked at once."""
MISREAD = (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError)
"""What taking a document apart raises that is another one than was expected: whose it is says what then."""
_DIGITS = 20
"""Of a whole number: 64 bits."""

_ALIKE = bytes.maketrans(b"123456789E", b"000000000e")
_RARE = (b"0" * 21, b"e000", b"e+000")
"""Where one of these stands, digits all alike, numbers are read one by one: the decoder's own are ten times as quick.
Found by these means in a fortieth of what a regular expression takes."""
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def read_json(
    text: Union[str, bytes], place: str, most: int = VALUE, constants: bool = False, items: int = ITEMS_PER_MIB
) -> Any:
    """Read JSON of at most `most` bytes, with so many `items` in a MiB. Raises Malformed, which names the place.

    `constants`: what Python writes for NaN and infinities is taken, for readers that know what to do with them.
    """
    content = _encoded(text, place)
    if len(content) > most:
        raise Malformed(place, f"more than {_size(most)}", "at most that")
    plain = decoded(content, place)
    opened = plain.count("[") + plain.count("{")
    if values_in(plain) > max(items, most // (1 << 20) * items):
        raise Malformed(place, "more values than can be held", "a smaller document")
    alike = content.translate(_ALIKE)
    whole, real = (_whole, _finite) if any(rare in alike for rare in _RARE) else (None, None)
    try:
        data = json.loads(plain, parse_constant=float if constants else _refused, parse_int=whole, parse_float=real)
        if opened > MAX_DEPTH:
            _check_depth(data)
        if _SURROGATE.search(plain):
            # half a character, which nothing can print or store
            json.dumps(data, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        fault = f"{error.msg} at line {error.lineno}" if plain.strip() else "nothing"
        raise Malformed(place, fault, "JSON") from None
    except RecursionError:
        raise Malformed(place, f"more than {MAX_DEPTH} levels", "less nesting") from None
    except UnicodeEncodeError:
        raise Malformed(place, "half a character (a lone surrogate)", "text in UTF-8") from None
    except ValueError as error:
        raise Malformed(place, str(error)[:100], "finite numbers of at most 64 bits") from None
    return data


def values_in(text: str) -> int:
    """At most so many values are in JSON of that text: what it takes once it is read."""
    return text.count("[") + text.count("{") + text.count(",")


def read_file(path: Union[str, os.PathLike[str]], expected: str, most: int = DOCUMENT) -> bytes:
    """Read a regular file of at most `most` bytes. Raises InputError: none, unreadable, a pipe, a device, too big."""
    with open_file(path, expected) as stream:
        try:
            content = stream.read(most + 1)
        except OSError as error:
            raise InputError(os.fspath(path), error.strerror or str(error), expected) from None
    if len(content) > most:
        raise Malformed(os.fspath(path), f"more than {_size(most)}", "at most that")
    return content


def open_file(path: Union[str, os.PathLike[str]], expected: str) -> BinaryIO:
    """Open a regular file for reading. Raises InputError: none, unreadable, a directory, a pipe, a device."""
    name = os.fspath(path)
    try:
        # O_NONBLOCK: opening a pipe that nobody writes to must not wait for ever
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise InputError(name, "no such file", expected) from None
    except PermissionError:
        raise PermissionRefused(name, "no permission to read it", "a readable file") from None
    except (OSError, ValueError) as error:
        raise InputError(name, getattr(error, "strerror", None) or str(error), expected) from None
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        kind = "a directory" if stat.S_ISDIR(mode) else "something that is no regular file"
        raise InputError(name, kind, expected)
    return os.fdopen(descriptor, "rb")


def decoded(content: bytes, place: str) -> str:
    """Text of UTF-8, with or without a mark at its beginning. Raises Malformed, which names the line."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Malformed(f"{place}:{line}", f"the byte 0x{content[error.start]:02x}", "text in UTF-8") from None


def _encoded(text: Union[str, bytes], place: str) -> bytes:
    if isinstance(text, bytes):
        return text
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise Malformed(place, "half a character (a lone surrogate)", "text in UTF-8") from None


def _check_depth(data: Any) -> None:
    level: List[Any] = [data]
    for _ in range(MAX_DEPTH):
        level = [
            below
            for above in level
            for below in (above.values() if isinstance(above, dict) else above)
            if isinstance(below, (dict, list))
        ]
        if not level:
            return
    raise RecursionError


def _whole(text: str) -> int:
    if len(text.lstrip("-")) > _DIGITS:
        raise ValueError(f"a number of {len(text)} digits")
    return int(text)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:40]}")
    return value


def _refused(text: str) -> float:
    raise ValueError(f"the number {text}")


def _size(count: int) -> str:
    return f"{count >> 20} MiB" if count >= 1 << 20 else f"{count >> 10} KiB"
