"""How the events of a watch are cut out of what a server sends."""

from __future__ import annotations

import time
from typing import Any, List, Sequence, cast

import pytest
import requests

from ceph_tuner.core.errors import CommandFailed
from ceph_tuner.rook.kubernetes_api import LONGEST_EVENT, _lines


class Sent:
    """An answer that comes in these parts."""

    def __init__(self, parts: Sequence[bytes]) -> None:
        self.raw = self
        self._parts = parts

    def stream(self, *_: Any, **__: Any) -> Any:
        return iter(self._parts)


def lines(*parts: bytes) -> List[bytes]:
    return list(_lines(cast("requests.Response", Sent(parts)), "watch"))


def test_an_event_is_a_line_wherever_it_is_cut() -> None:
    assert lines(b'{"a": 1}\n{"b"', b": 2}\n\n  \n{", b'"c": 3}') == [b'{"a": 1}', b'{"b": 2}', b'{"c": 3}']


def test_an_event_that_drips_takes_no_longer_than_its_bytes() -> None:
    began = time.process_time()
    assert lines(*[b"x"] * 2**18) == [b"x" * 2**18]
    assert time.process_time() - began < 1


def test_an_event_without_an_end_is_refused() -> None:
    with pytest.raises(CommandFailed, match=f"more than {LONGEST_EVENT} bytes"):
        lines(*[b"x" * 2**16] * 65)
