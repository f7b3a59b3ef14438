"""Asks OSDs, however many, until they show what they should.

An OSD may be down, may hang, or may show something else; only the last is a fault of what was written. How long OSDs
have is counted from when each was asked once, so that it does not matter how many they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, TypeVar, Union

from ceph_tuner.core.ceph.ports import Clock
from ceph_tuner.core.ceph.target import Place
from ceph_tuner.core.errors import ClusterTimeout, CommandFailed, EffectNotSeen

EFFECT_S = 5.0
"""How long the OSDs have to show a value that the database took, counted from when each was asked once."""
POLL_S = 0.2
SILENT_SHARE = 0.05
"""Of a change's OSDs: so many may be up and not answer. Where more do, it is not known whether anything took effect."""
PATIENCE = 2
"""An OSD that hung so many times in a row is asked again at the end only: each time lasts for its whole time limit."""
TOLD_EVERY = 100
"""OSDs after which progress is told; of fewer in all it is not."""

T = TypeVar("T")
Answers = Iterator[Tuple[int, Union[T, CommandFailed, ClusterTimeout]]]
Ask = Callable[[Iterable[int]], Answers[T]]
"""Asks many OSDs, and gives what each says as it comes (`ports.ConfigDatabase.effective_on`)."""
Progress = Callable[[str, int, int], None]
"""Called with what is done now, and at how many OSDs of how many."""


def silent(words: str, count: int, total: int) -> None:
    """Nobody is told."""


def unhindered() -> None:
    """Nothing ends it early."""


@dataclass(frozen=True)
class Late:
    """OSDs that are up and do not show what they should, each in words."""

    asked: int = 0
    after_s: float = EFFECT_S
    different: Tuple[str, ...] = ()
    """They answer, and show something else."""
    silent: Tuple[str, ...] = ()
    """They do not answer: the monitors hand them the value when they take it."""

    @property
    def words(self) -> Tuple[str, ...]:
        """All of them."""
        return (*self.different, *self.silent)

    def check(self) -> None:
        """Raise EffectNotSeen where one is different, or more do not answer than may hang on a large cluster."""
        if self.different:
            raise EffectNotSeen(f"{self.different[0]}, {self.after_s:g} s after the monitors took it")
        if len(self.silent) > SILENT_SHARE * self.asked:
            raise EffectNotSeen(f"{self.silent[0]}; {len(self.silent)} of {self.asked} OSDs do not")


class OsdPoll:
    """Of one cluster. It remembers which OSDs hang."""

    def __init__(
        self,
        places: Callable[[], List[Place]],
        clock: Clock,
        effect_s: float = EFFECT_S,
        progress: Progress = silent,
    ) -> None:
        self._places, self._clock, self._effect_s, self._progress = places, clock, effect_s, progress
        self._hung: Dict[int, int] = {}
        """OSD -> how many times in a row it did not answer."""

    def once(self, words: str, osds: Sequence[int], ask: Ask[T]) -> Answers[T]:
        """What OSDs say, with progress; `words` are what is done."""
        for count, (osd, answer) in enumerate(ask(osds)):
            if count % TOLD_EVERY == 0 and len(osds) > TOLD_EVERY:
                self._progress(words, count, len(osds))
            if isinstance(answer, ClusterTimeout):
                self._hung[osd] = self._hung.get(osd, 0) + 1
            else:
                self._hung.pop(osd, None)
            yield osd, answer

    def until_right(
        self,
        words: str,
        osds: Iterable[int],
        ask: Ask[T],
        wrong: Callable[[int, T], Optional[str]],
        last: bool = False,
        check: Callable[[], None] = unhindered,
    ) -> Late:
        """Ask each OSD until it is right or time is up; `wrong` says what it lacks.

        `last` asks those once more that have hung. One that goes down meanwhile is right: it follows when it starts.
        `check` is called at every answer, and ends it by what it raises.
        """
        if last:
            self._hung = dict.fromkeys(self._hung, PATIENCE - 1)
        ids = list(osds)
        faults = dict.fromkeys(ids, "")
        silent_osds = {osd: f"osd.{osd} does not answer" for osd in ids if self._hung.get(osd, 0) >= PATIENCE}
        deadline: Optional[float] = None
        while faults:
            patient = [osd for osd in faults if self._hung.get(osd, 0) < PATIENCE]
            for osd, answer in self.once(words, patient, ask):
                check()
                if isinstance(answer, (CommandFailed, ClusterTimeout)):
                    silent_osds[osd] = f"osd.{osd} does not answer ({answer})"
                    continue
                silent_osds.pop(osd, None)
                fault = wrong(osd, answer)
                if fault is None:
                    del faults[osd]
                else:
                    faults[osd] = fault
            now = self._clock.monotonic()
            deadline = now + self._effect_s if deadline is None else deadline
            if faults:
                up = {place.osd for place in self._places() if place.up}
                faults = {osd: fault for osd, fault in faults.items() if osd in up}
                if now >= deadline or all(self._hung.get(osd, 0) >= PATIENCE for osd in faults):
                    break
                self._clock.sleep(POLL_S)
        return Late(
            len(ids),
            self._effect_s,
            tuple(fault for osd, fault in faults.items() if osd not in silent_osds),
            tuple(silent_osds[osd] for osd in faults if osd in silent_osds),
        )
