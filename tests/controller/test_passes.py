"""What a pass over all resources does when one kind, one call or one record is in its way."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional

import pytest
import requests
from api_in_memory import ANNOTATIONS, LEASE, ApiInMemory, Paced, Use
from at_api_server import LATENCY, commander_of, slo_at
from plugin_on_twin import plugin_cluster

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.controller.kinds import ALL, BOOST, MODE, RECORD, SLO, ResourceKind
from ceph_tuner.controller.leadership import PREFIX
from ceph_tuner.controller.resource import RECORD_BYTES
from ceph_tuner.controller.vitals import ALIVE_S
from ceph_tuner.core.ceph.commands import CommandStore
from ceph_tuner.core.changes.lock import break_lock
from ceph_tuner.core.errors import ClusterTimeout
from ceph_tuner.rook.kubernetes_api import ApiAnswer
from ceph_tuner_cli.controller import listening

SPECS: Dict[str, Mapping[str, Any]] = {
    SLO.name: LATENCY,
    MODE.name: {"mode": "off", "policy": {"auto_window": 30}},
    BOOST.name: {"kind": "recovery", "atMost": "2h"},
}
DONE = {SLO.name: "Carried", MODE.name: "Carried", BOOST.name: "Running"}
CALL_S = 30.0
"""What a call may take."""


def counted(metrics: str) -> List[str]:
    return sorted(line for line in metrics.splitlines() if line.startswith("ceph_tuner_controller_resources{"))


def value(metrics: str, name: str) -> float:
    (line,) = [line for line in metrics.splitlines() if line.startswith(f"ceph_tuner_controller_{name} ")]
    return float(line.split(" ")[1])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (ApiAnswer(403, {"message": "cannot list resource"}), "the role of deploy/kubernetes/controller.yaml"),
        (ApiAnswer(404, {"message": "could not find"}), "the definitions of deploy/kubernetes/crds"),
        (ApiAnswer(500, {"message": "etcdserver: timed out"}), "etcdserver: timed out"),
        (ApiAnswer(200, {"metadata": {"continue": "more"}, "items": []}), "more than 500"),
        (ApiAnswer(200, {"items": [{"metadata": {}}]}), "cannot be read"),
    ],
    ids=["403", "404", "500", "too many", "unreadable"],
)
@pytest.mark.parametrize("lacking", ALL, ids=lambda kind: kind.name)
def test_a_kind_that_cannot_be_listed_stops_none_of_the_others(
    lacking: ResourceKind, answer: ApiAnswer, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    paced = Paced(plugin_cluster(recovering=500_000), monkeypatch)
    for kind in ALL:
        paced.api.create(kind, "main", SPECS[kind.name])
    paced.api.refused[lacking.plural] = answer
    paced.lead(passes=2)
    reasons = {kind.name: paced.api.reason(kind, "main") for kind in ALL}
    assert reasons == {**DONE, lacking.name: ""}
    # it is said once, and counted each time
    assert [words in line and lacking.plural in line for line in paced.said] == [False, True]
    assert (value(paced.seen[-1], "passes_total"), value(paced.seen[-1], "pass_failures_total")) == (0, 2)
    assert [line for line in counted(paced.seen[-1]) if f'"{lacking.name}"' in line] == []
    assert len(counted(paced.seen[-1])) == 2
    paced.api.refused.clear()
    paced.lead(passes=1)
    assert {kind.name: paced.api.reason(kind, "main") for kind in ALL} == DONE
    assert value(paced.seen[-1], "passes_total") == 1


def test_each_kind_that_cannot_be_listed_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    paced = Paced(plugin_cluster(), monkeypatch)
    forbidden, lacking = ApiAnswer(403, {"message": "forbidden"}), ApiAnswer(404, {"message": "not found"})
    paced.api.refused = {"cephslos": lacking, "cephboosts": forbidden}
    paced.lead(passes=2)
    del paced.api.refused["cephslos"]
    paced.lead(passes=1)
    paced.api.refused["cephslos"] = lacking
    paced.lead(passes=1)
    kinds = [line.split("`")[1] for line in paced.said if line.startswith("`GET ")]
    assert kinds == ["GET cephslos", "GET cephboosts", "GET cephslos"]


def before_commands(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, before: Callable[[str], None]) -> None:
    """Called before each command is carried out."""
    commander = commander_of(cluster)
    ask = commander.mon

    def mon(prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        before(prefix)
        return ask(prefix, arguments, payload)

    monkeypatch.setattr(commander, "mon", mon)


MANY = {
    "modes of many classes": (MODE, [{"mode": "off", "deviceClass": f"c{number}"} for number in range(15)]),
    "modes of which one counts": (MODE, [{"mode": "off"}] * 15),
    "boosts": (BOOST, [{"kind": "recovery"}] * 15),
    "objectives of which one counts": (SLO, [LATENCY] * 15),
}


@pytest.mark.parametrize("is_answered", [True, False])
@pytest.mark.parametrize("many", MANY)
def test_it_is_alive_however_many_slow_calls_a_pass_has(
    many: str, is_answered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = plugin_cluster()
    paced = Paced(cluster, monkeypatch)
    kind, specs = MANY[many]
    for number, spec in enumerate(specs):
        paced.api.create(kind, f"n{number:02d}", spec)
    probes: List[int] = []

    def slow() -> None:
        paced.clock.time += CALL_S
        paced.renew()
        probes.append(paced.controller.vitals.page("/healthz").status)

    def slow_command(prefix: str) -> None:
        slow()
        if prefix.startswith("tuner ") and not is_answered:
            raise ClusterTimeout("no answer")

    before_commands(cluster, monkeypatch, slow_command)
    paced.api.before = lambda use: slow() if use.resource != "leases" else None
    begun = paced.clock.time
    paced.lead(passes=1)
    assert paced.clock.time - begun > ALIVE_S
    assert set(probes) == {200}
    assert "" not in {paced.api.reason(kind, f"n{number:02d}") for number in range(len(specs))}


def test_one_call_that_hangs_is_seen_by_the_probe_while_the_pass_is_on(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = plugin_cluster()
    paced = Paced(cluster, monkeypatch)
    paced.api.create(SLO, "main", LATENCY)
    probes: List[int] = []
    server = listening("127.0.0.1", 0, paced.controller)

    def probe() -> None:
        probes.append(requests.get(f"http://127.0.0.1:{server.server_port}/healthz", timeout=30).status_code)

    def hang(prefix: str) -> None:
        if prefix == "tuner slo set":
            # the one thread of the controller is here, and the page is another's
            for _ in range(2):
                probe()
                paced.clock.time += ALIVE_S / 2 + 1
            probe()
            paced.renew()

    before_commands(cluster, monkeypatch, hang)
    try:
        paced.lead(passes=1)
        probe()
    finally:
        server.end()
    assert probes == [200, 200, 503, 200]
    assert paced.api.reason(SLO, "main") == "Carried"


def lose_lease(api: ApiInMemory) -> None:
    lease = api.objects["leases", LEASE]
    api.objects["leases", LEASE] = {**lease, "spec": {**lease["spec"], "holderIdentity": "two"}}


def test_who_leads_counts_the_resources_and_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    paced = Paced(plugin_cluster(), monkeypatch)
    paced.api.create(SLO, "main", LATENCY)
    paced.api.create(SLO, "other", LATENCY)
    assert counted(paced.metrics) == []
    paced.wake.rule = lambda: None

    def lose(use: Use) -> None:
        # somebody else takes the lease after the second pass
        if len(paced.seen) == 2:
            lose_lease(paced.api)

    paced.api.before = lose
    paced.lead(passes=4)
    leading, standing_by = paced.seen[0], paced.seen[-1]
    assert counted(leading) == [
        'ceph_tuner_controller_resources{kind="CephSLO",ready="false",reason="NotAccepted"} 1.0',
        'ceph_tuner_controller_resources{kind="CephSLO",ready="true",reason="Carried"} 1.0',
    ]
    assert (value(leading, "leads"), value(standing_by, "leads")) == (1, 0)
    assert counted(standing_by) == []


def test_who_is_shut_out_of_the_cluster_counts_no_resources(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = plugin_cluster()
    paced = Paced(cluster, monkeypatch)
    paced.api.create(SLO, "main", LATENCY)

    def shut_out(use: Use) -> None:
        if (use.verb, use.resource) == ("list", SLO.plural) and len(paced.seen) == 1:
            break_lock(CommandStore(cluster.commander, PREFIX))
            paced.api.change(SLO, "main", {"objectives": ["client.p95_ms <= 40 ms"]})

    paced.api.before = shut_out
    paced.lead(passes=2)
    assert [len(counted(metrics)) for metrics in paced.seen] == [1, 0]


def large(bound_ms: int) -> Dict[str, Any]:
    """A valid spec, almost as long as the monitors take a value: a fourth of what a record may have."""
    lines = [f"client.p95_ms{{class={'c' * 20}{number:02d}}} <= {bound_ms} ms" for number in range(35)]
    policies = [
        {"name": f"p{hour}", "hours": f"{hour:02d}:00-{hour + 1:02d}:00", "objectives": lines} for hour in range(20)
    ]
    return {"objectives": lines, "calendar": {"policies": policies}}


def noted(api: ApiInMemory) -> str:
    return str(api.read(SLO, "main")["metadata"].get("annotations", {}).get(RECORD, ""))


@pytest.mark.parametrize("next_spec", [LATENCY, None], ids=["it states less", "it is deleted"])
def test_a_record_that_would_be_too_long_is_refused_and_nothing_is_lost(
    next_spec: Optional[Mapping[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = plugin_cluster()
    commander = commander_of(cluster)
    commander.module.run("slo_set", objective="client.p95_ms<=10")
    before = slo_at(cluster)
    paced = Paced(cluster, monkeypatch)
    paced.api.create(SLO, "main", large(80))
    ask = commander.mon

    def mon(prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        answer = ask(prefix, arguments, payload)
        if prefix == "tuner slo set":
            raise ClusterTimeout("its answer was lost")
        return answer

    with monkeypatch.context() as patch:
        # as long as no answer says which of them is at the cluster, the record has each of them
        patch.setattr(commander, "mon", mon)
        paced.lead(passes=1)
        while paced.api.reason(SLO, "main") == "ClusterUnavailable" and len(commander.sent) < 9:
            there, sent, record = slo_at(cluster), list(commander.sent), noted(paced.api)
            paced.api.change(SLO, "main", large(80 - len(sent)))
            paced.lead(passes=1)
        assert paced.api.reason(SLO, "main") == "Refused", paced.api.message(SLO, "main")
        assert RECORD_BYTES / 2 < len(record) <= RECORD_BYTES
        # what it has at the cluster, and the way back from there, stay as they are
        assert (slo_at(cluster), commander.sent, noted(paced.api)) == (there, sent, record)
        assert paced.api.reason(SLO, "main", "Accepted") == "Valid"
        assert f"bytes, expected at most {RECORD_BYTES}: state less" in paced.api.message(SLO, "main")
        # it is the resource's fault, and no pass has failed
        assert value(paced.seen[-1], "pass_failures_total") == 0
    if next_spec is not None:
        paced.api.change(SLO, "main", next_spec)
        paced.lead(passes=1)
        assert paced.api.reason(SLO, "main") == "Carried"
        assert '"client.p95_ms <= 80 ms"' in slo_at(cluster)
    paced.api.delete(SLO, "main")
    paced.lead(passes=1)
    assert (slo_at(cluster), ("cephslos", "main") in paced.api.objects) == (before, False)


def test_a_record_that_the_api_server_does_not_take_beside_others_is_refused_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = plugin_cluster()
    before = slo_at(cluster)
    paced = Paced(cluster, monkeypatch)
    applied = {"kubectl.kubernetes.io/last-applied-configuration": "x" * (ANNOTATIONS - 100)}
    paced.api.create(SLO, "main", LATENCY, annotations=applied)
    paced.lead(passes=1)
    assert (slo_at(cluster), noted(paced.api)) == (before, "")
    assert paced.api.reason(SLO, "main") == "Refused"
    assert "metadata.annotations: Too long" in paced.api.message(SLO, "main")


@pytest.mark.parametrize(
    "text",
    ['{"holds": {}, "x": "%s"}' % ("x" * RECORD_BYTES), '{"holds": ' + "[" * 70 + "]" * 70 + "}"],
    ids=["too long", "too deep"],
)
def test_a_record_that_somebody_made_too_large_is_left_as_it_is(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = plugin_cluster()
    paced = Paced(cluster, monkeypatch)
    paced.api.create(SLO, "main", LATENCY, annotations={RECORD: text})
    paced.lead(passes=1)
    assert (commander_of(cluster).sent, noted(paced.api)) == ([], text)
    assert paced.api.reason(SLO, "main") == "Refused"
    assert "without the annotation what is at the cluster stays there" in paced.api.message(SLO, "main")
