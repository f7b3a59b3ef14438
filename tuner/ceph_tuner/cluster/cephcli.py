"""A Commander that runs the `ceph` program: works wherever an operator has it, about 0.1 to 0.3 s a command."""

from __future__ import annotations

import errno
import re
import subprocess
import time
from contextlib import suppress
from typing import Callable, Collection, Iterable, Iterator, List, Mapping, Sequence, Tuple

from ceph_tuner.core.bounded import ANSWER
from ceph_tuner.core.ceph.conversation import Conversation, end_all
from ceph_tuner.core.ceph.ports import Told
from ceph_tuner.core.ceph.tell_each import by_threads
from ceph_tuner.core.errors import (
    ClusterNotFound,
    ClusterTimeout,
    CommandFailed,
    InputError,
    PermissionRefused,
    TunerError,
)

Launcher = Callable[[Sequence[str]], List[str]]
"""Turns a command into the argv that runs it where the cluster's configuration is (here, in a lab's chroot)."""

Fault = Callable[[int, str], str]
"""What is wrong with what brought a command to the cluster, from its exit code and its words; empty: nothing is."""

AT_ONCE = 8
"""Programs that run at a time."""
_MORE_S = 5.0
"""What a program may take beside the cluster's time."""
_SEE = "see whether `ceph -s` behind the same words answers"
_INTERRUPTED_S = 0.25
"""Given to a program that is under way at Ctrl-C, as by Python itself."""
_NUMBER = re.compile(r"-[0-9.]{1,30}")
_LISTS = frozenset(("id",))
"""Arguments of several words, each of which the program takes by itself (`osd pg-upmap-items`)."""
_ERROR = re.compile(r"Error (E[A-Z0-9]+|Unknown\b):?\s*(.*)")
_LIBRADOS = re.compile(r"\[errno (\d{1,4})\]")


def _sound(code: int, words: str) -> str:
    return ""


class CephCli:
    """`ports.Commander` by the `ceph` program."""

    def __init__(self, launch: Launcher = list, timeout: float = 30.0, fault: Fault = _sound) -> None:
        """`fault` tells a failure of what `launch` puts before the program from one of the program."""
        self._launch, self._timeout, self._fault = launch, timeout, fault

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        """Answer of a monitor command. Raises CommandFailed, ClusterTimeout, PermissionRefused, ClusterNotFound."""
        return self._run(prefix.split(), arguments, payload)

    def tell(self, daemon: str, prefix: str, arguments: Mapping[str, str]) -> str:
        """Answer of a daemon's command. Raises as `mon` does."""
        return self._run(["tell", daemon, *prefix.split()], arguments)

    def tell_each(
        self,
        daemons: Iterable[str],
        prefix: str,
        arguments: Mapping[str, str],
        within: float,
        keep: Collection[str] = (),
    ) -> Iterator[Tuple[str, Told]]:
        """As `ports.ManyCommander` says."""
        # beside the daemon's time the program takes its own
        brief = CephCli(self._launch, min(self._timeout, within + _MORE_S), self._fault)
        return by_threads(lambda daemon: brief.tell(daemon, prefix, arguments), daemons, AT_ONCE)

    def _run(self, words: List[str], arguments: Mapping[str, str], payload: str = "") -> str:
        values = _positional(arguments)
        command = " ".join([*words, *values])
        options = ["--connect-timeout", str(max(1, int(self._timeout))), "--format", "json"]
        argv = self._launch(["ceph", *options, *(["-i", "-"] if payload else []), *words, *values])
        code, output, errors = self._run_to_end(argv, command, payload.encode())
        if fault := self._fault(code, errors):
            raise ClusterTimeout(f"`ceph {command}` did not reach the cluster: {fault}", _SEE)
        if code:
            raise failure(f"ceph {command}", -code, errors)
        # with --format json the program begins what it prints with a newline of its own; the rest is the answer
        return output[1:] if output.startswith("\n") else output

    def _run_to_end(self, argv: List[str], command: str, payload: bytes) -> Tuple[int, str, str]:
        """Exit code, output and last words of a program, which has its time and ends with it."""
        pipe = subprocess.PIPE
        try:
            # a session of its own, so that Ctrl-C reaches the tuner alone and the command in flight ends by itself
            process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)
        except FileNotFoundError as exc:
            raise ClusterNotFound(
                "ceph", f"no program `{argv[0]}`", "Ceph's command line (package ceph-common)"
            ) from exc
        except OSError as exc:
            raise ClusterNotFound("ceph", f"`{argv[0]}`: {exc.strerror}", "a program that can be run") from exc
        deadline = time.monotonic() + self._timeout + _MORE_S
        conversation = Conversation(process, payload, ANSWER)
        try:
            conversation.until(deadline)
            if conversation.too_much:
                raise CommandFailed(f"ceph {command}", -errno.EFBIG, f"more than {ANSWER >> 20} MiB were answered")
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired as exc:
            raise ClusterTimeout(f"`ceph {command}` did not answer within {self._timeout:g} s") from exc
        except KeyboardInterrupt:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_INTERRUPTED_S)
            raise
        finally:
            end_all(process)
        return (
            process.returncode,
            conversation.output.decode(errors="replace"),
            conversation.errors.decode(errors="replace"),
        )


def _positional(arguments: Mapping[str, str]) -> List[str]:
    """The values in their order. Raises InputError for one that is an option: what is stored may be anybody's.

    Two dashes before them would not do: a launcher may add options of its own at the end.
    """
    words = [(name, word) for name, value in arguments.items() for word in _words(name, value)]
    for name, value in words:
        if "\0" in value:
            raise InputError(f"ceph {name}", repr(value[:60]), "a value without the character NUL")
        if value.startswith("-") and value != f"--{name.replace('_', '-')}" and not _NUMBER.fullmatch(value):
            raise InputError(f"ceph {name}", repr(value[:60]), "a value that is no option of the ceph program")
    return [word for _, word in words]


def _words(name: str, value: str) -> List[str]:
    return value.split() if name in _LISTS else [value]


def is_from_ceph(message: str) -> bool:
    """Whether the `ceph` program has put this on standard error: what it says of a failure bears a mark."""
    lines = [line.strip() for line in message.splitlines()]
    return any(_ERROR.match(line) or _LIBRADOS.match(line) for line in lines) or _says_no_conf(message)


def _says_no_conf(message: str) -> bool:
    return "conf_read_file" in message or ("ceph.conf" in message and "No such file" in message)


def failure(command: str, code: int, message: str) -> TunerError:
    """The error for a failed command, from its negative errno and the words on standard error."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    matches = [match for match in map(_ERROR.match, lines) if match]
    if matches:
        code = -getattr(errno, matches[-1].group(1), -code)
        words = matches[-1].group(2) or matches[-1].group(1)
    else:
        words = lines[-1] if lines else errno.errorcode.get(-code, "")
        numbers = [match for match in map(_LIBRADOS.match, lines) if match]
        # the program ends with 1 then, whatever the number
        code = -int(numbers[-1].group(1)) if numbers else code
    if _says_no_conf(message):
        return ClusterNotFound(
            "cluster", "no readable ceph.conf", "the name of a lab, `ceph`, or a path of a ceph.conf"
        )
    if code in (-errno.EACCES, -errno.EPERM) or "permission denied" in message or "access denied" in message:
        return PermissionRefused(command, words, "a keyring whose capabilities allow the command")
    if code == -errno.ETIMEDOUT or "timed out" in message:
        return ClusterTimeout(f"`{command}` timed out: {words}")
    return CommandFailed(command, code, words)
