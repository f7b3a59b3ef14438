"""What one OSD of the twin makes of the configuration database: what it shows, and what its scheduler really uses.

The two differ, as on Ceph (docs/ceph-behaviour.md): the scheduler takes the nine values over when the profile's entry
comes, goes or changes, or when one of them changes under `custom`. When one changes under a built-in profile the OSD
asks the monitors to remove that key from `osd` and from `osd.N`, and the scheduler keeps what it had.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, List, Mapping, Optional, Set, Tuple

from ceph_tuner.core.ceph.target import Place
from ceph_tuner.core.changes.shard_rereading import BANDWIDTHS
from ceph_tuner.core.knobs.catalogue import KNOBS, MCLOCK_NINE, OVERRIDE, PROFILE
from ceph_tuner.core.knobs.cost import Hardware
from ceph_tuner.core.knobs.releases import Release, Settings, Version
from ceph_tuner.core.knobs.settings import format_settings
from ceph_tuner.core.profiles.in_force import hardware_of
from ceph_tuner.core.profiles.translation import from_release_units, to_release_units
from twin_cluster.options import NEEDS_OVERRIDE, QUEUE, stock, typed

Key = Tuple[str, str]
"""Section with its mask, and option."""

_AT_WORK = ("scrub", "snaptrim", "deletion", "recovery")
"""Kinds of live knobs, beside the nine, that the simulation works by. A drive and its capacity are the model's own."""


@dataclass
class TwinOsd:
    """One OSD's options. `from_mon` is what the database decides for it, option by option."""

    place: Place
    release: Release
    version: Version
    born: int = 1
    from_mon: Dict[str, str] = field(default_factory=dict)
    scheduler: Dict[str, str] = field(default_factory=dict)
    """The nine values that it schedules by, whatever it says its options are."""
    _defaults: Dict[str, str] = field(default_factory=dict)
    _booted: Dict[str, str] = field(default_factory=dict)
    """Options that are read at the start only."""

    def boot(self, from_mon: Mapping[str, str]) -> None:
        """Start, with nothing remembered: the nine are 0/1/0 where neither a profile nor the database sets them."""
        self._defaults = dict(stock(self.release, self.version))
        self.from_mon = dict(from_mon)
        at_start = [name for name in self._defaults if KNOBS[name].change == "restart"]
        self._booted = {name: self.from_mon.get(name, self._defaults[name]) for name in at_start}
        self._take_profile()

    def notice(self, changed: Mapping[str, Optional[str]]) -> List[Key]:
        """Take changes of the database over, all at once; return the keys that the OSD asks the monitors to remove."""
        touched = {name for name, value in changed.items() if self.from_mon.get(name) != value}
        before = self.effective()
        for name, value in changed.items():
            if value is None:
                self.from_mon.pop(name, None)
            else:
                self.from_mon[name] = value
        after = self.effective()
        if not self.mclock:
            return []
        dropped = self._limits_dropped([name for name in changed if before.get(name) != after.get(name)], after)
        if PROFILE in touched:
            self._take_profile()
        elif touched.intersection(BANDWIDTHS):
            self._take_values()
        moved = [name for name in MCLOCK_NINE if name in touched]
        if moved and after[PROFILE] == "custom":
            self._take_values()
        elif moved:
            # one key at a time, as Ceph does
            dropped.append(moved[0])
        return [(who, name) for name in dropped for who in ("osd", f"osd.{self.place.osd}")]

    @property
    def mclock(self) -> bool:
        """Whether the OSD schedules by mClock."""
        return self._booted[QUEUE] == "mclock_scheduler"

    def effective(self) -> Dict[str, str]:
        """What `config show` says."""
        live = {name: value for name, value in self.from_mon.items() if name in self._defaults}
        return {**self._defaults, **live, **self._booted, **self._forced()}

    def shown(self) -> Dict[str, str]:
        """The whole answer to `config show`."""
        return {"name": f"osd.{self.place.osd}", "cluster": "ceph", **self.effective()}

    def differences(self) -> Dict[str, Dict[str, Any]]:
        """Options that are not at their default, by source, as `config diff` shows them: typed values."""
        final, own = self.effective(), stock(self.release, self.version)
        forced = self._forced()
        levels_by_name: Dict[str, Dict[str, Any]] = {}
        for name, default in own.items():
            levels = {}
            if name in self.from_mon and self.from_mon[name] == self._booted.get(name, self.from_mon[name]):
                levels["mon"] = self.from_mon[name]
            if name in forced:
                levels["override"] = forced[name]
            if levels:
                texts = {"default": self._defaults.get(name, default), **levels, "final": final[name]}
                levels_by_name[name] = {level: typed(KNOBS[name], text, self.release) for level, text in texts.items()}
        return levels_by_name

    def hardware(self) -> Hardware:
        """The OSD as mClock reckons with it."""
        return hardware_of(self.effective(), self.place.device_class, f"osd.{self.place.osd}")

    def in_force(self) -> Settings:
        """What the OSD really works by: the scheduler's nine values as fractions, and its other live knobs."""
        shown, settings = self.effective(), {}
        for name in shown:
            entry = KNOBS[name]
            if entry.work in _AT_WORK and entry.change == "live" and entry.effective(self.release, self.version).works:
                settings[name] = typed(entry, self._limit(name, shown), self.release)
        nine: Settings = {name: typed(KNOBS[name], self.scheduler[name], self.release) for name in MCLOCK_NINE}
        return {**from_release_units(nine, self.release, self.hardware()), **settings}

    def _limit(self, name: str, shown: Mapping[str, str]) -> str:
        """Recovery's limits count only with the override; a mask's value stays in the database without it."""
        return self._defaults[name] if name in NEEDS_OVERRIDE and shown.get(OVERRIDE) == "false" else shown[name]

    def _limits_dropped(self, changed: Iterable[str], after: Mapping[str, str]) -> List[str]:
        if OVERRIDE not in after or after[OVERRIDE] == "true":
            return []
        return [name for name in changed if name in NEEDS_OVERRIDE]

    def _forced(self) -> Dict[str, str]:
        """Every sleep is 0 under mClock."""
        if not self.mclock:
            return {}
        sleeps: Set[str] = {name for name in self._defaults if KNOBS[name].work == "sleeps"}
        return {name: KNOBS[name].format(0.0) for name in sleeps}

    def _take_profile(self) -> None:
        profile = self.effective()[PROFILE]
        if profile != "custom":
            settings = to_release_units(self.release.profiles[profile], self.release, self.hardware())
            self._defaults.update(format_settings(settings, self.release))
        self._take_values()

    def _take_values(self) -> None:
        shown = self.effective()
        self.scheduler = {name: shown[name] for name in MCLOCK_NINE}
