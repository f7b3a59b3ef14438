"""The error tree, ordered by what the operator can do about it.

TunerError
├── InputError            fix what was given: file, flag, name, permission        exit 2
│   ├── Malformed         what was read is no document of bounded size, depth and numbers
│   ├── Pointless         the command makes no sense in the present state
│   ├── ClusterNotFound   no such cluster, or nothing answers at its address
│   └── PermissionRefused the cluster or the machine refuses the caller
├── RetryLater            nothing is wrong with the request; try again            exit 3
│   ├── Locked            another tuner is at work on this cluster
│   ├── ClusterTimeout    the cluster did not answer in time
│   └── NotQuiet          other work runs that would spoil a measurement
└── Stopped               the tuner stopped to protect the cluster; look first    exit 4
    ├── EffectNotSeen     a write was accepted and the OSDs do not show it
    ├── CommandFailed     the cluster refused or failed a command
    ├── JournalDamaged    the journal cannot be read: nothing is written
    └── LabFailed         a step of the lab failed
        └── LoadFailed    a load on it failed
"""

from __future__ import annotations

from typing import Callable, Dict, Optional, Tuple, Type


class TunerError(Exception):
    """Anything that ends a command with one line for the operator: what is wrong, and the next step to take."""

    exit_code = 1
    next_step = "see `ceph-tuner history` for what was written"

    def __init__(self, message: str = "", next_step: Optional[str] = None) -> None:
        """Take the step to take here, where it is another one than for most errors of this kind; "": it is said."""
        super().__init__(message)
        if next_step is not None:
            self.next_step = next_step

    def __reduce__(
        self,
    ) -> Tuple[Callable[..., TunerError], Tuple[Type[TunerError], Tuple[object, ...], Dict[str, object]]]:
        """As it is, whatever its `__init__` takes: a pool whose process raises what cannot be read back is lost."""
        return _read_back, (type(self), self.args, dict(self.__dict__))

    @property
    def advised(self) -> str:
        """The message with the next step, for people who wait for it; the text of the error itself has none."""
        return f"{self}. Next: {self.next_step}" if self.next_step else str(self)


def _read_back(kind: Type[TunerError], args: Tuple[object, ...], fields: Dict[str, object]) -> TunerError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(fields)
    return error


class InputError(TunerError):
    """Something that the operator gave cannot be used as it is."""

    exit_code = 2
    next_step = ""
    """What was expected says it."""

    def __init__(self, place: str, found: str, expected: str, message: str = "") -> None:
        """Name the place (`slo.yaml:4 client.p95_ms`), what was found there, what was expected.

        `message`: a sentence of those three, where that is another one than "found …, expected …".
        """
        super().__init__(message or f"{place}: found {found}, expected {expected}")
        self.place, self.found, self.expected = place, found, expected


class Malformed(InputError, ValueError):
    """Something that was read is no document, or too large or too deep for one."""


class Pointless(InputError):
    """A command makes no sense in the present state, as to cancel what is not on."""

    def __init__(self, place: str, state: str, shown_by: str) -> None:
        """Name the place, the state as a sentence, and the command that shows it."""
        super().__init__(place, state, f"another state (`{shown_by}`)", f"{place}: {state}; see `{shown_by}`")


class ClusterNotFound(InputError):
    """There is no cluster of that name, or none answers there."""


class PermissionRefused(InputError):
    """The machine or the cluster does not let the caller do this."""


class RetryLater(TunerError):
    """The request is sound, the moment is not."""

    exit_code = 3
    next_step = "try again later"


class Locked(RetryLater):
    """Another tuner holds the cluster's lock."""

    next_step = "try again when it is done; what died frees it by itself (`ceph-tuner lock show`)"


class ClusterTimeout(RetryLater):
    """The cluster did not answer in time."""

    next_step = "see whether `ceph -s` answers, then try again"


class NotQuiet(RetryLater):
    """Other work runs on the cluster that would spoil a measurement."""

    next_step = "wait until that is over, then try again"


class Stopped(TunerError):
    """The tuner stopped by itself; the operator should look before going on."""

    exit_code = 4


class EffectNotSeen(Stopped):
    """The configuration database took a value and an OSD does not show it."""

    next_step = "see by `ceph config show osd.N` what that OSD has instead, and from where"


class CommandFailed(Stopped):
    """The cluster refused a command, or failed it."""

    next_step = "see `ceph -s`; the log of the daemon that answered says more"

    def __init__(self, command: str, code: int, message: str) -> None:
        """Keep the command, its negative errno and the daemon's words."""
        super().__init__(f"`{command}` failed with {code}: {message.strip() or 'no message'}")
        self.command, self.code, self.message = command, code, message


class UnknownOption(CommandFailed):
    """The release has no option of that name: it came later, or was retired."""


class JournalDamaged(Stopped):
    """An entry of the journal cannot be read back."""

    next_step = "use the version that wrote it, or look at it by `ceph config-key get` and remove it"


class LabFailed(Stopped):
    """A step of the throwaway cluster failed."""

    next_step = "`ceph-tuner lab down` removes what is left, then `ceph-tuner lab up` again"


class LoadFailed(LabFailed):
    """A load on it failed."""

    next_step = "see `ceph-tuner lab exec ceph -s`; `ceph-tuner lab load clean` removes what is left of loads"
