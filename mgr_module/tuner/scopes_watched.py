"""Which device classes and pools objectives are about, and what belongs to each: looked up beside the sampling."""

from __future__ import annotations

import time
from typing import Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from ceph_tuner.core.bounded import ANSWER, MISREAD, read_json
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.goals.slo_calendar import SloCalendar
from ceph_tuner.core.measure.metrics import CLASS, Scope
from ceph_tuner.core.measure.scopes import CrushMap, Layout, Members, crush_map, layout_of

from .commander import MgrCommander

LOOK_S = 60.0
ANSWER_S = 10.0
_CRUSH, _POOLS = ("mon", "osd crush dump"), ("mon", "osd pool ls")


class ScopesWatched:
    """`look` is called by the automatic mode's thread, the rest by any: sampling itself never waits for monitors."""

    def __init__(self, commander: MgrCommander, now: Callable[[], float] = time.monotonic) -> None:
        self._commander, self._now = commander, now
        self._looked = float("-inf")
        self._scopes: Tuple[Scope, ...] = ()
        self._of_slo: Tuple[Scope, ...] = ()
        """Those of them that objectives are about."""
        self.awaited: Tuple[Scope, ...] = ()
        """Sampled as well: device classes of changes that a twin spoke of, until it is seen what these did."""
        self._crush: Tuple[str, Optional[CrushMap]] = ("", None)
        self._texts = ("", "")
        """What the monitors said of the CRUSH map and the pools at the last look."""
        self.layout: Optional[Layout] = None
        """As of the last look; None before the first, and while no objective has a scope."""
        self.members: Mapping[Scope, Members] = {}
        """Scopes that are sampled, with what belongs to each."""

    def look(self, slo: Union[Slo, SloCalendar, None]) -> None:
        """Take the objectives as they are now; the cluster is asked once a minute, and when other scopes are wanted."""
        of_slo = slo.scopes if slo is not None else ()
        scopes = tuple(dict.fromkeys((*of_slo, *self.awaited)))
        self._of_slo = of_slo
        if not scopes:
            self._scopes, self.layout, self.members = (), None, {}
            self._crush, self._texts = ("", None), ("", "")
            return
        if scopes != self._scopes or not 0 <= self._now() - self._looked < LOOK_S:
            layout = self._read_layout()
            if layout is None:
                # the last one stays; the monitors are asked again at the next look
                return
            same = layout is self.layout and scopes == self._scopes
            self._scopes, self._looked, self.layout = scopes, self._now(), layout
            if not same:
                self.members = _members(layout, scopes)

    def classes(self) -> Tuple[str, ...]:
        """Device classes that have an automatic mode of their own, as some objective is about them or a pool on them.

        None has where the cluster is of one class.
        """
        layout = self.layout
        if layout is None or len(layout.classes) < 2:
            return ()
        return tuple(sorted({name for scope in self._of_slo for name in layout.class_of(scope)}))

    def refused_class(self, device_class: str, own: Iterable[str]) -> InputError:
        """The refusal of a class that is none of its `own`, those with a mode or a book of their own."""
        names = ", ".join(own) or "none has: set one such as 'client.p95_ms{class=ssd}<=5'"
        if self.layout is not None and len(self.layout.classes) < 2:
            names = "none has, as the OSDs are of one class: leave it out"
        return InputError("--device-class", device_class, f"a class with objectives of its own ({names})")

    def among(self, osds: Iterable[int], device_class: str) -> List[int]:
        """Those of these OSDs that are of a class; all of them without one, and while it is not known what is in it."""
        members = self.members.get(Scope(CLASS, device_class)) if device_class else None
        return [osd for osd in osds if members is None or osd in members.osds]

    def missing(self) -> List[str]:
        """In words, what objectives are about and the cluster has not."""
        return self.layout.missing(self._of_slo) if self.layout is not None else []

    def _read_layout(self) -> Optional[Layout]:
        """The layout, the same object while the monitors say the same; None where they say nothing that can be read."""
        questions: Sequence[Tuple[str, str, Mapping[str, str]]] = [(*_CRUSH, {}), (*_POOLS, {"detail": "detail"})]
        answers = self._commander.tell_many(questions, ANSWER_S)
        texts = (answers.get(_CRUSH, ""), answers.get(_POOLS, ""))
        if self.layout is not None and texts == self._texts:
            return self.layout
        try:
            crush = self._crush[1]
            if crush is None or texts[0] != self._crush[0]:
                crush = crush_map(read_json(texts[0], _CRUSH[1], ANSWER))
            layout = layout_of(crush, read_json(texts[1], _POOLS[1], ANSWER))
        except MISREAD:
            return None
        self._crush, self._texts = (texts[0], crush), texts
        return layout


def _members(layout: Layout, scopes: Sequence[Scope]) -> Dict[Scope, Members]:
    """Those of the scopes, and of the classes that pools among them lie on: these are tuned for them."""
    classes = (Scope(CLASS, name) for scope in scopes for name in layout.class_of(scope))
    each = {scope: layout.members(scope) for scope in dict.fromkeys((*scopes, *classes))}
    return {scope: members for scope, members in each.items() if members is not None}
