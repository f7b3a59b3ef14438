from __future__ import annotations

import os
import resource
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import List

import pytest

from tuner.worker import WorkerError, ask_worker

pytestmark = pytest.mark.slow

GOOD = 'import json,sys; json.load(sys.stdin); print(json.dumps({"version":1,"ok":True,"proposals":[{"settings":{}}]}))'


LARGE = "import sys; sys.stdin.read(); x = bytearray({})"
"""As the optimiser it reads its request first: by then its memory is bounded."""


def ask(program: str, timeout: float = 10.0) -> object:
    return ask_worker({"version": 1}, sys.executable, timeout, program=program)


def test_an_answer_comes_back() -> None:
    assert ask(GOOD) == {"version": 1, "ok": True, "proposals": [{"settings": {}}]}


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("import os; os.kill(os.getpid(), 11)", "signal 11"),
        ("raise SystemExit('no numpy here')", "no numpy here"),
        ("print('hello')", "no answer"),
        ("print('[1]')", "nonsense"),
        ('print(\'{"version": 7, "ok": true}\')', "nonsense"),
        ('print(\'{"version":1,"ok":true,"proposals":[{"settings":7}]}\')', "nonsense"),
        ('print(\'{"version":1,"ok":false,"kind":"unavailable","error":"no skopt"}\')', "no skopt"),
        (LARGE.format(8 << 30), "MemoryError"),
    ],
)
def test_a_worker_that_dies_or_babbles_gives_a_clear_message(program: str, words: str) -> None:
    with pytest.raises(WorkerError, match=words):
        ask(program)


FLOOD = "import sys\nwhile True: sys.{0}.write('x' * 65536)"


def test_a_worker_that_babbles_without_end_is_stopped_and_fills_no_memory() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.monotonic()
    with pytest.raises(WorkerError, match="more than 4 MiB and was stopped"):
        ask(FLOOD.format("stdout"))
    assert time.monotonic() - began < 15
    with pytest.raises(WorkerError, match="worker_timeout"):
        ask(FLOOD.format("stderr"), 2.0)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


def test_a_request_that_nobody_reads_costs_the_time_limit_alone() -> None:
    with pytest.raises(WorkerError, match="worker_timeout"):
        ask_worker({"x": "y" * 1_000_000}, sys.executable, 1.0, program="import time; time.sleep(30)")
    found = ask_worker({"x": "y" * 1_000_000}, sys.executable, 10.0, program=GOOD)
    assert found["ok"]


def test_one_worker_at_a_time() -> None:
    slow = f"import time; time.sleep(1); {GOOD}"
    with ThreadPoolExecutor(3) as pool:
        began = time.monotonic()
        assert all(found["ok"] for found in pool.map(lambda _: ask(slow), range(3)))  # type: ignore[index]
        assert time.monotonic() - began > 3
        late = [pool.submit(ask, slow, 0.5) for _ in range(2)]
        assert {type(waiting.exception()) for waiting in late} == {WorkerError}


def test_the_memory_it_may_have_is_given() -> None:
    with pytest.raises(WorkerError, match="MemoryError"):
        ask_worker({}, sys.executable, 10.0, 512 << 20, LARGE.format(600 << 20))


def test_a_python_that_is_not_there_is_named() -> None:
    with pytest.raises(WorkerError, match="/no/such/python"):
        ask_worker({}, "/no/such/python", 5.0)


def test_a_worker_that_hangs_is_stopped_with_everything_it_started(tmp_path: Path) -> None:
    note = tmp_path / "pids"
    program = (
        "import os,subprocess,sys,time; child = subprocess.Popen(['sleep', '60']); "
        f"open({str(note)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}'); time.sleep(60)"
    )
    started = time.monotonic()
    with pytest.raises(WorkerError, match="worker_timeout"):
        ask(program, timeout=1.5)
    assert time.monotonic() - started < 30.0
    pids: List[str] = note.read_text().split()
    time.sleep(0.2)
    for pid in pids:
        state = Path(f"/proc/{pid}/stat")
        assert not os.path.exists(state) or state.read_text().split()[2] == "Z"
