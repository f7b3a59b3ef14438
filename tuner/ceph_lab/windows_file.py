"""Measured windows as files, for `ceph-tuner twin fit`: what `benchmarks/twin_windows.py` writes, or the same by hand.

    {"in_force": {...},                        settings behind a window's empty `settings`
     "settle_s": 5, "window_s": 25,
     "lab": {...}, "hardware": {...}, "release": "tentacle", "ceph": "20.2.4",      of a lab: describes the cluster
     "windows": [{"mix": "client-recovery",    the scenario; `scenario` does as well
                  "label": "fit-1", "settings": {...}, "seconds": 25, "settle": 5,
                  "measures": {"client.iops": [mean, deviation, count], ...},
                  "options": {...}}]}          of the scenario, where they are not its defaults

A bare list is taken as `windows`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

from ceph_lab.loads.client_work import FIO
from ceph_lab.options import LabOptions
from ceph_lab.twin_model import lab_model
from ceph_tuner.core.bounded import DOCUMENT, MISREAD, read_file, read_json
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.cost import Hardware
from ceph_tuner.core.knobs.releases import Release, Settings, parse_version, release_named, release_of
from ceph_tuner.core.knobs.settings import check_settings
from ceph_tuner.core.measure.metrics import METRICS
from ceph_tuner.core.measure.sample import Measure
from ceph_tuner.twin.knobs_in_force import completed
from ceph_tuner.twin.model import ClusterModel
from ceph_tuner.twin.observations import Observation

EXPECTED = "a file of windows (JSON, as benchmarks/twin_windows.py writes it)"

BEFORE_DRIVES: Mapping[str, Any] = {"engine": FIO, "scrub_objects": 1200, "scrub_object_bytes": 1 << 20}
"""What a lab's loads did by default while its devices were throttled ones, and a file did not name their drives."""

SHORT_LIVED = re.compile(r"ran out of work after (\d+) s of (\d+) s")
"""A scenario's remark: the window was measured for as long as there was work of every kind."""

LEAST_S = 5.0


@dataclass(frozen=True)
class Windows:
    """What a file holds."""

    observations: Tuple[Observation, ...]
    models: Mapping[str, ClusterModel] = field(default_factory=dict)
    """By scenario, of a lab; empty where the file does not describe a cluster."""
    settings: Settings = field(default_factory=dict)
    """What was in force."""
    origin: Mapping[str, Any] = field(default_factory=dict)
    skipped: Tuple[str, ...] = ()
    """Windows that failed, or show nothing that the twin predicts."""


def read(path: Union[str, Path], release: Optional[Release] = None) -> Windows:
    """Read and check a file. `release` is that of the cluster where the file does not say. Raises InputError."""
    return _read(read_json(read_file(path, EXPECTED), str(path), DOCUMENT), str(path), release)


def from_text(text: str, name: str = "windows.json", release: Optional[Release] = None) -> Windows:
    """Read windows from the text of the named file."""
    return _read(read_json(text, name, DOCUMENT), name, release)


def _read(data: Any, name: str, release: Optional[Release]) -> Windows:
    try:
        return _WindowsReader(data, name, release).windows()
    except MISREAD as error:
        # parts of another kind than where they stand
        raise InputError(name, f"{type(error).__name__}: {error}"[:200], EXPECTED) from error


