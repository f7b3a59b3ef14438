"""Compiles the kernel with numba: all that an entry calls becomes one piece of machine code. Imports numba.

numba by itself makes machine code of each function, with all that it calls: of most code several times, and none of
that is called. So a function is only written into its entry's library here, and that is compiled once.
"""

# numba has no types of its own here
# mypy: disallow-untyped-calls=False, disallow-untyped-decorators=False, disallow-subclassing-any=False

from __future__ import annotations

import math
from functools import partial
from types import BuiltinFunctionType, FunctionType
from typing import Any, Callable, Dict, Sequence, Type

import numba
import numba._dynfunc as dynfunc
from numba import types
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import register_pass
from numba.core.registry import cpu_target
from numba.core.typed_passes import NativeLowering

from ceph_tuner.twin import kernel_entries, kernel_types
from ceph_tuner.twin.compiled import MODULES, SELDOM
from ceph_tuner.twin.machine_code import Entry, MachineCode

NUMBERS: Dict[Any, Any] = {int: types.int64, float: types.float64, None: types.void}

OUTSIDE = frozenset({"fmod", "frexp", "log", "log1p", "pow"})
"""What machine code may call besides: the C library's, which every process has."""


@global_compiler_lock
def machine_code(entry: Entry) -> MachineCode:
    """An entry and all that it calls. Raises RuntimeError where it needs more of a process than OUTSIDE."""
    library = cpu_target.target_context.codegen().create_library(entry.name)
    library.enable_object_caching()
    function = _bound(entry, _compiler_into(library))
    arguments = tuple(NUMBERS[kind] for kind in entry.takes)
    function.compile(NUMBERS[entry.gives](*arguments))
    symbol = function.overloads[arguments].fndesc.mangled_name
    for made in library.get_defined_functions():
        # LLVM may drop what it has inlined everywhere
        if made.name != symbol:
            made.linkage = "linkonce_odr"
    library.finalize()
    needed = {made.name for made in library._final_module.functions if made.is_declaration}
    missing = {name for name in needed if not name.startswith("llvm.")} - OUTSIDE
    if missing:
        raise RuntimeError(f"the compiled kernel would need {sorted(missing)}")
    return MachineCode(symbol, library.serialize_using_object_code()[2][0])


def _bound(entry: Entry, pipeline: Type[CompilerBase]) -> Any:
    """An entry, bound to compiled versions of the kernel's functions, and these to each other."""
    # numba's type information lacks what turns reference counting off
    njit: Any = partial(
        numba.njit, pipeline_class=pipeline, error_model="numpy", _nrt=False,
        # nobody but the kernel calls them
        no_cpython_wrapper=True, no_cfunc_wrapper=True,
    )  # fmt: skip
    compiled: Dict[Any, Any] = {math.frexp: kernel_types.frexp}
    for module in (*MODULES, kernel_entries):
        names = {name: compiled.get(_key(value), value) for name, value in vars(module).items()}
        for name, function in vars(module).items():
            if isinstance(function, FunctionType) and function.__module__ == module.__name__:
                own = FunctionType(function.__code__, names, name, function.__defaults__)
                own.__module__ = module.__name__
                inlined = module is not kernel_entries and (module, name) not in SELDOM
                made = njit(own, forceinline=inlined)
                made.get_call_template = partial(_for_any_number, made.get_call_template)
                names[name] = compiled[function] = made
    return compiled[getattr(kernel_entries, entry.name)]


def _key(value: Any) -> Any:
    return value if isinstance(value, (FunctionType, BuiltinFunctionType)) else None


def _for_any_number(template: Callable[..., Any], arguments: Sequence[Any], names: Any) -> Any:
    """The compiled version of a function for a call; numba would make another for each number that a call gives.

    Where it is inlined the number reaches all of it anyway; a third more functions would be compiled.
    """
    return template(tuple(map(types.unliteral, arguments)), names)


def _compiler_into(library: Any) -> Type[CompilerBase]:
    """Numba's compiler, but it only writes functions into that library."""

    @register_pass(mutates_CFG=True, analysis_only=False)
    class Lowering(NativeLowering):
        _name = "kernel_lowering"

        def run_pass(self, state: Any) -> bool:
            state.library = library
            state.flags.no_compile = True
            super().run_pass(state)
            made = state["cr"]
            # numba knows a compiled function by what Python would call
            name = made.fndesc.qualname
            known_by = dynfunc.make_function(made.fndesc.lookup_module(), name, "", 0, made.env, (library,))
            state.targetctx.insert_user_function(known_by, made.fndesc)
            state["cr"] = made._replace(cfunc=known_by)
            return True

    class Compiler(CompilerBase):
        def define_pipelines(self) -> Any:
            manager = DefaultPassBuilder.define_nopython_pipeline(self.state, "kernel")
            manager.passes = [(Lowering if own is NativeLowering else own, why) for own, why in manager.passes]
            manager.finalize()
            return [manager]

    return Compiler
