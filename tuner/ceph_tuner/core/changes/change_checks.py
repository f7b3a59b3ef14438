"""What makes a change without effect, or one that cannot be taken back: said before anything is written."""

from __future__ import annotations

from typing import Iterable, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.core.ceph.ports import ConfigEntry
from ceph_tuner.core.ceph.target import Place, Target, section_of
from ceph_tuner.core.changes.config_database import Database
from ceph_tuner.core.changes.step import Step
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.catalogue import KNOBS, MCLOCK_NINE, PROFILE
from ceph_tuner.core.knobs.releases import Release, parse_version, release_of
from ceph_tuner.core.knobs.settings import format_settings, same, same_value

Sources = Mapping[str, Mapping[str, str]]
"""Of one OSD: option -> source (`mon`, `file`, …) -> value, for options that are not at their default."""

ConfigWrite = Tuple[str, str, Optional[str]]
"""Section, option, and the value that is set there; None removes the entry."""

_SOURCES = {"file": "ceph.conf", "env": "environment", "cmdline": "command line", "override": "`ceph tell` or code"}


def refuse_versions(versions: Iterable[str], settings: Mapping[str, object]) -> None:
    """OSDs of a release whose rules are not known, or of two that would take the settings differently."""
    eras = list(dict.fromkeys(map(release_of, sorted(versions, key=parse_version))))
    for era in eras:
        if not era.verified:
            raise InputError(
                "Ceph's version",
                f"{era.title}, whose rules for mClock are not known yet",
                "a release up to Tentacle; looking, sampling and the doctor work here too",
            )
    profile = str(settings.get(PROFILE, ""))
    for one, other in zip(eras, eras[1:]):
        if one.units != other.units:
            both = f"{one.title} beside {other.title}, in other units"
            raise InputError("Ceph's version", both, "OSDs of one release")
        if one.profiles.get(profile) != other.profiles.get(profile):
            raise InputError(
                f"{PROFILE} = {profile}",
                f"OSDs of {one.title} beside {other.title}, where it has other values",
                "OSDs of one release, or a custom profile",
            )


def refuse_outranked(
    after: Database,
    target: Target,
    expected: Mapping[str, str],
    places_up: Sequence[Place],
    sources: Mapping[int, Sources],
) -> None:
    """What would make the write without effect is said before it, not found out after it."""
    who = str(target)
    for name, value in expected.items():
        for place in places_up:
            decides = after.winner(name, place)
            if decides is not None and decides.who != who and not same_value(decides.value, value):
                raise InputError(
                    f"{name} on osd.{place.osd}",
                    f"an entry that would still decide: `{decides.who}` = {decides.value}",
                    f"{value}: {_way_out(decides, target, after)}",
                )
            local = {
                source: text for source, text in sources.get(place.osd, {}).get(name, {}).items() if source != "mon"
            }
            for source, text in local.items():
                if not same_value(text, value):
                    raise InputError(
                        f"{name} on osd.{place.osd}",
                        f"{text} from the OSD's own {_SOURCES.get(source, source)}, which outranks the monitors",
                        f"{value}: remove it there",
                    )


def refuse_wandering(current: Iterable[ConfigEntry], writes: Sequence[ConfigWrite], places: Sequence[Place]) -> None:
    """Refuse a write that would decide another option too, or not its own: one of the nine must not wait for that.

    A mask beats the section of one OSD only as long as nothing stands between the two (`Database.winner`), and what is
    written may be what stands there: also a value that is only held for as long as a change takes.
    """
    entries = sorted(current)
    additions = [ConfigEntry(who, name, "") for who, name, _ in writes]
    everything = Database([*entries, *additions])
    conflicts = {place.osd: [(name, place) for name in everything.contested(place)] for place in places}
    if not any(conflicts.values()):
        return
    database = Database(entries)
    winners = {(name, osd): _who(database, name, place) for osd, rows in conflicts.items() for name, place in rows}
    for who, name, value in writes:
        ours = section_of(who)
        if ours is None:
            continue
        database.write(who, name, value)
        # a large cluster has thousands of sections of one OSD
        rows_of_osds = conflicts.values() if ours.osd is None else [conflicts.get(ours.osd, [])]
        for option, place in (row for rows in rows_of_osds for row in rows if ours.covers(row[1])):
            before, after = winners[option, place.osd], _who(database, option, place)
            if option != name and before != after:
                raise InputError(
                    f"{name} at `{who}`",
                    f"that it would hand {option} of osd.{place.osd} from `{before}` to `{after}`",
                    f"{option} in one of these sections alone ({Step(before, option, None, None).command})",
                )
            decides = section_of(after)
            if option == name and value is not None and decides is not None and decides.rank < ours.rank:
                raise InputError(
                    f"{name} at `{who}`",
                    f"`{after}`, which still decides for osd.{place.osd}: nothing else stands between the two",
                    f"{option} in one of these sections alone ({Step(after, option, None, None).command})",
                )
            winners[option, place.osd] = after


