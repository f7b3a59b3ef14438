"""A load's own pool: made as its layout says, counted PG by PG at the primaries, removed without a trace."""

from __future__ import annotations

import time
from functools import partial
from typing import Any, Callable, Collection, Dict, List, Mapping, Optional, Sequence

from ceph_lab.loads.layout import PoolLayout, creation
from ceph_lab.loads.session import LabSession
from ceph_tuner.core.errors import CommandFailed, LoadFailed, TunerError

PREFIX = "load-"
"""Of every pool, CRUSH rule and erasure-code profile that a load makes."""

Tell = Callable[[str], None]
"""Takes one line of progress for people."""


def silent(_: str) -> None:
    """Nobody is told."""


class LoadPool:
    """A pool named `load-NAME-LAYOUT`, so that pools of several layouts stand side by side."""

    def __init__(self, session: LabSession, name: str, layout: PoolLayout, osds: Sequence[int]) -> None:
        self.session = session
        self.osds = osds
        self.name = f"{PREFIX}{name}-{layout.name}"
        self.layout = layout
        self._id: Optional[int] = None

    @property
    def size(self) -> int:
        """OSDs of a PG."""
        return self.layout.size

    @property
    def pg_count(self) -> int:
        """Number of PGs."""
        return self.layout.pgs

    def ensure(self, timeout: float = 60.0) -> bool:
        """Create it, or again where it has another size or PG count. True when it is new."""
        row = self._entry()
        if row is not None and (row["size"], row["pg_num"]) == (self.size, self.pg_count):
            self._id = int(row["pool"])
            self._wait_active(timeout)
            return False
        self.remove()
        for command in creation(self.name, self.layout):
            self.session.mon(**command)
        # writes go on while an OSD is away, whatever the cluster's default says
        self.session.mon("osd pool set", pool=self.name, var="min_size", val=str(self.layout.min_size))
        new_row = self._entry()
        if new_row is None:
            raise LoadFailed(f"the pool {self.name} was created and is not there")
        self._id = int(new_row["pool"])
        self.place({pgid: self.home(pgid) for pgid in self.pgids})
        self._wait_active(timeout)
        return True

    def home(self, pgid: str) -> List[int]:
        """Where a PG lies: not by CRUSH, whose answer depends on the pool's id, that is on what was made before."""
        return self.layout.placement(self.osds, int(pgid.partition(".")[2], 16))

    def place(self, placement: Mapping[str, Sequence[int]]) -> None:
        """Bring PGs onto these OSDs, the primary first."""
        self.session.mons(
            [{"prefix": "osd pg-upmap", "pgid": pgid, "id": list(osds)} for pgid, osds in placement.items()]
        )

    def remove(self) -> None:
        """Delete the pool; its objects go in the background (see `lab.quiet`)."""
        self._id = None
        if self._entry() is not None:
            remove_pool(self.session, self.name)

    @property
    def pgids(self) -> List[str]:
        """Ids of its PGs."""
        if self._id is None:
            row = self._entry()
            if row is None:
                return []
            self._id = int(row["pool"])
        return [f"{self._id}.{number:x}" for number in range(self.pg_count)]

    def pgs(self) -> List[Dict[str, Any]]:
        """What the primaries say of its PGs now."""
        return self.session.pgs(self.pgids)

    def raw_bytes(self) -> float:
        """Bytes of its objects, all copies and chunks; 0 where it is not there."""
        return total(self.pgs(), "num_bytes") * self.size * self.layout.stored_share

    def spread(self, object_bytes: float) -> Dict[int, float]:
        """So many bytes of objects, as each OSD holds them: PGs lie evenly."""
        return dict.fromkeys(self.osds, object_bytes * self.size * self.layout.stored_share / len(self.osds))

    def without_strays(self, pgs: Sequence[Mapping[str, Any]]) -> bool:
        """Whether no OSD has a copy of any PG that is not its own any more; of this pool's PGs, as `pgs` knew them."""
        up = [entry["osd"] for entry in self.session.mon("osd dump")["osds"] if entry["up"]]
        rows = self.session.mgr("pg dump", dumpcontents=["pgs_brief"])["pg_stats"]
        others = [row for row in rows if row["pgid"] not in self.pgids]
        copies = sum(osd in up for row in (*others, *pgs) for osd in {*row["up"], *row["acting"]})
        # the counters numpg_stray and numpg_removing are of the last map
        return bool(copies == sum(self.session.osd(osd, "status")["num_pgs"] for osd in up))

    def _entry(self) -> Optional[Mapping[str, Any]]:
        pools = self.session.mon("osd dump")["pools"]
        return next((pool for pool in pools if pool["pool_name"] == self.name), None)

    def _wait_active(self, timeout: float) -> None:
        until = time.monotonic() + timeout
        while True:
            active = sum("active" in pg["state"] for pg in self.pgs())
            if active == self.pg_count:
                return
            if time.monotonic() > until:
                raise LoadFailed(f"{self.pg_count - active} of {self.pg_count} PGs of {self.name} are not active")
            time.sleep(0.5)


