"""What happens to the automatic mode, and what it then wants done."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping, Optional, Tuple, Union

from ceph_tuner.core.autopilot.contract import Effect, Rollout
from ceph_tuner.core.goals.guard import Breach


@dataclass(frozen=True)
class Started:
    """This mgr became the active one; `taken_back` are the trials that it found and took back."""

    at: float
    taken_back: Tuple[int, ...] = ()
    kept: Optional[int] = None
    """A change on trial that had become permanent just before."""
    problem: str = ""
    """Why something could not be taken back."""
    drift: Tuple[str, ...] = ()
    """Values that somebody else had changed meanwhile: they were left alone."""


@dataclass(frozen=True)
class OperatorCommand:
    """An operator's command: a mode of `state.MODES`, or `pause`, `resume`, `accept`, `reject`, `retry`.

    `approve` is the mode: the command of that name is `accept` here.
    """

    at: float
    what: str
    by: str
    why: str = ""
    means: Mapping[str, float] = field(default_factory=dict)
    """What was seen last, where the command ends what is told of by that."""
    mended: Optional[float] = None
    """As `Look` has it."""


@dataclass(frozen=True)
class Look:
    """All that a turn knows of the cluster, once a sample was taken or missed."""

    at: float
    means: Mapping[str, float] = field(default_factory=dict)
    """The cluster over the newest closed window; work that is not there has no rates."""
    wanted: bool = True
    """Whether any objective is set."""
    policy: str = ""
    """The policy of the calendar that holds; empty where what is wanted does not depend on the time."""
    missed: Tuple[str, ...] = ()
    """Objectives that nearly all of the last windows missed, with their numbers."""
    metrics_missed: Tuple[str, ...] = ()
    """Their metrics."""
    met: bool = False
    """Whether nearly all of the last windows met every objective; they may do neither."""
    hard_metrics: Tuple[str, ...] = ()
    """Metrics of all hard objectives."""
    unseen: Tuple[str, ...] = ()
    """Those on clients that no window showed of late (of a phase that is about its windows: none of these)."""
    allowed: Mapping[str, float] = field(default_factory=dict)
    """Those that were seen before the trial, with the share by which each may be worse (`judging.allowances`)."""
    wait: str = ""
    """Why no forward move is permitted now."""
    outside: bool = False
    """Whether it is outside of the permitted hours."""
    condition: Mapping[str, Any] = field(default_factory=dict)
    idle_iops: float = 0.0
    """Client operations per second up to which clients are as good as idle."""
    changed: Tuple[str, ...] = ()
    """What of the cluster is no longer as in `State.condition`."""
    upset: str = ""
    """What makes the OSDs incomparable with what they were: other ones, other releases."""
    breach: Optional[Breach] = None
    """The guard's word on what is on the cluster."""
    windows: int = 0
    """Windows that were closed since the phase began, settling left out."""
    pairs: int = 0
    """Of these, the ones in which both sides of a comparison were seen; before the first turn of a trial, all."""
    effects: Mapping[str, Effect] = field(default_factory=dict)
    """What the trial did so far, by metric."""
    outlived: bool = False
    """Whether scrubs that began under the old settings still go on, so that no window counts yet."""
    mended: Optional[float] = None
    """Of a boost: what its work came to since it began, by the rates that were seen; None where none tells."""
    broken: Tuple[str, ...] = ()
    """Hard objectives that the windows on probation break on the whole, with what was seen."""
    unsure: Tuple[str, ...] = ()
    """Those that they keep on the whole, while some windows do not and their mean might by chance."""


@dataclass(frozen=True)
class Answered:
    """The optimiser's answer: settings, or a reason why there are none."""

    at: float
    settings: Mapping[str, Any] = field(default_factory=dict)
    why: str = ""
    rollout: Optional[Rollout] = None
    refused: str = ""
    """Why the answer was not usable: the optimiser is missing, slow, dead, or proposes what the release refuses."""
    forecast: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What the search expects of the settings, as `ForecastRecord.to_dict` gives it."""
    unmoved: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What belongs to the settings and is in force already."""


@dataclass(frozen=True)
class Wrote:
    """An act was carried out; `numbers` are the journal's for what was written."""

    at: float
    numbers: Tuple[int, ...] = ()


@dataclass(frozen=True)
class WriteFailed:
    """Writing failed, and what it had written was taken back by itself; `numbers` had been written before it."""

    at: float
    words: str
    numbers: Tuple[int, ...] = ()
    busy: bool = False
    """Whether another tuner is at work, which says nothing about the settings."""
    rule: str = ""
    """Of the guard, where it ended the write."""
    untouched: bool = False
    """Whether the lock was never had, so that nothing can have been written."""


@dataclass(frozen=True)
class TookBack:
    """All that `TakeBack` named is off the cluster; `drift` is what others had changed since, and was left."""

    at: float
    drift: Tuple[str, ...] = ()


@dataclass(frozen=True)
class TakeBackFailed:
    """Something may still be on the cluster."""

    at: float
    words: str
    busy: bool = False
    """Whether another tuner is at work, which says nothing about the settings."""


@dataclass(frozen=True)
class Kept:
    """The journal's entry is permanent now."""

    at: float
    number: int


Event = Union[Started, OperatorCommand, Look, Answered, Wrote, WriteFailed, TookBack, TakeBackFailed, Kept]


@dataclass(frozen=True)
class Ask:
    """Have the optimiser propose settings. Answered by `Answered`."""


@dataclass(frozen=True)
class Write:
    """Write settings as a trial, each target a change of its own. Answered by `Wrote` or `WriteFailed`."""

    targets: Tuple[str, ...]
    settings: Mapping[str, Any]
    why: str
    replaces: Tuple[int, ...] = ()
    """Changes that are taken back once the new ones are in force: the masks of the stages before."""
    forecast: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What was expected, where the settings are written to all OSDs that they are for."""


@dataclass(frozen=True)
class TakeBack:
    """Take these changes back, newest first. Answered by `TookBack` or `TakeBackFailed`."""

    numbers: Tuple[int, ...]
    why: str


@dataclass(frozen=True)
class Keep:
    """Make a change permanent. Answered by `Kept` or `WriteFailed`."""

    number: int


@dataclass(frozen=True)
class Note:
    """For the audit trail, the cluster's log and whoever watches: what is about to be done, or was found."""

    what: str
    why: str
    by: str = "automatic mode"
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Learn:
    """Tell the optimiser's history what became of the trial."""

    settings: Mapping[str, Any]
    effects: Mapping[str, Effect]
    baseline: Mapping[str, float]
    number: int
    failed: str = ""
    forecast: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What was expected of it, as `Answered` has it."""


Act = Union[Ask, Write, TakeBack, Keep, Note, Learn]
