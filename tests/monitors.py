"""A small real implementation of the ports: the monitors' database, and OSDs that treat mClock's options as Ceph's do.

What it imitates was seen on 18.2.7 and 20.2.4 (docs/safe-writes.md):
- a section's mask decides who sees an entry, and the most precise wins;
- a scheduler takes its values over when the profile's entry comes, goes or changes, whether or not the profile does, or
  when one of the nine changes under `custom`;
- under a built-in profile a changed one of the nine makes the OSD remove that key from `osd` and from `osd.N`, and the
  scheduler keeps what it had;
- an OSD that starts learns what stands under its device class only after its scheduler has begun, and so what stands
  under its host, unless that is called as in the CRUSH map: `early`;
- a built-in profile's values are written down by shard 0, and a shard that is told of the profile before shard 0 reads
  what stood there before (one of the two shards here); when the stated bandwidth changes, every shard reads again;
- an OSD may see several commits at once (a monitor that lags behind): `batch`.
"""

from __future__ import annotations

import errno
import json
from collections import deque
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Callable, Collection, Deque, Dict, Iterable, Iterator, List, Optional, Tuple

from ceph_tuner.core.ceph.ports import ConfigEntry, OsdOptions, OsdSources
from ceph_tuner.core.ceph.target import Place, covered
from ceph_tuner.core.ceph.tell_each import outcome
from ceph_tuner.core.changes.config_database import Database
from ceph_tuner.core.changes.shard_rereading import BANDWIDTHS
from ceph_tuner.core.errors import CommandFailed, InputError, UnknownOption
from ceph_tuner.core.goals.stored_slo import SLO_KEY
from ceph_tuner.core.knobs.catalogue import KNOBS, MCLOCK_NINE, PROFILE
from ceph_tuner.core.knobs.releases import RELEASES, Release, format_version
from ceph_tuner.core.knobs.settings import format_settings

TENTACLE: Release = RELEASES["tentacle"]

Table = Dict[Tuple[str, str], str]


@cache
def stock(release: str) -> Dict[str, str]:
    """Ceph's own defaults."""
    values = {name: knob.default(RELEASES[release]) for name, knob in KNOBS.items() if knob.scope == "osd"}
    return {name: KNOBS[name].format(value) for name, value in values.items() if value is not None}


@dataclass
class FakeOsd:
    place: Place
    release: Release
    from_mon: Dict[str, str] = field(default_factory=dict)
    local: Dict[str, str] = field(default_factory=dict)
    """From its ceph.conf."""
    defaults: Dict[str, str] = field(default_factory=dict)
    shards: List[Dict[str, str]] = field(default_factory=list)
    """The nine values that each shard schedules by, whatever the OSD says its options are: shard 0, and one that is
    told of changes before it."""

    @property
    def scheduler(self) -> Dict[str, str]:
        """What the shards schedule by; where they differ, both."""
        one, early = self.shards
        return {name: one[name] if one[name] == early[name] else f"{one[name]}, {early[name]}" for name in one}

    def boot(self, table: Table, early: bool = True) -> List[Tuple[str, str]]:
        """Start; return the keys that this OSD asks the monitors to remove."""
        self.defaults = {name: "0.000000" if name[-3:] != "wgt" else "1" for name in MCLOCK_NINE}
        known = {key: value for key, value in table.items() if "class:" not in key[0] and (early or "/" not in key[0])}
        self.from_mon = self.seen(known)
        self._write_profile()
        self.shards = [self._read(), self._read()]
        asked = self.notice(table)
        # as after `ceph-tuner doctor --cure stale-shards`: a profile at a device class comes after the start
        self.shards[1] = dict(self.shards[0])
        return asked

    def seen(self, table: Table) -> Dict[str, str]:
        database = Database(ConfigEntry(*key, value) for key, value in sorted(table.items()))
        values = {name: database.value(name, self.place) for _, name in table}
        return {name: value for name, value in values.items() if value is not None}

    def notice(self, table: Table) -> List[Tuple[str, str]]:
        """Take the database's state over; return the keys that this OSD asks the monitors to remove."""
        before, self.from_mon = self.from_mon, self.seen(table)
        if any(before.get(name) != self.from_mon.get(name) for name in (PROFILE, *BANDWIDTHS)):
            early = self._read()
            if before.get(PROFILE) != self.from_mon.get(PROFILE):
                self._write_profile()
            self.shards = [self._read(), early]
        keys = [name for name in MCLOCK_NINE if before.get(name) != self.from_mon.get(name)]
        if not keys:
            return []
        if self.effective()[PROFILE] == "custom":
            self.shards = [self._read(), self._read()]
            return []
        return [(who, keys[0]) for who in ("osd", f"osd.{self.place.osd}")]

    def effective(self) -> Dict[str, str]:
        return {**stock(self.release.name), **self.defaults, **self.from_mon, **self.local}

    def _write_profile(self) -> None:
        profile = self.effective()[PROFILE]
        if profile != "custom":
            self.defaults.update(format_settings(self.release.profiles[profile], self.release))

    def _read(self) -> Dict[str, str]:
        return {name: self.effective()[name] for name in MCLOCK_NINE}


class MemoryStore:
    """`ports.Store`."""

    def __init__(
        self, before_write: Callable[[], None] = lambda: None, after_write: Callable[[], None] = lambda: None
    ) -> None:
        self.values: Dict[str, str] = {}
        self.before_write, self.after_write = before_write, after_write

    def get(self, key: str) -> Optional[str]:
        return self.values.get(key)

    def set(self, key: str, value: str) -> None:
        self.before_write()
        if len(value.encode()) > 65536:
            raise CommandFailed(f"config-key set {key}", -errno.EFBIG, "entry size limited to 65536 bytes")
        self.values[key] = value
        self.after_write()

    def remove(self, key: str) -> None:
        self.before_write()
        self.values.pop(key, None)
        self.after_write()

    def keys(self, prefix: str) -> List[str]:
        return sorted(key for key in self.values if key.startswith(prefix))


