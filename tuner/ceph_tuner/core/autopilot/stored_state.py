"""Reads the fields of a state machine's state from what the store has of it."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Tuple

_NONE = type(None)
_KINDS: Mapping[str, Tuple[type, ...]] = {
    "str": (str,),
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
    "Optional[int]": (int, _NONE),
    "Optional[float]": (int, float, _NONE),
}
"""What a field's annotation lets JSON hold."""


def stored_fields(state: Any, document: Mapping[str, Any]) -> Dict[str, Any]:
    """Fields of the dataclass `state` that a document has; names that this version does not know are dropped.

    Values of other annotations than numbers and texts are as they are in the document. Raises TypeError for what is no
    object, and for a value that its field cannot hold: damage that is not noticed here would be met at each sample,
    with a trial on the cluster.
    """
    if not isinstance(document, dict):
        raise TypeError(f"the state is {type(document).__name__}, not an object")
    fields = state.__dataclass_fields__
    values = {name: document[name] for name in fields if name in document}
    for name, value in values.items():
        kinds = _KINDS.get(str(fields[name].type))
        if kinds is not None and (not isinstance(value, kinds) or isinstance(value, bool) != (kinds == (bool,))):
            raise TypeError(f"{name} is {value!r:.100}")
    return values


def journal_numbers(value: Any) -> Tuple[int, ...]:
    """Numbers of changes, of which another one would be somebody else's change. Raises TypeError."""
    if not isinstance(value, list) or any(type(each) is not int for each in value):
        raise TypeError(f"changes is {value!r:.100}")
    return tuple(value)
