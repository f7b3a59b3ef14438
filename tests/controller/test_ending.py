"""A controller that is told to end in the middle of a pass, as the program that people run."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any, Iterator, List, Mapping

import pytest
from api_in_memory import LEASE, NAMESPACE, ApiInMemory
from at_api_server import LATENCY, commander_of
from plugin_on_twin import plugin_cluster

import ceph_tuner_cli.controller as command
from ceph_tuner.controller import controller as controller_module
from ceph_tuner.controller import lease as lease_module
from ceph_tuner.controller.controller import Controller
from ceph_tuner.controller.kinds import ALL, BOOST, FINALIZER, MODE, SLO, ResourceKind
from ceph_tuner.controller.leadership import PREFIX
from ceph_tuner.core.ceph.commands import CommandStore
from ceph_tuner.core.changes.lock import claims
from ceph_tuner.rook.kubeconfig import ApiAccess, Credentials
from running_program import Run

SIGNALS = [signal.SIGTERM, signal.SIGINT]


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Whose they were before."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_is_taken_while_its_thread_is_inside_the_event(number: signal.Signals) -> None:
    stop = command.stopped_by_signals()
    handler: Any = signal.getsignal(number)
    # a handler runs between any two steps of the main thread: one that waits for what that thread holds waits for ever
    with stop._cond:  # type: ignore[attr-defined]
        signalled = threading.Thread(target=handler, args=(number, None), daemon=True)
        signalled.start()
        signalled.join(10)
        assert not signalled.is_alive()
    assert stop.wait(30)


@pytest.mark.parametrize(
    ("kind", "specs", "at", "reason"),
    [
        (SLO, [LATENCY, LATENCY], "tuner slo set", "Carried"),
        (MODE, [{"mode": "off", "policy": {"auto_window": 30}}, {"mode": "off"}], "config set", "Carried"),
        (BOOST, [{"kind": "recovery", "atMost": "2h"}, {"kind": "scrub"}], "tuner boost recovery", "Running"),
    ],
    ids=[kind.name for kind in ALL],
)
@pytest.mark.parametrize("number", SIGNALS)
def test_who_is_told_to_end_in_a_pass_completes_the_resource_that_it_is_at(
    kind: ResourceKind,
    specs: List[Mapping[str, Any]],
    at: str,
    reason: str,
    number: signal.Signals,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    api, cluster = ApiInMemory(), plugin_cluster(recovering=500_000)
    for name, spec in zip(("first", "second"), specs):
        api.create(kind, name, spec)
    made: List[Controller] = []

    def controller(*arguments: Any, **named: Any) -> Controller:
        made.append(Controller(*arguments, **named))
        return made[-1]

    monkeypatch.setattr(command, "Controller", controller)
    monkeypatch.setattr(command, "open_cluster", lambda _: cluster)
    monkeypatch.setattr(command, "api_access", lambda _: ApiAccess("https://in-memory", Credentials))
    monkeypatch.setattr(controller_module, "KubernetesApi", lambda *_: api)
    monkeypatch.setattr(lease_module, "RETRY_S", 0.02)
    commander, told, since = commander_of(cluster), list[str](), list[int]()
    ask = commander.mon

    def mon(prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        if prefix == at and not told:
            told.append(prefix)
            os.kill(os.getpid(), number)
            assert made[0].stop.wait(30)
            since.append(len(api.uses))
            let_lease_go_on(api)
        return ask(prefix, arguments, payload)

    monkeypatch.setattr(commander, "mon", mon)
    code, out, err = run("controller", "--cluster", "x", "-n", NAMESPACE, "--identity", "one", "--port", "0")
    api.ended.set()
    assert (code, out, err, told) == (0, "", "one leads\n", [at])
    assert made[0].vitals.pass_failures == 0
    assert api.reason(kind, "first") == reason
    assert api.read(kind, "first")["metadata"]["finalizers"] == [FINALIZER]
    # no other one is begun
    assert "status" not in api.read(kind, "second")
    assert "finalizers" not in api.read(kind, "second")["metadata"]
    assert "list" not in {use.verb for use in api.uses[since[0] :]}
    # the next one leads at once
    assert (api.holder, claims(CommandStore(cluster.commander, PREFIX))) == ("", [])
    assert [use for use in api.uses if use.verb != "watch"][-1] == ("update", "coordination.k8s.io", "leases", LEASE)


def let_lease_go_on(api: ApiInMemory) -> None:
    """Until the thread of the lease has ended, or has gone on for two rounds."""
    begun = len(api.uses)
    (renewal,) = [thread for thread in threading.enumerate() if thread.name == "lease"]
    while renewal.is_alive() and [use.verb for use in api.uses[begun:]].count("update") < 2:
        time.sleep(0.01)
