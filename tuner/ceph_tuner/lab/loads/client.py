"""Client work: fio with its rbd engine inside the lab, so that the whole path from librbd on is the real one.

Open loop (a rate): arrivals are Poisson and do not wait for answers, as independent clients do; fio counts latency from
the moment it hands an operation to librbd, so as long as its queue depth is not used up that is the intended arrival.
A note says when it was. Closed loop (no rate): as many operations as the queue depth are always on their way.

fio prints its histograms (`json+`) once a second; a window is the difference of two prints, to about 1.6% in latency.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Any, Deque, Dict, List, Mapping, Optional, Tuple

from ceph_tuner.errors import CommandFailed, LoadFailed
from ceph_tuner.lab.loads import LabUnderLoad, LoadResult, Progress
from ceph_tuner.lab.loads.latency import Snapshot, snapshot_of, window_between
from ceph_tuner.lab.loads.pools import LoadPool, Tell, silent
from ceph_tuner.lab.loads.session import Session
from ceph_tuner.lab.loads.trace import batches, measure_of
from ceph_tuner.sample import Measure

IMAGE = "fio"
OPEN_LOOP_DEPTH = 256
"""Enough that 250 IOPS may wait for a second each before an arrival has to wait for a free place."""


@dataclass(frozen=True)
class ClientWork:
    """What the clients do. `rate` is operations per second of all jobs together; None: closed loop."""

    rate: Optional[float] = 250.0
    depth: Optional[int] = None
    block_bytes: int = 4096
    read_share: float = 0.0
    jobs: int = 1
    image_bytes: int = 1 << 30
    pool_size: int = 3
    pgs: int = 32
    sequential: bool = False

    def __post_init__(self) -> None:
        if self.rate is not None and not self.rate >= 1:
            raise LoadFailed(f"client rate must be at least 1 per second, got {self.rate:g}", "give another value")
        if not 0 <= self.read_share <= 1:
            raise LoadFailed(
                f"the share of reads must be within 0 and 1, got {self.read_share:g}", "give another value"
            )
        if self.jobs < 1 or self.depth_in_force < 1:
            raise LoadFailed(
                f"jobs and queue depth must be at least 1, got {self.jobs} and {self.depth}", "give another value"
            )
        if not 512 <= self.block_bytes <= self.image_bytes:
            raise LoadFailed(
                f"the block size must be within 512 and the image's size, got {self.block_bytes}", "give another value"
            )

    @property
    def depth_in_force(self) -> int:
        """Queue depth of a job."""
        return self.depth if self.depth is not None else (OPEN_LOOP_DEPTH if self.rate else 16)

    def arguments(self, pool: str) -> List[str]:
        """Command line of fio."""
        kind = "" if self.sequential else "rand"
        pattern = {0.0: f"{kind}write", 1.0: f"{kind}read"}.get(self.read_share, f"{kind}rw")
        found = [
            *_engine(pool),
            "--name=client",
            f"--rw={pattern}",
            f"--bs={self.block_bytes}",
            f"--iodepth={self.depth_in_force}",
            f"--numjobs={self.jobs}",
            "--group_reporting",
            "--randrepeat=0",
            "--norandommap",
            "--time_based",
            "--runtime=100d",
            "--lat_percentiles=1",
            "--clat_percentiles=0",
            "--output-format=json+",
            "--status-interval=1",
            "--eta=never",
        ]
        if pattern.endswith("rw"):
            found.append(f"--rwmixread={round(100 * self.read_share)}")
        if self.rate is not None:
            # with a mix, fio takes one rate for reads and one for writes
            reads = max(1, round(self.rate * self.read_share / self.jobs))
            writes = max(1, round(self.rate * (1 - self.read_share) / self.jobs))
            both = f"{reads},{writes}" if pattern.endswith("rw") else f"{max(1, round(self.rate / self.jobs))}"
            found += [f"--rate_iops={both}", "--rate_process=poisson"]
        return found


class ClientLoad:
    """fio, from `start` until `stop`."""

    name = "client"

    def __init__(self, lab: LabUnderLoad, session: Session, work: ClientWork, tell: Tell = silent) -> None:
        self.lab = lab
        self.work = work
        self.tell = tell
        self.session = session
        self.pool = LoadPool(session, "client", work.pgs, min(work.pool_size, len(lab.osds)))
        self._process: Optional[subprocess.Popen[str]] = None
        self._reader: Optional[threading.Thread] = None
        self._snapshots: Deque[Snapshot] = deque(maxlen=7200)
        self._complaints: Deque[str] = deque(maxlen=5)
        self._started: Optional[float] = None
        self._notes: List[str] = []

    @property
    def metrics(self) -> Tuple[str, ...]:
        """What `measure` can give."""
        values = ("iops", "bytes_s", "mean_ms", "p50_ms", "p95_ms", "p99_ms")
        kinds = [""]
        if self.work.read_share > 0:
            kinds.append("read_")
        if self.work.read_share < 1:
            kinds.append("write_")
        return tuple(f"client.{kind}{value}" for kind in kinds for value in values if not (kind and value == "p50_ms"))

    def hold(self) -> None:
        """Nothing goes on without fio."""

    def prepare(self) -> None:
        """Create the image and write it whole, once: reads hit data, writes are overwrites."""
        new = self.pool.ensure()
        if not new and self._filled():
            return
        place = f"{self.pool.name}/{IMAGE}"
        self.lab.run(["rbd", "pool", "init", self.pool.name])
        with contextlib.suppress(CommandFailed, LoadFailed):
            self.lab.run(["rbd", "rm", "--no-progress", place], timeout=300)
        # layering only: with the exclusive lock, jobs on one image take turns
        megabytes = f"{-(-self.work.image_bytes >> 20)}M"
        self.lab.run(["rbd", "create", place, "--size", megabytes, "--image-feature", "layering"])
        self.tell(f"{place}: the image of {self.work.image_bytes >> 20} MiB is written once")
        fill = [*_engine(self.pool.name), "--name=fill", "--rw=write", "--bs=4M", "--iodepth=8", "--output-format=json"]
        self._run_fio(fill, timeout=60 + self.work.image_bytes / 5e6)
        self.lab.run(["rbd", "image-meta", "set", place, "filled", str(self.work.image_bytes)])

    def start(self) -> None:
        """Start fio; its first print comes after a second."""
        if self._process is not None:
            raise LoadFailed("the client load runs already")
        self._snapshots.clear()
        self._complaints.clear()
        self._notes = []
        self._started = time.time()
        self._process = self._popen(self.work.arguments(self.pool.name))
        self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()

    def observe(self) -> None:
        """Notice when fio has died. Raises LoadFailed with its last words."""
        if self._process is not None and self._process.poll() is not None:
            code, words = self._process.returncode, self._last_words()
            self._end()
            raise LoadFailed(f"fio ended with {code}: {words}")

    def progress(self) -> Progress:
        """Operations and bytes; clients never end."""
        last = self._snapshots[-1] if self._snapshots else Snapshot.empty()
        count = last.read.count + last.write.count
        return Progress(float(count), float(count * self.work.block_bytes), None, None)

    def idle_since(self) -> Optional[float]:
        """Never."""
        return None

    def measure(self, start: float, end: float) -> Dict[str, Measure]:
        """Latencies and rates of that stretch, from the prints nearest to its borders."""
        snapshots = list(self._snapshots)
        whole = window_between(snapshots, start, end, self.work.block_bytes)
        if not whole:
            return {}
        borders = batches(start, end)
        parts = [window_between(snapshots, low, high, self.work.block_bytes) for low, high in zip(borders, borders[1:])]
        found = {}
        for name in self.metrics:
            if name in whole:
                found[name] = measure_of(whole[name], [part[name] for part in parts if name in part])
        return found

    def remarks(self, measures: Mapping[str, Measure], seconds: float) -> Tuple[str, ...]:
        """Whether arrivals had to wait for a free place: their wait is in no latency."""
        offered, served = self.work.rate, measures.get("client.iops")
        if offered is None or served is None:
            return ()
        # arrivals are Poisson: four standard deviations are no chance
        chance = 4 * (offered / seconds) ** 0.5
        if served.mean >= min(0.95 * offered, offered - chance):
            return ()
        return (
            f"clients offered {offered:.0f} IOPS and were served {served.mean:.0f}: "
            "the wait of those that could not begin is in no latency",
        )

    def stop(self) -> LoadResult:
        """SIGINT, on which fio prints its last figures."""
        started, self._started = self._started, None
        if self._process is None or started is None:
            return LoadResult(self.name, {}, {}, tuple(self._notes))
        self._end()
        end = self._snapshots[-1].at if self._snapshots else time.time()
        metrics = self.measure(self._snapshots[0].at, end) if self._snapshots else {}
        if not self._snapshots:
            raise LoadFailed(f"fio printed no figures: {self._last_words()}")
        evidence = {"fio": " ".join(self.work.arguments(self.pool.name)), "started": started, "ended": end}
        return LoadResult(self.name, metrics, {**evidence, "last": self._snapshots[-1].to_dict()}, tuple(self._notes))

    def cleanup(self) -> None:
        """Remove the image with its pool."""
        self._end()
        self._started = None
        self.pool.remove()

    def _filled(self) -> bool:
        try:
            text = self.lab.run(["rbd", "image-meta", "get", f"{self.pool.name}/{IMAGE}", "filled"])
        except (CommandFailed, LoadFailed):
            return False
        return text.strip() == str(self.work.image_bytes)

    def _run_fio(self, arguments: List[str], timeout: float) -> None:
        process = self._popen(arguments)
        try:
            _, errors = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired as error:
            raise LoadFailed(f"fio did not write the image within {timeout:.0f} s") from error
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        if process.returncode:
            raise LoadFailed(f"fio ended with {process.returncode}: {_last_line(errors)}")

    def _popen(self, arguments: List[str]) -> subprocess.Popen[str]:
        try:
            # its own session, so that Ctrl-C comes to us alone and we end fio in order
            return subprocess.Popen(
                self.lab.argv(["fio", *arguments]),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        except OSError as error:
            raise LoadFailed(f"fio could not be started: {error}") from error

    def _read(self, process: subprocess.Popen[str]) -> None:
        """Collect fio's prints: each begins with a line `{` and ends with a line `}`."""
        lines: List[str] = []
        assert process.stdout is not None  # noqa: S101 - opened with a pipe above
        for line in process.stdout:
            if line == "{\n":
                lines = [line]
            elif lines:
                lines.append(line)
            elif line.strip():
                self._complaints.append(line.strip())
            if line == "}\n" and lines:
                with contextlib.suppress(ValueError, KeyError, IndexError):
                    document: Dict[str, Any] = json.loads("".join(lines))
                    self._snapshots.append(snapshot_of(document))
                lines = []

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            # operations that never come back (an OSD that is gone) hold fio for ever
            self._notes.append("fio did not end within 30 s and was killed")
            process.kill()
            process.wait()
        if self._reader is not None:
            self._reader.join(timeout=10)
        if process.stderr is not None:
            self._complaints.extend(line for line in process.stderr.read().splitlines() if line.strip())
            process.stderr.close()

    def _last_words(self) -> str:
        if not self._complaints and self._process is not None and self._process.stderr is not None:
            return _last_line(self._process.stderr.read())
        return self._complaints[-1] if self._complaints else "no message"


def _engine(pool: str) -> List[str]:
    return ["--ioengine=rbd", "--clientname=admin", f"--pool={pool}", f"--rbdname={IMAGE}", "--invalidate=0"]


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"
