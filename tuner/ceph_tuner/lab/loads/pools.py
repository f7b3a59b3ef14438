"""A load's own pool: made as asked, counted PG by PG at the primaries, removed without a trace."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, Mapping, Optional

from ceph_tuner.errors import CommandFailed, LoadFailed, TunerError
from ceph_tuner.lab.loads.session import Session

Tell = Callable[[str], None]
"""Takes one line of progress for people."""


def silent(_: str) -> None:
    """Nobody is told."""


class LoadPool:
    """A replicated pool named `load-NAME`."""

    def __init__(self, session: Session, name: str, pgs: int, size: int) -> None:
        self.session = session
        self.name = f"load-{name}"
        self.pg_count = pgs
        self.size = size
        self._id: Optional[int] = None

    def ensure(self, timeout: float = 60.0) -> bool:
        """Create it, or again where it has another size or PG count. True when it is new."""
        found = self._found()
        if found is not None and (found["size"], found["pg_num"]) == (self.size, self.pg_count):
            self._id = int(found["pool_id"])
            self._wait_active(timeout)
            return False
        self.remove()
        self.session.mon(
            "osd pool create",
            pool=self.name,
            pg_num=self.pg_count,
            pgp_num=self.pg_count,
            pool_type="replicated",
            size=self.size,
            autoscale_mode="off",
        )
        self.session.mon("osd pool application enable", pool=self.name, app="rbd")
        # writes go on while an OSD is away, whatever the cluster's default says
        self.session.mon("osd pool set", pool=self.name, var="min_size", val=str(max(1, self.size - 1)))
        made = self._found()
        if made is None:
            raise LoadFailed(f"the pool {self.name} was created and is not there")
        self._id = int(made["pool_id"])
        self._wait_active(timeout)
        return True

    def remove(self) -> None:
        """Delete the pool; its objects go in the background (see `lab.quiet`)."""
        self._id = None
        if self._found() is not None:
            self.session.mon("osd pool delete", pool=self.name, pool2=self.name, yes_i_really_really_mean_it=True)

    @property
    def pgids(self) -> List[str]:
        """Ids of its PGs."""
        if self._id is None:
            found = self._found()
            if found is None:
                return []
            self._id = int(found["pool_id"])
        return [f"{self._id}.{number:x}" for number in range(self.pg_count)]

    def pgs(self) -> List[Dict[str, Any]]:
        """What the primaries say of its PGs now."""
        return self.session.pgs(self.pgids)

    def nothing_is_deleted(self) -> bool:
        """Whether no OSD deletes a PG."""
        up = [entry["osd"] for entry in self.session.mon("osd dump")["osds"] if entry["up"]]
        counters = [self.session.osd(osd, "perf dump", logger="osd")["osd"] for osd in up]
        return not any(entry.get("numpg_removing", 0) for entry in counters)

    def _found(self) -> Optional[Mapping[str, Any]]:
        for pool in self.session.mon("osd dump")["pools"]:
            if pool["pool_name"] == self.name:
                return {"pool_id": pool["pool"], "size": pool["size"], "pg_num": pool["pg_num"]}
        return None

    def _wait_active(self, timeout: float) -> None:
        until = time.monotonic() + timeout
        while True:
            active = sum("active" in pg["state"] for pg in self.pgs())
            if active == self.pg_count:
                return
            if time.monotonic() > until:
                raise LoadFailed(f"{self.pg_count - active} of {self.pg_count} PGs of {self.name} are not active")
            time.sleep(0.5)


class Flags:
    """Cluster flags (`norecover`) that a load sets for a while; what was set before stays set."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._ours: List[str] = []
        self._taken: List[str] = []

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
                self._taken.append(flag)
            self._session.mon("osd unset", key=flag)
            self._ours = [ours for ours in self._ours if ours != flag]

    def restore(self) -> None:
        """All flags as they were before. Each is tried, and those that failed once more; then it raises the failure."""
        failures = self._restored() and self._restored()
        if failures:
            raise failures[0]

    def _restored(self) -> List[TunerError]:
        failures: List[TunerError] = []
        for command, flags in (("osd unset", self._ours), ("osd set", self._taken)):
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
    started = time.monotonic()
    for first in range(0, len(names), batch):
        pool.session.write(pool.name, names[first : first + batch], size, offset)
        done = min(first + batch, len(names))
        seconds = max(time.monotonic() - started, 1e-3)
        tell(f"{pool.name}: {done} of {len(names)} objects written, {done * size / seconds / 1e6:.0f} MB/s")


def ignore_refusal(call: Callable[[], Any]) -> None:
    """For steps of a cleaning up that may find nothing to clean."""
    try:
        call()
    except CommandFailed:
        return
