"""What documents in a cluster's store have in common: a version, and what a newer one put beside.

Who reads a document takes what it knows and ignores the rest; who writes it again puts the rest back. So a mgr that was
downgraded loses nothing of what the next upgrade finds.
"""

from __future__ import annotations

from typing import Any, Collection, Dict, Mapping

VERSION = 1
"""Of what this version stores. One that a newer version gave stays where it is."""


def versioned(document: Mapping[str, Any], beside: Mapping[str, Any] = {}) -> Dict[str, Any]:
    """What is stored of a document; `beside` is what was there and is not known."""
    return {"version": VERSION, **beside, **document}


def unknown_in(stored: Any, known: Collection[str]) -> Dict[str, Any]:
    """Fields of what was stored that are not among those known, with the version where it is a newer one."""
    if not isinstance(stored, dict):
        return {}
    return {name: value for name, value in stored.items() if name not in known and not _is_ours(name, value)}


def _is_ours(name: str, value: Any) -> bool:
    return name == "version" and not (type(value) is int and value > VERSION)
