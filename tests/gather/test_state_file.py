"""The file of a state is read as if anybody had written it."""

from __future__ import annotations

import io
import json
import os
import stat
import tarfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from ceph_tuner.core.errors import InputError, Malformed
from ceph_tuner.gather import recorder, state_file
from ceph_tuner.gather.replay import open_state
from ceph_tuner.gather.state import FAILED, REFUSED, Answer, ClusterState, Fault

FOLDER = "ceph-tuner-state/"
STATE = ClusterState(
    "rome",
    "20.2.4",
    1.75e9,
    (
        Answer(("", "versions", ()), 0, 1.75e9, '{"osd": {"ceph version 20.2.4 (x) tentacle (stable)": 3}}'),
        Answer(("osd.3", "config show", ()), 0, 1.75e9 + 1, '{"name": "osd.3", "ä": "\\u0000"}'),
        Answer(("", "osd df", ()), 0, 1.75e9 + 2, fault=Fault(REFUSED, -13, "access denied")),
        Answer(("", "log last", ("10000", "warn", "cluster")), 1, 1.75e9 + 3, fault=Fault(FAILED, -22, "")),
    ),
    osds=3,
    asked=(3,),
    notes=("one", "ä"),
)
TAR = zstandard.ZstdDecompressor().decompress(state_file.packed(STATE))


def squeezed(tar: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=3, write_checksum=True).compress(tar)


def edited(edit: Callable[[tarfile.TarFile, List[Tuple[tarfile.TarInfo, bytes]]], None]) -> bytes:
    """The archive of STATE, written anew by `edit`."""
    with tarfile.open(fileobj=io.BytesIO(TAR)) as archive:
        members = [(member, archive.extractfile(member).read()) for member in archive]  # type: ignore[union-attr]
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as archive:
        edit(archive, members)
    return squeezed(made.getvalue())


def with_member(name: str, content: bytes = b"{}", **attributes: Any) -> bytes:
    def edit(archive: tarfile.TarFile, members: List[Tuple[tarfile.TarInfo, bytes]]) -> None:
        for member, own in members:
            archive.addfile(member, io.BytesIO(own))
        more = tarfile.TarInfo(name)
        more.size = len(content)
        for key, value in attributes.items():
            setattr(more, key, value)
        archive.addfile(more, io.BytesIO(content))

    return edited(edit)


def with_manifest(change: Callable[[Dict[str, Any]], None]) -> bytes:
    def edit(archive: tarfile.TarFile, members: List[Tuple[tarfile.TarInfo, bytes]]) -> None:
        manifest = json.loads(members[0][1])
        change(manifest)
        content = json.dumps(manifest).encode()
        member = members[0][0]
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
        for each, own in members[1:]:
            archive.addfile(each, io.BytesIO(own))

    return edited(edit)


def long_name_header() -> bytes:
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 2
    return header.tobuf(tarfile.GNU_FORMAT) + b"a".ljust(512, b"\0")


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "state.tar.zst"
    size = state_file.write(path, STATE)
    assert size == path.stat().st_size
    made_by = state_file.read(path).made_by
    assert made_by.startswith("ceph-tuner ")
    assert state_file.read(path) == replace(STATE, place=str(path), made_by=made_by)


def test_it_is_for_its_owner_alone_and_replaced_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state.tar.zst"
    before = os.umask(0)
    try:
        state_file.write(path, STATE)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(InputError, match="--force"):
        state_file.write(path, STATE)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    content = path.read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left"):
        state_file.write(path, replace(STATE, cluster="milan"), force=True)
    assert (path.read_bytes(), os.listdir(tmp_path)) == (content, ["state.tar.zst"])


