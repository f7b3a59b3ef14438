"""A finding: what is wrong, by which evidence, what it costs, and what cures it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

from ceph_tuner.core.ceph.target import Place, covered
from ceph_tuner.core.wording import digits

POINTLESS, MISLEADING, COSTLY = "pointless", "misleading", "costly"
SEVERITIES = {
    POINTLESS: "settings do nothing, or next to nothing, where this holds",
    MISLEADING: "settings do something else than they say, or measurements do",
    COSTLY: "performance is lost that no setting of mClock brings back",
}

_SETTING = re.compile(r"ceph config (?:set|rm) (\S+) ")

RESTARTING = (
    "`systemctl` restarts an OSD of Ceph's packages, `ceph orch` one of cephadm's; under Rook, restart its deployment "
    "`rook-ceph-osd-ID`"
)
"""How, beside the commands of `restarts`."""


@dataclass(frozen=True)
class Finding:
    """One thing that stands in the way of tuning."""

    check: str
    """A name for programs, such as `capacity-unmeasured`."""
    severity: str
    title: str
    evidence: Tuple[str, ...]
    cost: str
    """What it costs, in words."""
    cure: str
    share: Optional[float] = None
    """The cost as a share of what is at stake, 0 to 1, where it can be reckoned."""
    commands: Tuple[str, ...] = ()
    """What cures it, as an operator would type it; the doctor runs none of them."""
    touches: Tuple[Place, ...] = ()
    """Running OSDs whose settings the commands change, all together; none where no command names any."""

    def __post_init__(self) -> None:
        """Hold it to its own laws: no finding without evidence."""
        if self.severity not in SEVERITIES or not self.evidence:
            raise ValueError(f"{self.check}: severity (={self.severity!r}) must be known, evidence be there")
        if self.share is not None and not 0 <= self.share <= 1:
            raise ValueError(f"{self.check}: a share (={self.share}) must be within 0 and 1")

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, for programs."""
        return {
            "check": self.check,
            "severity": self.severity,
            "title": self.title,
            "evidence": list(self.evidence),
            "cost": self.cost,
            "share": self.share,
            "cure": self.cure,
            "commands": list(self.commands),
            "touches": len(self.touches) or None,
        }


def by_cost(findings: Iterable[Finding]) -> List[Finding]:
    """Order findings: by severity, then by share; what cannot be reckoned comes last of its kind."""
    ranks = list(SEVERITIES)
    return sorted(findings, key=lambda finding: (ranks.index(finding.severity), -(finding.share or 0.0), finding.check))


def with_reach(finding: Finding, places: Sequence[Place]) -> Finding:
    """The same, with the OSDs that its commands would touch. One with a placeholder (`osd/class:CLASS`) names none."""
    sections = [match[1] for command in finding.commands if (match := _SETTING.match(command))]
    osds = {osd for section in sections for osd in covered(section, places)}
    return replace(finding, touches=tuple(place for place in places if place.osd in osds))


def restarts(osds: Iterable[int]) -> Tuple[str, ...]:
    """Commands that restart the first of these OSDs: by packages, and under cephadm. One of them fits a cluster."""
    first = min(osds)
    return f"systemctl restart ceph-osd@{first}", f"ceph orch daemon restart osd.{first}"


def size(nbytes: float) -> str:
    """Bytes as people read them: `1.5 TB`."""
    for scale, unit in ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if nbytes >= scale:
            return f"{digits(nbytes / scale)} {unit}"
    return f"{nbytes:.0f} B"
