"""What windows say of each parameter, in words: determined, only in combination with others, or not at all.

In standard deviations of the prior the windows' information is a matrix (`Calibration.information`). Its diagonal is
what they say of a parameter whose fellows are known. What is left when nothing is known of the fellows is the
posterior's deviation, and its correlations name the fellows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Tuple

import numpy as np

from ceph_tuner.twin.parameters import Array

DETERMINED = 0.5
"""A posterior of at most so much of the prior's standard deviation: the windows determine the parameter."""

SILENT = 1.0
"""Information below that of the prior: even with all else known, the windows say less than the description did."""

TIED = 0.6
"""A correlation of the posterior from which on two parameters are one combination: when one rises the other falls."""


@dataclass(frozen=True)
class Identifiability:
    """Names of parameters, by what the windows say of them."""

    determined: Tuple[str, ...]
    silent: Tuple[str, ...]
    """The windows say nothing: the described value stays."""
    together: Tuple[Tuple[str, ...], ...]
    """Groups that the windows cannot tell apart: they determine a combination, and not its parts."""
    vague: Tuple[str, ...]
    """The windows say something, and not enough."""

    def sentences(self) -> List[str]:
        """What the windows cannot tell of the parameters, a sentence for each kind."""
        sentences = [f"the windows cannot tell apart: {', '.join(group)}" for group in self.together]
        if self.silent:
            sentences.append(f"the windows say nothing about: {', '.join(self.silent)} (the described values stay)")
        if self.vague:
            sentences.append(f"the windows say little about: {', '.join(self.vague)}")
        return sentences


def identifiability(names: List[str], information: Array, covariance: Array) -> Identifiability:
    """Judge parameters by the windows' information and the posterior's covariance, both in the prior's deviations."""
    alone, deviation = np.diag(information), np.sqrt(np.diag(covariance))
    silent = [n for n in range(len(names)) if alone[n] < SILENT]
    determined = [n for n in range(len(names)) if n not in silent and deviation[n] <= DETERMINED]
    open_ones = [n for n in range(len(names)) if n not in silent and n not in determined]
    # would be determined if their fellows were known: those are the confused ones
    confused = [n for n in open_ones if 1.0 / np.sqrt(1.0 + alone[n]) <= DETERMINED]
    groups = _groups(confused, covariance)
    grouped = {n for group in groups for n in group}
    return Identifiability(
        tuple(names[n] for n in determined),
        tuple(names[n] for n in silent),
        tuple(tuple(names[n] for n in group) for group in groups),
        tuple(names[n] for n in open_ones if n not in grouped),
    )


def _groups(confused: List[int], covariance: Array) -> List[List[int]]:
    """Parameters joined where the posterior ties two to each other."""
    deviation = np.sqrt(np.diag(covariance))
    tie = np.abs(covariance / np.outer(deviation, deviation))
    groups: List[List[int]] = []
    for place, one in enumerate(confused):
        for other in confused[place + 1 :]:
            if tie[one, other] < TIED:
                continue
            joined = [group for group in groups if {one, other} & set(group)]
            groups = [group for group in groups if group not in joined]
            groups.append(sorted({one, other, *(member for group in joined for member in group)}))
    return groups
