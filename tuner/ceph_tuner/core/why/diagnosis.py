"""Why work waits, as a whole: what was looked for and found, of what, and what could not be judged."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple

from ceph_tuner.core.checks import NotJudged, not_judged, unjudged_words
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.why.cause import Cause
from ceph_tuner.core.why.examination import CAUSES, examine
from ceph_tuner.core.why.facts import WhyFacts


class Diagnosis(NamedTuple):
    """What holds work, what holds most of it first."""

    facts: WhyFacts
    """Those that were asked for."""
    pool: str
    device_class: str
    causes: List[Cause]
    unjudged: List[NotJudged]

    @property
    def headline(self) -> str:
        """What comes before the causes, or in their place."""
        count = len(CAUSES)
        if self.unjudged:
            judged = f"{count - len(self.unjudged)} of {count}; {unjudged_words(self.unjudged)}"
            if not self.causes:
                return f"Nothing that was seen holds work now. Causes judged: {judged}"
            return f"What holds work now, what holds most of its work first. Causes judged: {judged}"
        if not self.causes:
            return f"Nothing holds work now: {count} causes were looked for."
        return "What holds work now, what holds most of its work first."

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, for programs."""
        return {
            "pool": self.pool or None,
            "device_class": self.device_class or None,
            "headline": self.headline,
            "asked": [osd.id for osd in self.facts.osds],
            "looked_for": list(CAUSES),
            "not_judged": [{"cause": name, "unseen": list(parts)} for name, parts in self.unjudged],
            "causes": [cause.to_dict() for cause in self.causes],
            "notes": list(self.facts.notes),
        }


def diagnose(facts: WhyFacts, pool: str = "", device_class: str = "", option: str = "{}") -> Diagnosis:
    """Examine what is about one pool or device class, or all; `option` names these to who asked. Raises InputError."""
    names = sorted(own.name for own in facts.pools.values())
    classes = sorted({osd.place.device_class for osd in facts.osds})
    for name, value, there in (("pool", pool, names), ("device-class", device_class, classes)):
        if value and value not in there:
            raise InputError(option.format(name), repr(value), f"one of: {', '.join(there[:8])}")
    own = facts.only(pool, device_class) if pool or device_class else facts
    return Diagnosis(own, pool, device_class, examine(own), not_judged(CAUSES, own, own.unseen))
