"""Which process of this machine holds a cluster's lock, and whether it still lives."""

from __future__ import annotations

import os
import pwd
import random
import socket
from contextlib import suppress
from pathlib import Path
from typing import Optional

from ceph_tuner.core.ceph.ports import Store
from ceph_tuner.core.changes.lock import LEASE_S, Claim, Holder, claims

_PROC = Path("/proc")
_PROGRAM = f"{random.SystemRandom().getrandbits(32):08x}"


def this_process(name: str = "", entity: str = "") -> Holder:
    """Return what a claim says of this process; `entity`: whose key it uses at the cluster (`client.admin`)."""
    uid = os.getuid()
    who = [f"uid {uid}", *([entity] if entity else [])]
    # the name is for people: what the kernel and the cluster say stands beside it, as LOGNAME and USER are whatever
    # somebody sets them to
    with suppress(KeyError, OSError):
        who.insert(0, pwd.getpwuid(uid).pw_name)
    return Holder(name or f"{', '.join(who)} (ceph-tuner, process {os.getpid()})", _host(), _own_process())


def may_live(holder: Holder) -> bool:
    """Whether a claim's process may still be alive: only this machine's own dead are known to be dead.

    So is what this process was before it executed itself anew, as a mgr does when a module is switched on or off.
    """
    if not holder.process or holder.host != _host():
        return True
    pid, _, rest = holder.process.partition(":")
    if not pid.isdigit():
        return True
    if int(pid) == os.getpid():
        return holder.process == _own_process()
    return _process(int(pid)) == f"{pid}:{rest.partition(':')[0]}"


def claim_at_work(store: Store, now: float) -> Optional[Claim]:
    """The claim of a tuner that may write now (`now`: seconds since the epoch); None where there is none.

    A look alone: the lock itself is asked when something is written. Raises TunerError.
    """
    held = (claim for claim in claims(store) if claim.held and 0 <= claim.expires - now <= LEASE_S)
    return next((claim for claim in held if may_live(claim.holder)), None)


def _host() -> str:
    """This boot of this machine and its process ids: containers on one host have ids of their own."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()[:8]
        processes = os.readlink(_PROC / "self/ns/pid").strip("pid:[]")
    except OSError:
        return socket.gethostname()
    return f"{socket.gethostname()} ({boot}-{processes})"


def _own_process() -> str:
    """`pid:start time:program`, where each start of a program in the same process has a number of its own."""
    process = _process(os.getpid())
    return process and f"{process}:{_PROGRAM}"


def _process(pid: int) -> str:
    """`pid:start time`, as ids are used again; empty for no such process."""
    try:
        # the name in brackets may hold blanks and brackets itself
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else f"{pid}:{fields[19]}"
