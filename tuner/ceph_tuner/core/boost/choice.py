"""Which settings a boost takes: what trials on this cluster and the book showed, else known ones, under the guard."""

from __future__ import annotations

import math
from functools import partial
from types import MappingProxyType
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ceph_tuner.core.boost.kinds import BACKFILL, RECOVERY, SCRUB, SNAPTRIM, Kind
from ceph_tuner.core.boost.offer import TwinOffer
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.goals.trial import Trial
from ceph_tuner.core.knobs.catalogue import CLASSES, MCLOCK_NINE, OVERRIDE, PROFILE
from ceph_tuner.core.knobs.releases import Release, Settings, Version
from ceph_tuner.core.knobs.settings import check_settings
from ceph_tuner.core.moments import utc_minute

HIGH_RECOVERY, CUSTOM = "high_recovery_ops", "custom"
QUEUE, WPQ = "osd_op_queue", "wpq"

_RECOVERY_KNOBS = (("osd_max_backfills", 4),)
RAISED: Mapping[str, Tuple[Tuple[str, float], ...]] = {
    RECOVERY: _RECOVERY_KNOBS,
    BACKFILL: _RECOVERY_KNOBS,
    SCRUB: (("osd_max_scrubs", 6), ("osd_scrub_load_threshold", 10.0)),
    SNAPTRIM: (("osd_max_trimming_pgs", 8), ("osd_pg_max_concurrent_snap_trims", 8)),
}
"""Kind of work -> knobs that bound how much of it goes on at once, with a value well above their defaults."""

LOOKED_AT = (
    *(PROFILE, QUEUE, OVERRIDE),
    *MCLOCK_NINE,
    *dict.fromkeys(name for knobs in RAISED.values() for name, _ in knobs),
)
"""Knobs whose values in force are needed."""


_UNMEASURED = "; how fast the work is now was not measured, so nothing that was tried is known to be faster"

MEASURED, PREDICTED, KNOWN = "measured", "predicted", "known"
"""What settings rest on: on trials and validated pages, on the twin and other clusters, on none of it."""


class BoostChoice(NamedTuple):
    """Settings, and why these."""

    settings: Settings
    grounds: str
    basis: str = KNOWN
    forecast: Mapping[str, Any] = MappingProxyType({})
    """What the twin said of them, as it is kept with the write; empty where it was not asked."""
    in_force: Mapping[str, Any] = MappingProxyType({})
    """What the OSDs have, of `LOOKED_AT`."""


class BookPage(NamedTuple):
    """A page of the book that may be used: for the regime that holds, and for the OSDs of the boost."""

    number: int
    regime: str
    settings: Settings
    at: float
    validated: bool
    """By a trial on this cluster; else it was predicted, or comes from elsewhere."""
    origin: str
    means: Mapping[str, float]
    """What the cluster did under it, or would."""
    before: Mapping[str, float]
    """What it did, or would, with the settings before."""


class _Candidate(NamedTuple):
    settings: Settings
    means: Mapping[str, float]
    at: float
    words: str
    is_page: bool = False


