"""A profile onto a release: the settings to write there, with what was changed and why; or a refusal with the reason.

What carries over as it is: fractions of the capacity, weights, counts of concurrent work, chunk sizes.
What is translated: reservations and limits from and to IOPS per shard (Quincy up to 17.2.6); limits above the capacity;
the cost of a scrub item where that release fixes it, by scaling what best effort gets.
What is refused: a value that the release ignores and that nothing else can stand for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional, Tuple

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.catalogue import CLASSES, KNOBS, MCLOCK_NINE, PROFILE
from ceph_tuner.core.knobs.cost import Hardware
from ceph_tuner.core.knobs.releases import BUILT_IN_PROFILES, Release, Settings, Value, Version, parse_version
from ceph_tuner.core.knobs.settings import check_settings, notes_on, reservation_sum, shares
from ceph_tuner.core.profiles.profile import Profile

_BEST_EFFORT = "osd_mclock_scheduler_background_best_effort"
_DEFAULTS_WORTH_A_WORD = ("scrub", "snaptrim", "recovery", "device")


@dataclass(frozen=True)
class Translation:
    """Settings in the release's own units, in the order to write them, and what to know about them."""

    settings: Settings
    notes: Tuple[str, ...]


def translate(
    profile: Profile, release: Release, hardware: Optional[Hardware] = None, version: Optional[Version] = None
) -> Translation:
    """Give a profile's settings for a release; `hardware` is an OSD of the cluster that they are for.

    `version` is its patch level; without one they are for the release's newest.

    Raises InputError where a knob has no counterpart, or where IOPS are wanted and the hardware is unknown.
    """
    notes: List[str] = []
    settings = dict(profile.settings)
    if profile.release is not release:
        settings = _to_release(settings, profile, release, notes)
    own = _own_name(settings, release)
    if profile.built_in and own:
        return Translation({PROFILE: own}, tuple(notes))
    if any(name in settings for name in MCLOCK_NINE):
        if profile.built_in:
            notes.append(f"{profile.name} has other values on {release.title}: written as a custom profile")
        settings = {PROFILE: "custom", **settings}
        notes.extend(notes_on(settings, release))
        notes.extend(_about_clients(profile, release, version))
    notes.extend(_about_hardware(profile, hardware))
    notes.extend(_about_changes(settings))
    if release.units == "iops":
        settings = to_release_units(settings, release, hardware)
    return Translation(check_settings(settings, release), tuple(notes))


def to_release_units(settings: Mapping[str, Value], release: Release, hardware: Optional[Hardware]) -> Settings:
    """Turn fractions into what the release writes: itself, or IOPS per shard. Raises InputError without hardware."""
    if release.units == "fraction" or not any(name in settings for name in MCLOCK_NINE):
        return dict(settings)
    if hardware is None:
        raise InputError(
            "hardware", f"none, and {release.title} takes IOPS per shard", "the OSDs' capacity and number of shards"
        )
    release_settings = dict(settings)
    for service_class, (reservation, _, limit) in shares(settings).items():
        # Ceph's own profiles write 1 for "no reservation"
        reservation_iops = max(1, round(reservation * hardware.shard_iops))
        limit_iops = round(limit * hardware.shard_iops)
        release_settings[f"osd_mclock_scheduler_{service_class}_res"] = reservation_iops
        release_settings[f"osd_mclock_scheduler_{service_class}_lim"] = (
            max(reservation_iops, limit_iops) if limit else release.no_limit
        )
    return release_settings


def from_release_units(settings: Mapping[str, Value], release: Release, hardware: Optional[Hardware]) -> Settings:
    """Turn a cluster's own values into fractions of the capacity, as a profile holds them."""
    if release.units == "fraction" or not any(name in settings for name in MCLOCK_NINE):
        return dict(settings)
    if hardware is None:
        raise InputError(
            "hardware", f"none, and {release.title} has IOPS per shard", "the OSDs' capacity and number of shards"
        )
    fractions = dict(settings)
    for service_class, (reservation, _, limit) in shares(settings).items():
        res, lim = (f"osd_mclock_scheduler_{service_class}_{part}" for part in ("res", "lim"))
        fractions[res] = KNOBS[res].normal(0.0 if reservation <= 1 else min(1.0, reservation / hardware.shard_iops))
        none = limit in (0, release.no_limit)
        fractions[lim] = KNOBS[lim].normal(0.0 if none else limit / hardware.shard_iops)
    return fractions


def _to_release(settings: Settings, profile: Profile, release: Release, notes: List[str]) -> Settings:
    notes.append(f"made for {profile.release.title}, translated to {release.title}")
    settings = _without_early_limits(settings, release, notes)
    settings = _scrub_cost(settings, profile, release, notes)
    translation: Settings = {}
    for name, value in settings.items():
        effect = KNOBS[name].effective(release)
        if effect.works:
            translation[name] = value
        elif value == KNOBS[name].default(profile.release):
            notes.append(f"{name} left out: {effect.because}; it had its default there")
        else:
            raise InputError(
                f"{profile.name} settings.{name}",
                f"{KNOBS[name].format(value)}, which does nothing on {release.title} ({effect.because})",
                f"{' or '.join(effect.instead)} instead" if effect.instead else "a profile without it",
            )
    _event_cost(translation, profile, release)
    notes.extend(_about_classes(translation, profile.release, release))
    notes.extend(_about_defaults(translation, profile, release))
    return translation


