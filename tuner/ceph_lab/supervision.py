"""A daemon that crashes is started again, as systemd does on a real host.

One small process per daemon starts it, adopts what it leaves in the background (`PR_SET_CHILD_SUBREAPER`) and learns
how it ends. As in Ceph's own units, a daemon is started again after ten seconds, at most three times in half an hour.
It is not after SIGKILL: that is how a test or an operator says that it shall be dead.

The file is run by its path, so it imports the standard library alone.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections import deque
from pathlib import Path
from typing import Deque, Dict, List, Sequence

DELAY_S = 10.0
BURST, BURST_S = 3, 1800.0

_PR_SET_CHILD_SUBREAPER = 36
_ON_PURPOSE = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def supervised(daemon: str, log: Path, argv: Sequence[str], delay_s: float = DELAY_S) -> List[str]:
    """Command line that starts a daemon and ends when that is in the background, with its starter's exit code."""
    # -I and -S: it lives as long as the daemon, and needs nothing but the standard library
    return [sys.executable, "-I", "-S", __file__, daemon, str(log), str(delay_s), *argv]


def supervises(words: Sequence[str], daemon: str) -> bool:
    """Whether a process with this command line looks after that daemon."""
    return list(words[3:5]) == [__file__, daemon]


def crashed(status: int) -> bool:
    """Whether a daemon that ended with this wait status is started again."""
    code = os.waitstatus_to_exitcode(status)
    return code > 0 or (code < 0 and -code not in _ON_PURPOSE)


def _supervise(daemon: str, log: Path, argv: Sequence[str], delay_s: float, ready: int) -> None:
    """Until the daemon ends for good. The starter's first exit code is written to `ready`."""
    os.setsid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    code = subprocess.call(argv, stdin=subprocess.DEVNULL)
    os.write(ready, bytes([code & 0xFF]))
    os.close(ready)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    restarts: Deque[float] = deque(maxlen=BURST)
    while code == 0:
        status = _end_of_daemon()
        if not crashed(status):
            return
        end = f"{daemon} ended with {os.waitstatus_to_exitcode(status)}"
        code = 1
        while code:
            if len(restarts) == BURST and time.monotonic() - restarts[0] < BURST_S:
                _note(log, f"{end}; not started again, after {BURST} times in {BURST_S / 60:.0f} minutes")
                return
            time.sleep(delay_s)
            restarts.append(time.monotonic())
            with log.open("ab") as output:
                code = subprocess.call(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
            _note(log, f"{end}; started again" + (f" in vain: {code}" if code else ""))


def _children() -> Dict[int, bytes]:
    """What was left in the background: the name of each process."""
    children = {}
    for entry in os.listdir("/proc"):
        try:
            line = Path(f"/proc/{entry}/stat").read_bytes() if entry.isdigit() else b""
        except OSError:
            continue
        name, _, rest = line.partition(b"(")[2].rpartition(b")")
        if rest and int(rest.split()[1]) == os.getpid():
            children[int(entry)] = name
    return children


def _end_of_daemon() -> int:
    """Wait status of what the starter left in the background.

    A mgr that begins anew (for a module that is enabled) executes itself and goes into the background once more: its
    process ends well, and leaves another of its name. Whatever else is adopted is only waited for. A mgr executes
    /proc/self/exe, and has that name until it gives itself its own.
    """
    daemons = _children()
    status = 0
    while daemons:
        try:
            pid, status = os.wait()
        except ChildProcessError:
            return status
        name = daemons.pop(pid, None)
        if name is not None:
            left = {} if status else _children()
            daemons = {child: other for child, other in left.items() if other == name or b"exe" in (name, other)}
    return status


def _note(log: Path, line: str) -> None:
    with log.open("a", encoding="utf-8") as file:
        file.write(f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} {line}\n")


def main() -> int:
    """Start the supervisor and tell how its daemon's start went."""
    daemon, log, delay_s, *argv = sys.argv[1:]
    read_end, ready = os.pipe()
    if os.fork() == 0:
        os.close(read_end)
        try:
            _supervise(daemon, Path(log), argv, float(delay_s), ready)
        finally:
            os._exit(0)
    os.close(ready)
    answer = os.read(read_end, 1)
    return answer[0] if answer else 1


if __name__ == "__main__":
    sys.exit(main())
