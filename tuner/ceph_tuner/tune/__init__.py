"""The tuning loop: carries out what `trial.py` and `ranking.py` decide, through these few interfaces."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Mapping, Optional, Protocol, Sequence, Tuple

from ceph_tuner.core.goals.guard import Sight
from ceph_tuner.core.goals.trial import Run, Trial
from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.core.measure.sample import Measure
from ceph_tuner.optimise.contract import Expected, SearchVerdict
from ceph_tuner.search.optimiser import Result, SettingsProposal


class MeasuredWork(Protocol):
    """The work under which the cluster is measured: a lab's scenario, or whatever runs on a real cluster."""

    def prepare(self) -> None:
        """Bring the cluster to where `start` begins the work at once."""

    def start(self) -> None:
        """Begin the work."""

    def observe(self) -> Mapping[str, float]:
        """Read the counters, about once a second; give what is known right now (may be nothing)."""

    def measure(self, start: float, end: float) -> Mapping[str, Measure]:
        """Metrics of that stretch of time; also of a part of the window, while it lasts. Not seen is absent."""

    def remarks(self) -> Sequence[str]:
        """What spoiled the last measurement, if anything."""

    def stop(self) -> None:
        """End the work. Stopping what does not run is no error."""


class TrialLookout(Protocol):
    """Looks after the cluster while a trial runs."""

    def look(self) -> Optional[Sight]:
        """Give the state of the cluster; None where it did not answer."""


class Writer(Protocol):
    """Brings settings onto the cluster and takes them back; the journal and the lock are its business."""

    def apply(self, settings: Settings) -> None:
        """Write settings, and return when the OSDs show them. Raises TunerError; then nothing is left half done."""

    def undo(self) -> None:
        """Take the last `apply` back. Nothing to undo is no error."""

    def keep(self) -> None:
        """Let the last `apply` stay when this process ends."""


class Search(Protocol):
    """Proposes what to try. The settings in force are told first; the same tells give the same asks."""

    def nearest(self, settings: Settings) -> Optional[Settings]:
        """Give the settings, as the search would write them, that stand for these; None where none do."""

    def ask(self) -> Optional[SettingsProposal]:
        """Give settings to try next; None where nothing more may be tried (`verdict` says why)."""

    def tell(self, settings: Settings, result: Result, old: bool = False, expected: Optional[Expected] = None) -> None:
        """Take a result, of any settings; `old` ones are of an earlier run. `expected`: what was said of it before."""

    def forget_pending(self) -> None:
        """Let what was asked for and could not be measured be asked for again."""

    def verdict(self) -> SearchVerdict:
        """Say whether another trial is worth its cost."""

    def best(self) -> Settings:
        """Give the settings that are thought best of all that were tried, luck aside."""

    def simpler(self, settings: Settings, built_in: bool) -> Optional[SettingsProposal]:
        """Give the fewest of these changes that are thought as good; None where it takes all of them.

        `built_in`: a built-in profile is in force.
        """

    def trust(self) -> Mapping[str, Tuple[float, ...]]:
        """Metric -> how far each model that was believed beforehand was right: 1 as predicted, 0 of no use."""


class TuneListener(Protocol):
    """Hears how it goes."""

    def phase(self, run: Run, number: int, total: int, phase: str, seconds: float) -> None:
        """A phase begins; it takes about that long (0: unknown)."""

    def live(self, values: Mapping[str, float]) -> None:
        """What is seen while measuring."""

    def done(self, trial: Trial, number: int, total: int) -> None:
        """A run was measured, or failed."""


class Interruptible(Protocol):
    """Lets Ctrl-C strike where it can do no harm."""

    def __call__(self) -> AbstractContextManager[None]:
        """Only within the context is an interrupt raised; one that came before is raised at its beginning.

        Outside of it, settings are being written or taken back, and nothing may be skipped.
        """