def _way_out(decides: ConfigEntry, target: Target, after: Database) -> str:
    section = section_of(decides.who)
    if section is not None and section.rank < target.rank and not after.states(str(target), decides.name):
        return (
            "a built-in profile has no entries to outrank it with, so give that profile's values as a custom one, "
            f"or take `{decides.who}` as the target"
        )
    removal = Step(decides.who, decides.name, decides.value, None).command
    return f"choose a target that outranks it, or remove it ({removal})"


def refuse_false_start(
    after: Database, target: Target, expected: Mapping[str, str], down: Sequence[Place]
) -> List[str]:
    """An OSD that is down must not start under a built-in profile of its own and take our nine values for that one's.

    Gives a warning for each that will have something else than what is wanted.
    """
    who, warnings = str(target), []
    for place in down:
        others = [
            decides
            for name, value in expected.items()
            if (decides := after.winner(name, place)) is not None
            and decides.who != who
            and not same_value(decides.value, value)
        ]
        ours = any(_who(after, name, place) == who for name in MCLOCK_NINE)
        for decides in others:
            if decides.name == PROFILE and decides.value != "custom" and ours:
                raise InputError(
                    f"{PROFILE} on osd.{place.osd}, which is down",
                    f"`{decides.who}` = {decides.value}, under which it would start, and go by our values",
                    f"{expected[PROFILE]}: {_way_out(decides, target, after)}",
                )
        if others:
            first = others[0]
            warnings.append(f"osd.{place.osd} is down, and will have {first.name} = {first.value} of `{first.who}`")
    return warnings


def _who(entries: Database, name: str, place: Place) -> str:
    decides = entries.winner(name, place)
    return "" if decides is None else decides.who


def refuse_asleep(current: Database, release: Release, over: Sequence[Place]) -> None:
    """Of the nine, what is set under a built-in profile wakes up as soon as that profile's entry is touched.

    Whether a scheduler goes by it before depends on what its OSD has seen, and nobody can ask it: such a change could
    not be taken back for sure.
    """
    for place in over:
        profile = current.profile(place) or release.default_profile
        if profile == "custom":
            continue
        for name in MCLOCK_NINE:
            decides = current.winner(name, place)
            if decides is not None and not same(decides.value, _own(release, profile).get(name)):
                raise InputError(
                    f"{name} on osd.{place.osd}",
                    f"`{decides.who}` = {decides.value} under the built-in profile {profile}: to touch the profile "
                    "would wake it up, and taking back would not put it to sleep",
                    "values and profile that agree: `ceph-tuner doctor` says what to remove",
                )


def _own(release: Release, profile: str) -> Mapping[str, str]:
    """What a built-in profile sets; in Quincy that differs from OSD to OSD."""
    return format_settings(release.profiles[profile], release) if release.units == "fraction" else {}


def refuse_late(where: Target, names: Iterable[str]) -> None:
    """An OSD learns what stands under its device class only after it has read the options of its start."""
    for name in names:
        if where.device_class and KNOBS[name].change == "restart":
            raise InputError(
                name,
                f"`{where}`, while an OSD learns what stands under its device class only after it has read this option",
                "`osd`, a host, or the OSDs one by one",
            )


def unset_under_custom(current: Database, places_up: Sequence[Place]) -> List[str]:
    """A custom profile with holes cannot be restored to the letter: what such an OSD uses depends on its past."""
    reasons = []
    for place in places_up:
        if current.profile(place) != "custom":
            continue
        unset = [name for name in MCLOCK_NINE if current.winner(name, place) is None]
        if unset:
            reasons.append(
                f"osd.{place.osd} is under custom without {unset[0]}: what it uses now is lost by any change"
            )
    return reasons
