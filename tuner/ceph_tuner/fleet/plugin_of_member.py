"""What the plugin of a member answers, with its refusals apart from a way there that fails."""

from __future__ import annotations

from typing import Any, Mapping

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.cluster.plugin_commands import plugin_answer
from ceph_tuner.core.ceph.commands import parsed
from ceph_tuner.core.errors import (
    ClusterNotFound,
    ClusterTimeout,
    CommandFailed,
    InputError,
    PermissionRefused,
    RetryLater,
    Stopped,
    TunerError,
)


class Declined(TunerError):
    """The cluster answered, and its plugin did not do it; or it has none."""

    def __init__(self, refusal: TunerError) -> None:
        """Keep the refusal's words, next step and exit code."""
        super().__init__(str(refusal), refusal.next_step)
        self.exit_code = refusal.exit_code


def _has_mgr(cluster: Cluster) -> bool:
    """Whether the monitors know of an active mgr. Without one its commands wait until one comes."""
    try:
        return bool(parsed(cluster.commander.mon("mgr stat", {}), "mgr stat").get("available", True))
    except (CommandFailed, PermissionRefused):
        # who may not know, or has no way to, asks the plugin all the same
        return True


def member_plugin_answer(cluster: Cluster, command: str, arguments: Mapping[str, str], payload: str = "") -> Any:
    """Give the plugin's answer, a plain document. Raises Declined; and what the way there raises."""
    if not _has_mgr(cluster):
        raise Declined(RetryLater("no mgr is active, so that no plugin answers", "see `ceph mgr stat`"))
    try:
        return plugin_answer(cluster.commander, command, arguments, payload)
    except (PermissionRefused, ClusterNotFound, ClusterTimeout):
        # it was not asked, or nobody knows what came of it
        raise
    except (InputError, RetryLater, Stopped) as refusal:
        raise Declined(refusal) from refusal
