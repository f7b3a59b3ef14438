"""Changes that an operator of Kubernetes has undone."""

from __future__ import annotations

import json

import pytest
from patients import healthy

from ceph_tuner.core.ceph.ports import ConfigEntry
from ceph_tuner.doctor.cluster_facts import gather
from ceph_tuner.doctor.operator import undone_by_rook
from rook_monitors import RESOURCE
from twins import answering, small_twin

KEY = ("osd", "osd_max_scrubs")
POD = {"id": 0, "pod_name": "rook-ceph-osd-0-5d8f", "pod_namespace": "storage"}


def test_a_change_that_is_gone_is_named() -> None:
    entries = (ConfigEntry("osd", "osd_max_scrubs", "4"),)
    (found,) = undone_by_rook(healthy(entries=entries, rook="storage", kept={KEY: frozenset({"2"})}))
    assert found.check == "undone-by-rook"
    assert found.evidence == ("osd osd_max_scrubs: 4 in the place of ours",)
    assert "kubectl -n storage get cephcluster -o yaml" in found.commands


@pytest.mark.parametrize(
    ("rook", "value", "key"),
    [("storage", "2.000000", KEY), ("", "4", KEY), ("storage", "4", (RESOURCE.who("osd"), "osd_max_scrubs"))],
    ids=["as it was written", "no cluster of Rook", "a row of the resource"],
)
def test_nothing_is_said(rook: str, value: str, key: object) -> None:
    entries = (ConfigEntry("osd", "osd_max_scrubs", value),)
    assert undone_by_rook(healthy(entries=entries, rook=rook, kept={key: frozenset({"2"})})) == []


def test_the_facts_of_a_cluster_hold_what_is_needed() -> None:
    twin = small_twin()
    applier = twin.applier()
    applier.apply(applier.plan("osd", {"osd_max_scrubs": 2}))
    twin.commander.mon("config set", {"who": "osd", "name": "osd_max_scrubs", "value": "4"})
    facts = gather(answering(twin, {"osd metadata": [POD]}).commander, twin.clock, twin.release, twin.version)
    assert (facts.rook, facts.kept) == ("storage", {KEY: frozenset({"2"})})
    assert len(undone_by_rook(facts)) == 1
    plain = gather(twin.commander, twin.clock, twin.release, twin.version)
    assert (plain.rook, json.dumps(list(plain.kept))) == ("", "[]")
