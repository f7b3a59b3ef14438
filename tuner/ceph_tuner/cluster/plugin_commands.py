"""Commands of the module in the mgr (`ceph tuner …`), with its refusals as errors of their kind."""

from __future__ import annotations

import errno
from typing import Any, Mapping

from ceph_tuner.core.ceph.commands import parsed
from ceph_tuner.core.ceph.ports import Commander
from ceph_tuner.core.errors import CommandFailed, InputError, RetryLater, Stopped


def plugin_answer(commander: Commander, command: str, arguments: Mapping[str, str], payload: str = "") -> Any:
    """Give the module's answer, a plain document.

    Raises what the module raised, as far as its error code says: InputError, RetryLater, else Stopped; and what the way
    there raises.
    """
    try:
        return parsed(commander.mon(command, arguments, payload), command)
    except CommandFailed as refusal:
        words = refusal.message.strip()
        if refusal.code == -errno.EAGAIN:
            raise RetryLater(words, "") from refusal
        if refusal.code == -errno.EINVAL and _is_unknown(words):
            raise InputError(
                command, "no such command", "the plugin, of this version: ceph-tuner mgr install"
            ) from refusal
        if refusal.code == -errno.EINVAL:
            place, _, rest = words.removeprefix("Error EINVAL: ").partition(": found ")
            content, _, expected = rest.partition(", expected ")
            raise InputError(place, content or words, expected or "another one") from refusal
        raise Stopped(words, "") from refusal


def _is_unknown(words: str) -> bool:
    return "no valid command found" in words or "command not known" in words or not words
