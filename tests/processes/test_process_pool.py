"""Short calls in a pool of processes: order, errors, and an interrupt that is the caller's alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import Tuple

import pytest

from ceph_tuner.core.errors import ClusterNotFound, CommandFailed, InputError, RetryLater, TunerError
from ceph_tuner.processes import process_pool
from ceph_tuner.processes.process_pool import ProcessPool
from ceph_tuner.processes.worker_process import cores

PAUSE_S = 0.2


def square(number: int) -> int:
    if number < 0:
        raise ValueError(f"number(={number}) is below 0")
    return number * number


def slow_first(number: int) -> int:
    time.sleep(PAUSE_S if number == 0 else 0)
    return number


def process(_: int) -> Tuple[int, bool, int]:
    return os.getpid(), signal.getsignal(signal.SIGINT) is signal.SIG_IGN, os.nice(0)


@pytest.mark.parametrize("processes", [1, 2])
def test_results_come_in_the_order_of_what_is_given(processes: int) -> None:
    with ProcessPool(processes) as pool:
        assert list(pool.map(slow_first, range(9))) == list(range(9))
        waiting = [pool.start(square, number) for number in range(5)]
        # asked for in another order
        assert [wait() for wait in reversed(waiting)] == [16, 9, 4, 1, 0]
        assert list(pool.map(square, [])) == []


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_is_raised_where_the_result_is_asked_for(processes: int) -> None:
    with ProcessPool(processes) as pool:
        good, bad = pool.start(square, 3), pool.start(square, -1)
        assert good() == 9
        with pytest.raises(ValueError, match=r"number\(=-1\)"):
            bad()


def test_workers_leave_ctrl_c_to_the_caller_and_are_as_nice_as_is_wished() -> None:
    with ProcessPool(2, niceness=1) as pool:
        found = list(pool.map(process, range(8)))
    assert os.getpid() not in {pid for pid, _, _ in found}
    assert all(deaf for _, deaf, _ in found)
    assert {nice for _, _, nice in found} == {min(19, os.nice(0) + 1)}


def test_alone_everything_is_done_here() -> None:
    with ProcessPool(1) as pool:
        assert {pid for pid, _, _ in pool.map(process, range(4))} == {os.getpid()}


def test_where_nobody_says_how_many_there_is_one_for_each_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_pool, "cores", cores)
    assert ProcessPool().count == cores() >= 1


INTERRUPTED = """
import time
from ceph_tuner.processes.process_pool import ProcessPool
if __name__ == "__main__":
    with ProcessPool(2) as pool:
        pool.start(abs, 1)()
        print("ready", flush=True)
        waiting = [pool.start(time.sleep, 0.5) for _ in range(200)]
        for wait in waiting:
            wait()
"""


def alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_ctrl_c_ends_what_has_not_begun_and_leaves_no_process() -> None:
    running = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # pytest's own path is not the environment's
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "ready\n"
    # as a terminal does: to every process of the group
    os.killpg(running.pid, signal.SIGINT)
    # a hundred calls of half a second on two processes would take fifty
    _, errors = running.communicate(timeout=30)
    assert running.returncode != 0
    assert "KeyboardInterrupt" in errors
    assert "BrokenProcessPool" not in errors
    # the server that the workers came from notices by itself
    end = time.monotonic() + 30
    while alive(running.pid) and time.monotonic() < end:
        time.sleep(0.1)
    assert not alive(running.pid)


def refuse(error: TunerError) -> None:
    raise error


@pytest.mark.parametrize(
    "error",
    [
        InputError("twin", "more requests than foreseen", "a smaller model"),
        ClusterNotFound("--cluster", "no monitor", "one that answers"),
        CommandFailed("osd tree", -13, "no right"),
        RetryLater("not now", "wait"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_for_the_operator_gets_here_whole(error: TunerError) -> None:
    with ProcessPool(2) as pool, pytest.raises(type(error)) as raised:
        pool.start(refuse, error)()
    assert (str(raised.value), raised.value.advised) == (str(error), error.advised)
    assert vars(raised.value) == vars(error)
