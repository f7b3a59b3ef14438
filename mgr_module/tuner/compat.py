"""What differs between the mgr frameworks of Ceph releases; nothing else in the plugin asks for the release.

Up to 20.2.1 a module registers its commands with `CLIReadCommand` and `CLIWriteCommand` in one registry for each
interpreter. From 20.2.2 on all modules share the main interpreter, so each brings a registry of its own, and the
counter getters that know no labels were renamed.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Callable, Mapping, Sequence, Tuple, TypeVar

framework: Any = import_module("mgr_module")
"""Ceph's own module of that name; imported by name, as this project has a folder called so."""

Handler = TypeVar("Handler", bound=Callable[..., Any])

if hasattr(framework, "CLICommandBase"):
    REGISTRY: Any = framework.CLICommandBase.make_registry_subtype("TunerCLICommand")
    """Must be the class attribute `CLICommand` of the module."""

    read_command: Callable[[str], Callable[[Handler], Handler]] = REGISTRY.Read
    write_command: Callable[[str], Callable[[Handler], Handler]] = REGISTRY.Write
else:
    REGISTRY = framework.CLICommand
    read_command = framework.CLIReadCommand
    write_command = framework.CLIWriteCommand


Counters = Callable[[str, str, str], Mapping[str, Sequence[float]]]
"""`("osd", id, counter)` -> the counter's name with `(stamp, value)` or `(stamp, nanoseconds, count)`.

As the OSD last reported it; nothing where it has none. One question takes 1 us, and a tick asks thousands of them.
"""


def counters(module: Any) -> Counters:
    """What a module asks for the counters of daemons."""
    method: Counters = getattr(module, "get_latest_unlabeled_counter", None) or module.get_latest_counter
    return method


def latest_counter(module: Any, osd: int, counter: str) -> Tuple[float, ...]:
    """One counter of an OSD; empty where it has none."""
    return tuple(counters(module)("osd", str(osd), counter)[counter] or ())