class _WindowsReader:
    """Reads one document; every fault is told with its place."""

    def __init__(self, data: Any, name: str, release: Optional[Release]) -> None:
        self._name = name
        self._data = self._mapping({"windows": data} if isinstance(data, list) else data)
        self._release = self._find_release(release)
        self._in_force = self._settings(self._data.get("in_force", {}), "in_force")

    def windows(self) -> Windows:
        rows = self._data.get("windows")
        if not isinstance(rows, list):
            raise InputError(
                self._place("windows"), "nothing" if rows is None else repr(rows)[:60], "a list of windows"
            )
        observations: List[Observation] = []
        omissions: List[str] = []
        work: Dict[str, Mapping[str, Any]] = {}
        for number, row in enumerate(rows):
            entry = self._mapping(row, "windows", number)
            scenario = str(entry.get("mix") or entry.get("scenario") or "")
            label = str(entry.get("label", number))
            if entry.get("failed"):
                omissions.append(f"{scenario} {label}: {entry['failed']}")
                continue
            observation = self._observation(entry, number, scenario, label)
            if not observation.metrics:
                omissions.append(f"{scenario} {label}: no metric that the twin predicts")
                continue
            work.setdefault(scenario, self._mapping(entry.get("options", {}), "windows", number, "options"))
            observations.append(observation)
        if not observations:
            raise InputError(self._place("windows"), "no window that was measured", "at least one")
        origin = {key: self._data[key] for key in ("ceph", "machine", "date", "hardware", "lab") if key in self._data}
        return Windows(tuple(observations), self._models(work), self._in_force, origin, tuple(omissions))

    def _observation(self, entry: Mapping[str, Any], number: int, scenario: str, label: str) -> Observation:
        measures = {}
        section = self._mapping(entry.get("measures", {}), "windows", number, "measures")
        for metric, value in section.items():
            # metrics of other versions of this program are no fault
            if metric in METRICS:
                measures[metric] = self._measure(value, "windows", number, "measures", metric)
        own = self._settings(entry.get("settings", {}), "windows", number, "settings")
        if not own and not self._in_force:
            raise InputError(
                self._place("windows", number, "settings"), "no settings", "them, or in_force for the whole file"
            )
        seconds, settle = self._times(entry, number)
        # a count that a trial leaves alone is as it was in force
        settings = completed({**self._in_force, **own}, self._release)
        return Observation(scenario, label, settings, measures, seconds, settle)

    def _times(self, entry: Mapping[str, Any], number: int) -> Tuple[float, float]:
        seconds = self._number(entry.get("window_s", self._data.get("window_s", 25.0)), number, "window_s")
        settle = self._number(entry.get("settle_s", self._data.get("settle_s", 5.0)), number, "settle_s")
        for note in entry.get("notes", ()):
            remark = SHORT_LIVED.search(str(note))
            if remark is not None:
                seconds = max(LEAST_S, float(remark[1]))
        return seconds, settle

    def _models(self, work: Mapping[str, Mapping[str, Any]]) -> Dict[str, ClusterModel]:
        if "lab" not in self._data or "hardware" not in self._data:
            return {}
        options = LabOptions.from_dict(self._mapping(self._data["lab"], "lab"))
        section = self._mapping(self._data["hardware"], "hardware")
        try:
            hardware = Hardware(**section)
        except MISREAD as error:
            raise InputError(self._place("hardware"), str(error), "capacity_iops, bandwidth_bytes_s, shards") from None
        version = parse_version(str(self._data["ceph"]), self._place("ceph")) if "ceph" in self._data else None
        defaults = {} if "groups" in self._data["lab"] else BEFORE_DRIVES
        return {
            scenario: lab_model(options, hardware, scenario, self._release, version, {**defaults, **own})
            for scenario, own in work.items()
        }

    def _find_release(self, release: Optional[Release]) -> Release:
        if "ceph" in self._data:
            return release_of(str(self._data["ceph"]), self._place("ceph"))
        if "release" in self._data:
            return release_named(str(self._data["release"]), self._place("release"))
        if release is None:
            raise InputError(self._name, "no release", "release or ceph (a version), or the description of a cluster")
        return release

    def _settings(self, data: Any, *keys: object) -> Settings:
        section = self._mapping(data, *keys)

        def place(*inner: object) -> str:
            return self._place(*keys, *inner)

        # what was measured is taken as it is, also where it is no good idea; a lab's own throttle is no trial
        values = {name: value for name, value in section.items() if not name.startswith("bluestore_throttle")}
        settings = check_settings(values, self._release, place, effective=False)
        return {name: value for name, value in settings.items() if name != PROFILE or value != "custom"}

    def _measure(self, value: Any, *keys: object) -> Measure:
        try:
            measure = Measure.from_list(value)
            if measure.mean < 0:
                raise ValueError(f"{measure.mean:g}")
        except MISREAD as error:
            form = "[mean, deviation, count], none of them negative"
            raise InputError(self._place(*keys), f"{value!r} ({error})"[:120], form) from None
        return measure

    def _number(self, value: Any, number: int, key: str) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 86400:
            raise InputError(self._place("windows", number, key), repr(value), "seconds, 0 to 86400")
        return float(value)

    def _mapping(self, data: Any, *keys: object) -> Mapping[str, Any]:
        if not isinstance(data, dict):
            raise InputError(self._place(*keys), f"{data!r}"[:60], "a mapping of keys to values")
        return data

    def _place(self, *keys: object) -> str:
        path = ".".join(str(key) for key in keys)
        return f"{self._name}: {path}" if path else self._name
