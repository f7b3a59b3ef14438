from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.errors import InputError, PermissionRefused, TunerError
from ceph_tuner.files import schema, yaml_document
from privileges import not_root

TEXT = """\
# a comment
name: x
settings:
  osd_max_scrubs: 3
  # another
  list:
    - a
    - b: 1
"""


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        ((), "f.yaml:2"),
        (("name",), "f.yaml:2 name"),
        (("settings", "osd_max_scrubs"), "f.yaml:4 settings.osd_max_scrubs"),
        (("settings", "list", 1, "b"), "f.yaml:8 settings.list.1.b"),
        (("settings", "missing"), "f.yaml:3 settings.missing"),
        (("settings", "list", 9), "f.yaml:6 settings.list.9"),
    ],
)
def test_a_key_is_placed_by_its_line(keys: tuple[object, ...], place: str) -> None:
    assert yaml_document.parse(TEXT, "f.yaml").place(*keys) == place


def test_data_is_plain() -> None:
    data = yaml_document.parse(TEXT, "f.yaml").data
    assert data == {"name": "x", "settings": {"osd_max_scrubs": 3, "list": ["a", {"b": 1}]}}
    assert type(data) is dict
    assert type(data["settings"]["osd_max_scrubs"]) is int


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", r"^f\.yaml:3: found a key twice \(a\), expected each key once$"),
        ("a: {b\n", r"^f\.yaml:2: found .* expected YAML"),
        ("a: 1\n\tb: 2\n", r"^f\.yaml:2: found"),
        ("a: &x 1\nb: *x\n", r"^f\.yaml:2: found an alias, expected the values written out$"),
        ("a: &x [*x]\n", r"^f\.yaml:1: found an alias"),
        ("a: !!python/object/apply:os.system [id]\n", r"^f\.yaml:1: found could not determine a constructor"),
        ("a: 1\n---\nb: 2\n", r"^f\.yaml:2: found .*another document"),
        ("a: 2020-01-01\n", r"^f\.yaml:1 a: found a value of type date, expected text \(in quotes\)"),
        ("5: 1\n", r"^f\.yaml:1 5: found the key 5, expected a key of text$"),
        ("a: 0x" + "f" * 40, r"^f\.yaml:1 a: found a number of 160 bits"),
        ("a: 0x" + "f" * 5000, r"^f\.yaml:1: found a number of 5002 characters"),
        ("a: " + "1" * 5000, r"^f\.yaml:1: found a number of 5000 characters"),
        ("%YAML 1.1\n---\na: 1:30", r"^f\.yaml:2: found a directive"),
        ("%TAG ! tag:x\n---\na: 1", r"^f\.yaml:2: found a directive"),
        ("a: .inf", r"^f\.yaml:1 a: found the number inf, expected a finite number"),
        ("a: .nan", r"^f\.yaml:1 a: found the number nan"),
        ('a: ["\\ud800"]', r"^f\.yaml:1 a\.0: found half a character"),
        ('"\\udc00": 1', r"^f\.yaml:1: found half a character"),
        ("[" * 200 + "]" * 200, "more than 40 levels"),
        ("[ " * 20_000 + "]" * 20_000, "more than 40 levels"),
        ("a: \x00", "unacceptable character"),
        ("? [1, {a: 2}]\n: x\n", "a mapping or a list for a key"),
        ("[[[1]: 2]: 3]", "a mapping or a list for a key"),
    ],
)
def test_a_fault_is_one_line_with_its_place(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as refusal:
        yaml_document.parse(text, "f.yaml")
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "text",
    [
        "key: hunter2\nkey: hunter2\n",
        "key: x\nkey: hunter2\n",
        "key: hunter2\nkey: x\n",
        "key: {a: hunter2}\nkey: [hunter2]\n",
        'key: "a\\nhunter2"\nkey: \'" with value "hunter2\'\n',
        "? |\n  key\n  more\n: hunter2\n? |\n  key\n  more\n: x\n",
        f"{'key' * 100}: hunter2\n{'key' * 100}: x\n",
        f"{'k' * 178}: hunter2\n{'k' * 178}: x\n",
        "{key, key, hunter2: x}",
        "key: *hunter2\n",
        "key: !hunter2\n",
        "key: !hunter2's x\n",
        "key: !hunter2!x\n",
        "key: !!binary aHVudGVyMg==\n",
    ],
)
def test_a_fault_shows_no_value_as_it_may_be_a_password(text: str) -> None:
    with pytest.raises(InputError) as refusal:
        yaml_document.parse(text, "f.yaml")
    assert "hunter2" not in str(refusal.value)


