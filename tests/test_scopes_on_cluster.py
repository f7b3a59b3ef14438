"""A cluster with flash and disks: what belongs to each class is seen by itself, and one class is tuned by itself."""

from __future__ import annotations

import json
import os
import subprocess
import time
from contextlib import contextmanager, suppress
from typing import Any, Callable, Dict, Iterator, List

import pytest

import waiting
from automatic_lab import WORKER
from ceph_lab.bringup import up
from ceph_lab.cluster import Lab
from ceph_lab.teardown import down
from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.cluster.plugin import OPTION_PREFIX
from ceph_tuner.cluster.sampler import ClusterSampler
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.errors import TunerError
from ceph_tuner.core.measure.metrics import CLASS, Scope
from config_dump import config_dump
from lab_plugin import with_plugin

SSD, HDD, POOL = "{class=ssd}", "{class=hdd}", "{pool=rbd-ssd}"
OPTIONS = {
    "sample_interval": 1,
    "worker_python": "/lab/worker",
    "auto_canary": "host",
    "auto_window": 5,
    "auto_settle": 5,
    "auto_baseline_windows": 2,
    # the trial lasts as long as the test
    "auto_least_windows": 100,
    "auto_most_windows": 100,
    "auto_quiet": 0,
    "auto_miss_windows": 2,
}


class Hybrid:
    """A lab of two flash and two disk OSDs with the plugin in it."""

    def __init__(self, lab: Lab, cluster: Cluster) -> None:
        self.lab, self.cluster = lab, cluster

    def mon(self, prefix: str, **arguments: str) -> Any:
        answer = self.cluster.commander.mon(prefix, arguments)
        return json.loads(answer) if answer.strip() else None

    def want(self, *objectives: str) -> None:
        with suppress(TunerError):
            self.mon("tuner slo rm", metric="all")
        for objective in objectives:
            self.mon("tuner slo set", objective=objective)

    def sample(self) -> Dict[str, float]:
        values: Dict[str, float] = self.mon("tuner sample")["values"]
        return values

    def means(self) -> Dict[str, float]:
        """Of the last minute."""
        window = self.mon("tuner status")["window"]
        return {name: measure[0] for name, measure in window["measures"].items()} if window else {}

    def mode(self, device_class: str) -> Dict[str, Any]:
        found: Dict[str, Any] = self.mon("tuner auto explain", device_class=device_class)
        return found

    def until(self, what: str, condition: Callable[[], bool], seconds: float) -> None:
        def words() -> object:
            modes = self.mode("")
            return what, {name: (own["words"], own["problem"]) for name, own in {"": modes, **modes["classes"]}.items()}

        waiting.until(condition, seconds, words, pause=0.5, despite=(TunerError, KeyError))

    @contextmanager
    def clients(self, pool: str) -> Iterator[None]:
        """Four writes of 4 KiB under way at any time."""
        command = f"rados -p {pool} bench 300 write -b 4096 -t 4 --no-cleanup".split()
        environment = {**os.environ, **self.lab.environment}
        quiet = subprocess.DEVNULL
        running = subprocess.Popen(self.lab.argv(command), env=environment, stdout=quiet, stderr=quiet)
        try:
            yield
        finally:
            running.terminate()
            running.wait(30)


@pytest.fixture(scope="module")
def hybrid(needs_lab: None) -> Iterator[Hybrid]:
    name = f"test-{os.getpid()}-hybrid"
    try:
        lab = up(name, {"osds": "2xnvme,2xhdd", "size": 2}, lambda line: None)
        with with_plugin(lab) as cluster:
            found = Hybrid(lab, cluster)
            # the mgr's own pool lies anywhere: on a disk, a class of flash would have objects to recover as well
            found.until(
                "the mgr has its pool",
                lambda: ".mgr" in [pool["poolname"] for pool in found.mon("osd lspools")],
                60,
            )
            rule = found.mon("osd pool get", pool="rbd-ssd", var="crush_rule")["crush_rule"]
            found.mon("osd pool set", pool=".mgr", var="crush_rule", val=rule)
            worker = lab.host_path("/lab/worker")
            worker.write_text(WORKER)
            worker.chmod(0o755)
            lab.host_path("/lab/worker.value").write_text("2")
            for option, value in OPTIONS.items():
                found.mon("config set", who="mgr", name=OPTION_PREFIX + option, value=str(value))
            yield found
    finally:
        down(name, lambda line: None)


