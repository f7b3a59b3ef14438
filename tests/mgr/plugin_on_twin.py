"""A cluster whose mgr has the module loaded: its commands reach the real module, all others the twin."""

from __future__ import annotations

import json
import threading
from typing import Any, Dict, List, Mapping, Optional

# the stand-in for Ceph's framework comes before the module
import mgr_stand_in
from automatic_on_twin import OnTwin
from loaded_module import Loaded

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.errors import ClusterTimeout, CommandFailed
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.releases import nine
from ceph_tuner.twin.model import RecoveryWork
from twins import small_twin

assert mgr_stand_in.REGISTRY is not None

LIMITED: Dict[str, Any] = {PROFILE: "custom", **nine((0.6, 2, 0), (0.1, 1, 0.2), (0.05, 1, 0.2))}


class PluginCommander:
    """`ports.Commander` of that cluster."""

    def __init__(self, aboard: OnTwin) -> None:
        self.aboard, self.module = aboard, Loaded(aboard)
        self.sent: List[str] = []
        """Commands of the module that write, in their order."""
        self.options: Dict[str, str] = {}
        """Of the module, as the monitors keep them: the twin knows OSDs' options alone."""
        self.is_silent = False
        self._one_at_a_time = threading.RLock()

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        with self._one_at_a_time:
            if self.is_silent:
                raise ClusterTimeout(f"`{prefix}` did not answer in time")
            if prefix.startswith("tuner "):
                return self._module(prefix, dict(arguments), payload)
            name = arguments.get("name", "")
            if prefix in ("config set", "config rm") and name.startswith("mgr/tuner/"):
                self.sent.append(f"{prefix} {name} {arguments.get('value', '')}".rstrip())
                self.options.pop(name, None)
                if prefix == "config set":
                    self.options[name] = arguments["value"]
                return ""
            answer = self.aboard.twin.commander.mon(prefix, arguments, payload)
            if prefix == "config dump":
                rows = [{"section": "mgr", "name": key, "value": text} for key, text in self.options.items()]
                return json.dumps([*json.loads(answer), *rows])
            return answer

    def tell(self, daemon: str, prefix: str, arguments: Mapping[str, str]) -> str:
        return self.aboard.twin.commander.tell(daemon, prefix, arguments)

    def _module(self, prefix: str, arguments: Dict[str, Any], payload: str) -> str:
        command = prefix[len("tuner ") :].replace(" ", "_")
        if command not in ("slo_ls", "auto_explain", "boost_status"):
            self.sent.append(" ".join([prefix, *arguments.values()]))
        if "yes" in arguments:
            arguments["yes"] = True
        if payload:
            arguments["inbuf"] = payload
        code, output, words = self.aboard.during(lambda: self.module.run(command, format="json", **arguments))
        if code:
            raise CommandFailed(prefix, code, words)
        return output

    def sample(self, count: int = 1) -> None:
        """The cluster's time goes on."""
        with self._one_at_a_time:
            self.aboard.sample(count)


def plugin_cluster(recovering: Optional[int] = None) -> Cluster:
    """A cluster, with so many objects to recover."""
    work = (RecoveryWork("rbd", recovering, 1 << 20),) if recovering else ()
    twin = small_twin(LIMITED, recovery=work) if work else small_twin()
    commander = PluginCommander(OnTwin(twin))
    commander.sample(14)
    return Cluster.of("twin", commander, twin.release, twin.version, clock=twin.clock)
