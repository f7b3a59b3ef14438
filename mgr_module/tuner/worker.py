"""Runs the optimiser as a process of its own, under a time limit. Whatever it does, the mgr goes on."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Set

from ceph_tuner.core.bounded import read_json
from ceph_tuner.core.ceph.conversation import Conversation, end_all
from ceph_tuner.core.ceph.interpreter import running_module, running_text
from ceph_tuner.core.errors import TunerError

WORKER_MODULE = "ceph_tuner.search.worker"

LIBRARY = str(Path(__file__).resolve().parent.parent)
"""Where the library lies beside the plugin."""

LARGEST_ANSWER = 4 << 20


class WorkerError(TunerError):
    """The optimiser gave no usable answer; the text is for the operator."""

    next_step = "see the options `worker_python` and `worker_timeout` (`ceph tuner recommend` tries again)"


def ask_worker(
    request: Mapping[str, Any],
    python: str,
    timeout: float,
    memory_bytes: int = 4 << 30,
    program: Optional[str] = None,
) -> Dict[str, Any]:
    """Give one answer to one request. Raises WorkerError where it is missing, hangs, dies or answers nonsense.

    One worker at a time: the mgr's host has other work. Who comes meanwhile waits within the time limit.
    """
    deadline = time.monotonic() + timeout
    if not _alone.acquire(timeout=timeout):
        raise WorkerError(f"the optimiser was at work on another question for {timeout:g} s (worker_timeout)")
    try:
        return _exchange(request, python, timeout, deadline, memory_bytes, program)
    finally:
        _alone.release()


_alone = threading.Lock()
_at_work: Set[subprocess.Popen[bytes]] = set()


def end_worker() -> None:
    """End the one at work, if any: the module is being shut down. Whoever has asked it is told that it died."""
    for process in list(_at_work):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _exchange(
    request: Mapping[str, Any], python: str, timeout: float, deadline: float, memory_bytes: int, program: Optional[str]
) -> Dict[str, Any]:
    argv = running_module(python, WORKER_MODULE, [LIBRARY]) if program is None else running_text(python, program)
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",
            env=_environment(),
            # a session of its own, so that everything it starts ends with it
            start_new_session=True,
            close_fds=True,
        )
    except OSError as exc:
        raise WorkerError(f"worker_python {python!r} cannot be started: {exc.strerror}") from exc
    try:
        _limit_memory(process, memory_bytes)
        _at_work.add(process)
        conversation = Conversation(process, json.dumps(request).encode(), LARGEST_ANSWER)
        conversation.until(deadline)
        if conversation.too_much:
            raise WorkerError(f"the optimiser answered more than {LARGEST_ANSWER >> 20} MiB and was stopped")
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired as exc:
            words = f"the optimiser gave no answer within {timeout:g} s (worker_timeout) and was stopped"
            raise WorkerError(words) from exc
    finally:
        _at_work.discard(process)
        end_all(process)
    return _answer(process.returncode, bytes(conversation.output), bytes(conversation.errors))


def _environment() -> Dict[str, str]:
    """A small environment: nothing of the mgr's own, and one thread of numpy, as the mgr's host has other work."""
    return {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": "/nonexistent",
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


def _limit_memory(process: subprocess.Popen[bytes], memory_bytes: int) -> None:
    """Bound what the worker may take; the mgr runs where it can hurt most."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        resource.prlimit(process.pid, resource.RLIMIT_AS, (memory_bytes, memory_bytes))


def _answer(code: int, output: bytes, errors: bytes) -> Dict[str, Any]:
    try:
        answer = read_json(output, "the optimiser", LARGEST_ANSWER)
    except ValueError as exc:
        raise WorkerError(f"the optimiser ended with {_exit_words(code)} and no answer: {_last_line(errors)}") from exc
    if not isinstance(answer, dict) or answer.get("version") != 1 or not isinstance(answer.get("ok"), bool):
        raise WorkerError(f"the optimiser answered nonsense: {json.dumps(answer)[:100]}")
    if not answer["ok"]:
        raise WorkerError(f"the optimiser cannot answer ({answer.get('kind')}): {answer.get('error')}")
    fault = _fault(answer, _SHAPE, "its answer")
    if fault:
        raise WorkerError(f"the optimiser answered nonsense: {fault}")
    return answer


_NUMBERS = (int, float)
_SHARE = {"knob": str, "share": _NUMBERS}
_VERDICT = {"objective": str, "hard": bool, "priority": _NUMBERS, "seen?": _NUMBERS, "margin?": _NUMBERS, "met?": bool}
_SHAPE: Mapping[str, Any] = {
    "proposals": [{"settings": {"*": (int, float, str)}, "why?": str}],
    "verdict?": {"state?": str, "reason?": str},
    "best?": {"verdicts": [_VERDICT]},
    "explanation?": {
        "importance": {"*": [_SHARE]},
        "in_the_way?": {"conflicts": [[str]], "nearest": [{"instead": str}]},
    },
    "elsewhere?": [{"profile": str, "suggested": bool, "reason": str}],
}
"""What of an answer is used here: `?` may be missing or null, `*` is every key, a list is of any length."""


def _fault(value: Any, shape: Any, place: str) -> str:
    """Where an answer is not of the shape; empty where it is."""
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return f"{place} is no mapping"
        for key, below in shape.items():
            name = key.rstrip("?")
            names = list(value) if key == "*" else [name]
            if key.endswith("?") and value.get(name) is None:
                continue
            if key != "*" and name not in value:
                return f"{place} has no {name}"
            faults = (_fault(value[one], below, f"{place}.{one[:60]}") for one in names)
            if fault := next(filter(None, faults), ""):
                return fault
        return ""
    if isinstance(shape, list):
        if not isinstance(value, list):
            return f"{place} is no list"
        return next(filter(None, (_fault(one, shape[0], f"{place}.{at}") for at, one in enumerate(value))), "")
    sound = isinstance(value, shape) and (shape is bool or not isinstance(value, bool))
    return "" if sound else f"{place} is {str(value)[:60]!r}"


def _exit_words(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def _last_line(errors: bytes) -> str:
    lines = [line for line in errors.decode(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip()[:200] if lines else "no message"
