"""Who a claim says it is of."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ceph_tuner.core.changes import lock_owner
from ceph_tuner.core.changes.lock import Holder
from ceph_tuner.core.changes.lock_owner import may_live, this_process


def test_who_writes_is_whom_the_kernel_says(monkeypatch: pytest.MonkeyPatch) -> None:
    before = lock_owner.this_process().name
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "somebody-else")
    assert lock_owner.this_process().name == before
    assert f", uid {os.getuid()} (ceph-tuner, process {os.getpid()})" in before
    assert f", uid {os.getuid()}, client.tuner (ceph-tuner" in lock_owner.this_process(entity="client.tuner").name
    monkeypatch.setattr(lock_owner.os, "getuid", lambda: 4_000_000_123)
    assert lock_owner.this_process().name.startswith("uid 4000000123 (ceph-tuner, process ")


def test_what_this_process_was_before_it_executed_itself_anew_is_dead() -> None:
    own = this_process("mgr.x")
    pid, start, program = own.process.split(":")
    assert may_live(own)
    assert not may_live(Holder("mgr.x", own.host, f"{pid}:{start}:{'0' if program[0] != '0' else '1'}{program[1:]}"))
    # as an older version wrote it
    assert not may_live(Holder("mgr.x", own.host, f"{pid}:{start}"))
    parent = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[19]
    assert may_live(Holder("its parent", own.host, f"{os.getppid()}:{parent}:01234567"))
    assert may_live(Holder("its parent", own.host, f"{os.getppid()}:{parent}"))
    assert not may_live(Holder("its parent", own.host, f"{os.getppid()}:{int(parent) + 1}:01234567"))
    assert may_live(Holder("elsewhere", "another host", f"{pid}:{start}:01234567"))
