"""A stand-in for librados' Python, for `changes.py`: the twin's monitors and many OSDs, whose answers take time.

Every OSD has what the database decides for all, as it was `effect_ms` ago. Some hang, some go down after a while; both
are drawn by the seed. Installed as the module `rados` of the process behind `cluster/session.py`, which knows nothing.
"""

from __future__ import annotations

import errno
import json
import random
import sys
import threading
import time
import types
from typing import Any, Dict, List, Tuple

from ceph_tuner.core.ceph.target import Place
from ceph_tuner.core.errors import CommandFailed
from ceph_tuner.core.knobs.releases import TENTACLE
from twin_cluster.monitors import TwinMonitors
from twin_cluster.osd import TwinOsd

Answer = Tuple[int, bytes, str]
OPTIONS = 1900
"""Of a real OSD's `config show`: 60 KB."""
VERSION = (20, 2, 4)


class Cluster:
    """All of it, for whatever connections there are."""

    def __init__(self, given: Dict[str, Any]) -> None:
        self.answer_s, self.down_after_s = given["answer_ms"] / 1e3, given["down_after_s"]
        chosen = random.Random(given["seed"]).sample(range(given["osds"]), given["hang"] + given["down"])
        self.hanging, self.falling = set(chosen[: given["hang"]]), set(chosen[given["hang"] :])
        self.number, self.released = given["osds"], threading.Event()
        self._lock = threading.Lock()
        self._template = TwinOsd(Place(0, "ssd", {"host": "h0", "root": "default"}), TENTACLE, VERSION)
        self._monitors = TwinMonitors(
            [self._template], TENTACLE, VERSION, time.monotonic, lag_s=given["effect_ms"] / 1e3
        )
        self._padding = {f"some_option_number_{number}": "0.500000" for number in range(OPTIONS)}
        self._texts: Dict[str, str] = {}
        self._fall_at = float("inf")
        self.under_way, self.most = 0, 0

    def mon(self, command: Dict[str, Any], payload: str) -> str:
        prefix = command.pop("prefix")
        command.pop("format", None)
        if prefix == "versions":
            return json.dumps({"osd": {"ceph version 20.2.4 (stand-in) tentacle (stable)": self.number}})
        if prefix == "get_command_descriptions":
            return "{}"
        if prefix == "osd tree":
            return json.dumps({"nodes": self._nodes()})
        if prefix == "stand-in":
            return json.dumps({"most": self.most, "hanging": sorted(self.hanging), "falling": sorted(self.falling)})
        with self._lock:
            answer = self._monitors.commands[prefix](command, payload)
            if prefix == "config set" and self._fall_at == float("inf"):
                self._fall_at = time.monotonic() + self.down_after_s
            return answer

    def osd(self, number: int, prefix: str, within: float) -> str:
        with self._lock:
            self.under_way += 1
            self.most = max(self.most, self.under_way)
        try:
            if number in self.hanging:
                time.sleep(within)
                raise CommandFailed(prefix, -errno.ETIMEDOUT, "timed out")
            time.sleep(self.answer_s)
            if not self._up(number):
                raise CommandFailed(prefix, -errno.ENXIO, "problem getting command descriptions")
            with self._lock:
                if self._monitors.deliver() or prefix not in self._texts:
                    self._texts = {
                        "config show": json.dumps({**self._template.shown(), **self._padding}),
                        "config diff": json.dumps({"diff": self._template.differences()}),
                    }
                return self._texts[prefix]
        finally:
            with self._lock:
                self.under_way -= 1

    def _up(self, number: int) -> bool:
        return number not in self.falling or time.monotonic() < self._fall_at

    def _nodes(self) -> List[Dict[str, Any]]:
        root = {
            "id": -1,
            "type": "root",
            "name": "default",
            "children": [-2 - host for host in range(self.number // 20)],
        }
        nodes: List[Dict[str, Any]] = [root]
        for host in range(self.number // 20):
            osds = list(range(20 * host, 20 * host + 20))
            nodes.append({"id": -2 - host, "type": "host", "name": f"h{host}", "children": osds})
            for osd in osds:
                status = "up" if self._up(osd) else "down"
                row = {"id": osd, "type": "osd", "name": f"osd.{osd}", "device_class": "ssd", "status": status}
                nodes.append(row)
        return nodes


class Error(Exception):
    """As librados' own."""


def install(given: Dict[str, Any]) -> None:
    """Make it the module `rados` of this process."""
    cluster = Cluster(given)

    class Rados:
        DEFAULT_CONF_FILES = -1

        def __init__(self, **given: Any) -> None:
            self._within = 0.0

        def conf_parse_env(self, name: str) -> None:
            pass

        def conf_set(self, option: str, value: str) -> None:
            if option == "rados_osd_op_timeout":
                self._within = float(value)

        def connect(self, timeout: float = 0) -> None:
            pass

        def mon_command(self, text: str, payload: bytes) -> Answer:
            return _answered(lambda: cluster.mon(json.loads(text), payload.decode()))

        def osd_command(self, osd: int, text: str, payload: bytes) -> Answer:
            return _answered(lambda: cluster.osd(osd, json.loads(text)["prefix"], self._within))

    module = types.ModuleType("rados")
    module.Rados, module.Error = Rados, Error  # type: ignore[attr-defined]
    sys.modules["rados"] = module


def _answered(call: Any) -> Answer:
    try:
        return 0, call().encode(), ""
    except CommandFailed as failure:
        return failure.code, b"", str(failure)
