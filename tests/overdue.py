"""Clusters with scrubs to come: values, and twins whose PGs have dates."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Sequence

from ceph_tuner.core.knobs.releases import Value
from ceph_tuner.scrub_plan import MEASURED, RateRange, ScrubPg, ScrubRules, ScrubView
from ceph_tuner.scrub_plan.rates import flat_rates
from ceph_tuner.scrub_plan.rates_ahead import RatesAhead
from ceph_tuner.twin.model import MIB, Pool, ScrubWork
from twin_cluster.cluster import TwinCluster
from twins import small_twin

NOW, DAY = 1_795_219_200.0, 86_400.0
"""A Saturday, at midnight in UTC."""
HOUR = 3600.0
MB = 1e6
NEVER_BY_ITSELF = 1e12
"""When the twin's own scrubs would begin: only those that are asked for run."""


def pg(pgid: str, late_days: float = 0.0, **changes: Any) -> ScrubPg:
    """A PG of a week's interval that is late by so many days, or due in minus so many."""
    given: Dict[str, Any] = {"interval_s": 7 * DAY, "raw_bytes": 3600 * MB, "acting": (0, 1), **changes}
    scrubbed_at = given.pop("deep_scrubbed_at", NOW - given["interval_s"] - late_days * DAY)
    return ScrubPg(pgid, given.pop("pool", "rbd"), deep_scrubbed_at=scrubbed_at, late=late_days > 0, **given)


def view(pgs: Sequence[ScrubPg], **rules: Any) -> ScrubView:
    return ScrubView(NOW, tuple(pgs), ScrubRules(**rules), {osd: f"h{osd}" for osd in range(8)})


def rate(mean: float, low: Optional[float] = None, high: Optional[float] = None, source: str = MEASURED) -> RateRange:
    return RateRange(mean, mean if low is None else low, mean if high is None else high, source)


def daily(one: RateRange) -> RatesAhead:
    """This rate, at all hours."""
    return RatesAhead.daily(flat_rates(one))


def overdue_twin(
    days: Mapping[str, float],
    settings: Optional[Mapping[str, Value]] = None,
    seed: int = 1,
    objects: int = 320,
    **changes: Any,
) -> TwinCluster:
    """A twin of one pool of 16 PGs; `days`: PG -> how long ago its last deep scrub was. Others: an hour ago."""
    work = ScrubWork("rbd", objects, MIB, once=True, start_s=NEVER_BY_ITSELF)
    given: Any = {"pools": (Pool("rbd", 16, 2),), "scrub": (work,), **changes}
    twin = small_twin(settings, seed=seed, **given)
    for number in range(16):
        pgid = f"1.{number:x}"
        twin.twin.deep_scrubbed(pgid, twin.clock.now() - days.get(pgid, HOUR / DAY) * DAY)
    return twin