@given(st.text(alphabet=st.sampled_from("ab:- \n[]{}&*!|>'\"#%@`,?1.\t"), max_size=40))
def test_no_text_ends_in_anything_but_data_or_an_input_error(text: str) -> None:
    try:
        yaml_document.parse(text, "f.yaml")
    except InputError as refusal:
        assert refusal.place.startswith("f.yaml")  # noqa: PT017 - most texts are refused, some are not


def test_an_empty_file_is_nothing(tmp_path: Path) -> None:
    path = tmp_path / "empty.yaml"
    path.write_text("# only a comment\n")
    assert yaml_document.load(path).data is None
    assert yaml_document.load(path).place() == f"{path}:1"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone\.yaml: found no such file"):
        yaml_document.load(tmp_path / "gone.yaml")


def test_wrong_encoding_names_line_and_byte(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes("a: 1\nb: Köln\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"latin\.yaml:2: found the byte 0xf6, expected text in UTF-8"):
        yaml_document.load(path)


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "bom.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert yaml_document.load(path).data == {"a": 1}


def test_a_file_beyond_1_mib_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "big.yaml"
    path.write_text("a: " + "x" * 2**20)
    with pytest.raises(InputError, match="more than 1 MiB"):
        yaml_document.load(path)


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (tmp_path, pipe, Path("/dev/zero")):
        with pytest.raises(InputError, match=r"no regular file|a directory"):
            yaml_document.load(path)
    with pytest.raises(InputError):
        yaml_document.load("a\0b")
    with pytest.raises(InputError):
        yaml_document.load("")


def test_an_unreadable_file_is_refused(open_folder: Path) -> None:
    path = open_folder / "secret.yaml"
    path.write_text("a: 1")
    path.chmod(0)
    with not_root(), pytest.raises(PermissionRefused):
        yaml_document.load(path)


def test_every_refusal_ends_with_exit_code_2() -> None:
    with pytest.raises(TunerError) as refusal:
        yaml_document.load("/nowhere")
    assert refusal.value.exit_code == 2


@pytest.mark.parametrize("beginning", ["%YAML 1.1\n---\n1:", "", "0x", "-"])
def test_a_megabyte_of_digits_is_no_number(beginning: str) -> None:
    began = time.process_time()
    with pytest.raises(InputError, match=r"a directive|a number of"):
        yaml_document.parse(beginning + "1:" * 200_000 if "%" in beginning else beginning + "1" * 1_000_000, "x.yaml")
    assert time.process_time() - began < 5


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["[],", "{},", "- a\n", "a,", "? "])
def test_a_megabyte_of_small_values_is_refused_within_seconds(unit: str) -> None:
    text = unit * ((yaml_document.MAX_BYTES - 2) // len(unit))
    began = time.process_time()
    with pytest.raises(InputError):
        yaml_document.parse(f"[{text}]" if "," in unit else text, "x.yaml")
    assert time.process_time() - began < 8


@pytest.mark.slow
def test_thousands_of_faults_are_found_out_in_linear_time() -> None:
    wrong = "".join(f"  k{number}: 1\n" for number in range(10_000))
    document = yaml_document.parse(f"schema: x\nname: 1\nrelease: 1\nsettings: []\nhardware:\n{wrong}", "x.yaml")
    began = time.process_time()
    with pytest.raises(InputError, match=r"x\.yaml:1 schema"):
        schema.check(document, schema.PROFILE)
    many = yaml_document.parse("slos: [" + "1," * 20_000 + "]", "x.yaml")
    with pytest.raises(InputError, match=r"slos\.0"):
        schema.check(many, {**schema.PROFILE, "required": []})
    assert time.process_time() - began < 3
