"""What others wrote, where it leaves: for the terminal, logs, the cluster's health, Prometheus and pages."""

from __future__ import annotations

import io
import json
import logging
from typing import List

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text
from ruamel.yaml import YAML

from ceph_tuner.core.printable import PrintableLog, escaped, one_line, printable, printable_document
from ceph_tuner_cli import main, render
from ceph_tuner_cli.tables import columns

HOSTILE = [
    "\x1b[2J\x1b]0;owned\x07",
    "\x9b31m",
    "line\nerror: forged",
    "line\r\x1b[1Aerased",
    "\u202etxt.exe",
    "\u2028next",
    "\x00\x7f\b\v\f",
    "\ud800",
    "\ufeff\u200b\u2066",
]


def assert_shown(text: str) -> None:
    assert all(one.isprintable() or one in "\n\u00a0\u2003\u3000" for one in text), repr(text)
    text.encode()


@given(st.text(st.characters(exclude_categories=[])))
def test_nothing_is_left_that_a_terminal_obeys_or_that_ends_a_line(text: str) -> None:
    for shown in (printable(text), one_line(text)):
        assert "\n" not in shown
        assert not any(0 <= ord(one) < 32 or 127 <= ord(one) < 160 for one in shown)
        shown.encode()
    assert len(printable(text)) == len(text)
    assert printable(printable(text)) == printable(text)


@given(st.text(st.characters(exclude_categories=["C", "Zl", "Zp"])))
def test_what_can_be_shown_is_shown_as_it_is(text: str) -> None:
    assert printable(text) == text == escaped(text)
    assert printable_document({text: [text, 1, None]}) == {text: [text, 1, None]}


@given(st.recursive(st.none() | st.text(st.characters(exclude_categories=["Cs"])), lambda inner: st.lists(inner)))
def test_escaped_json_is_the_same_document(document: object) -> None:
    text = escaped(json.dumps(document, ensure_ascii=False))
    assert json.loads(text) == document
    assert_shown(text)


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("form", list(render.Format))
def test_no_result_brings_it_to_the_terminal(
    text: str, form: render.Format, capsys: pytest.CaptureFixture[str]
) -> None:
    table = columns("a", text, title=text, caption=text)
    table.add_row(text, Text(text, "red"))
    render.begin()
    render.emit({"who": text, text: [text]}, form, lambda: table)
    if form is render.Format.table:
        render.emit({}, form, lambda: text)
        render.show_lines([text])
    render.say([text])
    render.warn([text])
    render.fail(text)
    out, err = capsys.readouterr()
    assert_shown(out)
    assert_shown(err)
    # a line of another's making is none of ours
    assert len(err.splitlines()) == 3
    if form is render.Format.json:
        assert json.loads(out) == {"who": text, text: [text]}
    elif form is render.Format.yaml and text != "\ud800":
        assert YAML(typ="safe", pure=True).load(io.StringIO(out)) == {"who": text, text: [text]}


@pytest.mark.parametrize("text", HOSTILE)
def test_no_line_of_a_log_has_it(text: str) -> None:
    lines: List[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(self.format(record))

    log = logging.getLogger("test_printable")
    log.addHandler(Kept())
    log.addFilter(PrintableLog())
    log.warning("lost: %s", text)
    (line,) = lines
    assert_shown(line)
    assert "\n" not in line
    try:
        raise ValueError(text)
    except ValueError:
        log.exception(text)
    assert_shown(lines[-1])
    assert "ValueError: " in lines[-1]


def test_a_traceback_that_is_asked_for_brings_nothing_that_a_terminal_obeys(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: object) -> None:
        raise ZeroDivisionError("\x1b[2J\u202eowned\nforged")

    monkeypatch.setattr(main, "app", fail)
    monkeypatch.setenv(main.DEBUG, "1")
    assert main._run() == main.UNEXPECTED
    out, err = capsys.readouterr()
    assert "Traceback" in err
    assert_shown(out + err)
