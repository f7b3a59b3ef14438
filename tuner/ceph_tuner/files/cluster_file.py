"""Descriptions of clusters as YAML files (docs/describing.md): what the twin is told, in the words of `ceph df`.

schema: 1
release: tentacle                 # or a version such as 18.2.7
osds: 4
osd:
  drive: {iops: 80 kIOPS, bandwidth: 1 GB/s}
pools:
  - {name: rbd, pgs: 64, size: 3}
clients:
  - {pool: rbd, rate: 5 kIOPS, read_share: 0.7, block: 4 KiB}
background:
  recovery:
    - {pool: rbd, objects: 200 k, object_size: 4 MiB}
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Union

from ceph_tuner.core.ceph.target import Target
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.catalogue import KNOBS, PROFILE
from ceph_tuner.core.knobs.releases import (
    MCLOCK_NINE,
    TENTACLE,
    Release,
    Settings,
    Value,
    Version,
    level_of,
    release_of,
)
from ceph_tuner.core.knobs.settings import check_settings
from ceph_tuner.files import schema, yaml_document
from ceph_tuner.files.cluster_schema import CLASSES, CLUSTER
from ceph_tuner.files.sound_values import Keys, SoundValues
from ceph_tuner.twin.described_cluster import SIMULATE_ALL, SIMULATED, DescribedCluster
from ceph_tuner.twin.model import (
    LATENCY_S,
    MIB,
    SCRUB_BACKOFF_RATIO,
    UPMAP_MAX_DEVIATION,
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

SCHEMA_VERSION = 1


def read(path: Union[str, Path]) -> DescribedCluster:
    """Read and check a description. Raises InputError with the file, the line and the key."""
    return _from(yaml_document.load(path), Path(path))


def from_text(text: str, name: str = "cluster.yaml") -> DescribedCluster:
    """Read a description from the text of the named file."""
    return _from(yaml_document.parse(text, name), Path(name))


def faults(path: Union[str, Path]) -> List[InputError]:
    """Give every fault of a description, in the order of its lines. Raises InputError for a file that is no YAML."""
    document = yaml_document.load(path)
    reader = _ClusterReader(document)
    reader.read(Path(path))
    return reader.faults


def _from(document: yaml_document.YamlDocument, path: Path) -> DescribedCluster:
    reader = _ClusterReader(document)
    description = reader.read(path)
    if description is None:
        raise reader.faults[0]
    return description


def _sleeps(section: Mapping[str, object]) -> Dict[str, object]:
    """Those of the settings that count under wpq alone."""
    return {name: value for name, value in section.items() if name in KNOBS and KNOBS[name].work == "sleeps"}


def _settings(section: Mapping[str, object], release: Release, place: Callable[..., str]) -> Settings:
    settings = check_settings(section, release, lambda *keys: place("settings", *keys))
    profile = settings.get(PROFILE)
    if profile == "custom" and MCLOCK_NINE[0] not in settings:
        raise InputError(place("settings", PROFILE), "custom alone", "the nine mClock values beside it")
    for name in settings:
        if KNOBS[name].scope != "osd" or KNOBS[name].change != "live":
            raise InputError(
                place("settings", name), "no knob that is changed live", "it left out, or given under `osd`"
            )
    return settings


class _ClusterReader:
    """Reads one document's parts, and goes on behind a fault; a part with one is None."""

    def __init__(self, document: yaml_document.YamlDocument) -> None:
        self._values = SoundValues(document, schema.faults(document, CLUSTER, SCHEMA_VERSION))
        self._release, self._version = self._read_release()

    @property
    def faults(self) -> List[InputError]:
        """By their lines."""
        return self._values.in_order()

    def read(self, path: Path) -> Optional[DescribedCluster]:
        """Give what the file holds; None where there is a fault."""
        data = self._values.data
        if not self._values.readable:
            return None
        model, settings, stored_bytes = self._model(), self._settings(), self._stored_bytes()
        target, sleeps = self._target(), self._sleeps()
        if model is None or self._values.has_faults:
            return None
        return DescribedCluster(
            data.get("name", path.stem),
            model,
            settings,
            data.get("description", "").strip(),
            path.parent / data["calibration"] if "calibration" in data else None,
            stored_bytes,
            notes=tuple(data.get("notes", ())),
            sleeps=sleeps,
            target=target,
            unlikely=tuple(self._values.bounds.unlikely),
        )

    def _read_release(self) -> Tuple[Release, Optional[Version]]:
        if "release" not in self._values.data or not self._values.is_sound(("release",)):
            return TENTACLE, None
        # 19.2 is a number to YAML
        name, place = str(self._values.data["release"]), self._values.place("release")
        try:
            return release_of(name, place), level_of(name, place)
        except InputError as error:
            self._values.fault(("release",), error)
            return TENTACLE, None

    def _target(self) -> str:
        target = self._values.data.get("target", "osd")
        if self._values.is_sound(("target",)):
            try:
                return str(Target.parse(target, self._values.place("target")))
            except InputError as error:
                self._values.fault(("target",), error)
        return "osd"

    def _settings(self) -> Settings:
        section = self._values.data.get("settings", {})
        if not self._values.is_sound(("settings",)) or not self._values.is_sound(("release",)):
            return {}
        section = {name: value for name, value in section.items() if name not in _sleeps(section)}
        try:
            return _settings(section, self._release, self._values.place)
        except InputError as error:
            alone = list(filter(None, (self._fault_of_one(name, value) for name, value in section.items())))
            for name, fault in alone or [("", error)]:
                self._values.fault(("settings", name), fault)
            return {}

    def _sleeps(self) -> Settings:
        if not self._values.is_sound(("settings",)) or not self._values.is_sound(("release",)):
            return {}
        sleeps = {
            name: self._sleep(name, value) for name, value in _sleeps(self._values.data.get("settings", {})).items()
        }
        return {name: value for name, value in sleeps.items() if value is not None}

    def _sleep(self, name: str, value: object) -> Optional[Value]:
        try:
            return KNOBS[name].check(value, self._release, self._values.place("settings", name))
        except InputError as error:
            self._values.fault(("settings", name), error)
            return None

    def _fault_of_one(self, name: str, value: object) -> Optional[Tuple[str, InputError]]:
        """Give what is wrong with a setting whatever stands beside it."""
        is_custom = name == PROFILE and value == "custom"
        nine = {each: KNOBS[each].default(self._release) for each in MCLOCK_NINE} if is_custom else {}
        try:
            _settings({**nine, name: value}, self._release, self._values.place)
        except InputError as error:
            return name, error
        return None

    def _stored_bytes(self) -> Dict[str, float]:
        """Bytes that clients stored in each pool, where the file says."""
        return {
            pool["name"]: self._values.amount(pool, keys, "stored", "size", 0.0)
            for keys, pool in self._values.entries("pools")
            if "stored" in pool
        }

    def _model(self) -> Optional[ClusterModel]:
        osds = self._values.number(self._values.data, (), "osds", 100_000)
        read_pools = [self._pool(keys, entry) for keys, entry in self._values.entries("pools")]
        if self._values.data.get("pools") == []:
            self._values.fault(("pools",), InputError(self._values.place("pools"), "no pool", "at least one"))
        default = SIMULATED if osds > SIMULATE_ALL else osds
        osds_simulated = min(osds, self._values.number(self._values.data, (), "simulate_osds", default))
        hosts = self._values.number(self._values.data, (), "hosts", 0)
        processors = self._values.number(self._values.data, (), "processors", 0)
        max_deviation = self._values.number(self._values.data, (), "upmap_max_deviation", UPMAP_MAX_DEVIATION)
        if hosts > osds:
            self._values.bounds.unlikely.append(f"{self._values.place('hosts')}: {hosts} hosts for {osds} OSDs")
        # a pool with a fault is one all the same to what refers to it
        names = [entry["name"] for entry in self._values.data.get("pools") or [] if _has_name(entry)]
        read_clients = [self._client(keys, entry, names) for keys, entry in self._values.entries("clients")]
        osd = self._osd()
        recovery = [
            RecoveryWork(
                self._work_pool(entry, keys, names),
                *self._objects(entry, keys),
                kind == "recovery",
                self._onto(entry, keys, osds, osds_simulated),
                rounds=self._values.number(entry, keys, "rounds", 1),
                times=self._times(entry, keys),
                among=self._count(entry, keys, "among") if "among" in entry else 0,
            )
            for kind in ("recovery", "backfill")
            for keys, entry in self._values.entries("background", kind)
        ]
        scrub = tuple(
            ScrubWork(self._work_pool(entry, keys, names), *self._objects(entry, keys), deep=entry.get("deep", True))
            for keys, entry in self._values.entries("background", "scrub")
        )
        snaptrim = tuple(
            SnaptrimWork(
                self._work_pool(entry, keys, names),
                *self._objects(entry, keys, "clones"),
                times=self._times(entry, keys),
            )
            for keys, entry in self._values.entries("background", "snaptrim")
        )
        deletion = tuple(
            DeleteWork(self._work_pool(entry, keys, names), self._count(entry, keys, "objects"))
            for keys, entry in self._values.entries("background", "deletion")
        )
        network_s = self._values.amount(self._values.data, (), "network", "time", 50e-6, zero=True)
        pools = tuple(pool for pool in read_pools if pool is not None)
        clients = tuple(client for client in read_clients if client is not None)
        if osd is None or self._values.has_faults:
            return None
        return self._values.part(
            (),
            lambda: ClusterModel(
                osds=osds,
                osd=osd,
                pools=pools,
                clients=clients,
                recovery=tuple(recovery),
                scrub=scrub,
                snaptrim=snaptrim,
                deletion=deletion,
                release=self._release,
                version=self._version,
                network_s=network_s,
                hosts=hosts,
                processors=processors,
                scrub_backoff_ratio=self._values.data.get("scrub_backoff", SCRUB_BACKOFF_RATIO),
                upmap_max_deviation=max_deviation,
                simulated_osds=0 if osds_simulated == osds else osds_simulated,
            ),
        )

    def _osd(self) -> Optional[OsdModel]:
        keys: Keys = ("osd",)
        data = self._values.data.get("osd")
        # of an OSD with faults in its keys, the amounts that are sound are held against their bounds all the same
        if not isinstance(data, dict) or not isinstance(data.get("drive"), dict):
            return None
        device_class = data.get("device_class")
        if device_class not in CLASSES:
            # none, or one that the schema has told as a fault
            device_class = "ssd"
        fields: Dict[str, Any] = {
            "capacity_iops": self._values.amount(
                data, keys, "capacity_iops", "rate", self._default("capacity_iops", device_class)
            ),
            "bandwidth_bytes_s": self._values.amount(
                data, keys, "bandwidth", "bandwidth", self._default("sequential_bandwidth", device_class)
            ),
            "shards": self._values.number(data, keys, "shards", self._whole(f"osd_op_num_shards_{device_class}")),
            "threads_per_shard": self._values.number(
                data, keys, "threads_per_shard", self._whole(f"osd_op_num_threads_per_shard_{device_class}")
            ),
            "throttle_bytes": self._values.amount(data, keys, "throttle", "size", 64.0 * 2**20, zero=True),
        }
        for name, field_name in (
            ("write_cpu", "write_cpu_s"),
            ("read_cpu", "read_cpu_s"),
            ("message_cpu", "message_cpu_s"),
            ("commit_cpu", "commit_cpu_s"),
            ("commit_latency", "kv_latency_s"),
        ):
            if name in data:
                fields[field_name] = self._values.amount(data, keys, name, "time", 0.0, zero=True)
        if "mib_cpu" in data:
            fields["moved_cpu_s_per_byte"] = self._values.amount(data, keys, "mib_cpu", "time", 0.0, zero=True) / MIB
        drive = self._drive(("osd", "drive"), data["drive"], LATENCY_S[device_class])
        if isinstance(data.get("db"), dict):
            fields["db"] = self._drive(("osd", "db"), data["db"], LATENCY_S["ssd"])
        if drive is None:
            return None
        return self._values.part(keys, lambda: OsdModel(drive, device_class=device_class, **fields))

    def _drive(self, keys: Keys, data: Mapping[str, Any], usual_s: float) -> Optional[Device]:
        latency = self._values.amount(data, keys, "latency", "time", usual_s, zero=True)
        fields: Dict[str, Any] = {
            "iops": self._values.amount(data, keys, "iops", "rate", 0.0),
            "bandwidth_bytes_s": self._values.amount(data, keys, "bandwidth", "bandwidth", 0.0),
            "latency_s": latency,
            "read_latency_s": self._values.amount(data, keys, "read_latency", "time", latency, zero=True),
            "slice_s": self._values.amount(data, keys, "slice", "time", 0.0, zero=True),
            "request_bytes": round(self._values.amount(data, keys, "request", "size", 256.0 * 2**10)),
        }
        if "read_iops" in data:
            fields["read_iops"] = self._values.amount(data, keys, "read_iops", "rate", 0.0)
        if "read_bandwidth" in data:
            fields["read_bandwidth_bytes_s"] = self._values.amount(data, keys, "read_bandwidth", "bandwidth", 0.0)
        fields.update({name: data[name] for name in ("spread", "shared") if name in data})
        return self._values.part(keys, lambda: Device(**fields))

    def _pool(self, keys: Keys, data: Mapping[str, Any]) -> Optional[Pool]:
        code = data.get("erasure_code")
        if code is not None and "size" in data:
            both = InputError(self._values.place(*keys, "size"), "both size and erasure_code", "one of them")
            self._values.fault((*keys, "size"), both)
        pgs, k = self._values.number(data, keys, "pgs", 0), 0
        if code is None:
            size = self._values.number(data, keys, "size", 3)
        else:
            k = self._values.number(code, (*keys, "erasure_code"), "k", 0)
            size = k + self._values.number(code, (*keys, "erasure_code"), "m", 0)
        return self._values.part(keys, lambda: Pool(data["name"], pgs, size, k, _acting(data.get("acting", ""))))

    def _client(self, keys: Keys, data: Mapping[str, Any], pools: List[str]) -> Optional[ClientStream]:
        rate = self._values.amount(data, keys, "rate", "rate", 0.0) if "rate" in data else None
        if rate is None and "depth" not in data:
            expected = "rate (operations a second), depth, or both"
            self._values.fault(keys, InputError(self._values.place(*keys), "neither rate nor depth", expected))
        values = (
            self._work_pool(data, keys, pools),
            rate,
            self._values.number(data, keys, "depth", 1024),
            data.get("read_share", 0.0),
            round(self._values.amount(data, keys, "block", "size", 4096.0)),
            self._values.amount(data, keys, "latency", "time", 0.0, zero=True),
        )
        cpu_s = self._values.amount(data, keys, "cpu", "time", 0.0, zero=True)
        return self._values.part(
            keys,
            lambda: ClientStream(
                *values,
                drains=data.get("drains", False),
                partial_stripe=not data.get("full_stripes", False),
                cpu_s=cpu_s,
            ),
        )

    def _onto(self, entry: Mapping[str, Any], keys: Keys, osds: int, osds_simulated: int) -> Optional[int]:
        if "onto" not in entry:
            return None
        if not 0 <= entry["onto"] < osds:
            error = InputError(
                self._values.place(*keys, "onto"), f"OSD {entry['onto']}", f"one of the {osds} from 0 on"
            )
            self._values.fault((*keys, "onto"), error)
        # all are alike: one of those that are simulated stands for it
        return int(entry["onto"]) % osds_simulated

    def _work_pool(self, data: Mapping[str, Any], keys: Keys, pools: List[str]) -> str:
        if data["pool"] not in pools:
            expected = f"one of the pools {', '.join(pools)}"
            self._values.fault(
                (*keys, "pool"), InputError(self._values.place(*keys, "pool"), repr(data["pool"]), expected)
            )
        return str(data["pool"])

    def _objects(self, data: Mapping[str, Any], keys: Keys, name: str = "objects") -> Tuple[int, int]:
        size = self._values.amount(data, keys, "object_size", "size", 4.0 * 2**20)
        return self._count(data, keys, name), max(1, round(size))

    def _count(self, data: Mapping[str, Any], keys: Keys, name: str) -> int:
        return round(self._values.amount(data, keys, name, "count", 0.0))

    def _times(self, data: Mapping[str, Any], keys: Keys) -> float:
        return self._values.amount(data, keys, "times", "count", 1.0)

    def _default(self, what: str, device_class: str) -> float:
        value = KNOBS[f"osd_mclock_max_{what}_{device_class}"].default(self._release)
        # releases without this option cost an operation by time
        return 1200.0 * 2**20 if value is None else float(value)

    def _whole(self, knob: str) -> int:
        return round(float(KNOBS[knob].default(self._release) or 1))


def _acting(text: str) -> Tuple[Tuple[int, ...], ...]:
    """Each PG's OSDs, as Ceph writes them: `0,2,1 2,1,0`. Raises ValueError."""
    try:
        return tuple(tuple(int(osd) for osd in osds.split(",")) for osds in text.split())
    except ValueError:
        raise ValueError("acting must name each PG's OSDs by their numbers, such as 0,2,1 2,1,0") from None


def _has_name(entry: object) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("name"), str)
