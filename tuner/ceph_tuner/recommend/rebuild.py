"""What lies beyond live knobs: changes that need restarts or move data. Tried on the twin alone, never written.

Change      another cluster than the one in force: which knobs, and the model of what it would be
changes()   those that are worth a simulation
Step        one command of a plan
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import Dict, List, Mapping, Optional, Tuple

from ceph_tuner.core.ceph.target import Target
from ceph_tuner.core.knobs.catalogue import KNOBS, MCLOCK_NINE, PROFILE
from ceph_tuner.core.knobs.releases import Settings, Value
from ceph_tuner.core.knobs.settings import format_settings
from ceph_tuner.core.profiles.translation import to_release_units
from ceph_tuner.twin.knobs_in_force import completed
from ceph_tuner.twin.model import ClusterModel, Work

RESTART, MOVES_DATA = "restart", "moves data"
"""`Knob.change` of what is tried here, the cheaper one first."""

PGS_PER_OSD = (30.0, 250.0)
"""Copies of PGs on an OSD, the mean, between which a pool's pg_num is searched. Fewer lie too unevenly; 250 is what
Ceph itself accepts before Tentacle (`mon_max_pg_per_osd`)."""

PG_FACTORS = (0.5, 4.0)
"""Ends of that search, times the present number."""

CLEAN = "`ceph pg stat` says that all PGs are active+clean, scrubbing or not, or as many as before"
"""When the next OSDs may be restarted: a cluster with a backlog of other work never has all PGs clean and at rest."""

THREADS_IN_ALL = (0.5, 2.0)
"""Threads of an OSD, of those in force: the twin knows no limit of the CPU, so more of them always help there."""


@dataclass(frozen=True)
class RebuildStep:
    """A command, for which of the cluster's parts it is given one after the other, and what to wait for then."""

    command: str
    each: str = ""
    until: str = ""
    note: str = ""
    """What else is to be known of it."""


@dataclass(frozen=True)
class RebuildChange:
    """`model` is the cluster with it. Knobs of pools have the pool's name; those of OSDs have none."""

    kind: str
    model: ClusterModel
    values: Mapping[str, Tuple[Value, Value]]
    """Knob -> before, after."""
    pool: Optional[str] = None

    @property
    def label(self) -> str:
        """For people: `rbd: pg_num 64 to 128`."""
        words = ", ".join(f"{name} {before} to {after}" for name, (before, after) in self.values.items())
        return f"{self.pool}: {words}" if self.pool else words

    def steps(self, settings: Settings, target: str = "osd") -> Tuple[RebuildStep, ...]:
        """How to make it on a target's OSDs, with these live settings in force."""
        return self._steps(settings, {name: after for name, (_, after) in self.values.items()}, target)

    def undo(self, settings: Settings, model: ClusterModel, target: str = "osd") -> Tuple[RebuildStep, ...]:
        """The way back to `model`: as long and as costly as the way there. None where a pool's PGs cannot go back."""
        back = replace(self, model=model)
        return back._steps(settings, {name: before for name, (before, _) in self.values.items()}, target)

    def _steps(self, settings: Settings, values: Mapping[str, Value], target: str) -> Tuple[RebuildStep, ...]:
        if self.pool is not None:
            (number,) = map(int, values.values())
            if number & (number - 1):
                return ()
            # in small steps that clients bear: Ceph itself would go there in one leap
            pool = shlex.quote(self.pool)
            bound = "pg_num_min" if number == max(map(int, *self.values.values())) else "pg_num_max"
            return (
                RebuildStep(
                    f"ceph-tuner pgs step {pool} {number} --cluster ceph --pause-autoscaler",
                    until="it says that it is done",
                    note=f"it shows its plan, and moves with --yes; where the pool's autoscaler is on, "
                    f"`ceph osd pool set {pool} {bound} {number}` keeps that from going back",
                ),
            )
        model = self.model
        where, each = entries_for(target)
        own_entries = [RebuildStep(f"ceph config set {where} {name} {value}", each) for name, value in values.items()]
        commands: List[str] = []
        if model.release.units == "iops" and settings.get(PROFILE, "custom") == "custom":
            # per shard there: the same shares of an OSD are other numbers with other shards
            whole = completed(settings, model.release)
            own = to_release_units({name: whole[name] for name in MCLOCK_NINE}, model.release, model.osd.hardware)
            texts = format_settings(own, model.release).items()
            commands += [f"ceph config set {target} {name} {text}" for name, text in texts]
        return (*own_entries, *(RebuildStep(command) for command in commands), *restart_steps(model))