def choose(
    kind: Kind,
    trials: Sequence[Trial],
    slo: Optional[Slo],
    in_force: Settings,
    release: Release,
    version: Version,
    now: Mapping[str, float] = MappingProxyType({}),
    pages: Sequence[BookPage] = (),
    of: str = "on this cluster",
    offer: Optional[TwinOffer] = None,
) -> BoostChoice:
    """Give the fastest settings that keep what is to be kept, as far as that is known.

    Trials and validated pages come first, then what the twin offers for this boost, then pages that nobody has tried
    here, then known settings.
    `slo`: objectives on clients and all that is to be kept; without any, nothing speaks against the boldest ones.
    `in_force`: what the OSDs have, of `LOOKED_AT` and of what was tried. Raises InputError where nothing is faster.
    `now`: how fast the work goes with those; what was no faster is no boost, nor what there is no such rate to compare
    with for. `of`: what the trials are of, in words.
    """
    doubt, refusal = "", "nothing is to be kept"
    if slo is not None and slo.objectives:
        fits = partial(_is_candidate, in_force=in_force, release=release, version=version)
        judge = Judge(slo)
        candidates = _tried(trials, pages, judge, fits)
        metric = _metric(kind, candidates)
        measured = _fastest(candidates, metric, now, of)
        if measured is not None:
            return measured
        doubt = _UNMEASURED if metric and metric not in now else ""
        refusal = _refusal(offer, kind, judge, fits, in_force) if offer is not None else ""
        if offer is not None and not refusal:
            return _offered(offer, kind, now)
        predicted = _predicted(kind, pages, judge, fits)
        if predicted is not None:
            return predicted._replace(grounds=f"{predicted.grounds}{doubt}{_not_taken(offer, refusal)}")
    settings = known(kind, in_force, release, version)
    if not settings:
        raise InputError("boost", f"{kind.name} with settings in force that are as fast", "slower settings in force")
    words = {
        HIGH_RECOVERY: f"the profile {HIGH_RECOVERY}",
        CUSTOM: f"the share of the work's class under {HIGH_RECOVERY} beside the custom ones of the others",
    }.get(str(settings.get(PROFILE)), "known settings")
    nothing_else = f"no trial {of} and no page of the book for this regime is known"
    grounds = f"{words}, as {nothing_else} that keeps the objectives and was faster{doubt}{_not_taken(offer, refusal)}"
    return BoostChoice(settings, grounds)


def known(kind: Kind, in_force: Settings, release: Release, version: Version) -> Settings:
    """What is known to make this work faster, without what is in force already and what the release does not have."""
    settings: Dict[str, Any] = {}
    if in_force.get(QUEUE, "mclock_scheduler") != WPQ:
        settings.update(_shares(kind, in_force, release))
    for name, value in RAISED[kind.name]:
        current = in_force.get(name)
        if isinstance(current, (int, float)) and current >= value:
            continue
        # wpq does not look at it, and does no harm by it: settings are checked alike for either queue
        needs = {OVERRIDE: True} if name in dict(_RECOVERY_KNOBS) else {}
        if _fits({**needs, name: value}, release, version):
            settings.update({**needs, name: value})
    return settings


def _shares(kind: Kind, in_force: Settings, release: Release) -> Settings:
    """The profile. Beside custom shares those of the work's class alone, so that what limits other work stays."""
    if in_force.get(PROFILE) == HIGH_RECOVERY:
        return {}
    shares: Dict[str, Any] = {name: in_force.get(name) for name in MCLOCK_NINE}
    numbers = all(isinstance(value, (int, float)) for value in shares.values())
    if in_force.get(PROFILE) != CUSTOM or release.units != "fraction" or not numbers:
        return {PROFILE: HIGH_RECOVERY}
    of_work = release.service_classes[kind.name]
    shares.update({name: value for name, value in release.profiles[HIGH_RECOVERY].items() if f"_{of_work}_" in name})
    room = 1.0 - shares[_reservation(of_work)]
    # of the others the clients give way last
    for other in sorted((name for name in CLASSES if name != of_work), key=lambda name: name != "client"):
        kept = min(shares[_reservation(other)], math.floor(100 * room + 1e-9) / 100)
        shares[_reservation(other)], room = kept, room - kept
    is_in_force = all(in_force[name] == value for name, value in shares.items())
    return {} if is_in_force else {PROFILE: CUSTOM, **shares}


def _reservation(service_class: str) -> str:
    return f"osd_mclock_scheduler_{service_class}_res"


def _tried(
    trials: Sequence[Trial], pages: Sequence[BookPage], judge: Judge, fits: Callable[[Settings], bool]
) -> List[_Candidate]:
    """What was tried on this cluster, and kept what is to be kept."""
    candidates = [
        _Candidate(trial.run.settings, trial.means, trial.at, trial.run.label)
        for trial in trials
        if trial.failed is None and fits(trial.run.settings) and judge.keeps_hard(trial.means)
    ]
    return candidates + [
        _Candidate(
            page.settings, page.means, page.at, f"page {page.number} of the book, validated for {page.regime},", True
        )
        for page in pages
        if page.validated and fits(page.settings) and _breaks_none(judge, page.means)
    ]


