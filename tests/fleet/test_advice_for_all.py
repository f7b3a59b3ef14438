"""Searches of a small fleet: wherever they run and whatever happens meanwhile, the answers are the same."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional

import dask
import distributed
import pytest

from ceph_tuner.core.goals.slo import parse_slo
from ceph_tuner.files import cluster_file
from ceph_tuner.fleet.advice import Advice, SearchTask
from ceph_tuner.fleet.advice_for_all import Known, NotKept, advise_all
from ceph_tuner.fleet.answers_folder import AnswersFolder, Nowhere
from ceph_tuner.recommend import SearchEffort
from ceph_tuner.recommend.question import question_of
from ceph_tuner.twin.simulation_pool import warm
from ceph_tuner.workers import CallFailure, CallMessage, CallResult, CallStart, WorkerLoss, Workers
from ceph_tuner.workers.dask_workers import DaskWorkers
from ceph_tuner.workers.process_workers import ProcessWorkers
from monitors import ManualClock

pytestmark = pytest.mark.slow

CLUSTER = """\
schema: 1
release: {release}
osds: 4
osd: {{drive: {{iops: 80 kIOPS, bandwidth: 1 GB/s, latency: 30 us}}, throttle: 256 KiB}}
pools: [{{name: rbd, pgs: 64}}]
clients: [{{pool: rbd, rate: {rate}, depth: 256}}]
background: {{recovery: [{{pool: rbd, objects: 400 k}}]}}
"""
SLO = parse_slo({"name": "wanted", "objectives": ["client.p95_ms <= 0.8 * baseline", "recovery.finish_s <= 12 h"]})
SCRUBS = parse_slo({"name": "scrubs", "objectives": ["scrub.interval_s <= 7 d"]})
QUICK = SearchEffort(trials=3, batch=3, seeds=1, finalists=1, fresh=2, events=5e4, shortest_s=1.0)


def task(name: str, rate: int, release: str = "tentacle", slo: Any = SLO) -> SearchTask:
    described = cluster_file.from_text(CLUSTER.format(rate=rate, release=release))
    return SearchTask(name, question_of(described, slo), QUICK, explain=False)


@pytest.fixture(scope="module")
def fleet() -> Dict[str, SearchTask]:
    # b and d follow a; e cannot be answered
    listed = [task("a", 4000), task("b", 5000), task("c", 1000), task("d", 4500, "reef"), task("e", 4000, slo=SCRUBS)]
    return {entry.name: entry for entry in listed}


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    with (
        dask.config.set({"distributed.nanny.environ.OMP_NUM_THREADS": 1}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", host="127.0.0.1", silence_logs=50
        ) as cluster,
    ):
        yield cluster.scheduler_address


def here(processes: int) -> ProcessWorkers:
    return ProcessWorkers(processes, prepare=warm, preload=["ceph_tuner.fleet.advice"])


def advised(
    fleet: Dict[str, SearchTask], workers: Workers, kept: Any = None, hear: Callable[[Any], None] = lambda event: None
) -> Dict[str, Optional[Advice]]:
    found: Dict[str, Optional[Advice]] = {}
    with workers:
        for event in advise_all(fleet, workers, kept or Nowhere()):
            hear(event)
            if isinstance(event, (CallResult, Known)):
                found[event.key] = event.result
            elif isinstance(event, CallFailure):
                found[event.key] = None
    return found


@pytest.fixture(scope="module")
def undisturbed(fleet: Dict[str, SearchTask]) -> Dict[str, Optional[Advice]]:
    return advised(fleet, here(1))


@pytest.fixture(scope="module")
def heard() -> List[Any]:
    """What was told meanwhile by `side_by_side`."""
    return []


@pytest.fixture(scope="module")
def side_by_side(fleet: Dict[str, SearchTask], heard: List[Any]) -> Dict[str, Optional[Advice]]:
    return advised(fleet, here(2), hear=heard.append)


def test_each_cluster_has_its_answer_or_a_reason(
    fleet: Dict[str, SearchTask], side_by_side: Dict[str, Optional[Advice]], heard: List[Any]
) -> None:
    found, events = side_by_side, heard
    assert set(found) == set(fleet)
    (reason,) = [event.reason for event in events if isinstance(event, CallFailure)]
    assert "found no scrub in the description" in reason
    assert found["e"] is None
    first = found["a"]
    assert first is not None
    assert first.profile is not None
    assert first.document["confirmed"]
    told = [event.message for event in events if isinstance(event, CallMessage) and event.key == "a"]
    assert told[-1]["done"] == told[-1]["total"]
    assert "of 2 met" in told[-1]["best"]
    # followers are told what the first has found, and try it
    for name in ("b", "d"):
        own = found[name]
        assert own is not None
        assert [entry["suggested"] for entry in own.document["elsewhere"]] == [True]
    began = [event.key for event in events if isinstance(event, CallStart)]
    ended = [event.key for event in events if isinstance(event, CallResult)]
    assert set(began[:2]) == {"a", "c"}
    assert ended.index("a") < min(ended.index("b"), ended.index("d"))


def test_the_answers_do_not_depend_on_where_they_are_found(
    fleet: Dict[str, SearchTask],
    undisturbed: Dict[str, Optional[Advice]],
    side_by_side: Dict[str, Optional[Advice]],
    scheduler: str,
) -> None:
    assert side_by_side == undisturbed
    assert advised(fleet, DaskWorkers(scheduler, insecure=True)) == undisturbed


@pytest.mark.parametrize("where", ["processes", "dask"])
def test_a_worker_killed_in_the_middle_of_a_search_changes_no_answer(
    fleet: Dict[str, SearchTask], undisturbed: Dict[str, Optional[Advice]], scheduler: str, where: str
) -> None:
    killed: List[str] = []
    began: Dict[str, str] = {}
    lost: List[str] = []
    ended: List[str] = []

    def kill(event: Any) -> None:
        if isinstance(event, CallStart):
            began[event.key] = event.where
        elif isinstance(event, WorkerLoss):
            lost.append(event.key)
        elif isinstance(event, CallResult):
            ended.append(event.key)
        elif isinstance(event, CallMessage) and not lost and set(killed) <= set(ended) and event.message["done"] >= 2:
            # once, but again where the search was over before the signal came
            killed.append(event.key)
            if where == "processes":
                os.kill(int(began[event.key].split()[-1]), signal.SIGKILL)
            else:
                with distributed.Client(scheduler, set_as_default=False) as client:
                    workers = client.scheduler_info(n_workers=-1)["workers"].items()
                    busy = began[event.key].split()[-1]
                    (address,) = [address for address, entry in workers if str(entry["name"]) == busy]
                    pid = client.run(os.getpid, workers=[address])[address]
                os.kill(pid, signal.SIGKILL)

    workers = here(2) if where == "processes" else DaskWorkers(scheduler, insecure=True)
    some = ("a", "b", "c")
    found = advised({name: fleet[name] for name in some}, workers, hear=kill)
    assert found == {name: undisturbed[name] for name in some}
    assert lost == killed[-1:]


def test_where_an_answer_cannot_be_kept_it_is_told_and_the_others_go_on(
    fleet: Dict[str, SearchTask], undisturbed: Dict[str, Optional[Advice]], tmp_path: Path
) -> None:
    folder = AnswersFolder(tmp_path, fleet, ManualClock())
    # where neither may be: a directory
    folder.answer("a").mkdir()
    events: List[Any] = []
    some = {name: fleet[name] for name in ("a", "b")}
    assert advised(some, here(1), folder, events.append) == {name: undisturbed[name] for name in some}
    (told,) = [event for event in events if isinstance(event, NotKept)]
    assert told.key == "a"
    assert "a.json" in told.reason
    assert not folder.profile("a").exists()
    assert folder.answer("b").exists()


def test_a_stopped_run_goes_on_where_it_was(
    fleet: Dict[str, SearchTask], undisturbed: Dict[str, Optional[Advice]], tmp_path: Path
) -> None:
    folder = AnswersFolder(tmp_path, fleet, ManualClock())
    with here(1) as workers:
        for event in advise_all(fleet, workers, folder):
            if isinstance(event, CallResult):
                break
    events: List[Any] = []
    found = advised(fleet, here(1), folder, events.append)
    plain = {name: None if own is None else own.profile for name, own in found.items()}
    assert plain == {name: None if own is None else own.profile for name, own in undisturbed.items()}
    known = [event.key for event in events if isinstance(event, Known)]
    assert known == ["a"]
    assert "a" not in [event.key for event in events if isinstance(event, CallStart)]
    # all of it by now, but for what cannot be answered
    events.clear()
    advised(fleet, here(1), folder, events.append)
    assert {event.key for event in events if isinstance(event, Known)} == {"a", "b", "c", "d"}
    # another question is another search, and so are those that begin with its answer
    effort = replace(QUICK, seed=2)
    events.clear()
    advised({**fleet, "c": replace(fleet["c"], effort=effort)}, here(1), folder, events.append)
    assert {event.key for event in events if isinstance(event, CallResult)} == {"c"}
