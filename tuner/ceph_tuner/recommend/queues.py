"""Wpq or mClock on a described cluster: both on the same seeds, how sure their order is, and what the change costs.

slept_at()          what wpq sleeps between pieces of each kind of work
QueueOrder          which queue does better in one metric, as far as the twin can tell
AgainstWpq          wpq beside one choice of mClock settings
QueueComparison     wpq beside everything that a search compared, and the cost of a change to it
compare_queues()    a finished search in, the comparison out
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import AbstractSet, Dict, Iterable, List, Mapping, Optional, Tuple

from scipy.special import stdtrit

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.catalogue import MCLOCK_NINE, PROFILE
from ceph_tuner.core.knobs.releases import Settings, Value
from ceph_tuner.core.knobs.settings import settings_key
from ceph_tuner.core.measure.metrics import METRICS, work_of
from ceph_tuner.recommend import COVERAGE, Error, Prediction
from ceph_tuner.recommend.lasting import does_not_last
from ceph_tuner.recommend.paired_effect import paired_effects
from ceph_tuner.recommend.rebuild import RESTART, RebuildChange, RebuildStep, entries_for, restart_steps
from ceph_tuner.recommend.rebuild_cost import Cost, cost_of
from ceph_tuner.recommend.rebuild_plan import COST_SEEDS, Planned, judged
from ceph_tuner.recommend.runs import Runs
from ceph_tuner.recommend.search import SearchedSettings, fresh_seeds
from ceph_tuner.twin.knobs_in_force import wpq_sleep
from ceph_tuner.twin.model import MCLOCK, WPQ, ClusterModel
from ceph_tuner.twin.published import TOLD_AGAINST_WPQ, published_metric

QUEUE = "osd_op_queue"
BETTER_WPQ, BETTER_MCLOCK, UNDECIDED, NOT_TOLD = "wpq", "mClock", "undecided", "not told"

EVEN = 0.5
"""Share of published orders told rightly up to which the twin's word is no better than a coin."""

LEAST = 1.02
"""Of two means, the ratio from which on one is named the better: on the same seeds chance hides less than any window
shows."""

CODED_READS_SCHEDULED = (20, 2, 3)
"""From this version on mClock schedules the reads of an erasure code's recovery (ceph/ceph#69773)."""


@dataclass(frozen=True)
class QueueOrder:
    """One metric under both queues. `ratio` is wpq over mClock: mean, and ends that hold it in COVERAGE of cases."""

    metric: str
    mclock: float
    wpq: float
    ratio: Optional[Tuple[float, float, float]]
    """None where a run has nothing or 0 of it."""
    sleeps: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Kind of work -> what wpq sleeps between its pieces."""

    @property
    def better(self) -> str:
        """The queue that does better; UNDECIDED where both do as well, or chance or the twin's known error decides.

        NOT_TOLD where wpq sleeps: how fast such work then is, and how slow clients, the twin knows badly.
        """
        if work_of(self.metric) in self.sleeps:
            return NOT_TOLD
        if self.ratio is None or self.ratio[1] <= 1.0 <= self.ratio[2] or 1 / LEAST < self.ratio[0] < LEAST:
            return UNDECIDED
        falls = self.ratio[2] < 1.0
        if falls == METRICS[self.metric].lower_is_better:
            return BETTER_WPQ
        return NOT_TOLD if self.sleeps else BETTER_MCLOCK

    @property
    def told(self) -> Tuple[int, int]:
        """Published orders against wpq in such a metric: so many the twin tells as measured, of so many."""
        return TOLD_AGAINST_WPQ.get(published_metric(self.metric), (0, 0))

    @property
    def weak(self) -> bool:
        """Whether the twin was right about such orders no more often than a coin; one order alone shows nothing."""
        right, of = self.told
        return right <= EVEN * of or of < 2


@dataclass(frozen=True)
class AgainstWpq:
    """Wpq beside one choice of mClock settings, seed by seed, with the same knobs beside the scheduler's."""

    mclock: Prediction
    wpq: Prediction
    orders: Tuple[QueueOrder, ...]
    better: str
    """By all objectives together, beyond chance and by enough to be worth a restart; else UNDECIDED. NOT_TOLD where a
    sleep of wpq could turn it round."""


