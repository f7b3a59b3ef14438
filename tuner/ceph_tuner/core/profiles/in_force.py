"""What OSDs say of themselves, as a profile: their hardware and the settings in force.

`options` are what `ports.ConfigDatabase.effective` gives: every option of one OSD, defaults included.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.core.bounded import ANSWER, read_json
from ceph_tuner.core.ceph.ports import Commander
from ceph_tuner.core.ceph.target import Place, classes_of, reach, running
from ceph_tuner.core.changes.configuration import Configuration
from ceph_tuner.core.errors import ClusterTimeout, CommandFailed, InputError, PermissionRefused
from ceph_tuner.core.knobs.catalogue import KNOBS, MCLOCK_NINE, PROFILE, Knob, searchable, unmet_needs
from ceph_tuner.core.knobs.cost import Hardware, kind_of_class
from ceph_tuner.core.knobs.recovery_limit import CHUNK, DEFAULT_CHUNK, limit_note
from ceph_tuner.core.knobs.releases import BUILT_IN_PROFILES, Release, Settings, Version, parse_version
from ceph_tuner.core.knobs.settings import settings_in_force
from ceph_tuner.core.measure.osd_selection import spread
from ceph_tuner.core.profiles.profile import Profile
from ceph_tuner.core.profiles.translation import Translation, from_release_units, translate

_FOR_PROFILES = ("scrub", "snaptrim", "deletion", "recovery", "device")
"""Kinds of knobs that a profile carries beside the nine values; the others are facts of a device, or need a restart."""


@dataclass(frozen=True)
class ProfileInForce:
    """A profile of what is in force, and what it had to leave out."""

    profile: Profile
    notes: Tuple[str, ...]


@dataclass(frozen=True)
class InForce(ProfileInForce):
    """What the OSDs of a target have, all alike, and on which hardware."""

    built_in: Optional[str]
    """Name of the built-in profile; None for custom."""
    hardware: Hardware
    """Of one of them."""
    osds: int
    kind: str = "ssd"
    """Of their drives: `hdd` where all are hard disks."""

    @property
    def settings(self) -> Settings:
        """As fractions whatever the release, without facts of a device."""
        return self.profile.settings


def in_force(
    commander: Commander,
    config: Configuration,
    release: Release,
    version: str,
    target: str,
    name: str = "in-force",
    most_osds: Optional[int] = None,
) -> InForce:
    """Ask the running OSDs of a target, or `most_osds` of them, evenly over their ids, for a profile called `name`.

    Raises InputError where there are none or they do not agree, TunerError where one does not answer.
    """
    places = running(target, config.places())
    osds = set(spread((place.osd for place in places), len(places) if most_osds is None else most_osds))
    where = {place.osd: place for place in places if place.osd in osds}
    kinds = kinds_of(commander, where.values())
    first: Optional[Tuple[int, InForce]] = None
    for osd, options in config.effective_on(sorted(where)):
        if isinstance(options, (CommandFailed, ClusterTimeout)):
            raise options
        device_class, kind = where[osd].device_class, kinds[osd]
        own = profile_in_force(name, options, release, version, device_class, kind, osds=len(places))
        profile = settings_in_force(options)[PROFILE]
        built_in = str(profile) if profile in release.profiles else None
        if first is None:
            hardware = hardware_of(options, device_class, f"osd.{osd}", kind)
            of_all = kind_of_all(kinds.values())
            first = osd, InForce(own.profile, own.notes, built_in, hardware, len(places), of_all)
            continue
        ours = {PROFILE: first[1].built_in, **first[1].settings}
        theirs = {PROFILE: built_in, **own.profile.settings}
        conflicts = sorted(knob for knob in {*ours, *theirs} if ours.get(knob) != theirs.get(knob))
        if conflicts:
            which = " and ".join(f"osd.{number}" for number in sorted((first[0], osd)))
            raise InputError("--target", f"{which} that differ in {', '.join(conflicts)}", "OSDs that agree")
    if first is None:
        raise InputError("--target", "no OSD", "one that runs")
    return replace(first[1], notes=(*first[1].notes, *_notes_on_classes(target, places)))


def _notes_on_classes(target: str, places: Sequence[Place]) -> Tuple[str, ...]:
    """What to know of a target whose OSDs are of several device classes."""
    classes = classes_of(places)
    if len(classes) < 2:
        return ()
    narrower = " or ".join(f"osd/class:{name}" for name in classes if name)
    return (f"{target} is {reach(places)}: one profile for drives of several kinds; {narrower} has one for its own",)


def kind_of(metadata: Mapping[str, Any], device_class: str = "") -> str:
    """`hdd` or `ssd`, as an OSD's drive says of itself: Ceph chooses among options by that, whatever the class.

    By the class where nothing is known of the drive: an OSD that never ran says nothing of it.
    """
    if "rotational" not in metadata:
        return kind_of_class(device_class)
    return "hdd" if metadata["rotational"] == "1" else "ssd"


def log_is_on_flash(metadata: Mapping[str, Any]) -> bool:
    """Whether an OSD says that RocksDB lies on another drive than its data, on flash."""
    return metadata.get("bluefs_dedicated_db") == "1" and metadata.get("bluefs_db_rotational") == "0"


def kind_of_all(kinds: Iterable[str]) -> str:
    """`hdd` where all are hard disks."""
    return "hdd" if set(kinds) == {"hdd"} else "ssd"


def metadata_of(commander: Commander) -> Dict[int, Mapping[str, Any]]:
    """Give what OSDs say of themselves by OSD, none where that cannot be had. Raises TunerError."""
    try:
        rows = read_json(commander.mon("osd metadata", {}), "osd metadata", ANSWER)
    except (CommandFailed, PermissionRefused, ValueError):
        rows = []
    return {int(row["id"]): row for row in rows}


def kinds_of(commander: Commander, places: Iterable[Place]) -> Dict[int, str]:
    """Give `kind_of` by OSD, with one command for all of them. Raises TunerError."""
    row_of = metadata_of(commander)
    return {place.osd: kind_of(row_of.get(place.osd, {}), place.device_class) for place in places}


def hardware_of(options: Mapping[str, str], device_class: str = "ssd", place: str = "osd", kind: str = "") -> Hardware:
    """Capacity, bandwidth and shards as mClock uses them on this OSD. Raises InputError where an option is missing.

    `kind`: of its drive, as `kinds_of` gives it; by the class where it is empty.
    """
    media = kind or kind_of_class(device_class)

    def number(name: str) -> float:
        if name not in options:
            raise InputError(place, f"no option {name}", "an OSD of Quincy or later")
        return float(options[name])

    shards = int(number("osd_op_num_shards")) or int(number(f"osd_op_num_shards_{media}"))
    capacity = number(f"osd_mclock_max_capacity_iops_{media}")
    bandwidth_name = f"osd_mclock_max_sequential_bandwidth_{media}"
    # up to 17.2.6 costs were no bytes: the bandwidth that Ceph assumes since stands in for it
    default = KNOBS[bandwidth_name].history[-1].default
    bandwidth = number(bandwidth_name) if bandwidth_name in options else float(default or 1)
    # mClock itself never takes less than 1 of either
    return Hardware(max(1.0, capacity), max(1.0, bandwidth), max(1, shards), device_class or media)


def hardware_on(commander: Commander, config: Configuration, place: Place) -> Hardware:
    """Give `hardware_of` the OSD at a place by what it answers. Raises TunerError."""
    return _asked(commander, config, place)[1]


def _asked(commander: Commander, config: Configuration, place: Place) -> Tuple[Mapping[str, str], Hardware]:
    """An OSD's options, and its hardware. Raises TunerError."""
    kind = kinds_of(commander, [place])[place.osd]
    options = config.effective(place.osd)
    return options, hardware_of(options, place.device_class, f"osd.{place.osd}", kind)


