"""`ceph-tuner boost --predict`: asks the twin which settings are the fastest for a boost, before it begins."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.cluster.plugin_commands import plugin_answer
from ceph_tuner.core.boost.choice import MEASURED
from ceph_tuner.core.boost.kinds import KINDS
from ceph_tuner.core.boost.offer import FORETELL, TwinOffer
from ceph_tuner.core.ceph.commands import shaped
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.slo import Objective, parse_objective
from ceph_tuner.core.measure.quantity import quantity
from ceph_tuner.recommend import SearchEffort
from ceph_tuner_cli.cluster_option import at_work
from ceph_tuner_cli.render import say, warn

if TYPE_CHECKING:
    from ceph_tuner.recommend.boost_offer import BoostAnswer, BoostQuestion
    from ceph_tuner.recommend.measured import MeasuredMetric
    from ceph_tuner.twin.described_cluster import DescribedCluster

NOT_ASKED = "what was measured on this cluster goes before what the twin predicts: it is not asked"
NOT_BEGUN = "interrupted: no boost is begun"


@dataclass(frozen=True)
class TwinAnswer:
    """What the twin said of a boost."""

    reason: str
    """Why there is an offer, or none."""
    offer: Optional[TwinOffer] = None
    left_out: Tuple[str, ...] = ()
    """Objectives that it says nothing of."""
    missed: Tuple[str, ...] = ()
    """Those that a boost without its offer would miss, by the twin."""
    off: str = ""
    """Where it is off under what is in force, in words."""

    @property
    def payload(self) -> str:
        """The offer, as the plugin takes it; empty where there is none."""
        return "" if self.offer is None else json.dumps(self.offer.to_dict())

    @property
    def words(self) -> List[str]:
        """For people."""
        lines = [f"the twin: {self.reason}"]
        if self.missed and self.offer is None:
            lines.append(f"the twin: what the boost takes instead would miss {' and '.join(self.missed)}")
        lines += [f"the twin: {self.off}"] if self.off else []
        return [*lines, *(f"the twin says nothing of: {text}" for text in self.left_out)]

    def to_dict(self) -> Dict[str, Any]:
        """The same for programs."""
        return {
            "reason": self.reason,
            "offer": None if self.offer is None else self.offer.to_dict(),
            "left_out": list(self.left_out),
            "missed": list(self.missed),
            "off": self.off,
        }


@dataclass(frozen=True)
class TwinSearch:
    """How the twin is to be asked."""

    effort: SearchEffort
    processes: Optional[int]


def twin_search(predict: bool, trials: Optional[int], processes: Optional[int]) -> Optional[TwinSearch]:
    """What the options say; None where no twin is to be asked. Raises InputError for those of `--predict` alone."""
    if predict:
        effort = SearchEffort()
        return TwinSearch(replace(effort, trials=trials or effort.trials), processes)
    if trials or processes:
        raise InputError("--trials" if trials else "--processes", "no --predict beside it", "both, or neither")
    return None


@dataclass(frozen=True)
class UsualBoost:
    """What a boost takes without the twin, as the plugin's `foretell` said it."""

    kind: str
    target: str
    basis: str
    objectives: Tuple[Objective, ...]
    settings: Mapping[str, Any]
    in_force: Mapping[str, Any]
    baseline: Mapping[str, float]
    """What the objectives were held against."""

    @classmethod
    def of(cls, document: Mapping[str, Any], kind: str, target: str) -> UsualBoost:
        """Read it. Raises InputError for that of an earlier plugin, CommandFailed for what cannot be read."""
        if "in_force" not in document:
            raise InputError("--predict", "a plugin of an earlier version", "this one: ceph-tuner mgr install")
        with shaped(FORETELL):
            return cls(
                kind,
                target,
                str(document["basis"]),
                tuple(map(parse_objective, document["objectives"])),
                dict(document["settings"]),
                dict(document["in_force"]),
                {str(name): float(value) for name, value in dict(document["baseline"]).items()},
            )

    @property
    def is_measured(self) -> bool:
        """Whether it is of a trial or a validated page."""
        return self.basis == MEASURED

    @property
    def also(self) -> FrozenSet[str]:
        """Work to assume where none is seen. What is counted object by object is there, the rest may just pause."""
        return frozenset() if KINDS[self.kind].mended else frozenset({self.kind})


