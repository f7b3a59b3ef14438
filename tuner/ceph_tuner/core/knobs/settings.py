"""Settings as a whole: what no single knob can see of itself.

Reading, checking and comparing values for several knobs at once; the types live in `releases.py` and are
passed on from here.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Callable, Dict, List, Mapping, Optional, Tuple

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.catalogue import CLASSES, KNOBS, MCLOCK_NINE, PROFILE, knob, unmet_needs
from ceph_tuner.core.knobs.releases import Release, Settings, Value, Version

__all__ = [
    "CLASSES",
    "MCLOCK_NINE",
    "PROFILE",
    "ChangeCost",
    "Place",
    "Release",
    "Settings",
    "Value",
    "after_moves",
    "change_cost",
    "check_live_settings",
    "check_settings",
    "fitting_reservations",
    "format_settings",
    "moved_knobs",
    "moves_alone",
    "notes_on",
    "parse_settings",
    "reservation_sum",
    "same",
    "same_value",
    "settings_in_force",
    "shares",
]

Place = Callable[..., str]
"""Names a place by its keys: `place("settings", "osd_max_scrubs")` gives `file.yaml:12 settings.osd_max_scrubs`."""

_SUM_TOLERANCE = 1e-6
"""Nine values with six decimals each may miss 1 by their rounding."""


def dotted(*keys: object) -> str:
    """Name a place by its keys alone, where there is no file."""
    return ".".join(str(key) for key in keys)


def same_value(one: str, other: str) -> bool:
    """Whether two texts are one value: Ceph writes `0.5` as `0.500000` here and `0.50000000000000000` there."""
    if one == other:
        return True
    try:
        return abs(float(one) - float(other)) <= 1e-6
    except ValueError:
        return False


def settings_key(settings: Mapping[str, Value]) -> str:
    """Equal for the same settings, in whichever order they are."""
    return json.dumps(settings, sort_keys=True)


def same(one: Optional[str], other: Optional[str]) -> bool:
    """`same_value`, where None stands for no entry."""
    if one is None or other is None:
        return one is other
    return same_value(one, other)


def shares(settings: Mapping[str, Value]) -> Dict[str, Tuple[float, int, float]]:
    """(reservation, weight, limit) by class. All nine values must be there."""
    by_class: Dict[str, Tuple[float, int, float]] = {}
    for service_class in CLASSES:
        reservation, weight, limit = (
            settings[f"osd_mclock_scheduler_{service_class}_{part}"] for part in ("res", "wgt", "lim")
        )
        by_class[service_class] = (float(reservation), int(weight), float(limit))
    return by_class


def moved_knobs(settings: Mapping[str, Value], in_force: Mapping[str, Value]) -> int:
    """How many knobs these settings move from what is in force; a built-in profile is one."""
    if settings.get(PROFILE, "custom") != "custom":
        return 1
    return sum(
        name not in in_force or not same_value(str(value), str(in_force[name]))
        for name, value in settings.items()
        if name != PROFILE
    )


@dataclass(frozen=True, order=True)
class ChangeCost:
    """What settings cost beside those in force; the smaller comes first."""

    entries: int = 0
    """Entries to write, and to remove again: what is cheap to reach is as safe to leave."""
    moved: int = 0
    """Knobs that get another value."""


def change_cost(settings: Mapping[str, Value], in_force: Mapping[str, Value], built_in: bool) -> ChangeCost:
    """Give the cost of settings. `built_in`: a built-in profile is in force.

    Then any other of the nine values takes a custom profile, which is the profile and all nine. On the way back their
    order matters, and OSDs leave what is no longer custom alone for some seconds.
    """
    moved = moved_knobs(settings, in_force)
    if settings.get(PROFILE, "custom") != "custom":
        return ChangeCost(moved, moved)
    others = moved_knobs({name: value for name, value in settings.items() if name not in MCLOCK_NINE}, in_force)
    custom = 1 + len(MCLOCK_NINE) if built_in and moved > others else moved - others
    return ChangeCost(others + custom, moved)


def moves_alone(settings: Settings, in_force: Mapping[str, Value], release: Release) -> Settings:
    """Leave out what is in force already: it needs no write, and a built-in profile stays where none of the nine moves.

    The nine come together or not at all; a knob comes with what it needs beside it.
    """
    if settings.get(PROFILE, "custom") != "custom":
        return dict(settings)

    def moved(name: str) -> bool:
        before = in_force.get(name, KNOBS[name].default(release))
        return before is None or not same_value(str(settings[name]), str(before))

    others = [name for name in settings if name not in (PROFILE, *MCLOCK_NINE)]
    needed_by = {name: {need for need, _ in KNOBS[name].effective(release).needs} for name in others}
    needs = {need for names in needed_by.values() for need in names}
    moves = [name for name in others if name not in needs and moved(name)]
    wanted = {*moves, *(need for name in moves for need in needed_by[name])}
    if any(moved(name) for name in MCLOCK_NINE if name in settings):
        wanted.update((PROFILE, *MCLOCK_NINE))
    return {name: value for name, value in settings.items() if name in wanted}


def after_moves(moves: Settings, in_force: Mapping[str, Value], release: Release) -> Settings:
    """Give what is in force once these are written, without the profile's name: a built-in one is written out."""
    profile = release.profiles.get(str(moves.get(PROFILE)), {})
    return {name: value for name, value in {**in_force, **profile, **moves}.items() if name != PROFILE}


