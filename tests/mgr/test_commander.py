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
    assert time.monotonic() - started < 1.0


def test_one_that_hangs_keeps_no_other_waiting() -> None:
    fine = {f"osd.{osd}": (0, str(osd), "") for osd in range(1000)}
    daemons = Daemons({**fine, "osd.5": (-errno.ENOENT, "", "none")}, silent=("osd.0", "osd.500"))
    started = time.monotonic()
    answers = list(commander(daemons).tell_each(fine, "config show", {}, 2.0))
    assert time.monotonic() - started < 4.0
    # those that hang come last, each when its own time is over
    assert [daemon for daemon, _ in answers[-2:]] == ["osd.0", "osd.500"]
    told = dict(answers)
    assert [type(told.pop(daemon)) for daemon in ("osd.0", "osd.5", "osd.500")] == [
        ClusterTimeout,
        CommandFailed,
        ClusterTimeout,
    ]
    assert told == {daemon: answer[1] for daemon, answer in fine.items() if daemon in told}
    assert len(told) == 997


def test_many_are_asked_at_once_and_share_one_time_limit() -> None:
    daemons = Daemons({"osd.0": (0, "zero", ""), "osd.3": (-errno.ENXIO, "", "down")}, silent=("osd.1", "osd.2"))
    started = time.monotonic()
    answers = commander(daemons).tell_many([(f"osd.{osd}", "perf dump", {}) for osd in range(4)], 0.3)
    assert answers == {("osd.0", "perf dump"): "zero"}
    assert time.monotonic() - started < 1.0
