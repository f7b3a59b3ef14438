"""What is believed before `ceph-tuner tune` measures anything.

Where the cluster is known well enough it is the twin, else what follows from mClock's rules alone.
"""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, List, Optional

from ceph_lab.cluster import lab_of
from ceph_lab.recipes import options_for_window
from ceph_lab.twin_model import SCENARIOS, drives_under, lab_model
from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.releases import parse_version
from ceph_tuner.core.measure.metrics import METRICS
from ceph_tuner.core.profiles.in_force import InForce
from ceph_tuner.files import fit_file, slo_file
from ceph_tuner.optimise import Prior
from ceph_tuner.recommend.write_forecast import WriteForecasts
from ceph_tuner.search.shares_prior import SharesPrior
from ceph_tuner.search.space import KnobSpace
from ceph_tuner.tune.loop import Foretell
from ceph_tuner.tune.measurement import Timing
from ceph_tuner.tune.twin_prior import TwinPrior
from ceph_tuner.twin.fit import Fit, described_fit
from ceph_tuner.twin.fit_runs import Runner
from ceph_tuner.twin.model import ClusterModel
from ceph_tuner_cli.description import read_description

NOTHING, RULES = "", "mClock's rules"


@dataclass(frozen=True)
class Believed:
    """A model of the cluster, and a name that is another one for another model."""

    name: str = NOTHING
    model: Optional[ClusterModel] = None
    fit: Optional[Fit] = None
    """Of the model, where its description names one."""

    @contextmanager
    def foretelling(self, now: InForce) -> Iterator[Foretell]:
        """What the twin says before each write; nothing where there is no model."""
        if self.model is None:
            yield lambda settings, at: None
            return
        fit = self.fit or described_fit({self.name: self.model}, now.settings)
        with Runner(None) as runs:
            yield WriteForecasts(self.model, fit, self.name, runs).of

    def priors(self, space: KnobSpace, slo: Slo, now: InForce, seed: int) -> List[Prior]:
        """Give what the search is told first. A twin simulates: some tens of seconds on every core.

        An interrupt is passed on.
        """
        metrics = list(dict.fromkeys(objective.metric for objective in slo.objectives))
        if self.model is None:
            rules_apply = self.name == RULES and any(METRICS[name].unit != "1" for name in metrics)
            return [SharesPrior(space, metrics, slo.work)] if rules_apply else []
        beside = {name: value for name, value in now.settings.items() if name != PROFILE}
        with Runner(None) as runs:
            prior = TwinPrior(self.model, space, beside, metrics, seed, runs=runs)
        return [prior] if prior.metrics else []


def believed(
    connection: Cluster, objectives: slo_file.SloFile, now: InForce, timing: Timing, model: Optional[Path], target: str
) -> Believed:
    """Give the model of a described cluster, or the lab's own, or the rules.

    Raises InputError for a description of another release or of other OSDs than `target`.
    """
    if model is not None:
        description = read_description(model).for_target(target, str(model), connection.config.places())
        if description.model.release.name != connection.release.name:
            raise InputError(str(model), f"a cluster of {description.model.release.title}", connection.release.title)
        fit = None if description.calibration is None else fit_file.read(description.calibration)
        fitted_model = description.model if fit is None else fit.applied(description.model)
        digest = hashlib.sha256(model.read_bytes()).hexdigest()[:12]
        return Believed(f"{description.name} {digest}", fitted_model, fit)
    lab = lab_of(connection)
    if lab is None or objectives.scenario not in SCENARIOS:
        return Believed(RULES)
    options, version = lab.state.options, parse_version(connection.version)
    work = options_for_window(objectives.scenario, objectives.options, timing.settle + timing.window)
    if len(drives_under(options, work)) > 1:
        # the twin's OSDs are all alike
        return Believed(RULES)
    of_lab = lab_model(options, now.hardware, objectives.scenario, connection.release, version, work)
    return Believed("lab", of_lab)
