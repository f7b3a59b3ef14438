"""The dashboards of a lab's mgrs, with a user who may only look."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Sequence

from ceph_lab.cluster import Lab
from ceph_tuner.cluster.dashboard_api import DashboardApi
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.errors import ClusterTimeout, CommandFailed
from fake_dashboard import PASSWORD, USER, certificates
from prometheus_server import free_port

ROLE = "ceph-tuner-reader"


class Served(NamedTuple):
    urls: List[str]
    """Of each mgr's dashboard."""
    trust: Dict[str, Any]

    def api(self, password: Callable[[], str] = lambda: PASSWORD, urls: Sequence[str] = ()) -> DashboardApi:
        return DashboardApi("lab", urls or self.urls, USER, password, SystemClock(), **self.trust)


def ceph(lab: Lab, *words: str, payload: str = "") -> str:
    return lab.run(["ceph", *words], payload=payload or None)


@contextmanager
def dashboards(lab: Lab, directory: Path) -> Iterator[Served]:
    """Serve them, by TLS with certificates of `directory` where the release can."""
    # Debian's Reef cannot: "PyO3 modules compiled for CPython 3.8 or older may only be initialized once"
    tls = lab.release == "tentacle"
    trust = _with_tls(lab, directory) if tls else {"verify": False}
    urls = []
    for mgr in lab.mgrs:
        port = free_port()
        ceph(lab, "config", "set", "mgr", f"mgr/dashboard/{mgr}/{'ssl_' * tls}server_port", str(port))
        urls.append(f"http{'s' * tls}://127.0.0.1:{port}")
    ceph(lab, "mgr", "module", "enable", "dashboard")
    try:
        _wait_served(lab, urls)
        try:
            _make_reader(lab)
        except ClusterTimeout:
            # seen once on Reef: the active mgr answered no command any more, on a machine with much else to do
            for mgr in lab.mgrs:
                lab.stop_daemon(f"mgr.{mgr}", wait=10)
                lab.start_daemon(f"mgr.{mgr}")
            _wait_served(lab, urls)
            _make_reader(lab)
        yield Served(urls, trust)
        _remove_reader(lab)
    finally:
        ceph(lab, "mgr", "module", "disable", "dashboard")
        ceph(lab, "config", "set", "mgr", "mgr/dashboard/ssl", "false")


def _wait_served(lab: Lab, urls: Sequence[str]) -> None:
    end_s = time.monotonic() + 120
    while not json.loads(ceph(lab, "mgr", "services")).get("dashboard", "").startswith(tuple(urls)):
        assert time.monotonic() < end_s, ceph(lab, "health", "detail")
        time.sleep(1)


def _make_reader(lab: Lab) -> None:
    # an attempt that was given up may have made them
    _remove_reader(lab)
    for words in (
        ["ac-role-create", ROLE],
        ["ac-role-add-scope-perms", ROLE, "config-opt", "read"],
        ["ac-role-add-scope-perms", ROLE, "osd", "read"],
        ["ac-user-create", USER, ROLE, "-i", "-", "--force-password"],
    ):
        ceph(lab, "dashboard", *words, payload=PASSWORD if "-i" in words else "")


def _remove_reader(lab: Lab) -> None:
    for words in (["ac-user-delete", USER], ["ac-role-delete", ROLE]):
        with suppress(CommandFailed):
            ceph(lab, "dashboard", *words)


def _with_tls(lab: Lab, directory: Path) -> Dict[str, Any]:
    signer, certificate = certificates(directory)
    private, end, public = certificate.read_text().partition("-----END PRIVATE KEY-----\n")
    ceph(lab, "config-key", "set", "mgr/dashboard/crt", "-i", "-", payload=public)
    ceph(lab, "config-key", "set", "mgr/dashboard/key", "-i", "-", payload=private + end)
    ceph(lab, "config", "set", "mgr", "mgr/dashboard/ssl", "true")
    return {"ca": str(signer)}
