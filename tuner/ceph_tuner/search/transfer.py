"""What served other clusters: which of their profiles are like enough to be tried here, and how far they count.

A profile that is unlike in hardware, load or release is refused, with the reason: history of unlike systems hurts. Of
one that is like, the settings are a suggestion, tried where safe and promising as any other; and the effect that was
measured there corrects what is believed beforehand, near these settings. How far that was right is learnt from the
trials (`optimise/gp_kernel.py`), so that a wrong profile is soon of no weight.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.cost import Hardware
from ceph_tuner.core.knobs.releases import Release, Settings, parse_version
from ceph_tuner.core.measure.metrics import work_of
from ceph_tuner.core.profiles.profile import Profile
from ceph_tuner.core.profiles.translation import from_release_units, translate
from ceph_tuner.optimise.contract import Array, Prior
from ceph_tuner.search.optimiser import SettingsProposal
from ceph_tuner.search.space import KnobSpace

FACTOR = 2.0
"""How far capacity, bandwidth, shards of an OSD and its clients' load may be apart."""

SIZE_FACTOR, READ_SHARES = 4.0, 0.3
"""The same for the bytes of an operation, and for the share of reads, as a difference."""

NEAR = 0.15
"""Root mean square distance over the cube's sides at which what was seen elsewhere counts by 0.6."""


@dataclass(frozen=True)
class Here:
    """The cluster that is tuned."""

    release: Release
    hardware: Hardware
    osds: int
    work: FrozenSet[str]
    """Kinds of work that the objectives are about."""


@dataclass(frozen=True)
class Judged:
    """A profile of another cluster, and what becomes of it."""

    profile: Profile
    settings: Optional[Settings]
    """As the space here has them; None: refused."""
    reason: str
    """Why it is refused, or what it is like in."""

    @property
    def text(self) -> str:
        """Whether the profile is suggested, and why, in one line."""
        return f"{self.profile.name} is {'refused' if self.settings is None else 'suggested'}: {self.reason}"

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, for programs."""
        return {"profile": self.profile.name, "suggested": self.settings is not None, "reason": self.reason}


class Elsewhere:
    """Profiles of other clusters, for one search here."""

    def __init__(self, profiles: Sequence[Profile], here: Here, space: KnobSpace) -> None:
        self._profiles, self._here, self._space = tuple(profiles), here, space
        self.release = here.release
        self.judged: Tuple[Judged, ...] = ()
        """What became of each, once the baseline is known."""

    def judge(self, baseline: Mapping[str, float]) -> List[Judged]:
        """Hold each against this cluster, which gives `baseline` under the settings in force; give those to try."""
        self.judged = tuple(judged(profile, self._here, baseline, self._space) for profile in self._profiles)
        return [entry for entry in self.judged if entry.settings is not None]


def judged(profile: Profile, here: Here, baseline: Mapping[str, float], space: KnobSpace) -> Judged:
    """Say whether a profile's settings are worth a suggestion."""
    reason = unlike(profile, here, baseline)
    if reason:
        return Judged(profile, None, reason)
    try:
        settings = _settings_here(profile, here)
    except InputError as refusal:
        return Judged(profile, None, str(refusal))
    unsearched_knobs = space.unsearched(settings)
    if unsearched_knobs:
        return Judged(profile, None, f"it sets {unsearched_knobs[0]}, which is not searched here")
    return Judged(profile, space.nearest(settings), "alike in hardware, work and load")


def unlike(profile: Profile, here: Here, baseline: Mapping[str, float]) -> str:
    """Say in what a profile's origin is too far from this cluster; nothing where it is alike."""
    own = here.hardware
    return (
        unlike_hardware(profile.hardware, profile.osds, own)
        or _unlike_work(profile, here)
        or _unlike_load(profile, here, baseline)
    )


def unlike_hardware(origin: Optional[Hardware], osds: Optional[int], own: Hardware) -> str:
    """Say in what OSDs elsewhere are too far from those here; nothing where they are alike."""
    if origin is None or osds is None:
        return "it does not say on which hardware it was found"
    if origin.device_class != own.device_class:
        return f"found on {origin.device_class}, here is {own.device_class}"
    for there, now, unit in (
        (origin.capacity_iops, own.capacity_iops, "IOPS"),
        (origin.bandwidth_bytes_s / 1e6, own.bandwidth_bytes_s / 1e6, "MB/s"),
        (origin.shards, own.shards, "shards"),
    ):
        if _apart(there, now) > FACTOR:
            return f"an OSD had {there:.0f} {unit} there, and {now:.0f} here"
    return ""


def proposals(entries: Sequence[Judged]) -> List[SettingsProposal]:
    """Give those to try as suggestions."""
    return [
        SettingsProposal(entry.settings, f"profile {entry.profile.name}")
        for entry in entries
        if entry.settings is not None
    ]


def corrected(priors: Sequence[Prior], entries: Sequence[Judged], space: KnobSpace, here: Release) -> List[Prior]:
    """Correct the first prior, or none, by what was measured elsewhere; unchanged where nothing was."""
    effects = [effect for entry in entries for effect in _effects(entry, space, here)]
    if not effects:
        return list(priors)
    return [_Corrected(priors[0] if priors else None, effects), *priors[1:]]


@dataclass(frozen=True)
class _Effect:
    """From one point of the cube to another, each metric changed by so much: logarithms of the ratios."""

    before: Array
    after: Array
    logs: Mapping[str, float]


