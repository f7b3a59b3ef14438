"""The twin's maps: OSDs and where they are, pools, PGs, and what `status` and `health` make of them."""

from __future__ import annotations

import errno
import json
import uuid
from collections import Counter
from dataclasses import replace
from typing import Any, Callable, Dict, List, Mapping, Sequence, Set, Tuple

from ceph_tuner.core.ceph.target import Place
from ceph_tuner.core.knobs.catalogue import KNOBS
from ceph_tuner.core.knobs.releases import Release, Value, Version
from ceph_tuner.twin.model import ClusterModel
from ceph_tuner.twin.simulation import Simulation
from twin_cluster.monitors import refusal
from twin_cluster.options import QUEUE, kept, known, stock
from twin_cluster.osd import Key, TwinOsd
from twin_cluster.pgs import PlacementGroups, TwinPool

FSID = str(uuid.uuid5(uuid.NAMESPACE_DNS, "twin.ceph-tuner"))

SLOW_S = 30.0
"""osd_op_complaint_time."""

_ROOT = "default"
_SCRUB_FLAGS = ("noscrub", "nodeep-scrub")


def places_of(model: ClusterModel) -> List[Place]:
    """Where the OSDs are: OSD o on host o % hosts, as the simulation places PGs."""
    hosts = model.hosts or model.osds
    return [Place(osd, model.osd.device_class, {"host": f"h{osd % hosts}", "root": _ROOT}) for osd in range(model.osds)]


def facts_of(model: ClusterModel, release: Release, version: Version) -> Dict[Key, str]:
    """What the model says of the hardware, in the database where it differs from Ceph's defaults.

    The capacity stands at each OSD, where the bench at its first start puts it.
    """
    media = "hdd" if model.osd.device_class == "hdd" else "ssd"
    own, shared = (
        {f"osd_mclock_max_capacity_iops_{media}": str(model.osd.capacity_iops)},
        {
            f"osd_mclock_max_sequential_bandwidth_{media}": str(int(model.osd.bandwidth_bytes_s)),
            f"osd_op_num_shards_{media}": str(model.osd.shards),
            f"osd_op_num_threads_per_shard_{media}": str(model.osd.threads_per_shard),
            "bluestore_throttle_bytes": str(int(model.osd.throttle_bytes)),
            QUEUE: model.scheduler,
        },
    )

    def differing(texts: Mapping[str, str]) -> Dict[str, str]:
        usual, values = stock(release, version), {}
        for name, text in texts.items():
            if known(name, release, version) is not None:
                value = kept(KNOBS[name], text, release)
                if value != usual[name]:
                    values[name] = value
        return values

    facts = {("osd", name): text for name, text in differing(shared).items()}
    for osd in range(model.osds):
        facts.update({(f"osd.{osd}", name): text for name, text in differing(own).items()})
    return facts


