"""What a move would do, before it is begun: its plan, what it keeps, when, how long, and what would refuse it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

from rich.console import Group, RenderableType
from rich.text import Text

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.moments import duration, utc_minute
from ceph_tuner.moves.forecast import RoughTime


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
    """In which its steps begin; empty: at all."""
    rough: Optional[RoughTime]
    """How long it takes, where kept windows tell."""
    refusals: Mapping[str, InputError]
    """Option that is missing -> the refusal with --yes and without it."""
    autoscaled: Tuple[str, ...] = ()
    """Pools whose autoscaler is on, where that refuses nothing."""

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
            "rough_finish_at": rough.finish_at if rough else None,
            "refused": [str(refusal) for refusal in self.refusals.values()],
            "commands": list(self.commands),
        }

    def page(self) -> RenderableType:
        """For people."""
        lines = [*self.would, f"It {self.keeps}.", self._hours_words(), self._rough_words()]
        parts = [Text(line) for line in lines]
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
            f"Its steps begin within {self.hours}."
            if self.hours
            else "Its steps begin at any hour; --hours limits them."
        )

    def _rough_words(self) -> str:
        if self.rough is None:
            return "How long it takes is known after the first step."
        done = "in more than a year" if self.rough.finish_at is None else f"by {utc_minute(self.rough.finish_at)}"
        by = "1 kept window" if self.rough.windows == 1 else f"{self.rough.windows} kept windows"
        return f"Roughly {duration(self.rough.seconds)} of moving, so done {done}, by {by} with backfill."
