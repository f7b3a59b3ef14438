"""Which settings a boost takes: those that trials on this cluster showed, else known ones, under the guard."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Dict, Mapping, NamedTuple, Optional, Sequence, Tuple

from ceph_tuner.core.boost.kinds import BACKFILL, RECOVERY, SCRUB, SNAPTRIM, Kind
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.goals.trial import Trial
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.releases import Release, Settings, Version
from ceph_tuner.core.knobs.settings import check_settings
from ceph_tuner.core.moments import utc_minute

HIGH_RECOVERY = "high_recovery_ops"
_OVERRIDE = "osd_mclock_override_recovery_settings"
QUEUE, WPQ = "osd_op_queue", "wpq"

_RECOVERY_KNOBS = (("osd_max_backfills", 4),)
RAISED: Mapping[str, Tuple[Tuple[str, float], ...]] = {
    RECOVERY: _RECOVERY_KNOBS,
    BACKFILL: _RECOVERY_KNOBS,
    SCRUB: (("osd_max_scrubs", 6), ("osd_scrub_load_threshold", 10.0)),
    SNAPTRIM: (("osd_max_trimming_pgs", 8), ("osd_pg_max_concurrent_snap_trims", 8)),
}
"""Kind of work -> knobs that bound how much of it goes on at once, with a value well above their defaults."""

LOOKED_AT = (PROFILE, QUEUE, _OVERRIDE, *dict.fromkeys(name for knobs in RAISED.values() for name, _ in knobs))
"""Knobs whose values in force are needed."""


class BoostChoice(NamedTuple):
    """Settings, and why these."""

    settings: Settings
    grounds: str


def choose(
    kind: Kind,
    trials: Sequence[Trial],
    slo: Optional[Slo],
    in_force: Settings,
    release: Release,
    version: Version,
    now: Mapping[str, float] = MappingProxyType({}),
) -> BoostChoice:
    """Give the fastest settings that keep what is to be kept, as far as that is known.

    `slo`: objectives on clients and all that is to be kept; without any, nothing speaks against the boldest ones.
    `in_force`: what the OSDs have, of `LOOKED_AT`. Raises InputError where nothing is faster than that.
    `now`: how fast the work goes with those; a trial that was no faster is no boost.
    """
    if slo is not None and slo.objectives:
        by_trial = _by_trial(kind, trials, slo, release, version, now)
        if by_trial is not None:
            return by_trial
    settings = known(kind, in_force, release, version)
    if not settings:
        raise InputError("boost", f"{kind.name} with settings in force that are as fast", "slower settings in force")
    words = f"the profile {HIGH_RECOVERY}" if settings.get(PROFILE) == HIGH_RECOVERY else "known settings"
    return BoostChoice(
        settings, f"{words}, as no trial on this cluster is known that keeps the objectives and was faster"
    )


def known(kind: Kind, in_force: Settings, release: Release, version: Version) -> Settings:
    """What is known to make this work faster, without what is in force already and what the release does not have."""
    settings: Dict[str, Any] = {}
    queue = in_force.get(QUEUE, "mclock_scheduler")
    if queue != WPQ and in_force.get(PROFILE) != HIGH_RECOVERY:
        settings[PROFILE] = HIGH_RECOVERY
    for name, value in RAISED[kind.name]:
        current = in_force.get(name)
        if isinstance(current, (int, float)) and current >= value:
            continue
        # wpq does not look at it, and does no harm by it: settings are checked alike for either queue
        needs = {_OVERRIDE: True} if name in dict(_RECOVERY_KNOBS) else {}
        if _fits({**needs, name: value}, release, version):
            settings.update({**needs, name: value})
    return settings


def _by_trial(
    kind: Kind,
    trials: Sequence[Trial],
    slo: Slo,
    release: Release,
    version: Version,
    now: Mapping[str, float],
) -> Optional[BoostChoice]:
    judge = Judge(slo)
    candidates = [
        trial
        for trial in trials
        if trial.failed is None
        and trial.run.settings
        and judge.keeps_hard(trial.means)
        and _fits(trial.run.settings, release, version)
    ]
    # one rate for all: bytes a second are more than copies of any number
    metric = next((name for name in kind.speed if any(trial.means.get(name) for trial in candidates)), "")
    faster = [trial for trial in candidates if trial.means.get(metric, 0.0) > now.get(metric, 0.0)]
    if not faster:
        return None
    trial = max(faster, key=lambda each: (each.means[metric], each.at))
    words = f"of {len(candidates)} trials on this cluster that kept the objectives, {trial.run.label} was the fastest"
    return BoostChoice(dict(trial.run.settings), f"{words} ({utc_minute(trial.at)})")


def _fits(settings: Mapping[str, Any], release: Release, version: Version) -> bool:
    """Whether the release takes these settings."""
    try:
        check_settings(dict(settings), release, version=version)
    except InputError:
        return False
    return True
