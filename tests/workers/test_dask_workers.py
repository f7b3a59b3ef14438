"""What only a Dask cluster can get wrong."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any, Dict, Iterator

import dask
import distributed
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from worker_calls import double, refuses, waits, waits_for

from ceph_tuner.core.errors import InputError
from ceph_tuner.workers import CallFailure, CallMessage, CallResult, CallStart, WorkerLoss, WorkersGone
from ceph_tuner.workers.dask_workers import DaskWorkers as SecureDaskWorkers

pytestmark = pytest.mark.slow

DaskWorkers = partial(SecureDaskWorkers, insecure=True)


def cluster(**given: Any) -> Any:
    settings: Dict[str, Any] = {"dashboard_address": ":0", "host": "127.0.0.1", "silence_logs": 50, "protocol": "tcp"}
    return distributed.LocalCluster(processes=False, **{**settings, "n_workers": 1, "threads_per_worker": 1, **given})


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "127.0.0.1:1", "ws://127.0.0.1:1", "TLS://127.0.0.1:1"])
def test_an_address_without_tls_is_refused_unless_asked_for(address: str) -> None:
    with pytest.raises(InputError, match=r"found an address without TLS, expected tls://.* or --insecure"):
        SecureDaskWorkers(address, connect_s=0.5)


def test_nobody_at_the_address_is_told_with_the_next_step() -> None:
    with pytest.raises(InputError, match=r"--dask tcp://127.0.0.1:1: found no scheduler .*tcp://HOST:8786"):
        DaskWorkers("tcp://127.0.0.1:1", connect_s=0.5)
    with pytest.raises(InputError, match="found no scheduler"):
        DaskWorkers("nonsense://here", connect_s=0.5)


OTHERS = {
    "another edition": (
        "import ceph_tuner.workers.worker_call as c; c.EDITION = '9.9 (other)'",
        r"ceph-tuner 9\.9 \(other\)",
    ),
    "none": ("import sys; sys.modules['ceph_tuner'] = None", "no ceph-tuner that works"),
}
"""Workers with other sources: what makes them so, and what is said of them."""


@contextmanager
def strange_worker(folder: Path, scheduler: str, preload: str, count: int) -> Iterator[None]:
    """One more, of then `count`."""
    (folder / "preload.py").write_text(preload)
    command = [sys.executable, "-m", "dask", "worker", scheduler, "--no-dashboard", "--nthreads", "1", "--no-nanny"]
    command += ["--preload", str(folder / "preload.py"), "--name", "strange"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    worker = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=environment)
    try:
        with distributed.Client(scheduler, set_as_default=False) as client:
            client.wait_for_workers(count, timeout=60)
        yield
    finally:
        worker.kill()
        worker.wait()


@pytest.mark.parametrize("kind", OTHERS)
def test_a_worker_with_another_ceph_tuner_is_refused_by_name(tmp_path: Path, kind: str) -> None:
    preload, words = OTHERS[kind]
    with (
        cluster(n_workers=0) as scheduler,
        strange_worker(tmp_path, scheduler.scheduler_address, preload, 1),
        pytest.raises(InputError, match=rf"worker tcp://.*found {words}.*expected ceph-tuner 0"),
    ):
        DaskWorkers(scheduler.scheduler_address)


def test_one_that_comes_late_swallows_no_call_and_is_named_once(tmp_path: Path) -> None:
    preload, words = OTHERS["another edition"]
    mark = tmp_path / "mark"
    with (
        cluster() as started,
        DaskWorkers(started.scheduler_address, no_workers_s=1.0) as workers,
        strange_worker(tmp_path, started.scheduler_address, preload, 2),
    ):
        # one worker is busy until the other one has shown what it is
        workers.start("busy", waits_for, str(mark))
        for number in range(20):
            workers.start(str(number), double, number)
        events = []
        for event in workers.events():
            events.append(event)
            if isinstance(event, (WorkerLoss, CallFailure)):
                mark.touch()
        found = {event.key: event.result for event in events if isinstance(event, CallResult)}
        assert found == {"busy": 0, **{str(number): 2 * number for number in range(20)}}
        (lost,) = [event for event in events if isinstance(event, WorkerLoss)]
        assert re.search(rf"worker tcp://.* has {words}", lost.reason)
        # what is refused for its own sake still is
        workers.start("r", refuses, "five")
        assert [type(event) for event in workers.events()] == [CallStart, CallFailure]
        # what the good one is at when it goes waits for another one that comes
        mark.unlink()
        workers.start("d", waits_for, str(mark))
        waiting = workers.events()
        assert isinstance(next(waiting), CallStart)
        started.scale(0)
        with pytest.raises(WorkersGone, match="no worker with ceph-tuner 0"):
            list(waiting)
        mark.touch()
        started.scale(1)
        assert [event.result for event in workers.events() if isinstance(event, CallResult)] == [0]


def test_a_worker_with_several_threads_is_noted() -> None:
    with cluster(threads_per_worker=3) as started, DaskWorkers(started.scheduler_address) as workers:
        assert "dask worker --nthreads 1" in " ".join(workers.notes)
        assert workers.place == f"Dask at {started.scheduler_address} (1 worker)"


def test_a_scheduler_that_goes_ends_it_with_one_line() -> None:
    dask, options = [sys.executable, "-m", "dask"], ["--no-dashboard"]
    # where they find the calls of the tests
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    with subprocess.Popen(
        [*dask, "scheduler", "--host", "127.0.0.1", "--port", "0", *options],
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as scheduler:
        assert scheduler.stderr is not None
        line = next(line for line in scheduler.stderr if "Scheduler at:" in line)
        address = line.split("Scheduler at:")[1].strip()
        command = [*dask, "worker", address, "--nthreads", "1", "--no-nanny", *options]
        worker = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
        try:
            with distributed.Client(address, set_as_default=False) as client:
                client.wait_for_workers(1, timeout=60)
            with DaskWorkers(address, connect_s=2.0) as workers:
                workers.start("w", waits, "")
                events = workers.events()
                next(event for event in events if isinstance(event, CallMessage))
                scheduler.kill()
                with pytest.raises(WorkersGone, match=f"the scheduler {address} is gone"):
                    list(events)
        finally:
            scheduler.kill()
            worker.kill()
            worker.wait(30)


def test_without_any_worker_it_does_not_wait_for_ever() -> None:
    with cluster(n_workers=0) as started, DaskWorkers(started.scheduler_address, no_workers_s=1.0) as workers:
        workers.start("d", double, 1)
        with pytest.raises(WorkersGone, match=r"no worker at .* for 1 s"):
            list(workers.events())


def test_a_worker_that_comes_late_gets_its_share() -> None:
    with cluster(n_workers=0) as started, DaskWorkers(started.scheduler_address) as workers:
        workers.start("d", double, 1)
        started.scale(1)
        assert [event.result for event in workers.events() if isinstance(event, CallResult)] == [2]


def test_tls_is_as_dask_is_configured(tmp_path: Path) -> None:
    pem, key_file = tmp_path / "cert.pem", tmp_path / "key.pem"
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "dask")])
    now = datetime.now(timezone.utc)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    key_file.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
    own = {"cert": str(pem), "key": str(key_file)}
    ciphers = {"ciphers": None, "min-version": 1.2, "max-version": None}
    files = {"ca-file": str(pem), **dict.fromkeys(("client", "scheduler", "worker"), own), **ciphers}
    with dask.config.set({"distributed.comm.tls": files}):
        # the cluster takes it from there as well
        started = cluster(protocol="tls", security=distributed.Security())
        with started, SecureDaskWorkers(started.scheduler_address) as workers:
            assert started.scheduler_address.startswith("tls://")
            workers.start("d", double, 4)
            assert [event.result for event in workers.events() if isinstance(event, CallResult)] == [8]
            bare = {**files, "ca-file": None, "client": {"cert": None, "key": None}}
            with (
                dask.config.set({"distributed.comm.tls": bare}),
                pytest.raises(InputError, match="Dask's TLS settings"),
            ):
                DaskWorkers(started.scheduler_address, connect_s=1.0)


def test_dask_is_brought_along_by_nothing_else() -> None:
    code = "import sys, ceph_tuner_cli.main, ceph_tuner.workers.process_workers\n"
    code += "assert not {'dask', 'distributed'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
