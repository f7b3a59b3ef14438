from __future__ import annotations

import errno
import json
import threading
import time
from typing import Any, Dict, List, Optional, Tuple

import pytest
from mgr_stand_in import CommandResult

from ceph_tuner.core.errors import ClusterTimeout, CommandFailed, PermissionRefused
from tuner.commander import MgrCommander

HANGING = tuple(f"osd.{osd}" for osd in range(10, 40))


class Daemons:
    """Answers from another thread, as the mgr does; silent ones never answer."""

    def __init__(self, answers: Dict[str, Tuple[int, str, str]], silent: Tuple[str, ...] = ()) -> None:
        self.answers, self.silent = answers, silent
        self.asked: List[Tuple[str, Dict[str, Any], Optional[str]]] = []

    def send_command(
        self, result: CommandResult, kind: str, name: str, command: str, tag: str, inbuf: Optional[str] = None
    ) -> None:
        daemon = f"{kind}.{name}" if name else kind
        self.asked.append((daemon, json.loads(command), inbuf))
        if daemon not in self.silent:
            threading.Timer(0.01, result.complete, self.answers[daemon]).start()


def commander(daemons: Daemons, timeout: float = 5.0) -> MgrCommander:
    return MgrCommander(daemons, CommandResult, timeout)  # type: ignore[arg-type]


def test_a_monitor_command_carries_its_arguments_and_payload() -> None:
    daemons = Daemons({"mon": (0, "fine", "")})
    assert commander(daemons).mon("config-key set", {"key": "k"}, "v") == "fine"
    assert daemons.asked == [("mon", {"prefix": "config-key set", "key": "k", "format": "json"}, "v")]


def test_a_refused_command_raises_with_its_errno() -> None:
    with pytest.raises(CommandFailed) as failure:
        commander(Daemons({"mon": (-errno.ENOENT, "", "no such key")})).mon("config-key get", {"key": "k"})
    assert failure.value.code == -errno.ENOENT
    with pytest.raises(PermissionRefused):
        commander(Daemons({"mon": (-errno.EACCES, "", "access denied")})).mon("pg ls", {})


def test_a_daemon_that_hangs_costs_the_time_limit_and_no_more() -> None:
    started = time.monotonic()
    with pytest.raises(ClusterTimeout):
        commander(Daemons({}, silent=("osd.1",)), timeout=0.2).tell("osd.1", "perf dump", {})
    assert time.monotonic() - started < 4.0


def test_one_that_hangs_keeps_no_other_waiting() -> None:
    fine = {f"osd.{osd}": (0, str(osd), "") for osd in range(1000)}
    hanging = [f"osd.{osd}" for osd in range(0, 200, 20)]
    daemons = Daemons({**fine, "osd.5": (-errno.ENOENT, "", "none")}, silent=tuple(hanging))
    started = time.monotonic()
    answers = list(commander(daemons).tell_each(fine, "config show", {}, 4.0))
    # one after the other they would take 40 s
    assert time.monotonic() - started < 20.0
    # those that hang come last, each when its own time is over
    assert [daemon for daemon, _ in answers[-len(hanging) :]] == hanging
    told = dict(answers)
    assert {type(told.pop(daemon)) for daemon in hanging} == {ClusterTimeout}
    assert type(told.pop("osd.5")) is CommandFailed
    assert told == {daemon: answer[1] for daemon, answer in fine.items() if daemon in told}
    assert len(told) == 989


def test_many_are_asked_at_once_and_share_one_time_limit() -> None:
    daemons = Daemons({"osd.0": (0, "zero", ""), "osd.3": (-errno.ENXIO, "", "down")}, silent=HANGING)
    started = time.monotonic()
    answers = commander(daemons).tell_many([(osd, "perf dump", {}) for osd in ("osd.0", "osd.3", *HANGING)], 0.5)
    assert answers == {("osd.0", "perf dump"): "zero"}
    # one after the other they would take 15 s
    assert time.monotonic() - started < 8.0
