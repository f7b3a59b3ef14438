"""The error tree, ordered by what the operator can do about it.

TunerError
├── InputError            fix what was given: file, flag, name, permission        exit 2
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
"""

from __future__ import annotations


class TunerError(Exception):
    """Anything that ends a command with one line for the operator."""

    exit_code = 1


class InputError(TunerError):
    """Something that the operator gave cannot be used as it is."""

    exit_code = 2

    def __init__(self, place: str, found: str, expected: str) -> None:
        """Name the place (`slo.yaml:4 client.p95_ms`), what was found there, what was expected."""
        super().__init__(f"{place}: found {found}, expected {expected}")
        self.place, self.found, self.expected = place, found, expected


class ClusterNotFound(InputError):
    """There is no cluster of that name, or none answers there."""


class PermissionRefused(InputError):
    """The machine or the cluster does not let the caller do this."""


class RetryLater(TunerError):
    """The request is sound, the moment is not."""

    exit_code = 3


class Locked(RetryLater):
    """Another tuner holds the cluster's lock."""


class ClusterTimeout(RetryLater):
    """The cluster did not answer in time."""


class NotQuiet(RetryLater):
    """Other work runs on the cluster that would spoil a measurement."""


class Stopped(TunerError):
    """The tuner stopped by itself; the operator should look before going on."""

    exit_code = 4


class EffectNotSeen(Stopped):
    """The configuration database took a value and an OSD does not show it."""


class CommandFailed(Stopped):
    """The cluster refused a command, or failed it."""

    def __init__(self, command: str, code: int, message: str) -> None:
        """Keep the command, its negative errno and the daemon's words."""
        super().__init__(f"`{command}` failed with {code}: {message.strip() or 'no message'}")
        self.command, self.code, self.message = command, code, message


class JournalDamaged(Stopped):
    """An entry of the journal cannot be read back."""


class LabFailed(Stopped):
    """A step of the throwaway cluster failed."""
