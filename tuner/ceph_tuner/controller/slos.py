"""The cluster's objectives, as a CephSLO states them: one key, whose value is the whole SLO."""

from __future__ import annotations

import json
from typing import Any, Collection, Dict, Mapping, Sequence

from ceph_tuner.cluster.plugin_commands import plugin_answer
from ceph_tuner.controller.kinds import SLO
from ceph_tuner.controller.levels import Value
from ceph_tuner.controller.resource import Resource
from ceph_tuner.core.ceph.commands import shaped
from ceph_tuner.core.ceph.ports import Clock, Commander
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.slo_calendar import parse_slo_calendar
from ceph_tuner.core.wording import first_of
from ceph_tuner.files import slo_file

KEY = "slo"
_NAMED = 5
"""Policies that a status names."""


class SloPart:
    """`part.Part` of the objectives."""

    kind = SLO

    def __init__(self, commander: Commander, clock: Clock) -> None:
        self._commander, self._clock = commander, clock

    def scope(self, resource: Resource) -> str:
        """A cluster has one SLO, so all that state one state the same."""
        return ""

    def values(self, resource: Resource, others: Sequence[Resource]) -> Dict[str, Value]:
        """Raises InputError."""
        file = slo_file.from_checked(resource.document, resource.name, self._clock.now())
        return {KEY: file.at_all_times.to_dict()}

    def check_noted(self, key: str, value: Value) -> None:
        """Raise InputError for another key, and for what is no SLO."""
        if key != KEY:
            raise InputError("its key", repr(key)[:60], repr(KEY))
        if value is not None and not (isinstance(value, dict) and isinstance(value.get("name"), str)):
            raise InputError(f"its key {KEY!r}", repr(value)[:60], "an SLO with its name, or null")

    def at_cluster(self, keys: Collection[str]) -> Dict[str, Value]:
        """What the module says. Raises as `plugin_answer` does."""
        answer = plugin_answer(self._commander, "tuner slo ls", {})
        return dict.fromkeys(keys, None if answer is None else _plain(answer))

    def write(self, key: str, value: Value) -> None:
        """Set the whole SLO, or remove all objectives. Raises as `plugin_answer` does."""
        if value is None:
            plugin_answer(self._commander, "tuner slo rm", {"metric": "all"})
        else:
            plugin_answer(self._commander, "tuner slo set", {"yes": "--yes"}, json.dumps(value))

    def words(self, key: str, value: Value) -> str:
        """What a value is, for people."""
        return "no objectives" if value is None else f"the SLO {value['name']}{_week(value)}"


def _week(value: Mapping[str, Any]) -> str:
    """Which policy holds when, in short, and the same at all times: each change of a status is an event."""
    calendar = value.get("calendar")
    if not isinstance(calendar, Mapping):
        return ""
    with shaped("the record"):
        policies = [f"{policy['name']} {policy['hours']}" for policy in calendar["policies"]]
        return f" ({first_of(policies, _NAMED, '; ')}; else base; {calendar['zone']})"


def _plain(answer: Mapping[str, Any]) -> Dict[str, Any]:
    """In the form in which resources state it, without what the module adds."""
    with shaped("tuner slo ls"):
        # the cluster keeps objectives in units of its own choice; read anew, equal ones are equal
        return parse_slo_calendar({name: part for name, part in answer.items() if name != "policy"}).to_dict()
