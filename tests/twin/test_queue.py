"""The scheduler answers as Ceph's own queue did."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_dmclock import PlainDmClock

from ceph_tuner.core.errors import InputError
from ceph_tuner.twin.queue import DmClockQueue, Later, ServedRequest
from ceph_tuner.twin.replay import replay

TRACES = sorted((Path(__file__).parent.parent / "data" / "dmclock").glob("*.jsonl.gz"))


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name.split(".")[0])
def test_every_pull_of_a_trace_is_answered_as_ceph_answered_it(path: Path) -> None:
    result = replay(path)
    assert result.pulls > 1000
    assert result.mismatches == []


def test_a_planted_difference_is_found(tmp_path: Path) -> None:
    lines = gzip.decompress(TRACES[0].read_bytes()).decode().splitlines()
    number = next(k for k, line in enumerate(lines) if '"phase":"weight"' in line)
    lines[number] = lines[number].replace("weight", "reservation")
    changed = tmp_path / "changed.jsonl"
    changed.write_text("\n".join(lines))
    result = replay(changed)
    assert [m.line for m in result.mismatches] == [number + 1]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "no pull"),
        ("{", "trace.jsonl:1"),
        ('{"kind":"jump"}', "jump"),
        ('{"kind":"add","t":1,"id":1,"class":7,"cost":1}', "trace.jsonl:1"),
        ('{"kind":"add","t":1,"id":1,"class":0,"cost":0}', "cost(=0.0)"),
        ("[1]", "trace.jsonl:1"),
    ],
)
def test_what_is_no_trace_is_refused_with_its_place(tmp_path: Path, text: str, place: str) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        replay(path)
    assert place in str(caught.value)


def test_a_damaged_gzip_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl.gz"
    path.write_bytes(TRACES[0].read_bytes()[:2000])
    with pytest.raises(InputError, match=r"trace\.jsonl\.gz"):
        replay(path)


def queue_with(*classes: tuple) -> DmClockQueue:
    queue = DmClockQueue()
    for class_id, parameters in enumerate(classes):
        queue.set_class(class_id, *parameters)
    return queue


def test_a_due_reservation_goes_before_a_larger_weight() -> None:
    queue = queue_with((0, 100, 0), (1000, 1, 0))
    queue.add(0.0, 1, 0, 10)
    queue.add(0.0, 2, 1, 10)
    assert queue.pull(0.5) == ServedRequest(2, 1, "reservation")
    assert queue.pull(0.5) == ServedRequest(1, 0, "weight")
    assert queue.pull(0.5) is None


def test_a_limit_holds_a_class_back_on_an_idle_server() -> None:
    queue = queue_with((0, 1, 100))
    queue.add(1000.0, 1, 0, 50)
    queue.add(1000.0, 2, 0, 50)
    assert queue.pull(1000.0) == ServedRequest(1, 0, "weight")
    assert queue.pull(1000.1) == Later(1000.5)
    assert queue.pull(1000.5) == ServedRequest(2, 0, "weight")


def test_an_old_class_is_forgotten_and_an_idle_one_starts_level_with_the_others() -> None:
    queue = queue_with((0, 1, 0), (0, 1, 0))
    queue.add(0.0, 1, 0, 1000)
    queue.pull(0.0)
    for minute in range(1, 12):
        queue.add(minute * 60.0, minute + 1, 1, 1)
        queue.pull(minute * 60.0)
        queue.clean(minute * 60.0)
    queue.add(700.0, 99, 0, 5)
    assert queue.pull(700.0) == ServedRequest(99, 0, "weight")
    assert len(queue) == 0


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 10**6), st.floats(0, 0.01)), min_size=1, max_size=60))
def test_every_request_leaves_once_and_in_its_class_s_order(requests: list) -> None:
    queue = queue_with((1e8, 2, 0), (0, 1, 5e8), (1e6, 3, 2e8))
    now = 1000.0
    for number, (class_id, cost, gap) in enumerate(requests):
        now += gap
        queue.add(now, number, class_id, cost)
    served = []
    while len(queue):
        answer = queue.pull(now)
        if isinstance(answer, Later):
            assert answer.future > now
            now = answer.future
        else:
            assert isinstance(answer, ServedRequest)
            served.append(answer)
    assert sorted(answer.id for answer in served) == list(range(len(requests)))
    for class_id in range(3):
        ids = [answer.id for answer in served if answer.class_id == class_id]
        assert ids == sorted(ids)


def test_json_and_times_survive_the_round_trip() -> None:
    events = [json.loads(line) for line in gzip.decompress(TRACES[0].read_bytes()).splitlines()]
    assert all(json.loads(json.dumps(event)) == event for event in events[:200])


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.sampled_from((0.2, 0.5, 0.8)))
def test_whatever_is_set_meanwhile_the_kernel_answers_as_a_plain_queue(seed: int, filling: float) -> None:
    source, now = random.Random(seed), 1000.0
    kernel_queue, plain = DmClockQueue(), PlainDmClock()
    for number in range(300):
        now += source.choice((0.0, 0.0, 0.003, 0.2))
        class_id = source.randrange(3)
        if number < 3 or source.random() < 0.1:
            rates = [source.choice((0.0, 0.0, 1e4, 3e5, 1e6)) for _ in range(2)]
            weight = source.choice((0, 1, 2, 9))
            for queue in (kernel_queue, plain):
                queue.set_class(number if number < 3 else class_id, rates[0], weight, rates[1])
        elif source.random() < filling:
            cost = source.choice((4096.0, 58525.0, 1e6))
            kernel_queue.add(now, number, class_id, cost)
            plain.add(now, number, class_id, cost)
        else:
            answer, expected = kernel_queue.pull(now), plain.pull(now)
            found = answer.future if isinstance(answer, Later) else None if answer is None else tuple(answer)
            assert found == expected


def test_a_reservation_that_comes_while_a_class_waits_counts_from_its_next_empty_queue_on() -> None:
    queue = DmClockQueue()
    queue.set_class(0, 0.0, 1, 0.0)
    for number in range(3):
        queue.add(1000.0, number, 0, 1e5)
    queue.set_class(0, 1e6, 1, 0.0)
    phases = [queue.pull(1000.0 + number) for number in range(3)]
    assert [answer.phase for answer in phases if isinstance(answer, ServedRequest)] == ["weight"] * 3
    queue.add(1010.0, 3, 0, 1e5)
    assert queue.pull(1010.0) == ServedRequest(3, 0, "reservation")
