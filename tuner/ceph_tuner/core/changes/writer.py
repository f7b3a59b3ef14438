"""The names under which the plugin writes: the journal and the lock show whose a change is."""

from __future__ import annotations

import re

_OF_CLASS = re.compile(r"\(class (?P<name>[^()]+)\)$")


def for_class(who: str, device_class: str) -> str:
    """The name of what works for one device class; without one, for the cluster as a whole."""
    return f"{who} (class {device_class})" if device_class else who


def class_of(who: str) -> str:
    """The class that a name is for; empty for the whole cluster's."""
    found = _OF_CLASS.search(who)
    return found["name"] if found else ""
