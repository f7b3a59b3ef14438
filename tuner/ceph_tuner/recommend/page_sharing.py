"""What pages of several regimes share, so that a switch that comes late does little harm."""

from __future__ import annotations

from dataclasses import replace
from typing import Collection, Dict, FrozenSet, List, Mapping, Sequence, Set, Tuple

from ceph_tuner.core.book.page import Page
from ceph_tuner.core.goals.ranking import ENOUGH
from ceph_tuner.core.knobs.catalogue import KNOBS
from ceph_tuner.core.knobs.releases import Settings

KINDS = ("recovery", "backfill", "scrub", "snaptrim")
"""Work in the background, as metrics name it."""


def shared_settings(margins: Mapping[str, Mapping[str, float]]) -> Dict[str, str]:
    """Regime -> the regime whose settings it has, such that there are few settings, and clients have room.

    `margins`: regime -> source that serves in it -> margin of the clients in its worst run, as a share of the bound.
    Where some source keeps the bound in each run, none that does not is taken. Of sources that serve as many regimes
    the one with the most room in the tightest of them comes first, then that of the regime with the most markers.
    Room beyond half of the bound counts for nothing.
    """
    served = {regime: _steady(of_regime) for regime, of_regime in margins.items() if of_regime}
    sources = {source for of_regime in served.values() for source in of_regime}

    def worth(source: str, regimes: Collection[str]) -> Tuple[float, int, str]:
        own = [min(served[regime][source], ENOUGH) for regime in regimes if source in served[regime]]
        return min(own, default=0.0), source.count("+"), source

    def serving(source: str, regimes: Collection[str]) -> Set[str]:
        return {regime for regime in regimes if source in served[regime]}

    chosen: List[str] = []
    left = set(served)
    while left:
        best = max(sources, key=lambda source: (len(serving(source, left)), *worth(source, left)))
        chosen.append(best)
        left -= serving(best, left)
    for index in range(len(chosen)):
        # as many settings, and more room: what came first may have served one regime more, and with little room
        others = chosen[:index] + chosen[index + 1 :]
        needed = {regime for regime in served if not any(source in served[regime] for source in others)}
        instead = [source for source in sources if serving(source, needed) == needed]
        chosen[index] = max(instead, key=lambda source: worth(source, needed))
    return {regime: next(source for source in chosen if source in served[regime]) for regime in served}


def _steady(margins: Mapping[str, float]) -> Dict[str, float]:
    """Those that keep the bound in each run, where there are such."""
    return {source: margin for source, margin in margins.items() if margin >= 0} or dict(margins)


def with_knobs_of_other_work(pages: Sequence[Page], work_of: Mapping[str, Sequence[str]]) -> Tuple[Page, ...]:
    """Each page with the knobs that it lacks of work that its regime lacks, as the page of the nearest regime has them.

    `work_of`: kinds of work by regime. The nine shares of mClock are one whole, and stay.
    """
    return tuple(replace(page, settings={**_knobs_of_others(page, pages, work_of), **page.settings}) for page in pages)


def _knobs_of_others(page: Page, pages: Sequence[Page], work_of: Mapping[str, Sequence[str]]) -> Settings:
    own = set(page.regime.split("+"))
    knobs: Settings = {}
    # the nearest last, as it holds
    for other in sorted(pages, key=lambda each: _nearness(own, set(each.regime.split("+")))):
        for name, value in other.settings.items():
            kinds = _kinds_of(name)
            if kinds & set(work_of[other.regime]) and not kinds & set(work_of[page.regime]):
                knobs[name] = value
    return knobs


def _nearness(own: Set[str], others: Set[str]) -> Tuple[int, int]:
    return len(own & others), -len(others - own)


def _kinds_of(knob: str) -> FrozenSet[str]:
    """Kinds of work in the background that a knob is about; none for one of the shares, and for one of the device."""
    work = KNOBS[knob].work if knob in KNOBS else ""
    # what is moved is recovered as well
    return frozenset((work, "backfill") if work == "recovery" else (work,)) & frozenset(KINDS)
