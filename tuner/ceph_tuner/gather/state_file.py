"""The file of a state: a tar of JSON, packed by Zstandard. It is read as if anybody had written it.

    ceph-tuner-state/manifest.json     what follows, of which command and when
    ceph-tuner-state/0001-….json       an answer
    …

Nothing is ever unpacked into a directory. Bounded are the file, what it unpacks to, the memory of the unpacking, the
number of members, and their names: an archive that has anything else than the files its manifest names is refused.
"""

from __future__ import annotations

import io
import json
import re
import tarfile
from pathlib import Path
from typing import IO, Any, Dict, Iterator, List, Mapping, Set, Tuple, Union, cast

import zstandard

from ceph_tuner import __version__
from ceph_tuner.core.atomic_write import write_bytes
from ceph_tuner.core.bounded import DOCUMENT, MISREAD, read_file, read_json, values_in
from ceph_tuner.core.errors import InputError, Malformed
from ceph_tuner.core.moments import LAST_S
from ceph_tuner.gather.recorder import UNPACKED_MOST, VALUES_MOST
from ceph_tuner.gather.state import FAILED, LATE, REFUSED, Answer, ClusterState, Fault

SCHEMA = 1
PACKED_MOST = 64 << 20
"""Bytes of the file."""
MEMBERS_MOST = 20_000
_ROOM = UNPACKED_MOST + DOCUMENT + (MEMBERS_MOST + 20) * 1024
"""Bytes of the tar: answers, manifest, and a header and padding for each."""
_WINDOW = 8 << 20
"""Bytes that unpacking may look back to: memory."""
_LEVEL = 10
_FOLDER = "ceph-tuner-state/"
_MANIFEST = f"{_FOLDER}manifest.json"
_NAME = re.compile(rf"{_FOLDER}[0-9]{{4,6}}-[a-z0-9._-]{{1,80}}\.json\Z")
MAGIC = b"\x28\xb5\x2f\xfd"
"""What a file packed by Zstandard begins with."""
MODE = 0o600
EXPECTED = "a file of `ceph-tuner gather`"


def write(path: Union[str, Path], state: ClusterState, force: bool = False) -> int:
    """Write a state, whole or not at all, for its owner alone. Gives its size in bytes. Raises InputError."""
    content = packed(state)
    if len(content) > PACKED_MOST:
        raise InputError(str(path), f"a state of {len(content)} bytes", f"at most {PACKED_MOST}: fewer OSDs (`--osds`)")
    write_bytes(path, content, force, MODE)
    return len(content)


def packed(state: ClusterState) -> bytes:
    """The content of the file."""
    names = [f"{_FOLDER}{number:04d}-{_slug(answer)}.json" for number, answer in enumerate(state.answers, 1)]
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        _add(archive, _MANIFEST, json.dumps(_manifest(state, names), indent=1, ensure_ascii=False), state.at)
        for name, answer in zip(names, state.answers):
            if answer.fault is None:
                _add(archive, name, answer.text, answer.at)
    return zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compress(tar.getbuffer())


def read(path: Union[str, Path]) -> ClusterState:
    """Read a state. Raises InputError, which names the file and what is wrong with it."""
    return unpacked(read_file(path, EXPECTED, PACKED_MOST), str(path))


def unpacked(content: bytes, place: str) -> ClusterState:
    """The state of a file's content. Raises Malformed, InputError."""
    try:
        texts = dict(_members(content, place))
    except InputError:
        raise
    except (tarfile.TarError, zstandard.ZstdError, EOFError, RecursionError, *MISREAD) as fault:
        # tarfile takes headers at their word: numbers that are none, and headers of headers without an end
        raise Malformed(place, f"no whole archive ({str(fault)[:120]})", EXPECTED) from None
    if _MANIFEST not in texts:
        raise Malformed(place, "no manifest", EXPECTED)
    manifest = read_json(texts.pop(_MANIFEST), f"{place} manifest.json", DOCUMENT)
    try:
        return _state(manifest, texts, place)
    except InputError:
        raise
    except MISREAD as fault:
        raise Malformed(f"{place} manifest.json", f"another shape ({fault!r})"[:160], EXPECTED) from None


def _members(content: bytes, place: str) -> Iterator[Tuple[str, bytes]]:
    """Name and content of each member, in order."""
    decompressor = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
    with decompressor.stream_reader(content, read_across_frames=False) as stream:
        bounded_stream = _Bounded(stream, place)
        names: Set[str] = set()
        with tarfile.open(fileobj=cast("IO[bytes]", bounded_stream), mode="r|") as archive:
            for member in archive:
                if len(names) >= MEMBERS_MOST:
                    raise Malformed(place, f"more than {MEMBERS_MOST} members", EXPECTED)
                if not member.isreg() or member.issparse() or member.pax_headers:
                    raise Malformed(place, f"the member {member.name[:80]!r}, which is no plain file", EXPECTED)
                if member.name != _MANIFEST and not _NAME.match(member.name):
                    raise Malformed(place, f"the member {member.name[:80]!r}", "members of the manifest alone")
                if member.name in names:
                    raise Malformed(place, f"two members {member.name[:80]!r}", "one of each")
                names.add(member.name)
                yield member.name, cast("IO[bytes]", archive.extractfile(member)).read()


