"""The kernel's machine code: kept in a file, and loaded without numba, whose import takes longer than all the rest.

Functions have the calling convention of numba: a pointer to the result, one to an error, then the arguments.
"""

from __future__ import annotations

import ctypes
import hashlib
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple, Union

from ceph_tuner.core.atomic_write import write_bytes

Number = Union[int, float]
KINDS: Dict[type, Any] = {int: ctypes.c_int64, float: ctypes.c_double}


class Entry(NamedTuple):
    """What Python calls of the compiled kernel."""

    name: str
    """Of a function of `kernel_entries.py`."""
    takes: Tuple[type, ...]
    """int or float for each argument; addresses are int."""
    gives: Optional[type]


class MachineCode(NamedTuple):
    """An object file, and the function in it that is the entry."""

    symbol: str
    content: bytes


def made_for() -> str:
    """What machine code depends on besides its sources: this machine's processor, and who compiles."""
    from llvmlite import binding as llvm

    features = ""
    # LLVM does not know them of every processor
    with suppress(RuntimeError):
        features = llvm.get_host_cpu_features().flatten()
    compiler = (version("numba"), version("llvmlite"))
    return " ".join((*compiler, llvm.get_process_triple(), llvm.get_host_cpu_name(), features))


def kept(file: Path) -> Optional[MachineCode]:
    """Machine code from a file; None where there is none, or not all that was written."""
    try:
        digest, symbol, content = file.read_bytes().split(b"\n", 2)
    except (OSError, ValueError):
        return None
    return MachineCode(symbol.decode(), content) if digest == _digest(symbol, content) else None


def keep(file: Path, code: MachineCode) -> None:
    """Write it, in one step, as other processes may write the same. Raises InputError or PermissionRefused."""
    symbol = code.symbol.encode()
    write_bytes(file, b"\n".join((_digest(symbol, code.content), symbol, code.content)), force=True)


def _digest(*parts: bytes) -> bytes:
    return hashlib.sha256(b"\n".join(parts)).hexdigest().encode()


def loaded(code: MachineCode, entry: Entry) -> Callable[..., Any]:
    """The entry, to be called from Python. It raises RuntimeError where the kernel failed."""
    from llvmlite import binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code.content))
    engine.finalize_object()
    kinds = (ctypes.c_void_p, ctypes.c_void_p, *(KINDS[kind] for kind in entry.takes))
    # as numba does, it keeps other threads of Python waiting
    function = ctypes.PYFUNCTYPE(ctypes.c_int32, *kinds)(engine.get_function_address(code.symbol))

    def call(*arguments: Number) -> Any:
        result, error = ctypes.c_double(), ctypes.c_void_p()
        status = function(ctypes.addressof(result), ctypes.addressof(error), *arguments)
        if status != 0:
            raise RuntimeError(f"{entry.name} of the compiled kernel ended with status {status}")
        return result.value if entry.gives is float else None

    # the code lives as long as its engine
    call.engine = engine  # type: ignore[attr-defined]
    return call
