"""A cluster out of a file: a commander that answers as the live one did, and the clock of that time.

Time stands at the last answer. Whoever sleeps comes to the next sample, and no further: after it the clock that only
measures runs ahead, so that nobody waits for a sample that will not come.
"""

from __future__ import annotations

import errno
import json
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple, Union

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.bounded import MISREAD, read_file
from ceph_tuner.core.ceph.commands import STORE_PREFIX, parsed
from ceph_tuner.core.errors import CommandFailed, InputError
from ceph_tuner.core.knobs.releases import release_of
from ceph_tuner.describe.pools import PGS_MOST
from ceph_tuner.gather import ceph_report, state_file
from ceph_tuner.gather.recorder import raise_fault
from ceph_tuner.gather.state import FIRST_SAMPLE, Answer, ClusterState, Key, key_of, shown, store_key

_NO_MORE_S = 1e9


class NotGathered(CommandFailed):
    """The file has no answer to this command."""

    exit_code = 2

    def __init__(self, key: Key, why: str, next_step: str) -> None:
        super().__init__(shown(key), -errno.ENODATA, f"not gathered: {why}")
        self.next_step = next_step


class Replay:
    """`ports.Commander` and `ports.Clock` of a state."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self._answers = state.by_key()
        self._looks = sorted({answer.look for answer in state.answers} - set(range(FIRST_SAMPLE)))
        self._look = self._looks[0] if self._looks else 0
        self._given: Dict[Tuple[int, Key], int] = {}
        self._at, self._waited_s = state.at, 0.0
        self._store: Optional[Dict[str, str]] = None

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        """What the monitors answered. Raises NotGathered, and what the live cluster raised."""
        if payload or prefix in ("config set", "config rm", "config-key set", "config-key rm"):
            raise InputError(
                self.state.place, f"`ceph {prefix}`, which writes", "a live cluster (--cluster): a file is only read"
            )
        if prefix in ("config-key get", "config-key dump"):
            return self._from_store(prefix, arguments)
        return self._text(key_of("", prefix, arguments))

    def tell(self, daemon: str, prefix: str, arguments: Mapping[str, str]) -> str:
        """What an OSD answered. Raises as `mon` does."""
        return self._text(key_of(daemon, prefix, arguments))

    def now(self) -> float:
        """Seconds since the epoch: of the last answer."""
        return self._at

    def monotonic(self) -> float:
        """The same, that samples have the time between them; far ahead once there are no more."""
        return self._at + self._waited_s

    def sleep(self, seconds: float) -> None:
        """Go on to the next sample."""
        later = [look for look in self._looks if look > self._look]
        if later:
            self._look = later[0]
            self._at = min(answer.at for answer in self.state.answers if answer.look == self._look)
        else:
            self._waited_s += _NO_MORE_S

    def _text(self, key: Key) -> str:
        answer = self._answer(key)
        if answer is None:
            raise self._not_in_file(key)
        self._at = answer.at
        if answer.fault is not None:
            raise_fault(answer.shown, answer.fault)
        return answer.text

    def _answer(self, key: Key) -> Optional[Answer]:
        """Of this look, else of the one before the samples, else of the nearest; the next one of its look."""
        own = self._answers.get(key, [])
        if not own:
            return None
        now = self._look
        look = min({answer.look for answer in own}, key=lambda each: (each != now, each != 0, abs(each - now)))
        of_look: List[Answer] = [answer for answer in own if answer.look == look]
        turn = self._given.get((look, key), 0)
        self._given[look, key] = turn + 1
        return of_look[min(turn, len(of_look) - 1)]

    def _from_store(self, prefix: str, arguments: Mapping[str, str]) -> str:
        """Out of the one dump of the store that is there."""
        if self._store is None:
            whole = ("", "config-key dump", (STORE_PREFIX,))
            with_keys = parsed(self._text(whole), "config-key dump")
            self._store = {str(key): str(value) for key, value in dict(with_keys).items()}
        own_key = store_key(arguments)
        if prefix == "config-key dump":
            return json.dumps({key: value for key, value in self._store.items() if own_key and key.startswith(own_key)})
        if own_key not in self._store:
            raise CommandFailed(f"config-key get {own_key}", -errno.ENOENT, "no such key")
        return self._store[own_key]

    def _not_in_file(self, key: Key) -> NotGathered:
        state = self.state
        if state.kind == "report":
            return NotGathered(key, "`ceph report` does not say it", "gather the state: `ceph-tuner gather`")
        if key[0]:
            why = f"{len(state.asked)} of {state.osds} OSDs were asked themselves"
            return NotGathered(key, why, "gather the state again, with more of them (`--osds`)")
        if key[1] == "pg ls":
            return NotGathered(key, f"a file lists up to {PGS_MOST} PGs", "ask the cluster itself (`--cluster`)")
        return NotGathered(key, f"it is not in {state.place}", "gather the state again, by this version")


def open_state(path: Union[str, Path]) -> Cluster:
    """A cluster out of a file of `ceph-tuner gather`, or out of what `ceph report` printed. Raises InputError."""
    formats = f"{state_file.EXPECTED}, or what `ceph report` printed"
    content = read_file(path, formats, state_file.PACKED_MOST)
    read = state_file.unpacked if content.startswith(state_file.MAGIC) else ceph_report.state_of
    state = read(content, str(path))
    replay = Replay(state)
    with reading(path):
        return Cluster.of(state.cluster, replay, release_of(state.version), state.version, clock=replay)


@contextmanager
def reading(path: Union[str, Path]) -> Iterator[None]:
    """What a file says in another shape than Ceph does is the file's fault: InputError."""
    try:
        yield
    except InputError:
        raise
    except MISREAD as fault:
        nonsense = f"an answer that no cluster gives ({type(fault).__name__}: {fault})"
        raise InputError(str(path), nonsense[:200], state_file.EXPECTED) from fault


def state_of(cluster: Cluster) -> Any:
    """The state behind a cluster that was opened by `open_state`."""
    commander = cluster.commander
    if not isinstance(commander, Replay):
        raise InputError(f"cluster {cluster.name}", "a live one", state_file.EXPECTED)
    return commander.state
