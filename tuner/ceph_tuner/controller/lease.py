"""Which of several controllers leads, by a Lease of Kubernetes (coordination.k8s.io/v1), as client-go does it.

No clock of another machine is believed: a lease is over when it did not change for its length, by the own clock. The
holder stops before the others may begin, as the time in which it may act counts from the beginning of a renewal.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import Any, Dict, Mapping, Optional, Tuple

from ceph_tuner.controller.at_api_server import refuse
from ceph_tuner.core.ceph.commands import shaped
from ceph_tuner.core.ceph.ports import Clock
from ceph_tuner.core.errors import TunerError
from ceph_tuner.rook.kubernetes_api import KubernetesApi

LEASE_S = 15
"""How long the others wait for a holder that says nothing."""
LONGEST_S = 300
"""Nobody waits longer than that, whatever a lease says."""
USABLE_S = 10.0
"""How long after a renewal was begun its holder acts."""
RETRY_S = 2.0
CALL_S = 3.0
"""What each of the two calls of a renewal may take: with one that fails there is time for another renewal."""


class Lease:
    """The lease of one name. `attempt` and `release` are for one thread; any thread may ask `is_held`."""

    def __init__(self, api: KubernetesApi, namespace: str, name: str, identity: str, clock: Clock) -> None:
        """Nothing is asked yet."""
        self._api, self._name, self._identity, self._clock = api, name, identity, clock
        self._folder = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._until = float("-inf")
        self._foreign: Tuple[str, float] = ("", 0.0)
        """Version of the lease of another holder, and since when it is so."""
        self.last_answer = float("-inf")
        """When the API server answered last, by the monotonic clock."""
        self.holder = ""
        """Who had it when it was looked at last."""

    @property
    def is_held(self) -> bool:
        """Whether this controller may act now."""
        return self._clock.monotonic() < self._until

    def attempt(self) -> None:
        """Take the lease, or renew it. Raises TunerError where the API server does not answer."""
        begun = self._clock.monotonic()
        answer = self._api.call("GET", f"{self._folder}/{self._name}")
        self.last_answer = self._clock.monotonic()
        if answer.status == 404:
            self._written(begun, "POST", self._folder, self._document({}, {}, 0))
            return
        refuse(answer, f"GET lease {self._name}")
        with shaped(f"GET lease {self._name}"):
            spec = dict(answer.document.get("spec") or {})
            self.holder = str(spec.get("holderIdentity") or "")
            transitions = int(spec.get("leaseTransitions") or 0)
            if self.holder not in ("", self._identity) and not self._is_over(answer.document, spec):
                self._until = float("-inf")
                return
            body = self._document(answer.document, spec, transitions + (self.holder != self._identity))
        self._written(begun, "PUT", f"{self._folder}/{self._name}", body)

    def release(self) -> None:
        """Give it up, so that another one need not wait. Raises TunerError."""
        was_held, self._until = self.is_held, float("-inf")
        if not was_held:
            return
        answer = self._api.call("GET", f"{self._folder}/{self._name}")
        with shaped(f"GET lease {self._name}"):
            spec = dict(answer.document.get("spec") or {})
        if answer.status == 200 and spec.get("holderIdentity") == self._identity:
            body = {**answer.document, "spec": {**spec, "holderIdentity": "", "leaseDurationSeconds": 1}}
            self._api.call("PUT", f"{self._folder}/{self._name}", body)

    def run(self, stop: threading.Event) -> None:
        """Take and renew it until told to stop; then give it up."""
        while not stop.wait(RETRY_S):
            # without an answer the time in which it may act runs out by itself
            with suppress(TunerError):
                self.attempt()
        with suppress(TunerError):
            self.release()

    def _written(self, begun: float, method: str, path: str, body: Mapping[str, Any]) -> None:
        answer = self._api.call(method, path, body)
        if answer.status == 409:
            # another one was quicker
            self._until = float("-inf")
            return
        refuse(answer, f"{method} lease {self._name}")
        self.holder, self._until = self._identity, begun + USABLE_S

    def _is_over(self, document: Mapping[str, Any], spec: Mapping[str, Any]) -> bool:
        version = str((document.get("metadata") or {}).get("resourceVersion"))
        if self._foreign[0] != version:
            self._foreign = (version, self._clock.monotonic())
        seconds = spec.get("leaseDurationSeconds")
        # never shorter than ours: a holder of this version acts as long as that
        length = min(max(seconds, LEASE_S), LONGEST_S) if isinstance(seconds, int) and seconds > 1 else LEASE_S
        return self._clock.monotonic() - self._foreign[1] > length

    def _document(self, before: Mapping[str, Any], spec: Mapping[str, Any], transitions: int) -> Dict[str, Any]:
        now = _micro_time(self._clock.now())
        acquired: Optional[str] = spec.get("acquireTime") if spec.get("holderIdentity") == self._identity else None
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": before.get("metadata") or {"name": self._name},
            "spec": {
                **spec,
                "holderIdentity": self._identity,
                "leaseDurationSeconds": LEASE_S,
                "acquireTime": acquired or now,
                "renewTime": now,
                "leaseTransitions": transitions,
            },
        }


def _micro_time(at: float) -> str:
    whole = int(at)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{int((at - whole) * 1e6):06d}Z"