def _fastest(candidates: Sequence[_Candidate], metric: str, now: Mapping[str, float], of: str) -> Optional[BoostChoice]:
    """The fastest of what was tried; None where nothing is known to be faster than the work is now."""
    present = now.get(metric)
    faster = [each for each in candidates if present is not None and each.means.get(metric, 0.0) > present]
    if not faster:
        return None
    best = max(faster, key=lambda each: (each.means[metric], each.at))
    of_pages = sum(each.is_page for each in candidates)
    count = len(candidates) - of_pages
    counted = [f"{count} trial{'s' * (count != 1)} {of}"] if count else []
    if of_pages:
        counted.append(f"{of_pages} validated page{'s' * (of_pages != 1)} of the book")
    words = f"of {' and '.join(counted)} that kept the objectives, {best.words} was the fastest ({utc_minute(best.at)})"
    return BoostChoice(dict(best.settings), words, MEASURED)


def _refusal(offer: TwinOffer, kind: Kind, judge: Judge, fits: Callable[[Settings], bool], in_force: Settings) -> str:
    """Why what the twin offers is not taken; empty where it is."""
    if any(in_force.get(name) != value for name, value in offer.in_force.items()):
        # it has only what differs from these, and says what that changes
        return "other settings are in force than when it was asked"
    missed = _broken(judge, offer.means)
    if missed:
        return f"it would miss {' and '.join(missed)}"
    if not offer.is_faster(kind):
        return "it is no faster than what is in force"
    return "" if fits(offer.settings) else "it is in force, or not for this release"


def _not_taken(offer: Optional[TwinOffer], refusal: str) -> str:
    return "" if offer is None else f"; what the twin offers is not taken: {refusal}"


def _offered(offer: TwinOffer, kind: Kind, now: Mapping[str, float]) -> BoostChoice:
    promise = offer.promise(kind, kind.left_in(now))
    words = "predicted by the twin for this boost, and not tried on this cluster: the guard watches it"
    grounds = f"{words} ({utc_minute(offer.forecast.at)}; {promise})"
    return BoostChoice(dict(offer.settings), grounds, PREDICTED, offer.forecast.to_dict())


def _predicted(
    kind: Kind, pages: Sequence[BookPage], judge: Judge, fits: Callable[[Settings], bool]
) -> Optional[BoostChoice]:
    """The fastest page that nobody has tried here; None where none promises to be faster than what was before it."""
    usable = [page for page in pages if not page.validated and fits(page.settings) and _breaks_none(judge, page.means)]
    candidates = [_Candidate(page.settings, page.means, page.at, "") for page in usable]
    metric = _metric(kind, candidates)
    # a prediction is held against a prediction: what is seen now may be of another load
    faster = [page for page in usable if page.means.get(metric, 0.0) > page.before.get(metric, 0.0)]
    if not faster:
        return None
    best = max(faster, key=lambda page: (page.means[metric], page.at))
    words = f"page {best.number} of the book for {best.regime}, by {best.origin} and not tried on this cluster"
    return BoostChoice(dict(best.settings), f"{words}: the guard watches it ({utc_minute(best.at)})", PREDICTED)


def _metric(kind: Kind, candidates: Sequence[_Candidate]) -> str:
    """One rate for all: bytes a second are more than copies of any number."""
    return next((name for name in kind.speed if any(each.means.get(name) for each in candidates)), "")


def _breaks_none(judge: Judge, means: Mapping[str, float]) -> bool:
    """Whether no hard objective is known to be missed: a page knows few metrics, and the guard sees the others."""
    return not _broken(judge, means)


def _broken(judge: Judge, means: Mapping[str, float]) -> List[str]:
    """Hard objectives that are known to be missed, as texts."""
    return [each.objective.text for each in judge.verdicts(means) if each.objective.hard and each.met is False]


def _is_candidate(settings: Settings, in_force: Settings, release: Release, version: Version) -> bool:
    """Whether the release takes these settings, and they are another choice than what is in force."""
    is_in_force = all(name in in_force and in_force[name] == value for name, value in settings.items())
    return not is_in_force and _fits(settings, release, version)


def _fits(settings: Mapping[str, Any], release: Release, version: Version) -> bool:
    """Whether the release takes these settings."""
    try:
        check_settings(dict(settings), release, version=version)
    except InputError:
        return False
    return True
