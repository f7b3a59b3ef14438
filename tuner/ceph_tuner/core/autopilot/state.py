"""What the automatic mode remembers: all of it is in the store before it acts, so that the next active mgr goes on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, Optional, Tuple

from ceph_tuner.core.autopilot.contract import Effect, Rollout
from ceph_tuner.core.autopilot.stored_state import stored_fields

OFF, AUTO, APPROVE, DRY_RUN = "off", "auto", "approve", "dry-run"
MODES = (OFF, AUTO, APPROVE, DRY_RUN)

OBSERVING, ASKING, WAITING, COMPARING = "observing", "asking", "waiting", "comparing"
TRYING, HOLDING, WRITING, RETURNING = "trying", "holding", "writing", "returning"
PHASES = {
    OBSERVING: "watches the objectives; nothing is being tried",
    ASKING: "the optimiser is at work",
    WAITING: "a proposal waits for approval",
    COMPARING: "compares the OSDs of the canary with the others before anything is written",
    WRITING: "settings are being written",
    TRYING: "settings are on trial on some OSDs",
    HOLDING: "settings are on all OSDs, and are kept if all stays well",
    RETURNING: "a trial is being taken back",
}
ON_CLUSTER = (WRITING, TRYING, HOLDING, RETURNING)
"""Phases in which something of a trial may be on the cluster."""


@dataclass(frozen=True)
class Proposed:
    """Settings that the optimiser proposes, in the running release's units."""

    number: int
    settings: Mapping[str, Any]
    why: str
    rollout: Rollout
    forecast: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What the search expects of them, as `ForecastRecord.to_dict` gives it."""
    unmoved: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What belongs to them and is in force already: it is not written."""

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, for the store."""
        return {
            "number": self.number,
            "settings": dict(self.settings),
            "why": self.why,
            "rollout": self.rollout.to_dict(),
            "forecast": dict(self.forecast),
            "unmoved": dict(self.unmoved),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Proposed:
        """Inverse of `to_dict`. Raises KeyError, TypeError or ValueError for what is none."""
        rollout = Rollout.from_dict(document["rollout"])
        number, settings, why = int(document["number"]), dict(document["settings"]), str(document["why"])
        return cls(number, settings, why, rollout, _beside(document, "forecast"), _beside(document, "unmoved"))


def _beside(document: Mapping[str, Any], name: str) -> Dict[str, Any]:
    """A part that must not cost the way back: nothing where it is missing, or is no mapping."""
    part = document.get(name)
    return part if isinstance(part, dict) else {}


@dataclass(frozen=True)
class AutopilotState:
    """The automatic mode at one moment. Times are seconds since the epoch."""

    mode: str = OFF
    phase: str = OBSERVING
    since: float = 0.0
    """When it came into this phase (a trial: into this stage or leg)."""
    paused: str = ""
    """Why it is paused; empty where it is not."""
    paused_until: Optional[float] = None
    """When it resumes by itself; None: when told to."""
    then: str = ""
    """What follows once everything is taken back: the reason to pause; empty: nothing."""
    back_off: bool = False
    """Whether taking back was the guard's or the trial's doing, and delays the next one."""
    proposed: Optional[Proposed] = None
    stage: int = 0
    leg: bool = False
    """Of an alternating trial: whether the new settings have their turn."""
    turns: int = 0
    """How many turns they had."""
    passed: bool = False
    """Whether they are written for good after their turns."""
    changes: Tuple[int, ...] = ()
    """Journal numbers of what is on trial, oldest first."""
    aims: Tuple[str, ...] = ()
    """Metrics of the objectives that were missed when the settings were asked for."""
    policy: str = ""
    """The policy of the objectives' calendar under which trials for the present condition are made."""
    gain: str = ""
    """What the canary showed to be better, with its interval."""
    effects: Mapping[str, Effect] = field(default_factory=dict)
    """What the stage that passed last did, by metric."""
    baseline: Mapping[str, float] = field(default_factory=dict)
    """What the cluster did just before the trial, by metric: relative bounds and the guard refer to it."""
    proposals: int = 0
    """Proposals so far, over all time."""
    tried: int = 0
    """Trials for the present condition of the cluster."""
    gave_up: str = ""
    """Why nothing more is tried for the present condition."""
    failures: int = 0
    """Trials in a row that were taken back."""
    failed_at: float = 0.0
    declined_at: float = 0.0
    """When a proposal was last rejected, or only told in a dry run: the next one waits."""
    worker_failures: int = 0
    asked_at: float = 0.0
    moves: Tuple[float, ...] = ()
    """Times of the forward writes of the last day."""
    condition: Mapping[str, Any] = field(default_factory=dict)
    """The cluster as it was when trials for it began."""
    begun: float = 0.0
    """When they began."""
    kept: Optional[int] = None
    """Journal number of what was kept last."""
    problem: str = ""
    """Why something that was on trial cannot be taken back."""

    def __post_init__(self) -> None:
        if self.mode not in MODES or self.phase not in PHASES:
            raise ValueError(
                f"mode (={self.mode!r}) must be one of {', '.join(MODES)}, "
                f"phase (={self.phase!r}) of {', '.join(PHASES)}"
            )
        if self.proposed is None and self.phase in (WAITING, COMPARING, WRITING, TRYING, HOLDING):
            raise ValueError(f"phase {self.phase} needs a proposal")

    @property
    def on_cluster(self) -> bool:
        """Whether something of a trial may be on the cluster."""
        return self.phase in ON_CLUSTER or bool(self.changes)

    @property
    def old_turn(self) -> bool:
        """Whether the old settings have their turn: nothing of the trial is on the cluster."""
        alternating = self.proposed is not None and self.proposed.rollout.alternating
        return alternating and self.phase == TRYING and not self.leg

    @property
    def last_stage(self) -> bool:
        """Whether the settings are to be on all OSDs of the target now."""
        return self.proposed is not None and self.stage == len(self.proposed.rollout.stages) - 1

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, for the store."""
        document = {name: getattr(self, name) for name in self.__dataclass_fields__}
        document["proposed"] = self.proposed.to_dict() if self.proposed else None
        document.update(changes=list(self.changes), moves=list(self.moves), aims=list(self.aims))
        document["effects"] = [effect.to_dict() for effect in self.effects.values()]
        document.update(baseline=dict(self.baseline), condition=dict(self.condition))
        return document

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> AutopilotState:
        """Inverse of `to_dict`; names that this version does not know are dropped.

        Raises KeyError, TypeError or ValueError for what is no state.
        """
        values = stored_fields(cls, document)
        proposed = values.get("proposed")
        values["proposed"] = Proposed.from_dict(proposed) if proposed else None
        effects = [Effect.from_dict(entry) for entry in values.get("effects", ())]
        values["effects"] = {effect.metric: effect for effect in effects}
        values["changes"] = tuple(int(number) for number in values.get("changes", ()))
        values["aims"] = tuple(str(metric) for metric in values.get("aims", ()))
        values["moves"] = tuple(float(at) for at in values.get("moves", ()))
        values["baseline"] = {str(name): float(value) for name, value in dict(values.get("baseline", {})).items()}
        values["condition"] = dict(values.get("condition", {}))
        return cls(**values)
