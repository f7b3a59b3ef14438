"""A change, the tuning loop and the automatic mode on each kind of cluster, from the program to the OSDs and back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple

import pytest

from automatic_lab import WORKER
from ceph_lab import scenarios
from ceph_lab.bringup import up
from ceph_lab.cluster import Lab
from ceph_lab.teardown import down
from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.cluster.plugin import OPTION_PREFIX
from ceph_tuner.cluster.session import Session
from ceph_tuner.core.errors import TunerError
from ceph_tuner.search.space import DEFERRED
from config_dump import config_dump, osd_config
from lab_plugin import with_plugin
from rebuilding import MIB, rebuilds_once
from waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.long]

GIB, OBJECTS = 1 << 30, 40
OPTIONS = {
    "sample_interval": 1,
    "worker_python": "/lab/worker",
    "auto_canary": "host",
    "auto_window": 5,
    "auto_settle": 3,
    "auto_baseline_windows": 2,
    "auto_least_windows": 100,
    "auto_most_windows": 100,
    "auto_quiet": 0,
    "auto_miss_windows": 2,
}


class Kind(NamedTuple):
    """A lab, the load that is put on it, and the OSDs that are tuned."""

    lab: Mapping[str, Any]
    scenario: str = "client-recovery"
    options: Mapping[str, Any] = {}
    target: str = "osd"


KINDS = {
    "flash": Kind({}),
    "throttle": Kind({"drive": "throttle"}),
    "disks": Kind({"drive": "hdd"}, "client-scrub"),
    "disks with their database on flash": Kind({"drive": "hybrid"}, "client-scrub"),
    "erasure-coded 2+1": Kind({}, options={"pool": "ec:2+1"}),
    "erasure-coded 4+2": Kind({"osds": 6, "device_size": 3 * GIB, "storage": "disk"}, options={"pool": "ec:4+2"}),
    "two classes": Kind(
        {"osds": "2xnvme,2xhdd", "size": 2, "device_size": 4 * GIB},
        options={"device_class": "ssd"},
        target="osd/class:ssd",
    ),
    "eight OSDs": Kind({"osds": 8, "storage": "disk"}),
}


class OnLab(NamedTuple):
    """A lab of a kind that runs."""

    kind: Kind
    lab: Lab

    @property
    def scope(self) -> str:
        """What an objective names the tuned OSDs by."""
        device_class = self.kind.options.get("device_class", "")
        return f"{{class={device_class}}}" if device_class else ""

    @property
    def rate(self) -> str:
        return "scrub.bytes_s" if self.kind.scenario == "client-scrub" else "recovery.bytes_s"

    @property
    def tuned(self) -> List[int]:
        device_class = str(self.kind.options.get("device_class", ""))
        return list(self.lab.classes[device_class] if device_class else self.lab.osds)


@pytest.fixture(scope="module", params=KINDS, ids=[name.replace(" ", "-") for name in KINDS])
def kind_lab(request: pytest.FixtureRequest, needs_lab: None) -> Iterator[OnLab]:
    name, kind = f"test-{os.getpid()}-kind", KINDS[request.param]
    try:
        yield OnLab(kind, up(name, kind.lab, lambda line: None))
    finally:
        down(name, lambda line: None)


def ceph_tuner(*arguments: str) -> List[str]:
    return [sys.executable, "-c", "from ceph_tuner_cli.main import main; main()", *arguments]


def options(kind: Kind, rate: float) -> Dict[str, Any]:
    return {"rate": rate, **kind.options}


def test_a_profile_is_applied_to_every_osd_of_its_target_and_taken_back(kind_lab: OnLab) -> None:
    before = config_dump(kind_lab.lab)
    command = ["apply", "high_client_ops", "--cluster", kind_lab.lab.name, "--target", kind_lab.kind.target, "--yes"]
    subprocess.run(ceph_tuner(*command), check=True, timeout=120)
    profiles = {osd: osd_config(kind_lab.lab, osd)["osd_mclock_profile"] for osd in kind_lab.lab.osds}
    assert profiles == {osd: "high_client_ops" if osd in kind_lab.tuned else "balanced" for osd in kind_lab.lab.osds}
    subprocess.run(ceph_tuner("rollback", "--cluster", kind_lab.lab.name), check=True, timeout=120)
    assert config_dump(kind_lab.lab) == before


@pytest.mark.parametrize("kind_lab", ["erasure-coded 2+1", "erasure-coded 4+2"], indirect=True)
def test_what_is_rebuilt_of_an_erasure_coded_pool_is_counted_once_an_object(kind_lab: OnLab) -> None:
    lab, name = kind_lab.lab, "rebuilt"
    k, m = kind_lab.kind.options["pool"].partition(":")[2].split("+")
    lab.run(f"ceph osd erasure-code-profile set {name} k={k} m={m} crush-failure-domain=osd".split())
    lab.run(f"ceph osd pool create {name} 8 8 erasure {name} --autoscale-mode=off".split())
    try:
        lab.run(f"rados -p {name} bench 60 write -b {MIB} --max-objects {OBJECTS} --no-cleanup".split(), timeout=90)
        with Session(lab.argv) as session:
            rebuilds_once(lab, session, name, OBJECTS)
    finally:
        lab.run(f"ceph osd pool delete {name} {name} --yes-i-really-really-mean-it".split())
        lab.run(f"ceph osd erasure-code-profile rm {name}".split())


@pytest.mark.parametrize("kind_lab", ["disks"], indirect=True)
def test_small_batches_of_deferred_writes_shorten_the_tail_on_hard_disks(kind_lab: OnLab) -> None:
    lab = kind_lab.lab
    with scenarios.scenario("client", lab, rate=15.0) as scenario:

        def tail_ms(batch: int) -> float:
            lab.run(["ceph", "config", "set", "osd", DEFERRED, str(batch)])
            scenario.prepare()
            return float(scenario.run(30.0)["client.p99_ms"].mean)

        try:
            # 58 and 180 ms were seen
            assert tail_ms(4) < 0.6 * tail_ms(64)
        finally:
            lab.run(["ceph", "config", "rm", "osd", DEFERRED])


@pytest.mark.timeout(900)
def test_tune_tries_settings_and_the_configuration_is_as_before(kind_lab: OnLab, tmp_path: Path) -> None:
    before, slo = config_dump(kind_lab.lab), tmp_path / "slo.yaml"
    objectives = [
        f"client.p95_ms{kind_lab.scope} <= 0.5 * baseline",
        f"{kind_lab.rate}{kind_lab.scope} >= 0.01 * baseline",
    ]
    lab = {"scenario": kind_lab.kind.scenario, "options": options(kind_lab.kind, 40)}
    slo.write_text(json.dumps({"schema": 1, "name": "kind", "objectives": objectives, "lab": lab}), encoding="utf-8")
    command = [
        "tune",
        "--cluster",
        kind_lab.lab.name,
        "--slo",
        str(slo),
        "--target",
        kind_lab.kind.target,
        "--window",
        "10",
    ]
    command += ["--settle", "2", "--trials", "2", "--repeats", "0", "--no-write-back", "--format", "json"]
    done = subprocess.run(ceph_tuner(*command), capture_output=True, text=True, timeout=800)
    assert done.returncode in (0, 1), done.stderr
    trials = json.loads(done.stdout)["trials"]
    assert trials[0]["kind"] == "baseline"
    for trial in trials:
        assert trial["failed"] is None, trial
        # of the target's own OSDs
        assert trial["measures"]["client.p95_ms"][0] > 0
        assert trial["measures"][kind_lab.rate][0] > 0
    assert json.loads(done.stdout)["search"]["reason"]
    assert config_dump(kind_lab.lab) == before


@contextmanager
def load(kind_lab: OnLab) -> Iterator[None]:
    command = ["lab", "load", "scenario", "client", "--name", kind_lab.lab.name, "--seconds", "3600"]
    for name, value in options(kind_lab.kind, 40).items():
        command += ["--option", f"{name}={value}"]
    running = subprocess.Popen(ceph_tuner(*command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        running.send_signal(signal.SIGINT)
        running.wait(120)


@pytest.mark.timeout(900)
def test_the_automatic_mode_sees_the_load_tries_settings_and_lets_go_of_them(kind_lab: OnLab) -> None:
    with with_plugin(kind_lab.lab) as cluster, load(kind_lab):
        automatic(kind_lab, cluster)


def automatic(kind_lab: OnLab, cluster: Cluster) -> None:
    def mon(prefix: str, **arguments: str) -> Any:
        answer = cluster.commander.mon(prefix, arguments)
        return json.loads(answer) if answer.strip() else None

    worker = kind_lab.lab.host_path("/lab/worker")
    worker.write_text(WORKER)
    worker.chmod(0o755)
    kind_lab.lab.host_path("/lab/worker.value").write_text("2")
    for name, value in OPTIONS.items():
        mon("config set", who="mgr", name=OPTION_PREFIX + name, value=str(value))
    before, own = config_dump(kind_lab.lab), ["osd_max_scrubs"]

    def written() -> Dict[int, str]:
        return {osd: osd_config(kind_lab.lab, osd)[own[0]] for osd in kind_lab.lab.osds}

    # a mgr that begins anew does not answer
    answers = partial(until, words=lambda: mon("tuner auto explain"), pause=1, despite=(TunerError, KeyError))
    usual = written()
    answers(lambda: mon("tuner status"), 60)
    mon("tuner slo set", objective=f"client.p95_ms{kind_lab.scope} <= 0.001 ms")
    metric = f"client.p95_ms{kind_lab.scope}"
    answers(lambda: mon("tuner sample")["values"][metric] > 0, 120, words=lambda: mon("tuner sample"))
    mon("tuner auto on")
    answers(lambda: "2" in written().values(), 180)
    changed = {osd for osd, value in written().items() if value != usual[osd]}
    assert changed <= set(kind_lab.tuned)
    mon("tuner auto off")
    answers(lambda: written() == usual, 120)
    mon("tuner slo rm", metric="all")
    assert [line for line in config_dump(kind_lab.lab)[0].splitlines() if own[0] in line] == [
        line for line in before[0].splitlines() if own[0] in line
    ]
