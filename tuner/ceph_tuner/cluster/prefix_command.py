"""Runs the `ceph` program behind a prefix, such as `ssh admin@mon1 sudo` or `kubectl exec deploy/rook-ceph-tools --`.

The words of the prefix are those that an operator types before `ceph -s`. Some programs hand the arguments on as they
are (`kubectl exec`), others join them with blanks for a shell over there (`ssh`): for each such shell they are quoted
once. The decision goes by the names of the programs, and nothing is guessed of one that is not known.

The words may have a password (`sshpass -p …`, `kubectl --token=…`). Of them no text shows more than the first program's
name and the host.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from typing import Iterator, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.cluster.cephcli import CephCli, is_from_ceph
from ceph_tuner.core.ceph.commands import STORE_PREFIX
from ceph_tuner.core.errors import InputError

BY_A_SHELL = ("ssh", "autossh")
"""Programs that have a shell over there parse what they are given."""
AS_IT_IS = (
    "kubectl", "oc", "docker", "podman", "nerdctl", "lxc", "incus", "cephadm", "nsenter", "chroot",
    "sudo", "doas", "env", "nice", "ionice", "timeout", "sshpass",
)  # fmt: skip
"""Programs that hand arguments on as they are."""
_WITH_EXEC = ("kubectl", "oc", "docker", "podman", "nerdctl")
"""Of these `exec` gives a command no input unless it is told to (`-i`)."""
_TERMINAL = re.compile(r"-[iT]*t[itT]*\Z")
_FAR_END = re.compile(r"command terminated with (?:non-zero )?exit code[: ]+\d+")
"""`kubectl exec` says so last, of whatever ended."""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_SSH_WITH_VALUE = re.compile(r"-[^BbcDEeFIiJLlmOoPpQRSWw]*[BbcDEeFIiJLlmOoPpQRSWw]\Z")
"""Options of ssh that take the next word."""
_PUBLIC_OPTIONS = ("-n", "--namespace", "-c", "--container", "--context", "-i", "--stdin", "--")
"""What follows them is a name; what follows any other option may be a secret."""
_HIDDEN, _SHORT = "…", 4

LONGEST = 4096
"""Characters of a prefix."""
MOST_SHELLS = 3
_PROBE = f"{STORE_PREFIX}prefix-command"
_PLACE = "--prefix-command"


@dataclass(frozen=True)
class PrefixCommand:
    """A way to a machine that has the `ceph` program, its ceph.conf and a keyring."""

    words: Tuple[str, ...] = field(repr=False)
    shells: int = 0
    """How many shells parse the arguments on the way."""
    conf: str = ""
    """Path of the ceph.conf over there; the usual one where it is empty."""

    @classmethod
    def parse(cls, text: str, shells: Optional[int] = None, conf: str = "", place: str = _PLACE) -> PrefixCommand:
        """Split a prefix as a shell does. Raises InputError, also where nothing is known of its program."""
        try:
            words = shlex.split(text)
        except ValueError as fault:
            raise InputError(place, str(fault).lower(), "words as a shell takes them") from None
        if not words or len(text) > LONGEST or "\0" in text:
            size = "a character NUL" if "\0" in text else f"{len(text)} characters"
            raise InputError(place, size, f"a command such as `ssh admin@mon1 sudo`, of at most {LONGEST} characters")
        if _ASSIGNMENT.match(words[0]):
            variable = words[0].partition("=")[0][:60]
            raise InputError(place, f"`{variable}=` in the place of a program", f"`env {variable}=…` before it")
        if shells is not None and not 0 <= shells <= MOST_SHELLS:
            raise InputError(f"{place} (shells)", str(shells), f"0 to {MOST_SHELLS}")
        _refuse_terminals(words, place)
        return cls(tuple(words), _shells(words, place) if shells is None else shells, conf)

    def launch(self, command: Sequence[str]) -> List[str]:
        """`cephcli.Launcher`: the argv that runs a command over there."""
        conf = ["--conf", self.conf] if self.conf else []
        arguments = [command[0], *conf, *command[1:]]
        for _ in range(self.shells):
            arguments = [shlex.quote(argument) for argument in arguments]
        return [*self._words_with_input(), *arguments]

    def fault(self, code: int, words: str) -> str:
        """`cephcli.Fault`: what kept the prefix itself from running a command; empty where it ran.

        What the `ceph` program has to say of a failure bears its mark. No exit code does: 1 is EPERM and everybody's.
        """
        if code == 0 or (code > 0 and is_from_ceph(words)):
            return ""
        lines = [line.strip() for line in words.splitlines() if line.strip()]
        own = [line for line in lines if not _FAR_END.search(line)] or lines
        return f"{self} ended with {code}: {self._without_values(own[-1])[:300] if own else 'no message'}"

    def _without_values(self, line: str) -> str:
        """A line of the prefix's programs, which may repeat what they were given."""
        for value in sorted(self._values(), key=len, reverse=True):
            # a short one is part of many words
            edge = r"\b" if value.isalnum() and len(value) < _SHORT else ""
            line = re.sub(f"{edge}{re.escape(value)}{edge}", _HIDDEN, line)
        return line

    def _values(self) -> Iterator[str]:
        """Whatever of the words may be a secret: values of options and variables, and of an unknown program all."""
        public = {*map(_name, self.words[:1]), self._host, *BY_A_SHELL, *AS_IT_IS, "exec", "--", ""}
        is_familiar = _name(self.words[0]) in (*BY_A_SHELL, *AS_IT_IS)
        for before, word in zip(self.words, self.words[1:]):
            is_value = before.startswith("-") and before not in _PUBLIC_OPTIONS
            parts = [word] if is_value or not is_familiar else []
            parts += [word.partition("=")[2], word.rpartition("@")[0], word.rpartition("@")[0].rpartition(":")[2]]
            if word.startswith("-") and not word.startswith("--"):
                parts.append(word[2:])
            yield from (part for part in parts if part not in public)

    @property
    def _host(self) -> str:
        """Where the first ssh goes, without the user; empty where there is none."""
        names = [_name(word) for word in self.words]
        first = next((at for at, name in enumerate(names) if name in BY_A_SHELL), len(names))
        takes_next = False
        for word in self.words[first + 1 :]:
            if takes_next or word.startswith("-"):
                takes_next = not takes_next and bool(_SSH_WITH_VALUE.match(word))
            else:
                return word.rpartition("@")[2].rpartition("//")[2]
        return ""

    def _words_with_input(self) -> List[str]:
        """The words, with the option that has a container's command hear its input."""
        words = list(self.words)
        names = [_name(word) for word in words]
        first = next((at for at, name in enumerate(names) if name in _WITH_EXEC), len(words))
        if "exec" in words[first:]:
            at = words.index("exec", first) + 1
            end = words.index("--", at) if "--" in words[at:] else len(words)
            if not {"-i", "--stdin", "--interactive"} & set(words[at:end]):
                words.insert(at, "-i")
        return words

    def __str__(self) -> str:
        return f"`{_name(self.words[0])}`" + (f" to {self._host}" if self._host else "")