def _without_early_limits(settings: Settings, release: Release, notes: List[str]) -> Settings:
    """Limits above the whole capacity existed up to 17.2.6 only; they never bind, so they become none."""
    new_settings = dict(settings)
    for service_class in CLASSES:
        name = f"osd_mclock_scheduler_{service_class}_lim"
        value = settings.get(name)
        if release.units == "fraction" and isinstance(value, (int, float)) and value > 1:
            new_settings[name] = 0.0
            notes.append(f"{name} {value:g} of the capacity became 0 (no limit): a fraction ends at 1")
    return new_settings


def _scrub_cost(settings: Settings, profile: Profile, release: Release, notes: List[str]) -> Settings:
    """Scale best effort by what osd_scrub_cost did, where the release has no such cost.

    mClock serves a class at rate x share / cost, so half the cost is twice the share: of the reservation, of the
    weight and of the limit. Snaptrim and deletion get the same factor, which is said.
    """
    name = "osd_scrub_cost"
    value, default = settings.get(name), KNOBS[name].default(profile.release)
    effect = KNOBS[name].effective(release)
    if effect.works or value is None or value == default or not isinstance(default, int):
        return settings
    if any(nine not in settings for nine in MCLOCK_NINE):
        return settings  # refused by the general rule, which names what to use
    factor = default / float(value)
    reservation, weight, limit = shares(settings)["background_best_effort"]
    scaled_limit = limit * factor
    new_settings = {key: other for key, other in settings.items() if key != name}
    new_settings[f"{_BEST_EFFORT}_res"] = KNOBS[f"{_BEST_EFFORT}_res"].normal(min(1.0, reservation * factor))
    new_settings[f"{_BEST_EFFORT}_wgt"] = min(1000, max(1, round(weight * factor)))
    new_settings[f"{_BEST_EFFORT}_lim"] = KNOBS[f"{_BEST_EFFORT}_lim"].normal(0.0 if scaled_limit > 1 else scaled_limit)
    if reservation_sum(new_settings) > 1 + 1e-6:
        raise InputError(
            f"{profile.name} settings.{name}",
            f"{value}, which {release.title} ignores; best effort would need {factor:g} times its reservation",
            f"reservations that leave room for it, or {' or '.join(effect.instead)}",
        )
    notes.append(
        f"{name} {value} became {factor:g} times the reservation, weight and limit of best effort "
        f"({effect.because}); snaptrim and PG deletion get them too"
    )
    return new_settings


def _event_cost(settings: Settings, profile: Profile, release: Release) -> None:
    """Refuse a tuned osd_scrub_event_cost where it means something else: a factor before 18.2.5, an addend since."""
    name = "osd_scrub_event_cost"
    effect_before, effect = KNOBS[name].effective(profile.release), KNOBS[name].effective(release)
    if name in settings and effect_before != effect and settings[name] != KNOBS[name].default(profile.release):
        raise InputError(
            f"{profile.name} settings.{name}",
            f"{settings[name]}, made where {effect_before.because}",
            f"a profile without it: on {release.title} it {effect.because}",
        )


def _own_name(settings: Mapping[str, Value], release: Release) -> str:
    """Name of the release's own profile with these very settings, or nothing."""
    for name in BUILT_IN_PROFILES:
        if dict(settings) == release.profiles[name]:
            return name
    return ""


def _about_classes(settings: Settings, release_before: Release, release: Release) -> List[str]:
    if not any(name in settings for name in MCLOCK_NINE):
        return []
    notes = [
        f"{work} was scheduled as {release_before.service_classes[work]}, here as {release.service_classes[work]}"
        for work in release_before.service_classes
        if release_before.service_classes[work] != release.service_classes[work]
    ]
    if release_before.cost_model != release.cost_model:
        notes.append("operations cost otherwise here: what was measured there does not hold")
    return notes


def _about_clients(profile: Profile, release: Release, version: Optional[Version]) -> List[str]:
    """Clients in one queue have their class's share together; in queues of their own each of them has it."""
    before = profile.release.clients_share(parse_version(profile.version) if profile.version else None)
    here = release.clients_share(version)
    if before == here:
        return []
    return ["clients share one queue here" if here else "each client has a queue here"]


def _about_defaults(settings: Settings, profile: Profile, release: Release) -> List[str]:
    """Defaults that differ and are not part of the profile."""
    notes = []
    for name, entry in KNOBS.items():
        there, here = entry.default(profile.release), entry.default(release)
        relevant = entry.work in _DEFAULTS_WORTH_A_WORD and entry.effective(release).works and name not in settings
        if relevant and None not in (there, here) and there != here:
            notes.append(f"{name} was {there} by default there and is {here} here")
    return notes


def _about_hardware(profile: Profile, hardware: Optional[Hardware]) -> List[str]:
    origin = profile.hardware
    if origin is None or hardware is None:
        return []
    notes = []
    if origin.device_class != hardware.device_class:
        notes.append(f"measured on {origin.device_class}, written to {hardware.device_class}: measure again")
    ratio = hardware.capacity_iops / origin.capacity_iops
    if not 0.5 <= ratio <= 2:
        notes.append(
            f"measured with {origin.capacity_iops:g} IOPS an OSD, here {hardware.capacity_iops:g}: fractions carry "
            "over, the measured effects do not"
        )
    return notes


def _about_changes(settings: Mapping[str, Value]) -> List[str]:
    costs: Dict[str, List[str]] = {}
    for name in settings:
        if KNOBS[name].change != "live":
            costs.setdefault(KNOBS[name].change, []).append(name)
    return [f"{', '.join(names)}: {change}" for change, names in costs.items()]
