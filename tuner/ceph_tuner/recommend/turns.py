"""Work that takes turns: Ceph scrubs no OSD that recovers, so a cluster that does both is foreseen twice.

An SLO may well ask for both, a time to recover and a scrub interval. Simulated at once, scrub would stand still
(`osd_scrub_during_recovery` is false by default; docs/ceph-behaviour.md) and look as if no settings could ever keep
its objective.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, Mapping, Sequence, Tuple

from ceph_tuner.core.measure.metrics import METRICS, work_of
from ceph_tuner.twin.model import ClusterModel

_TOLD = (
    "recovery and scrub are simulated one after the other, as Ceph scrubs no OSD that recovers: "
    "what clients get is the worse of the two"
)
_OF_RECOVERY, _OF_SCRUB = ("recovery", "backfill"), ("scrub",)


def turns(model: ClusterModel) -> Tuple[ClusterModel, ...]:
    """The model as it is; where it recovers and is scrubbed, once without the scrub and once without the recovery."""
    if not (model.recovery and model.scrub):
        return (model,)
    return replace(model, scrub=()), replace(model, recovery=())


def told(model: ClusterModel) -> Tuple[str, ...]:
    """A note of it, where work takes turns."""
    return (_TOLD,) if len(turns(model)) > 1 else ()


def together(means_by_turn: Sequence[Mapping[str, float]]) -> Dict[str, float]:
    """One run's metrics out of those of its turns: each turn's own, and the worse of what goes on in both.

    Clients are to have what they are promised in either.
    """
    if len(means_by_turn) == 1:
        return dict(means_by_turn[0])
    recovery_means, scrub_means = means_by_turn
    names = [*recovery_means, *(name for name in scrub_means if name not in recovery_means)]
    return {name: value for name in names for value in _of_both(name, recovery_means, scrub_means)}


def _of_both(name: str, recovery_means: Mapping[str, float], scrub_means: Mapping[str, float]) -> Sequence[float]:
    kind = work_of(name)
    if kind in _OF_RECOVERY or kind in _OF_SCRUB:
        own = recovery_means if kind in _OF_RECOVERY else scrub_means
        return [own[name]] if name in own else []
    if name not in recovery_means or name not in scrub_means:
        # clients that got nothing done in one of them have no latency there, and none that could be promised
        return []
    worse = max if METRICS[name].lower_is_better else min
    return [worse(recovery_means[name], scrub_means[name])]