class Monitors:
    """`applier.Configuration`, and a `Store` beside it."""

    def __init__(self, osds: int = 3, release: Release = TENTACLE, table: Optional[Table] = None) -> None:
        self.table: Table = dict(table or {})
        self.store = MemoryStore(lambda: self.before_write(), lambda: self.after_write())
        self.early = True
        """Whether hosts are called as in the CRUSH map: an OSD that starts then learns masked entries in time."""
        self.batch = 1
        """After so many commits an OSD sees them, all at once; asking it delivers what is there."""
        self.refuse: Callable[[str, str, Optional[str]], bool] = lambda who, name, value: False
        self.before_write: Callable[[], None] = lambda: None
        self.after_write: Callable[[], None] = lambda: None
        self.writes: List[str] = []
        self.retired: Collection[str] = ()
        """Options that the release does not have: entries of them are kept, and no OSD shows them."""
        self.running = [format_version(release.newest)]
        """Versions that the OSDs run."""
        racks = ("r0", "r1")
        self.osd = [
            FakeOsd(
                Place(
                    number, "ssd" if number % 2 == 0 else "hdd", {"host": f"h{number}", "rack": racks[number // 2 % 2]}
                ),
                release,
            )
            for number in range(osds)
        ]
        self._commits: Deque[Table] = deque()
        for osd in self.osd:
            osd.boot(self.table)

    def start(self, osd: int) -> None:
        """Let an OSD start, with the database as it is now."""
        asked = self.osd[osd].boot(self.table, self.early)
        for who, name in asked:
            self._commit(who, name, None, ours=False)

    # the configuration database

    def dump(self) -> List[ConfigEntry]:
        return [ConfigEntry(*key, value) for key, value in sorted(self.table.items())]

    def set(self, who: str, name: str, value: str) -> None:
        self.before_write()
        if name in self.retired:
            raise UnknownOption("config set", -errno.EINVAL, f"unrecognized config option '{name}'")
        try:
            text = KNOBS[name].format(KNOBS[name].read(value))
        except InputError as refusal:
            raise CommandFailed("config set", -errno.EINVAL, str(refusal)) from None
        self._commit(who, name, text)
        self.after_write()

    def set_unknown(self, who: str, name: str, value: str) -> None:
        self.before_write()
        self._commit(who, name, value)
        self.after_write()

    def remove(self, who: str, name: str) -> None:
        self.before_write()
        self._commit(who, name, None)
        self.after_write()

    def places(self) -> List[Place]:
        return [osd.place for osd in self.osd]

    def versions(self) -> List[str]:
        return self.running

    def osds(self, who: str) -> List[int]:
        return covered(who, self.places())

    def effective(self, osd: int) -> Dict[str, str]:
        self.deliver()
        return self.osd[osd].effective()

    def sources(self, osd: int) -> Dict[str, Dict[str, str]]:
        self.deliver()
        found = {name: {"mon": value} for name, value in self.osd[osd].from_mon.items() if name not in self.retired}
        for name, value in self.osd[osd].local.items():
            found.setdefault(name, {})["file"] = value
        return found

    def effective_on(self, osds: Iterable[int], names: Collection[str] = ()) -> Iterator[OsdOptions]:
        for osd in osds:
            yield osd, outcome(partial(self.effective, osd))

    def sources_on(self, osds: Iterable[int]) -> Iterator[OsdSources]:
        for osd in osds:
            yield osd, outcome(partial(self.sources, osd))

    # what tests look at

    def schedulers(self) -> List[Dict[str, str]]:
        self.deliver()
        return [dict(osd.scheduler) for osd in self.osd]

    def restart_osds(self) -> None:
        self.deliver()
        for osd in self.osd:
            self.start(osd.place.osd)

    def someone_sets(self, who: str, name: str, value: Optional[str]) -> None:
        """Another operator's write: no failure is injected."""
        self._commit(who, name, value, ours=False)

    def deliver(self) -> None:
        while self._commits:
            last = self._commits[-1]
            self._commits.clear()
            asked = {key for osd in self.osd if osd.place.up for key in osd.notice(last)}
            for who, name in sorted(asked):
                self._commit(who, name, None, ours=False)

    def _commit(self, who: str, name: str, value: Optional[str], ours: bool = True) -> None:
        if ours and self.refuse(who, name, value):
            raise CommandFailed(f"config set {who} {name}", -errno.EPERM, "the monitor refuses")
        if ours:
            self.writes.append(f"{who} {name} {value}")
        if value is None:
            self.table.pop((who, name), None)
        else:
            self.table[who, name] = value
        self._commits.append(dict(self.table))
        if len(self._commits) >= self.batch:
            self.deliver()


def keep_slo(monitors: Monitors, *objectives: str) -> None:
    """Store these as what the cluster wants."""
    monitors.store.set(SLO_KEY, json.dumps({"name": "night", "objectives": list(objectives)}))


class ManualClock:
    """Time goes on only when somebody sleeps, or when a test says so."""

    def __init__(self, start: float = 1_000_000.0) -> None:
        self.time = start
        self.jumped = 0.0
        """What somebody set it forward by."""

    def now(self) -> float:
        return self.time + self.jumped

    def monotonic(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds
