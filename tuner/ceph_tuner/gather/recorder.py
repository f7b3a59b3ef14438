"""A commander that keeps what is answered. It passes on what reads and is kept, and nothing else."""

from __future__ import annotations

import errno
from dataclasses import replace
from typing import Collection, Dict, Iterable, Iterator, List, Mapping, Optional, Set, Tuple, Union

from ceph_tuner.core.bounded import values_in
from ceph_tuner.core.ceph.commands import STORE_PREFIX
from ceph_tuner.core.ceph.ports import Clock, Commander, Told
from ceph_tuner.core.ceph.tell_each import outcome, tell_each
from ceph_tuner.core.errors import ClusterTimeout, CommandFailed, PermissionRefused, TunerError
from ceph_tuner.gather.kept_fields import COMMANDS, DAEMON_COMMANDS, Keep, allowed, kept, without_secrets
from ceph_tuner.gather.state import FAILED, LATE, REFUSED, Answer, Fault, Key, key_of

UNPACKED_MOST = 192 << 20
"""Bytes of all answers together: of 1000 OSDs it is some tens of MiB."""
VALUES_MOST = 4 << 20
"""Values of one answer: of 100 000 PGs it is three million."""
WITHIN_S = 10.0
_TIMED = ("perf dump",)
_AGAIN = ("dump_op_pq_state",)
"""Commands whose later answers differ within a look, and are wanted."""
_STEADY = ("config show", "osd metadata")
"""Commands that one look asks for all of them."""
_OPTIONS = "config show"
"""After the dumps of a look it is asked anew: who compares it with queues reads it before and after them."""


class Recorder:
    """`ports.ManyCommander` over another commander."""

    def __init__(self, commander: Commander, clock: Clock) -> None:
        self._commander, self._clock = commander, clock
        self.look = 0
        self.answers: List[Answer] = []
        self.notes: List[str] = []
        self._cache: Dict[Tuple[int, Key], Answer] = {}
        self._dumped: Set[str] = set()
        """Daemons whose queues were dumped in this look."""
        self._reused: Set[Key] = set()
        """What was given in this look out of one before."""
        self._room = UNPACKED_MOST

    def begin(self, look: int) -> None:
        """What was asked before is asked again, but for what stays."""
        self._cache = {(look, key): answer for (_, key), answer in self._cache.items() if key[1] in _STEADY}
        self.look = look
        self._dumped.clear()
        self._reused.clear()

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        """Answer of a command that reads; the same one within a look is asked once. Raises as the commander does."""
        key = key_of("", prefix, arguments)
        if prefix == "config-key get" or (prefix == "config-key dump" and key[2] != (STORE_PREFIX,)):
            # what is kept of the store is one dump of it
            return self._commander.mon(prefix, arguments)
        if payload or not allowed(prefix, str([*arguments.values()][-1]) if arguments else ""):
            raise CommandFailed(f"ceph {prefix}", -errno.EPERM, "is not among what is gathered")
        answer = self._cache.get((self.look, key))
        if answer is not None:
            return _text_or_raise(answer)
        try:
            text = self._commander.mon(prefix, arguments)
        except (CommandFailed, ClusterTimeout, PermissionRefused) as error:
            self._keep(key, COMMANDS[prefix], error)
            raise
        self._keep(key, COMMANDS[prefix], text)
        return text

    def tell(self, daemon: str, prefix: str, arguments: Mapping[str, str]) -> str:
        """Answer of an OSD's command that reads. Raises as `mon` does."""
        (pair,) = self.tell_each([daemon], prefix, arguments, WITHIN_S)
        if isinstance(pair[1], str):
            return pair[1]
        raise pair[1]

    def tell_each(
        self,
        daemons: Iterable[str],
        prefix: str,
        arguments: Mapping[str, str],
        within: float,
        keep: Collection[str] = (),
    ) -> Iterator[Tuple[str, Told]]:
        """As `ports.ManyCommander` says; whole answers, whatever is to be kept of them."""
        if prefix not in DAEMON_COMMANDS or arguments:
            raise CommandFailed(f"ceph tell {prefix}", -errno.EPERM, "is not among what is gathered")
        targets: List[str] = []
        for daemon in daemons:
            key = key_of(daemon, prefix, arguments)
            earlier = self._cache.get((self.look, key))
            if earlier is None or prefix in _AGAIN:
                targets.append(daemon)
            elif prefix == _OPTIONS and daemon in self._dumped:
                self._keep_reused(key)
                targets.append(daemon)
            else:
                if earlier.look != self.look:
                    self._reused.add(key)
                yield daemon, outcome(lambda earlier=earlier: _text_or_raise(earlier))  # type: ignore[misc]
        silent = dict.fromkeys(targets)
        try:
            answers = self._with_time(tell_each(self._commander, targets, prefix, arguments, within))
            # rates go by the moment at which counters came: no other answer waits until one is read
            for daemon, answer, at in list(answers) if prefix in _TIMED else answers:
                silent.pop(daemon, None)
                self._keep(key_of(daemon, prefix, arguments), DAEMON_COMMANDS[prefix], answer, at)
                yield daemon, answer
        except (PermissionRefused, ClusterTimeout) as error:
            for daemon in silent:
                self._keep(key_of(daemon, prefix, arguments), DAEMON_COMMANDS[prefix], error)
            raise

    def _with_time(self, answers: Iterator[Tuple[str, Told]]) -> Iterator[Tuple[str, Told, float]]:
        for daemon, answer in answers:
            yield daemon, answer, self._clock.now()

    def _keep_reused(self, key: Key) -> None:
        """Of two answers that a look was given, the file has both: the earlier one is of a look before."""
        if key in self._reused:
            self._reused.discard(key)
            earlier = next(answer for answer in reversed(self.answers) if answer.key == key)
            self.answers.append(self._within_room(replace(earlier, look=self.look)))

    def _keep(self, key: Key, keep: Keep, content: Union[str, TunerError], at: Optional[float] = None) -> None:
        at = self._clock.now() if at is None else at
        if isinstance(content, TunerError):
            answer = Answer(key, self.look, at, fault=_fault(content))
        else:
            answer = self._within_room(Answer(key, self.look, at, kept(content, keep)))
            if key[1] in _AGAIN:
                self._dumped.add(key[0])
        self.answers.append(answer)
        self._cache[self.look, key] = Answer(key, self.look, at, content) if isinstance(content, str) else answer

    def _within_room(self, answer: Answer) -> Answer:
        size, values = len(answer.text.encode()), values_in(answer.text)
        if size <= self._room and values <= VALUES_MOST:
            self._room -= size
            return answer
        words = f"{size} bytes beyond the {UNPACKED_MOST >> 20} MiB that a file may have"
        if values > VALUES_MOST:
            words = f"{values} values, of which an answer may have {VALUES_MOST}"
        self.notes.append(f"`{answer.shown}` is left out: {words}")
        return Answer(answer.key, answer.look, answer.at, fault=Fault(FAILED, -errno.EFBIG, words))


def _fault(error: TunerError) -> Fault:
    if isinstance(error, PermissionRefused):
        return Fault(REFUSED, -errno.EACCES, without_secrets(error.found))
    if isinstance(error, CommandFailed):
        return Fault(FAILED, error.code, without_secrets(error.message))
    return Fault(LATE, -errno.ETIMEDOUT, without_secrets(str(error)))


def raise_fault(command: str, fault: Fault) -> None:
    """Raise what the live cluster raised."""
    if fault.kind == REFUSED:
        raise PermissionRefused(command, fault.words, "a keyring whose capabilities allow the command")
    if fault.kind == LATE:
        raise ClusterTimeout(fault.words)
    raise CommandFailed(command, fault.code, fault.words)


def _text_or_raise(answer: Answer) -> str:
    if answer.fault is not None:
        raise_fault(answer.shown, answer.fault)
    return answer.text