def total(pgs: List[Dict[str, Any]], key: str) -> float:
    """Sum of one of the PGs' object statistics."""
    return float(sum(pg["stats"]["stat_sum"].get(key, 0) for pg in pgs))


def remove_pool(session: LabSession, name: str) -> None:
    """Delete a load's pool, with the rule and the profile that an erasure-coded one has of its own name."""
    session.mon("osd pool delete", pool=name, pool2=name, yes_i_really_really_mean_it=True)
    # neither is there for a replicated pool
    ignore_refusal(lambda: session.mon("osd crush rule rm", name=name))
    ignore_refusal(lambda: session.mon("osd erasure-code-profile rm", name=name))


def remove_pools(session: LabSession, keep: Collection[str] = ()) -> List[str]:
    """Delete the pools of every load and layout, whoever left them behind, and the rules of their classes.

    Gives the pools' names. Of those to `keep` the rules stay, too: Ceph refuses to delete a rule that is in use.
    """
    names = [str(pool["pool_name"]) for pool in session.mon("osd dump")["pools"]]
    leftovers = [name for name in names if name.startswith(PREFIX) and name not in keep]
    for name in leftovers:
        remove_pool(session, name)
    for rule in session.mon("osd crush rule ls"):
        if str(rule).startswith(PREFIX):
            ignore_refusal(partial(session.mon, "osd crush rule rm", name=rule))
    return leftovers


class Flags:
    """Cluster flags (`norecover`) that a load sets for a while; what was set before stays set."""

    def __init__(self, session: LabSession) -> None:
        self._session = session
        self._ours: List[str] = []
        self._operators: List[str] = []

    def set(self, flag: str) -> None:
        """Set it, and remember whether it was ours."""
        if flag not in self._now():
            # remembered first: an interrupt may strike once the cluster has it and before its answer is here
            self._ours.append(flag)
            self._session.mon("osd set", key=flag)

    def clear(self, flag: str) -> None:
        """Clear one that was set by `set`, or that an operator had set: `restore` sets that one again."""
        if flag in self._now():
            if flag not in self._ours:
                self._operators.append(flag)
            self._session.mon("osd unset", key=flag)
            self._ours = [ours for ours in self._ours if ours != flag]

    def restore(self) -> None:
        """All flags as they were before. Each is tried, and those that failed once more; then it raises the failure."""
        failures = self._try_restore() and self._try_restore()
        if failures:
            raise failures[0]

    def _try_restore(self) -> List[TunerError]:
        failures: List[TunerError] = []
        for command, flags in (("osd unset", self._ours), ("osd set", self._operators)):
            for flag in list(flags):
                try:
                    self._session.mon(command, key=flag)
                    flags.remove(flag)
                except TunerError as error:  # noqa: PERF203 - the others must be tried
                    failures.append(error)
        return failures

    def drop(self, flag: str) -> None:
        """Clear one whoever set it: for flags that an interrupted run left behind."""
        if flag in self._now():
            self._session.mon("osd unset", key=flag)

    def _now(self) -> List[str]:
        return list(self._session.mon("osd dump")["flags_set"])


def write_in_batches(
    pool: LoadPool, names: List[str], size: int, tell: Tell = silent, offset: Optional[int] = None, batch: int = 128
) -> None:
    """Write objects batch by batch, so that Ctrl-C is heard and progress is seen."""
    began = time.monotonic()
    for first in range(0, len(names), batch):
        pool.session.write(pool.name, names[first : first + batch], size, offset)
        done = min(first + batch, len(names))
        seconds = max(time.monotonic() - began, 1e-3)
        tell(f"{pool.name}: {done} of {len(names)} objects written, {done * size / seconds / 1e6:.0f} MB/s")


def ignore_refusal(call: Callable[[], Any]) -> None:
    """For steps of a cleaning up that may find nothing to clean."""
    try:
        call()
    except CommandFailed:
        return
