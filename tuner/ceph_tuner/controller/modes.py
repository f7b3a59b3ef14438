"""The automatic mode, as a CephTuningMode states it: the mode of each class, and options of the module."""

from __future__ import annotations

from typing import Any, Collection, Dict, List, Mapping, Sequence

from ceph_tuner.cluster.plugin_commands import plugin_answer
from ceph_tuner.controller.kinds import MODE
from ceph_tuner.controller.levels import Value
from ceph_tuner.controller.resource import Resource
from ceph_tuner.core.autopilot.policy import Policy, option_name, options
from ceph_tuner.core.autopilot.state import MODES, OFF
from ceph_tuner.core.ceph.commands import CommandConfig, shaped
from ceph_tuner.core.ceph.ports import Commander
from ceph_tuner.core.errors import InputError, Stopped

_MODE, _OPTION = "mode/", "option/"
_WHO, _PREFIX = "mgr", "mgr/tuner/"


class ModePart:
    """`part.Part` of the automatic mode."""

    kind = MODE

    def __init__(self, commander: Commander) -> None:
        self._commander, self._config = commander, CommandConfig(commander)

    def scope(self, resource: Resource) -> str:
        """The device class: those of different classes do not state the same."""
        return str(resource.spec.get("deviceClass") or "")

    def values(self, resource: Resource, others: Sequence[Resource]) -> Dict[str, Value]:
        """Raises InputError, and as `plugin_answer` does: without a class it depends on which classes there are."""
        spec = resource.document.data
        policy = dict(spec.get("policy") or {})
        if policy and spec.get("deviceClass"):
            raise InputError(
                f"{resource}: spec.policy", "options beside a deviceClass", "them in the resource without one"
            )
        names = {option_name(item): item.name for item in options()}
        # refuses what makes no sense together
        Policy(**{names[name]: value for name, value in policy.items()})
        modes = {f"{_MODE}{name}": spec["mode"] for name in self._classes(resource, others)}
        # the mode is switched on under its policy, and not before
        return {**{f"{_OPTION}{name}": _text(value) for name, value in policy.items()}, **modes}

    def _classes(self, resource: Resource, others: Sequence[Resource]) -> List[str]:
        named = self.scope(resource)
        if named:
            return [named]
        # one that is being deleted has its class until it is taken back
        own = {self.scope(other) for other in others if not other.deleted or other.is_held}
        with_objectives = self._modes().keys() - {""}
        return sorted(with_objectives - own) if with_objectives else [""]

    def check_noted(self, key: str, value: Value) -> None:
        """Raise InputError for another option of the module than the policy's, and for what is no value of its key."""
        if key.startswith(_MODE):
            if value not in MODES:
                raise InputError(f"its key {key!r:.60}", repr(value)[:60], f"one of {', '.join(MODES)}")
            return
        # the module has options that say which program it runs
        if not key.startswith(_OPTION) or key[len(_OPTION) :] not in map(option_name, options()):
            raise InputError("its key", repr(key)[:60], "a mode, or an option of the policy")
        if value is not None and not isinstance(value, str):
            raise InputError(f"its key {key!r}", repr(value)[:60], "text, or null")

    def at_cluster(self, keys: Collection[str]) -> Dict[str, Value]:
        """What the module and the monitors say. Raises as `plugin_answer` and `CommandConfig` do."""
        modes = self._modes()
        has_options = any(key.startswith(_OPTION) for key in keys)
        rows = {row.name: row.value for row in self._config.dump() if row.who == _WHO} if has_options else {}
        return {
            # a class without objectives has no mode that could be on
            key: modes.get(key[len(_MODE) :], OFF) if key.startswith(_MODE) else rows.get(_PREFIX + key[len(_OPTION) :])
            for key in keys
        }

    def write(self, key: str, value: Value) -> None:
        """Switch a mode, or set an option. Raises as `plugin_answer` and `CommandConfig` do."""
        if key.startswith(_OPTION):
            name = _PREFIX + key[len(_OPTION) :]
            if value is None:
                self._config.remove(_WHO, name)
            else:
                self._config.set(_WHO, name, value)
            return
        device_class = {"device_class": key[len(_MODE) :]} if key != _MODE else {}
        if value == OFF:
            plugin_answer(self._commander, "tuner auto off", device_class)
        else:
            plugin_answer(self._commander, "tuner auto on", {"mode": value, **device_class})

    def words(self, key: str, value: Value) -> str:
        """What a value is, for people."""
        if key.startswith(_OPTION):
            name = key[len(_OPTION) :]
            return f"{name} unset" if value is None else f"{name} = {value}"
        return f"the mode {value}{f' of the class {key[len(_MODE) :]}' if key != _MODE else ''}"

    def _modes(self) -> Dict[str, str]:
        """Device class -> mode; the cluster's own under the empty name."""
        try:
            answer: Mapping[str, Any] = plugin_answer(self._commander, "tuner auto explain", {})
        except InputError as fault:
            # no resource is to blame for it
            raise Stopped(str(fault), "") from fault
        with shaped("tuner auto explain"):
            classes = {str(name): str(mode["mode"]) for name, mode in answer["classes"].items()}
            return {"": str(answer["mode"]), **classes}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:.15g}"
