"""Pages of the book by the twin: the answers of `recommend` to the questions of the regimes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ceph_tuner.core.book.page import LONGEST_TEXT, TWIN, UNVALIDATED, Page
from ceph_tuner.core.boost.kinds import KINDS as BOOSTED
from ceph_tuner.core.goals.judge import TOLERANCE, UNSEEN_VIOLATION, Judge
from ceph_tuner.core.goals.ranking import ENOUGH, LEAST_GAIN
from ceph_tuner.core.knobs.catalogue import KNOBS, MCLOCK_NINE, PROFILE
from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.core.knobs.settings import check_settings, settings_key
from ceph_tuner.core.profiles.translation import from_release_units, to_release_units
from ceph_tuner.recommend import IN_FORCE, Prediction, Question, SearchEffort, changed
from ceph_tuner.recommend.lasting import gets_worse
from ceph_tuner.recommend.page_sharing import shared_settings, with_knobs_of_other_work
from ceph_tuner.recommend.paired_effect import paired_effects
from ceph_tuner.recommend.recommendation import Recommendation
from ceph_tuner.recommend.regime_questions import CLIENTS, RegimeQuestion
from ceph_tuner.recommend.runs import Runs, run_length_s
from ceph_tuner.recommend.search import fresh_seeds, profiles_of

CLIENT_WEIGHT = "osd_mclock_scheduler_client_wgt"
_SPEEDS = tuple(dict.fromkeys(metric for kind in BOOSTED.values() for metric in kind.speed))
SLACK = 0.02
"""In the loss, of settings that serve beside those in force: headroom that nobody asked for."""
WISHES = 0.05
"""In the loss, by which shared settings may fall behind: a soft objective missed by 5% more, a goal less by a fifth."""


@dataclass(frozen=True)
class RegimeAnswer:
    """What `recommend` said of a regime."""

    question: RegimeQuestion
    recommendation: Recommendation

    @property
    def is_worth_trying(self) -> bool:
        """Whether it is better than what is in force, by a search that was not interrupted."""
        return self.recommendation.better and self.recommendation.searched.confirmed


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
    reason a page has the knobs of work that its regime lacks as the pages of regimes with that work have them. Its
    clients weigh as much as does no harm in its regime (`_with_heavy_clients`).
    `others`: regimes in which nothing was searched, and in which the pages are tried. `progress` is told how many
    regimes are done, of how many.
    """
    own = [answer for answer in answers if answer.is_worth_trying]
    count = len(answers) + len(others)
    reasons = {answer.question.regime: answer.recommendation.searched.choice.reason for answer in answers}
    found: Dict[str, Prediction] = {}
    for answer in own:
        regime, winner = answer.question.regime, answer.recommendation.searched.winner
        found[regime] = _with_heavy_clients(answer, processes)
        if found[regime] is not winner:
            weight = found[regime].settings[CLIENT_WEIGHT]
            reasons[regime] += f"; clients weigh {weight}, so that what a limit holds back does not go first later"
    tried: Dict[str, TriedSettings] = {}
    for number, answer in enumerate(answers):
        progress(number, count)
        tried[answer.question.regime] = _tried_in(answer, found, processes)
    pages: List[Page] = []
    for regime, source in _shared(tried).items():
        each = tried[regime]
        settings = _settings_of(each.by_source[source].standing, each.question.question)
        why = reasons[regime] if source == regime else f"found for {source}, and {each.words(source)}"
        pages.append(_page(each, source, settings, why, len(pages) + 1, at, target))
    pages = list(with_knobs_of_other_work(pages, {regime: each.question.work for regime, each in tried.items()}))
    distinct = {settings_key(page.settings): page for page in reversed(pages)}
    first = {page.regime: page for page in distinct.values()}
    anew: Dict[str, TriedSettings] = {}
    for number, question in enumerate(others if first else ()):
        progress(len(answers) + number, count)
        anew[question.regime] = _tried_anew(question, first, answers[0].recommendation.searched.effort, processes)
    progress(count, count)
    for regime, source in _shared(anew).items():
        why = f"those of page {first[source].number}: it {anew[regime].words(source)}"
        pages.append(_page(anew[regime], source, first[source].settings, why, len(pages) + 1, at, target))
    return tuple(pages)


