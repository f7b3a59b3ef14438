"""Runs inside a lab, under the lab's own Python: clients that offer a rate and wait for nobody.

Started by `client_process.py` as text (`python3 -c`), so it stands alone: standard library and Ceph's bindings only.
Every operation has an intended time, drawn before anything is answered; its latency counts from there. The same seed
gives the same times, kinds and offsets, whatever the cluster does. Standard input: one line to begin, its end to end.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
import threading
import time
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

PRINT_S = 0.25
LEAD_S = 0.02
"""From the line to begin until the first arrival can be."""

UNANSWERED_S = 10.0
"""How long operations that are under way are waited for at the end."""

SWITCH_S = 0.0002
"""How long a thread may hold the interpreter while another one wants it: an answer is stamped by a thread of librbd."""


PRIORITY = -10


class Arrival(NamedTuple):
    """One operation: when, in seconds after the beginning, and what."""

    at: float
    read: bool
    offset: int


def arrivals(plan: Dict[str, Any]) -> Iterator[Arrival]:
    """All jobs' operations in their order, without end: Poisson, with one generator for everything."""
    generator = random.Random(plan["seed"])  # noqa: S311 - repeats on purpose
    blocks = plan["image_bytes"] // plan["block_bytes"]
    jobs = plan["jobs"]
    # sequential jobs begin at equal distances
    cursors = [blocks * job // jobs for job in range(jobs)]
    at = 0.0
    while True:
        at += generator.expovariate(plan["rate"])
        read = generator.random() < plan["read_share"]
        job = generator.randrange(jobs)
        block = generator.randrange(blocks)
        if plan["sequential"]:
            block = cursors[job]
            cursors[job] = (block + 1) % blocks
        yield Arrival(at, read, block * plan["block_bytes"])


class LatencyRecorder:
    """What was answered since the last print, in the order of the answers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._done: List[Tuple[float, float, bool]] = []
        self.failure: Optional[int] = None
        self.began = 0.0
        self.waited = 0
        self.issued = 0
        self.late_s = 0.0

    def answered(self, due: float, read: bool, code: int) -> None:
        """An operation came back."""
        if code < 0 and self.failure is None:
            self.failure = code
        with self._lock:
            # stamped under the lock: a print holds everything that was answered before its time, and nothing else
            now = time.monotonic()
            self._done.append((now, now - due, read))

    def late(self, seconds: float) -> None:
        """An operation was handed over so late, though there was a free place for it."""
        self.issued += 1
        self.late_s += seconds

    def taken(self) -> Dict[str, Any]:
        """One print: microseconds after the beginning of each answer, its latency, and whether it was a read."""
        with self._lock:
            until = time.monotonic()
            done, self._done = self._done, []
        return {
            "until_us": round((until - self.began) * 1e6),
            "at_us": [round((at - self.began) * 1e6) for at, _, _ in done],
            "latency_us": [round(latency * 1e6) for _, latency, _ in done],
            "reads": [number for number, entry in enumerate(done) if entry[2]],
            "waited": self.waited,
            "issued": self.issued,
            "late_us": round(self.late_s * 1e6),
        }


class Null:
    """Answers at once: in the place of an image, it shows this program's own error."""

    def aio_read(self, offset: int, length: int, done: Callable[..., None]) -> None:
        """Nothing is read."""
        done(self, b"")

    def aio_write(self, data: bytes, offset: int, done: Callable[..., None]) -> None:
        """Nothing is written."""
        done(self)

    def get_return_value(self) -> int:
        """Success."""
        return 0


@contextlib.contextmanager
def opened(conf: str, plan: Dict[str, Any]) -> Iterator[Any]:
    """The image; closed in order, because a watcher that is left behind holds it for half a minute."""
    if plan.get("null"):
        yield Null()
        return
    import rados  # the lab's own; not there for the null image
    import rbd

    cluster = rados.Rados(conffile=conf, rados_id="admin")
    cluster.connect(timeout=30)
    with cluster.open_ioctx(plan["pool"]) as context, rbd.Image(context, plan["image"]) as image:
        yield image


def issue(
    image: Any, plan: Dict[str, Any], recorder: LatencyRecorder, free: threading.Semaphore, end: threading.Event
) -> None:
    """Hand over each operation at its time, or as soon after as there is a free place; until `end`."""
    data, length = os.urandom(plan["block_bytes"]), plan["block_bytes"]

    def answer_to(due: float, read: bool) -> Callable[..., None]:
        def done(completion: Any, _: Any = None) -> None:
            recorder.answered(due, read, completion.get_return_value())
            free.release()

        return done

    for arrival in arrivals(plan):
        due_at = recorder.began + arrival.at
        delay = due_at - time.monotonic()
        if end.wait(delay) if delay > 0 else end.is_set():
            return
        if free.acquire(blocking=False):
            recorder.late(time.monotonic() - due_at)
        else:
            recorder.waited += 1
            while not free.acquire(timeout=0.5):
                if end.is_set():
                    return
        done = answer_to(due_at, arrival.read)
        if arrival.read:
            image.aio_read(arrival.offset, length, done)
        else:
            image.aio_write(data, arrival.offset, done)


def all_free(free: threading.Semaphore, depth: int, seconds: float) -> bool:
    """Whether every operation was answered in time."""
    until = time.monotonic() + seconds
    return all(free.acquire(timeout=max(0.0, until - time.monotonic())) for _ in range(depth))


def show(document: Dict[str, Any]) -> None:
    """One line."""
    sys.stdout.write(json.dumps(document, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def run(conf: str, plan: Dict[str, Any]) -> int:
    """Exit code: 1 where an operation failed or was never answered."""
    end, recorder, free = threading.Event(), LatencyRecorder(), threading.Semaphore(plan["depth"])

    def print_now_and_then() -> None:
        while not end.wait(PRINT_S):
            show(recorder.taken())
            if recorder.failure is not None:
                end.set()

    def listen() -> None:
        sys.stdin.read()
        end.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: end.set())
    sys.setswitchinterval(SWITCH_S)
    with contextlib.suppress(OSError):
        # a real cluster's clients have processors of their own
        os.setpriority(os.PRIO_PROCESS, 0, PRIORITY)
    with opened(conf, plan) as image:
        show({"ready": True})
        if not sys.stdin.readline():
            return 0
        recorder.began = time.monotonic() + LEAD_S
        show({"began": time.time() + LEAD_S})
        for thread in (print_now_and_then, listen):
            threading.Thread(target=thread, daemon=True).start()
        issue(image, plan, recorder, free, end)
        all_answered = all_free(free, plan["depth"], UNANSWERED_S)
        show(recorder.taken())
        if not all_answered:
            # closing the image would wait for ever
            sys.stderr.write("operations were not answered within 10 s\n")
            sys.stderr.flush()
            os._exit(1)
    if recorder.failure is not None:
        sys.stderr.write(f"an operation failed: {os.strerror(-recorder.failure)}\n")
        return 1
    return 0


if __name__ == "__main__":
    CODE = run(sys.argv[1], json.loads(sys.argv[2]))
    sys.stdout.flush()
    sys.stderr.flush()
    # librados' own shutting down may wait for answers that never come
    os._exit(CODE)
