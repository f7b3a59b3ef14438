"""What a target's OSDs are, as a twin is told of them: class and kind of drive, one OSD for all, settings in force.

What a drive can do is a guess: Ceph knows only what mClock reckons with.
"""

from __future__ import annotations

import statistics
from collections import Counter
from functools import cached_property
from typing import Dict, List, Mapping, Optional, Sequence

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.ceph.ports import ConfigEntry
from ceph_tuner.core.ceph.target import Place, running
from ceph_tuner.core.changes.config_database import winner
from ceph_tuner.core.errors import CommandFailed, InputError, PermissionRefused
from ceph_tuner.core.knobs.catalogue import KNOBS, MCLOCK_NINE, PROFILE
from ceph_tuner.core.knobs.releases import Settings, parse_version
from ceph_tuner.core.knobs.settings import settings_in_force
from ceph_tuner.core.measure.osd_selection import spread
from ceph_tuner.core.profiles.in_force import hardware_of, kind_of, log_is_on_flash, metadata_of, profile_in_force
from ceph_tuner.core.wording import rounded
from ceph_tuner.describe.pools import PoolSeen
from ceph_tuner.twin.model import DEFERRED_BELOW_BYTES, LATENCY_S, SCRUB_BACKOFF_RATIO, Device, OsdModel

OSDS_ASKED = 8
"""OSDs that are asked for their options, evenly over their ids."""

SCRUB_BACKOFF = "osd_scrub_backoff_ratio"

DRIVE_IOPS = {"ssd": 1.15, "hdd": 0.48}
"""What a drive does, of the capacity that an OSD's bench finds on it, as the lab's known drives have it.

Flash: 1 075 against 935 IOPS, as each batch of writes costs BlueStore a commit. A hard disk whose cache is flushed: 213
a second with a full queue against 447, as the bench ends before its deferred writes have gone to their places. Without
a cache for writes a bench finds up to 640, which is more than Ceph believes (osd_mclock_iops_capacity_threshold_hdd).
"""
DB = Device(20_000.0, 500e6, latency_s=LATENCY_S["ssd"], read_latency_s=LATENCY_S["ssd"])
"""An OSD's part of a flash drive for RocksDB, which some OSDs share: a guess."""


