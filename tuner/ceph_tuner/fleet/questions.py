"""What is asked for a member of the fleet: its description and its SLO as a question to its twin."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Optional, Tuple

from ceph_tuner.cluster.dashboard import Dashboard
from ceph_tuner.core.goals.stored_slo import stored_slo
from ceph_tuner.files import cluster_file, slo_file
from ceph_tuner.fleet.connection import open_member
from ceph_tuner.fleet.contract import Member
from ceph_tuner.fleet.descriptions import described, wanted
from ceph_tuner.recommend import Question
from ceph_tuner.recommend.question import question_of


@dataclass(frozen=True)
class MemberQuestion:
    """A question, and where it comes from."""

    question: Question
    seen: bool = False
    """The cluster was looked at: another look would find another load, and so another question."""
    notes: Tuple[str, ...] = ()
    """What was guessed then."""


def question_for(member: Member, within_s: float, otherwise: Optional[Path] = None) -> MemberQuestion:
    """Ask the cluster what fleet.yaml does not say; `otherwise` is the SLO file of those that have none.

    Nothing is asked of a cluster that is described by a file, where one of the SLO files is there. Raises TunerError.
    """
    if member.description and (member.slo or otherwise is not None):
        slo = slo_file.read(member.slo or str(otherwise)).slo
        return MemberQuestion(question_of(cluster_file.read(member.description), slo))
    with closing(open_member(member, within_s)) as cluster:
        own_slo = None if isinstance(cluster.commander, Dashboard) or member.slo else stored_slo(cluster.store)
        slo = slo_file.read(otherwise).slo if otherwise and not (member.slo or own_slo) else wanted(member, cluster)
        description = described(member, cluster, slo, within_s=within_s)
        return MemberQuestion(question_of(description, slo), not member.description, description.notes)
