"""What Ceph's monitors tell of the pools: where each lies, what it holds, what is to be done in it, what clients do."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.core.ceph.commands import parsed
from ceph_tuner.core.ceph.ports import Commander
from ceph_tuner.core.errors import CommandFailed, PermissionRefused
from ceph_tuner.core.measure.pg_documents import ERASURE, pg_rows, stamp_s
from ceph_tuner.core.measure.reading import pool_of
from ceph_tuner.core.measure.scopes import takes_of

PGS_MOST = 20_000
"""PGs that are listed one by one, about 4 KiB of JSON each; of more, pools are seen by their sums."""


@dataclass(frozen=True)
class PlacementRule:
    """Where the CRUSH rule of a pool puts its PGs."""

    device_class: str = ""
    """Empty: OSDs of every class."""
    domain: str = ""
    """Type of bucket that no two copies share: `host`, `osd`, `rack`; empty where it is not seen."""


@dataclass(frozen=True)
class PoolSeen:
    """One pool. Counts of objects are of heads and clones together; of copies where they are degraded or misplaced."""

    name: str
    pgs: int
    size: int
    k: int = 0
    """Data chunks of an erasure code; 0: replicated."""
    tellable: bool = True
    """False where its erasure code does not say how many data chunks there are."""
    rule: PlacementRule = PlacementRule()
    up: Tuple[Tuple[int, ...], ...] = ()
    """Each PG's OSDs, the primary first, of whole PGs that are listed one by one; none where these are not all."""
    objects: float = 0.0
    stored_bytes: float = 0.0
    degraded: float = 0.0
    misplaced: float = 0.0
    lacking: Mapping[int, float] = field(default_factory=dict)
    """OSD -> degraded objects of PGs in whose acting set it is without having all of them."""
    awaited: float = 0.0
    """Degraded objects that a write to them waits for: of PGs that recover within their acting set, from their log."""
    clones: float = 0.0
    clones_to_trim: float = 0.0
    """Clones in PGs whose snaptrim queue is not empty: at most so many are trimmed."""
    operations: float = 0.0
    """Reads and writes since the pool's beginning."""
    reads: float = 0.0
    """Those of them that read."""
    moved_bytes: float = 0.0
    """Bytes of these operations."""
    made_at: float = 0.0
    """The pool's beginning, in seconds since the epoch; 0 where the map does not say it."""
    reads_s: float = 0.0
    """What clients do now, as the monitors smooth it, else in the mean: operations and bytes a second."""
    writes_s: float = 0.0
    bytes_s: float = 0.0

    @property
    def object_bytes(self) -> int:
        """Mean size of an object; as large as clients usually make them (4 MiB) where there is none."""
        return max(1, round(self.stored_bytes / self.objects)) if self.objects and self.stored_bytes else 4 << 20

    @property
    def operations_s(self) -> float:
        """What clients do now."""
        return self.reads_s + self.writes_s

    @property
    def quiet(self) -> bool:
        """Whether nothing goes on in it beside scrubs."""
        return not (self.degraded or self.misplaced or self.clones_to_trim or self.operations_s)


@dataclass(frozen=True)
class PoolsSeen:
    """All of them, and what else the same answers tell."""

    pools: Tuple[PoolSeen, ...]
    osds_in: Tuple[int, ...]
    scrubbing: bool
    notes: Tuple[str, ...]
    has_rates: bool = True
    """Whether the monitors say what clients do now."""

    def with_mean_rates(self, now: float) -> PoolsSeen:
        """The same with each pool's mean since its beginning, in the place of what clients do now."""
        return replace(self, pools=tuple(_with_mean_rates(pool, now) for pool in self.pools))