def entries_for(target: str) -> Tuple[str, str]:
    """Where what an OSD reads at its start is to be set, and for which OSDs one by one; empty: once for all.

    What stands under a device class reaches an OSD after it has read such an option (docs/ceph-behaviour.md).
    """
    return ("osd.ID", f"OSD of {target}") if Target.parse(target).device_class else (target, "")


def restart_steps(model: ClusterModel, until: str = "") -> Tuple[RebuildStep, ...]:
    """Every OSD of the cluster once more from its start, one failure domain after the other; `until`: also that."""
    domain = "host" if model.hosts else "OSD"
    restart = "systemctl restart ceph-osd.target" if model.hosts else "systemctl restart ceph-osd@ID"
    return (
        RebuildStep("ceph osd set noout"),
        RebuildStep(restart, domain, f"{until}, and {CLEAN}" if until else CLEAN),
        RebuildStep("ceph osd unset noout"),
    )


def pgs_per_osd(model: ClusterModel) -> float:
    """Copies of PGs on an OSD, the mean."""
    return sum(pool.pgs * pool.size for pool in model.pools) / model.osds


def changes(model: ClusterModel, kind: str) -> List[RebuildChange]:
    """What a simulation can say something about: shards and threads (restart), pg_num (moves data)."""
    return _layouts(model) if kind == RESTART else _splits(model)


def _layouts(model: ClusterModel) -> List[RebuildChange]:
    """Queues and threads: halves and doubles, with about as many threads in all; and Ceph's own layouts."""
    osd, release = model.osd, model.release
    names = tuple(f"osd_op_num_{part}_{osd.device_class}" for part in ("shards", "threads_per_shard"))
    knobs = [KNOBS[name] for name in names]
    if not all(knob.change == RESTART and knob.effective(release, model.version).works for knob in knobs):
        return []
    now = (osd.shards, osd.threads_per_shard)
    layouts = {(round(now[0] * s), round(now[1] * t)) for s in (0.25, 0.5, 1, 2) for t in (0.5, 1, 2, 4)}
    # of hard disks, up to 18.2.4 and from then on
    layouts |= {(5, 1), (1, 5)} if osd.device_class == "hdd" else set()
    low, high = (part * now[0] * now[1] for part in THREADS_IN_ALL)
    layout_changes = []
    for layout in sorted(layouts - {now}):
        within = all(knob.low <= value <= knob.high for knob, value in zip(knobs, layout))
        if within and low <= layout[0] * layout[1] <= high:
            values = {name: (old, new) for name, old, new in zip(names, now, layout) if old != new}
            other = replace(osd, shards=layout[0], threads_per_shard=layout[1])
            layout_changes.append(RebuildChange(RESTART, replace(model, osd=other), values))
    return layout_changes


def _splits(model: ClusterModel) -> List[RebuildChange]:
    """Powers of two for the PGs of every pool that has work."""
    knob = KNOBS["pg_num"]
    works: Tuple[Work, ...] = (*model.clients, *model.recovery, *model.scrub, *model.snaptrim)
    busy = {work.pool for work in works}
    splits = []
    for pool in model.pools:
        low, high = (factor * pool.pgs for factor in PG_FACTORS)
        pg_counts = [1 << power for power in range(17) if low <= 1 << power <= high and 1 << power != pool.pgs]
        for pgs in pg_counts if pool.name in busy and knob.change == MOVES_DATA else ():
            pools = tuple(other.with_pgs(pgs) if other is pool else other for other in model.pools)
            other = replace(model, pools=pools)
            if PGS_PER_OSD[0] <= pgs_per_osd(other) <= PGS_PER_OSD[1] and knob.low <= pgs <= knob.high:
                splits.append(RebuildChange(MOVES_DATA, other, {knob.name: (pool.pgs, pgs)}, pool.name))
    return splits


def by_pool(stored_bytes: Mapping[str, float], model: ClusterModel) -> Dict[str, float]:
    """Bytes that clients stored in each pool: as described, or where all of it is scrubbed, as that says."""
    scrub_bytes: Dict[str, float] = {}
    for work in model.scrub:
        scrub_bytes[work.pool] = scrub_bytes.get(work.pool, 0.0) + work.objects * work.object_bytes
    return {**scrub_bytes, **stored_bytes}
