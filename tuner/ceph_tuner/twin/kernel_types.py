"""The kernel's records and tables as numba is told of them: addresses, and nothing else.

numba's own array is seven values, and an index below 0 counts from the end. A state of sixteen arrays is more than a
hundred values, which each function hands on to the next. Here a record, a table and a whole state are one address each,
and an index is a place. What is read and written is the same. Imports numba.
"""

# numba has no types of its own here
# mypy: disallow-untyped-calls=False, disallow-untyped-decorators=False, disallow-subclassing-any=False

from __future__ import annotations

import math
import operator
from typing import Any, Optional, Tuple

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_getattr, infer_global, signature
from numba.extending import (
    intrinsic,
    lower_builtin,
    lower_getattr_generic,
    lower_setattr_generic,
    models,
    register_model,
)

from ceph_tuner.twin.kernel.dmclock import Queue
from ceph_tuner.twin.kernel.layout import dtype_of, fields_of
from ceph_tuner.twin.kernel.state import ELEMENTS, SINGLE, SimulationState

WORD_BYTES = 8
"""Of int, float and an address."""


class RecordAt(types.Type):
    """The address of a record of that class."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        super().__init__(f"RecordAt({kind.__module__}.{kind.__name__})")


class TableAt(types.Type):
    """The address of a table of int, float or records. `inner`: the shape of what one index gives."""

    def __init__(self, kind: Any, inner: Tuple[int, ...] = ()) -> None:
        self.kind, self.inner = kind, inner
        self.dtype = value_type(kind, inner)
        self.step_bytes = dtype_of(kind).itemsize * math.prod(inner)
        super().__init__(f"TableAt({self.dtype}, {inner})")


class StateAt(types.Type):
    """The address of the addresses of a state's fields."""

    def __init__(self) -> None:
        super().__init__("StateAt")


def value_type(kind: Any, shape: Tuple[int, ...]) -> Any:
    """Numba's type of a field, or of a table's element."""
    if shape:
        return TableAt(kind, shape[1:])
    return {int: types.int64, float: types.float64}.get(kind) or RecordAt(kind)


def _field(kind: Any, name: str) -> Optional[Tuple[Any, int]]:
    """A field's type, and where in its record it is (bytes); None where there is none."""
    offset = 0
    for own, element, shape in fields_of(kind):
        if own == name:
            return value_type(element, shape), offset
        offset += dtype_of(element).itemsize * math.prod(shape)
    return None


for _kind in (RecordAt, TableAt, StateAt):
    register_model(_kind)(models.OpaqueModel)


@infer_getattr
class _RecordFields(AttributeTemplate):
    key = RecordAt

    def generic_resolve(self, record: RecordAt, name: str) -> Any:  # type: ignore[override]
        found = _field(record.kind, name)
        return found and found[0]


@infer_getattr
class _StateFields(AttributeTemplate):
    key = StateAt

    def generic_resolve(self, state: StateAt, name: str) -> Any:  # type: ignore[override]
        if name in ELEMENTS:
            return value_type(ELEMENTS[name], () if name in SINGLE else (0,))
        return None


@infer_global(operator.getitem)
class _TableGet(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        table, place = args
        if isinstance(table, TableAt) and isinstance(place, types.Integer):
            return signature(table.dtype, table, types.int64)
        return None


@infer_global(operator.setitem)
class _TableSet(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        table, place, _ = args
        if isinstance(table, TableAt) and isinstance(place, types.Integer):
            return signature(types.none, table, types.int64, table.dtype)
        return None


def _pointer(context: Any, builder: Any, held: Any, at: Any) -> Any:
    return builder.bitcast(at, context.get_value_type(held).as_pointer())


def _value(context: Any, builder: Any, held: Any, at: Any) -> Any:
    """What lies there: a number; of records and tables the address."""
    if isinstance(held, (RecordAt, TableAt)):
        return at
    return builder.load(_pointer(context, builder, held, at))


def _moved(builder: Any, address: Any, by: Any) -> Any:
    return builder.gep(address, [by], inbounds=True)


@lower_getattr_generic(RecordAt)
def _get_field(context: Any, builder: Any, record: RecordAt, address: Any, name: str) -> Any:
    held, offset = _field(record.kind, name) or (None, 0)
    return _value(context, builder, held, _moved(builder, address, cgutils.intp_t(offset)))


@lower_setattr_generic(RecordAt)
def _set_field(context: Any, builder: Any, sig: Any, args: Any, name: str) -> None:
    record, given = sig.args
    held, offset = _field(record.kind, name) or (None, 0)
    value = context.cast(builder, args[1], given, held)
    builder.store(value, _pointer(context, builder, held, _moved(builder, args[0], cgutils.intp_t(offset))))


@lower_getattr_generic(StateAt)
def _get_state_field(context: Any, builder: Any, state: StateAt, address: Any, name: str) -> Any:
    offset = SimulationState._fields.index(name) * WORD_BYTES
    place = builder.bitcast(_moved(builder, address, cgutils.intp_t(offset)), cgutils.voidptr_t.as_pointer())
    found = builder.load(place)
    # tables stay where they are: LLVM need not read this again after something was written
    found.set_metadata("invariant.load", builder.module.add_metadata([]))
    return found


def _element(builder: Any, table: TableAt, address: Any, place: Any) -> Any:
    return _moved(builder, address, builder.mul(place, cgutils.intp_t(table.step_bytes)))


@lower_builtin(operator.getitem, TableAt, types.int64)
def _get_element(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    table, (address, place) = sig.args[0], args
    return _value(context, builder, table.dtype, _element(builder, table, address, place))


@lower_builtin(operator.setitem, TableAt, types.int64, types.Any)
def _set_element(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    table, (address, place, value) = sig.args[0], args
    builder.store(value, _pointer(context, builder, table.dtype, _element(builder, table, address, place)))
    return context.get_dummy_value()


def _at(kind: Any) -> Any:
    """A function that takes an address for that of such a thing."""

    def typed(typing_context: Any, address: Any) -> Any:
        return signature(kind, address), _as_address

    return intrinsic(typed)


def _as_address(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.inttoptr(args[0], cgutils.voidptr_t)


state_at, queues_at, numbers_at = _at(StateAt()), _at(TableAt(Queue)), _at(TableAt(float))


@intrinsic
def frexp(typing_context: Any, number: Any) -> Any:
    """`math.frexp` of a finite number, of the C library: numba's own is in numba."""
    return signature(types.Tuple((types.float64, types.intc)), types.float64), _frexp


def _frexp(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    number, exponent = (context.get_value_type(held) for held in sig.return_type)
    place = cgutils.alloca_once(builder, exponent)
    kind = ir.FunctionType(number, (number, exponent.as_pointer()))
    function = cgutils.get_or_insert_function(builder.module, kind, "frexp")
    fraction = builder.call(function, (args[0], place))
    return context.make_tuple(builder, sig.return_type, (fraction, builder.load(place)))
