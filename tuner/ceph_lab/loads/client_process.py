"""A program that puts clients' work on a lab: started inside it, its prints collected, ended in order."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter, deque
from contextlib import suppress
from pathlib import Path
from typing import Any, Deque, Dict, List, Optional, Sequence

from ceph_lab.loads import LabUnderLoad
from ceph_lab.loads.latency import Latencies, LatencyInterval, Snapshot, interval_between, snapshot_of
from ceph_lab.loads.processor_speed import Stretch
from ceph_tuner.core.errors import LoadFailed

READY_S = 30.0
"""Python, librados and the image are open long before."""

END_S = 30.0

SLACK_US = 500_000
"""A window may begin so long before the clients do, or end so long after their last print."""

DRAIN_US = 20_000
"""So long after a stretch in which this machine's processors were slow, operations still wait for those before them."""

_OPEN_LOOP = Path(__file__).with_name("open_loop.py")


class ClientProcess(ABC):
    """From `start` to `end`; `end` may be called again and again."""

    program = ""

    def __init__(self, lab: LabUnderLoad) -> None:
        self.notes: List[str] = []
        self._lab = lab
        self._process: Optional[subprocess.Popen[str]] = None
        self._reader: Optional[threading.Thread] = None
        self._complaints: Deque[str] = deque(maxlen=5)

    @abstractmethod
    def command(self) -> List[str]:
        """What is run inside the lab."""

    @abstractmethod
    def collect(self, line: str) -> None:
        """Take one line of its output, in a thread of its own."""

    @abstractmethod
    def interval(self, start: float, end: float, slow: Sequence[Stretch] = ()) -> Optional[LatencyInterval]:
        """What was answered in that stretch of time; None where it was not seen.

        Where it is known of each operation when it was due, the latencies are of those that were not due while this
        machine's processors were `slow`.
        """

    @abstractmethod
    def whole(self, slow: Sequence[Stretch] = ()) -> Optional[LatencyInterval]:
        """All that is remembered."""

    @abstractmethod
    def answered(self) -> int:
        """Operations since the start."""

    @abstractmethod
    def last(self) -> Snapshot:
        """Everything since the start, for the record."""

    def start(self) -> None:
        """Start it and return when its first operation may come."""
        self._process = popen(self._lab, self.command())
        self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()

    def check(self) -> None:
        """Raise LoadFailed with its last words when it has died."""
        process = self._process
        if process is not None and process.poll() is not None:
            code = process.returncode
            self.end()
            raise LoadFailed(f"{self.program} ended with {code}: {self.last_words()}")

    def end(self) -> None:
        """SIGINT and the end of its input, on which it prints its last figures."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        with suppress(OSError):
            if process.stdin is not None:
                process.stdin.close()
        try:
            process.wait(timeout=END_S)
        except subprocess.TimeoutExpired:
            # operations that never come back (an OSD that is gone) hold it for ever
            self.notes.append(f"{self.program} did not end within {END_S:.0f} s and was killed")
            process.kill()
            process.wait()
        if self._reader is not None:
            self._reader.join(timeout=10)
        if process.stderr is not None:
            self._complaints.extend(line for line in process.stderr.read().splitlines() if line.strip())
            process.stderr.close()

    def last_words(self) -> str:
        """Its last complaint."""
        return self._complaints[-1] if self._complaints else "no message"

    def complain(self, line: str) -> None:
        """Remember a line that is no figure."""
        if line.strip():
            self._complaints.append(line.strip())

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None  # noqa: S101 - opened with a pipe by popen
        for line in process.stdout:
            self.collect(line)


class Fio(ClientProcess):
    """fio with its rbd engine: closed loops, and open ones that drain. It prints its histograms once a second."""

    program = "fio"

    def __init__(self, lab: LabUnderLoad, arguments: Sequence[str]) -> None:
        super().__init__(lab)
        self._arguments = list(arguments)
        self._lines: List[str] = []
        self._snapshots: Deque[Snapshot] = deque(maxlen=7200)

    def command(self) -> List[str]:
        """Its arguments are the whole of it."""
        return ["fio", *self._arguments]

    def collect(self, line: str) -> None:
        """Each print begins with a line `{` and ends with a line `}`."""
        if line == "{\n":
            self._lines = [line]
        elif self._lines:
            self._lines.append(line)
        else:
            self.complain(line)
        if line == "}\n" and self._lines:
            with suppress(ValueError, KeyError, IndexError):
                self._snapshots.append(snapshot_of(json.loads("".join(self._lines))))
            self._lines = []

    def interval(self, start: float, end: float, slow: Sequence[Stretch] = ()) -> Optional[LatencyInterval]:
        """Between the prints nearest to the borders."""
        return interval_between(list(self._snapshots), start, end)

    def whole(self, slow: Sequence[Stretch] = ()) -> Optional[LatencyInterval]:
        """From the first print that is remembered to the last."""
        prints = list(self._snapshots)
        return interval_between(prints, prints[0].at, prints[-1].at) if prints else None

    def answered(self) -> int:
        """As of its last print."""
        last = self.last()
        return last.read.count + last.write.count

    def last(self) -> Snapshot:
        """Its last print."""
        return self._snapshots[-1] if self._snapshots else Snapshot.empty()


class OpenLoop(ClientProcess):
    """`open_loop.py`: every operation at its intended time. It prints each answer, so that any window is exact."""

    program = "the open-loop client"
    kept = 2_000_000
    """Answers that are remembered; the oldest half goes when there are more."""

    def __init__(self, lab: LabUnderLoad, plan: Dict[str, Any]) -> None:
        super().__init__(lab)
        self.plan = plan
        self.waited = 0
        self.late_ms = 0.0
        self._ready, self._changed = threading.Event(), threading.Condition()
        self._began: Optional[float] = None
        self._forgotten: Optional[int] = None
        self._until = -1
        self._at_us, self._latency_us, self._reads = array("q"), array("q"), array("b")
        self._before = Snapshot.empty()

    def command(self) -> List[str]:
        """The program's text, so that nothing has to be installed in the lab."""
        return ["python3", "-c", _OPEN_LOOP.read_text(encoding="utf-8"), str(self._lab.conf), json.dumps(self.plan)]

    def start(self) -> None:
        """Wait until it has opened the image, so that every run begins at the same distance from here."""
        super().start()
        process = self._process
        assert process is not None  # noqa: S101 - started above
        until = time.monotonic() + READY_S
        while not self._ready.wait(0.02):
            self.check()
            if time.monotonic() > until:
                self.end()
                raise LoadFailed(f"{self.program} did not begin within {READY_S:.0f} s: {self.last_words()}")
        assert process.stdin is not None  # noqa: S101 - opened with a pipe by popen
        try:
            process.stdin.write("begin\n")
            process.stdin.flush()
        except OSError as error:
            self.end()
            raise LoadFailed(f"{self.program} ended: {self.last_words()}") from error

    def collect(self, line: str) -> None:
        """The moment of its beginning, or the answers since the last print."""
        try:
            document = json.loads(line)
            if "ready" in document:
                self._ready.set()
            elif "began" in document:
                self._began = float(document["began"])
            else:
                self._take(document)
        except (ValueError, KeyError, TypeError):
            self.complain(line)

    def interval(self, start: float, end: float, slow: Sequence[Stretch] = ()) -> Optional[LatencyInterval]:
        """Exactly what was answered between the borders; waits for the print that holds the last answer."""
        with self._changed:
            if self._began is None:
                return None
            first, behind = (round((border - self._began) * 1e6) for border in (start, end))
            while self._until < behind and self._process is not None and self._process.poll() is None:
                if not self._changed.wait(2.0):
                    break
            # what is missing at either end would be taken for a pause of the clients
            if (
                self._until < behind - SLACK_US
                or first < (-SLACK_US if self._forgotten is None else self._forgotten)
                or behind <= max(first, 0)
            ):
                return None
            return self._between(max(first, 0), min(behind, self._until), slow)

    def whole(self, slow: Sequence[Stretch] = ()) -> Optional[LatencyInterval]:
        """All answers that are remembered."""
        with self._changed:
            return self._between(self._forgotten or 0, self._until, slow) if self._until > 0 else None

    def answered(self) -> int:
        """As of its last print; cheap, however long it has run."""
        with self._changed:
            return self._before.read.count + self._before.write.count + len(self._at_us)

    def last(self) -> Snapshot:
        """Since the start, what is forgotten included; in steps of 1.6%."""
        with self._changed:
            whole = self._between(self._forgotten or 0, self._until)
            at = (self._began or 0.0) + max(self._until, 0) / 1e6
            read, write = (kind.stepped() for kind in (whole.read, whole.write))
            return Snapshot(at, self._before.read.plus(read), self._before.write.plus(write))

    def _take(self, document: Dict[str, Any]) -> None:
        at, latency = document["at_us"], document["latency_us"]
        read = array("b", bytes(len(at)))
        for number in document["reads"]:
            read[number] = 1
        with self._changed:
            if len(self._at_us) > self.kept:
                self._forget()
            self._at_us.extend(at)
            self._latency_us.extend(latency)
            self._reads.extend(read)
            self._until = int(document["until_us"])
            self.waited = int(document["waited"])
            self.late_ms = document["late_us"] / max(1, document["issued"]) / 1e3
            self._changed.notify_all()

    def _forget(self) -> None:
        half = len(self._at_us) // 2
        forgotten = self._between(self._forgotten or 0, self._at_us[half])
        read, write = forgotten.read.stepped(), forgotten.write.stepped()
        self._before = Snapshot(0.0, self._before.read.plus(read), self._before.write.plus(write))
        self._forgotten = self._at_us[half]
        first = bisect_left(self._at_us, self._forgotten)
        for values in (self._at_us, self._latency_us, self._reads):
            del values[:first]

    def _between(self, first: int, behind: int, slow: Sequence[Stretch] = ()) -> LatencyInterval:
        low, high = bisect_left(self._at_us, first), bisect_left(self._at_us, behind)
        latencies, reads = self._latency_us[low:high], self._reads[low:high]
        timed = self._timed(low, high, slow)
        kinds = [
            [1000 * latency for latency, read, counts in zip(latencies, reads, timed) if counts and read == kind]
            for kind in (1, 0)
        ]
        read, write = (Latencies(len(kind), sum(kind) / 1e6, dict(Counter(kind))) for kind in kinds)
        left = [sum(reads) - read.count, len(reads) - sum(reads) - write.count]
        return LatencyInterval(max(behind - first, 1) / 1e6, read, write, *left)

    def _timed(self, low: int, high: int, slow: Sequence[Stretch]) -> Sequence[bool]:
        """Of each answer, whether its operation was due outside those stretches. All where few would be left."""
        began = self._began or 0.0
        starts = [1e6 * (stretch.start - began) for stretch in slow]
        # after all of them: before the first
        ends = [*(1e6 * (stretch.end - began) + DRAIN_US for stretch in slow), -math.inf]
        due = (at - latency for at, latency in zip(self._at_us[low:high], self._latency_us[low:high]))
        timed = [at >= ends[bisect_right(starts, at) - 1] for at in due]
        return timed if 2 * sum(timed) >= len(timed) else [True] * len(timed)


def popen(lab: LabUnderLoad, command: Sequence[str]) -> subprocess.Popen[str]:
    """Start a program inside the lab. Raises LoadFailed."""
    try:
        # its own session, so that Ctrl-C comes to us alone and we end it in order
        return subprocess.Popen(
            lab.argv(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
    except OSError as error:
        raise LoadFailed(f"{command[0]} could not be started: {error}") from error
