"""The few methods of Ceph's MgrModule that the plugin uses."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Protocol, Sequence, Tuple


class Mgr(Protocol):
    """What a running ceph-mgr offers its modules."""

    def get(self, data_name: str) -> Any:
        """One of the mgr's own documents: `pg_summary`, `osd_stats`, `health` ..."""

    def get_ceph_option(self, key: str) -> Any:
        """A Ceph option as the mgr itself sees it."""

    def get_metadata(self, svc_type: str, svc_id: str) -> Optional[Mapping[str, str]]:
        """What a daemon says of itself; nothing where it is not known."""

    def get_osdmap(self) -> Any:
        """The newest OSD map."""

    def send_command(
        self, result: Any, svc_type: str, svc_id: str, command: str, tag: str, inbuf: Optional[str] = None
    ) -> None:
        """Send a command; `result` is completed later, from another thread."""

    def set_health_checks(self, checks: Mapping[str, Mapping[str, Any]]) -> None:
        """Replace the module's health checks."""

    def add_osd_perf_query(self, query: Mapping[str, Any]) -> Optional[int]:
        """Have the OSDs count operations by key; its number, or None where that is not possible."""

    def get_osd_perf_counters(self, query_id: int) -> Mapping[str, Any]:
        """What they counted since: `counters`, each with its key `k` and sums and counts `c`."""

    def remove_osd_perf_query(self, query_id: int) -> None:
        """Have them count it no more."""

    def get_daemon_health_metrics(self) -> Dict[str, Sequence[Mapping[str, Any]]]:
        """Health metrics by daemon, such as SLOW_OPS."""


class Pending(Protocol):
    """A command that was sent: Ceph's CommandResult."""

    ev: Any

    def complete(self, r: int, outb: str, outs: str) -> None:
        """Called once by whoever has the answer."""

    def wait(self) -> Tuple[int, str, str]:
        """Errno, output and error text; blocks until they are there."""
