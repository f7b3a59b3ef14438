"""Ceph's commands from inside the mgr, none of which may hang it."""

from __future__ import annotations

import contextlib
import json
import time
from collections import OrderedDict
from functools import partial
from itertools import islice
from typing import Any, Callable, Collection, Dict, Iterable, Iterator, Mapping, Optional, Sequence, Tuple

from ceph_tuner.core.bounded import ANSWER, read_json
from ceph_tuner.core.ceph.commands import answered
from ceph_tuner.core.ceph.ports import Told
from ceph_tuner.core.ceph.tell_each import AT_ONCE, outcome
from ceph_tuner.core.errors import ClusterTimeout, TunerError

from .courier import Courier
from .proto import Mgr, Pending

LOOK_S = 0.005
"""How often it is seen which of them are done: a CommandResult tells nobody but who waits for that one."""


class MgrCommander:
    """`ports.ManyCommander` over `MgrModule.send_command`.

    `new_result` makes Ceph's CommandResult. Waits on its event and not on `wait()`, which has no time limit: a stopped
    OSD answers never.
    """

    def __init__(self, mgr: Mgr, new_result: Callable[[], Pending], timeout: float = 10.0) -> None:
        self._courier, self._timeout = Courier(mgr, new_result), timeout

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        """Answer of a monitor command, in JSON where it has that. Raises CommandFailed, ClusterTimeout."""
        result = self._send("mon", "", prefix, arguments, payload)
        return self._answer(prefix, result, time.monotonic() + self._timeout)

    def tell(self, daemon: str, prefix: str, arguments: Mapping[str, str]) -> str:
        """Answer of a daemon's command. Raises CommandFailed, ClusterTimeout."""
        kind, _, name = daemon.partition(".")
        result = self._send(kind, name, prefix, arguments, "")
        return self._answer(f"tell {daemon} {prefix}", result, time.monotonic() + self._timeout)

    def tell_each(
        self,
        daemons: Iterable[str],
        prefix: str,
        arguments: Mapping[str, str],
        within: float,
        keep: Collection[str] = (),
    ) -> Iterator[Tuple[str, Told]]:
        """As `ports.ManyCommander` says."""
        names = iter(daemons)
        results: OrderedDict[str, Tuple[Pending, float]] = OrderedDict()
        while True:
            for daemon in islice(names, AT_ONCE - len(results)):
                kind, _, name = daemon.partition(".")
                results[daemon] = (self._send(kind, name, prefix, arguments, ""), time.monotonic() + within)
            if not results:
                return
            next(iter(results.values()))[0].ev.wait(LOOK_S)
            now = time.monotonic()
            over = [daemon for daemon, (result, until) in results.items() if result.ev.is_set() or now >= until]
            for daemon in over:
                yield daemon, outcome(partial(self._answer, f"tell {daemon} {prefix}", *results.pop(daemon)))

    def tell_many(
        self, questions: Sequence[Tuple[str, str, Mapping[str, Any]]], timeout: float
    ) -> Dict[Tuple[str, str], str]:
        """Answers of (daemon, prefix, arguments), all asked at once; without those that fail or are late."""
        deadline = time.monotonic() + timeout
        results = []
        for daemon, prefix, arguments in questions:
            kind, _, name = daemon.partition(".")
            results.append((daemon, prefix, self._send(kind, name, prefix, arguments, "")))
        answers = {}
        for daemon, prefix, result in results:
            with contextlib.suppress(TunerError):
                answers[daemon, prefix] = self._answer(f"tell {daemon} {prefix}", result, deadline)
        return answers

    def close(self, end: float) -> None:
        """Send nothing more, and wait until `end` (of `time.monotonic`) for what was sent."""
        self._courier.close(end)

    def _send(self, kind: str, name: str, prefix: str, arguments: Mapping[str, Any], payload: str) -> Pending:
        command: Dict[str, Any] = {"prefix": prefix, **arguments, "format": "json"}
        return self._courier.send(kind, name, json.dumps(command), payload or None)

    def _answer(self, command: str, result: Pending, deadline: float) -> str:
        if not result.ev.wait(max(deadline - time.monotonic(), 0.0)):
            raise ClusterTimeout(f"`{command}` did not answer in time")
        return answered(command, *result.wait())


def document(text: Optional[str]) -> Optional[Dict[str, Any]]:
    """An answer that should be a JSON object; None where it is none, or did not come."""
    try:
        answer = read_json(text or "", "an answer", ANSWER)
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None
