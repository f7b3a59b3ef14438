"""What a boost did and saved: as plain data, and in words for the history."""

from __future__ import annotations

import math
from typing import Any, Dict, Mapping, Optional

from ceph_tuner.core.boost.kinds import KINDS, Kind
from ceph_tuner.core.boost.state import BoostState
from ceph_tuner.core.moments import duration


def outcome_of(
    state: BoostState,
    at: float,
    means: Mapping[str, float],
    why: str,
    rule: str,
    clean_since: Optional[float] = None,
    mended: Optional[float] = None,
) -> Dict[str, Any]:
    """What a boost did until `at`. `clean_since`: since when nothing was left, as waiting to be sure is no work.

    `mended`: what its work came to by the rates that were seen, where they tell: copies that were found again on an
    OSD that returned are no work.
    """
    if state.request is None:
        raise ValueError(f"phase {state.phase} needs a request")
    kind = KINDS[state.request.kind]
    before, remainder = kind.left_in(state.baseline), kind.left_in(means)
    work_s = (at if clean_since is None else clean_since) - state.begun
    return {
        "kind": kind.name,
        "by": state.request.by,
        "why": why,
        "rule": rule,
        "begun": state.begun,
        "ended": at,
        "seconds": max(at - state.begun, 0.0),
        "left_before": before,
        "left": remainder,
        "rate_before": state.rate_before,
        "saved_s": _saved_s(before, remainder, mended, state.rate_before, max(work_s, 0.0)),
    }


def _saved_s(
    before: Optional[float],
    remainder: Optional[float],
    mended: Optional[float],
    rate: Optional[float],
    work_s: float,
) -> Optional[float]:
    """How much longer what was done would have taken at the rate before it; None where that is not known."""
    if before is None or remainder is None or rate is None or rate <= 0 or remainder >= before:
        return None
    done = before - remainder if mended is None else min(before - remainder, mended)
    return done / rate - work_s if done > 0 else None


def in_words(outcome: Mapping[str, Any]) -> str:
    """`in 4 min, 28372 degraded object copies were left before, saved 17 min`; what is damaged is left out."""
    kind = KINDS.get(str(outcome.get("kind")))
    seconds, before, remainder = (_number(outcome, name) for name in ("seconds", "left_before", "left"))
    parts = [] if seconds is None else [f"in {duration(seconds)}"]
    if kind is not None and before is not None:
        parts.append(f"{before:.6g} {kind.what} were left before")
        if remainder:
            parts.append(f"{remainder:.6g} are left")
    return ", ".join([*parts, _saving(outcome, kind)])


def _saving(outcome: Mapping[str, Any], kind: Optional[Kind]) -> str:
    savings_s = _number(outcome, "saved_s")
    if savings_s is not None:
        return f"saved {duration(savings_s)}" if savings_s > 0 else "no faster than before"
    before, remainder = (_number(outcome, name) for name in ("left_before", "left"))
    why = "it was not seen becoming less before"
    if before is None or remainder is None:
        why = "what was left was not seen"
    elif remainder >= before:
        why = "no less is left than before"
    elif outcome.get("rate_before"):
        why = "what became less was found again, and not worked on"
    return f"what it saved is not known: {why}"


def _number(outcome: Mapping[str, Any], name: str) -> Optional[float]:
    value = outcome.get(name)
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None
