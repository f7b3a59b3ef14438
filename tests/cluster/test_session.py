"""The connection's process, and what it may say: it is as trusted as the Python over there, and no more."""

from __future__ import annotations

import sys
import threading
import time

import pytest

from ceph_tuner.cluster import session
from ceph_tuner.cluster.session import NoLibradosError, Session
from ceph_tuner.core.errors import ClusterTimeout, CommandFailed

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


ANSWERING = r"""
import sys, json, threading, time
print('{"ready": true, "entity": "client.tuner"}', flush=True)
say, under_way, most = threading.Lock(), [0], [0]
def respond(asked):
    if asked.get("daemon") == "osd.13":
        return
    time.sleep(0.01)
    with say:
        under_way[0] -= 1
        number = int(asked.get("daemon", "osd.0").partition(".")[2])
        code, out = (-2, "") if number == 7 else (0, str(most[0]))
        print(json.dumps({"id": asked["id"], "code": code, "out": out, "words": "none"}), flush=True)
for line in sys.stdin:
    under_way[0] += 1
    most[0] = max(most[0], under_way[0])
    threading.Thread(target=respond, args=[json.loads(line)], daemon=True).start()
"""


def test_many_are_under_way_and_their_number_is_bounded() -> None:
    with Session(lambda argv: [sys.executable, "-c", ANSWERING]) as opened:
        osds = [f"osd.{number}" for number in range(1000) if number != 13]
        told = dict(opened.tell_each(osds, "config show", {}, within=5.0))
        assert isinstance(told.pop("osd.7"), CommandFailed)
        assert len(told) == 998
        assert 2 <= int(opened.mon("status", {})) <= session.AT_ONCE


def test_commands_of_other_threads_go_past_one_that_waits() -> None:
    with Session(lambda argv: [sys.executable, "-c", ANSWERING], timeout=3.0) as opened:
        hanging = threading.Thread(target=lambda: list(opened.tell_each(["osd.13"], "config show", {}, within=60.0)))
        hanging.daemon = True
        hanging.start()
        began = time.monotonic()
        for _ in range(20):
            opened.mon("status", {})
        assert time.monotonic() - began < 20.0
        assert hanging.is_alive()


def test_a_child_that_dies_fails_all_that_is_under_way() -> None:
    with talking("") as opened:
        told = [answer for _, answer in opened.tell_each(["osd.1", "osd.2"], "config show", {}, within=5.0)]
    assert [type(answer) for answer in told] == [ClusterTimeout] * 2


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
