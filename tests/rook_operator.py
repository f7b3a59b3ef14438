"""A stand-in for Rook's operator, as far as it writes Ceph's options.

As Rook does (`pkg/operator/ceph/cluster`, `pkg/operator/ceph/config/monstore.go`): a change of the spec begins a run,
one at a time. A run reads the resource once, takes its time, and then hands `cephConfig` to the monitors section by
section, by `config assimilate-conf`. What they do not take, since another value stands there, is removed and set. At
the end it says which generation it had read. It unsets nothing.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Dict, List, Mapping

from ceph_tuner.core.ceph.commands import CommandConfig
from ceph_tuner.core.ceph.ports import Commander
from ceph_tuner.core.knobs.settings import same_value
from ceph_tuner.rook.ceph_config import option_name
from kubernetes_server import KubernetesServer


class RookOperator:
    """Runs until `stop`; `runs` counts what it was done with."""

    def __init__(self, server: KubernetesServer, name: str, commander: Commander, run_s: float = 0.3) -> None:
        self._server, self._name, self._commander, self.run_s = server, name, commander, run_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self.runs = 0
        self.faults: List[BaseException] = []

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join(60)
        assert self.faults == []

    def wait(self, generation: int, seconds: float = 60) -> None:
        """Until it is done with that generation."""
        end_s = time.monotonic() + seconds
        while self._server.read(self._name).get("status", {}).get("observedGeneration", 0) < generation:
            assert time.monotonic() < end_s
            assert self.faults == []
            time.sleep(0.1)

    def _work(self) -> None:
        try:
            done = 0
            while not self._ended.wait(0.1):
                read = self._server.read(self._name)
                if read["metadata"]["generation"] > done:
                    done = self._reconcile(read)
        except BaseException as fault:
            self.faults.append(fault)

    def _reconcile(self, read: Mapping[str, Any]) -> int:
        # the rest of the cluster comes first
        self._ended.wait(self.run_s)
        for section, stated in (read["spec"].get("cephConfig") or {}).items():
            options = {option_name(name): value for name, value in stated.items()}
            for name in self._assimilate(section, options):
                self._commander.mon("config rm", {"who": section, "name": name})
                assert self._assimilate(section, {name: options[name]}) == []
        generation = int(read["metadata"]["generation"])
        self._server.say(self._name, {"observedGeneration": generation})
        self.runs += 1
        return generation

    def _assimilate(self, section: str, options: Dict[str, str]) -> List[str]:
        """Set options; give those that the monitors did not take."""
        text = "\n".join([f"[{section}]", *(f"{name} = {value}" for name, value in options.items())]) + "\n"
        left = self._commander.mon("config assimilate-conf", {}, payload=text)
        return [line.split("=")[0].strip().replace(" ", "_") for line in left.splitlines() if "=" in line]


class Assimilating:
    """A twin's commander that two threads share, with the command that Rook sets options by.

    As `ConfigMonitor.cc` has it: what is not set is set, and what is set to another value is given back.
    """

    def __init__(self, commander: Commander) -> None:
        self._commander, self._lock = commander, threading.RLock()

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        with self._lock:
            if prefix == "config assimilate-conf":
                return self._assimilate(payload)
            return self._commander.mon(prefix, arguments, payload)

    def tell(self, daemon: str, prefix: str, arguments: Mapping[str, str]) -> str:
        with self._lock:
            return self._commander.tell(daemon, prefix, arguments)

    def _assimilate(self, text: str) -> str:
        section, *lines = text.strip().splitlines()
        who, left = section.strip("[]"), [section]
        now = {row.name: row.value for row in CommandConfig(self).dump() if row.who == who}
        for line in lines:
            name, _, value = (part.strip() for part in line.partition("="))
            if name in now and not same_value(now[name], value):
                left.append(line)
            else:
                self.mon("config set", {"who": who, "name": name, "value": value})
        return "\n".join(left) if len(left) > 1 else ""
