"""What the twin offers a boost: settings for this work now, with what it predicts of them.

The program asks the twin, and hands its offer to the plugin beside the request. It is foreign input there: a person may
have written it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Dict, List, Mapping, Optional

from ceph_tuner.core.boost.kinds import Kind
from ceph_tuner.core.bounded import MISREAD, read_json
from ceph_tuner.core.ceph.stored_document import VERSION, versioned
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.catalogue import KNOBS
from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.core.measure.forecast_record import MOST_METRICS, ForecastInterval, ForecastRecord
from ceph_tuner.core.measure.metrics import METRICS
from ceph_tuner.core.measure.quantity import amount, quantity
from ceph_tuner.core.moments import duration, utc_minute

FORETELL = "tuner boost foretell"
"""The plugin's command that says what a boost would do: first without the twin, then with its offer."""
PLACE = "the twin's offer"
FRESH_S = 3600.0
"""After so long the cluster and its load may be others than the twin was told of."""
MOST_BYTES = 32 << 10
LONGEST_NAME = 100
"""Characters of the twin's name."""


@dataclass(frozen=True)
class TwinOffer:
    """Settings for one kind of work, on these OSDs."""

    kind: str
    target: str
    settings: Settings
    before: Mapping[str, float]
    """What the cluster does with what is in force, by the twin."""
    forecast: ForecastRecord
    """What it would do with these settings, and how sure that is."""
    in_force: Settings = field(default_factory=dict)
    """What the OSDs had as it was asked, as the plugin's `foretell` gave it; empty where that is not told."""

    def __post_init__(self) -> None:
        """Raise ValueError for what is no offer."""
        if not self.settings or not all(name in KNOBS for name in self.settings):
            raise ValueError("settings must be knobs, at least one")
        if len(self.before) > MOST_METRICS or not all(name in METRICS for name in self.before):
            raise ValueError(f"before must be metrics, at most {MOST_METRICS}")
        if not all(map(math.isfinite, self.before.values())):
            raise ValueError("before must have finite values")

    @property
    def means(self) -> Dict[str, float]:
        """What the cluster would do, by metric."""
        return {name: interval.value for name, interval in self.forecast.metrics.items()}

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, as the plugin takes it."""
        return versioned(
            {
                "kind": self.kind,
                "target": self.target,
                "settings": dict(self.settings),
                "before": dict(self.before),
                "forecast": self.forecast.to_dict(),
                "in_force": dict(self.in_force),
            }
        )

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> TwinOffer:
        """Inverse of `to_dict`. Raises what `MISREAD` has for what is none."""
        version = document.get("version", VERSION)
        if type(version) is not int or version > VERSION:
            raise ValueError(f"version is {version!r:.20}: a newer version wrote it")
        forecast = ForecastRecord.from_dict(document["forecast"])
        if forecast is None:
            raise ValueError("forecast has no metrics with value, low and high")
        return cls(
            str(document["kind"]),
            str(document["target"]),
            dict(document["settings"]),
            {str(name): float(value) for name, value in dict(document["before"]).items()},
            # it is kept in the journal, which has little room
            replace(forecast, model=forecast.model[:LONGEST_NAME], unknown={}),
            dict(document.get("in_force", {})),
        )

    def rate_of(self, kind: Kind) -> str:
        """The metric by which it is held against what is in force; empty where it says nothing of this work's rate."""
        return next((name for name in kind.speed if self.means.get(name) and name in self.before), "")

    def is_faster(self, kind: Kind) -> bool:
        """Whether it promises a faster pace than what is in force has."""
        metric = self.rate_of(kind)
        return bool(metric) and self.means[metric] > self.before[metric]

    def promise(self, kind: Kind, remainder: Optional[float]) -> str:
        """What it does to the work, in words; `remainder`: what is left of it."""
        metric = self.rate_of(kind)
        interval = self.forecast.metrics[metric]
        value, ends = amount(metric, interval.value, interval.low, interval.high)
        words = f"{metric} {quantity(metric, self.before[metric])} to {value} ({ends})"
        ends_s = self._done_s(kind, interval, remainder)
        if not ends_s:
            return words
        expected, earliest, latest = map(duration, ends_s)
        return f"{words}, done after {expected} ({earliest} to {latest})"

    def _done_s(self, kind: Kind, interval: ForecastInterval, remainder: Optional[float]) -> List[float]:
        """Seconds until the work is done: as expected, at the earliest, at the latest; empty where no rate tells."""
        rate = kind.rate_in(self.means)
        if not remainder or rate is None or not interval.low > 0:
            return []
        expected_s = remainder / rate
        return [expected_s, expected_s * interval.value / interval.high, expected_s * interval.value / interval.low]


def parse_offer(text: str, kind: str, target: str, now: float) -> TwinOffer:
    """Read an offer for a boost of this kind and target. Raises InputError for another one, and for an old one."""
    document = read_json(text, PLACE, MOST_BYTES)
    try:
        offer = TwinOffer.from_dict(document)
    except MISREAD as fault:
        raise InputError(PLACE, str(fault)[:200], "one of `ceph-tuner boost --predict`") from None
    for name, own, wanted in (("kind", offer.kind, kind), ("target", offer.target, target)):
        if own != wanted:
            raise InputError(f"{PLACE}, {name}", repr(own[:60]), wanted)
    if abs(now - offer.forecast.at) > FRESH_S:
        at = f"{PLACE}, at"
        raise InputError(at, utc_minute(offer.forecast.at), f"at most an hour from now, {utc_minute(now)}")
    return offer
