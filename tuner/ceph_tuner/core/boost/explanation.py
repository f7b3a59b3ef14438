"""A boost in words, for people."""

from __future__ import annotations

from typing import List, Mapping, Optional, Sequence

from ceph_tuner.core.boost.events import Begin
from ceph_tuner.core.boost.kinds import KINDS
from ceph_tuner.core.boost.obstacles import NOTHING, Obstacles
from ceph_tuner.core.boost.outcome import in_words
from ceph_tuner.core.boost.progress import Finish
from ceph_tuner.core.boost.state import OFF, PHASES, BoostState
from ceph_tuner.core.moments import duration, utc


def explain(
    state: BoostState,
    means: Mapping[str, float],
    finish: Optional[Finish],
    now: float,
    ahead: Obstacles = NOTHING,
) -> List[str]:
    """Say what it does, what is left, when it will be done, and what ends it. `ahead`: what holds its work."""
    if state.phase == OFF:
        forestalled = [f"the one wanted at {utc(state.since)} did not begin: {state.problem}"] if state.problem else []
        return [f"off: {PHASES[OFF]}", *forestalled, *_last(state)]
    lines = [f"{state.phase} since {utc(state.since)}: {PHASES[state.phase]}"]
    if state.problem:
        lines.append(f"that failed, and is tried again: {state.problem}")
    if state.request is None:
        return [*lines, *_last(state)]
    kind = KINDS[state.request.kind]
    lines.append(f"boosts {kind.name} since {utc(state.begun)}: {state.grounds}")
    remainder = kind.left_in(means)
    if remainder is not None:
        before = kind.left_in(state.baseline)
        of = f" of {before:.6g}" if before is not None and before >= remainder else ""
        lines.append(f"{remainder:.6g}{of} {kind.what} are left")
    lines += ahead.words
    # what does not go on has no end, however fast it was before
    lines += [] if ahead.stops and remainder else [_finish(finish, remainder, now, state.rate_before)]
    lines.append(f"ends at {utc(state.ends_at)} at the latest, in {duration(state.ends_at - now)}")
    if state.request.keep:
        lines.append(f"ends when one of these is missed: {'; '.join(state.request.keep)}")
    if state.resumed:
        times = "once" if state.resumed == 1 else f"{state.resumed} times"
        lines.append(f"another mgr became active {times} since it began")
    if state.why:
        lines.append(f"it ends: {state.why}")
    return lines


def foretell(event: Begin, objectives: Sequence[str], forbidden: str = "", ahead: Obstacles = NOTHING) -> List[str]:
    """Say what a boost would do, when it would be done, and what would let it go.

    `objectives`: all that must be kept, as texts; `forbidden`: when a policy of the calendar ends it, in words;
    `ahead`: what would hold its work.
    """
    request, kind = event.request, KINDS[event.request.kind]
    remainder = kind.left_in(event.baseline)
    ends_at = event.at + request.at_most_s
    lines = [
        "a dry run: nothing is written",
        f"would boost {kind.name} on {request.target}: {event.grounds}",
        f"{0.0 if remainder is None else remainder:.6g} {kind.what} are left",
        *ahead.words,
        at_the_rate_before(remainder, event.rate_before)
        or "when it would be done is not known: what is left was not seen becoming less",
        f"would end once no {kind.what} are left",
        f"would end at {utc(ends_at)} at the latest, in {duration(request.at_most_s)}",
    ]
    if objectives:
        lines.append(f"would end when one of these is missed: {'; '.join(objectives)}")
    lines.append(
        "would end by the guard: slow operations, inactive PGs, an OSD that goes down, missing samples, "
        "settings changed by hand"
    )
    return [
        *lines,
        *([f"by the calendar it {forbidden}"] if forbidden else []),
        "would end by `ceph tuner boost cancel`",
    ]


def at_the_rate_before(remainder: Optional[float], rate: Optional[float]) -> str:
    """When it would be done at the rate of before; empty where that is not known."""
    return f"done within {duration(remainder / rate)} at the rate of before" if remainder and rate else ""


def _finish(finish: Optional[Finish], remainder: Optional[float], now: float, rate_before: Optional[float]) -> str:
    if remainder == 0:
        return "nothing is left: it ends once that has lasted"
    if finish is None:
        return at_the_rate_before(remainder, rate_before) or "when it will be done is not known yet"
    if finish.expected is None:
        return "no end is in sight: what is left does not become less"
    words = f"done in {duration(finish.expected - now)}"
    if finish.earliest is None or finish.earliest == finish.expected:
        return f"{words}, by few windows"
    latest = "no end" if finish.latest is None else duration(finish.latest - now)
    return f"{words} ({duration(finish.earliest - now)} to {latest})"


def _last(state: BoostState) -> List[str]:
    last = state.last
    if not last:
        return []
    ended = f"the last one, of {last.get('kind')}, ended at {utc(float(last.get('ended') or 0))}: {last.get('why')}"
    return [ended, in_words(last)]
