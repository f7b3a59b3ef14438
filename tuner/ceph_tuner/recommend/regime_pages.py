"""Pages of the book by the twin: each regime as a question to `recommend`, and its answer as a page.

A regime is what its markers say. Those that are on say which work there is, and how much clients ask for at the
least; those that are off say how much they ask for at the most. Of what was seen of clients in such a regime the most
is taken, since settings that keep the objectives then keep them below it as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Callable, Dict, FrozenSet, Iterable, List, Optional, Sequence, Tuple

from ceph_tuner.core.book.page import LONGEST_TEXT, TWIN, UNVALIDATED, Page
from ceph_tuner.core.boost.kinds import KINDS as BOOSTED
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.knobs.catalogue import MCLOCK_NINE, PROFILE
from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.core.knobs.settings import check_settings
from ceph_tuner.core.measure.timeline import REGIME, TimelineEntry
from ceph_tuner.core.profiles.translation import to_release_units
from ceph_tuner.core.regimes.bounds import IDLE, RegimeBounds, regime_of
from ceph_tuner.recommend import Prediction, Question, changed
from ceph_tuner.recommend.paired_effect import paired_effects
from ceph_tuner.recommend.question import question_of
from ceph_tuner.recommend.recommendation import Recommendation
from ceph_tuner.recommend.runs import Runs
from ceph_tuner.recommend.search import fresh_seeds, unpredictable
from ceph_tuner.twin.described_cluster import DescribedCluster
from ceph_tuner.twin.model import ClusterModel

CLIENTS = "client.iops"
KINDS = ("recovery", "backfill", "scrub", "snaptrim")
"""Work in the background, as metrics name it."""
_SPEEDS = tuple(dict.fromkeys(metric for kind in BOOSTED.values() for metric in kind.speed))
SLACK = 0.02
"""In the loss, of settings that serve beside those in force: headroom that nobody asked for."""


@dataclass(frozen=True)
class RegimeQuestion:
    """A regime as `recommend` is asked of it."""

    regime: str
    question: Question
    client_iops: Optional[float]
    """What clients ask for together, operations per second; None where that is not told."""
    left_out: Tuple[str, ...]
    """Objectives that are about nothing in this regime, or that the twin does not predict."""

    @property
    def work(self) -> Tuple[str, ...]:
        """Kinds of work that there are."""
        return tuple(self.question.work)


def usual_regimes(bounds: RegimeBounds, entries: Iterable[TimelineEntry] = (), scope: str = "") -> Tuple[str, ...]:
    """Those that the scope, or the cluster, was in, and in any case one for each marker, and none."""
    known = {marker.name for marker in bounds.markers}
    names = {IDLE, *known}
    for entry in entries:
        if entry.kind == REGIME and entry.scope == scope and set(entry.name.split("+")) <= known:
            names.add(entry.name)
    return tuple(sorted(names, key=lambda name: (name != IDLE, name.count("+"), name)))


def regimes_named(
    names: Sequence[str], bounds: RegimeBounds, entries: Iterable[TimelineEntry] = (), scope: str = ""
) -> Tuple[str, ...]:
    """Those that are named, else the usual ones of the scope. Raises InputError as `regime_of`."""
    return tuple(regime_of(name, bounds) for name in names) or usual_regimes(bounds, entries, scope)


def work_in(regimes: Sequence[str], bounds: RegimeBounds) -> FrozenSet[str]:
    """Kinds of background work that any of these regimes says."""
    on = {part for regime in regimes for part in regime.split("+")}
    kinds = (marker.metric.split(".")[0] for marker in bounds.markers if marker.name in on)
    return frozenset(kind for kind in kinds if kind in KINDS)


def question_in(
    regime: str,
    description: DescribedCluster,
    slo: Slo,
    bounds: RegimeBounds,
    iops_seen: Sequence[float] = (),
    knobs: Optional[Sequence[str]] = None,
) -> RegimeQuestion:
    """Ask for the best settings in a regime. `iops_seen`: what clients did at other times, operations per second.

    Raises InputError where the description lacks the regime's work, and where no objective is about it.
    """
    kinds = work_in((regime,), bounds)
    if "scrub" in slo.work and not kinds & {"recovery", "backfill"}:
        # scrubs go on in any such regime, late or not
        kinds |= {"scrub"}
    model = _with_work(description.model, kinds)
    asked_iops = _asked_iops(regime, bounds, model, iops_seen)
    if asked_iops is not None:
        model = with_client_iops(model, asked_iops)
    question = question_of(replace(description, model=model), slo, knobs)
    missing = [kind for kind in sorted(work_in((regime,), bounds)) if kind not in question.work]
    if missing:
        raise InputError(f"regime {regime}", f"no {missing[0]} in the description", f"some {missing[0]} there")
    left_out = tuple(refusal.place for refusal in unpredictable(question))
    objectives = tuple(each for each in question.slo.objectives if each.text not in left_out)
    if not objectives:
        raise InputError(f"regime {regime}", "no objective about its work", "one, such as 'client.p95_ms <= 20 ms'")
    goal = question.slo.goal if question.slo.goal is None or question.slo.goal.text not in left_out else None
    wanted = replace(question.slo, objectives=objectives, goal=goal)
    return RegimeQuestion(regime, replace(question, slo=wanted), asked_iops, left_out)


def with_client_iops(model: ClusterModel, iops: float) -> ClusterModel:
    """The cluster with clients that ask for so much together, shared out as they are. They must have rates."""
    offered = sum(stream.rate or 0.0 for stream in model.clients)
    streams = (replace(stream, rate=(stream.rate or 0.0) * iops / offered) for stream in model.clients)
    return replace(model, clients=tuple(streams))


@dataclass(frozen=True)
class RegimeAnswer:
    """What `recommend` said of a regime."""

    asked: RegimeQuestion
    found: Recommendation

    @property
    def is_worth_a_page(self) -> bool:
        """Whether it is better than what is in force, and keeps the hard objectives: the plugin strikes what does not.

        Nor is there a page of a search that was interrupted.
        """
        return self.found.better and self.found.keeps_hard and self.found.searched.confirmed


def pages_of(
    answers: Sequence[RegimeAnswer],
    at: float,
    target: str,
    progress: Callable[[int, int], None] = lambda done, total: None,
    processes: Optional[int] = None,
) -> Tuple[Page, ...]:
    """The answers as unvalidated pages, with as few settings as keep the objectives in every regime.

    Each switch takes samples to be told, and until then the settings are another regime's. So what was found for one
    regime is tried in the others, on the seeds on which these were confirmed: it serves where it keeps every hard
    objective and is no worse than what is in force. Of settings that serve as many regimes those of the regime with the
    most markers come first. A regime without an answer of its own has them as well where they serve: to go back would
    be a switch. `progress` is told how many regimes are done, of how many.
    """
    own = [answer for answer in answers if answer.is_worth_a_page]
    served: Dict[str, Dict[str, Prediction]] = {answer.asked.regime: {} for answer in own}
    for number, answer in enumerate(answers):
        progress(number, len(answers))
        for regime, prediction in _tried_in(answer, own, processes).items():
            served[regime][answer.asked.regime] = prediction
    progress(len(answers), len(answers))
    left, chosen = {answer.asked.regime for answer in own}, []
    while left:
        best = max(served, key=lambda regime: (len(left & set(served[regime])), regime.count("+"), regime))
        chosen.append(best)
        left -= set(served[best])
    pages: List[Page] = []
    for answer in answers:
        source = next((regime for regime in chosen if answer.asked.regime in served[regime]), None)
        if source is not None:
            pages.append(_page(answer, source, served[source][answer.asked.regime], len(pages) + 1, at, target))
    return tuple(pages)


def _tried_in(answer: RegimeAnswer, sources: Sequence[RegimeAnswer], processes: Optional[int]) -> Dict[str, Prediction]:
    """Regime whose settings serve in this one too -> what they do here."""
    searched = answer.found.searched
    if not searched.confirmed:
        return {}
    model, seeds, judge = answer.asked.question.model, fresh_seeds(searched.effort), searched.judge
    served: Dict[str, Prediction] = {}
    with Runs(searched.effort, searched.run_s, processes) as runs:
        started = [
            (source.asked.regime, dict(source.found.searched.winner.settings))
            for source in sources
            if source is not answer
        ]
        waiting = [(regime, settings, runs.start(model, settings, seeds)) for regime, settings in started]
        for regime, settings, run in waiting:
            prediction = Prediction(regime, settings, run.collect(), errors=answer.asked.question.errors)
            means = prediction.means
            if judge.keeps_hard(means) and judge.loss(means) <= judge.loss(searched.before.means) + SLACK:
                served[regime] = prediction
    if answer in sources:
        served[answer.asked.regime] = searched.winner
    return served


def _page(answer: RegimeAnswer, source: str, prediction: Prediction, number: int, at: float, target: str) -> Page:
    asked, searched = answer.asked, answer.found.searched
    model = asked.question.model
    settings = to_release_units(_whole(prediction.settings, asked.question), model.release, model.osd.hardware)
    # the rates of work too: a boost asks which page is faster
    metrics = (*asked.question.slo.metrics, *_SPEEDS)
    effects = paired_effects(metrics, searched.before, prediction)
    before = searched.before.means
    load = {name: value for name, value in before.items() if name.startswith("client.") or name in metrics}
    why = searched.choice.reason if source == asked.regime else f"found for {source}, and keeps the objectives here too"
    return Page(
        number,
        asked.regime,
        dict(check_settings(settings, model.release)),
        UNVALIDATED,
        TWIN,
        at,
        target,
        load={name: value for name, value in sorted(load.items()) if math.isfinite(value)},
        effects={effect.metric: effect.ratio[0] - 1.0 for effect in effects if effect.ratio is not None},
        verdict=f"{why} (predicted by the twin, not measured)"[:LONGEST_TEXT],
    )


def _whole(settings: Settings, question: Question) -> Settings:
    """What a page must say for the settings to hold, whichever page or hand wrote what is in force now."""
    writes = changed(settings, question)
    if question.profile_in_force and not writes.keys() & {PROFILE, *MCLOCK_NINE}:
        # its nine values are not to be written as custom ones
        others = {name: value for name, value in settings.items() if name not in MCLOCK_NINE}
        settings = {**others, PROFILE: question.profile_in_force}
    profile = settings.get(PROFILE, "custom")
    named: Settings = {PROFILE: profile} if profile != "custom" else {}
    return {**named, **changed(settings, replace(question, in_force={})), **writes}


def _with_work(model: ClusterModel, kinds: FrozenSet[str]) -> ClusterModel:
    return replace(
        model,
        recovery=tuple(work for work in model.recovery if ("recovery" if work.degraded else "backfill") in kinds),
        scrub=model.scrub if "scrub" in kinds else (),
        snaptrim=model.snaptrim if "snaptrim" in kinds else (),
    )


def _asked_iops(regime: str, bounds: RegimeBounds, model: ClusterModel, seen: Sequence[float]) -> Optional[float]:
    """The most that clients ask for in the regime; None where their bounds are not told by rates."""
    on = regime.split("+")
    capacity = model.osds * model.osd.capacity_iops
    least, most, between = 0.0, math.inf, math.inf
    for marker in bounds.markers:
        if marker.metric != CLIENTS:
            continue
        scale = capacity if marker.of_capacity else 1.0
        if marker.name in on:
            least = max(least, marker.enter * scale)
        elif marker.enter * scale < most:
            most, between = marker.enter * scale, (marker.enter + marker.leave) / 2 * scale
    if not model.clients or not all(stream.rate for stream in model.clients) or (least, most) == (0.0, math.inf):
        return None
    rates: List[float] = [sum(stream.rate or 0.0 for stream in model.clients), *seen]
    fitting = [rate for rate in rates if least <= rate < most and rate > 0]
    return max(fitting, default=least or between)
