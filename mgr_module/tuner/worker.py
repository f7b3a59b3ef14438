"""Runs the optimiser as a process of its own, under a time limit. Whatever it does, the mgr goes on."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional

from ceph_tuner.errors import TunerError

WORKER_MODULE = "ceph_tuner.search.worker"

LIBRARY = str(Path(__file__).resolve().parent.parent)
"""Where the library lies beside the plugin; last on the worker's path, so that an installed one comes first."""

LARGEST_ANSWER = 4 << 20
MEMORY_BYTES = 4 << 30


class WorkerError(TunerError):
    """The optimiser gave no usable answer; the text is for the operator."""

    next_step = "see the options `worker_python` and `worker_timeout` (`ceph tuner recommend` tries again)"


def ask_worker(
    request: Mapping[str, Any], python: str, timeout: float, arguments: Optional[List[str]] = None
) -> Dict[str, Any]:
    """Give one answer to one request. Raises WorkerError where it is missing, hangs, dies or answers nonsense."""
    argv = [python, *(["-m", WORKER_MODULE] if arguments is None else arguments)]
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
        _limit_memory(process)
        output, errors = process.communicate(json.dumps(request).encode(), timeout=timeout)
    except subprocess.TimeoutExpired as exc:
        raise WorkerError(
            f"the optimiser gave no answer within {timeout:g} s (worker_timeout) and was stopped"
        ) from exc
    except OSError as exc:
        raise WorkerError(f"the optimiser ended before it read its request: {exc.strerror}") from exc
    finally:
        _stop(process)
    return _answer(process.returncode, output, errors)


def _environment() -> Dict[str, str]:
    """A small environment: nothing of the mgr's own, and one thread of numpy, as the mgr's host has other work."""
    path = [entry for entry in (os.environ.get("PYTHONPATH"), LIBRARY) if entry]
    return {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": "/nonexistent",
        "LANG": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join(path),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


def _stop(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def _limit_memory(process: subprocess.Popen[bytes]) -> None:
    """Bound what the worker may take; the mgr runs where it can hurt most."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        resource.prlimit(process.pid, resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def _answer(code: int, output: bytes, errors: bytes) -> Dict[str, Any]:
    try:
        answer = json.loads(output[:LARGEST_ANSWER].decode(errors="replace"))
    except ValueError as exc:
        raise WorkerError(f"the optimiser ended with {_ending(code)} and no answer: {_last_line(errors)}") from exc
    if not isinstance(answer, dict) or answer.get("version") != 1 or not isinstance(answer.get("ok"), bool):
        raise WorkerError(f"the optimiser answered nonsense: {json.dumps(answer)[:100]}")
    if not answer["ok"]:
        raise WorkerError(f"the optimiser cannot answer ({answer.get('kind')}): {answer.get('error')}")
    if not isinstance(answer.get("proposals"), list) or not all(
        isinstance(proposal, dict) and isinstance(proposal.get("settings"), dict) for proposal in answer["proposals"]
    ):
        raise WorkerError("the optimiser answered nonsense: no list of proposals")
    return answer


def _ending(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def _last_line(errors: bytes) -> str:
    lines = [line for line in errors.decode(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip()[:200] if lines else "no message"