@pytest.fixture
def objectives(hybrid: Hybrid) -> Iterator[None]:
    yield
    with suppress(TunerError):
        hybrid.mon("tuner auto off")
    hybrid.want()


def test_a_class_and_a_pool_show_what_their_own_clients_get(hybrid: Hybrid, objectives: None) -> None:
    hybrid.want(*(f"client.p95_ms{scope} <= 500 ms" for scope in (SSD, HDD, POOL)))
    with hybrid.clients("rbd-ssd"):
        hybrid.until("the pool is seen", lambda: hybrid.sample()[f"client.mean_ms{POOL}"] > 0, 60)
        # a minute of nothing else
        time.sleep(62)
        seen = hybrid.means()
    assert seen["client.iops"] > 50
    assert seen[f"client.iops{SSD}"] == pytest.approx(seen["client.iops"], rel=0.05)
    assert seen[f"client.iops{HDD}"] < 0.05 * seen["client.iops"]
    # its sums count the same operations, and its latency is that of its OSDs: no other pool has clients there
    assert seen[f"client.iops{POOL}"] == pytest.approx(seen["client.iops"], rel=0.1)
    assert seen[f"client.mean_ms{POOL}"] == pytest.approx(seen[f"client.mean_ms{SSD}"], rel=0.1)
    assert seen[f"client.p95_ms{POOL}"] == pytest.approx(seen[f"client.p95_ms{SSD}"], rel=0.15)


def test_the_command_line_sees_the_same_by_class(hybrid: Hybrid) -> None:
    scopes = [Scope(CLASS, "ssd"), Scope(CLASS, "hdd")]
    sampler = ClusterSampler(hybrid.cluster.commander, SystemClock(), scopes)
    with hybrid.clients("rbd-hdd"):
        time.sleep(5)
        sampler.sample()
        time.sleep(10)
        sample = sampler.sample()
    assert sample is not None
    assert sample.values[f"client.iops{HDD}"] == pytest.approx(sample.values["client.iops"], rel=0.05)
    assert sample.values[f"client.iops{SSD}"] < 0.05 * sample.values["client.iops"]


@pytest.mark.long
def test_recovery_is_that_of_the_class_whose_osd_came_back(hybrid: Hybrid, objectives: None) -> None:
    hybrid.want(f"recovery.bytes_s{HDD} >= 1 kB/s", f"recovery.bytes_s{SSD} >= 1 kB/s")
    hybrid.until("both classes are sampled", lambda: f"recovery.bytes_s{SSD}" in hybrid.sample(), 60)
    hybrid.mon("osd set", key="norecover")
    seen: List[Dict[str, float]] = []
    try:
        hybrid.lab.stop_osd(2)
        hybrid.until("osd.2 is down", lambda: hybrid.sample()[f"osds.down{HDD}"] == 1, 60)
        assert hybrid.sample()[f"osds.down{SSD}"] == 0
        hybrid.lab.run(
            ["rados", "-p", "rbd-hdd", "bench", "8", "write", "-b", "1048576", "-t", "2", "--no-cleanup"], timeout=60
        )
        hybrid.lab.start_osd(2)
        hybrid.until("osd.2 is back", lambda: hybrid.sample()[f"osds.down{HDD}"] == 0, 90)
        hybrid.until("objects are degraded", lambda: hybrid.sample()[f"recovery.objects_left{HDD}"] > 0, 60)
        assert hybrid.sample()[f"recovery.objects_left{SSD}"] == 0
    finally:
        hybrid.mon("osd unset", key="norecover")

    def recovers() -> bool:
        seen.append(hybrid.sample())
        return any(values[f"recovery.bytes_s{HDD}"] > 0 for values in seen)

    hybrid.until("bytes are recovered", recovers, 60)
    assert all(values[f"recovery.bytes_s{SSD}"] == 0 for values in seen)
    hybrid.until("all is recovered", lambda: hybrid.sample()["recovery.objects_left"] == 0, 120)


