"""The question that a described cluster and an SLO make."""

from __future__ import annotations

from dataclasses import replace
from typing import Optional, Sequence

from ceph_tuner.core.goals.slo import Slo, wanted_of
from ceph_tuner.core.knobs.catalogue import MCLOCK_NINE
from ceph_tuner.core.profiles.translation import from_release_units
from ceph_tuner.files import fit_file
from ceph_tuner.recommend import Question
from ceph_tuner.twin.described_cluster import DescribedCluster
from ceph_tuner.twin.discrepancy import spread_and_freedom


def question_of(description: DescribedCluster, slo: Slo, knobs: Optional[Sequence[str]] = None) -> Question:
    """Bring settings into fractions, and replace what a fit knows better: parameters, and how far off the twin is.

    Of an SLO with scopes it takes what is about the class that is described. Raises InputError where that is nothing,
    and for a fit that cannot be read.
    """
    model, in_force = description.model, description.settings
    if MCLOCK_NINE[0] in in_force:
        in_force = from_release_units(in_force, model.release, model.osd.hardware)
    question = Question(
        model,
        wanted_of(slo, model.osd.device_class),
        in_force,
        None if knobs is None else tuple(knobs),
        target=description.target,
        measured_means=description.seen,
    )
    if description.calibration is None:
        return question
    fit = fit_file.read(description.calibration)
    errors = {metric: spread_and_freedom(entry) for metric, entry in fit.discrepancy.metrics.items()}
    return replace(question, model=fit.applied(model), errors=errors)