class TwinMap:
    """Commands about the cluster's state."""

    def __init__(self, osds: Sequence[TwinOsd], version: str, name: str, now: Callable[[], float]) -> None:
        self._osds, self._version, self._name, self._now = osds, version, name, now
        self.pgs = PlacementGroups()
        self.requested_scrubs: List[Tuple[float, str]] = []
        """When which PG was asked for (`pg deep-scrub`)."""
        self._made: List[TwinPool] = []
        self._flags: Set[str] = set()
        self._of_pools: Dict[str, Dict[str, Any]] = {}
        """What was set of the twin's own pools: they are made anew with each simulation."""
        self._simulation: Simulation
        self._answered: Dict[int, Tuple[float, float]] = {}
        self._stuck: Dict[int, int] = {}

    @property
    def commands(self) -> Dict[str, Callable[[Mapping[str, str], str], str]]:
        """What the monitors and the mgr answer here, by prefix."""
        return {
            "status": self._answer(self.status),
            "health": self._answer(self.health),
            "versions": self._answer(self.versions),
            "osd dump": self._answer(self.osd_dump),
            "osd tree": self._answer(self.osd_tree),
            "osd crush dump": self._answer(self.crush),
            "osd stat": self._answer(self.osd_stat),
            "osd ls": self._answer(lambda: [osd.place.osd for osd in self._osds]),
            "balancer status": self._answer(self.balancer_status),
            "pg ls": self._pg_ls,
            "pg deep-scrub": self._deep_scrub,
            "osd set": self._set_flag,
            "osd unset": self._unset_flag,
            "osd erasure-code-profile get": self._code_get,
            "osd pool ls": self._pool_ls,
            "osd pool create": self._pool_create,
            "osd pool get": self._pool_get,
            "osd pool set": self._pool_set,
            "osd pool rm": self._pool_rm,
            "osd pool delete": self._pool_rm,
        }

    def begin(self, simulation: Simulation) -> None:
        """A simulation takes over."""
        self._simulation = simulation
        self._answered.clear()
        self._stuck.clear()
        self._begin_pgs(self._made)

    def follow(self) -> None:
        """Look at what goes on; called once a second of the simulation."""
        simulation, now = self._simulation, self._now()
        counters = simulation.counters()
        self.pgs.follow(simulation, counters, now)
        for osd in range(simulation.osds):
            answers, waiting = float(counters.read_ops[osd] + counters.write_ops[osd]), int(counters.waiting[osd][0])
            before, since = self._answered.get(osd, (answers, now))
            if answers > before or not waiting:
                since = now
            self._answered[osd] = answers, since
            # clients that wait, and nobody was served for so long: these are slow, whatever else is
            self._stuck[osd] = waiting if now - since >= SLOW_S else 0

    def slow_operations(self) -> Dict[int, int]:
        """Operations that Ceph would call slow, by OSD."""
        return {osd: count for osd, count in self._stuck.items() if count}

    def balancer_status(self) -> Dict[str, Any]:
        """As `ceph balancer status`: on where the model's PGs are evened out."""
        return {"active": self._simulation.model.upmap_max_deviation > 0, "mode": "upmap", "plans": []}

    def status(self) -> Dict[str, Any]:
        """As `ceph status`."""
        rows, count = self.pg_rows(), len(self._osds)
        states = Counter(row["state"] for row in rows)
        totals = self.totals(rows)
        pgmap: Dict[str, Any] = {
            "pgs_by_state": [{"state_name": state, "count": number} for state, number in states.most_common()],
            "num_pgs": len(rows),
            "num_pools": len(self.pgs.pools),
            "num_objects": totals["num_objects"],
            "data_bytes": totals["num_bytes"],
        }
        for kind in ("degraded", "misplaced"):
            if totals[f"num_objects_{kind}"]:
                pgmap[f"{kind}_objects"] = totals[f"num_objects_{kind}"]
                pgmap[f"{kind}_total"] = totals["num_object_copies"]
        osdmap = {"epoch": self._epoch(), "num_osds": count, "num_up_osds": count, "num_in_osds": count}
        return {"fsid": FSID, "health": self.health(), "quorum": [0], "osdmap": osdmap, "pgmap": pgmap}

    def health(self) -> Dict[str, Any]:
        """As `ceph health`: with checks that have a count."""
        totals = self.totals(self.pg_rows())
        slow = sum(self.slow_operations().values())
        raised = {
            "PG_DEGRADED": (totals["num_objects_degraded"], "{} object copies degraded"),
            "OBJECT_MISPLACED": (totals["num_objects_misplaced"], "{} object copies misplaced"),
            "SLOW_OPS": (slow, f"{{}} slow ops, oldest one blocked for more than {SLOW_S:.0f} sec"),
        }
        checks = {
            name: {"severity": "HEALTH_WARN", "summary": {"message": words.format(count), "count": count}}
            for name, (count, words) in raised.items()
            if count
        }
        return {"status": "HEALTH_WARN" if checks else "HEALTH_OK", "checks": checks, "mutes": []}

    def versions(self) -> Dict[str, Any]:
        """As `ceph versions`."""
        shown = f"ceph version {self._version} (twin) {self._name} (stable)"
        return {"mon": {shown: 1}, "mgr": {shown: 1}, "osd": {shown: len(self._osds)}}

    def osd_dump(self) -> Dict[str, Any]:
        """As `ceph osd dump`."""
        osds = [{"osd": osd.place.osd, "up": 1, "in": 1, "weight": 1.0, "up_from": osd.born} for osd in self._osds]
        pools = [pool.row() for pool in self.pgs.pools]
        flags = sorted(self._flags)
        dump: Dict[str, Any] = {"epoch": self._epoch(), "fsid": FSID, "pools": pools, "osds": osds}
        dump.update(flags=",".join(flags), flags_set=flags)
        return {**dump, "erasure_code_profiles": self._codes()}

    def osd_stat(self) -> Dict[str, Any]:
        """As `ceph osd stat`: its OSDs are up for ever."""
        count = len(self._osds)
        return {"epoch": self._epoch(), "num_osds": count, "num_up_osds": count, "num_in_osds": count}

    def osd_tree(self) -> Dict[str, Any]:
        """As `ceph osd tree`: buckets have negative ids."""
        hosts: Dict[str, List[TwinOsd]] = {}
        for osd in self._osds:
            hosts.setdefault(osd.place.locations["host"], []).append(osd)
        numbers = {host: -2 - place for place, host in enumerate(hosts)}
        nodes: List[Dict[str, Any]] = [
            {"id": -1, "name": _ROOT, "type": "root", "type_id": 11, "children": list(numbers.values())}
        ]
        for host, own in hosts.items():
            children = [osd.place.osd for osd in own]
            nodes.append({"id": numbers[host], "name": host, "type": "host", "type_id": 1, "children": children})
            nodes += [
                {
                    "id": osd.place.osd,
                    "name": f"osd.{osd.place.osd}",
                    "type": "osd",
                    "type_id": 0,
                    "device_class": osd.place.device_class,
                    "status": "up",
                    "reweight": 1.0,
                }
                for osd in own
            ]
        return {"nodes": nodes, "stray": []}

    def crush(self) -> Dict[str, Any]:
        """As `ceph osd crush dump`: one rule, over all OSDs."""
        nodes = self.osd_tree()["nodes"]
        return {
            "devices": [
                {"id": osd.place.osd, "name": f"osd.{osd.place.osd}", "class": osd.place.device_class}
                for osd in self._osds
            ],
            "buckets": [
                {"id": node["id"], "name": node["name"], "items": [{"id": below} for below in node["children"]]}
                for node in nodes
                if node["id"] < 0
            ],
            "rules": [{"rule_id": 0, "steps": [{"op": "take", "item": -1, "item_name": _ROOT}, {"op": "emit"}]}],
        }

    def pg_rows(self) -> List[Dict[str, Any]]:
        """Rows of `ceph pg ls`."""
        return self.pgs.rows(self._simulation)

    def _pg_ls(self, arguments: Mapping[str, str], payload: str) -> str:
        pool = arguments.get("pool")
        rows = [row for row in self.pg_rows() if pool is None or row["pgid"].startswith(f"{pool}.")]
        return json.dumps({"pg_ready": True, "pg_stats": rows})

    def totals(self, rows: Sequence[Mapping[str, Any]]) -> Dict[str, int]:
        """Sums over PGs, by the names of Ceph's `stat_sum`."""
        names = rows[0]["stat_sum"] if rows else ()
        return {name: sum(row["stat_sum"][name] for row in rows) for name in names}

    def _epoch(self) -> int:
        return sum(osd.born for osd in self._osds)

    def _codes(self) -> Dict[str, Dict[str, str]]:
        return {pool.code: {"k": str(pool.k), "m": str(pool.size - pool.k)} for pool in self.pgs.pools if pool.k}

    def _code_get(self, arguments: Mapping[str, str], payload: str) -> str:
        name, codes = arguments["name"], self._codes()
        if name not in codes:
            raise refusal("osd erasure-code-profile get", errno.ENOENT, f"unknown erasure code profile '{name}'")
        return json.dumps(codes[name])

    def _pool_ls(self, arguments: Mapping[str, str], payload: str) -> str:
        pools = self.pgs.pools
        return json.dumps([pool.row() if "detail" in arguments else pool.name for pool in pools])

    def _pool_create(self, arguments: Mapping[str, str], payload: str) -> str:
        name = arguments["pool"]
        if name not in {pool.name for pool in self.pgs.pools}:
            number = 1 + max((pool.number for pool in self.pgs.pools), default=0)
            pool = TwinPool(number, name, int(arguments.get("pg_num", "32")), min(3, len(self._osds)))
            self._set_made([*self._made, pool])
        return ""

    def _pool_set(self, arguments: Mapping[str, str], payload: str) -> str:
        """Of what can be set: the deep-scrub interval, and the flags about scrubs."""
        pool, name, value = self._pool(arguments["pool"], "osd pool set"), arguments["var"], arguments["val"]
        own = self._of_pools.setdefault(pool.name, {})
        if name == "deep_scrub_interval":
            own["deep_scrub_interval_s"] = float(value)
        elif name in _SCRUB_FLAGS and value in ("0", "1", "false", "true"):
            own["flags"] = (pool.flags | {name}) if value in ("1", "true") else (pool.flags - {name})
        else:
            raise refusal("osd pool set", errno.EINVAL, f"invalid command: {name} {value}")
        self._name_pools()
        return ""

    def _set_flag(self, arguments: Mapping[str, str], payload: str) -> str:
        if arguments["key"] not in _SCRUB_FLAGS:
            raise refusal("osd set", errno.EINVAL, f"invalid command: {arguments['key']}")
        self._flags.add(arguments["key"])
        return ""

    def _unset_flag(self, arguments: Mapping[str, str], payload: str) -> str:
        self._flags.discard(arguments["key"])
        return ""

    def _deep_scrub(self, arguments: Mapping[str, str], payload: str) -> str:
        """The operator's request: whatever the flags and the date say, the PG is scrubbed, and its stamp stays."""
        pgid = arguments["pgid"]
        rows = {row["pgid"]: row for row in self.pg_rows()}
        if pgid not in rows:
            raise refusal("pg deep-scrub", errno.ENOENT, f"pg {pgid} dne")
        self.requested_scrubs.append((self._now(), pgid))
        self.pgs.request_scrub(self._simulation, pgid)
        return ""

    def _begin_pgs(self, new_pools: List[TwinPool]) -> None:
        self.pgs.begin(self._simulation, new_pools, self._now())
        self._name_pools()

    def _name_pools(self) -> None:
        self.pgs.pools = [replace(pool, **self._of_pools.get(pool.name, {})) for pool in self.pgs.pools]

    def _pool_get(self, arguments: Mapping[str, str], payload: str) -> str:
        pool, name = self._pool(arguments["pool"], "osd pool get"), arguments["var"]
        row: Dict[str, Value] = {"pg_num": pool.pgs, "pgp_num": pool.pgs, "size": pool.size}
        row["min_size"] = pool.row()["min_size"]
        if name not in row:
            raise refusal("osd pool get", errno.EINVAL, f"invalid command: {name} not in {'|'.join(row)}")
        return json.dumps({"pool": pool.name, "pool_id": pool.number, name: row[name]})

    def _pool_rm(self, arguments: Mapping[str, str], payload: str) -> str:
        name = arguments["pool"]
        pool = self._pool(name, "osd pool rm")
        sure = arguments.get("yes_i_really_really_mean_it", "")
        if arguments.get("pool2") != name or sure not in ("true", "--yes-i-really-really-mean-it"):
            raise refusal(
                "osd pool rm", errno.EPERM, f"this destroys all data of pool {name}: name it twice, and be sure"
            )
        if pool not in self._made:
            raise refusal("osd pool rm", errno.EPERM, f"the pool {name} is the twin's own: its work needs it")
        self._set_made([other for other in self._made if other != pool])
        return ""

    def _pool(self, name: str, command: str) -> TwinPool:
        for pool in self.pgs.pools:
            if pool.name == name:
                return pool
        raise refusal(command, errno.ENOENT, f"unrecognized pool '{name}'")

    def _set_made(self, pools: List[TwinPool]) -> None:
        self._made = pools
        self._begin_pgs(pools)

    def _answer(self, document: Callable[[], Any]) -> Callable[[Mapping[str, str], str], str]:
        return lambda arguments, payload: json.dumps(document())