class OsdsSeen:
    """The OSDs of a target that are of the class of most of them; `notes` grows by what is left out and guessed."""

    def __init__(self, cluster: Cluster, target: str, notes: List[str]) -> None:
        """Ask which there are. Raises InputError where none runs."""
        self._cluster, self._target, self._notes = cluster, target, notes
        self._places = {place.osd: place for place in cluster.config.places()}
        places = running(target, self._places.values())
        self.device_class = Counter(place.device_class for place in places).most_common(1)[0][0]
        self.running = [place.osd for place in places if place.device_class == self.device_class]
        self._tell_part(places)
        said = metadata_of(cluster.commander)
        kinds = {osd: kind_of(said.get(osd, {}), place.device_class) for osd, place in self._places.items()}
        self.kind = Counter(kinds[osd] for osd in self.running).most_common(1)[0][0]
        """Of most drives: `hdd` or `ssd`."""
        self._alike = [osd for osd in self.running if kinds[osd] == self.kind]
        on_flash = [osd for osd in self._alike if log_is_on_flash(said.get(osd, {}))]
        self._has_facts = True
        """Whether anything says which options the OSDs have."""
        self._db = DB if 2 * len(on_flash) > len(self._alike) else None
        """As most OSDs have it."""
        if len(self._alike) < len(self.running):
            notes.append(
                f"{len(self._alike)} of {len(self.running)} OSDs of the class {self.device_class} are on drives of "
                f"the kind {self.kind}: the others are taken to be like them"
            )

    @property
    def beside_others(self) -> bool:
        """Whether the cluster has OSDs of another class."""
        return any(place.device_class != self.device_class for place in self._places.values())

    @property
    def section(self) -> str:
        """What covers these OSDs in the configuration database; of a whole cluster, those of their class alone."""
        if self._target == "osd" and self.device_class and self.beside_others:
            return f"osd/class:{self.device_class}"
        return self._target

    def with_data(self, osds_in: Sequence[int]) -> List[Place]:
        """All of the class that are in, as the model counts them, whether the target covers them or not.

        Raises InputError where none is.
        """
        places = [self._places[osd] for osd in sorted(osds_in) if osd in self._places]
        of_class = [place for place in places if place.device_class == self.device_class]
        if not of_class:
            raise InputError(
                "--target",
                f"{self._target!r}, none of whose OSDs of the class {self.device_class} is in: they hold no data",
                "one with OSDs that are in (`ceph osd in ID`, or --target osd/class:CLASS for those of another class)",
            )
        return of_class

    def model(self) -> OsdModel:
        """The OSD that stands for all, by the options of some."""
        own, kind = self._options[0], self.kind
        hardware = hardware_of(own, self.device_class, f"osd.{self._sample_osds[0]}", kind)
        capacities = [hardware_of(each, self.device_class, kind=kind).capacity_iops for each in self._options]
        capacity = statistics.median(capacities)
        if max(capacities) > 2 * min(capacities):
            ends = f"{min(capacities):.0f} and {max(capacities):.0f} IOPS"
            self._notes.append(f"capacities lie between {ends}: the median is taken")
        usual = KNOBS[f"osd_mclock_max_capacity_iops_{kind}"].default(self._cluster.release)
        is_default = usual is not None and capacity == float(usual)
        unmeasured = (
            "which is Ceph's default and was never measured, "
            if self._has_facts
            else "which is Ceph's default: what was measured is not seen, "
        )
        drive = self._stated_drive
        if drive is None:
            drive = Device(
                rounded(DRIVE_IOPS[kind] * capacity), hardware.bandwidth_bytes_s, latency_s=LATENCY_S[kind],
                read_latency_s=LATENCY_S[kind],
            )  # fmt: skip
            self._notes.append(
                f"the drive is a guess: {DRIVE_IOPS[kind]} times mClock's capacity of {capacity:.0f} IOPS, "
                + (unmeasured if is_default else "")
                + "and the bandwidth that mClock reckons with, which Ceph never measures; "
                "`ceph-tuner twin fit` does better"
            )
        else:
            self._notes.append("the drive is no guess: what runs the cluster here states what it does")
        if self._db:
            self._notes.append("RocksDB is on another drive, on flash: what that does is a guess (osd.db)")
        usual_bytes = int(DEFERRED_BELOW_BYTES[kind])
        deferred = _by_kind(own, "bluestore_prefer_deferred_size", kind, usual_bytes)
        if deferred != usual_bytes:
            self._notes.append(
                f"writes below {deferred} bytes are deferred: the twin takes Ceph's own bound for {kind}"
            )
        return OsdModel(
            drive,
            capacity,
            hardware.bandwidth_bytes_s,
            hardware.shards,
            _by_kind(own, "osd_op_num_threads_per_shard", kind, 1),
            kind,
            throttle_bytes=float(own.get("bluestore_throttle_bytes", 64 << 20)),
            db=self._db,
        )  # fmt: skip

    @property
    def scrub_backoff_ratio(self) -> float:
        """Of the first that was asked."""
        return float(self._options[0].get(SCRUB_BACKOFF, SCRUB_BACKOFF_RATIO))

    def settings(self) -> Settings:
        """What is in force on the first that was asked."""
        by_osd = [_described_settings(each, self._cluster, self.device_class, self.kind) for each in self._options]
        if any(each != by_osd[0] for each in by_osd):
            self._notes.append(f"settings differ between OSDs: those of osd.{self._sample_osds[0]} are taken for all")
        return by_osd[0]

    def _tell_part(self, places: Sequence[Place]) -> None:
        """What of the target is not told of, and what is told of beside it."""
        others = {place.device_class for place in places} - {self.device_class}
        if others:
            names = ", ".join(sorted(name or "none" for name in others))
            self._notes.append(
                f"only OSDs of the class {self.device_class}: what is on others ({names}) is left out, and nothing is "
                "said of what settings do there; `--target osd/class:CLASS` is about the OSDs of one class"
            )
        of_class = sum(place.up and place.device_class == self.device_class for place in self._places.values())
        if len(self.running) < of_class:
            self._notes.append(
                f"{self._target} is {len(self.running)} of {of_class} OSDs of the class {self.device_class}: "
                "its settings are taken to be those of all of them"
            )

    @property
    def _stated_drive(self) -> Optional[Device]:
        run_here = self._cluster.run_here
        return run_here.drive(self._sample_osds[0]) if run_here is not None else None

    @cached_property
    def _sample_osds(self) -> Sequence[int]:
        return spread(self._alike, OSDS_ASKED)

    @cached_property
    def _options(self) -> List[Mapping[str, str]]:
        try:
            return [self._cluster.config.effective(osd) for osd in self._sample_osds]
        except (CommandFailed, PermissionRefused) as fault:
            entries = self._entries(fault)
            return [self._database_values(entries, self._places[osd]) for osd in self._sample_osds]

    def _entries(self, fault: Exception) -> List[ConfigEntry]:
        """The monitors' database, for want of the OSDs' options; none where that is not seen either."""
        try:
            entries = self._cluster.config.dump()
        except (CommandFailed, PermissionRefused) as no_database:
            self._has_facts = False
            cluster = self._cluster
            self._notes.append(
                "neither the OSDs' options nor the monitors' database is seen: settings in force, mClock's capacity, "
                f"shards and threads are assumed to be the defaults of {cluster.release.name} {cluster.version} for "
                f"{self.kind}; a file of `ceph-tuner gather` has them ({no_database})"
            )
            return []
        self._notes.append(
            "the OSDs' options are not seen: those of the monitors' database and the release's defaults are taken "
            f"for them, and nothing is known of their ceph.conf ({fault})"
        )
        return entries

    def _database_values(self, entries: Sequence[ConfigEntry], place: Place) -> Dict[str, str]:
        """What the monitors tell an OSD, and the defaults of what they say nothing of."""
        values = {}
        version = parse_version(self._cluster.version)
        for knob in KNOBS.values():
            decides, default = winner(entries, knob.name, place), knob.default(self._cluster.release, version)
            if decides is not None:
                values[knob.name] = decides.value
            elif default is not None:
                values[knob.name] = knob.format(default)
        backoff = winner(entries, SCRUB_BACKOFF, place)
        return values if backoff is None else {**values, SCRUB_BACKOFF: backoff.value}


