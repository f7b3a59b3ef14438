"""A Commander by the dashboard's REST API: it answers the few commands that the API has an equivalent of.

What it cannot do it refuses with the way out, so that everything built on the ports works or says why not. Writes are
refused by this alone: the API reaches neither the key-value store (no journal, no lock) nor an OSD's own options (no
check of the effect), and it lists the configuration database without the masks, so that it could not be put back.
"""

from __future__ import annotations

import errno
import json
import re
from typing import Any, Callable, Dict, List, Mapping, NamedTuple

from ceph_tuner.cluster.dashboard_api import DashboardApi
from ceph_tuner.core.ceph.commands import shaped
from ceph_tuner.core.errors import CommandFailed, PermissionRefused

_NO_STORE = "it does not reach the cluster's key-value store, where SLOs, journal and lock are"
_NO_WRITE = "nothing is written through it: without that store there is no journal to take a change back by"
_NO_OPTIONS = "it does not show what an OSD's options are"
_NO_MASKS = "it lists sections without their masks: `osd/class:ssd` as `osd`"


class NotByRest(PermissionRefused):
    """The REST API has no way to do this."""

    def __init__(self, name: str, command: str, why: str) -> None:
        super().__init__(
            f"cluster {name}",
            f"`{command}` asked of its dashboard's REST API, but {why}",
            "`ceph: {conf: …, keyring: …}` for it in fleet.yaml",
        )
        self.why = why


class StatedOption(NamedTuple):
    """What the configuration database states for a section, under a mask or not: the API does not say."""

    section: str
    name: str
    value: str


class Dashboard:
    """`ports.Commander` of what the API can answer; every answer is asked for once and kept."""

    def __init__(self, api: DashboardApi) -> None:
        self._api, self.name = api, api.name
        self._kept: Dict[str, Any] = {}
        self._answers: Dict[str, Callable[[], Any]] = {
            "status": self._status,
            "health": self._health,
            "versions": self._versions,
            "osd tree": lambda: {"nodes": self._tree()},
            "osd metadata": self._metadata,
        }

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        """Answer of `status`, `health`, `versions`, `osd tree` or `osd metadata`.

        Raises NotByRest for others, and as the API does.
        """
        if prefix not in self._answers or payload:
            raise NotByRest(self.name, f"ceph {prefix}", _why_not(prefix))
        with shaped(prefix):
            return json.dumps(self._answers[prefix]())

    def tell(self, daemon: str, prefix: str, arguments: Mapping[str, str]) -> str:
        """Answer of an OSD's `perf histogram dump`. Raises NotByRest for others, and as the API does."""
        kind, _, number = daemon.partition(".")
        if (kind, prefix) != ("osd", "perf histogram dump") or arguments or not re.fullmatch("[0-9]+", number):
            raise NotByRest(self.name, f"ceph tell {daemon} {prefix}", _NO_OPTIONS)
        return json.dumps(self._api.get(f"osd/{number}/histogram"))

    def stated(self) -> List[StatedOption]:
        """Every entry of the configuration database that names an option of Ceph's own, without masks."""
        with shaped("cluster_conf"):
            return [
                StatedOption(str(entry["section"]), str(option["name"]), str(entry["value"]))
                for option in self._read("cluster_conf", list)
                for entry in option.get("value") or []
                # the dashboard adds the cluster's id to the list by itself
                if option["name"] != "fsid"
            ]

    def close(self) -> None:
        """End the connection."""
        self._api.close()

    def _status(self) -> Dict[str, Any]:
        status = str(self._part("health", "health")["status"])
        return {"fsid": str(self._osd_map()["fsid"]), "health": {"status": status}}

    def _health(self) -> Dict[str, Any]:
        health = self._part("health", "health")
        # the dashboard made a list of them
        return {**health, "checks": {str(check["type"]): _mapping(check) for check in health.get("checks", [])}}

    def _versions(self) -> Dict[str, Any]:
        counts: Dict[str, int] = {}
        for metadata in self._osd_map()["osd_metadata"].values():
            # an OSD that never ran has none
            if version := str(metadata.get("ceph_version") or ""):
                counts[version] = counts.get(version, 0) + 1
        mgr = {str(self._read("summary", dict)["version"]): 1}
        return {"osd": counts, "mon": {} if counts else mgr}

    def _tree(self) -> List[Any]:
        nodes = [_mapping(node) for node in self._osd_map()["tree"]["nodes"]]
        return [{**node, "id": int(node["id"]), "name": str(node["name"]), "type": str(node["type"])} for node in nodes]

    def _metadata(self) -> List[Any]:
        metadata = self._osd_map()["osd_metadata"].items()
        return [{**{key: str(value) for key, value in _mapping(own).items()}, "id": int(osd)} for osd, own in metadata]

    def _osd_map(self) -> Dict[str, Any]:
        return self._part("osd_map", "osd")

    def _part(self, name: str, scope: str) -> Dict[str, Any]:
        part = self._read("health/full", dict).get(name)
        if part is None:
            # the parts that a role may not read are left out
            raise PermissionRefused(
                f"cluster {self.name} GET /api/health/full", f"no {name}", f"a role that reads `{scope}`"
            )
        return dict(part)

    def _read(self, path: str, kind: type) -> Any:
        if path not in self._kept:
            document = self._api.get(path)
            if not isinstance(document, kind):
                raise CommandFailed(f"GET /api/{path}", -errno.EIO, f"answered a {type(document).__name__}")
            self._kept[path] = document
        return self._kept[path]


def _mapping(value: Any) -> Dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"a {type(value).__name__} in place of a mapping")
    return value


def _why_not(prefix: str) -> str:
    if prefix.startswith("config-key"):
        return _NO_STORE
    if prefix in ("config set", "config rm"):
        return _NO_WRITE
    if prefix == "config dump":
        return _NO_MASKS
    return _NO_OPTIONS if prefix.startswith("config") else "it has no such call"
