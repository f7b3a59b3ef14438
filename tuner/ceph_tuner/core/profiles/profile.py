"""A profile: named settings and where they come from, as plain dictionaries that travel as a file.

    schema: 1
    name: recovery-on-flash
    release: tentacle             # an era of `releases.py`; `version` says which Ceph exactly
    hardware: {capacity_iops: 935, bandwidth_bytes_s: 62914560, shards: 1, device_class: ssd, osds: 3}
    slos: [{name: …, objectives: [client.p95_ms <= 80 ms]}]
    evidence: [{…}]               # what was measured, in the words of whoever measured it
    settings: {osd_mclock_scheduler_client_res: 0.5, …}

Reservations and limits are fractions of an OSD's capacity for every release, so that they carry over to other
hardware; releases that want IOPS get them when the profile is applied (`translation.py`). Reading checks everything.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.slo import parse_slo
from ceph_tuner.core.knobs.catalogue import KNOBS, MCLOCK_NINE, PROFILE, knob
from ceph_tuner.core.knobs.cost import Hardware
from ceph_tuner.core.knobs.releases import (
    BUILT_IN_PROFILES,
    Release,
    Settings,
    Value,
    format_version,
    parse_version,
    release_named,
    release_of,
)
from ceph_tuner.core.knobs.settings import Place, check_settings, dotted, shares

SCHEMA = 1

NAME = re.compile(r"[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?")
NAME_RULE = "1 to 64 of a-z, 0-9, '.', '_', '-', without these at its ends"

EARLY_LIMIT_MAX = 3.0
"""Up to 17.2.6 limits may exceed the capacity: the built-in profiles go up to 2."""

_OWNERS = {"pool": "a pool", "mgr": "the mgr"}
_DEPTH_MAX, _SIZE_MAX = 12, 20_000
_KEYS = (
    "schema",
    "name",
    "description",
    "release",
    "version",
    "built_in",
    "hardware",
    "workload",
    "slos",
    "evidence",
    "settings",
)
_HARDWARE_KEYS = ("capacity_iops", "bandwidth_bytes_s", "shards", "device_class", "osds")

Plain = Dict[str, Any]


@dataclass(frozen=True)
class Profile:
    """Settings with a name and an origin. Made by `make` or `from_dict`, which check it."""

    name: str
    release: Release
    settings: Settings
    """The nine values as fractions, others in the knob's unit; no osd_mclock_profile."""
    version: str = ""
    description: str = ""
    built_in: bool = False
    """Whether it is one of the release's own profiles, of that name."""
    hardware: Optional[Hardware] = None
    osds: Optional[int] = None
    workload: str = ""
    slos: Tuple[Plain, ...] = ()
    evidence: Tuple[Plain, ...] = ()
    schema: int = field(default=SCHEMA)

    @classmethod
    def make(cls, name: str, release: Release, settings: Mapping[str, Value], **origin: Any) -> Profile:
        """Make a profile of settings that were found or measured. Raises InputError where they cannot be one."""
        draft = cls(name=name, release=release, settings=dict(settings), **origin)
        return cls.from_dict(draft.to_dict())

    def to_dict(self) -> Plain:
        """Give the plain form; `from_dict` is its inverse. What is empty is left out."""
        hardware = None
        if self.hardware is not None:
            facts = {**vars(self.hardware), "osds": self.osds}
            hardware = {key: facts[key] for key in _HARDWARE_KEYS if facts[key] is not None}
        everything = {
            "schema": self.schema,
            "name": self.name,
            "description": self.description,
            "release": self.release.name,
            "version": self.version,
            "built_in": self.built_in,
            "hardware": hardware,
            "workload": self.workload,
            "slos": [dict(slo) for slo in self.slos],
            "evidence": [dict(item) for item in self.evidence],
            "settings": {**{name: self.settings[name] for name in KNOBS if name in self.settings}, **self.settings},
        }
        return {key: value for key, value in everything.items() if value not in ("", False, None, [])}

    @classmethod
    def from_dict(cls, data: object, place: Place = dotted) -> Profile:
        """Read and check the plain form. Raises InputError that names the place of the first thing that is wrong."""
        document = _mapping(data, place, ())
        for key in document:
            if key not in _KEYS:
                raise InputError(place(key), f"unknown key {key!r}", f"one of {', '.join(_KEYS)}")
        for key in ("schema", "name", "release", "settings"):
            if key not in document:
                raise InputError(place(), f"no key {key!r}", f"{key}, as every profile has it")
        if document["schema"] != SCHEMA or isinstance(document["schema"], bool):
            raise InputError(
                place("schema"), repr(document["schema"]), f"{SCHEMA}, the version that this program reads"
            )
        release = release_named(_text(document, "release", place), place("release"))
        name = _text(document, "name", place)
        if not NAME.fullmatch(name):
            raise InputError(place("name"), repr(name), NAME_RULE)
        built_in = document.get("built_in", False)
        if not isinstance(built_in, bool):
            raise InputError(place("built_in"), repr(built_in), "true or false")
        settings = _settings(document["settings"], release, place)
        if built_in:
            _check_built_in(name, settings, release, place)
        hardware, osds = _hardware(document.get("hardware"), place)
        return cls(
            name=name,
            release=release,
            settings=settings,
            version=_version(_text(document, "version", place, ""), release, place),
            description=_text(document, "description", place, ""),
            built_in=built_in,
            hardware=hardware,
            osds=osds,
            workload=_text(document, "workload", place, ""),
            slos=tuple(_slos(document.get("slos", []), place)),
            evidence=tuple(_evidence(document.get("evidence", []), place)),
        )


