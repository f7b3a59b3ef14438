"""The open-loop client: what it offers, when, and what is made of its prints. Its image answers at once."""

from __future__ import annotations

import itertools
import json
import sys
import time
from typing import Any, Dict, Iterator, List, Sequence

import pytest
from host_lab import HostLab

from ceph_lab.loads.client import ClientLoad
from ceph_lab.loads.client_process import OpenLoop
from ceph_lab.loads.client_work import ClientWork
from ceph_lab.loads.open_loop import Arrival, arrivals
from ceph_lab.loads.session import LabSession
from ceph_tuner.core.errors import LoadFailed


def plan(**changes: Any) -> Dict[str, Any]:
    return {**ClientWork(rate=400, read_share=0.25, jobs=2, image_bytes=1 << 20).plan("pool"), "null": True, **changes}


def first(count: int, **changes: Any) -> List[Arrival]:
    return list(itertools.islice(arrivals(plan(**changes)), count))


class ProgramLab(HostLab):
    """Runs what it is given, with the host's Python."""

    def __init__(self) -> None:
        super().__init__("")

    def argv(self, command: Sequence[str]) -> List[str]:
        return [sys.executable, *command[1:]]


@pytest.fixture
def client() -> Iterator[OpenLoop]:
    process = OpenLoop(ProgramLab(), plan())
    yield process
    process.end()


def test_the_same_seed_offers_the_same_operations_and_another_one_others() -> None:
    assert first(500) == first(500)
    assert first(500) != first(500, seed=2)


def test_arrivals_are_poisson_of_the_rate_and_a_share_of_them_reads() -> None:
    found = first(20_000)
    gaps = [later.at - earlier.at for earlier, later in zip(found, found[1:])]
    mean = sum(gaps) / len(gaps)
    assert mean == pytest.approx(1 / 400, rel=0.03)
    # of an exponential distribution, the deviation is the mean
    assert (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5 == pytest.approx(mean, rel=0.05)
    assert sum(arrival.read for arrival in found) == pytest.approx(5_000, rel=0.05)


def test_random_offsets_reach_every_block_and_nothing_beyond_the_image() -> None:
    assert {arrival.offset for arrival in first(5_000)} == {4096 * block for block in range(256)}


def test_sequential_jobs_begin_apart_and_go_on_from_the_images_end_to_its_beginning() -> None:
    offsets = [arrival.offset // 4096 for arrival in first(700, sequential=True)]
    low = [offset for offset in offsets if offset < 128]
    assert sorted(set(offsets)) == list(range(256))
    assert low[:3] == [0, 1, 2]
    assert offsets.index(128) < 20
    assert first(3, sequential=True, jobs=1)[2].offset == 2 * 4096


def test_an_interval_holds_what_was_answered_within_it_and_they_add_up(client: OpenLoop) -> None:
    client.start()
    time.sleep(0.3)
    start = time.time()
    time.sleep(1.0)
    middle, end = start + 0.37, time.time()
    parts = [client.interval(low, high) for low, high in ((start, middle), (middle, end), (start, end))]
    assert all(part is not None for part in parts)
    one, other, both = (part.read.plus(part.write) for part in parts if part is not None)
    assert one.count + other.count == both.count
    assert both.count == pytest.approx(400, abs=100)
    client.end()
    whole, last = client.whole(), client.last()
    assert whole is not None
    assert last.read.count + last.write.count == whole.read.count + whole.write.count > both.count
    assert last.read.count > 0


def test_its_own_error_is_small(client: OpenLoop) -> None:
    client.start()
    start = time.time()
    time.sleep(1.5)
    interval = client.interval(start, start + 1.4)
    assert interval is not None
    # the image answers at once: what remains is how late the operation was handed over; a busy machine adds to it
    median = interval.write.quantile_ms(0.5)
    assert median is not None
    assert median < 2
    assert client.waited == 0


SLOW = """
import sys
text = sys.argv[1]
names = {"__name__": "slow"}
exec(text, names)
import json, threading
class Slow:
    def get_return_value(self): return 0
    def aio_write(self, data, offset, done): threading.Timer(0.5, done, (self,)).start()
names["Null"] = Slow
raise SystemExit(names["run"]("", json.loads(sys.argv[3])))
"""


class SlowLab(HostLab):
    """The program with an image that takes half a second."""

    def argv(self, command: Sequence[str]) -> List[str]:
        return [sys.executable, "-c", SLOW, *command[2:]]


def test_the_wait_for_a_free_place_is_part_of_the_latency() -> None:
    slow = OpenLoop(SlowLab(""), plan(rate=100, read_share=0.0, depth=10))
    slow.start()
    start = time.time()
    time.sleep(3)
    interval = slow.interval(start, time.time())
    slow.end()
    assert interval is not None
    # 10 places of half a second serve 20 a second of the 100: after 3 s, the next one has waited for more than two
    assert interval.write.count == pytest.approx(50, abs=20)
    longest = interval.write.quantile_ms(1.0)
    assert longest is not None
    assert longest > 1500
    assert slow.waited > 20
    load = ClientLoad(HostLab(""), LabSession(HostLab("")), ClientWork(rate=100))
    load._process = slow
    measures = load.measure(start, start + 2.5)
    assert "had to wait for a free place, which their latency holds" in load.remarks(measures, 2.5)[0]


def test_a_stretch_before_the_beginning_or_after_the_end_is_not_measured(client: OpenLoop) -> None:
    assert client.interval(0, 1) is None
    client.start()
    time.sleep(0.5)
    now = time.time()
    assert client.interval(now - 100, now - 90) is None
    client.end()
    assert client.interval(now, now + 10) is None


def test_a_client_that_cannot_begin_is_named_with_its_last_words() -> None:
    broken = OpenLoop(HostLab("import sys; sys.exit('no module named rbd')"), plan())
    with pytest.raises(LoadFailed, match="the open-loop client ended with 1: no module named rbd"):
        broken.start()


def test_it_ends_when_its_input_ends(client: OpenLoop) -> None:
    client.start()
    process = client._process
    assert process is not None
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(timeout=5) == 0


def test_what_is_forgotten_still_counts_in_the_end() -> None:
    client = OpenLoop(ProgramLab(), plan())
    client.kept = 100
    client.collect(json.dumps({"began": 1000.0}))
    figures = {"reads": [0], "waited": 0, "issued": 1, "late_us": 0}
    for second in range(10):
        at = [second * 1_000_000 + 20_000 * number for number in range(50)]
        latency = [1000 * (number + 1) for number in range(50)]
        client.collect(
            json.dumps({"until_us": (second + 1) * 1_000_000, "at_us": at, "latency_us": latency, **figures})
        )
    last = client.last()
    assert (last.read.count, last.write.count) == (10, 490)
    assert client.answered() == 500
    assert client.interval(1000.5, 1001.5) is None
    kept = client.interval(1009.0, 1010.0)
    assert kept is not None
    assert kept.read.count + kept.write.count == 50
