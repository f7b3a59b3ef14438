"""A small cluster whose PGs move: CRUSH by a fixed preference, upmap entries, weights, splits, and some seconds a move.

Small and real where moves look: what is written decides where PGs are to be, and time brings them there.
"""

from __future__ import annotations

import errno
import json
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.ceph.commands import CommandConfig, CommandStore
from ceph_tuner.core.errors import CommandFailed
from ceph_tuner.twin.model import Pool
from twin_cluster.cluster import TwinCluster
from twins import small_twin

MIB = 1 << 20


@cache
def _preferred(placed: int, osds: int) -> Tuple[int, ...]:
    """A PG's own order of all OSDs."""
    order = [(placed * 3 + step * (1 + placed % (osds - 1))) % osds for step in range(osds)]
    return tuple(dict.fromkeys([*order, *range(osds)]))


@dataclass
class Moving:
    """A commander: what is about moves is answered here, all else by a twin."""

    twin: TwinCluster
    osds: int = 5
    size: int = 2
    pgs: int = 8
    seconds: float = 12.0
    """That a PG's move takes."""
    slow: Dict[str, float] = field(default_factory=dict)
    """PG -> seconds, where it takes others."""
    balancer: bool = False
    autoscale: str = "off"
    flags: str = ""
    compat: str = "luminous"
    used: float = 0.1
    dropping: Tuple[str, ...] = ()
    """PGs whose entries the monitors drop."""
    writes: List[str] = field(default_factory=list)
    weights: Dict[int, float] = field(default_factory=dict)
    upmaps: Dict[str, List[Tuple[int, int]]] = field(default_factory=dict)
    acting: Dict[str, List[int]] = field(default_factory=dict)
    moving: Dict[str, float] = field(default_factory=dict)
    """PG -> since when it is on its way."""
    target: int = 0
    """Of pg_num, where Ceph is on its way to it."""
    pg_num: int = 0
    pgp_num: int = 0
    options: Dict[str, str] = field(default_factory=dict)
    """Of monitors and the mgr, where they are not Ceph's defaults."""
    heard_s: float = 0.0
    """The mgr hears of PGs so often."""
    epoch: int = 1
    heard: List[Dict[str, Any]] = field(default_factory=list)
    heard_at: float = float("-inf")
    moved: List[str] = field(default_factory=list)
    """PGs that have begun to move, in their order; one that is sent back at once is there as well."""

    def __post_init__(self) -> None:
        self.pg_num = self.pgp_num = self.pgs
        self.weights = dict.fromkeys(range(self.osds), 1.0)
        self.acting = {self.pgid(number): self.up(number) for number in range(self.pgs)}

    @staticmethod
    def pgid(number: int) -> str:
        return f"1.{number:x}"

    def raw(self, number: int) -> List[int]:
        """The first OSDs with a weight, by an order of the PG's own."""
        # as `ceph_stable_mod`
        mask = (1 << (self.pgp_num - 1).bit_length()) - 1
        placed = number & mask if number & mask < self.pgp_num else number & (mask >> 1)
        return [osd for osd in _preferred(placed, self.osds) if self.weights[osd] > 0][: self.size]

    def up(self, number: int) -> List[int]:
        places = self.raw(number)
        for first, last in self.upmaps.get(self.pgid(number), []):
            if first in places and last not in places:
                places[places.index(first)] = last
        return places

    def _advance(self) -> None:
        now = self.twin.clock.now()
        stopped = set(self.flags.split(",")) & {"norebalance", "nobackfill"}
        for number in range(self.pg_num):
            pgid, up = self.pgid(number), self.up(number)
            acting = self.acting.setdefault(pgid, list(up))
            if sorted(acting) == sorted(up):
                self.moving.pop(pgid, None)
                self.acting[pgid] = up
            elif pgid not in self.moving:
                self.moving[pgid] = now
                self.moved.append(pgid)
            elif now - self.moving[pgid] >= self.slow.get(pgid, self.seconds) and not stopped:
                del self.moving[pgid]
                self.acting[pgid] = up

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        self._advance()
        if prefix == "config get" and arguments["key"] in self.options:
            return self.options[arguments["key"]]
        answer = getattr(self, "_" + prefix.replace(" ", "_").replace("-", "_"), None)
        if answer is None or prefix.startswith("config"):
            return self.twin.commander.mon(prefix, arguments, payload)
        found = answer(arguments)
        if found is None:
            self.writes.append(" ".join([prefix, *arguments.values()]))
            self.epoch += 1
            self._advance()
            return ""
        return json.dumps(found)

    def tell(self, daemon: str, prefix: str, arguments: Mapping[str, str]) -> str:
        if prefix in ("balancer on", "balancer off"):
            self.balancer = prefix == "balancer on"
            self.writes.append(prefix)
            return ""
        return self.twin.commander.tell(daemon, prefix, arguments)

    def _balancer_status(self, _: Mapping[str, str]) -> Any:
        return {"active": self.balancer, "mode": "upmap"}

    def _osd_dump(self, arguments: Mapping[str, str]) -> Any:
        theirs = json.loads(self.twin.commander.mon("osd dump", {}))
        pool = {
            **theirs["pools"][0],
            "pool": 1, "pool_name": "rbd", "type": 1, "size": self.size, "crush_rule": 0, "pg_num": self.pg_num,
            "pg_placement_num": self.pgp_num, "pg_autoscale_mode": self.autoscale,
            "pg_num_target": self.target or self.pg_num, "pg_placement_num_target": self.pgp_num,
            "erasure_code_profile": "",
            "flags_names": "", "options": {},
        }  # fmt: skip
        return {
            **theirs,
            "epoch": self.epoch,
            "flags": self.flags,
            "backfillfull_ratio": 0.9,
            "require_min_compat_client": self.compat,
            "pools": [pool],
            "pg_upmap": [],
            "pg_upmap_items": [
                {"pgid": pgid, "mappings": [{"from": first, "to": last} for first, last in pairs]}
                for pgid, pairs in self.upmaps.items()
            ],
            "erasure_code_profiles": {},
        }

    def _osd_crush_dump(self, arguments: Mapping[str, str]) -> Any:
        hosts = [
            {"id": -2 - osd, "name": f"h{osd}", "type_name": "host", "items": [{"id": osd}]} for osd in range(self.osds)
        ]
        root = {"id": -1, "name": "default", "type_name": "root", "items": [{"id": host["id"]} for host in hosts]}
        steps = [{"op": "take", "item_name": "default"}, {"op": "chooseleaf_firstn", "num": 0, "type": "host"}]
        return {"buckets": [root, *hosts], "rules": [{"rule_id": 0, "steps": [*steps, {"op": "emit"}]}]}

    def _osd_df(self, arguments: Mapping[str, str]) -> Any:
        counts = [sum(osd in acting for acting in self.acting.values()) for osd in range(self.osds)]
        nodes = [
            {"id": osd, "crush_weight": self.weights[osd], "device_class": "ssd", "kb": 1 << 20,
             "kb_used": self.used * (1 << 20), "pgs": counts[osd]}
            for osd in range(self.osds)
        ]  # fmt: skip
        return {"nodes": nodes}

    def _pg_ls(self, arguments: Mapping[str, str]) -> Any:
        theirs = json.loads(self.twin.commander.mon("pg ls", {}))["pg_stats"][0]
        if self.twin.clock.now() - self.heard_at < self.heard_s:
            return {"pg_ready": True, "pg_stats": self.heard}
        rows = []
        for number in range(self.pg_num):
            pgid = self.pgid(number)
            state = "active+remapped+backfilling" if pgid in self.moving else "active+clean"
            row = {**theirs, "pgid": pgid, "up": self.up(number), "acting": self.acting[pgid], "state": state}
            row["reported_epoch"] = self.epoch
            rows.append({**row, "stat_sum": {**theirs["stat_sum"], "num_bytes": 10 * MIB}})
        self.heard, self.heard_at = json.loads(json.dumps(rows)), self.twin.clock.now()
        return {"pg_ready": True, "pg_stats": self.heard}

    def _pg_map(self, arguments: Mapping[str, str]) -> Any:
        return {"up": self.up(int(arguments["pgid"].split(".")[1], 16))}

    def _osd_pg_upmap_items(self, arguments: Mapping[str, str]) -> Optional[Any]:
        numbers = [int(word) for word in arguments["id"].split()]
        pairs = list(zip(numbers[::2], numbers[1::2]))
        if any(first == last for first, last in pairs):
            raise CommandFailed("osd pg-upmap-items", -errno.EINVAL, "from == to")
        if arguments["pgid"] not in self.dropping:
            self.upmaps[arguments["pgid"]] = pairs
            self._clean()
        return None

    def _osd_rm_pg_upmap_items(self, arguments: Mapping[str, str]) -> None:
        self.upmaps.pop(arguments["pgid"], None)

    def _osd_crush_reweight(self, arguments: Mapping[str, str]) -> None:
        self.weights[int(arguments["name"][4:])] = float(arguments["weight"])
        self._clean()

    def _clean(self) -> None:
        """As the monitors: pairs that begin where CRUSH puts nothing, or end at a weight of 0, are dropped."""
        for pgid, pairs in list(self.upmaps.items()):
            raw = self.raw(int(pgid.split(".")[1], 16))
            kept = [pair for pair in pairs if pair[0] in raw and self.weights[pair[1]] > 0]
            if kept:
                self.upmaps[pgid] = kept
            else:
                del self.upmaps[pgid]

    def _osd_pool_set(self, arguments: Mapping[str, str]) -> None:
        variable, value = arguments["var"], arguments["val"]
        if variable == "pg_autoscale_mode":
            self.autoscale = value
        elif variable == "pgp_num":
            self.pgp_num = int(value)
        elif variable == "pg_num":
            if self.pg_num < int(value):
                for number in range(self.pg_num, int(value)):
                    # a child is where its parent is
                    self.acting[self.pgid(number)] = list(self.acting[self.pgid(number % self.pg_num)])
            same = self.pg_num == self.pgp_num
            self.pg_num = int(value)
            self.pgp_num = self.pg_num if same else self.pgp_num


def moving_cluster(**changes: Any) -> Tuple[Cluster, Moving]:
    """A cluster, and what moves in it."""
    twin = small_twin(osds=changes.get("osds", 5), pools=(Pool("rbd", 8, 2),))
    moving = Moving(twin, **changes)
    cluster = Cluster(
        "moving", moving, CommandConfig(moving), CommandStore(moving), twin.release, twin.version, clock=twin.clock
    )
    return cluster, moving
