"""Passes over resources that somebody edited, that conflict, or whose cluster refuses: the real module on a twin."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Dict, Iterator, List, Mapping, Sequence

import pytest
from at_api_server import LATENCY, commander_of
from plugin_on_twin import PluginCommander, plugin_cluster

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.controller.boosts import BoostTurn
from ceph_tuner.controller.controller import ResourceTurn
from ceph_tuner.controller.convergence import Convergence
from ceph_tuner.controller.kinds import BOOST, FINALIZER, MODE, SLO, ResourceKind
from ceph_tuner.controller.modes import ModePart
from ceph_tuner.controller.part import Changed
from ceph_tuner.controller.resource import Report, Resource
from ceph_tuner.controller.slos import SloPart
from ceph_tuner.core.errors import ClusterNotFound, ClusterTimeout, PermissionRefused, TunerError

CLASS_SLO = {"objectives": ["client.p95_ms{class=ssd} <= 80 ms"]}


class Shelf:
    """`part.ResourceWriter` in memory, and a fence that lets through."""

    is_ending = False

    def __init__(self, *resources: Resource) -> None:
        self.resources: Dict[str, Resource] = {each.uid: each for each in resources}
        self.reports: Dict[str, Report] = {}
        self.conflicts: List[str] = []
        """Resources whose next note meets a change of somebody else's."""
        self.looks = 0

    def note(self, resource: Resource, record: Mapping[str, Any]) -> Resource:
        if resource.uid in self.conflicts:
            raise Changed(f"{resource} was changed")
        finalizers = resource.finalizers if resource.is_held or resource.deleted else (FINALIZER,)
        document = json.loads(json.dumps(record))
        self.resources[resource.uid] = replace(resource, finalizers=finalizers, record=document)
        return self.resources[resource.uid]

    def release(self, resource: Resource) -> None:
        del self.resources[resource.uid]

    def report(self, resource: Resource, report: Report) -> None:
        self.reports[resource.uid] = report

    def check_lease(self) -> None:
        self.looks += 1

    def check(self) -> None:
        self.check_lease()

    def all(self) -> Sequence[Resource]:
        """As the API server lists them: by name."""
        return sorted(self.resources.values(), key=lambda each: each.name)

    def change(self, name: str, **fields: Any) -> None:
        self.resources[name] = replace(self.resources[name], **fields)

    def reason(self, name: str) -> str:
        return self.reports[name].ready.reason


def resource(kind: ResourceKind, name: str, spec: Mapping[str, Any], created: str = "1") -> Resource:
    return Resource(kind, "rook-ceph", name, name, "1", 1, created, False, (), dict(spec), {})


def modes(cluster: Cluster, shelf: Shelf) -> Convergence:
    return Convergence(ModePart(cluster.commander), shelf, shelf)


def slos(cluster: Cluster, shelf: Shelf) -> Convergence:
    return Convergence(SloPart(cluster.commander, cluster.clock), shelf, shelf)


def with_objectives(objectives: Mapping[str, Any] = LATENCY) -> Cluster:
    cluster = plugin_cluster()
    payload = json.dumps({"name": "main", **objectives})
    commander_of(cluster).mon("tuner slo set", {"yes": "--yes"}, payload)
    if "class=" in payload:
        # classes have modes of their own where there are two
        osds = commander_of(cluster).aboard.twin.twin.osds
        osds[0].place = replace(osds[0].place, device_class="hdd")
        commander_of(cluster).sample(3)
    return cluster


@pytest.fixture(scope="module")
def unchanged() -> Iterator[Cluster]:
    """One that has objectives, and that nobody writes to."""
    cluster = with_objectives()
    sent = list(commander_of(cluster).sent)
    yield cluster
    assert (commander_of(cluster).sent, commander_of(cluster).options) == (sent, {})


@pytest.mark.parametrize(
    ("key", "before"),
    [
        ("option/worker_python", "/tmp/own-program"),  # noqa: S108
        ("option/auto_window", ["30"]),
        ("option/auto_window", {"value": "30"}),
        ("mode/", "on"),
        ("mode/", ["auto"]),
        ("else", "x"),
    ],
)
@pytest.mark.parametrize("deleted", [False, True])
def test_a_record_that_somebody_edited_sets_nothing(unchanged: Cluster, key: str, before: Any, deleted: bool) -> None:
    """The module's option worker_python is a program that the mgr runs."""
    commander = commander_of(unchanged)
    sent, options = list(commander.sent), dict(commander.options)
    edited = replace(
        resource(MODE, "main", {"mode": "off"}),
        finalizers=(FINALIZER,),
        deleted=deleted,
        record={"holds": {key: {"before": before, "value": None}}},
    )
    shelf = Shelf(edited)
    modes(unchanged, shelf).turn(shelf.all())
    assert (commander.sent, commander.options) == (sent, options)
    assert shelf.reason("main") == ("NotTakenBack" if deleted else "Refused")
    assert "without the annotation what is at the cluster stays there" in shelf.reports["main"].ready.message