class PageTrial(NamedTuple):
    """What settings do in a regime."""

    coming: Prediction
    """As they come into force in it: what goes on began under what is in force now."""
    standing: Prediction
    """As they were in force before it began: the page of the regime before has the same."""


@dataclass(frozen=True)
class TriedSettings:
    """Settings of several regimes, as they do in one."""

    question: RegimeQuestion
    judge: Judge
    before: Prediction
    by_source: Mapping[str, PageTrial]

    def margins(self) -> Dict[str, float]:
        """Of those that may have a page the margin of the clients, by source.

        That is the least one of hard objectives in the worst run, as a share of the bound. A page keeps each hard
        objective once it stands, and is no worse than what is in force. Where none does, and what is in force misses
        one too, to go back to that would be worse: then it is those that miss the least, and break nothing that is
        kept now by more than `TOLERANCE`. What comes into force is no worse than what is, and breaks nothing either:
        the guard would take it back. Of those that keep all hard objectives, none falls behind the best of them by more
        than `WISHES` in soft objectives and the goal.
        """
        now = self.judge.loss(self.before.means)
        losses = {
            source: self.judge.loss(trial.standing.means)
            for source, trial in self.by_source.items()
            if self.judge.loss(trial.coming.means) <= now + SLACK and not self._breaks(trial.coming.means)
        }
        fit = [source for source, loss in losses.items() if self.keeps(source) and loss <= now + SLACK]
        # how much room is left is told by the margin
        wished = {source: self.judge.loss(self.by_source[source].standing.means, 0.0) for source in fit}
        fit = [source for source in fit if wished[source] <= min(wished.values()) + WISHES]
        if not fit:
            mending = [
                source
                for source, loss in losses.items()
                if loss < now - LEAST_GAIN[True] and not self._breaks(self.by_source[source].standing.means)
            ]
            least = min((losses[source] for source in mending), default=0.0)
            fit = [source for source in mending if losses[source] <= least + LEAST_GAIN[True]]
        return {source: self._client_margin(self.by_source[source].standing) for source in fit}

    def keeps(self, source: str) -> bool:
        """Whether each hard objective holds once the settings of that source stand."""
        return self.judge.keeps_hard(self.by_source[source].standing.means)

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


def _shared(tried: Mapping[str, TriedSettings]) -> Dict[str, str]:
    return shared_settings({regime: each.margins() for regime, each in tried.items()})


def _with_heavy_clients(answer: RegimeAnswer, processes: Optional[int]) -> Prediction:
    """What was found, with clients that weigh the most where that may have a page in its regime as well.

    mClock's clocks of shares stay through a switch, and advance by what a class was served, divided by its weight.
    Beside light clients a class that waits for its limit falls far behind them. Once another page lifts that limit it
    is served first, for minutes. It does not fall behind heavy ones. Where knobs are named to search, only these move.
    """
    searched, question = answer.recommendation.searched, answer.question.question
    light, most = searched.winner, KNOBS[CLIENT_WEIGHT].search_high
    may_move = question.knobs is None or CLIENT_WEIGHT in question.knobs
    if not may_move or most is None or light.settings.get(CLIENT_WEIGHT, most) == most:
        return light
    both = {"light": light.settings, "heavy": {**light.settings, CLIENT_WEIGHT: int(most)}}
    trials = _trials(question, both, searched.effort, searched.run_s, processes, {"light": light})
    tried = TriedSettings(answer.question, searched.judge, searched.before, trials)
    fit = _lasting(tried, searched.effort, searched.run_s, processes).margins()
    return replace(trials["heavy"].coming, label=light.label) if "heavy" in fit else light