def reservation_sum(settings: Mapping[str, Value]) -> float:
    """Sum of the three reservations; Ceph does not check it (20.2.3's own profiles sum to 1.05)."""
    return sum(reservation for reservation, _, _ in shares(settings).values())


def fitting_reservations(settings: Mapping[str, Value]) -> Settings:
    """Settings with reservations that a custom profile may have: 20.2.3's own profiles sum to 1.05.

    On a saturated OSD they are kept in proportion, so in proportion they are lowered, to whole hundredths. Settings
    without all nine values stay as they are.
    """
    total = reservation_sum(settings) if all(name in settings for name in MCLOCK_NINE) else 0.0
    own = _reservations(settings) if total > 1 else {}
    return {**settings, **{name: math.floor(100 * value / total) / 100 for name, value in own.items()}}


def _reservations(settings: Mapping[str, Value]) -> Dict[str, float]:
    """Name -> reservation. All nine values must be there."""
    return {name: float(settings[name]) for name in MCLOCK_NINE if name.endswith("_res")}


def check_settings(
    settings: Mapping[str, object],
    release: Release,
    place: Place = dotted,
    effective: bool = True,
    version: Optional[Version] = None,
) -> Settings:
    """Check settings that are to be written. Return them as the monitors will keep them, in the order to write them.

    Every knob is known, within its range, and honoured by the release (unless `effective` is false), at its newest
    version unless one is named; the nine values come together or not at all; the reservations sum to at most 1; a limit
    is 0 (none) or at least the reservation.
    Raises InputError for the first thing that is wrong.
    """
    checked: Settings = {}
    for name, value in settings.items():
        entry = knob(name, place(name))
        effect = entry.effective(release, version)
        if effective and not effect.works:
            expected = f"{' or '.join(effect.instead)} instead" if effect.instead else "it left out"
            raise InputError(place(name), f"a knob that does nothing on {release.title} ({effect.because})", expected)
        checked[name] = entry.check(value, release, place(name))
    _check_nine(checked, release, place)
    for name in checked:
        for needed, value in unmet_needs(KNOBS[name], release, checked).items():
            raise InputError(place(name), f"it without {needed}", f"{needed}: {KNOBS[needed].format(value)} beside it")
    _check_chunks(checked, release, place)
    return {name: checked[name] for name in KNOBS if name in checked}


def check_live_settings(
    settings: Mapping[str, object], release: Release, place: Place = dotted, version: Optional[Version] = None
) -> None:
    """Check settings that come and go while the OSDs run. Raises InputError as `check_settings`, and for a restart."""
    check_settings(settings, release, place, version=version)
    for name in settings:
        if KNOBS[name].scope != "osd" or KNOBS[name].change != "live":
            # it would come, or stay, with the next restart of an OSD, whatever is wanted then
            raise InputError(place(name), name, "a knob of the OSDs that needs no restart")


