"""What people are shown of texts that others wrote: nothing that a terminal obeys, that ends a line or hides a word.

Everything that leaves for a terminal, a log, the cluster's health, Prometheus or a page goes through here.
"""

from __future__ import annotations

import logging
import traceback
import unicodedata
from typing import Any

REPLACED = "\ufffd"
LONGEST_LINE = 500


def printable(text: str, lines: bool = False) -> str:
    """The text with a mark in place of each character that is not shown; `lines`: it may have several."""
    if text.isprintable():
        return text
    return "".join(one if _is_shown(one) or (lines and one == "\n") else REPLACED for one in text)


def one_line(text: str, longest: int = LONGEST_LINE) -> str:
    """On one line, of bounded length."""
    shown = printable(" ".join(text.split()))
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def printable_document(data: Any) -> Any:
    """Every text of a plain document so, its keys as well."""
    if isinstance(data, str):
        return printable(data)
    if isinstance(data, dict):
        return {printable_document(key): printable_document(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [printable_document(item) for item in data]
    return data


def escaped(json_text: str) -> str:
    """JSON with what is not shown as escapes: for programs it is the same, for the terminal they end on it is none."""
    if json_text.isprintable():
        return json_text
    return "".join(one if _is_shown(one) or one == "\n" else _escape(one) for one in json_text)


class PrintableLog(logging.Filter):
    """Keeps a log's records to what can be printed, each message to one line."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Put the message in order; none is dropped."""
        record.msg, record.args = printable(record.getMessage()), ()
        if record.exc_info and not record.exc_text:
            # a formatter takes this instead of the exception's own words
            record.exc_text = printable("".join(traceback.format_exception(*record.exc_info)), lines=True)
        return True


def _is_shown(one: str) -> bool:
    # C: control, format (writing direction), lone surrogates, private use, not assigned; Zl, Zp: ends of lines
    category = unicodedata.category(one)
    return category[0] != "C" and category not in ("Zl", "Zp")


def _escape(one: str) -> str:
    units = one.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[place] << 8 | units[place + 1]:04x}" for place in range(0, len(units), 2))
