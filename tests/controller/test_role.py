"""The controller's role allows each call that it makes, and no other one."""

from __future__ import annotations

from typing import Any, Dict, Iterator, Mapping, Set

import pytest
from api_in_memory import LEASE, Paced, Use
from at_api_server import LATENCY
from plugin_on_twin import plugin_cluster
from ruamel.yaml import YAML

from ceph_tuner.controller.kinds import ALL, BOOST, MODE, SLO
from kubernetes_server import DEPLOY

SPECS: Dict[str, Mapping[str, Any]] = {
    SLO.name: LATENCY,
    MODE.name: {"mode": "dry-run", "policy": {"auto_window": 30}},
    BOOST.name: {"kind": "recovery"},
}


def allowed() -> Iterator[Use]:
    documents = YAML(typ="safe", pure=True).load_all((DEPLOY / "controller.yaml").read_text("utf-8"))
    (role,) = [each for each in documents if each["kind"] == "Role"]
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for name in rule.get("resourceNames", [""]):
                    yield from (Use(verb, group, resource, name) for verb in rule["verbs"])


def life_of_all_resources(paced: Paced) -> Set[Use]:
    """Each kind comes, is changed and goes; the lease is taken, renewed and given up; and each kind is watched."""
    for kind in ALL:
        paced.api.create(kind, "main", SPECS[kind.name])
    paced.lead(passes=2)
    paced.api.change(BOOST, "main", {"kind": "recovery", "atMost": "3h"})
    paced.lead(passes=1)
    for kind in ALL:
        paced.api.delete(kind, "main")
    paced.lead(passes=3)
    assert [name for name in paced.api.objects if name[0] != "leases"] == []
    paced.controller.lease.release()
    assert paced.api.holder == ""
    paced.api.watched = lambda _: iter(())
    for kind in ALL:
        paced.stop.clear()
        paced.stop.rule = paced.stop.set
        paced.controller._watch(kind)
    # one may name those of its kinds as it likes, and the lease is one
    return {
        use if use.resource == "leases" and use.verb != "create" else use._replace(name="") for use in paced.api.uses
    }


def test_the_role_allows_the_calls_that_are_made_and_no_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    used = life_of_all_resources(Paced(plugin_cluster(recovering=500_000), monkeypatch))
    assert used == set(allowed())
    assert {use.name for use in used} == {"", LEASE}