def check_portable(settings: Mapping[str, object], release: Release, place: Place = dotted) -> Settings:
    """Check settings as a profile holds them: shares as fractions for every release. Raises InputError."""
    if release.units == "fraction":
        return check_settings(settings, release, place)
    mclock_shares = {name: value for name, value in settings.items() if name in MCLOCK_NINE}
    others = check_settings(
        {name: value for name, value in settings.items() if name not in MCLOCK_NINE}, release, place
    )
    nine: Settings = {name: _early_share(name, value, place) for name, value in mclock_shares.items()}
    gaps = [name for name in MCLOCK_NINE if name not in nine]
    if nine and gaps:
        raise InputError(
            place(next(iter(nine))), f"{len(nine)} of the nine mClock values", f"{', '.join(gaps)} as well"
        )
    for service_class, (reservation, _, limit) in (shares(nine) if nine else {}).items():
        if limit and limit < reservation:
            name = f"osd_mclock_scheduler_{service_class}_lim"
            raise InputError(place(name), f"{limit:g}", f"0 (none), or at least the reservation {reservation:g}")
    everything = {**nine, **others}
    return {name: everything[name] for name in KNOBS if name in everything}


def _early_share(name: str, value: object, place: Place) -> Value:
    entry = KNOBS[name]
    if entry.kind != "fraction":
        return entry.check(value, None, place(name))
    if name.endswith("_res"):
        return entry.check(value, None, place(name))
    expected = f"0 (none) or a fraction of the capacity up to {EARLY_LIMIT_MAX:g}"
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= EARLY_LIMIT_MAX:
        raise InputError(place(name), repr(value), expected)
    return entry.normal(float(value))


def _settings(data: object, release: Release, place: Place) -> Settings:
    def inside(*keys: object) -> str:
        return place("settings", *keys)

    section = _mapping(data, place, ("settings",))
    if not section:
        raise InputError(inside(), "no settings", "at least one knob with its value")
    for name in section:
        entry = knob(name, inside(name))
        if name == PROFILE:
            raise InputError(inside(name), name, "the nine mClock values, or built_in: true and the profile's name")
        if entry.work == "capacity":
            raise InputError(inside(name), f"{name}, a fact of the device", "it under hardware")
        if entry.scope in ("pool", "mgr"):
            raise InputError(inside(name), f"{name}, which belongs to {_OWNERS[entry.scope]}", "knobs of OSDs")
    return check_portable(section, release, inside)


def _check_built_in(name: str, settings: Settings, release: Release, place: Place) -> None:
    if name not in BUILT_IN_PROFILES:
        raise InputError(place("name"), repr(name), f"one of {', '.join(BUILT_IN_PROFILES)}, as built_in is true")
    own = release.profiles[name]
    for key in own:
        if settings.get(key) != own[key]:
            value = "nothing" if key not in settings else f"{settings[key]}"
            raise InputError(place("settings", key), value, f"{own[key]}, as in {release.title}'s own profile")
    for key in settings:
        if key not in own:
            raise InputError(place("settings", key), key, "the nine mClock values alone, as built_in is true")


