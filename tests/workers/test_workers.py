"""What holds wherever calls are carried out."""

from __future__ import annotations

import os
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple

import dask
import distributed
import pytest
from worker_calls import (
    breaks,
    cannot_be_sent,
    double,
    drawn,
    is_known_by_identity,
    kills_its_first_worker,
    kills_its_worker,
    refuses,
    waits,
)

from ceph_tuner.core.knobs.releases import TENTACLE
from ceph_tuner.workers import CallFailure, CallMessage, CallResult, CallStart, Event, WorkerLoss, Workers
from ceph_tuner.workers.dask_workers import DaskWorkers
from ceph_tuner.workers.process_workers import ProcessWorkers

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("test_workers")]

Place = Callable[[], Workers]


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """A cluster of two worker processes on this machine, which fails a call with the first worker that it loses."""
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0, "distributed.nanny.environ.OMP_NUM_THREADS": 1}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", host="127.0.0.1", silence_logs=50
        ) as cluster,
    ):
        yield cluster.scheduler_address


@pytest.fixture(params=["processes", "dask"])
def place(request: pytest.FixtureRequest) -> Place:
    if request.param == "processes":
        return lambda: ProcessWorkers(2)
    address = request.getfixturevalue("scheduler")
    return lambda: DaskWorkers(address, insecure=True)


def carried_out(place: Place, *calls: Tuple[str, Any, Any]) -> Tuple[Dict[str, Any], List[Event]]:
    """Answers and reasons by key, and everything that happened."""
    found: Dict[str, Any] = {}
    events = []
    with place() as workers:
        for call in calls:
            workers.start(*call)
        for event in workers.events():
            events.append(event)
            if isinstance(event, (CallResult, CallFailure)):
                assert event.key not in found
                found[event.key] = event.result if isinstance(event, CallResult) else event.reason
    return found, events


def test_every_call_answers_once_and_what_it_says_meanwhile_is_heard(place: Place) -> None:
    found, events = carried_out(place, *((str(number), double, number) for number in range(8)))
    assert found == {str(number): 2 * number for number in range(8)}
    for number in range(8):
        own = [event for event in events if event.key == str(number)]
        assert [type(event) for event in own] == [CallStart, CallMessage, CallResult]
        assert isinstance(own[1], CallMessage)
        assert own[1].message == {"half": number}


def test_a_call_may_be_started_because_of_another_one(place: Place) -> None:
    found = []
    with place() as workers:
        workers.start("0", double, 1)
        for event in workers.events():
            if isinstance(event, CallResult):
                found.append(event.result)
                if len(found) < 4:
                    workers.start(str(len(found)), double, event.result)
    assert found == [2, 4, 8, 16]


def test_what_raises_is_given_up_with_its_reason_and_the_others_go_on(place: Place) -> None:
    found, _ = carried_out(
        place, ("r", refuses, "five"), ("b", breaks, "x"), ("c", cannot_be_sent, 1), ("d", double, 4)
    )
    assert found["r"] == "slo.yaml:4: found five, expected something else"
    assert found["b"] == "KeyError: 'x'"
    assert "pickle" in found["c"] or "no result: a lock" in found["c"]
    assert found["d"] == 8


def test_a_lost_worker_costs_only_its_call_time(place: Place, tmp_path: Path) -> None:
    calls = [(str(seed), drawn, seed) for seed in range(6)]
    undisturbed, _ = carried_out(place, *calls)
    found, events = carried_out(place, *calls[:3], ("k", kills_its_first_worker, str(tmp_path / "k")), *calls[3:])
    assert found.pop("k") == 7
    assert found == undisturbed
    assert "k" in {event.key for event in events if isinstance(event, WorkerLoss)}


def test_what_brings_down_every_worker_is_given_up_and_nothing_else(place: Place) -> None:
    calls = [(str(number), double, number) for number in range(5)]
    found, _ = carried_out(place, *calls[:2], ("poison", kills_its_worker, None), *calls[2:])
    assert "out of memory?" in found.pop("poison")
    assert found == {str(number): 2 * number for number in range(5)}


def test_leaving_stops_what_is_under_way(place: Place) -> None:
    with place() as workers:
        workers.start("w", waits, "")
        with closing(workers.events()) as events:  # type: ignore[type-var]
            pid = next(event.message["pid"] for event in events if isinstance(event, CallMessage))
    # Dask's worker itself goes on, without the call
    if isinstance(workers, ProcessWorkers):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    else:
        found, _ = carried_out(place, *((str(number), double, number) for number in range(4)))
        assert len(found) == 4
        with place() as workers:
            client = workers._client  # type: ignore[attr-defined]
            for _ in range(100):
                if not any(client.run(lambda dask_worker: dask_worker.state.executing_count).values()):
                    return
                time.sleep(0.1)
            pytest.fail("a call that nobody waits for goes on")


def test_the_answers_are_the_same_everywhere(scheduler: str) -> None:
    calls = [(str(seed), drawn, seed) for seed in range(5)]
    alone, _ = carried_out(lambda: ProcessWorkers(1), *calls)
    assert carried_out(lambda: ProcessWorkers(2), *calls)[0] == alone
    assert carried_out(lambda: DaskWorkers(scheduler, insecure=True), *calls)[0] == alone
    # and as in this process, whatever its linear algebra does at the time
    assert len(set(alone.values())) == 5


def test_a_release_is_the_one_object_of_there(place: Place) -> None:
    assert carried_out(place, ("t", is_known_by_identity, TENTACLE))[0] == {"t": True}


def test_a_worker_that_is_killed_by_somebody_else_is_replaced() -> None:
    with ProcessWorkers(1) as workers:
        workers.start("first", waits, "")
        events = workers.events()
        pid = next(event.message["pid"] for event in events if isinstance(event, CallMessage))
        os.kill(pid, 9)
        lost = next(event for event in events if isinstance(event, WorkerLoss))
        assert "SIGKILL" in lost.reason
        again = next(event.message["pid"] for event in events if isinstance(event, CallMessage))
        assert again != pid
        with suppress(AttributeError):
            events.close()  # type: ignore[attr-defined]
