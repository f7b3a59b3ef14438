"""How records lie in memory: a class with annotated fields is a numpy dtype, and for plain Python an object.

    class Slot(Record):
        osd: int
        locked_until_s: float
        marks: Annotated[List[int], 16]

Fields are int (int64), float (float64), another record, or an array of these, whose shape its annotation gives. A table
of records is a structured array for numpy, in whose memory compiled code works. For plain Python it is a list of
objects, whose attributes are three times as quick there. The same source reads both: `table[i].locked_until_s`. An
index is never below 0.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Callable, List, Sequence, Tuple, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Record:
    """What has fields. Records are equal where all that they hold is."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and vars(self) == vars(other)


R = TypeVar("R", bound=Record)
Field = Tuple[str, Any, Tuple[int, ...]]
"""Name, int, float or a record, and shape: () for a single one."""


@cache
def fields_of(kind: Any) -> Tuple[Field, ...]:
    """A record's fields, in the order in which they lie."""
    return tuple((name, *_element(hint)) for name, hint in get_type_hints(kind, include_extras=True).items())


def _element(hint: Any) -> Tuple[Any, Tuple[int, ...]]:
    if get_origin(hint) is not Annotated:
        return hint, ()
    held, shape = get_args(hint)
    while get_origin(held) is list:
        (held,) = get_args(held)
    return held, shape if isinstance(shape, tuple) else (shape,)


@cache
def dtype_of(kind: Any) -> np.dtype[Any]:
    """The numpy type of a record, or of int or float."""
    if kind in (int, float):
        return np.dtype(np.int64 if kind is int else np.float64)
    return np.dtype([(name, dtype_of(element), shape) for name, element, shape in fields_of(kind)])


def as_objects(kind: Callable[[], R], table: Array) -> List[R]:
    """A table's records as objects."""
    fields = fields_of(kind)
    names = [name for name, _, _ in fields]
    columns = [_as_lists(element, table[name]) for name, element, _ in fields]
    objects = []
    for values in zip(*columns):
        one = kind()
        one.__dict__.update(zip(names, values))
        objects.append(one)
    return objects


def _as_lists(element: Any, column: Array) -> List[Any]:
    if element in (int, float):
        return list(column.tolist())
    flat: List[Any] = as_objects(element, column.reshape(-1))
    for length in reversed(column.shape[1:]):
        flat = [flat[first : first + length] for first in range(0, len(flat), length)]
    return flat


def write_back(kind: Any, objects: Sequence[Any], table: Array) -> None:
    """Bring objects' values into the table that they were made from."""
    for name, element, shape in fields_of(kind):
        column = table[name]
        values: List[Any] = [getattr(one, name) for one in objects]
        if element in (int, float):
            column[...] = np.asarray(values, dtype=column.dtype).reshape(column.shape)
            continue
        # a reshaped column would be a copy
        for place in np.ndindex(shape):
            own = values
            for index in place:
                own = [several[index] for several in own]
            rows: Tuple[Any, ...] = (slice(None), *place)
            write_back(element, own, column[rows])


def new(kind: Callable[[], R]) -> R:
    """One record, all zero, as an object."""
    return as_objects(kind, np.zeros(1, dtype_of(kind)))[0]