def _hardware(data: object, place: Place) -> Tuple[Optional[Hardware], Optional[int]]:
    if data is None:
        return None, None
    section = _mapping(data, place, ("hardware",))
    for key in section:
        if key not in _HARDWARE_KEYS:
            raise InputError(place("hardware", key), f"unknown key {key!r}", f"one of {', '.join(_HARDWARE_KEYS)}")
    for key in ("capacity_iops", "bandwidth_bytes_s", "shards"):
        if key not in section:
            raise InputError(place("hardware"), f"no key {key!r}", f"{key} as well")
    capacity = _number(section["capacity_iops"], place("hardware", "capacity_iops"), 1, 1e7)
    bandwidth = _number(section["bandwidth_bytes_s"], place("hardware", "bandwidth_bytes_s"), 1, 1e12)
    shards = _whole(section["shards"], place("hardware", "shards"), 1, 1024)
    device_class = section.get("device_class", "ssd")
    if not isinstance(device_class, str) or not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", device_class):
        raise InputError(place("hardware", "device_class"), repr(device_class), "a device class such as ssd, hdd, nvme")
    osds = None if section.get("osds") is None else _whole(section["osds"], place("hardware", "osds"), 1, 1_000_000)
    return Hardware(capacity, bandwidth, shards, device_class), osds


def _slos(data: object, place: Place) -> List[Plain]:
    if not isinstance(data, (list, tuple)):
        raise InputError(place("slos"), type(data).__name__, "a list of SLOs")
    slos = []
    for index, item in enumerate(data):
        plain = _mapping(item, place, ("slos", index))
        parse_slo(plain, place=lambda *keys, at=index: place("slos", at, *keys))
        slos.append(_plain(plain, place, ("slos", index)))
    return slos


def _evidence(data: object, place: Place) -> List[Plain]:
    if not isinstance(data, (list, tuple)):
        raise InputError(place("evidence"), type(data).__name__, "a list of measurements")
    evidence = [
        _plain(_mapping(item, place, ("evidence", index)), place, ("evidence", index))
        for index, item in enumerate(data)
    ]
    if _size(evidence) > _SIZE_MAX:
        raise InputError(place("evidence"), f"{_size(evidence)} values", f"at most {_SIZE_MAX}")
    return evidence


def _version(text: str, release: Release, place: Place) -> str:
    if not text:
        return ""
    if release_of(text, place("version")) is not release:
        raise InputError(place("version"), repr(text), f"a version of {release.title}")
    return format_version(parse_version(text))


def _mapping(data: object, place: Place, keys: Tuple[object, ...]) -> Plain:
    if not isinstance(data, Mapping):
        kind = "nothing" if data is None else type(data).__name__
        raise InputError(place(*keys), kind, "a mapping of keys to values")
    for key in data:
        if not isinstance(key, str):
            raise InputError(place(*keys), f"the key {key!r}", "keys of text")
    return dict(data)


def _text(data: Plain, key: str, place: Place, default: Optional[str] = None) -> str:
    value = data.get(key, default)
    if not isinstance(value, str) or len(value) > 4096:
        raise InputError(place(key), "more than 4096 characters" if isinstance(value, str) else repr(value), "text")
    return value


def _number(value: object, place: str, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise InputError(place, repr(value), f"a number, {low:g} to {high:g}")
    return value


def _whole(value: object, place: str, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InputError(place, repr(value), f"a whole number, {low} to {high}")
    return value


def _plain(data: object, place: Place, keys: Tuple[object, ...]) -> Any:
    """Return data of mappings, lists, texts, numbers and booleans alone, so that it survives YAML and JSON."""
    if len(keys) > _DEPTH_MAX:
        raise InputError(place(*keys[:2]), f"more than {_DEPTH_MAX} levels", "less nesting")
    if isinstance(data, Mapping):
        return {key: _plain(value, place, (*keys, key)) for key, value in _mapping(data, place, keys).items()}
    if isinstance(data, (list, tuple)):
        return [_plain(value, place, (*keys, index)) for index, value in enumerate(data)]
    if data is None or isinstance(data, (bool, int, str)) or (isinstance(data, float) and math.isfinite(data)):
        return data
    raise InputError(place(*keys), repr(data), "text, a finite number, true, false, a list or a mapping")


def _size(data: Any) -> int:
    if isinstance(data, dict):
        return sum(1 + _size(value) for value in data.values())
    return sum(1 + _size(value) for value in data) if isinstance(data, list) else 0