HOSTILE: Dict[str, Tuple[bytes, str]] = {
    "nothing": (b"", "no whole archive|no manifest"),
    "no zstd": (b"x" * 1000, "no whole archive"),
    "no tar": (squeezed(b"x" * 10_000), "no whole archive|no manifest"),
    "a path up": (with_member("../../etc/passwd"), "'../../etc/passwd'"),
    "a path up inside": (with_member(f"{FOLDER}../0001-a.json"), "members of the manifest alone"),
    "an absolute path": (with_member("/etc/passwd"), "'/etc/passwd'"),
    "another name": (with_member(f"{FOLDER}0009-a.sh"), "members of the manifest alone"),
    "a long name": (with_member(f"{FOLDER}0009-{'a' * 300}.json"), "no plain file|members of the manifest"),
    "a symbolic link": (
        with_member(f"{FOLDER}0009-a.json", b"", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
        "no plain file",
    ),
    "a hard link": (
        with_member(f"{FOLDER}0009-a.json", b"", type=tarfile.LNKTYPE, linkname=f"{FOLDER}manifest.json"),
        "no plain file",
    ),
    "a device": (with_member(f"{FOLDER}0009-a.json", b"", type=tarfile.BLKTYPE), "no plain file"),
    "a pipe": (with_member(f"{FOLDER}0009-a.json", b"", type=tarfile.FIFOTYPE), "no plain file"),
    "a directory": (with_member(f"{FOLDER}0009-a.json", b"", type=tarfile.DIRTYPE), "no plain file"),
    "a sparse file": (with_member(f"{FOLDER}0009-a.json", type=tarfile.GNUTYPE_SPARSE), "no plain file|no whole"),
    "headers of pax": (with_member(f"{FOLDER}0009-a.json", pax_headers={"comment": "x"}), "no plain file"),
    "numbers of a sparse map that are none": (
        with_member(
            f"{FOLDER}0009-a.json",
            pax_headers={"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.size": "x"},
        ),
        "no whole archive",
    ),
    "a sparse map of words": (
        with_member(f"{FOLDER}0009-a.json", pax_headers={"GNU.sparse.map": "a,b"}),
        "no whole archive",
    ),
    "headers of headers without an end": (squeezed(long_name_header() * 5000), "no whole archive"),
    "a member that nobody names": (with_member(f"{FOLDER}0009-a.json"), "1 members that its manifest does not name"),
    "a member twice": (with_member(f"{FOLDER}0001-versions-look0.json"), "two members"),
    "an archive inside": (with_member(f"{FOLDER}0009-a.tar.zst", squeezed(TAR)), "members of the manifest alone"),
    "another schema": (with_manifest(lambda found: found.update(schema=9)), "expected 1: gather it by this version"),
    "a manifest of another shape": (with_manifest(lambda found: found.update(answers=[1])), "another shape"),
    "a manifest without answers": (with_manifest(lambda found: found.pop("answers")), "another shape"),
    "no list of answers": (with_manifest(lambda found: found.update(answers={})), "does not name"),
    "a file that is not there": (
        with_manifest(lambda found: found["answers"][0].update(file="0007-x.json")),
        "no ceph-tuner-state/0007-x.json",
    ),
    "a fault of its own kind": (
        with_manifest(lambda found: found["answers"][2]["fault"].update(kind="odd")),
        "a fault of the kind 'odd'",
    ),
    "a time beyond all": (with_manifest(lambda found: found.update(at="x" * 500)), "another shape"),
    "a time that no calendar has": (with_manifest(lambda found: found.update(at=1e17)), "no calendar has"),
    "a time that is no number": (with_manifest(lambda found: found.update(at="nan")), "no calendar has"),
    "an answer at such a time": (with_manifest(lambda found: found["answers"][0].update(at=-1e300)), "no calendar has"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_refused_in_one_line_that_names_the_file(tmp_path: Path, name: str) -> None:
    content, said = HOSTILE[name]
    (tmp_path / "state.tar.zst").write_bytes(content)
    with pytest.raises(InputError, match=said) as refusal:
        state_file.read(tmp_path / "state.tar.zst")
    assert "state.tar.zst" in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 600
    assert os.listdir(tmp_path) == ["state.tar.zst"]


def test_a_bomb_ends_at_the_bound_and_not_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_file, "_ROOM", 4 << 20)
    bomb = with_member(f"{FOLDER}0009-a.json", bytes(8 << 20))
    assert len(bomb) < 10_000
    with pytest.raises(Malformed, match="more than 4 MiB when it is unpacked"):
        state_file.unpacked(bomb, "bomb")


def test_an_answer_of_more_values_than_can_be_held_is_refused() -> None:
    many = "[" + "0," * recorder.VALUES_MOST + "0]"
    swollen = replace(STATE, answers=(replace(STATE.answers[0], text=many),))
    content = state_file.packed(swollen)
    assert len(content) < 10_000
    with pytest.raises(Malformed, match="more values than can be held"):
        state_file.unpacked(content, "swollen")


def test_a_header_that_says_more_than_there_is_takes_no_more_than_there_is() -> None:
    # a name of pax may say that it has gigabytes
    tar = bytearray(TAR)
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 8 << 30
    tar[0:512] = header.tobuf(tarfile.GNU_FORMAT)[:512]
    with pytest.raises(Malformed, match="no whole archive"):
        state_file.unpacked(squeezed(bytes(tar)), "huge")


def test_a_file_that_needs_a_large_window_is_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=27, enable_ldm=True)
    content = zstandard.ZstdCompressor(compression_params=parameters).compressobj().compress(TAR * 900)
    with pytest.raises(Malformed, match="no whole archive"):
        state_file.unpacked(content, "wide")


def test_too_many_members_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_file, "MEMBERS_MOST", 2)
    with pytest.raises(Malformed, match="more than 2 members"):
        state_file.unpacked(state_file.packed(STATE), "many")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_one_that_is_cut_short_is_refused(share: float) -> None:
    content = state_file.packed(STATE)
    with pytest.raises(Malformed):
        state_file.unpacked(content[: int(len(content) * share)], "short")


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_changed_byte_is_refused_or_changes_nothing(data: st.DataObject) -> None:
    content = bytearray(state_file.packed(STATE))
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    try:
        found = state_file.unpacked(bytes(content), "changed")
    except InputError:
        return
    assert found.answers == STATE.answers


@given(st.binary(max_size=3000))
@settings(max_examples=60, deadline=None)
def test_any_tar_is_read_or_refused(junk: bytes) -> None:
    tar = bytearray(TAR)
    tar[: len(junk)] = junk
    with suppress(InputError):
        state_file.unpacked(squeezed(bytes(tar)), "junk")


@pytest.mark.parametrize("text", ['{"osd": 7}', "[]", "nonsense", '{"osd": {"x": 1}}'])
def test_answers_of_another_shape_are_the_files_fault(tmp_path: Path, text: str) -> None:
    broken = replace(STATE, version=text)
    state_file.write(tmp_path / "s", broken)
    with pytest.raises(InputError, match=r"release|version"):
        open_state(tmp_path / "s")
