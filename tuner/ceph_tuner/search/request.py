"""The optimiser's request as JSON gave it (`worker.py` describes it), checked and with its names resolved."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.slo import Slo, parse_slo
from ceph_tuner.core.knobs.catalogue import KNOBS, MCLOCK_NINE, PROFILE
from ceph_tuner.core.knobs.cost import Hardware
from ceph_tuner.core.knobs.releases import Release, Settings, release_of
from ceph_tuner.core.knobs.settings import dotted
from ceph_tuner.core.measure.sample import measured_once
from ceph_tuner.core.profiles.profile import Profile
from ceph_tuner.optimise.contract import Expected
from ceph_tuner.search.optimiser import Failed, Result

VERSION = 1
ASK_MAX = 16
SHARDS_MAX = 1024
DRIVES = ("ssd", "hdd")


class Told(NamedTuple):
    """What was tried, what it gave, and what an answer had said of it beforehand."""

    settings: Settings
    result: Result
    expected: Expected


@dataclass(frozen=True)
class SearchRequest:
    """What is asked for."""

    release: Release
    slo: Slo
    in_force: Settings
    """With the nine mClock values written out."""
    baseline: Optional[Mapping[str, float]]
    told: List[Told]
    knobs: Optional[List[str]]
    shards: int
    kind: str
    """Of the OSDs' drives: one of DRIVES."""
    seed: int
    ask: int
    safe_probability: float
    step_limit: float
    elsewhere: Optional[Tuple[List[Profile], Hardware, int]]
    """Profiles of other clusters, and the hardware and the number of OSDs here."""
    explain: bool


def parse_request(data: object) -> SearchRequest:
    """Check a request. Raises InputError that names the place."""
    document = _mapping(data, "request")
    if document.get("version") != VERSION:
        raise InputError("request.version", repr(document.get("version")), str(VERSION))
    release = release_of(_text(document, "release"), "request.release")
    knobs = document.get("knobs")
    if knobs is not None and not (isinstance(knobs, list) and all(isinstance(name, str) for name in knobs)):
        raise InputError("request.knobs", repr(knobs), "a list of names, or null")
    return SearchRequest(
        release,
        parse_slo(document.get("slo"), place=partial(dotted, "request.slo")),
        _settings_in_force(document.get("in_force"), release),
        _values(document["baseline"], "request.baseline") if document.get("baseline") is not None else None,
        _told_trials(document.get("told", []), release),
        knobs,
        _whole(document, "shards", 1, 1, SHARDS_MAX),
        _kind(document),
        _whole(document, "seed", 0, 0, 2**63 - 1),
        _whole(document, "ask", 1, 0, ASK_MAX),
        _share(document, "safe_probability", 0.95),
        _share(document, "step_limit", 1.0),
        _elsewhere(document.get("elsewhere")),
        bool(document.get("explain")),
    )


def _elsewhere(data: object) -> Optional[Tuple[List[Profile], Hardware, int]]:
    """Profiles of other clusters, and the hardware here. One that another version wrote is left out."""
    if data is None:
        return None
    section = _mapping(data, "request.elsewhere")
    documents, about, osds = section.get("profiles"), section.get("hardware"), section.get("osds")
    if not isinstance(documents, list):
        raise InputError("request.elsewhere.profiles", repr(documents)[:60], "a list")
    if isinstance(osds, bool) or not isinstance(osds, int) or osds < 1:
        raise InputError("request.elsewhere.osds", repr(osds), "a whole number, 1 or more")
    try:
        hardware = Hardware(**_mapping(about, "request.elsewhere.hardware"))
    except (TypeError, ValueError) as error:
        raise InputError("request.elsewhere.hardware", str(error), "what mClock believes of an OSD") from error
    profiles = []
    for document in documents:
        with suppress(InputError):
            profiles.append(Profile.from_dict(document))
    return profiles, hardware, osds