def _by_kind(options: Mapping[str, str], name: str, kind: str, usual: int) -> int:
    """An option's value, or where that is 0 the one for the kind of drive; `usual` where an OSD says neither."""
    return int(options.get(name, 0) or 0) or int(options.get(f"{name}_{kind}", usual))


def failure_domains(osds: Sequence[Place], pools: Sequence[PoolSeen]) -> int:
    """As the largest pool's rule keeps copies apart; 0 where each OSD is one."""
    largest = max(pools, key=lambda pool: (pool.stored_bytes, pool.pgs))
    domain = largest.rule.domain or "host"
    places: Dict[Optional[str], List[Place]] = {}
    for place in osds:
        places.setdefault(place.locations.get(domain), []).append(place)
    return 0 if domain == "osd" or None in places or len(places) == len(osds) else len(places)


def _described_settings(options: Mapping[str, str], cluster: Cluster, device_class: str, kind: str) -> Settings:
    """What an OSD has and is not the release's default, in Ceph's own units; facts of the OSD are left out."""
    release = cluster.release
    profile = profile_in_force("here", options, release, cluster.version, device_class, kind).profile
    options_in_force = settings_in_force(options)
    settings: Settings = {PROFILE: options_in_force.get(PROFILE, "custom")}
    if settings[PROFILE] == "custom":
        settings.update({name: value for name, value in options_in_force.items() if name in MCLOCK_NINE})
    elif settings[PROFILE] == release.default_profile:
        del settings[PROFILE]
    others = {name: KNOBS[name] for name in profile.settings if name not in MCLOCK_NINE}
    live = [name for name, knob in others.items() if knob.work != "device" and knob.change == "live"]
    return {**settings, **{name: profile.settings[name] for name in live}}