@pytest.mark.parametrize(("key", "before"), [("slo", "x"), ("slo", {"objectives": []}), ("other", None)])
def test_a_record_of_objectives_that_somebody_edited_sets_nothing(unchanged: Cluster, key: str, before: Any) -> None:
    sent = list(commander_of(unchanged).sent)
    edited = replace(
        resource(SLO, "main", LATENCY),
        finalizers=(FINALIZER,),
        deleted=True,
        record={"holds": {key: {"before": before, "value": None}}},
    )
    shelf = Shelf(edited)
    slos(unchanged, shelf).turn(shelf.all())
    assert commander_of(unchanged).sent == sent
    assert "without the annotation" in shelf.reports["main"].ready.message


@pytest.mark.parametrize(
    "changes",
    [
        {"request": "x"},
        {"request": [["kind", "recovery"]]},
        {"last_start": "1"},
        {"start": [0]},
        {"outcome": {}},
        {"generation": True},
        {"is_clean": "false"},
        {"generation": None},
    ],
)
@pytest.mark.parametrize("deleted", [False, True])
def test_a_record_of_a_boost_that_somebody_edited_ends_nothing_else(
    unchanged: Cluster, changes: Mapping[str, Any], deleted: bool
) -> None:
    run = {"generation": 1, "last_start": -1.0, "start": 0.0, "outcome": "", "request": {}, "is_clean": False}
    edited = replace(
        resource(BOOST, "now", {"kind": "recovery"}),
        finalizers=(FINALIZER,),
        deleted=deleted,
        record={"boost": {**run, **changes}},
    )
    shelf = Shelf(edited)
    BoostTurn(unchanged.commander, shelf, shelf).turn(shelf.all())
    assert shelf.reason("now") == ("NotTakenBack" if deleted else "ClusterUnavailable")
    assert "without the annotation what is at the cluster stays there" in shelf.reports["now"].ready.message


def test_a_finalizer_that_somebody_took_off_is_put_on_again() -> None:
    cluster = plugin_cluster()
    shelf = Shelf(resource(SLO, "main", LATENCY))
    slos(cluster, shelf).turn(shelf.all())
    shelf.change("main", finalizers=())
    slos(cluster, shelf).turn(shelf.all())
    assert shelf.resources["main"].is_held


def mode_of(cluster: Cluster, name: str) -> str:
    answer = json.loads(cluster.commander.mon("tuner auto explain", {}))
    return str(answer["classes"][name]["mode"])


def test_a_mode_of_a_class_beside_one_for_all_leaves_what_was_there_before_both() -> None:
    cluster = with_objectives(CLASS_SLO)
    before = mode_of(cluster, "ssd")
    shelf = Shelf(resource(MODE, "wide", {"mode": "dry-run"}))
    modes(cluster, shelf).turn(shelf.all())
    assert mode_of(cluster, "ssd") == "dry-run"
    # its name comes before the other's
    shelf.resources["class"] = resource(MODE, "class", {"mode": "approve", "deviceClass": "ssd"}, "2")
    for _ in range(2):
        modes(cluster, shelf).turn(shelf.all())
    assert mode_of(cluster, "ssd") == "approve"
    shelf.change("class", deleted=True)
    for _ in range(2):
        modes(cluster, shelf).turn(shelf.all())
    assert mode_of(cluster, "ssd") == "dry-run"
    shelf.change("wide", deleted=True)
    modes(cluster, shelf).turn(shelf.all())
    assert (mode_of(cluster, "ssd"), shelf.resources) == (before, {})


def test_a_mode_waits_for_a_key_that_an_invalid_resource_has_still() -> None:
    cluster = with_objectives(CLASS_SLO)
    before = mode_of(cluster, "ssd")
    shelf = Shelf(resource(MODE, "wide", {"mode": "dry-run"}))
    modes(cluster, shelf).turn(shelf.all())
    shelf.change("wide", spec={"mode": "dry-run", "policy": {"auto_hours": "never"}}, generation=2)
    shelf.resources["class"] = resource(MODE, "class", {"mode": "approve", "deviceClass": "ssd"}, "2")
    modes(cluster, shelf).turn(shelf.all())
    assert (shelf.reason("wide"), shelf.reason("class")) == ("NotAccepted", "Waiting")
    assert mode_of(cluster, "ssd") == "dry-run"
    shelf.change("wide", spec={"mode": "dry-run"}, generation=3)
    modes(cluster, shelf).turn(shelf.all())
    assert (shelf.reason("wide"), shelf.reason("class")) == ("Carried", "Carried")
    for name in ("wide", "class"):
        shelf.change(name, deleted=True)
    modes(cluster, shelf).turn(shelf.all())
    assert (mode_of(cluster, "ssd"), shelf.resources) == (before, {})


