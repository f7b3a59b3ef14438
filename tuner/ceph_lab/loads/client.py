"""Client work on an RBD image, cache off, so that the whole path from librbd on is the real one.

Open loop (a rate): arrivals are Poisson and wait for nobody, as independent clients do; `open_loop.py` issues them,
and latency counts from the intended arrival. fio can offer a rate too, but waits for all that is under way whenever it
pauses. Closed loop (no rate): fio keeps as many operations on their way as the queue is deep.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ceph_lab.loads import LabUnderLoad, LoadProgress, LoadResult
from ceph_lab.loads.client_process import ClientProcess, Fio, OpenLoop, popen
from ceph_lab.loads.client_work import FIO, IMAGE, ClientWork, fio_engine
from ceph_lab.loads.latency import LatencyInterval
from ceph_lab.loads.layout import PoolLayout, layout_of
from ceph_lab.loads.pools import LoadPool, Tell, silent
from ceph_lab.loads.processor_speed import ProcessorSpeed, Stretch
from ceph_lab.loads.session import LabSession
from ceph_lab.loads.trace import batches, measure_of
from ceph_tuner.core.errors import CommandFailed, LoadFailed
from ceph_tuner.core.measure.sample import Measure

REPLICAS = 3
PGS = 32
HEADER_PGS = 8
LATE_SHARE = 0.05
"""Of the mean latency, how much this machine's own lateness may be without a word."""
SLOW_SHARE = 0.005
"""Of a window, how long this machine's processors may be slow without a word."""


