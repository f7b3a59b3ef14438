"""What the plugin works for, in names: whose a change, a stored state or a sentence is."""

from __future__ import annotations

import re

_OF_CLASS = re.compile(r"\(class (?P<name>[^()]+)\)$")


def for_class(who: str, device_class: str) -> str:
    """The name of what works for one device class; without one, for the cluster as a whole."""
    return f"{who} (class {device_class})" if device_class else who


def key_for_class(key: str, device_class: str) -> str:
    """The key under which what works for one device class is kept, or found; without one, for the whole cluster."""
    return f"{key}/{device_class}" if device_class else key


def said_of_class(words: str, device_class: str) -> str:
    """What is said of one device class; without one, of the whole cluster."""
    return f"class {device_class}: {words}" if device_class else words


def class_of(who: str) -> str:
    """The class that a name is for; empty for the whole cluster's."""
    found = _OF_CLASS.search(who)
    return found["name"] if found else ""
