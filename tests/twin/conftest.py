"""The compiled kernel, made once: tests side by side wait for the first one's machine code in numba's cache."""

from __future__ import annotations

import compile_kernel
import pytest

from ceph_tuner.twin import compiled


@pytest.fixture(scope="session")
def kernel_compiled() -> None:
    """The machine code is there."""
    if not compiled.available():
        pytest.skip("numba is not installed, or switched off")
    compile_kernel.main()