class ClientLoad:
    """Clients, from `start` until `stop`."""

    name = "client"

    def __init__(
        self,
        lab: LabUnderLoad,
        session: LabSession,
        work: ClientWork,
        tell: Tell = silent,
        layout: Optional[PoolLayout] = None,
    ) -> None:
        self.lab = lab
        self.work = work
        self.tell = tell
        self.session = session
        pool_layout = (layout or layout_of(lab, "", "", REPLICAS)).with_pgs(PGS)
        osds = pool_layout.osds(lab)
        self.pool = LoadPool(session, "client", pool_layout, osds)
        self.headers = self.pool
        if pool_layout.erasure_coded:
            # an image's header has key-value pairs, which erasure-coded pools do not keep
            few = PoolLayout(min(REPLICAS, len(osds)), device_class=pool_layout.device_class, pgs=HEADER_PGS)
            self.headers = LoadPool(session, f"client-headers-{pool_layout.name}", few, osds)
        self.pools = tuple(dict.fromkeys((self.headers, self.pool)))
        self._process: Optional[ClientProcess] = None
        self._started: Optional[float] = None
        self._processors = ProcessorSpeed()
        self._slow: Tuple[Stretch, ...] = ()
        self._untimed = 0

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

    def stores(self) -> Dict[int, float]:
        """Bytes that the image takes of each OSD."""
        return self.pool.spread(float(self.work.image_bytes))

    def hold(self) -> None:
        """Nothing goes on without clients."""

    def prepare(self) -> None:
        """Create the image and write it whole, once: reads hit data, writes are overwrites."""
        # each of them, also where the first is new
        new = [pool.ensure() for pool in self.pools]
        if not any(new) and self._is_full():
            return
        for pool in self.pools:
            self.session.mon("osd pool application enable", pool=pool.name, app="rbd", yes_i_really_mean_it=True)
        with contextlib.suppress(CommandFailed, LoadFailed):
            self.lab.run(["rbd", "rm", "--no-progress", self._image], timeout=300)
        # layering only: with the exclusive lock, jobs on one image take turns
        size = ["--size", f"{-(-self.work.image_bytes >> 20)}M", "--object-size", f"{self.work.object_bytes}B"]
        create = ["rbd", "create", self._image, *size]
        data = ["--data-pool", self.pool.name] if self.headers is not self.pool else []
        # the pool is validated by a snapshot that is taken and removed, for which each PG then holds a slot of snaptrim
        self.lab.run([*create, "--image-feature", "layering", "--rbd-validate-pool=false", *data])
        self.tell(f"{self._image}: the image of {self.work.image_bytes >> 20} MiB is written once")
        self._fill(timeout=60 + self.work.image_bytes / 5e6)
        self.lab.run(["rbd", "image-meta", "set", self._image, "filled", self._filled])

    def objects(self) -> List[str]:
        """Names of the image's objects, in the order of their places in it."""
        info = json.loads(self.lab.run(["rbd", "info", self._image, "--format", "json"]))
        return [f"{info['block_name_prefix']}.{number:016x}" for number in range(self.work.objects)]

    def lasts_s(self) -> Optional[float]:
        """Clients never end."""
        return None

    def start(self) -> None:
        """Start the clients; return when they have opened their image."""
        if self._process is not None:
            raise LoadFailed("the client load runs already")
        self._started = time.time()
        if self.work.engine_in_force == FIO:
            self._process = Fio(self.lab, self.work.arguments(self.headers.name))
        else:
            self._process = OpenLoop(self.lab, self.work.plan(self.headers.name))
        self._process.start()
        self._processors.start()

    def observe(self) -> None:
        """Notice when they have died. Raises LoadFailed with their last words."""
        if self._process is not None:
            self._process.check()

    def progress(self) -> LoadProgress:
        """Operations and bytes; clients never end."""
        count = self._process.answered() if self._process is not None else 0
        return LoadProgress(float(count), float(count * self.work.block_bytes), None, None)

    def idle_since(self) -> Optional[float]:
        """Never."""
        return None

    def measure(self, start: float, end: float) -> Dict[str, Measure]:
        """Latencies and rates of that stretch."""
        self._slow = self._processors.slow(start, end)
        whole = self._interval(start, end)
        if whole is None:
            return {}
        self._untimed = whole.untimed
        values = whole.metrics(self.work.block_bytes)
        borders = batches(start, end)
        intervals = [self._interval(low, high) for low, high in zip(borders, borders[1:])]
        parts = [interval.metrics(self.work.block_bytes) for interval in intervals if interval is not None]
        metrics = {}
        for name in self.metrics:
            if name in values:
                metrics[name] = measure_of(values[name], [part[name] for part in parts if name in part])
        return metrics

    def remarks(self, measures: Mapping[str, Measure], seconds: float) -> Tuple[str, ...]:
        """Whether the clients were served what they offered, and whether this machine had time for them."""
        offered_rate, rate, mean = self.work.rate, measures.get("client.iops"), measures.get("client.mean_ms")
        sentences = []
        ours = self._process if isinstance(self._process, OpenLoop) else None
        # arrivals are Poisson: four standard deviations are no chance
        if (
            offered_rate
            and rate
            and rate.mean < min(0.95 * offered_rate, offered_rate - 4 * (offered_rate / seconds) ** 0.5)
        ):
            wait = (
                f"{ours.waited} of them had to wait for a free place, which their latency holds"
                if ours
                else "the wait of those that could not begin is in no latency"
            )
            sentences.append(f"clients offered {offered_rate:.0f} IOPS and were served {rate.mean:.0f}: {wait}")
        if ours and mean and ours.late_ms > LATE_SHARE * mean.mean:
            sentences.append(
                f"this machine is busy: clients began {ours.late_ms:.1f} ms late on the mean, which is in their latency"
            )
        slow_s = sum(stretch.end - stretch.start for stretch in self._slow)
        if slow_s > SLOW_SHARE * seconds:
            left = f"{self._untimed} operations that were due then are in no latency"
            sentences.append(
                f"this machine's processors were slow for {slow_s:.1f} s of {seconds:.0f} s: "
                f"{left if self._untimed else 'the latencies hold that'}"
            )
        return tuple(sentences)

    def stop(self) -> LoadResult:
        """End the clients, who give their last figures."""
        start, self._started = self._started, None
        process = self._process
        if process is None or start is None:
            return LoadResult(self.name, {}, {})
        self._end()
        last = process.last()
        slow = self._processors.slow(start, last.at)
        whole = process.whole(slow)
        if whole is None:
            raise LoadFailed(f"{process.program} printed no figures: {process.last_words()}")
        evidence: Dict[str, Any] = {"started": start, "ended": last.at, "last": last.to_dict()}
        evidence["slow"] = [list(stretch) for stretch in slow]
        if isinstance(process, OpenLoop):
            evidence.update(plan=process.plan, waited=process.waited, late_ms=process.late_ms)
        else:
            evidence["fio"] = " ".join(process.command()[1:])
        values = whole.metrics(self.work.block_bytes)
        metrics = {name: measure_of(values[name], []) for name in self.metrics if name in values}
        return LoadResult(self.name, metrics, evidence, tuple(process.notes))

    def cleanup(self) -> None:
        """Remove the image with its pools."""
        self._end()
        self._started = None
        for pool in self.pools:
            pool.remove()

    @property
    def _image(self) -> str:
        return f"{self.headers.name}/{IMAGE}"

    @property
    def _filled(self) -> str:
        """What is kept with an image that was written whole: how large it and its objects are."""
        return f"{self.work.image_bytes} in {self.work.object_bytes}"

    def _interval(self, start: float, end: float) -> Optional[LatencyInterval]:
        if self._process is None:
            return None
        return self._process.interval(start, end, self._slow)

    def _is_full(self) -> bool:
        try:
            text = self.lab.run(["rbd", "image-meta", "get", self._image, "filled"])
        except (CommandFailed, LoadFailed):
            return False
        return text.strip() == self._filled

    def _fill(self, timeout: float) -> None:
        engine = fio_engine(self.headers.name)
        fill = [*engine, "--name=fill", "--rw=write", "--bs=4M", "--iodepth=8", "--output-format=json"]
        process = popen(self.lab, ["fio", *fill])
        try:
            _, errors = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired as error:
            raise LoadFailed(f"fio did not write the image within {timeout:.0f} s") from error
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        if process.returncode:
            lines = [line.strip() for line in errors.splitlines() if line.strip()]
            raise LoadFailed(f"fio ended with {process.returncode}: {lines[-1] if lines else 'no message'}")

    def _end(self) -> None:
        if self._process is not None:
            process, self._process = self._process, None
            process.end()
            self._processors.stop()
