"""What is believed before `ceph-tuner tune` measures anything.

Where the cluster is known well enough it is the twin, else what follows from mClock's rules alone.
"""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Collection, Iterator, List, Optional

from ceph_lab.cluster import lab_of
from ceph_lab.recipes import options_for_window
from ceph_lab.twin_model import SCENARIOS, drives_under, lab_model
from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.ceph.target import Place
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.releases import Release, parse_version
from ceph_tuner.core.measure.metrics import METRICS
from ceph_tuner.core.profiles.in_force import InForce
from ceph_tuner.files import cluster_file, fit_file, slo_file, yaml_document
from ceph_tuner.optimise import Prior
from ceph_tuner.recommend.write_forecast import WriteForecasts
from ceph_tuner.search.shares_prior import SharesPrior
from ceph_tuner.search.space import KnobSpace
from ceph_tuner.tune.loop import Foretell
from ceph_tuner.tune.measurement import Timing
from ceph_tuner.tune.twin_prior import TwinPrior
from ceph_tuner.twin.described_cluster import DescribedCluster
from ceph_tuner.twin.fit import Fit, described_fit
from ceph_tuner.twin.fit_runs import Runner
from ceph_tuner.twin.model import ClusterModel
from ceph_tuner_cli.render import warn

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
        metrics = slo.metrics
        if self.model is None:
            rules_apply = self.name == RULES and any(METRICS[name].unit != "1" for name in metrics)
            return [SharesPrior(space, metrics, slo.work)] if rules_apply else []
        beside = {name: value for name, value in now.settings.items() if name != PROFILE}
        with Runner(None) as runs:
            prior = TwinPrior(self.model, space, beside, metrics, seed, runs=runs, slo=slo)
        return [prior] if prior.metrics else []


@dataclass(frozen=True)
class ModelFile:
    """A description of OSDs, read once: its path may lead to another one while somebody waits for the lock."""

    path: Path
    description: DescribedCluster
    fit: Optional[Fit]
    digest: str
    """Another one for another text."""

    @classmethod
    def read(cls, path: Path) -> ModelFile:
        """Read it, and the fit that it names; what is unlikely in it is told. Raises InputError."""
        text = yaml_document.text_of(path)
        description = cluster_file.from_text(text, str(path))
        warn(description.unlikely)
        fit = None if description.calibration is None else fit_file.read(description.calibration)
        return cls(path, description, fit, hashlib.sha256(text.encode()).hexdigest()[:12])

    def believed(self, release: Release, target: str, places: Collection[Place]) -> Believed:
        """Its model. Raises InputError for one of another release, or of other OSDs than the target's."""
        description = self.description.for_target(target, str(self.path), places)
        if description.model.release.name != release.name:
            raise InputError(str(self.path), f"a cluster of {description.model.release.title}", release.title)
        model = description.model if self.fit is None else self.fit.applied(description.model)
        return Believed(f"{description.name} {self.digest}", model, self.fit)


def believed(connection: Cluster, objectives: slo_file.SloFile, now: InForce, timing: Timing) -> Believed:
    """Give the lab's own model, or the rules: where nobody has described the OSDs."""
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
