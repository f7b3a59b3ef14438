"""What a move would do, before it is begun: its plan, what it keeps, when, how long, and what would refuse it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

from rich.console import Group, RenderableType
from rich.text import Text

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.moments import duration
from ceph_tuner.moves.forecast import RoughTime
from ceph_tuner_cli.moves_page import finish_words


@dataclass(frozen=True)
class MovePreview:
    """Plain values of one."""

    cluster: str
    move: str
    would: Sequence[str]
    """What it would do."""
    commands: Sequence[str]
    keeps: str
    """Which objectives."""
    hours: str
    """In which its moves begin; empty: at all."""
    rough: Optional[RoughTime]
    """How long it takes, where earlier moves or kept windows tell."""
    refusals: Mapping[str, InputError]
    """Option that is missing -> the refusal with --yes and without it."""
    autoscaled: Tuple[str, ...] = ()
    """Pools whose autoscaler is on, where that refuses nothing."""
    waits_for: str = ""
    """What it would wait for at first, as the cluster is now; empty where nothing is in the way."""

    @property
    def remedy(self) -> str:
        """What begins the move."""
        return " ".join([*self.refusals, "--yes"])

    def to_dict(self) -> Dict[str, Any]:
        """For programs."""
        rough = self.rough
        return {
            "cluster": self.cluster,
            "move": self.move,
            "would": list(self.would),
            "keeps": self.keeps,
            "hours": self.hours,
            "rough_s": rough.seconds if rough else None,
            "rough_finish_at": rough.finish.mean if rough else None,
            "rough_finish_between": [rough.finish.low, rough.finish.high] if rough else None,
            "rough_by": rough.by if rough else None,
            "waits_for": self.waits_for,
            "refused": [str(refusal) for refusal in self.refusals.values()],
            "commands": list(self.commands),
        }

    def page(self) -> RenderableType:
        """For people."""
        lines = [*self.would, f"It {self.keeps}.", self._hours_words(), self._rough_words()]
        parts = [Text(line) for line in lines]
        if self.waits_for:
            parts.append(Text(f"Now it would wait for {self.waits_for}.", "yellow"))
        for refusal in self.refusals.values():
            # what was expected names the option
            words = f"With --yes it is refused: {refusal.place}: {refusal.found}. Add {refusal.expected}."
            parts.append(Text(words, "yellow"))
        if self.autoscaled:
            pools = ", ".join(self.autoscaled)
            parts.append(Text(f"note: pg_autoscale_mode is on for {pools}: a change of pg_num would move data", "dim"))
        return Group(*parts)

    def _hours_words(self) -> str:
        return (
            f"Its moves begin within {self.hours}."
            if self.hours
            else "Its moves begin at any hour; --hours limits them."
        )

    def _rough_words(self) -> str:
        if self.rough is None:
            return "How long it takes is known once the first PGs have arrived."
        words = f"Roughly {duration(self.rough.seconds)} of moving, so {finish_words(self.rough.finish)}"
        return f"{words}, by {self.rough.by}."