@dataclass(frozen=True)
class QueueComparison:
    """`against` has the best mClock settings first, then what is in force and the built-in profiles."""

    searched: SearchedSettings
    change: RebuildChange
    wpq: Prediction
    """With what is in force beside the scheduler's values."""
    against: Tuple[AgainstWpq, ...]
    cost: Optional[Cost]
    """None where it is more than the twin can simulate at once."""
    caveats: Tuple[str, ...]
    sleeps: Mapping[str, str] = field(default_factory=dict, hash=False)
    """As in `QueueOrder`."""

    @property
    def best(self) -> AgainstWpq:
        """Wpq beside the best mClock settings."""
        return self.against[0]

    def steps(self, cluster: str = "ceph") -> Tuple[RebuildStep, ...]:
        """How to bring wpq onto all OSDs of the description; the journal of the cluster keeps the way back."""
        target = self.searched.question.target
        apply = f"ceph-tuner apply --cluster {quote(cluster)} --set {QUEUE}={WPQ} --yes"
        where, each = entries_for(target)
        return RebuildStep(apply if where == "osd" else f"{apply} --target {where}", each), *self._restarts(WPQ)

    def undo(self, cluster: str = "ceph") -> Tuple[RebuildStep, ...]:
        """The way back: the database to the byte, and restarts once more."""
        each = entries_for(self.searched.question.target)[1] and "such change"
        note = "it takes the newest change back: `ceph-tuner history` says which that is"
        return RebuildStep(f"ceph-tuner rollback --cluster {quote(cluster)}", each, note=note), *self._restarts(MCLOCK)

    def _restarts(self, queue: str) -> Tuple[RebuildStep, ...]:
        it_says = f"`ceph tell osd.ID config get {QUEUE}` says {queue} for each of its OSDs"
        return restart_steps(self.searched.question.model, it_says)


def compare_queues(
    search_result: SearchedSettings,
    stored_bytes: Mapping[str, float],
    processes: Optional[int] = None,
    sleeps_set: Optional[Settings] = None,
) -> QueueComparison:
    """Run wpq on the seeds of the last round, and hold it against everything that was compared there and lasts.

    `stored_bytes`: bytes by pool, where known. `sleeps_set`: sleeps that are not at their default. An interrupt is
    passed on.
    """
    while (decline := does_not_last(search_result, processes)) is not None:
        search_result = search_result.without_winner(decline.words)
    sleeps = slept_at(search_result.question.model, sleeps_set or {})
    question, effort = search_result.question, search_result.effort
    model = replace(question.model, scheduler=WPQ)
    change = RebuildChange(RESTART, model, {QUEUE: (MCLOCK, WPQ)})
    seeds = fresh_seeds(effort) if search_result.confirmed else range(effort.seed, effort.seed + effort.seeds)
    predictions = [search_result.closest, search_result.before, *search_result.built_in]
    by_label = {entry.label: entry for entry in predictions}
    with Runs(question, effort, search_result.run_s, processes) as runs:
        kept = {label: _kept_under_wpq(entry.settings) for label, entry in by_label.items()}
        in_force = settings_key(question.kept)
        choices = {settings_key(own): (f"{WPQ}, other knobs of {label}", own) for label, own in kept.items()}
        choices[in_force] = (WPQ, dict(question.kept))
        started = {key: runs.start(model, own, seeds) for key, (_, own) in choices.items()}
        wpq_by_key = {
            key: Prediction(label, own, started[key].collect(), errors=question.errors)
            for key, (label, own) in choices.items()
        }
        wpq, settings = wpq_by_key[in_force], dict(question.kept)
        # a knob that the search left at its default, or that wpq does not heed, makes no other choice
        beside = {key: wpq if entry.runs == wpq.runs else entry for key, entry in wpq_by_key.items()}
        against = tuple(
            _against(search_result, change, entry, beside[settings_key(kept[label])], sleeps)
            for label, entry in by_label.items()
        )
        cost = None
        # with what was missed during a restart there may be more work than the twin has room for
        with suppress(InputError):
            few = range(effort.seed, effort.seed + min(COST_SEEDS, effort.fresh))
            cost = cost_of(change, question.model, settings, search_result.before.means, stored_bytes, runs, few)
    return QueueComparison(search_result, change, wpq, against, cost, tuple(caveats(question.model, sleeps)), sleeps)


def _kept_under_wpq(settings: Settings) -> Dict[str, Value]:
    """What of settings is in force under wpq as well: all but the profile and its nine values."""
    return {name: value for name, value in settings.items() if name != PROFILE and name not in MCLOCK_NINE}


