"""The contract of a search: ask for settings, tell what they gave.

Whoever measures (a live trial, the twin) stands between `ask` and `tell`; the optimiser knows neither.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Mapping, Optional, Protocol, Union

from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.core.measure.sample import Measure
from ceph_tuner.optimise.contract import Expected, SearchVerdict


@dataclass(frozen=True)
class Failed:
    """A trial that was stopped: why, and what was seen until then."""

    reason: str
    seen: Mapping[str, float] = field(default_factory=dict)


Result = Union[Mapping[str, Measure], Failed]
"""Metric -> measure, or the failure."""


@dataclass(frozen=True)
class SettingsProposal:
    """Settings to try, and where they come from."""

    settings: Settings
    why: str
    expected: Expected = field(default_factory=dict)


class Optimiser(Protocol):
    """Any search. The same seed and the same tells give the same asks."""

    def ask(self) -> Optional[SettingsProposal]:
        """Give settings to try next; None where nothing more may be tried (`verdict` says why).

        What was asked for and not told yet is under way: it is not proposed again.
        """

    def tell(self, settings: Settings, result: Result) -> None:
        """Take what the settings gave; repeats of the same settings are welcome, in any order."""

    def verdict(self) -> SearchVerdict:
        """Say whether another trial is worth its cost."""
