"""Each regime as a question to `recommend`.

A regime is what its markers say. Those that are on say which work there is, and how much clients ask for at the
least; those that are off say how much they ask for at the most. Of what was seen of clients in such a regime the most
is taken, since settings that keep the objectives then keep them below it as well. A marker of a policy says whose
objectives they are.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, combinations, islice, zip_longest
from typing import Collection, Dict, FrozenSet, Iterable, List, Optional, Sequence, Tuple, Union, overload

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.goals.slo_calendar import BASE, SloCalendar
from ceph_tuner.core.goals.week_behind import hours_under
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.measure.sample import Window
from ceph_tuner.core.measure.timeline import REGIME, TimelineEntry
from ceph_tuner.core.regimes.bounds import IDLE, RegimeBounds, regime_of
from ceph_tuner.recommend import Question, SearchEffort
from ceph_tuner.recommend.lasting import LONG
from ceph_tuner.recommend.page_sharing import KINDS
from ceph_tuner.recommend.question import question_of
from ceph_tuner.recommend.search import predictable
from ceph_tuner.twin.described_cluster import DescribedCluster
from ceph_tuner.twin.model import ClusterModel, RecoveryWork, SnaptrimWork
from ceph_tuner.twin.simulation import Simulation

CLIENTS = "client.iops"
_PROBE_S, _PLENTY = 10.0, 1000
_FASTER = 3.0
"""Than under any built-in profile, what is tried may work at most."""
MOST_PREDICTED = 40
"""Pages: a book has room for twice as many small ones, and trials are to find some."""


@dataclass(frozen=True)
class RegimeQuestion:
    """A regime as `recommend` is asked of it."""

    regime: str
    question: Question
    client_iops: Optional[float]
    """What clients ask for together, operations per second; None where that is not told."""
    left_out: Tuple[str, ...]
    """Objectives that are about nothing in this regime, or that the twin does not predict."""
    policy: str = BASE
    """Whose objectives they are."""

    @property
    def work(self) -> Tuple[str, ...]:
        """Kinds of work that there are."""
        return tuple(self.question.work)


def usual_regimes(
    bounds: RegimeBounds,
    entries: Iterable[TimelineEntry] = (),
    scope: str = "",
    policies: Collection[str] = (),
) -> Tuple[str, ...]:
    """Those that the scope, or the cluster, was in, and in any case one for each marker, and none.

    Where each policy of the calendar has a marker, it is one for each marker under each policy. `policies`: as for
    `RegimeBounds.tells`.
    """
    single = [IDLE, *(marker.name for marker in bounds.markers)]
    if bounds.mark_all(policies):
        of_policies = [marker.name for marker in bounds.of_policies if marker.policy in policies]
        single += [f"{policy}+{marker.name}" for policy in of_policies for marker in bounds.of_metrics]
    met = [entry.name for entry in entries if entry.kind == REGIME and entry.scope == scope]
    names = {name for name in (_as_told(each, bounds, policies) for each in (*single, *met)) if name}
    return tuple(sorted(names, key=lambda name: (name != IDLE, name.count("+"), name)))


def regimes_named(
    names: Sequence[str],
    bounds: RegimeBounds,
    entries: Iterable[TimelineEntry] = (),
    scope: str = "",
    policies: Collection[str] = (),
) -> Tuple[str, ...]:
    """Those that are named, else the usual ones of the scope. Raises InputError as `regime_of`."""
    named = tuple(regime_of(name, bounds, policies=policies) for name in names)
    return named or usual_regimes(bounds, entries, scope, policies)


def combinations_of(regimes: Sequence[str], bounds: RegimeBounds, policies: Collection[str] = ()) -> Tuple[str, ...]:
    """Other regimes that the markers of these make together, as there is room for pages.

    Each policy has its turn, and so has what names none. Of each those of the fewest markers come first, and of these
    the ones in which copies of objects are at risk. `policies`: as for `RegimeBounds.tells`.
    """
    on = {part for regime in regimes for part in regime.split("+")}
    markers = [marker.name for marker in bounds.markers if marker.name in on]
    at_risk = {marker.name for marker in bounds.of_metrics if marker.metric.startswith("recovery.")}

    def rank(name: str) -> Tuple[int, bool]:
        parts = name.split("+")
        return len(parts), at_risk.isdisjoint(parts)

    each = ("+".join(names) for count in range(2, len(markers) + 1) for names in combinations(markers, count))
    others = (name for name in each if name not in regimes and bounds.tells(name, policies))
    by_policy: Dict[Optional[str], List[str]] = {}
    for name in sorted(others, key=rank):
        by_policy.setdefault(bounds.policy_of(name), []).append(name)
    in_turn = (name for name in chain(*zip_longest(*by_policy.values())) if name is not None)
    return tuple(islice(in_turn, max(0, MOST_PREDICTED - len(regimes))))


def _as_told(name: str, bounds: RegimeBounds, policies: Collection[str]) -> Optional[str]:
    """The name as it is told now; None for one that never is."""
    try:
        return regime_of(name, bounds, policies=policies)
    except InputError:
        return None


def work_in(regimes: Sequence[str], bounds: RegimeBounds) -> FrozenSet[str]:
    """Kinds of background work that any of these regimes says."""
    on = {part for regime in regimes for part in regime.split("+")}
    kinds = (marker.metric.split(".")[0] for marker in bounds.of_metrics if marker.name in on)
    return frozenset(kind for kind in kinds if kind in KINDS)


def slo_in(regime: str, calendar: SloCalendar, bounds: RegimeBounds) -> Slo:
    """What is wanted in a regime: under its policy, else outside of all. Raises InputError where there is no such."""
    policy = bounds.policy_of(regime)
    if policy is None:
        regime_of(regime, bounds, "regime", calendar.policy_names)
        return calendar.base
    if policy not in calendar.policy_names:
        expected = ", ".join(sorted(calendar.policy_names)) or "a calendar with that policy"
        raise InputError(f"regime {regime}", f"no policy {policy} in the calendar", expected)
    return calendar.by_policy[policy]


def hours_in(
    regime: str, calendar: SloCalendar, bounds: RegimeBounds, hours: Sequence[Window], now: float
) -> Tuple[Tuple[Window, ...], bool]:
    """Of the kept hours those in which the policy of a regime held, and whether it holds now.

    Where none is kept it is all of them, and what clients do now counts as well.
    """
    policy, marked = bounds.policy_of(regime), {marker.policy for marker in bounds.of_policies}

    def is_meant(name: str) -> bool:
        return name not in marked if policy is None else name == policy

    own = hours_under(calendar, is_meant, hours)
    return (own, is_meant(calendar.policy_at(now))) if own else (tuple(hours), True)


def question_in(
    regime: str,
    description: DescribedCluster,
    slo: Slo,
    bounds: RegimeBounds,
    iops_seen: Sequence[float] = (),
    knobs: Optional[Sequence[str]] = None,
    present: bool = True,
) -> RegimeQuestion:
    """Ask for the best settings in a regime. `iops_seen`: what clients did at other times, operations per second.

    `present`: whether what they do now counts as well.
    Raises InputError where the description lacks the regime's work, and where no objective is about it.
    """
    kinds = work_in((regime,), bounds)
    if "scrub" in slo.work and not kinds & {"recovery", "backfill"}:
        # scrubs go on in any such regime, late or not
        kinds |= {"scrub"}
    model = _with_work(description.model, kinds)
    asked_iops = _asked_iops(regime, bounds, model, iops_seen, present)
    if asked_iops is not None:
        model = with_client_iops(model, asked_iops)
    model = _with_work_that_lasts(model)
    question = question_of(replace(description, model=model), slo, knobs)
    missing = [kind for kind in sorted(work_in((regime,), bounds)) if kind not in question.work]
    if missing:
        raise InputError(f"regime {regime}", f"no {missing[0]} in the description", f"some {missing[0]} there")
    wanted, left_out = predictable(question)
    if wanted is None:
        raise InputError(f"regime {regime}", "no objective about its work", "one, such as 'client.p95_ms <= 20 ms'")
    policy = bounds.policy_of(regime) or BASE
    return RegimeQuestion(regime, replace(question, slo=wanted, switched=True), asked_iops, left_out, policy)


def question_by_policy(
    regime: str,
    description: DescribedCluster,
    calendar: SloCalendar,
    bounds: RegimeBounds,
    hours: Sequence[Window],
    now: float,
    knobs: Optional[Sequence[str]] = None,
    iops: str = CLIENTS,
) -> RegimeQuestion:
    """Ask `question_in` by the objectives of the regime's policy, and at the clients of its kept hours.

    `iops`: the metric that tells what they did. Raises InputError as `slo_in` and `question_in`.
    """
    own_hours, present = hours_in(regime, calendar, bounds, hours, now)
    iops_seen = [window.means.get(iops, 0.0) for window in own_hours]
    return question_in(regime, description, slo_in(regime, calendar, bounds), bounds, iops_seen, knobs, present)


def with_client_iops(model: ClusterModel, iops: float) -> ClusterModel:
    """The cluster with clients that ask for so much together, shared out as they are. They must have rates."""
    offered = sum(stream.rate or 0.0 for stream in model.clients)
    streams = (replace(stream, rate=(stream.rate or 0.0) * iops / offered) for stream in model.clients)
    return replace(model, clients=tuple(streams))


def _with_work(model: ClusterModel, kinds: FrozenSet[str]) -> ClusterModel:
    return replace(
        model,
        recovery=tuple(work for work in model.recovery if ("recovery" if work.degraded else "backfill") in kinds),
        scrub=model.scrub if "scrub" in kinds else (),
        snaptrim=model.snaptrim if "snaptrim" in kinds else (),
    )


@lru_cache(maxsize=MOST_PREDICTED)
def _with_work_that_lasts(model: ClusterModel) -> ClusterModel:
    """The cluster with as much to recover and to trim as takes longer than any run: a regime lasts as its work does.

    The last of some objects that are left would be gone before a run counts, whatever the settings. It is simulated for
    seconds, once for regimes of the same work and clients, as policies make many.
    """
    if not model.recovery and not model.snaptrim:
        return model
    seconds = _FASTER * LONG * SearchEffort.longest_s
    plenty = replace(
        model,
        recovery=tuple(_times(work, _PLENTY) for work in model.recovery),
        snaptrim=tuple(_times(work, _PLENTY) for work in model.snaptrim),
    )
    done: Counter[Tuple[str, str]] = Counter()
    for name in model.release.profiles:
        simulation = Simulation(plenty, {PROFILE: name})
        simulation.advance(_PROBE_S)
        own: Counter[Tuple[str, str]] = Counter()
        for work in simulation.work():
            own[work.pool, work.kind] += work.objects - work.left
        done |= Counter({key: math.ceil(count / simulation.share) for key, count in own.items()})

    def needed(pool: str, kind: str) -> float:
        return seconds * done[pool, kind] / _PROBE_S

    recovery = (
        _times(work, needed(work.pool, "degraded" if work.degraded else "misplaced") / work.objects)
        for work in model.recovery
    )
    snaptrim = (_times(work, needed(work.pool, "snaptrim") / work.clones) for work in model.snaptrim)
    return replace(model, recovery=tuple(recovery), snaptrim=tuple(snaptrim))


@overload
def _times(work: RecoveryWork, times: float) -> RecoveryWork: ...
@overload
def _times(work: SnaptrimWork, times: float) -> SnaptrimWork: ...
def _times(work: Union[RecoveryWork, SnaptrimWork], times: float) -> Union[RecoveryWork, SnaptrimWork]:
    """At least as much work, in PGs of the same size where these recover one after the other."""
    count = max(1, math.ceil(times))
    if isinstance(work, RecoveryWork):
        more = work.objects * count
        return replace(work, objects=more, rounds=work.rounds * count, times=work.times * count)
    return replace(work, clones=work.clones * count, times=work.times * count)


def _asked_iops(
    regime: str, bounds: RegimeBounds, model: ClusterModel, seen: Sequence[float], present: bool
) -> Optional[float]:
    """The most that clients ask for in the regime; None where neither bounds nor a policy's hours tell it."""
    on = regime.split("+")
    capacity = model.osds * model.osd.capacity_iops
    least, most, between = 0.0, math.inf, math.inf
    for marker in bounds.of_metrics:
        if marker.metric != CLIENTS:
            continue
        scale = capacity if marker.of_capacity else 1.0
        if marker.name in on:
            least = max(least, marker.enter * scale)
        elif marker.enter * scale < most:
            most, between = marker.enter * scale, (marker.enter + marker.leave) / 2 * scale
    is_bounded = (least, most) != (0.0, math.inf)
    if not model.clients or not all(stream.rate for stream in model.clients) or not (is_bounded or bounds.of_policies):
        return None
    rates: List[float] = [*seen, *([sum(stream.rate or 0.0 for stream in model.clients)] if present else [])]
    fitting = [rate for rate in rates if least <= rate < most and rate > 0]
    return max(fitting, default=(least or between) if is_bounded else None)