def notes_on_recovery_limit(
    settings: Settings, target: str, commander: Commander, config: Configuration, release: Release
) -> Tuple[str, ...]:
    """What to know of settings that limit the recovery of a target's OSDs. Raises InputError, TunerError."""
    place = running(target, config.places())[0]
    return _on_recovery_limit(settings, release, *_asked(commander, config, place))


def _on_recovery_limit(
    settings: Settings, release: Release, options: Mapping[str, str], hardware: Hardware
) -> Tuple[str, ...]:
    note = limit_note(settings, release, hardware.shards, float(options.get(CHUNK, DEFAULT_CHUNK)))
    return () if note is None else (note,)


def translated_for(
    profile: Profile, target: str, commander: Commander, config: Configuration, release: Release, version: str
) -> Translation:
    """Translate a profile for a target's OSDs. Raises InputError where it cannot be, TunerError where none answers."""
    places = running(target, config.places())
    options, hardware = _asked(commander, config, places[0])
    translation = translate(profile, release, hardware, parse_version(version))
    on_recovery = _on_recovery_limit(translation.settings, release, options, hardware)
    return replace(translation, notes=(*translation.notes, *on_recovery, *_notes_on_classes(target, places)))


def searched_from(options: Mapping[str, str], release: Release, kind: str) -> Settings:
    """Give what an OSD has, for a search: the profile's name, the nine as fractions, and all else that is searched.

    Also what is at its default: another patch level has another one. `kind`: of its drive. Nothing is refused that
    Ceph takes, but for numbers below 0, which are left out. Raises InputError where an option is missing.
    """
    in_force = settings_in_force(options)
    nine = {name: in_force.pop(name) for name in MCLOCK_NINE if name in in_force}
    names = tuple(entry.name for entry in searchable(release) if entry.name not in MCLOCK_NINE)
    others = {name: value for name, value in settings_in_force(options, names).items() if float(value) >= 0}
    return {**in_force, **from_release_units(nine, release, hardware_of(options, kind=kind)), **others}