def refuse(commander: PluginCommander, fault: TunerError, monkeypatch: pytest.MonkeyPatch, prefix: str = "") -> None:
    ask = commander.mon

    def mon(command: str, arguments: Mapping[str, str], payload: str = "") -> str:
        if command.startswith(prefix):
            raise fault
        return ask(command, arguments, payload)

    monkeypatch.setattr(commander, "mon", mon)


@pytest.mark.parametrize(
    "fault", [PermissionRefused("the key", "refused", "caps"), ClusterNotFound("ceph", "no program", "one")]
)
@pytest.mark.parametrize("prefix", ["tuner", "tuner slo set", "tuner auto on", "tuner boost"])
def test_what_the_cluster_does_not_let_is_not_said_to_be_the_resources_fault(
    unchanged: Cluster, fault: TunerError, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = unchanged
    refuse(commander_of(cluster), fault, monkeypatch, prefix)
    shelf = Shelf(
        resource(SLO, "slo", {"objectives": ["client.p95_ms <= 20 ms"]}),
        resource(MODE, "mode", {"mode": "dry-run"}),
        resource(BOOST, "boost", {"kind": "recovery"}),
    )
    turns: Dict[str, ResourceTurn] = {
        "slo": slos(cluster, shelf),
        "mode": modes(cluster, shelf),
        "boost": BoostTurn(cluster.commander, shelf, shelf),
    }
    names = {"tuner slo set": "slo", "tuner auto on": "mode", "tuner boost": "boost"}
    for name in [names[prefix]] if prefix in names else turns:
        turns[name].turn([shelf.resources[name]])
        assert (shelf.reports[name].accepted.is_true, shelf.reason(name)) == (True, "ClusterUnavailable")


def test_one_resource_that_is_changed_all_the_time_holds_no_other_up() -> None:
    cluster = with_objectives(CLASS_SLO)
    shelf = Shelf(
        resource(MODE, "a", {"mode": "off", "deviceClass": "archive"}),
        resource(MODE, "b", {"mode": "dry-run", "deviceClass": "ssd"}),
    )
    shelf.conflicts.append("a")
    with pytest.raises(Changed):
        modes(cluster, shelf).turn(shelf.all())
    assert (mode_of(cluster, "ssd"), shelf.reason("b")) == ("dry-run", "Carried")


def test_who_is_told_to_end_takes_no_other_resource_back(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = with_objectives(CLASS_SLO)
    shelf = Shelf(
        resource(MODE, "a", {"mode": "off", "deviceClass": "archive"}),
        resource(MODE, "b", {"mode": "dry-run", "deviceClass": "ssd"}),
    )
    modes(cluster, shelf).turn(shelf.all())
    for name in ("a", "b"):
        shelf.change(name, deleted=True)
    release = shelf.release

    def release_and_end(each: Resource) -> None:
        release(each)
        shelf.is_ending = True

    monkeypatch.setattr(shelf, "release", release_and_end)
    modes(cluster, shelf).turn(shelf.all())
    assert (list(shelf.resources), mode_of(cluster, "ssd")) == (["b"], "dry-run")


def begin_by_hand(commander: PluginCommander, at_most: str) -> None:
    commander.mon("tuner boost recovery", {"until": "clean", "at_most": at_most, "who": "osd"})


def test_a_boost_that_did_not_begin_takes_no_other_for_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = plugin_cluster(recovering=500_000)
    commander = commander_of(cluster)
    shelf = Shelf(resource(BOOST, "now", {"kind": "recovery", "atMost": "2h"}))
    boosts = BoostTurn(commander, shelf, shelf)
    with monkeypatch.context() as patch:
        refuse(commander, ClusterTimeout("no answer"), patch, "tuner boost recovery")
        boosts.turn(shelf.all())
    assert shelf.reason("now") == "ClusterUnavailable"
    begin_by_hand(commander, "3h")
    boosts.turn(shelf.all())
    assert shelf.reason("now") == "Waiting"
    shelf.change("now", deleted=True)
    boosts.turn(shelf.all())
    assert shelf.resources == {}
    assert not [line for line in commander.sent if line.startswith("tuner boost cancel")]


def test_a_boost_whose_answer_was_lost_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = plugin_cluster(recovering=500_000)
    commander = commander_of(cluster)
    shelf = Shelf(resource(BOOST, "now", {"kind": "recovery", "atMost": "2h"}))
    ask, lost = commander.mon, [True]

    def mon(command: str, arguments: Mapping[str, str], payload: str = "") -> str:
        answer = ask(command, arguments, payload)
        if command == "tuner boost recovery" and lost:
            lost.clear()
            raise ClusterTimeout("no answer")
        return answer

    monkeypatch.setattr(commander, "mon", mon)
    boosts = BoostTurn(commander, shelf, shelf)
    boosts.turn(shelf.all())
    shelf.change("now", spec={"kind": "recovery", "atMost": "3h"}, generation=2)
    boosts.turn(shelf.all())
    begun = [line.split(" ")[2] for line in commander.sent if line.startswith("tuner boost")]
    assert begun == ["recovery", "cancel", "recovery"]
