"""Holds the stored capacities against what is known of the OSDs, and measures one anew when asked to."""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import replace
from typing import Any, Callable, Container, Dict, Iterable, List, Optional, Sequence, Tuple

from ceph_tuner.core.autopilot.capacity import BENCH_FACTOR, Stored, findings, reason_not_to_bench, summary
from ceph_tuner.core.bounded import ANSWER, MISREAD, read_json
from ceph_tuner.core.errors import CommandFailed, InputError
from ceph_tuner.core.goals.guard import Sight
from ceph_tuner.core.measure.osd_selection import spread

from .capacity import BANDWIDTH_OPTION, CAPACITY_OPTION, Capacity
from .commander import MgrCommander
from .service import Inventory

BENCH = {"count": 12288000, "size": 4096, "object_size": 4194304, "object_num": 100}
"""As the OSD does it itself at its first boot."""
LARGE_BENCH = {"count": 1 << 30, "size": 4 << 20, "object_size": 4 << 20, "object_num": 64}
"""1 GiB in writes of 4 MiB over 256 MiB of objects: what comes of it is bandwidth."""
BENCH_S = 300.0
CLASS_OSDS = 4
"""OSDs of a class that are measured for all of it."""
LOOK_S = 3.0
"""How long an OSD's clients are watched before it is measured."""

MB = 1e6

_WORK = ("recovering", "backfilling", "scrubbing", "snaptrim")
_OPERATIONS = ("op_r", "op_w", "op_rw")


