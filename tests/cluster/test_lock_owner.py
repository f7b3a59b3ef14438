"""Who a claim says it is of."""

from __future__ import annotations

import os

import pytest

from ceph_tuner.core.changes import lock_owner


def test_who_writes_is_whom_the_kernel_says(monkeypatch: pytest.MonkeyPatch) -> None:
    before = lock_owner.this_process().name
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "somebody-else")
    assert lock_owner.this_process().name == before
    assert f", uid {os.getuid()} (ceph-tuner, process {os.getpid()})" in before
    assert f", uid {os.getuid()}, client.tuner (ceph-tuner" in lock_owner.this_process(entity="client.tuner").name
    monkeypatch.setattr(lock_owner.os, "getuid", lambda: 4_000_000_123)
    assert lock_owner.this_process().name.startswith("uid 4000000123 (ceph-tuner, process ")
