"""A plan of deep scrubs for a cluster: what each hour leaves for them, by windows, by its twin, or by past scrubs."""

from __future__ import annotations

from dataclasses import replace
from datetime import tzinfo
from pathlib import Path
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.cluster import Cluster
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.slo import Objective
from ceph_tuner.core.goals.stored_slo import stored_baseline
from ceph_tuner.core.measure.history import RECENT_S, History, merged
from ceph_tuner.core.measure.sample import Window
from ceph_tuner.describe.live_cluster import describe
from ceph_tuner.pacing.client_watch import WINDOW_S
from ceph_tuner.pacing.judged_windows import kept_windows
from ceph_tuner.pacing.objectives import about_clients, held_bounds
from ceph_tuner.pacing.wanted import WantedNow, WantedObjectives
from ceph_tuner.scrub_plan import RateRange, ScrubView
from ceph_tuner.scrub_plan.beginning import places_for
from ceph_tuner.scrub_plan.cluster_view import read_view
from ceph_tuner.scrub_plan.plan import ScrubPlan, plan
from ceph_tuner.scrub_plan.rates import SCRUBBED, flat_rates, measured_rates, pace_of_past_scrubs, with_handovers
from ceph_tuner.scrub_plan.rates_ahead import RatesAhead
from ceph_tuner.scrub_plan.twin_rates import twin_pace
from ceph_tuner.twin.described_cluster import DescribedCluster
from ceph_tuner_cli.render import say, working

HourlyRates = Tuple[RateRange, ...]
"""Of the day's 24 hours."""


def planned(
    connection: Cluster,
    wanted: WantedObjectives,
    days: Optional[float],
    zone: tzinfo,
    past: Optional[Sequence[Window]] = None,
    window_s: float = WINDOW_S,
) -> ScrubPlan:
    """Read the cluster, and plan; `past` stands in the place of the windows that it keeps. Raises TunerError.

    `window_s`: by which a drain judges its pace.
    """
    view = read_view(connection)
    now = connection.clock.now()
    recent = merged(History(connection.store).windows(now, now - RECENT_S))
    windows = kept_windows(connection) if past is None else past
    rates, notes = _Rates(connection, view, windows, zone).of(wanted)
    texts = {
        policy: tuple(objective.text for objective in about_clients(each.slo))
        for policy, each in wanted.by_policy.items()
    }
    return plan(view, rates, texts, recent.means if recent is not None else None, days, notes, window_s)


class _Rates:
    """By the cluster's own windows; else its twin's pace, in the hours that the windows leave; else its past scrubs."""

    def __init__(self, connection: Cluster, view: ScrubView, windows: Sequence[Window], zone: tzinfo) -> None:
        self._connection, self._view, self._windows, self._zone = connection, view, windows, zone
        self._baseline = stored_baseline(connection.store)
        self._description: Optional[DescribedCluster] = None
        self._known: Dict[Tuple[Tuple[Objective, float], ...], Tuple[HourlyRates, Tuple[str, ...]]] = {}
        """By bounds: policies that have the same ones about clients leave the same rates."""

    def of(self, wanted: WantedObjectives) -> Tuple[RatesAhead, Tuple[str, ...]]:
        """Of each policy's hours by its own objectives, and notes."""
        rates: Dict[str, HourlyRates] = {}
        notes: Dict[str, List[str]] = {}
        for policy, each in wanted.by_policy.items():
            bounds = held_bounds(each.slo, self._baseline)
            key = tuple(bounds.items())
            if key not in self._known:
                self._known[key] = self._by_bounds(each, bounds)
            rates[policy], own_notes = self._known[key]
            for note in own_notes:
                notes.setdefault(note, []).append(policy)
        everywhere = len(rates)
        texts = tuple(
            note if len(policies) == everywhere else f"{', '.join(policies)}: {note}"
            for note, policies in notes.items()
        )
        return RatesAhead(rates, wanted.calendar, self._zone), texts

    def _by_bounds(self, wanted: WantedNow, bounds: Mapping[Objective, float]) -> Tuple[HourlyRates, Tuple[str, ...]]:
        connection, view, windows = self._connection, self._view, self._windows
        rates = measured_rates(windows, bounds, None, self._zone)
        if rates is not None:
            return rates, (f"rates by {len(windows)} windows of the cluster: what scrubs came to, not what they could",)
        pace, notes = self._twin_pace(wanted)
        places = places_for(view.pgs, view.rules.max_scrubs)
        if pace is None:
            # that pace is of so many
            places = view.rules.max_scrubs
            pace = pace_of_past_scrubs(view.pgs, view.rules.max_scrubs)
            if pace is None:
                raise InputError(
                    f"cluster {connection.name}",
                    "no window with scrubs, no twin of it, and no past deep scrub: nothing tells how fast they are",
                    "the plugin, which keeps windows (`ceph-tuner mgr install`)",
                )
            notes = (*notes, "rates by the PGs' last deep scrubs: whether they keep objectives is not known")
        late = [pg for pg in view.pgs if pg.late]
        pace = with_handovers(pace, late or view.pgs, places)
        return measured_rates(windows, bounds, pace, self._zone) or flat_rates(pace), notes

    def _twin_pace(self, wanted: WantedNow) -> Tuple[Optional[RateRange], Tuple[str, ...]]:
        name = self._connection.name
        with working(f"{name}: asking its twin") as tell:
            try:
                if self._description is None:
                    self._description = of_late_pools(describe(self._connection, also={"scrub"}), self._view)
                pace, notes = twin_pace(
                    self._description,
                    wanted.slo,
                    self._baseline,
                    self._view.rules.max_scrubs,
                    lambda done, total: tell(f"{name}: asking its twin", done, total),
                )
            except InputError as fault:
                return None, (f"the twin cannot tell how fast scrubs may be: {fault}",)
        return pace, ("rates by the twin of this cluster, as no window of it has scrubs", *notes)


def of_late_pools(description: DescribedCluster, view: ScrubView) -> DescribedCluster:
    """With the deep scrubs of pools that have late PGs, which come first; where none is late, of all pools."""
    late = {pg.pool for pg in view.pgs if pg.late}
    works = tuple(work for work in description.model.scrub if work.pool in late)
    return replace(description, model=replace(description.model, scrub=works)) if works else description


def past_windows(name: Optional[str], fleet: Path, wanted: WantedObjectives, now: float) -> Optional[List[Window]]:
    """The hours of the week before, by the Prometheus server of a cluster of that file; None where none is named."""
    if name is None:
        return None
    from ceph_tuner.cluster.prometheus import Span
    from ceph_tuner.fleet import fleet_file
    from ceph_tuner.fleet.past import HOUR_S, WEEK_S, WEEK_STEP_S, past_of

    (member,) = fleet_file.read(fleet).chosen([name])
    own = [
        objective.metric
        for each in wanted.by_policy.values()
        for objective in (each.slo.objectives if each.slo is not None else ())
        if objective.scope is None
    ]
    end = now // HOUR_S * HOUR_S
    span = Span.of(end - WEEK_S, end, WEEK_STEP_S)
    metrics_of_past = past_of(member, list(dict.fromkeys([*own, SCRUBBED, "client.iops"])), span)
    starts = [end - WEEK_S + hour * HOUR_S for hour in range(round(WEEK_S / HOUR_S))]
    windows = [metrics_of_past.window(start, start + HOUR_S) for start in starts]
    say([f"the past has no {metric}: {why}" for metric, why in metrics_of_past.unknown.items()])
    return [window for window in windows if window is not None]
