"""Pages of the book by the twin: each regime as a question to `recommend`, and its answer as a page.

A regime is what its markers say. Those that are on say which work there is, and how much clients ask for at the
least; those that are off say how much they ask for at the most. Of what was seen of clients in such a regime the most
is taken, since settings that keep the objectives then keep them below it as well.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from itertools import combinations, islice
from typing import Callable, Dict, FrozenSet, Iterable, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.core.book.page import LONGEST_TEXT, TWIN, UNVALIDATED, Page
from ceph_tuner.core.boost.kinds import KINDS as BOOSTED
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.judge import TOLERANCE, UNSEEN_VIOLATION, Judge
from ceph_tuner.core.goals.ranking import ENOUGH, LEAST_GAIN
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.knobs.catalogue import MCLOCK_NINE, PROFILE
from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.core.knobs.settings import check_settings
from ceph_tuner.core.measure.timeline import REGIME, TimelineEntry
from ceph_tuner.core.profiles.translation import from_release_units, to_release_units
from ceph_tuner.core.regimes.bounds import IDLE, RegimeBounds, regime_of
from ceph_tuner.recommend import IN_FORCE, Prediction, Question, SearchEffort, changed
from ceph_tuner.recommend.page_sharing import KINDS, shared_settings, with_knobs_of_other_work
from ceph_tuner.recommend.paired_effect import paired_effects
from ceph_tuner.recommend.question import question_of
from ceph_tuner.recommend.recommendation import Recommendation
from ceph_tuner.recommend.runs import Runs, run_length_s
from ceph_tuner.recommend.search import fresh_seeds, profiles_of, unpredictable
from ceph_tuner.twin.described_cluster import DescribedCluster
from ceph_tuner.twin.model import ClusterModel

CLIENTS = "client.iops"
_SPEEDS = tuple(dict.fromkeys(metric for kind in BOOSTED.values() for metric in kind.speed))
MOST_PREDICTED = 40
"""Pages: a book has room for twice as many small ones, and trials are to find some."""
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


def combinations_of(regimes: Sequence[str], bounds: RegimeBounds) -> Tuple[str, ...]:
    """Other regimes that the markers of these make together, those of the fewest markers first, as there is room."""
    on = {part for regime in regimes for part in regime.split("+")}
    markers = [marker.name for marker in bounds.markers if marker.name in on]
    each = ("+".join(names) for count in range(2, len(markers) + 1) for names in combinations(markers, count))
    return tuple(islice((name for name in each if name not in regimes), max(0, MOST_PREDICTED - len(regimes))))


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
    return RegimeQuestion(regime, replace(question, slo=wanted, switched=True), asked_iops, left_out)


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
    def is_worth_trying(self) -> bool:
        """Whether it is better than what is in force, by a search that was not interrupted."""
        return self.found.better and self.found.searched.confirmed


def pages_of(
    answers: Sequence[RegimeAnswer],
    at: float,
    target: str,
    progress: Callable[[int, int], None] = lambda done, total: None,
    processes: Optional[int] = None,
    others: Sequence[RegimeQuestion] = (),
) -> Tuple[Page, ...]:
    """The answers as unvalidated pages, with as few settings as keep the objectives in every regime.

    Each switch takes samples to be told, and until then the settings are another regime's. So what was found for one
    regime is tried in the others, on the seeds on which these were confirmed, and `shared_settings` takes the fewest. A
    regime without an answer of its own has them as well where they serve: to go back would be a switch. For the same
    reason a page has the knobs of work that its regime lacks as the pages of regimes with that work have them.
    `others`: regimes in which nothing was searched, and in which the pages are tried. `progress` is told how many
    regimes are done, of how many.
    """
    own = [answer for answer in answers if answer.is_worth_trying]
    count = len(answers) + len(others)
    tried: List[TriedSettings] = []
    for number, answer in enumerate(answers):
        progress(number, count)
        tried.append(_tried_in(answer, own, processes))
    sources = shared_settings({each.asked.regime: each.margins() for each in tried})
    pages: List[Page] = []
    for answer, each in zip(answers, tried):
        source = sources.get(each.asked.regime)
        if source is not None:
            settings = _settings_of(each.by_source[source], each.asked.question)
            is_own = source == each.asked.regime
            why = answer.found.searched.choice.reason if is_own else f"found for {source}, and {each.words(source)}"
            pages.append(_page(each, source, settings, why, len(pages) + 1, at, target))
    pages = list(with_knobs_of_other_work(pages, {each.asked.regime: each.asked.work for each in tried}))
    distinct = {json.dumps(page.settings, sort_keys=True): page for page in reversed(pages)}
    first = {page.regime: page for page in distinct.values()}
    anew: List[TriedSettings] = []
    for number, asked in enumerate(others if first else ()):
        progress(len(answers) + number, count)
        anew.append(_tried_anew(asked, first, answers[0].found.searched.effort, processes))
    progress(count, count)
    sources = shared_settings({each.asked.regime: each.margins() for each in anew})
    for each in anew:
        source = sources.get(each.asked.regime)
        if source is not None:
            why = f"those of page {first[source].number}: it {each.words(source)}"
            pages.append(_page(each, source, first[source].settings, why, len(pages) + 1, at, target))
    return tuple(pages)


@dataclass(frozen=True)
class TriedSettings:
    """Settings of several regimes, as they do in one."""

    asked: RegimeQuestion
    judge: Judge
    before: Prediction
    by_source: Mapping[str, Prediction]

    def margins(self) -> Dict[str, float]:
        """Of those that may have a page the margin of the clients, by source.

        That is the least one of hard objectives in the worst run, as a share of the bound. A page keeps each hard
        objective, and is no worse than what is in force. Where none does, and what is in force misses one too, to go
        back to that would be worse: then it is those that miss the least, and break nothing that is kept now by more
        than `TOLERANCE`.
        """
        losses = {source: self.judge.loss(prediction.means) for source, prediction in self.by_source.items()}
        now = self.judge.loss(self.before.means)
        fit = [source for source, loss in losses.items() if self.keeps(source) and loss <= now + SLACK]
        if not fit:
            mending = [
                source
                for source, loss in losses.items()
                if loss < now - LEAST_GAIN[True] and not self._breaks(self.by_source[source].means)
            ]
            least = min((losses[source] for source in mending), default=0.0)
            fit = [source for source in mending if losses[source] <= least + LEAST_GAIN[True]]
        return {source: self._client_margin(self.by_source[source]) for source in fit}

    def keeps(self, source: str) -> bool:
        """Whether each hard objective holds with the settings of that source."""
        return self.judge.keeps_hard(self.by_source[source].means)

    def words(self, source: str) -> str:
        """What they do here."""
        return "keeps the objectives here too" if self.keeps(source) else "misses less here than what is in force"

    def _breaks(self, means: Mapping[str, float]) -> bool:
        held = self.judge.must_hold()
        return any(each.margin(means.get(each.metric, math.nan), bound) < -TOLERANCE for each, bound in held.items())

    def _client_margin(self, prediction: Prediction) -> float:
        verdicts = self.judge.verdicts(prediction.candidate.worst(self.judge))
        margins = [
            -UNSEEN_VIOLATION if each.margin is None else each.margin
            for each in verdicts
            if each.objective.hard and each.objective.metric.startswith("client.")
        ]
        return min(margins, default=ENOUGH)


def _tried_in(answer: RegimeAnswer, sources: Sequence[RegimeAnswer], processes: Optional[int]) -> TriedSettings:
    """What was found for others, in a regime with an answer of its own."""
    searched, question = answer.found.searched, answer.asked.question
    settings_by_source = {source.asked.regime: source.found.searched.winner.settings for source in sources}
    own = settings_by_source.pop(answer.asked.regime, None)
    if not searched.confirmed:
        settings_by_source = {}
    with Runs(question, searched.effort, searched.run_s, processes) as runs:
        tried = _run(runs, question, settings_by_source, searched.effort)
    if own is not None:
        tried[answer.asked.regime] = searched.winner
    return TriedSettings(answer.asked, searched.judge, searched.before, tried)


def _tried_anew(
    asked: RegimeQuestion, pages: Mapping[str, Page], effort: SearchEffort, processes: Optional[int]
) -> TriedSettings:
    """Pages of other regimes, in one in which nothing was searched."""
    question, model = asked.question, asked.question.model
    in_force = next(iter(profiles_of(question).values()))
    by_source = {
        source: from_release_units(page.settings, model.release, model.osd.hardware) for source, page in pages.items()
    }
    run_s = run_length_s(model, question.in_force, effort)
    with Runs(question, effort, run_s, processes) as runs:
        tried = _run(runs, question, {**by_source, IN_FORCE: in_force}, effort)
    before = tried.pop(IN_FORCE)
    return TriedSettings(asked, Judge(question.slo, before.means), before, tried)


def _run(
    runs: Runs, question: Question, settings_by_label: Mapping[str, Settings], effort: SearchEffort
) -> Dict[str, Prediction]:
    """Each of them on the fresh seeds."""
    started = {
        label: runs.start(question.model, settings, fresh_seeds(effort))
        for label, settings in settings_by_label.items()
    }
    return {
        label: Prediction(label, settings_by_label[label], run.collect(), errors=question.errors)
        for label, run in started.items()
    }


def _settings_of(prediction: Prediction, question: Question) -> Settings:
    """As the cluster's release writes them."""
    model = question.model
    settings = to_release_units(_whole(prediction.settings, question), model.release, model.osd.hardware)
    return dict(check_settings(settings, model.release))


def _page(tried: TriedSettings, source: str, settings: Settings, why: str, number: int, at: float, target: str) -> Page:
    # the rates of work too: a boost asks which page is faster
    metrics = (*tried.asked.question.slo.metrics, *_SPEEDS)
    effects = paired_effects(metrics, tried.before, tried.by_source[source])
    # and how much clients asked for. A book has little room
    load = {name: value for name, value in tried.before.means.items() if name in (CLIENTS, *metrics)}
    return Page(
        number,
        tried.asked.regime,
        settings,
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
