"""The twin's monitors: the configuration database with its sections and masks, and the key-value store."""

from __future__ import annotations

import errno
import json
import re
from collections import deque
from dataclasses import replace
from typing import Any, Callable, Deque, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from ceph_tuner.cluster.balancer import MAX_DEVIATION
from ceph_tuner.core.ceph.ports import ConfigEntry
from ceph_tuner.core.ceph.target import LOCATION_TYPES, Place, Target, section_of
from ceph_tuner.core.changes.config_database import Database
from ceph_tuner.core.errors import CommandFailed
from ceph_tuner.core.knobs.catalogue import KNOBS
from ceph_tuner.core.knobs.releases import Release, Version
from twin_cluster.options import kept, known, stock
from twin_cluster.osd import Key, TwinOsd
from twin_cluster.pgs import stamp

VALUE_MAX = 65536
"""Bytes of a value in the key-value store."""

_SECTION = re.compile(r"(global|(mon|mgr|osd|mds|client)(\.[A-Za-z0-9_.-]+)?)\Z")
_ROUNDS = 100
_INSTANT_S = 1e-9


class TwinMonitors:
    """Commands of the configuration database and of the key-value store, and the OSDs that follow the former.

    A commit reaches the OSDs `lag_s` seconds later, whatever came meanwhile with it (0: at once).
    """

    def __init__(
        self,
        osds: Sequence[TwinOsd],
        release: Release,
        version: Version,
        now: Callable[[], float],
        wall_clock: Callable[[], float],
        table: Optional[Mapping[Key, str]] = None,
        lag_s: float = 0.0,
    ) -> None:
        if not lag_s >= 0:
            raise ValueError(f"lag_s(={lag_s}) must be 0 or more")
        self._osds, self._release, self._version, self._now, self._lag_s = osds, release, version, now, lag_s
        self._table: Dict[Key, str] = {}
        self._wall_clock = wall_clock
        self._log: List[Dict[str, Any]] = []
        self._keys: Dict[str, str] = {}
        self._waiting: Deque[Tuple[float, str]] = deque()
        for (who, name), value in (table or {}).items():
            self._table[self._section(who, "config set"), name] = self._checked(name, value, "config set")
        for osd in osds:
            self._start(osd)

    @property
    def commands(self) -> Dict[str, Callable[[Mapping[str, str], str], str]]:
        """What the monitors answer here, by prefix; each takes arguments and payload."""
        return {
            "config set": self._config_set,
            "config rm": self._config_rm,
            "config log": self._config_log,
            "config dump": self._config_dump,
            "config get": self._config_get,
            "config show": self._config_show,
            "config-key set": self._key_set,
            "config-key get": self._key_get,
            "config-key rm": self._key_rm,
            "config-key exists": self._key_exists,
            "config-key ls": lambda arguments, payload: json.dumps(sorted(self._keys)),
            "config-key dump": self._key_dump,
        }

    def next_delivery(self) -> Optional[float]:
        """When the OSDs hear of something; None where they know all."""
        return self._waiting[0][0] if self._waiting else None

    def deliver(self) -> bool:
        """Let the OSDs take over what is due. Returns whether something was."""
        for round_number in range(_ROUNDS):
            changed: Set[str] = set()
            while self._waiting and self._waiting[0][0] <= self._now() + _INSTANT_S:
                changed.add(self._waiting.popleft()[1])
            if not changed:
                return round_number > 0
            keys: Set[Key] = set()
            for osd in self._osds:
                values = self._decided(osd.place, changed)
                keys.update(osd.notice({name: values.get(name) for name in sorted(changed)}))
            for key in sorted(keys):
                self._commit(key, None)
        raise RuntimeError("the OSDs and the monitors do not come to rest")

    def restart(self, osd: TwinOsd) -> None:
        """Let an OSD start anew: it forgets what its scheduler had."""
        osd.born += 1
        self._start(osd)

    def _start(self, osd: TwinOsd) -> None:
        """What stands under its device class reaches an OSD only after its scheduler has begun."""
        names = {name for _, name in self._table}
        osd.boot(self._decided(replace(osd.place, device_class=""), names))
        values = self._decided(osd.place, names)
        for key in sorted(osd.notice({name: values.get(name) for name in sorted(names)})):
            self._commit(key, None)

    # the configuration database

    def _config_set(self, arguments: Mapping[str, str], payload: str) -> str:
        name = arguments["name"]
        key = self._section(arguments["who"], "config set"), name
        self._commit(key, self._checked(name, arguments["value"], "config set"))
        return ""

    def _config_rm(self, arguments: Mapping[str, str], payload: str) -> str:
        self._commit((self._section(arguments["who"], "config rm"), arguments["name"]), None)
        return ""

    def _config_dump(self, arguments: Mapping[str, str], payload: str) -> str:
        rows = []
        for (who, name), value in sorted(self._table.items(), key=_dump_order):
            section, _, mask = who.partition("/")
            row: Dict[str, Any] = {"section": section, "name": name, "value": value, "mask": mask, "level": "advanced"}
            row["can_update_at_runtime"] = name not in KNOBS or KNOBS[name].change == "live"
            target = section_of(who)
            if target is not None and target.location_type:
                row.update(location_type=target.location_type, location_value=target.location)
            if target is not None and target.device_class:
                row["device_class"] = target.device_class
            rows.append(row)
        return json.dumps(rows)

    def _config_get(self, arguments: Mapping[str, str], payload: str) -> str:
        who, name = self._section(arguments["who"], "config get"), arguments.get("key", "")
        if "/" in who:
            raise refusal("config get", errno.EINVAL, f"unrecognized entity '{who}'")
        number = re.match(r"osd\.(\d+)\Z", who)
        places = [osd.place for osd in self._osds if number and osd.place.osd == int(number[1])]
        # `osd` and the like are nowhere: no mask fits them
        place = places[0] if places else Place(-1)
        names = {option for _, option in self._table}
        if who.split(".")[0] == "osd":
            values = self._decided(place, names)
        else:
            values = {option: value for (section, option), value in self._table.items() if section in ("global", who)}
        if not name:
            return json.dumps({option: {"value": value} for option, value in sorted(values.items())})
        if name == MAX_DEVIATION.name:
            return values.get(name, f"{MAX_DEVIATION.default:g}") + "\n"
        if name not in values and known(name, self._release, self._version) is None:
            raise refusal("config get", errno.ENOENT, f"unrecognized key '{name}'")
        return (values[name] if name in values else stock(self._release, self._version)[name]) + "\n"

    def _config_show(self, arguments: Mapping[str, str], payload: str) -> str:
        """What an OSD last told the mgr of its options that are not at their default."""
        osd = self.osd(arguments["who"], "config show")
        shown, rows = osd.effective(), []
        for name, levels in osd.differences().items():
            sources = [source for source in ("mon", "override") if source in levels]
            rows.append({"name": name, "value": shown[name], "source": sources[-1], "ignores": ""})
        return json.dumps(rows)

    def osd(self, daemon: str, command: str) -> TwinOsd:
        """The OSD of that name (`osd.3`). Raises CommandFailed."""
        kind, _, number = daemon.partition(".")
        for osd in self._osds:
            if kind == "osd" and number == str(osd.place.osd):
                return osd
        raise refusal(command, errno.ENXIO, f"problem getting command descriptions from {daemon}")

    def _section(self, who: str, command: str) -> str:
        """A section in the form in which it is stored. Raises CommandFailed."""
        section, *masks = who.split("/")
        if not _SECTION.match(section):
            raise refusal(command, errno.EINVAL, f"unrecognized config target '{who}'")
        if not masks:
            return section
        # the masks of any section have the form of an OSD's
        target = section_of("/".join(["osd", *masks]))
        if target is None or (target.location_type and target.location_type not in LOCATION_TYPES):
            raise refusal(command, errno.EINVAL, f"unrecognized config target '{who}'")
        return str(Target(section, target.location_type, target.location, target.device_class))

    def _checked(self, name: str, text: str, command: str) -> str:
        if name.startswith("mgr/"):
            return text
        entry = known(name, self._release, self._version)
        if entry is None:
            raise refusal(command, errno.EINVAL, f"unrecognized config option '{name}'")
        try:
            return kept(entry, text, self._release)
        except ValueError as fault:
            raise refusal(command, errno.EINVAL, f"error parsing value: {fault}") from fault

    def _decided(self, place: Place, names: Set[str]) -> Dict[str, str]:
        """What the database says for an OSD at that place."""
        rows = sorted(self._table.items(), key=_dump_order)
        database = Database(ConfigEntry(who, name, value) for (who, name), value in rows)
        values = {name: database.value(name, place) for name in sorted(names)}
        return {name: value for name, value in values.items() if value is not None}

    def _commit(self, key: Key, value: Optional[str]) -> None:
        if self._table.get(key) == value:
            return
        if value is None:
            del self._table[key]
        else:
            self._table[key] = value
        self._log.append({"timestamp": stamp(self._wall_clock()), "changes": [{"name": "/".join(key)}]})
        self._waiting.append((self._now() + self._lag_s, key[1]))

    def _config_log(self, arguments: Mapping[str, str], payload: str) -> str:
        return json.dumps(self._log[: -1 - int(arguments.get("num", "10")) : -1])

    # the key-value store

    def _key_set(self, arguments: Mapping[str, str], payload: str) -> str:
        value = payload or arguments.get("val", "")
        if len(value.encode()) > VALUE_MAX:
            raise refusal("config-key set", errno.EFBIG, f"error: entry size limited to {VALUE_MAX} bytes")
        self._keys[arguments["key"]] = value
        return ""

    def _key_get(self, arguments: Mapping[str, str], payload: str) -> str:
        if arguments["key"] not in self._keys:
            raise refusal("config-key get", errno.ENOENT, f"error obtaining '{arguments['key']}'")
        return self._keys[arguments["key"]]

    def _key_exists(self, arguments: Mapping[str, str], payload: str) -> str:
        if arguments["key"] not in self._keys:
            raise refusal("config-key exists", errno.ENOENT, f"key '{arguments['key']}' doesn't exist")
        return ""

    def _key_rm(self, arguments: Mapping[str, str], payload: str) -> str:
        self._keys.pop(arguments["key"], None)
        return ""

    def _key_dump(self, arguments: Mapping[str, str], payload: str) -> str:
        prefix = arguments.get("key", "")
        return json.dumps({key: value for key, value in sorted(self._keys.items()) if key.startswith(prefix)})


def refusal(command: str, code: int, words: str) -> CommandFailed:
    """What the cluster answers to a command that it does not carry out."""
    return CommandFailed(f"ceph {command}", -code, words)


def _dump_order(row: Tuple[Key, str]) -> List[Any]:
    """`config dump` goes from `global` over the kinds of daemons to single ones, and by name in each."""
    (who, name), _ = row
    section = who.partition("/")[0]
    return [0 if section == "global" else 2 if "." in section else 1, section, name, who]