def _settings_in_force(data: object, release: Release) -> Settings:
    settings = _settings(data, "request.in_force")
    profile = settings.get(PROFILE)
    if isinstance(profile, str) and profile in release.profiles:
        settings.update(release.profiles[profile])
    absent = [name for name in MCLOCK_NINE if name not in settings]
    if absent:
        raise InputError("request.in_force", f"no {absent[0]}", "the nine mClock values, or a built-in profile")
    return settings


def _told_trials(data: object, release: Release) -> List[Told]:
    if not isinstance(data, list):
        raise InputError("request.told", repr(data)[:60], "a list")
    results = []
    for index, item in enumerate(data):
        place = f"request.told.{index}"
        entry = _mapping(item, place)
        profile = entry.get("profile")
        if profile is not None and profile not in release.profiles:
            raise InputError(f"{place}.profile", repr(profile), "one of " + ", ".join(release.profiles))
        settings = _settings(entry.get("settings", {} if profile else None), f"{place}.settings")
        if profile:
            settings.update(release.profiles[str(profile)])
        values = _values(entry.get("values", {}), f"{place}.values")
        expected = _intervals(entry.get("expected", {}), f"{place}.expected")
        failed = entry.get("failed")
        result = measured_once(values) if failed is None else Failed(str(failed), values)
        results.append(Told(settings, result, expected))
    return results


def _settings(data: object, place: str) -> Settings:
    settings: Settings = {}
    for name, value in _mapping(data, place).items():
        if name not in KNOBS:
            raise InputError(place, repr(name), "a known knob")
        if not isinstance(value, (bool, int, float, str)) or (isinstance(value, float) and not math.isfinite(value)):
            raise InputError(f"{place}.{name}", repr(value), "a value")
        numeric = not KNOBS[name].choices and KNOBS[name].kind != "bool"
        if numeric and (isinstance(value, (bool, str)) or value < 0):
            raise InputError(f"{place}.{name}", repr(value), "a number, at least 0")
        settings[name] = value
    return settings


def _values(data: object, place: str) -> Dict[str, float]:
    values = {}
    for name, value in _mapping(data, place).items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise InputError(f"{place}.{name}", repr(value), "a number")
        # Python's JSON reads NaN and Infinity: a value that is no number was not seen
        if math.isfinite(value):
            values[name] = float(value)
    return values


def _intervals(data: object, place: str) -> Dict[str, Tuple[float, float, float]]:
    intervals = {}
    for name, ends in _mapping(data, place).items():
        given = ends if isinstance(ends, list) else []
        values = [float(value) for value in given if type(value) in (int, float) and math.isfinite(value)]
        if len(given) != 3 or len(values) != 3 or not values[1] <= values[0] <= values[2]:
            raise InputError(f"{place}.{name}", repr(ends)[:60], "a middle, and the ends around it")
        intervals[name] = (values[0], values[1], values[2])
    return intervals


def _mapping(data: object, place: str) -> Mapping[str, Any]:
    if not isinstance(data, dict):
        raise InputError(place, "nothing" if data is None else repr(data)[:60], "an object")
    return data


def _text(document: Mapping[str, Any], key: str) -> str:
    value = document.get(key)
    if not isinstance(value, str):
        raise InputError(f"request.{key}", repr(value), "a text")
    return value


def _kind(document: Mapping[str, Any]) -> str:
    kind = document.get("kind", DRIVES[0])
    if kind not in DRIVES:
        raise InputError("request.kind", repr(kind)[:60], " or ".join(DRIVES))
    return str(kind)


def _whole(document: Mapping[str, Any], key: str, default: int, low: int, high: int) -> int:
    value = document.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InputError(f"request.{key}", repr(value), f"a whole number from {low} to {high}")
    return value


def _share(document: Mapping[str, Any], key: str, default: float) -> float:
    value = document.get(key, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 1:
        raise InputError(f"request.{key}", repr(value), "a number above 0 and at most 1")
    return float(value)
