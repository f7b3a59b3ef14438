"""The question that a described cluster and an SLO make."""

from __future__ import annotations

from dataclasses import replace
from typing import List, Optional, Sequence

from ceph_tuner.core.ceph.target import Target
from ceph_tuner.core.goals.slo import Slo, wanted_of
from ceph_tuner.core.knobs.catalogue import MCLOCK_NINE
from ceph_tuner.core.measure.metrics import CLASS, Scope
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
        wanted_of(slo, class_of(description)),
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


def class_of(description: DescribedCluster) -> str:
    """The device class of the described OSDs: that of the target; the drives of class `nvme` have options of `ssd`."""
    return Target.parse(description.target).device_class or description.model.osd.device_class


def left_aside(description: DescribedCluster, slo: Slo) -> List[str]:
    """Give the objectives about OSDs of other classes than the one that is described."""
    own = Scope(CLASS, class_of(description))
    return [objective.text for objective in slo.objectives if objective.scope not in (None, own)]