def pools_seen(commander: Commander) -> PoolsSeen:
    """Ask for the maps and the statistics. Raises TunerError where these do not answer."""
    osd_map = _ask(commander, "osd dump")
    status = _ask(commander, "status")["pgmap"]
    notes: List[str] = []
    rules = _rules(commander, notes)
    codes: Dict[str, Optional[int]] = {}
    pools: Dict[int, PoolSeen] = {}
    for row in osd_map["pools"]:
        profile = str(row.get("erasure_code_profile", "")) if int(row.get("type", 1)) == ERASURE else ""
        if profile not in codes:
            codes[profile] = _data_chunks(commander, profile)
        data_chunks = codes[profile]
        pools[int(row["pool"])] = PoolSeen(
            str(row["pool_name"]),
            int(row.get("pg_num_target", row["pg_num"])),
            int(row["size"]),
            data_chunks or 0,
            data_chunks is not None,
            rules.get(int(row.get("crush_rule", -1)), PlacementRule()),
            made_at=stamp_s(str(row.get("create_time", ""))),
        )
        if data_chunks is None:
            notes.append(f"the pool {row['pool_name']} is left out: its erasure code, {profile}, does not state k")
    pools, has_rates = _with_rates(commander, pools, notes)
    try:
        few = int(status.get("num_pgs", 0)) <= PGS_MOST
        why = f"{status.get('num_pgs')} PGs are not looked at one by one"
        with_amounts = _with_pgs(commander, pools) if few else None
    except (CommandFailed, PermissionRefused) as failure:
        with_amounts, why = None, f"the PGs are not seen ({failure})"
    if with_amounts is None:
        with_amounts = _with_sums(commander, pools)
        notes.append(f"{why}: what is to be trimmed is not seen")
    pools = with_amounts
    states = [str(row["state_name"]).split("+") for row in status.get("pgs_by_state", [])]
    return PoolsSeen(
        tuple(pools.values()),
        tuple(int(row["osd"]) for row in osd_map["osds"] if row["in"]),
        any("scrubbing" in words for words in states),
        tuple(notes),
        has_rates,
    )


def _rules(commander: Commander, notes: List[str]) -> Dict[int, PlacementRule]:
    try:
        rows = _ask(commander, "osd crush rule dump")
    except (CommandFailed, PermissionRefused) as failure:
        notes.append(f"the CRUSH rules are not seen, so pools are taken to lie on all device classes ({failure})")
        return {}
    rules = {}
    for row in rows:
        choose_steps = [step for step in row.get("steps", []) if str(step.get("op", "")).startswith("choose")]
        # of several, the last is the nearest to the OSDs
        domain = str(choose_steps[-1].get("type", "")) if choose_steps else ""
        device_class = next((name for _, name in takes_of(row)[-1:]), "")
        rules[int(row["rule_id"])] = PlacementRule(device_class, domain)
    return rules


def _data_chunks(commander: Commander, profile: str) -> Optional[int]:
    """Of the code of that profile; None where it is made of layers (LRC) and has no k, 0 where it is none."""
    if not profile:
        return 0
    answer = _ask(commander, "osd erasure-code-profile get", name=profile)
    return int(answer["k"]) if "k" in answer else None


def _with_rates(commander: Commander, pools: Dict[int, PoolSeen], notes: List[str]) -> Tuple[Dict[int, PoolSeen], bool]:
    """Add what clients do, and what is degraded or misplaced by the pools' sums; and whether clients are seen."""
    try:
        rows = {int(row["pool_id"]): row for row in _ask(commander, "osd pool stats")}
    except (CommandFailed, PermissionRefused) as failure:
        notes.append(f"what clients do in each pool is not seen ({failure})")
        return pools, False
    # `ceph report` has the sums, and no rates
    has_rates = not rows or any("client_io_rate" in row for row in rows.values())
    if not has_rates:
        notes.append("what clients do in each pool is not seen: there are no rates of it")
    with_rates = {}
    for number, pool in pools.items():
        rates, recovery_rates = rows.get(number, {}).get("client_io_rate", {}), rows.get(number, {}).get("recovery", {})
        with_rates[number] = replace(
            pool,
            # smoothed, and so below 0 at times
            reads_s=max(0.0, float(rates.get("read_op_per_sec", 0))),
            writes_s=max(0.0, float(rates.get("write_op_per_sec", 0))),
            bytes_s=max(0.0, float(rates.get("read_bytes_sec", 0)) + float(rates.get("write_bytes_sec", 0))),
            degraded=float(recovery_rates.get("degraded_objects", 0)),
            misplaced=float(recovery_rates.get("misplaced_objects", 0)),
        )
    return with_rates, has_rates


