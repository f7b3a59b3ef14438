"""Questions to a cluster that change nothing. What is refused, misread or not answered becomes a note."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Set, Tuple, TypeVar, Union

from ceph_tuner.core.bounded import MISREAD
from ceph_tuner.core.ceph.commands import CommandConfig, parsed
from ceph_tuner.core.ceph.ports import Clock, Commander
from ceph_tuner.core.errors import ClusterTimeout, CommandFailed, PermissionRefused
from ceph_tuner.core.wording import named

Report = Callable[[str, int, int], None]
"""Told what is asked, of how many OSDs, and of how many altogether."""
_T = TypeVar("_T")


class Questions:
    """Asks monitors and OSDs. An OSD that did not answer in time is asked nothing more."""

    def __init__(self, commander: Commander, clock: Clock, report: Optional[Report] = None) -> None:
        self.commander, self.clock = commander, clock
        self.config = CommandConfig(commander)
        self.report = report or (lambda what, done, total: None)
        self.unseen: Set[str] = set()
        """What a question was about that had no answer."""
        self._notes: Dict[str, None] = {}
        self._silent: Set[int] = set()

    @property
    def notes(self) -> Tuple[str, ...]:
        """In words, each once."""
        return tuple(self._notes)

    def note(self, words: str) -> None:
        """Keep a note of one's own among them."""
        self._notes[words] = None

    def mon(self, prefix: str, **arguments: str) -> Any:
        """The document that the monitors, or the mgr, answer with. Raises what `Commander.mon` does."""
        return parsed(self.commander.mon(prefix, arguments), prefix)

    def or_note(self, what: str, ask: Callable[[], _T], otherwise: _T) -> _T:
        """What `ask` gives; where that fails, a note, and `otherwise`."""
        try:
            return ask()
        except (ClusterTimeout, CommandFailed, PermissionRefused, *MISREAD) as fault:
            self.note(f"{what}: not seen ({fault})")
            self.unseen.add(what)
            return otherwise

    def each(
        self,
        what: str,
        osds: Iterable[int],
        ask: Callable[[List[int]], Iterator[Tuple[int, Union[_T, CommandFailed, ClusterTimeout]]]],
    ) -> Dict[int, _T]:
        """What OSDs answer, many asked at a time."""
        return {osd: answer for osd, (_, answer) in self.each_at(what, osds, ask).items()}

    def each_at(
        self,
        what: str,
        osds: Iterable[int],
        ask: Callable[[List[int]], Iterator[Tuple[int, Union[_T, CommandFailed, ClusterTimeout]]]],
    ) -> Dict[int, Tuple[float, _T]]:
        """The same, each with when it came."""
        patient = [osd for osd in osds if osd not in self._silent]
        answers: Dict[int, Tuple[float, _T]] = {}
        faults: Dict[str, List[int]] = {}
        try:
            for done, (osd, answer) in enumerate(ask(patient)):
                self.report(f"{what} of the OSDs", done, len(patient))
                if isinstance(answer, (CommandFailed, ClusterTimeout)):
                    words = answer.message if isinstance(answer, CommandFailed) else str(answer)
                    faults.setdefault(words, []).append(osd)
                    if isinstance(answer, ClusterTimeout):
                        self._silent.add(osd)
                else:
                    answers[osd] = (self.clock.now(), answer)
        except (ClusterTimeout, PermissionRefused) as fault:
            # nobody can be asked any more, or by nobody with this key
            heard_of = set(answers).union(*faults.values())
            faults.setdefault(str(fault), []).extend(osd for osd in patient if osd not in heard_of)
            if isinstance(fault, ClusterTimeout):
                self._silent.update(patient)
        for words, silent in faults.items():
            self.note(f"{what} of {named(silent)}: not seen ({words})")
        return answers