def ask_twin(kind: str, cluster: str, arguments: Mapping[str, str], search: TwinSearch) -> Optional[TwinAnswer]:
    """Ask for a boost with these arguments; None where that was interrupted. Raises as the plugin's `foretell`."""
    from ceph_tuner.describe.live_cluster import describe

    with at_work(cluster, "looking at it") as connection:
        document = plugin_answer(connection.commander, FORETELL, {"kind": kind, **arguments})
        usual = UsualBoost.of(document, kind, arguments["who"])
        if usual.is_measured:
            return TwinAnswer(NOT_ASKED)
        description, at = describe(connection, usual.target, usual.also), connection.clock.now()
    say([f"note: {note}" for note in description.notes])
    warn(description.unlikely)
    return answer_of_twin(usual, description, at, search, NOT_BEGUN)


def answer_of_twin(
    usual: UsualBoost, description: DescribedCluster, at: float, search: TwinSearch, notice: str
) -> Optional[TwinAnswer]:
    """What the twin offers in the place of the `usual` settings, `at` that moment; None after Ctrl-C, told by `notice`.

    Raises InputError for OSDs of several device classes.
    """
    from ceph_tuner.recommend.boost_offer import NOTHING_TO_ASK, question_for
    from ceph_tuner.recommend.search import WorkOver

    if description.target != usual.target:
        raise InputError("--target", f"{usual.target}, of several device classes", description.target)
    if description.seen and description.target == "osd":
        # a minute, in the place of several
        description = replace(description, seen=usual.baseline)
    question = question_for(KINDS[usual.kind], description, usual.objectives)
    if question is None:
        return TwinAnswer(NOTHING_TO_ASK)
    try:
        answer = _searched(question, usual.settings, description.name, at, search, notice)
    except WorkOver as over:
        return TwinAnswer(f"it has no answer for {over.place}: {over.found}")
    if answer is None:
        return None
    # minutes later the book, or a person, may have written others
    offer = None if answer.offer is None else replace(answer.offer, in_force=dict(usual.in_force))
    return TwinAnswer(answer.reason, offer, question.left_out, answer.missed, _off(answer.off))


def _off(entries: Sequence[MeasuredMetric]) -> str:
    if not entries:
        return ""
    parts = [f"{each.metric} {quantity(each.metric, each.predicted)}" for each in entries]
    measured = [quantity(each.metric, each.measured) for each in entries]
    return (
        f"it is off here, as it says {', '.join(parts)} under what is in force, and measured is {', '.join(measured)}: "
        "what it predicts is taken as a change of that; `ceph-tuner twin fit` brings it closer"
    )


def _searched(
    question: BoostQuestion, usual: Mapping[str, Any], name: str, at: float, search: TwinSearch, notice: str
) -> Optional[BoostAnswer]:
    """None where somebody does not want to wait for it."""
    from ceph_tuner.recommend.boost_offer import answer_for
    from ceph_tuner.recommend.recommendation import recommend
    from ceph_tuner.tune.interrupts import Interrupts
    from ceph_tuner_cli.recommend_page import RecommendProgress

    processes = search.processes
    with RecommendProgress(question.question.slo) as progress, Interrupts(lambda: say([notice])) as interrupts:
        try:
            recommendation = recommend(
                question.question, search.effort, progress, processes, explain=False, interruptible=interrupts
            )
            if recommendation.interrupted:
                return None
            progress.phase("what a boost takes without the twin", 0, 0)
            with interrupts():
                answer = answer_for(question, recommendation, dict(usual), name, at, processes)
            # one may have struck just now
            with interrupts():
                return answer
        except KeyboardInterrupt:
            return None