def _with_mean_rates(pool: PoolSeen, now: float) -> PoolSeen:
    seconds = now - pool.made_at
    if not pool.made_at or seconds <= 0:
        return pool
    writes = pool.operations - pool.reads
    return replace(pool, reads_s=pool.reads / seconds, writes_s=writes / seconds, bytes_s=pool.moved_bytes / seconds)


def _with_pgs(commander: Commander, pools: Dict[int, PoolSeen]) -> Dict[int, PoolSeen]:
    by_pool: Dict[int, List[Mapping[str, Any]]] = defaultdict(list)
    for row in pg_rows(_ask(commander, "pg ls")):
        by_pool[pool_of(str(row["pgid"]))].append(row)
    with_pgs = {}
    for number, pool in pools.items():

        def total(name: str, own: Sequence[Mapping[str, Any]] = by_pool[number]) -> float:
            return float(sum(row["stat_sum"].get(name, 0) for row in own))

        trim_rows = [row for row in by_pool[number] if row.get("snaptrimq_len") or "snaptrim" in str(row["state"])]
        with_pgs[number] = replace(
            pool,
            up=_up_sets(pool, by_pool[number]),
            objects=total("num_objects"),
            stored_bytes=total("num_bytes"),
            degraded=total("num_objects_degraded"),
            misplaced=total("num_objects_misplaced"),
            lacking=_degraded_objects(by_pool[number]),
            awaited=sum(map(_awaited, by_pool[number])),
            clones=total("num_object_clones"),
            clones_to_trim=total("num_object_clones", trim_rows),
            operations=total("num_read") + total("num_write"),
            reads=total("num_read"),
            moved_bytes=1024 * (total("num_read_kb") + total("num_write_kb")),
        )
    return with_pgs


def _up_sets(pool: PoolSeen, rows: Sequence[Mapping[str, Any]]) -> Tuple[Tuple[int, ...], ...]:
    up_sets = tuple(
        (int(row["up_primary"]), *(int(osd) for osd in row["up"] if osd != row["up_primary"])) for row in rows
    )
    is_whole = len(up_sets) == pool.pgs and all(len(set(up)) == len(up) == pool.size for up in up_sets)
    return up_sets if is_whole else ()


def _degraded_objects(rows: Sequence[Mapping[str, Any]]) -> Dict[int, float]:
    by_osd: Dict[int, float] = defaultdict(float)
    for row in rows:
        degraded = float(row["stat_sum"].get("num_objects_degraded", 0))
        if degraded and "avail_no_missing" in row:
            # "2", or "2(1)" where it has that chunk of an erasure code
            whole = {int(str(shard).partition("(")[0]) for shard in row["avail_no_missing"]}
            for osd in row["acting"]:
                if osd not in whole:
                    by_osd[int(osd)] += degraded
    return dict(by_osd)


def _awaited(row: Mapping[str, Any]) -> float:
    """Objects of a PG that a write to them waits for.

    None where the PG is backfilled, or where the OSD that lacks them is outside of the acting set: it is down, or it
    recovers asynchronously (osd_async_recovery_min_cost).
    """
    words = str(row["state"]).split("+")
    if "undersized" in words or any(word.startswith("backfill") for word in words):
        return 0.0
    if sorted(row.get("up", ())) != sorted(row.get("acting", ())):
        return 0.0
    # one that lacks two copies counts twice
    return float(min(row["stat_sum"].get(name, 0) for name in ("num_objects_degraded", "num_objects")))


def _with_sums(commander: Commander, pools: Dict[int, PoolSeen]) -> Dict[int, PoolSeen]:
    stats = {int(row["id"]): row["stats"] for row in _ask(commander, "df", detail="detail")["pools"]}
    with_sums = {}
    for number, pool in pools.items():

        def total(*names: str, own: Mapping[str, Any] = stats.get(number, {})) -> float:
            return float(sum(own.get(name, 0) for name in names))

        with_sums[number] = replace(
            pool,
            objects=total("objects"),
            stored_bytes=total("stored"),
            # of `ceph report` alone
            clones=total("clones"),
            operations=total("rd", "wr"),
            reads=total("rd"),
            moved_bytes=total("rd_bytes", "wr_bytes"),
        )
    return with_sums


def _ask(commander: Commander, prefix: str, **arguments: str) -> Any:
    return parsed(commander.mon(prefix, arguments), prefix)
