"""The connection's process, and what it may say: it is as trusted as the Python over there, and no more."""

from __future__ import annotations

import sys
import time

import pytest

from ceph_tuner.clusters import session
from ceph_tuner.clusters.session import NoLibradosError, Session
from ceph_tuner.errors import ClusterTimeout

READY = 'import sys; print(\'{"ready": true, "entity": "client.tuner"}\', flush=True); sys.stdin.readline()\n'


def talking(program: str) -> Session:
    return Session(lambda argv: [sys.executable, "-c", READY + program], timeout=20.0)


def test_it_says_whose_key_it_uses() -> None:
    with talking("") as opened:
        assert opened.entity == "client.tuner"


def test_one_that_talks_without_an_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "ANSWER", 1 << 20)
    began = time.monotonic()
    with (
        talking("while True: sys.stdout.write('x' * 65536)") as opened,
        pytest.raises(ClusterTimeout, match="more than"),
    ):
        opened.mon("status", {})
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("said", ["[" * 1000, "nonsense", '"x"', "{}", '{"id": 1e999}'])
def test_nonsense_is_told_as_such(said: str) -> None:
    with talking(f"print({said!r}, flush=True)") as opened, pytest.raises((ClusterTimeout, NoLibradosError)):
        opened.mon("status", {})


@pytest.mark.parametrize(
    "said", ['{"id": 1}', '{"id": 1, "code": "x"}', '{"id": 1, "code": 0}', '{"id": 1, "code": []}']
)
def test_an_answer_of_another_shape_is_told_as_such(said: str) -> None:
    with talking(f"print({said!r}, flush=True)") as opened, pytest.raises(ClusterTimeout, match="nonsense"):
        opened.mon("status", {})
