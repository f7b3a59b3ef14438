"""Commands of an answer that nobody vouches for, parsed and written anew: people copy them from the page into a shell.

What the product writes has few forms. Anything else is refused, whatever program it calls.
"""

from __future__ import annotations

import re
import shlex
from typing import Callable, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.core.ceph.target import Target
from ceph_tuner.core.changes.step import SETTLING_S, Step
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.catalogue import KNOBS

EXPECTED = (
    "a command as `recommend` and `tune` write them: an option of a knob set or removed, a pool's pg_num, "
    "`ceph-tuner pgs step`, noout"
)

_NAME = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_. -]{0,127}")
"""Of a pool, or of a cluster: nothing that a program would take for an option."""
_PGS = re.compile(r"[1-9][0-9]{0,5}")


def rewritten(command: str, place: str) -> str:
    """The same command as this program writes it. Raises InputError for what it never writes."""
    try:
        words = shlex.split(command) if len(command) <= 400 else []
    except ValueError:
        words = []
    for prefix, write in _FORMS.items():
        if tuple(words[: len(prefix)]) == prefix:
            text = write(words[len(prefix) :])
            if text is not None:
                return text
    raise InputError(place, repr(command)[:80], EXPECTED)


def _set(words: Sequence[str]) -> Optional[str]:
    return _step(words[0], words[1], words[2]) if len(words) == 3 else None


def _remove(words: Sequence[str]) -> Optional[str]:
    return _step(words[0], words[1], None) if len(words) == 2 else None


def _step(who: str, name: str, value: Optional[str]) -> Optional[str]:
    knob = KNOBS.get(name)
    try:
        target = str(Target.parse(who))
        if knob is None or knob.scope in ("pool", "mgr"):
            return None
        if value is not None:
            read = knob.read(value)
            if knob.choices and read not in knob.choices:
                return None
            # as it is, where it is written as Ceph or this program would
            value = value if value in (knob.format(read), f"{read}", f"{read:.0f}" if _number(read) else "") else None
            if value is None:
                return None
    except InputError:
        return None
    return Step(target, name, None, value).command


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _pool(words: Sequence[str]) -> Optional[str]:
    if len(words) != 3 or not _NAME.fullmatch(words[0]):
        return None
    pool, name, value = words
    if (name == "pg_num" and _PGS.fullmatch(value)) or (name == "pg_autoscale_mode" and value in ("on", "off", "warn")):
        return shlex.join(["ceph", "osd", "pool", "set", pool, name, value])
    return None


def _noout(verb: str) -> Callable[[Sequence[str]], Optional[str]]:
    return lambda words: f"ceph osd {verb} noout" if list(words) == ["noout"] else None


def _wait(words: Sequence[str]) -> Optional[str]:
    return f"sleep {words[0]}" if list(words) == [str(SETTLING_S)] else None


def _restart(words: Sequence[str]) -> Optional[str]:
    return f"systemctl restart {words[0]}" if list(words) in (["ceph-osd.target"], ["ceph-osd@ID"]) else None


def _rollback(words: Sequence[str]) -> Optional[str]:
    names_cluster = len(words) == 2 and words[0] == "--cluster" and _NAME.fullmatch(words[1])
    return shlex.join(["ceph-tuner", "rollback", *words]) if names_cluster else None


def _pgs_step(words: Sequence[str]) -> Optional[str]:
    if len(words) != 5 or words[2] != "--cluster" or words[4] != "--pause-autoscaler":
        return None
    pool, number, _, cluster, _ = words
    is_known = _NAME.fullmatch(pool) and _PGS.fullmatch(number) and _NAME.fullmatch(cluster)
    return shlex.join(["ceph-tuner", "pgs", "step", *words]) if is_known else None


_Form = Callable[[Sequence[str]], Optional[str]]
_FORMS: Mapping[Tuple[str, ...], _Form] = {
    ("ceph", "config", "set"): _set,
    ("ceph", "config", "rm"): _remove,
    ("ceph", "osd", "pool", "set"): _pool,
    ("ceph", "osd", "set"): _noout("set"),
    ("ceph", "osd", "unset"): _noout("unset"),
    ("sleep",): _wait,
    ("systemctl", "restart"): _restart,
    ("ceph-tuner", "rollback"): _rollback,
    ("ceph-tuner", "pgs", "step"): _pgs_step,
}


def all_rewritten(commands: Sequence[str], place: Callable[[int], str]) -> Tuple[str, ...]:
    """Every one of them, each with its place in the error."""
    texts: List[str] = [rewritten(command, place(number)) for number, command in enumerate(commands)]
    return tuple(texts)
