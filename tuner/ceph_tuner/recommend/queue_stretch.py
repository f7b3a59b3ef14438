"""A trial of a queue as it is measured: stretches of minutes, the host's OSDs beside those of its controls.

Stretch         what each OSD had counted at each look
MeasuredTrial   the stretches of one trial, kept in a file between the steps of its plan
Comparison      one metric in one stretch, and how far the host moved beside its controls since the one before
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from scipy.stats import ttest_ind

from ceph_tuner.core.atomic_write import write_text
from ceph_tuner.core.bounded import DOCUMENT, MISREAD, read_file, read_json
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.measure.osd_documents import SCRUB_READS
from ceph_tuner.recommend.queue_trial import SURE

Counts = Mapping[str, float]
"""An OSD's counters, as `osd_values` names them."""
Pair = Tuple[float, float]
"""Of one minute, the host's value and that of its controls."""
Change = Tuple[float, float, float]
"""A ratio: the mean, and ends that hold it in SURE of the cases."""

LATENCIES = {"client reads, mean ms": "op_r_latency", "client writes, mean ms": "op_w_latency"}
RATES: Mapping[str, Tuple[str, ...]] = {
    "client operations/s": ("op_r", "op_w", "op_rw"),
    "recovery, bytes/s": ("recovery_bytes",),
    "scrub, bytes/s": SCRUB_READS,
}
COUNTED = (
    *(f"{name}.{part}" for name in LATENCIES.values() for part in ("sum", "count")),
    *(name for names in RATES.values() for name in names),
)
"""Counters that a look keeps."""
AT = "at"
"""When the counters were read, in seconds."""
LEAST_MINUTES = 2
"""Of one difference nothing is known of chance."""


@dataclass(frozen=True)
class Stretch:
    """`looks`: OSD -> its counters, at the beginning and after each minute."""

    queue: str
    """That the host's OSDs ran."""
    looks: Tuple[Mapping[int, Counts], ...]

    def minutes(self, osds: Sequence[int], names: Sequence[str]) -> Iterator[List[float]]:
        """How much these counters rose in each minute, and how long that was, of all of these OSDs together.

        NaN where an OSD did not answer, or began anew.
        """
        for before, after in zip(self.looks, self.looks[1:]):
            if all(osd in look for osd in osds for look in (before, after)):
                rises = [sum(after[osd].get(name, 0.0) - before[osd].get(name, 0.0) for osd in osds) for name in names]
                seconds = fmean(after[osd][AT] - before[osd][AT] for osd in osds)
                yield [*(rise if rise >= 0 else math.nan for rise in rises), seconds]
            else:
                yield [math.nan] * (len(names) + 1)


@dataclass(frozen=True)
class Comparison:
    """`host`, `controls`: means of the stretch. `change`: since the stretch before; None for the first."""

    metric: str
    host: float
    controls: float
    change: Optional[Change] = None


@dataclass(frozen=True)
class MeasuredTrial:
    """What was measured of a trial so far."""

    host: str
    osds: Tuple[int, ...]
    controls: Mapping[str, Tuple[int, ...]]
    stretches: Tuple[Stretch, ...] = ()

    @property
    def control_osds(self) -> Tuple[int, ...]:
        """Of all controls."""
        return tuple(osd for osds in self.controls.values() for osd in osds)

    def with_stretch(self, stretch: Stretch) -> MeasuredTrial:
        """The same with one stretch more."""
        return replace(self, stretches=(*self.stretches, stretch))

    def comparisons(self) -> List[List[Comparison]]:
        """Of each stretch, what can be told."""
        by_stretch: List[List[Comparison]] = []
        former: Dict[str, List[Pair]] = {}
        for stretch in self.stretches:
            pairs_by_metric = {metric: self._pairs(stretch, metric) for metric in (*LATENCIES, *RATES)}
            by_stretch.append(
                [
                    _comparison(metric, former.get(metric, []), pairs)
                    for metric, pairs in pairs_by_metric.items()
                    if pairs
                ]
            )
            former = pairs_by_metric
        return by_stretch

    def _pairs(self, stretch: Stretch, metric: str) -> List[Pair]:
        """Of each minute in which both sides had some of it."""
        sides = [list(self._values(stretch, osds, metric)) for osds in (self.osds, self.control_osds)]
        return [(host, controls) for host, controls in zip(*sides) if host > 0 and controls > 0]

    def _values(self, stretch: Stretch, osds: Sequence[int], metric: str) -> Iterator[float]:
        if metric in LATENCIES:
            names = [f"{LATENCIES[metric]}.{part}" for part in ("sum", "count")]
            for total, count, _ in stretch.minutes(osds, names):
                yield 1e3 * total / count if count > 0 else math.nan
        else:
            for *rises, seconds in stretch.minutes(osds, RATES[metric]):
                # hosts may have different numbers of OSDs
                yield sum(rises) / seconds / len(osds)

    def to_dict(self) -> Dict[str, Any]:
        """Plain values, for the file."""
        return {
            "host": self.host,
            "osds": list(self.osds),
            "controls": {host: list(osds) for host, osds in self.controls.items()},
            "stretches": [
                {
                    "queue": stretch.queue,
                    "looks": [{str(osd): dict(counts) for osd, counts in look.items()} for look in stretch.looks],
                }
                for stretch in self.stretches
            ],
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> MeasuredTrial:
        """Inverse of `to_dict`. Raises KeyError, TypeError, ValueError."""
        return cls(
            str(document["host"]),
            tuple(map(int, document["osds"])),
            {str(host): tuple(map(int, osds)) for host, osds in document["controls"].items()},
            tuple(
                Stretch(
                    str(stretch["queue"]),
                    tuple(
                        {int(osd): {str(n): float(v) for n, v in counts.items()} for osd, counts in look.items()}
                        for look in stretch["looks"]
                    ),
                )
                for stretch in document["stretches"]
            ),
        )


def _comparison(metric: str, former: Sequence[Pair], pairs: Sequence[Pair]) -> Comparison:
    host, controls = (fmean(side) for side in zip(*pairs))
    return Comparison(metric, host, controls, change_beside_controls(former, pairs))


def read(path: Path) -> Optional[MeasuredTrial]:
    """What a file has of a trial; None where there is no file yet. Raises InputError."""
    if not path.exists():
        return None
    expected = "a trial that --measure has written"
    document = read_json(read_file(path, expected), str(path), DOCUMENT)
    try:
        return MeasuredTrial.from_dict(document)
    except MISREAD as fault:
        raise InputError(str(path), f"no measured trial ({fault})", expected) from fault


def write(path: Path, measured: MeasuredTrial) -> None:
    """Write it, whole or not at all."""
    write_text(path, json.dumps(measured.to_dict()) + "\n", force=True)


def change_beside_controls(before: Sequence[Pair], after: Sequence[Pair]) -> Optional[Change]:
    """By how much the host's values changed from one stretch to another, beside its controls'.

    By Welch's interval of the minutes' differences, in logarithms. None where one has less than LEAST_MINUTES.
    """
    if min(len(before), len(after)) < LEAST_MINUTES:
        return None
    earlier, later = ([math.log(host / controls) for host, controls in pairs] for pairs in (before, after))
    change = fmean(later) - fmean(earlier)
    if len(set(earlier)) == len(set(later)) == 1:
        # no chance is seen, and the interval of none is no number
        return math.exp(change), math.exp(change), math.exp(change)
    low, high = ttest_ind(later, earlier, equal_var=False).confidence_interval(SURE)
    return math.exp(change), math.exp(low), math.exp(high)
