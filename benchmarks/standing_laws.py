"""What holds of the book and of a boost at every look, on a flight and on a lab alike."""

from __future__ import annotations

from collections import Counter
from typing import Callable, Dict, Iterator, Sequence

from configuration_laws import Breach, Table

from ceph_tuner.core.book.page import STRUCK, Page
from ceph_tuner.core.boost.executor import BY as BY_BOOST
from ceph_tuner.core.boost.state import OFF, BoostState
from ceph_tuner.core.changes.journal import APPLIED, UNDONE, Entry
from ceph_tuner.core.knobs.settings import same_value


class Overdue:
    """Seconds for which something has been wrong while it could have been put right."""

    def __init__(self, begun: float) -> None:
        self._looked_at, self._seconds = begun, 0.0

    def after(self, now: float, wrong: bool, excused: bool) -> float:
        """Count the time since the last look; `excused` time is left out, and what is right ends it all."""
        since, self._looked_at = now - self._looked_at, now
        if not wrong:
            self._seconds = 0.0
        elif not excused:
            self._seconds += since
        return self._seconds


class BookLaw:
    """What the book has in force is named by a page of a regime of the last minutes, in one change."""

    def __init__(self, begun: float, recent_s: float, late_s: float, counts: Counter[str]) -> None:
        """`recent_s`: a regime that held within it counts; `late_s`: what no such regime's page names may stand."""
        self._recent_s, self._late_s, self._counts = recent_s, late_s, counts
        self._regimes: Dict[str, float] = {}
        """When each held last."""
        self._unnamed = Overdue(begun)

    def breaches(
        self,
        now: float,
        regime: str,
        excused: bool,
        entries: Sequence[Entry],
        pages: Callable[[], Sequence[Page]],
        table: Callable[[], Table],
    ) -> Iterator[Breach]:
        """At a look. `regime`: that holds, empty where nobody tells; `excused`: whether the book cannot switch."""
        if regime:
            self._regimes[regime] = now
        standing = [entry.number for entry in entries if entry.replaceable and entry.state == APPLIED]
        if len(standing) > 1:
            yield Breach("book", f"changes {standing} stand at once")
        recent = {name for name, at in self._regimes.items() if now - at < self._recent_s}
        named = not standing or _names(pages(), recent, table())
        self._counts["looks at a page in force"] += bool(standing) and named
        if self._unnamed.after(now, not named, excused) > self._late_s:
            yield Breach("book", f"change {standing[0]} has what no page of {', '.join(sorted(recent))} names")


class BoostLaw:
    """What a boost wrote is on the cluster while it is on, within its time, and no moment longer."""

    def __init__(self, begun: float, late_s: float, counts: Counter[str]) -> None:
        """`late_s`: within which it has to be taken back."""
        self._late_s, self._counts = late_s, counts
        self._late = Overdue(begun)

    def breaches(
        self, now: float, mgr_now: float, excused: bool, entries: Sequence[Entry], stored: Callable[[], BoostState]
    ) -> Iterator[Breach]:
        """At a look. `stored`: what the store has of the boost; `excused`: whether nobody can take it back."""
        written = [entry.number for entry in entries if of_boost(entry)]
        if not written:
            self._late.after(now, False, excused)
            return
        state = stored()
        self._counts["looks at a boost in force"] += not excused
        if not state.on_cluster:
            yield Breach("boost", f"changes {written} are in force, and the store has no boost")
        begun = set(state.changes) if not state.writing else set(written)
        late = state.phase == OFF or not set(written) <= begun or state.time_is_up(mgr_now)
        if self._late.after(now, late, excused) > self._late_s:
            yield Breach("boost", f"changes {written} are in force while {state.phase}")


def of_boost(entry: Entry) -> bool:
    """Whether it is a boost's change that is on the cluster, as far as the journal knows."""
    return entry.who.endswith(BY_BOOST) and entry.state != UNDONE


def _names(pages: Sequence[Page], regimes: set[str], table: Table) -> bool:
    """Whether all settings of a page of these regimes are in force."""
    return any(
        all(same_value(table.get((page.target, name), ""), str(value)) for name, value in page.settings.items())
        for page in pages
        if page.regime in regimes and page.state != STRUCK
    )
