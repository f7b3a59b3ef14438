"""The program with notes of when it is inside the lock: `kills_participant.py ARGUMENTS`, as `ceph-tuner ARGUMENTS`."""

from __future__ import annotations

import os

import lock_trace

from ceph_tuner.core.changes.lock import Lock
from ceph_tuner_cli.main import main

if __name__ == "__main__":
    # this process has it; the programs that it starts are in the lab's tree, where there is no such library
    os.environ.pop("LD_PRELOAD", None)
    lock_trace.install(Lock)
    main()