def _check_nine(settings: Settings, release: Release, place: Place) -> None:
    present = [name for name in MCLOCK_NINE if name in settings]
    if not present:
        return
    missing = [name for name in MCLOCK_NINE if name not in settings]
    if missing:
        raise InputError(
            place(present[0]), f"{len(present)} of the nine mClock values", f"{', '.join(missing)} as well"
        )
    profile = settings.get(PROFILE, "custom")
    if profile != "custom":
        raise InputError(place(PROFILE), repr(profile), "custom, as the nine mClock values are given")
    for service_class, (reservation, _, limit) in shares(settings).items():
        if limit not in (0, release.no_limit) and limit < reservation - _SUM_TOLERANCE:
            name = f"osd_mclock_scheduler_{service_class}_lim"
            raise InputError(place(name), f"{limit:g}", f"0 (none), or at least the reservation {reservation:g}")
    if release.units == "fraction":
        total = reservation_sum(settings)
        if total > 1 + _SUM_TOLERANCE and not is_built_in(settings, release):
            own = _reservations(settings)
            owner = next((name for name, values in release.profiles.items() if _reservations(values) == own), "")
            found = f"the reservations of {owner}, which" if owner else "reservations that"
            fitting = _reservations(fitting_reservations(settings)).items()
            instead = " ".join(f"{name}={value:g}" for name, value in fitting)
            expected = f"at most 1 in a custom profile, such as {instead}"
            raise InputError(place(MCLOCK_NINE[0]), f"{found} sum to {total:g}", expected)


def _check_chunks(settings: Settings, release: Release, place: Place) -> None:
    """Refuse a largest chunk below the smallest one: Ceph takes the smallest then (`PgScrubber::select_range`)."""
    for kind in ("osd_scrub_chunk", "osd_shallow_scrub_chunk"):
        largest = settings.get(f"{kind}_max")
        smallest = settings.get(f"{kind}_min", KNOBS[f"{kind}_min"].default(release))
        if isinstance(smallest, int) and isinstance(largest, int) and largest < smallest:
            expected = f"at least {smallest}, or {kind}_min: {largest} beside it"
            raise InputError(place(f"{kind}_max"), str(largest), expected)


def is_built_in(settings: Mapping[str, Value], release: Release) -> bool:
    """Whether the nine values are those of one of the release's own profiles."""
    return any(all(settings[name] == value for name, value in own.items()) for own in release.profiles.values())


def notes_on(settings: Mapping[str, Value], release: Release) -> List[str]:
    """What is allowed and worth a word: overbooked reservations of built-in profiles, limits that waste capacity."""
    if not all(name in settings for name in MCLOCK_NINE) or release.units != "fraction":
        return []
    notes = []
    total = reservation_sum(settings)
    if total > 1 + _SUM_TOLERANCE:
        notes.append(f"the reservations sum to {total:g}: on a saturated OSD none of them is kept in full")
    client_limit = shares(settings)["client"][2]
    if client_limit:
        notes.append(f"clients never get more than {client_limit:g} of the capacity, even on an idle OSD")
    return notes


def parse_settings(texts: Mapping[str, str], release: Release) -> Settings:
    """Read `name: text` as the operator or `config dump` writes them, and check the whole. Raises InputError."""
    return check_settings({name: knob(name, name).read(text, name) for name, text in texts.items()}, release)


def format_settings(settings: Mapping[str, Value], release: Release) -> Dict[str, str]:
    """Texts as `ceph config dump` shows them, in the order to write them."""
    ordered = [name for name in KNOBS if name in settings]
    return {name: KNOBS[name].format_for(settings[name], release) for name in ordered}


def settings_in_force(options: Mapping[str, str], names: Tuple[str, ...] = (PROFILE, *MCLOCK_NINE)) -> Settings:
    """Return what an OSD says its options are (`ConfigDatabase.effective`), read without refusing any value."""
    return {name: knob(name).read(options[name], name) for name in names if name in options}
