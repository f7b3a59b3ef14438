"""Boosts by rule: `recovery after 5min at-most 6h keep client.p95_ms<=20, scrub after 1d`.

A rule fires once for a piece of work: after the boost it is silent until nothing of that work has been left, so that a
boost that the guard ended does not begin again and again. One of a rule's that the calendar ended begins again once it
may.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, FrozenSet, Iterable, Iterator, Mapping, Optional, Tuple

from ceph_tuner.core.boost.events import AT_MOST_S, Request
from ceph_tuner.core.boost.kinds import KINDS
from ceph_tuner.core.boost.state_machine import CALENDAR, CLEAN
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.moments import duration, duration_s

OPTION = "boost_rules"
_RULE = re.compile(r"([a-z]{1,20}) after ([0-9a-z.]{1,20})(?: at-most ([0-9a-z.]{1,20}))?(?: keep ([^,]{1,400}))?")
_MOST = 10
_BY = "the rule "
"""How whoever began a boost is called where that was a rule."""


@dataclass(frozen=True)
class Rule:
    """Boost this work once it has lasted so long."""

    kind: str
    after_s: float
    at_most_s: float = AT_MOST_S
    keep: str = ""

    @property
    def by(self) -> str:
        """Who begins its boosts."""
        return f"{_BY}`{self.kind} after {duration(self.after_s)}`"


def parse_rules(text: str) -> Tuple[Rule, ...]:
    """Read the option; raises InputError."""
    parts = [part for part in map(str.strip, text.split(",")) if part]
    if len(parts) > _MOST:
        raise InputError(OPTION, f"{len(parts)} rules", f"at most {_MOST}")
    rules = tuple(map(_parse, parts))
    if len({rule.kind for rule in rules}) < len(rules):
        raise InputError(OPTION, repr(text[:100]), "one rule for each kind of work")
    return rules


def _parse(text: str) -> Rule:
    match = _RULE.fullmatch(" ".join(text.split()))
    if match is None or match[1] not in KINDS:
        raise InputError(OPTION, repr(text[:100]), "such as `recovery after 5min at-most 6h keep client.p95_ms<=20`")
    at_most_s = duration_s(match[3], OPTION) if match[3] else AT_MOST_S
    rule = Rule(match[1], duration_s(match[2], OPTION), at_most_s, match[4] or "")
    # its bounds are those of a command
    Request(rule.kind, rule.at_most_s)
    return rule


@dataclass(frozen=True)
class RuleWatch:
    """Since when each kind of work has been there, and for which of it a boost has had its turn."""

    since: Mapping[str, float] = field(default_factory=dict)
    spent: FrozenSet[str] = frozenset()

    @classmethod
    def after_boosts(cls, outcomes: Iterable[Mapping[str, Any]]) -> RuleWatch:
        """As a mgr that has just become active knows it: by what came of boosts, the oldest first."""
        watch = cls()
        for outcome in outcomes:
            watch = watch.ended(outcome)
        return watch

    def ended(self, outcome: Mapping[str, Any]) -> RuleWatch:
        """A boost has ended, whoever began it, with this outcome: what it left is not for a rule to begin again."""
        kind, rule = str(outcome.get("kind", "")), outcome.get("rule")
        is_own = str(outcome.get("by", "")).startswith(_BY)
        if rule == CLEAN or (rule == CALENDAR and is_own):
            # of what the calendar ended nobody said that it was enough
            return RuleWatch(self.since, self.spent - {kind})
        if rule == CALENDAR:
            # an operator's: what ended the rule's own before it holds
            return self
        return self.fired(kind) if kind in KINDS else self

    def after(self, at: float, means: Mapping[str, float]) -> RuleWatch:
        """Take a sample; what it does not show stays as it is."""
        since, spent_kinds = dict(self.since), self.spent
        for kind in KINDS.values():
            remainder = kind.left_in(means)
            if remainder == 0:
                since.pop(kind.name, None)
                spent_kinds = spent_kinds - {kind.name}
            elif remainder is not None:
                # a clock that was set back begins to count anew
                since[kind.name] = min(since.get(kind.name, at), at)
        return RuleWatch(since, spent_kinds)

    def due(self, rules: Tuple[Rule, ...], at: float) -> Optional[Rule]:
        """The first rule whose work has lasted long enough and had no boost."""
        return next((rule for rule in self._lasting(rules, at) if rule.kind not in self.spent), None)

    def silent(self, rules: Tuple[Rule, ...], at: float) -> Tuple[Rule, ...]:
        """The rules whose work has lasted long enough, and had its boost."""
        return tuple(rule for rule in self._lasting(rules, at) if rule.kind in self.spent)

    def _lasting(self, rules: Tuple[Rule, ...], at: float) -> Iterator[Rule]:
        return (rule for rule in rules if rule.kind in self.since and at - self.since[rule.kind] >= rule.after_s)

    def fired(self, kind: str) -> RuleWatch:
        """A boost of this work has begun, or makes no sense."""
        return RuleWatch(self.since, self.spent | {kind})
