"""The mgr's balancer: whether it moves PGs by itself, and how far it evens them out."""

from __future__ import annotations

from ceph_tuner.core.ceph.commands import option_number, parsed, shaped
from ceph_tuner.core.ceph.ports import Commander
from ceph_tuner.core.measure.pg_counts import PgOption
from ceph_tuner.twin.model import UPMAP_MAX_DEVIATION

OFF = "off"
MAX_DEVIATION = PgOption("mgr", "mgr/balancer/upmap_max_deviation", float(UPMAP_MAX_DEVIATION))


def balancer_mode(commander: Commander) -> str:
    """`upmap`, `upmap-read`, `crush-compat`, `read`; `off` where it does nothing by itself. Raises TunerError."""
    answer = parsed(commander.mon("balancer status", {}), "balancer status")
    with shaped("balancer status"):
        return str(answer["mode"]) if answer["active"] and answer["mode"] != "none" else OFF


def evens_pgs_out(mode: str) -> bool:
    """Whether it is by upmaps that each pool's PGs are evened out over the OSDs."""
    return mode.startswith("upmap")


def upmap_max_deviation(commander: Commander) -> int:
    """PGs of a pool by which it lets an OSD differ from the mean; 0: it evens nothing out. Raises TunerError."""
    if not evens_pgs_out(balancer_mode(commander)):
        return 0
    return max(1, round(option_number(commander, MAX_DEVIATION.who, MAX_DEVIATION.name)))
