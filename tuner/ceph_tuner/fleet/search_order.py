"""Which searches begin with what was found for a like cluster, and with what is in force at like ones.

Of like clusters the first, in the order of the fleet, leads: it is searched first, and its winner is tried first on
those that follow it. So the answers depend on the fleet alone, not on which search happens to end first. Of clusters
that are looked at, the load says nothing about who is like whom: with it, the order would change from look to look.
Each search still holds what it begins with against the load that it has.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Dict, List, Mapping, Optional

from ceph_tuner.core.knobs.releases import MCLOCK_NINE
from ceph_tuner.core.profiles.profile import Profile
from ceph_tuner.describe.clients import described_load
from ceph_tuner.fleet.advice import SearchTask
from ceph_tuner.recommend import Question
from ceph_tuner.search.transfer import Here, unlike

AT_MOST = 3
"""Settings in force elsewhere that a search begins with: each costs a trial."""


@dataclass(frozen=True)
class Order:
    """Tasks with what is in force at like clusters, and who leads them."""

    tasks: Mapping[str, SearchTask]
    leader: Mapping[str, Optional[str]]
    """Cluster -> whose winner it waits for; None: it goes at once."""

    def following(self, name: str) -> List[str]:
        """Those that wait for it."""
        return [follower for follower, leader in self.leader.items() if leader == name]


def ordered(tasks: Mapping[str, SearchTask]) -> Order:
    """Find who leads whom."""
    leader: Dict[str, Optional[str]] = {}
    clusters = {name: _DescribedMember(task.question, name, task.seen) for name, task in tasks.items()}
    ordered_tasks = {}
    for name, task in tasks.items():
        own = clusters[name]
        leads = [other for other, above in leader.items() if above is None]
        leader[name] = next((other for other in leads if own.like(clusters[other])), None)
        in_force: List[_DescribedMember] = []
        settings = [own.profile.settings]
        for there in clusters.values():
            if there.tuned and there.profile.settings not in settings and own.like(there):
                in_force.append(there)
                settings.append(there.profile.settings)
            if len(in_force) == AT_MOST:
                break
        looked_at = frozenset(there.name for there in in_force if there.seen)
        ordered_tasks[name] = replace(
            task, elsewhere=(*task.elsewhere, *(there.profile for there in in_force)), looked_at=looked_at
        )
    return Order(ordered_tasks, leader)


class _DescribedMember:
    """What a description says of a cluster."""

    def __init__(self, question: Question, name: str, is_live: bool) -> None:
        self.name, self.seen = name, is_live
        self._question = question
        self._load = described_load(question.model.clients)
        self.profile = described_profile(question, name, self._load)
        self.tuned = question.profile_in_force is None
        """Whether it is worth telling others: built-in profiles are tried everywhere."""

    def like(self, there: _DescribedMember) -> bool:
        """Whether another cluster is like this one."""
        model, work, load = self._question.model, self._question.slo.work, self._load
        if self.seen or there.seen:
            # without clients among the work, a load that is not known is no hindrance
            work, load = work - {"client"}, {}
        return not unlike(there.profile, Here(model.release, model.osd.hardware, model.osds, work), load)


def described_profile(question: Question, name: str, load: Mapping[str, float]) -> Profile:
    """What is in force there, with what tells whether another cluster is like it."""
    model = question.model
    nine = {knob: value for knob, value in question.before.items() if knob in MCLOCK_NINE}
    return Profile(
        f"in-force-{name}"[:64].rstrip("._-"),
        model.release,
        nine,
        hardware=model.osd.hardware,
        osds=model.osds,
        workload=name,
        slos=(question.slo.to_dict(),),
        evidence=({"load": dict(load)},) if load else (),
    )
