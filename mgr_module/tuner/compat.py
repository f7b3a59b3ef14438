"""What differs between the mgr frameworks of Ceph releases; nothing else in the plugin asks for the release.

Up to 20.2.1 a module registers its commands with `CLIReadCommand` and `CLIWriteCommand` in one registry for each
interpreter. From 20.2.2 on all modules share the main interpreter, so each brings a registry of its own, and the
counter getters that know no labels were renamed.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Callable, List, Tuple, TypeVar

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


def latest_counter(module: Any, osd: int, counter: str) -> Tuple[float, ...]:
    """`(stamp, value)` or `(stamp, nanoseconds, count)` as the OSD last reported it; empty where it has none."""
    getter = getattr(module, "get_latest_unlabeled_counter", None) or module.get_latest_counter
    points: List[float] = getter("osd", str(osd), counter)[counter]
    return tuple(points or ())