class CapacityCheck:
    """`capacities` gives those in force, of some OSDs or of those named; `write` stores one, and gives its change."""

    def __init__(
        self,
        commander: MgrCommander,
        capacities: Callable[..., Sequence[Capacity]],
        inventory: Inventory,
        write_counts: Callable[[int], Tuple[float, ...]],
        pg_states: Callable[[int], Iterable[str]],
        write: Callable[[str, Dict[str, Any], str], Optional[int]],
        by_bandwidth: Callable[[], bool] = lambda: True,
    ) -> None:
        """`write_counts` gives an OSD's count of client writes after the time at which it was; empty where it has none.

        `pg_states` gives the states of its PGs, as `active+clean+scrubbing`. `by_bandwidth` says whether the release
        reckons with bandwidth, too.
        """
        self._by_bandwidth = by_bandwidth
        self._commander, self._capacities, self._inventory = commander, capacities, inventory
        self._written, self._pg_states, self._write = write_counts, pg_states, write
        self._counts: Dict[int, Tuple[float, float]] = {}
        self._served: Dict[int, float] = {}

    def report(self) -> Dict[str, Any]:
        """Capacities in force, and what speaks against them."""
        entries = []
        for capacity in self._capacities():
            self._note_rate(capacity.osd)
            if capacity.iops > 0:
                kind, highest_rate = self._inventory.kind(capacity.osd), self._served.get(capacity.osd)
                entries.append(Stored(capacity.osd, kind, capacity.iops, capacity.source, served=highest_rate))
        rows = [{"osd": item.osd, "iops": item.iops, "source": item.source, "seen": item.served} for item in entries]
        return {"osds": rows, "findings": summary(findings(entries))}

    def measure(self, osd: int, store: bool, canary: Container[int], on_trial: bool, sight: Sight) -> Dict[str, Any]:
        """Bench an OSD, in IOPS and in bandwidth. Raises InputError where it must not be, or is not there."""
        capacity = next(iter(self._capacities([osd])), None) if osd in self._inventory.running() else None
        if capacity is None:
            raise InputError("capacity measure", f"osd.{osd}", "an OSD that is up and answers")
        kind = self._inventory.kind(osd)
        # none at all is a reason to measure it, and no capacity to reckon with
        in_force = Stored(osd, kind, max(capacity.iops, 1.0), capacity.source)
        reason = reason_not_to_bench(in_force, True, canary, self._operations(osd), self._work(osd), sight, on_trial)
        if reason is not None:
            raise InputError("capacity measure", reason, "an idle OSD of a steady cluster")
        iops = self._bench(osd, BENCH, "iops")
        settings: Dict[str, Any] = {CAPACITY_OPTION + kind: iops}
        doubts = [finding.words for finding in findings([replace(in_force, bench=iops)])]
        bandwidth = None
        if self._by_bandwidth():
            bandwidth = self._bench(osd, LARGE_BENCH, "bytes_per_sec")
            settings[BANDWIDTH_OPTION + kind] = round(bandwidth)
            if not 1 / BENCH_FACTOR <= bandwidth / max(capacity.bandwidth, 1.0) <= BENCH_FACTOR:
                doubts.append(
                    f"osd.{osd} has {capacity.bandwidth / MB:.6g} MB/s ({capacity.bandwidth_source}), its bench gave "
                    f"{bandwidth / MB:.6g}: it is what large writes, recovery and scrub are reckoned by"
                )
        target = f"osd.{osd}"
        number = self._write(target, settings, "capacity measured anew") if store else None
        return {
            "osd": osd,
            "kind": kind,
            "measured": iops,
            "iops": capacity.iops,
            "source": capacity.source,
            "bandwidth": bandwidth,
            "bandwidth_in_force": capacity.bandwidth,
            "bandwidth_source": capacity.bandwidth_source,
            "findings": doubts,
            "commands": [_command(target, name, value) for name, value in settings.items()],
            "stored": store,
            "change": number,
        }

    def measure_class(
        self, name: str, osds: Sequence[int], store: bool, canary: Container[int], on_trial: bool, sight: Sight
    ) -> Dict[str, Any]:
        """Bench some OSDs of a class, one after the other, and plan how to roll out what they are like.

        Each gets its own IOPS. The bandwidth is one for the class, where its OSDs agree. Raises InputError where none
        can be measured.
        """
        rows: List[Dict[str, Any]] = []
        left_out: List[str] = []
        for osd in spread(osds, CLASS_OSDS):
            row, reason = self._attempt(osd, canary, on_trial, sight)
            rows += [row] if row is not None else []
            left_out += [reason] if reason else []
        if not rows:
            raise InputError("capacity measure-class", "; ".join(left_out) or f"no OSD of {name}", "idle OSDs")
        rates = [row["bandwidth"] for row in rows if row["bandwidth"] is not None]
        alike = bool(rates) and max(rates) <= BENCH_FACTOR * min(rates)
        iops = {f"osd.{row['osd']}": {CAPACITY_OPTION + row["kind"]: row["measured"]} for row in rows}
        plan: List[Tuple[str, Dict[str, Any]]] = list(iops.items())
        if alike:
            plan.append((f"osd/class:{name}", {BANDWIDTH_OPTION + rows[0]["kind"]: round(statistics.median(rates))}))
        elif rates:
            plan = [(target, {**settings, **_own(rows, target)}) for target, settings in plan]
        numbers = [self._write(target, settings, f"capacity of {name} measured") for target, settings in plan if store]
        return {
            "device_class": name,
            "osds": rows,
            "left_out": left_out,
            "of": len(osds),
            "alike": alike,
            "commands": [_command(target, *each) for target, settings in plan for each in settings.items()],
            "stored": store,
            "changes": [number for number in numbers if number is not None],
        }

    def _attempt(
        self, osd: int, canary: Container[int], on_trial: bool, sight: Sight
    ) -> Tuple[Optional[Dict[str, Any]], str]:
        """What an OSD measured, or why it must not be."""
        try:
            return self.measure(osd, False, canary, on_trial, sight), ""
        except InputError as fault:
            return None, fault.found

    def _bench(self, osd: int, arguments: Dict[str, int], what: str) -> float:
        answers = self._commander.tell_many([(f"osd.{osd}", "bench", arguments)], BENCH_S)
        try:
            rate = float(read_json(answers[f"osd.{osd}", "bench"], "bench")[what])
            if not 0.0 < rate < math.inf:
                raise ValueError(f"{what} (={rate}) must be above 0")
        except MISREAD as error:
            raise CommandFailed(f"tell osd.{osd} bench", -5, "no result") from error
        return rate

    def _note_rate(self, osd: int) -> None:
        """The most client writes of an OSD, as means between two reports."""
        now, before = self._written(osd), self._counts.get(osd)
        if len(now) != 2:
            return
        self._counts[osd] = (now[0], now[1])
        if before is not None and now[0] > before[0] and now[1] >= before[1]:
            rate = (now[1] - before[1]) / (now[0] - before[0])
            self._served[osd] = max(rate, self._served.get(osd, 0.0))

    def _operations(self, osd: int) -> Optional[float]:
        """Client operations per second that it serves just now."""
        first = self._count(osd)
        start = time.monotonic()
        time.sleep(LOOK_S)
        second = self._count(osd)
        if first is None or second is None:
            return None
        return max(second - first, 0.0) / (time.monotonic() - start)

    def _count(self, osd: int) -> Optional[float]:
        answers = self._commander.tell_many([(f"osd.{osd}", "perf dump", {})], LOOK_S)
        try:
            counters = read_json(answers[f"osd.{osd}", "perf dump"], "perf dump", ANSWER)["osd"]
            return float(sum(counters[name] for name in _OPERATIONS))
        except MISREAD:
            return None

    def _work(self, osd: int) -> List[str]:
        """Kinds of background work on its PGs."""
        states = {word for state in self._pg_states(osd) for word in state.split("+")}
        return [word for word in _WORK if word in states]


def _own(rows: Sequence[Dict[str, Any]], target: str) -> Dict[str, Any]:
    """The bandwidth that this OSD measured itself."""
    row = next(row for row in rows if f"osd.{row['osd']}" == target)
    return {BANDWIDTH_OPTION + row["kind"]: round(row["bandwidth"])}


def _command(target: str, name: str, value: float) -> str:
    text = str(value) if isinstance(value, int) else f"{value:.6g}"
    return f"ceph config set {target} {name} {text}"