def _tried_in(answer: RegimeAnswer, found: Mapping[str, Prediction], processes: Optional[int]) -> TriedSettings:
    """What was `found` for others, by regime, in one with an answer of its own."""
    searched, question = answer.recommendation.searched, answer.question.question
    settings_by_source = {source: prediction.settings for source, prediction in found.items() if searched.confirmed}
    # they have run here on the fresh seeds
    own = {regime: found[regime] for regime in settings_by_source if regime == answer.question.regime}
    trials = _trials(question, settings_by_source, searched.effort, searched.run_s, processes, own)
    tried = TriedSettings(answer.question, searched.judge, searched.before, trials)
    return _lasting(tried, searched.effort, searched.run_s, processes)


def _tried_anew(
    regime_question: RegimeQuestion, pages: Mapping[str, Page], effort: SearchEffort, processes: Optional[int]
) -> TriedSettings:
    """Pages of other regimes, in one in which nothing was searched."""
    question, model = regime_question.question, regime_question.question.model
    in_force = next(iter(profiles_of(question).values()))
    by_source = {
        source: from_release_units(page.settings, model.release, model.osd.hardware) for source, page in pages.items()
    }
    run_s = run_length_s(model, question.in_force, effort)
    tried = _trials(question, {**by_source, IN_FORCE: in_force}, effort, run_s, processes, {})
    before = tried.pop(IN_FORCE).standing
    return _lasting(
        TriedSettings(regime_question, Judge(question.slo, before.means), before, tried), effort, run_s, processes
    )


def _lasting(tried: TriedSettings, effort: SearchEffort, run_s: float, processes: Optional[int]) -> TriedSettings:
    """Those that may have a page, as they do in the long run where that is worse."""
    question = tried.question.question
    checked_sources: Set[str] = set()
    while True:
        new_sources = [source for source in tried.margins() if source not in checked_sources]
        checked_sources.update(new_sources)
        trials = dict(tried.by_source)
        for source in new_sources:
            trial = trials.pop(source)
            decline = gets_worse(question, effort, run_s, tried.judge, trial.standing, processes, True)
            if decline is None:
                trials[source] = trial
            elif decline.long is not None:
                trials[source] = trial._replace(standing=decline.long)
        if trials == tried.by_source:
            return tried
        tried = replace(tried, by_source=trials)


def _trials(
    question: Question,
    settings_by_label: Mapping[str, Settings],
    effort: SearchEffort,
    run_s: float,
    processes: Optional[int],
    coming: Mapping[str, Prediction],
) -> Dict[str, PageTrial]:
    """Each of them on the fresh seeds. `coming`: those that have run there as they come into force."""
    seeds = fresh_seeds(effort)
    with Runs(question, effort, run_s, processes) as runs:
        started = {
            (label, standing): runs.start(question.model, settings, seeds, standing=standing)
            for label, settings in settings_by_label.items()
            for standing in (False, True)
            if standing or label not in coming
        }
        predictions = {
            (label, standing): Prediction(label, settings_by_label[label], run.collect(), errors=question.errors)
            for (label, standing), run in started.items()
        }
    return {
        label: PageTrial(coming[label] if label in coming else predictions[label, False], predictions[label, True])
        for label in settings_by_label
    }


def _settings_of(prediction: Prediction, question: Question) -> Settings:
    """As the cluster's release writes them."""
    model = question.model
    settings = to_release_units(_whole(prediction.settings, question), model.release, model.osd.hardware)
    return dict(check_settings(settings, model.release))


def _page(tried: TriedSettings, source: str, settings: Settings, why: str, number: int, at: float, target: str) -> Page:
    # the rates of work too: a boost asks which page is faster
    metrics = (*tried.question.question.slo.metrics, *_SPEEDS)
    effects = paired_effects(metrics, tried.before, tried.by_source[source].standing)
    # and how much clients asked for. A book has little room
    load = {name: value for name, value in tried.before.means.items() if name in (CLIENTS, *metrics)}
    return Page(
        number,
        tried.question.regime,
        settings,
        UNVALIDATED,
        TWIN,
        at,
        target,
        load={name: value for name, value in sorted(load.items()) if math.isfinite(value)},
        effects={effect.metric: effect.ratio[0] - 1.0 for effect in effects if effect.ratio is not None},
        verdict=f"{why} (predicted by the twin, not measured)"[:LONGEST_TEXT],
        policy=tried.question.policy,
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