def _against(
    search_result: SearchedSettings,
    change: RebuildChange,
    mclock: Prediction,
    wpq: Prediction,
    sleeps: Mapping[str, str],
) -> AgainstWpq:
    question, judge = search_result.question, search_result.judge
    forth = judged(change, question.model, mclock, wpq, judge)
    back = judged(change, question.model, wpq, mclock, judge)
    metrics = [objective.metric for objective in question.slo.objectives]
    orders = queue_orders(metrics, mclock, wpq, question.errors, sleeps)
    kinds = {work_of(objective.metric) for objective in question.slo.objectives}
    return AgainstWpq(mclock, wpq, orders, _better(forth, back, sleeps, kinds))


def queue_orders(
    metrics: Iterable[str],
    mclock: Prediction,
    wpq: Prediction,
    errors: Mapping[str, Error],
    sleeps: Mapping[str, str],
) -> Tuple[QueueOrder, ...]:
    """The order in each of the metrics that both have, out of runs on the same seeds."""
    return tuple(
        QueueOrder(
            effect.metric,
            effect.before,
            effect.after,
            _with_model_error(effect.ratio, errors.get(effect.metric)),
            sleeps,
        )
        for effect in paired_effects(metrics, mclock, wpq)
    )


def _better(forth: Planned, back: Planned, sleeps: Mapping[str, str], kinds: AbstractSet[str]) -> str:
    """By all objectives, which are about these kinds of work."""
    if kinds & set(sleeps) or (sleeps and back.worth):
        return NOT_TOLD
    return BETTER_WPQ if forth.worth else BETTER_MCLOCK if back.worth else UNDECIDED


def _with_model_error(
    ratio: Optional[Tuple[float, float, float]], error: Optional[Error]
) -> Optional[Tuple[float, float, float]]:
    """With the twin's own error, where a fit knows it: it may be off by as much under either queue."""
    if ratio is None or error is None:
        return ratio
    scale, freedom = error
    own = math.sqrt(2.0) * float(stdtrit(freedom, (1 + COVERAGE) / 2)) * scale
    mean, low, high = (math.log(part) for part in ratio)
    return ratio[0], math.exp(mean - math.hypot(mean - low, own)), math.exp(mean + math.hypot(high - mean, own))


def caveats(model: ClusterModel, sleeps: Mapping[str, str]) -> List[str]:
    """Where the twin's word about wpq is worth less, and what Ceph itself says of such a cluster."""
    right, of = (sum(part) for part in zip(*TOLD_AGAINST_WPQ.values()))
    notes = [
        f"the twin tells {right} of {of} published orders between wpq and mClock as they were measured "
        "(benchmarks/results/twin-published.md): measure before you restart a cluster"
    ]
    version = model.version or model.release.newest
    if any(pool.k for pool in model.pools):
        notes.append(
            "no published test compares the queues on erasure-coded pools; the twin was held against both on one lab "
            "(benchmarks/results/queues-on-lab.md)"
        )
        if version < CODED_READS_SCHEDULED and any(model.pool(work.pool).k for work in model.recovery):
            notes.append(
                "before 20.2.3 the reads that rebuild an erasure code go past mClock and past its limits; Ceph's "
                "documentation advises wpq for erasure-coded clusters with slow operations (ceph/ceph#68932)"
            )
    if sleeps:
        notes.append(
            f"under wpq an OSD sleeps between items of work ({', '.join(dict.fromkeys(sleeps.values()))}). In the one "
            "published test of that, recovery on hard disks, the twin was a third too slow: so no queue is named "
            f"for {', '.join(sleeps)}, nor mClock for clients"
        )
    notes.append("the twin knows osd_op_queue_cut_off `high` alone, and the default priorities of wpq")
    return notes


def slept_at(model: ClusterModel, sleeps_set: Settings) -> Dict[str, str]:
    """Kind of work that the model has -> what wpq sleeps between its pieces, where that is not 0."""
    stems = {
        "recovery": "osd_recovery_sleep_degraded" if any(work.degraded for work in model.recovery) else "",
        "backfill": "osd_recovery_sleep" if any(not work.degraded for work in model.recovery) else "",
        "snaptrim": "osd_snap_trim_sleep" if model.snaptrim else "",
        "deletion": "osd_delete_sleep" if model.deletion else "",
        "scrub": "osd_scrub_sleep" if model.scrub else "",
    }
    sleeps = {kind: wpq_sleep(stem, sleeps_set, model) for kind, stem in stems.items() if stem}
    return {kind: f"{name} {seconds:g} s" for kind, (name, seconds) in sleeps.items() if seconds > 0}
