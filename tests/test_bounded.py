"""What anybody may have written: read within bounds, or refused as the error tree's own."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, List, Tuple, Union

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.bounded import DOCUMENT, MAX_DEPTH, VALUE, decoded, read_file, read_json
from ceph_tuner.core.errors import InputError, Malformed

ROOT = Path(__file__).resolve().parent.parent

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    # no half characters
    | st.text(st.characters(exclude_categories=("Cs",))),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text("abc"), inner, max_size=5),
    max_leaves=30,
)


@given(PLAIN)
def test_what_json_writes_is_read(document: Any) -> None:
    assert read_json(json.dumps(document), "x") == document
    assert read_json(json.dumps(document, ensure_ascii=False).encode(), "x") == document


@given(st.text() | st.binary() | st.text('[]{}",:0123456789eE+-.\\ud8'))
def test_whatever_is_read_it_is_read_or_malformed(text: Union[str, bytes]) -> None:
    with contextlib.suppress(Malformed):
        json.dumps(read_json(text, "x"), allow_nan=False).encode()


HOSTILE: List[Tuple[str, Union[str, bytes]]] = [
    ("deep lists", "[" * 100_000),
    ("deep lists that end", "[" * 900 + "]" * 900),
    ("just too deep", "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1)),
    ("deep mappings", '{"a":' * 50_000),
    ("many digits", '{"a": ' + "9" * 400 + "}"),
    ("more digits than Python reads", "9" * 5000),
    ("21 digits", "-" + "1" * 21),
    ("a number beyond all floats", "1e999"),
    ("not a number", '{"a": NaN}'),
    ("infinity", "[-Infinity]"),
    ("half a character, escaped", '["\\ud800"]'),
    ("half a character as a key", '{"\\udfff": 1}'),
    ("half a character", '["\ud800"]'),
    ("no UTF-8", b'["\xff"]'),
    ("nothing", ""),
    ("blanks", "  \n"),
    ("too long", '"' + "x" * VALUE + '"'),
    ("too many", "[" + "0," * (VALUE // 2 - 1) + "0]"),
    ("two documents", "{}{}"),
]


@pytest.mark.parametrize("text", [text for _, text in HOSTILE], ids=[name for name, _ in HOSTILE])
def test_what_is_hostile_is_malformed_at_once(text: Union[str, bytes]) -> None:
    began = time.process_time()
    with pytest.raises(Malformed, match=r"^place(:1)?: found .*, expected "):
        read_json(text, "place")
    assert time.process_time() - began < 1.0


def test_a_depth_and_numbers_within_bounds_are_read() -> None:
    deep = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert read_json(deep, "x") == json.loads(deep)
    wide = "[" + ",".join(["[[[1]]]"] * 1000) + "]"
    assert len(read_json(wide, "x")) == 1000
    assert read_json("[18446744073709551615, 1e308, 1E-999, 0.1234567890123456789012345]", "x")[0] == 2**64 - 1
    assert read_json('["123456789012345678901234567890"]', "x") == ["123456789012345678901234567890"]
    assert read_json('["\\ud83d\\ude00"]', "x") == ["\U0001f600"]


WORST = """
import sys
sys.path[:0] = {path!r}
from ceph_tuner.core.bounded import DOCUMENT, read_json
from ceph_tuner.core.errors import Malformed
for unit in ("[],", '{{"a":1}},', "{{}},", '"",', "0,", "[[[]]],", '{{"":{{"":0}}}},', "1.5,"):
    text = "[" + unit * ((DOCUMENT - 16) // len(unit)) + "0]"
    try:
        read_json(text, "x", DOCUMENT)
    except Malformed:
        pass
# its own: what getrusage says begins with the memory of who started it
status = open("/proc/self/status").read()
print(int(status.split("VmHWM:")[1].split()[0]) // 1024)
"""


def test_the_worst_document_takes_less_than_512_mib() -> None:
    program = WORST.format(path=[str(ROOT / "tuner")])
    done = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True, timeout=300
    )
    assert int(done.stdout) < 512


def test_only_regular_files_of_bounded_size_are_read(tmp_path: Path) -> None:
    pipe, large, good = tmp_path / "pipe", tmp_path / "large", tmp_path / "good"
    os.mkfifo(pipe)
    with large.open("wb") as stream:
        stream.truncate(DOCUMENT + 1)
    good.write_bytes(b"\xef\xbb\xbfabc")
    assert decoded(read_file(good, "a file"), "x") == "abc"
    for path, words in [
        (pipe, "no regular file"),
        (Path("/dev/zero"), "no regular file"),
        (large, "more than 16 MiB"),
        (tmp_path, "a directory"),
        (tmp_path / "none", "no such file"),
        (tmp_path / ("x" * 300), "too long"),
        (Path("/a\0b"), "null"),
    ]:
        with pytest.raises(InputError, match=words):
            read_file(path, "a file")


# a child that reads what its own parent writes; the lab's, of its own programs; the twin's, of what it wrote itself
OWN_TEXT = {"core/bounded.py", "cluster/session_child.py"}


def test_nothing_else_reads_json_or_whole_files() -> None:
    found = set()
    for part in ("tuner", "cli", "mgr_module"):
        for path in sorted((ROOT / part).rglob("*.py")):
            if f"{path.parent.name}/{path.name}" in OWN_TEXT or "ceph_lab" in path.parts:
                continue
            text = path.read_text(encoding="utf-8")
            # to take each file apart would take longer than all else here
            for node in ast.walk(ast.parse(text)) if re.search(r"json\s*\.\s*load", text) else ():
                if isinstance(node, ast.Call) and ast.unparse(node.func) in ("json.loads", "json.load"):
                    found.add(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert found == set()
