"""Holds the stored capacities against what is known of the OSDs, and measures one anew when asked to."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any, Callable, Container, Dict, Iterable, List, Optional, Sequence, Tuple

from ceph_tuner.autopilot.capacity import Stored, findings, reason_not_to_bench, summary
from ceph_tuner.bounded import ANSWER, MISREAD, read_json
from ceph_tuner.errors import CommandFailed, InputError
from ceph_tuner.guard import Sight

from .capacity import Capacity
from .commander import MgrCommander
from .service import Inventory

BENCH = {"count": 12288000, "size": 4096, "object_size": 4194304, "object_num": 100}
"""As the OSD does it itself at its first boot."""
BENCH_S = 300.0
LOOK_S = 3.0
"""How long an OSD's clients are watched before it is measured."""

_WORK = ("recovering", "backfilling", "scrubbing", "snaptrim")
_OPERATIONS = ("op_r", "op_w", "op_rw")


class CapacityCheck:
    """`capacities` gives those in force, of some OSDs or of those named; `write` stores one, and gives its change."""

    def __init__(
        self,
        commander: MgrCommander,
        capacities: Callable[..., Sequence[Capacity]],
        inventory: Inventory,
        written: Callable[[int], Tuple[float, ...]],
        pg_states: Callable[[int], Iterable[str]],
        write: Callable[[str, Dict[str, Any], str], Optional[int]],
    ) -> None:
        """`written` gives an OSD's count of client writes after the time at which it was; empty where it has none.

        `pg_states` gives the states of its PGs, as `active+clean+scrubbing`.
        """
        self._commander, self._capacities, self._inventory = commander, capacities, inventory
        self._written, self._pg_states, self._write = written, pg_states, write
        self._counts: Dict[int, Tuple[float, float]] = {}
        self._served: Dict[int, float] = {}

    def report(self) -> Dict[str, Any]:
        """Capacities in force, and what speaks against them."""
        stored = []
        for capacity in self._capacities():
            self._note_served(capacity.osd)
            if capacity.iops > 0:
                kind, served = self._inventory.kind(capacity.osd), self._served.get(capacity.osd)
                stored.append(Stored(capacity.osd, kind, capacity.iops, capacity.source, served=served))
        rows = [{"osd": item.osd, "iops": item.iops, "source": item.source, "seen": item.served} for item in stored]
        return {"osds": rows, "findings": summary(findings(stored))}

    def measure(self, osd: int, store: bool, canary: Container[int], on_trial: bool, sight: Sight) -> Dict[str, Any]:
        """Bench an OSD. Raises InputError where it must not be measured now, or is not there."""
        capacity = next(iter(self._capacities([osd])), None) if osd in self._inventory.running() else None
        if capacity is None:
            raise InputError("capacity measure", f"osd.{osd}", "an OSD that is up and answers")
        kind = self._inventory.kind(osd)
        # none at all is a reason to measure it, and no capacity to reckon with
        in_force = Stored(osd, kind, max(capacity.iops, 1.0), capacity.source)
        reason = reason_not_to_bench(in_force, True, canary, self._operations(osd), self._work(osd), sight, on_trial)
        if reason is not None:
            raise InputError("capacity measure", reason, "an idle OSD of a steady cluster")
        answers = self._commander.tell_many([(f"osd.{osd}", "bench", BENCH)], BENCH_S)
        try:
            measured = float(read_json(answers[f"osd.{osd}", "bench"], "bench")["iops"])
            if not 0.0 < measured < math.inf:
                raise ValueError(f"iops (={measured}) must be above 0")
        except MISREAD as error:
            raise CommandFailed(f"tell osd.{osd} bench", -5, "no result") from error
        name = f"osd_mclock_max_capacity_iops_{kind}"
        number = self._write(f"osd.{osd}", {name: measured}, "capacity measured anew") if store else None
        found = findings([replace(in_force, bench=measured)])
        return {
            "osd": osd,
            "measured": measured,
            "iops": capacity.iops,
            "source": capacity.source,
            "findings": [finding.words for finding in found],
            "command": f"ceph config set osd.{osd} {name} {measured:.6g}",
            "stored": store,
            "change": number,
        }

    def _note_served(self, osd: int) -> None:
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
        started = time.monotonic()
        time.sleep(LOOK_S)
        second = self._count(osd)
        if first is None or second is None:
            return None
        return max(second - first, 0.0) / (time.monotonic() - started)

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