class PrefixedCephCli(CephCli):
    """`ports.Commander` by the `ceph` program behind a prefix."""

    def __init__(self, prefix: PrefixCommand, timeout: float = 30.0) -> None:
        super().__init__(prefix.launch, timeout, prefix.fault)
        self._prefix, self._checked = prefix, False

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        """As `CephCli.mon`. Before the first payload it is seen whether one gets through."""
        if payload and not self._checked:
            self._check_input()
            self._checked = True
        return super().mon(prefix, arguments, payload)

    def _check_input(self) -> None:
        """Raise InputError where what is written to the prefix does not come to the program: a key would be emptied."""
        key = {"key": _PROBE}
        super().mon("config-key set", key, payload="heard")
        try:
            echo = super().mon("config-key get", key)
        finally:
            super().mon("config-key rm", key)
        if echo != "heard":
            raise InputError(
                _PLACE,
                f"{self._prefix}, which passes no input on",
                "one that does, as `kubectl exec -i` and `ssh` do",
            )


def _name(word: str) -> str:
    """Of a program: its own, or the end of its absolute path. `deploy/ssh` is no program."""
    return word.rpartition("/")[2] if word.startswith("/") else word


def _shells(words: Sequence[str], place: str) -> int:
    """How many shells are on the way. Raises InputError where that is not certain."""
    names = [_name(word) for word in words]
    expectation = (
        f"how many shells (`--prefix-shells`, `prefix_shells`) parse the arguments on the way (0 to {MOST_SHELLS})"
    )
    if names[0] not in (*BY_A_SHELL, *AS_IT_IS):
        raise InputError(
            place, f"{names[0][:60]!r}, of which is not known whether a shell over there parses", expectation
        )
    shells = sum(name in BY_A_SHELL for name in names)
    if shells > 1 or (shells and names[0] not in BY_A_SHELL and any(name in AS_IT_IS for name in names[1:])):
        raise InputError(place, f"{' and '.join(name for name in names if name in BY_A_SHELL + AS_IT_IS)}", expectation)
    return shells


def _refuse_terminals(words: Sequence[str], place: str) -> None:
    """A terminal changes what passes through it."""
    names = [_name(word) for word in words]
    first = next((at for at, name in enumerate(names) if name in (*BY_A_SHELL, *_WITH_EXEC)), len(words))
    for word in words[first + 1 :]:
        if word == "--":
            return
        if word in ("--tty", "-tt") or _TERMINAL.match(word):
            raise InputError(place, f"`{word}`, which asks for a terminal", "the command without it")
