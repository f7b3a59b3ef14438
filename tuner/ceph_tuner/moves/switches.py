"""What else moves data by itself: the balancer and the PG autoscaler. Who fights whom, pausing, and giving back."""

from __future__ import annotations

import shlex
from typing import Iterable, List, Tuple

from ceph_tuner.cluster.balancer import OFF, balancer_mode
from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.ceph.commands import parsed, shaped
from ceph_tuner.core.errors import InputError
from ceph_tuner.moves import MapView, MovePool
from ceph_tuner.moves.record import MoveRecord, MoveStore

PAUSE_BALANCER, PAUSE_AUTOSCALER = "--pause-balancer", "--pause-autoscaler"


def balancer_on(cluster: Cluster) -> bool:
    """Whether the balancer acts by itself. Raises TunerError."""
    return balancer_mode(cluster.commander) != OFF


def autoscaled(view: MapView, pools: Iterable[MovePool]) -> Tuple[str, ...]:
    """Names of the pools whose pg_num the autoscaler changes by itself."""
    if "noautoscale" in view.flags:
        return ()
    return tuple(sorted(pool.name for pool in pools if pool.autoscale == "on"))


def balancer_fights(what: str) -> InputError:
    """The refusal where the balancer is on and nobody said what is to be done about it."""
    return InputError(
        "the balancer", f"it is on, and {what}", f"{PAUSE_BALANCER} (given back at the end), or `ceph balancer off`"
    )


def autoscaler_fights(pools: Tuple[str, ...]) -> InputError:
    """The same of the autoscaler."""
    command = shlex.join(["ceph", "osd", "pool", "set", pools[0], "pg_autoscale_mode", "off"])
    return InputError(
        f"pool {', '.join(pools)}",
        "pg_autoscale_mode on: the autoscaler would set pg_num back",
        f"{PAUSE_AUTOSCALER} (given back at the end), or `{command}`",
    )


def pause(cluster: Cluster, store: MoveStore, record: MoveRecord, balancer: bool, pools: Tuple[str, ...]) -> MoveRecord:
    """Pause them, what they were being stored first. Gives the record with it."""
    record = store.save(
        record.changed(balancer=record.balancer or balancer, autoscale=(*record.autoscale, *pools)), cluster.clock.now()
    )
    if balancer:
        cluster.commander.tell("mgr", "balancer off", {})
    for pool in pools:
        _autoscale(cluster, pool, "off")
    return record


def give_back(cluster: Cluster, store: MoveStore, record: MoveRecord) -> Tuple[MoveRecord, List[str]]:
    """Switch on again what the move has paused, and nothing else. Gives the record without it, and what was done."""
    lines = []
    # what may fail comes before anything is switched: a second try would switch the balancer on once more
    with shaped("osd dump"):
        rows = parsed(cluster.commander.mon("osd dump", {}), "osd dump")["pools"]
        modes = {str(row["pool_name"]): row.get("pg_autoscale_mode", "off") for row in rows}
    if record.balancer:
        cluster.commander.tell("mgr", "balancer on", {})
        lines.append("the balancer is on again")
    for pool in dict.fromkeys(record.autoscale):
        # another mode is somebody else's
        if modes.get(pool) == "off":
            _autoscale(cluster, pool, "on")
            lines.append(f"pool {pool} has pg_autoscale_mode on again")
    return store.save(record.changed(balancer=False, autoscale=()), cluster.clock.now()), lines


def _autoscale(cluster: Cluster, pool: str, mode: str) -> None:
    cluster.commander.mon("osd pool set", {"pool": pool, "var": "pg_autoscale_mode", "val": mode})
