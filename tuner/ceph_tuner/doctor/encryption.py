"""Messages that are encrypted on the network: a price that no setting of mClock brings back.

Published of a cluster of 630 NVMe OSDs: large reads fell from about 1 TiB/s to about 750 GiB/s.
"""

from __future__ import annotations

from typing import List

from ceph_tuner.core.changes.step import Step
from ceph_tuner.core.wording import named, some
from ceph_tuner.doctor.facts import OWN_SOURCES, Facts, decider, grouped
from ceph_tuner.doctor.finding import COSTLY, RESTARTING, Finding, restarts

LOST = 0.25
"""Of large reads."""
_MODES = ("ms_cluster_mode", "ms_service_mode")
"""Among OSDs, and with clients. The first mode of the list is what an OSD prefers: `crc secure` is not encrypted."""


def encryption(facts: Facts) -> List[Finding]:
    """OSDs that encrypt what they send to each other or to clients."""
    modes = [
        (osd, name, decider(facts, osd, name))
        for osd in facts.looked_at
        for name in _MODES
        if osd.options.get(name, "crc").split()[:1] == ["secure"]
    ]
    if not modes:
        return []
    lines = [(f"{name} is {osd.options[name]}, by {by}", osd.place.osd) for osd, name, by in modes]
    sections = dict.fromkeys(("osd" if by == "default" else by, name) for _, name, by in modes if by not in OWN_SOURCES)
    own = dict.fromkeys(by for _, _, by in modes if by in OWN_SOURCES)
    where = f" Change it in the OSDs' own {', '.join(own)}, too: no entry of the monitors outranks that." if own else ""
    return [
        Finding(
            "encryption",
            COSTLY,
            "Messages are encrypted on the network",
            some(f"{named(osds)}: {words}" for words, osds in grouped(lines).items()),
            f"about {LOST:.0%} of large reads on NVMe drives (published), and CPU time",
            f"Where the network is not trusted, this is its price. Where it is, prefer `crc secure`, then restart the "
            f"OSDs one by one, as they read it at their start: {RESTARTING}.{where}",
            share=LOST,
            commands=(
                *(Step(section, name, None, "crc secure").command for section, name in sections),
                *restarts(osd.place.osd for osd, _, _ in modes),
            ),
        )
    ]