@pytest.mark.long
def test_an_osd_that_dies_ends_a_trial_of_its_own_class_alone(hybrid: Hybrid, objectives: None) -> None:
    hybrid.mon("osd pool set", pool="rbd-ssd", var="deep_scrub_interval", val="1")
    hybrid.want(f"scrub.pgs_late{SSD} <= 0", f"client.p95_ms{HDD} <= 500 ms")
    # at once, as a script does it
    switched = hybrid.mon("tuner auto on")
    assert {name: own["mode"] for name, own in switched["classes"].items()} == {"ssd": "auto", "hdd": "auto"}
    assert switched["mode"] == "off"
    hybrid.until("ssd has a trial", lambda: hybrid.mode("ssd")["phase"] == "trying", 120)
    # what is written is the class's own
    names = {entry.who for entry in hybrid.cluster.config.dump() if entry.name == "osd_max_scrubs"}
    assert names <= {"osd/host:h0", "osd/host:h1", "osd/class:ssd", "osd.0", "osd.1"}
    assert names
    assert hybrid.mode("hdd")["phase"] == "observing"
    hybrid.lab.stop_osd(3)
    hybrid.until("osd.3 is down", lambda: hybrid.sample()[f"osds.down{HDD}"] == 1, 60)
    time.sleep(4)
    assert hybrid.mode("ssd")["phase"] == "trying"
    hybrid.lab.start_osd(3)
    hybrid.until("osd.3 is back", lambda: hybrid.sample()["osds.down"] == 0, 90)
    assert hybrid.mode("ssd")["phase"] == "trying"
    hybrid.lab.stop_osd(1)
    hybrid.until("the trial is taken back", lambda: hybrid.mode("ssd")["phase"] != "trying", 60)
    trail = hybrid.mon("tuner history")["trail"]
    assert any("OSDs down" in record["why"] for record in trail), trail
    assert not [entry for entry in hybrid.cluster.config.dump() if entry.name == "osd_max_scrubs"]
    hybrid.lab.start_osd(1)
    hybrid.until("osd.1 is back", lambda: hybrid.sample()["osds.down"] == 0, 90)


def test_a_query_of_the_osds_ends_with_the_objective_that_wanted_it(hybrid: Hybrid, objectives: None) -> None:
    hybrid.want(f"client.mean_ms{POOL} <= 500 ms")
    with hybrid.clients("rbd-ssd"):
        hybrid.until("the pool is seen", lambda: hybrid.sample()[f"client.mean_ms{POOL}"] > 0, 60)
    hybrid.want()
    hybrid.until("it is sampled no more", lambda: f"client.mean_ms{POOL}" not in hybrid.sample(), 30)


