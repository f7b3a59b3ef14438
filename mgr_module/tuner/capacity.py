"""The capacity that each OSD's mClock reckons with, and who said so."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Sequence, Tuple

from ceph_tuner.core.ceph.commands import parsed
from ceph_tuner.core.ceph.ports import Commander, ConfigEntry
from ceph_tuner.core.errors import TunerError
from ceph_tuner.core.knobs.catalogue import KNOBS

CAPACITY_OPTION = "osd_mclock_max_capacity_iops_"
BANDWIDTH_OPTION = "osd_mclock_max_sequential_bandwidth_"


class Capacity(NamedTuple):
    """IOPS of one OSD; `source` is a section (`osd.3`, `osd/class:ssd`), `default`, or `file` and the like."""

    osd: int
    iops: float
    source: str
    bandwidth: float = 0.0
    """Bytes a second that it reckons with; 0 where the release does not."""
    bandwidth_source: str = "default"

    def to_dict(self) -> Dict[str, Any]:
        """For programs."""
        return {
            "osd": self.osd,
            "iops": self.iops,
            "source": self.source,
            "bandwidth": self.bandwidth,
            "bandwidth_source": self.bandwidth_source,
        }


def capacity_of(
    osd: int, kind: str, options: Sequence[Mapping[str, Any]], entries: Sequence[ConfigEntry], default: float
) -> Capacity:
    """Out of `config show osd.N` (options that differ from the default) and the monitors' database."""
    bandwidth_name = BANDWIDTH_OPTION + kind
    iops, source = _option(osd, CAPACITY_OPTION + kind, options, entries, default)
    usual = float(KNOBS[bandwidth_name].history[-1].default or 0)
    return Capacity(osd, iops, source, *_option(osd, bandwidth_name, options, entries, usual))


def _option(
    osd: int, name: str, options: Sequence[Mapping[str, Any]], entries: Sequence[ConfigEntry], default: float
) -> Tuple[float, str]:
    """An option's value and its source."""
    for row in options:
        if row["name"] == name and row["source"] != "default":
            source = str(row["source"])
            return float(row["value"]), _section(osd, name, entries) if source == "mon" else source
    return default, "default"


def read_capacities(
    commander: Commander, osds: Mapping[int, str], entries: Sequence[ConfigEntry], defaults: Mapping[str, float]
) -> List[Capacity]:
    """Capacity of each OSD (id -> `ssd` or `hdd`): one command each."""
    capacities = []
    for osd, kind in sorted(osds.items()):
        try:
            # what the OSD last told the mgr: it need not answer itself
            options = parsed(commander.mon("config show", {"who": f"osd.{osd}"}), "config show")
        except (TunerError, ValueError):
            continue
        capacities.append(capacity_of(osd, kind, options, entries, defaults[kind]))
    return capacities


def _section(osd: int, name: str, entries: Sequence[ConfigEntry]) -> str:
    sections = [entry.who for entry in entries if entry.name == name]
    if f"osd.{osd}" in sections:
        # where the OSD's own bench writes, too
        return f"osd.{osd}"
    masks = [section for section in sections if section.startswith("osd/")]
    return masks[0] if len(masks) == 1 else " or ".join(masks) or ("osd" if "osd" in sections else "global")