def profile_in_force(
    name: str,
    options: Mapping[str, str],
    release: Release,
    version: str = "",
    device_class: str = "ssd",
    kind: str = "",
    **origin: Any,
) -> ProfileInForce:
    """Make a profile of an OSD's options: its nine values, and the other knobs that are not at their default.

    `kind` is its drive's (`kinds_of`). Raises InputError for an OSD whose queue is not mClock, or whose nine values no
    profile can hold.
    """
    queue = options.get("osd_op_queue", "mclock_scheduler")
    if queue != "mclock_scheduler":
        raise InputError("osd_op_queue", queue, "mclock_scheduler: under another queue the nine values do nothing")
    hardware = hardware_of(options, device_class, kind=kind)
    at = parse_version(version) if version else release.newest
    in_force = settings_in_force(options)
    profile = in_force.pop(PROFILE, "custom")
    notes: List[str] = []
    others = _others(options, release, at, notes)
    built_in = profile in BUILT_IN_PROFILES and not others
    nine: Settings
    if profile in BUILT_IN_PROFILES:
        nine = dict(release.profiles[str(profile)])
    else:
        nine = from_release_units({key: in_force[key] for key in MCLOCK_NINE if key in in_force}, release, hardware)
    result = Profile.make(
        str(profile) if built_in else name,
        release,
        {**nine, **others},
        version=version,
        built_in=built_in,
        hardware=hardware,
        **origin,
    )
    return ProfileInForce(result, tuple(notes))


def _others(options: Mapping[str, str], release: Release, version: Version, notes: List[str]) -> Settings:
    settings: Settings = {}
    for entry in KNOBS.values():
        if entry.work in _FOR_PROFILES and entry.scope == "osd" and entry.name in options:
            value = _unusual(entry, options[entry.name], release, version, notes)
            if value is not None:
                settings[entry.name] = value
    for name in list(settings):
        # a limit that the OSD has dropped is not in force, whatever stands there
        if unmet_needs(KNOBS[name], release, settings):
            notes.append(f"{name} left out: {KNOBS[name].effective(release).because}")
            del settings[name]
    return settings


def _unusual(entry: Knob, text: str, release: Release, version: Version, notes: List[str]) -> Optional[Any]:
    """Value of a knob that works and is not at its default; None otherwise."""
    value = entry.read(text, entry.name)
    if value == entry.default(release, version):
        return None
    effect = entry.effective(release, version)
    if not effect.works:
        notes.append(f"{entry.name} {text} left out: {effect.because}")
        return None
    try:
        return entry.check(value, release)
    except InputError as fault:
        notes.append(f"{fault}: left out")
        return None
