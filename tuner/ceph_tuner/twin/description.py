"""A cluster model as plain dictionaries, and back: how a fit's file keeps the cluster that it is about."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any, Callable, Dict, Mapping, Type, TypeVar

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.releases import format_version, parse_version, release_named
from ceph_tuner.core.knobs.settings import Place, dotted
from ceph_tuner.twin.model import (
    ClientStream,
    ClusterModel,
    DeleteWork,
    Device,
    OsdModel,
    Pool,
    RecoveryWork,
    ScrubWork,
    SnaptrimWork,
)

T = TypeVar("T")

WORK: Dict[str, Type[Any]] = {
    "pools": Pool,
    "clients": ClientStream,
    "recovery": RecoveryWork,
    "scrub": ScrubWork,
    "snaptrim": SnaptrimWork,
    "deletion": DeleteWork,
}
"""Keys that hold a list, and of what."""

HARDWARE = (
    "osds", "osd", "release", "version", "network_s", "hosts", "processors", "scheduler", "simulated_osds",
    "scrub_backoff_ratio", "upmap_max_deviation",
)  # fmt: skip
"""Keys of the cluster itself; the others are its work."""

DRIVES = ("device", "db")
"""Those of an OSD."""


def to_dict(model: ClusterModel) -> Dict[str, Any]:
    """Plain values; what is empty is left out."""
    plain = asdict(model)
    plain["release"] = model.release.name
    plain["version"] = None if model.version is None else format_version(model.version)
    plain["pools"] = [{key: value for key, value in pool.items() if value != ()} for pool in plain["pools"]]
    return {key: value for key, value in plain.items() if value not in (None, (), [])}


def from_dict(document: Mapping[str, Any], place: Place = dotted) -> ClusterModel:
    """Inverse of `to_dict`. Raises InputError for the first thing that is wrong."""
    values = dict(_mapping(document, place))
    release = release_named(str(values.pop("release", "tentacle")), place("release"))
    version = values.pop("version", None)
    osd = {"device": {}, **_mapping(values.pop("osd", {}), place, "osd")}
    drives = {name: _part(Device, osd[name], place, "osd", name) for name in DRIVES if osd.get(name) is not None}
    values["osd"] = _part(OsdModel, {**osd, **drives}, place, "osd")
    for key, kind in WORK.items():
        rows = values.pop(key, [])
        if not isinstance(rows, (list, tuple)):
            raise InputError(place(key), _word(rows), "a list")
        values[key] = tuple(_part(kind, row, place, key, number) for number, row in enumerate(rows))
    values["release"] = release
    values["version"] = None if version is None else parse_version(str(version), place("version"))
    return _part(ClusterModel, values, place)


def _part(kind: Type[T], data: Any, place: Place, *keys: object) -> T:
    values = _mapping(data, place, *keys)
    keys_of_kind = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    for key in values:
        if key not in keys_of_kind:
            raise InputError(place(*keys, key), f"unknown key {key!r}", f"one of {', '.join(keys_of_kind)}")
    try:
        return kind(**values)
    except (TypeError, ValueError) as error:
        raise InputError(place(*keys), str(error), f"what a {kind.__name__} takes") from None


def _mapping(data: Any, place: Callable[..., str], *keys: object) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        raise InputError(place(*keys), _word(data), "a mapping of keys to values")
    return data


def _word(data: Any) -> str:
    return "nothing" if data is None else f"a {type(data).__name__}"