class _Bounded:
    """A stream that ends with an error where it would give more than a state has: a few bytes unpack to anything."""

    def __init__(self, stream: Any, place: str) -> None:
        self._stream, self._place, self._left = stream, place, _ROOM

    def read(self, size: int = -1) -> bytes:
        """At most so many bytes."""
        part = bytes(self._stream.read(min(size if size >= 0 else self._left + 1, self._left + 1)))
        self._left -= len(part)
        if self._left < 0:
            raise Malformed(self._place, f"more than {_ROOM >> 20} MiB when it is unpacked", EXPECTED)
        return part


def _manifest(state: ClusterState, names: List[str]) -> Dict[str, Any]:
    return {
        "schema": SCHEMA,
        "made_by": f"ceph-tuner {__version__}",
        "cluster": state.cluster,
        "version": state.version,
        "at": state.at,
        "osds": state.osds,
        "asked": list(state.asked),
        "notes": list(state.notes),
        "answers": [
            {
                "file": None if answer.fault is not None else name[len(_FOLDER) :],
                "daemon": answer.key[0],
                "command": answer.command,
                "arguments": list(answer.key[2]),
                "look": answer.look,
                "at": answer.at,
                **({} if answer.fault is None else {"fault": answer.fault.__dict__}),
            }
            for name, answer in zip(names, state.answers)
        ],
    }


def _state(manifest: Mapping[str, Any], texts: Mapping[str, bytes], place: str) -> ClusterState:
    if manifest["schema"] != SCHEMA:
        raise InputError(f"{place} schema", repr(manifest["schema"])[:40], f"{SCHEMA}: gather it by this version")
    rows = manifest["answers"]
    file_names = [f"{_FOLDER}{row['file']}" for row in rows if row["file"] is not None]
    absent_names = sorted(set(file_names) - set(texts))
    if absent_names or len(set(file_names)) != len(file_names):
        raise Malformed(
            place, f"no {absent_names[0][:80]}" if absent_names else "a member named twice", "a whole archive"
        )
    if len(texts) != len(file_names):
        raise Malformed(place, f"{len(texts) - len(file_names)} members that its manifest does not name", EXPECTED)
    return ClusterState(
        cluster=_text(manifest["cluster"]),
        version=_text(manifest["version"]),
        at=_moment(manifest["at"]),
        answers=tuple(_answer(row, texts, place) for row in rows),
        made_by=_text(manifest["made_by"]),
        osds=int(manifest["osds"]),
        asked=tuple(int(osd) for osd in manifest["asked"]),
        notes=tuple(_text(note) for note in manifest["notes"]),
        place=place,
    )


def _answer(row: Mapping[str, Any], texts: Mapping[str, bytes], place: str) -> Answer:
    key = (_text(row["daemon"]), _text(row["command"]), tuple(_text(each) for each in row["arguments"]))
    look, at = int(row["look"]), _moment(row["at"])
    if row["file"] is None:
        fault = row["fault"]
        if fault["kind"] not in (REFUSED, LATE, FAILED):
            raise Malformed(place, f"a fault of the kind {str(fault['kind'])[:40]!r}", f"{REFUSED}, {LATE} or {FAILED}")
        return Answer(key, look, at, fault=Fault(fault["kind"], int(fault["code"]), _text(fault["words"])))
    try:
        text = texts[f"{_FOLDER}{row['file']}"].decode()
    except UnicodeDecodeError:
        raise Malformed(f"{place} {row['file']}"[:200], "bytes that are no text", "text in UTF-8") from None
    if values_in(text) > VALUES_MOST:
        raise Malformed(f"{place} {row['file']}"[:200], "more values than can be held", f"at most {VALUES_MOST}")
    return Answer(key, look, at, text)


def _moment(value: Any) -> float:
    at = float(value)
    if not 0 <= at <= LAST_S:
        raise ValueError(f"{str(value)[:40]} s after 1970, a moment that no calendar has")
    return at


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{str(value)[:40]!r} in place of a text")
    return value


def _slug(answer: Answer) -> str:
    words = "-".join([*(each for each in (answer.key[0],) if each), answer.command, f"look{answer.look}"])
    return re.sub(r"[^a-z0-9._-]+", "-", words.lower())[:80]


def _add(archive: tarfile.TarFile, name: str, text: str, at: float) -> None:
    content = text.encode()
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = len(content), MODE, max(0, int(at))
    archive.addfile(member, io.BytesIO(content))
