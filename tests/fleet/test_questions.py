"""What is asked for a cluster: files first, itself for the rest, and one SLO for those that have none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ceph_tuner.core.errors import ClusterNotFound, InputError
from ceph_tuner.core.goals.slo import parse_slo
from ceph_tuner.core.goals.stored_slo import SLO_KEY
from ceph_tuner.fleet import questions
from ceph_tuner.fleet.contract import ByLab, Member
from ceph_tuner.fleet.questions import MemberQuestion, question_for
from ceph_tuner.twin.model import MIB, ScrubWork
from twin_cluster.cluster import TwinCluster
from twins import small_twin

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
DESCRIPTION, SLO = str(EXAMPLES / "cluster-nvme-node.yaml"), EXAMPLES / "slo-nvme-node.yaml"
OWN = parse_slo({"name": "own", "objectives": ["scrub.interval_s <= 7 d"]})


def asked(otherwise: bool, description: str = "", slo: str = "") -> MemberQuestion:
    member = Member("rome", ByLab("there-is-no-such-lab"), description=description, slo=slo)
    return question_for(member, 5.0, SLO if otherwise else None)


@pytest.fixture
def twin(monkeypatch: pytest.MonkeyPatch) -> TwinCluster:
    """What answers at the member's address."""
    found = small_twin(scrub=(ScrubWork("rbd", 9000, MIB),))
    monkeypatch.setattr(questions, "open_member", lambda member, within_s: found)
    return found


@pytest.mark.parametrize(("otherwise", "slo"), [(False, str(SLO)), (True, "")])
def test_nothing_is_asked_of_a_cluster_of_which_files_say_all(otherwise: bool, slo: str) -> None:
    found = asked(otherwise, DESCRIPTION, slo)
    assert found.question.slo.name == "nvme-node"
    assert found.question.model.osds == 4
    assert (found.seen, found.notes) == (False, ())


def test_what_is_missing_is_asked_of_the_cluster_itself() -> None:
    with pytest.raises(ClusterNotFound):
        asked(False, DESCRIPTION)
    with pytest.raises(ClusterNotFound):
        asked(True)


def test_a_cluster_that_describes_itself_was_looked_at_and_what_it_does_not_know_is_a_guess(twin: TwinCluster) -> None:
    found = asked(True)
    assert found.seen
    assert found.notes
    assert found.question.slo.name == "nvme-node"
    # what the SLO is about is there, though nothing of it is under way
    assert found.question.model.recovery
    assert found.question.model.release is twin.release


def test_its_own_slo_comes_before_the_one_for_those_that_have_none(twin: TwinCluster) -> None:
    twin.store.set(SLO_KEY, json.dumps(OWN.to_dict()))
    assert asked(True).question.slo == OWN
    assert asked(True, slo=str(SLO)).question.slo.name == "nvme-node"
    twin.store.remove(SLO_KEY)
    with pytest.raises(InputError, match="no SLO"):
        asked(False)
