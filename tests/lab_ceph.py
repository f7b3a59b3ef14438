"""The `ceph` program of a lab, kept: it starts, connects and learns which commands there are once, not for each.

That takes a quarter of a second of a processor, twenty times as long as the command. What it says and how it ends is
the program's own: its main() runs. Words before the command (`-n`, `-k`) and a payload are left to a new one.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import threading
import time
from typing import Callable, Dict, List, Optional, Sequence, Tuple

from ceph_lab.capacity import BENCH
from ceph_lab.cluster import Lab
from ceph_tuner.core.errors import ClusterTimeout, CommandFailed

_KEPT = r"""
import contextlib, importlib.machinery, importlib.util, io, json, sys, traceback

sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("ceph_program", "/usr/bin/ceph")
program = importlib.util.module_from_spec(importlib.util.spec_from_loader("ceph_program", loader))
loader.exec_module(program)
rados, parse, validate = program.rados, program.parse_json_funcsigs, program.validate_command


class Connection:
    handle, connected = None, False

    def __call__(self, **options):
        self.handle = self.handle or rados.Rados(**options)
        return self

    def connect(self, *arguments, **options):
        if not self.connected:
            self.handle.connect(*arguments, **options)
            self.connected = True

    def conf_parse_argv(self, words):
        # takes out Ceph's own options, of which there are none; a handle that is connected refuses to
        return words

    def __getattr__(self, name):
        return getattr(self.handle or rados.Rados, name)


class Module:
    Rados = Connection()

    def __getattr__(self, name):
        return getattr(rados, name)


parsed = {}


def parse_once(text, consumer):
    if text not in parsed:
        if len(parsed) > 8:
            parsed.clear()
        parsed[text] = parse(text, consumer)
    return parsed[text]


def begins(signature, words):
    names = []
    for part in signature:
        if not isinstance(part.instance, ceph_argparse.CephPrefix):
            break
        names.append(part.instance.prefix)
    return words[: len(names)] == names


def validate_near(signatures, words, verbose=False):
    # the program compares with a copy of each of 800 commands
    near = {tag: found for tag, found in signatures.items() if begins(found["sig"], words)}
    with contextlib.redirect_stderr(io.StringIO()):
        valid = validate(near, words, verbose) if near else {}
    return valid or validate(signatures, words, verbose)


import ceph_argparse

program.rados, program.parse_json_funcsigs, program.validate_command = Module(), parse_once, validate_near
replies = sys.stdout
for line in sys.stdin:
    sys.argv = ["ceph", *json.loads(line)]
    output, errors = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            code = program.main() or 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except Exception:
            code = 1
            traceback.print_exc()
    said = output.buffer.getvalue().decode(errors="replace")
    replies.write(json.dumps([code, said, errors.getvalue()]) + "\n")
    replies.flush()
"""

Run = Callable[..., str]


class KeptCeph:
    """One for a lab; it ends with the lab or with this process."""

    def __init__(self, lab: Lab) -> None:
        self.free = threading.Lock()
        self._process = subprocess.Popen(
            lab.argv(["python3", "-c", _KEPT]), env=lab.environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, words: Sequence[str], seconds: float) -> Optional[Tuple[int, str, str]]:
        """Exit code, output and errors; None where it has ended. Raises TimeoutError."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        answer, end = b"", time.monotonic() + seconds
        try:
            self._process.stdin.write(json.dumps(list(words)).encode() + b"\n")
            self._process.stdin.flush()
            while not answer.endswith(b"\n"):
                if not select.select([self._process.stdout], [], [], max(0.0, end - time.monotonic()))[0]:
                    self.end()
                    raise TimeoutError
                part = os.read(self._process.stdout.fileno(), 1 << 20)
                if not part:
                    return None
                answer += part
        except BrokenPipeError:
            return None
        code, output, errors = json.loads(answer)
        return code, output, errors

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


_KEPT_BY_LAB: Dict[str, KeptCeph] = {}
"""By the labs' fsids."""
_one_at_a_time = threading.Lock()


def _kept_of(lab: Lab) -> KeptCeph:
    with _one_at_a_time:
        ceph = _KEPT_BY_LAB.get(lab.state.fsid)
        if ceph is None or not ceph.alive:
            ceph = _KEPT_BY_LAB[lab.state.fsid] = KeptCeph(lab)
        return ceph


def end_all() -> None:
    """End what is kept."""
    while _KEPT_BY_LAB:
        _KEPT_BY_LAB.popitem()[1].end()


def may_be_kept(command: Sequence[str], payload: Optional[str]) -> bool:
    """Whether it is a plain command of the program; one that measures is left as it is."""
    return command[0] == "ceph" and len(command) > 1 and payload is None and command[1][0] != "-" and not _own(command)


def _own(command: Sequence[str]) -> bool:
    return bool({"-i", "-o", "-w", "-W", "-n", "-k", BENCH[0]} & set(command))


def kept(run: Run) -> Run:
    """`Lab.run` with a kept program where that will do."""

    def running(lab: Lab, command: List[str], payload: Optional[str] = None, timeout: float = 60) -> str:
        if not may_be_kept(command, payload):
            return run(lab, command, payload, timeout)
        ceph = _kept_of(lab)
        if not ceph.free.acquire(blocking=False):
            return run(lab, command, payload, timeout)
        try:
            told = ceph.ask(command[1:], timeout)
        except TimeoutError:
            raise ClusterTimeout(f"`{' '.join(command)}` did not answer within {timeout:g} s") from None
        finally:
            ceph.free.release()
        if told is None:
            return run(lab, command, payload, timeout)
        code, output, errors = told
        if code:
            raise CommandFailed(" ".join(command), code, errors or output)
        return output

    return running