class _Corrected:
    """A prior, bent near what was measured elsewhere so that it has the effect that was seen there."""

    def __init__(self, base: Optional[Prior], effects: Sequence[_Effect]) -> None:
        self._base = base
        self._bends = [(effect.after, self._corrections(effect)) for effect in effects]

    def predict(self, points: Array) -> Mapping[str, Array]:
        """Give metrics at points, shape (n, size) -> metric -> shape (n,)."""
        points = np.asarray(points, dtype=float)
        metrics = dict(self._base.predict(points)) if self._base is not None else {}
        for after, corrections in self._bends:
            near = np.exp(-0.5 * np.mean((points - after) ** 2, axis=1) / NEAR**2)
            for name, log in corrections.items():
                metrics[name] = metrics.get(name, np.ones(len(points))) * np.exp(near * log)
        return metrics

    def _corrections(self, effect: _Effect) -> Dict[str, float]:
        """Of what was seen, what the base does not say: logarithms of factors, for metrics that it knows at all."""
        if self._base is None:
            return dict(effect.logs)
        predictions = self._base.predict(np.array([effect.before, effect.after]))
        return {
            name: log - math.log(predictions[name][1] / predictions[name][0])
            for name, log in effect.logs.items()
            if name in predictions and min(predictions[name]) > 0
        }


def _effects(entry: Judged, space: KnobSpace, release: Release) -> List[_Effect]:
    there = entry.profile.release
    level = parse_version(entry.profile.version) if entry.profile.version else None
    same_queue = (there.cost_model, there.clients_share(level)) == (release.cost_model, release.clients_share())
    if entry.settings is None or not same_queue or there.service_classes != release.service_classes:
        return []
    after = np.array(space.encode(entry.settings))
    effects = []
    for evidence in entry.profile.evidence:
        built_in = evidence.get("best_built_in")
        means, comparison = evidence.get("measured"), built_in if isinstance(built_in, Mapping) else {}
        name, before = str(comparison.get("profile")), comparison.get("measured")
        if not isinstance(means, Mapping) or not isinstance(before, Mapping) or name not in release.profiles:
            continue
        logs = {
            metric: math.log(means[metric] / before[metric])
            for metric in means
            if min(_number(means.get(metric)), _number(before.get(metric))) > 0
        }
        effects.append(_Effect(np.array(space.encode(release.profiles[name])), after, logs))
    return effects


def _settings_here(profile: Profile, here: Here) -> Settings:
    settings = dict(translate(profile, here.release, here.hardware).settings)
    built_in = here.release.profiles.get(str(settings.pop(PROFILE, "")))
    return dict(built_in) if built_in is not None else from_release_units(settings, here.release, here.hardware)


def _unlike_work(profile: Profile, here: Here) -> str:
    there = {work_of(str(_objective(entry))) for slo in profile.slos for entry in slo.get("objectives", [])}
    if not there:
        return "it does not say for which work it was found"
    if there - {"client"} != here.work - {"client"}:
        own = " and ".join(sorted(here.work))
        return f"found for {' and '.join(sorted(there))}, here {f'it is {own}' if own else 'no objective is set'}"
    return ""


def _unlike_load(profile: Profile, here: Here, baseline: Mapping[str, float]) -> str:
    origin, osds = profile.hardware, profile.osds
    there = None if origin is None or osds is None else load_of(_evidence_means(profile), origin.capacity_iops * osds)
    now = load_of(baseline, here.hardware.capacity_iops * here.osds)
    if now is None:
        return "" if "client" not in here.work else "what clients do here was not seen"
    if there is None:
        return "its evidence does not say what its clients did"
    if _apart(there.busy, now.busy) > FACTOR:
        return f"clients took {there.busy:.1%} of the capacity there, and {now.busy:.1%} here"
    if _apart(there.size_bytes, now.size_bytes) > SIZE_FACTOR:
        return f"an operation had {there.size_bytes / 1024:.4g} KiB there, and {now.size_bytes / 1024:.4g} here"
    if abs(there.read_share - now.read_share) > READ_SHARES:
        return f"{there.read_share:.0%} of the operations were reads there, and {now.read_share:.0%} here"
    return ""


@dataclass(frozen=True)
class ClientDemand:
    """What clients ask of the OSDs, so that two clusters' loads can be compared."""

    busy: float
    """Operations, as a share of all OSDs' capacity; copies are not counted."""
    size_bytes: float
    read_share: float


def load_of(means: Mapping[str, Any], capacity_iops: float) -> Optional[ClientDemand]:
    """Read the load from metrics; None where they do not have it."""
    rate, write_rate = _number(means.get("client.iops")), _number(means.get("client.write_iops"))
    bytes_s = _number(means.get("client.bytes_s"))
    read = _number(means.get("client.read_iops")) or max(0.0, rate - write_rate)
    if rate <= 0 or bytes_s <= 0:
        return None
    return ClientDemand(rate / capacity_iops, bytes_s / rate, min(1.0, read / rate))


def _evidence_means(profile: Profile) -> Mapping[str, Any]:
    """What was measured with the profile in force, or simulated."""
    for evidence in profile.evidence:
        for key in ("measured", "load"):
            if isinstance(evidence.get(key), Mapping):
                return dict(evidence[key])
    return {}


def _objective(entry: Any) -> Any:
    return entry.get("objective", "") if isinstance(entry, Mapping) else entry


def _number(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else 0.0


def _apart(one: float, other: float) -> float:
    """The factor between them, at least 1."""
    low, high = sorted((one, other))
    return high / low if low > 0 else math.inf