def test_a_class_is_measured_and_what_it_can_do_is_rolled_out_and_taken_back(hybrid: Hybrid) -> None:
    hybrid.until("the cluster is steady", lambda: hybrid.sample()["recovery.objects_left"] == 0, 120)
    found: Dict[str, Any] = {}

    def measured() -> bool:
        # it takes longer than a command may: asked again, it gives its outcome
        found.update(hybrid.mon("tuner capacity measure-class", device_class="ssd", yes="true"))
        return True

    hybrid.until("it is measured", measured, 240)
    assert [row["osd"] for row in found["osds"]] == [0, 1]
    told = float(hybrid.cluster.config.effective(0)["osd_mclock_max_sequential_bandwidth_ssd"])
    for row in found["osds"]:
        # what else runs on the machine takes some of it
        assert 0.2 * row["bandwidth_in_force"] < row["bandwidth"] < 1.5 * row["bandwidth_in_force"]
    assert len(found["changes"]) == 2 + found["alike"]
    if found["alike"]:
        entries = {(entry.who, entry.name): entry.value for entry in hybrid.cluster.config.dump()}
        stored = entries["osd/class:ssd", "osd_mclock_max_sequential_bandwidth_ssd"]
        assert float(stored) == pytest.approx(sum(row["bandwidth"] for row in found["osds"]) / 2, rel=0.01)
    for _ in found["changes"]:
        hybrid.mon("tuner rollback", yes="true")
    assert float(hybrid.cluster.config.effective(0)["osd_mclock_max_sequential_bandwidth_ssd"]) == pytest.approx(
        float(found["osds"][0]["bandwidth_in_force"]), rel=0.01
    )
    assert told > 0


@pytest.mark.long
def test_each_class_has_the_page_of_its_own_regime(hybrid: Hybrid, objectives: None) -> None:
    quick = {"book_watch": 30, "book_dead_time": 0, "book_switches": 100}
    marker = {"name": "busy", "metric": "client.iops", "enter": 20, "leave": 5, "hold_s": 3}
    regimes = [("class:ssd", "idle"), ("class:ssd", "busy"), ("class:hdd", "idle"), ("class:hdd", "busy")]
    pages = [
        {"number": number, "regime": regime, "target": f"osd/{mask}", "settings": {"osd_max_scrubs": number}}
        for number, (mask, regime) in enumerate(regimes, 1)
    ]
    evidence = {"state": "validated", "origin": "trial", "at": 1.0}
    documents = {
        "bounds": {"dwell_s": 5, "markers": [marker]},
        "import": {"pages": [{**evidence, **page} for page in pages]},
    }
    for option, value in quick.items():
        hybrid.mon("config set", who="mgr", name=OPTION_PREFIX + option, value=str(value))
    hybrid.want(f"client.p95_ms{SSD} <= 60 s", f"client.p95_ms{HDD} <= 60 s")
    for command, document in documents.items():
        hybrid.cluster.commander.mon(f"tuner book {command}", {}, json.dumps(document))
    for page in hybrid.mon("tuner book show")["pages"]:
        hybrid.mon("tuner book pin", page=str(page["number"]))
    before = config_dump(hybrid.lab)

    def in_force(ssd: str, hdd: str) -> bool:
        """Values of the pages that are watched no more."""
        classes = hybrid.mon("tuner book show")["classes"]
        values = {entry.who: entry.value for entry in hybrid.cluster.config.dump() if entry.name == "osd_max_scrubs"}
        holding = [classes[name]["phase"] == "holding" for name in ("ssd", "hdd")]
        return all(holding) and values == {"osd/class:ssd": ssd, "osd/class:hdd": hdd}

    try:
        hybrid.until("both classes are idle", lambda: len(hybrid.mon("tuner book show")["regimes"]) == 3, 60)
        hybrid.mon("tuner book on")
        hybrid.until("both have their page", lambda: in_force("1", "3"), 120)
        with hybrid.clients("rbd-ssd"):
            hybrid.until("the flash is busy, the disks are not", lambda: in_force("2", "3"), 90)
        hybrid.until("all is idle again", lambda: in_force("1", "3"), 90)
        hybrid.mon("tuner book off", device_class="ssd")
        values = {entry.who: entry.value for entry in hybrid.cluster.config.dump() if entry.name == "osd_max_scrubs"}
        assert values == {"osd/class:hdd": "3"}
    finally:
        with suppress(TunerError):
            hybrid.mon("tuner book off")
    hybrid.until("all of it is back", lambda: config_dump(hybrid.lab) == before, 60)
    for option in quick:
        hybrid.mon("config rm", who="mgr", name=OPTION_PREFIX + option)
