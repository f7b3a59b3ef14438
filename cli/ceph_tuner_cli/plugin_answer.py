"""What the plugin answers to a command, and what its errors mean to the program."""

from __future__ import annotations

import errno
from typing import Any, Dict, Mapping

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.ceph.commands import parsed
from ceph_tuner.core.errors import CommandFailed, InputError, RetryLater, Stopped


def plugin_answer(connection: Cluster, command: str, arguments: Mapping[str, str], payload: str = "") -> Dict[str, Any]:
    """The plugin's answer. Raises what the plugin raised, as far as its error code says."""
    try:
        return dict(parsed(connection.commander.mon(command, arguments, payload), command))
    except CommandFailed as failure:
        words = failure.message.strip()
        if failure.code == -errno.EAGAIN:
            raise RetryLater(words, "") from failure
        if failure.code == -errno.EINVAL and _unknown(words):
            raise InputError(
                command, "no such command", "the plugin, of this version: ceph-tuner mgr install"
            ) from failure
        if failure.code == -errno.EINVAL:
            place, _, rest = words.removeprefix("Error EINVAL: ").partition(": found ")
            found, _, expected = rest.partition(", expected ")
            raise InputError(place, found or words, expected or "another one") from failure
        raise Stopped(words, "") from failure


def _unknown(words: str) -> bool:
    return "no valid command found" in words or "command not known" in words or not words
