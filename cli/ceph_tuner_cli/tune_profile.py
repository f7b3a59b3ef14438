"""A tuning run's winner as a profile, with what was measured as its evidence."""

from __future__ import annotations

from typing import Any, Dict, Mapping

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.profiles.in_force import InForce
from ceph_tuner.core.profiles.profile import Profile
from ceph_tuner.core.wording import rounded
from ceph_tuner.files import slo_file
from ceph_tuner.tune.outcome import TuneOutcome


def tuned_profile(outcome: TuneOutcome, scenario_slo: slo_file.SloFile, connection: Cluster, now: InForce) -> Profile:
    """Make a profile of a run's winner, with what was measured as its evidence."""
    profile = outcome.settings.get(PROFILE)
    built_in = profile in connection.release.profiles
    settings = connection.release.profiles[str(profile)] if built_in else outcome.settings
    best = outcome.best_built_in
    evidence: Dict[str, Any] = {
        "measured": _short_means(outcome.choice.winner.means),
        "repeats": outcome.choice.winner.repeats,
        "before": _short_means(outcome.choice.in_force.means),
        "verdicts": [f"{v.objective.text}: {'met' if v.met else 'missed'}" for v in outcome.choice.verdicts],
    }
    if best is not None:
        evidence["best_built_in"] = {"profile": best.label, "measured": _short_means(best.means)}
    return Profile.make(
        str(profile) if built_in else f"tuned-{scenario_slo.slo.name}"[:64].rstrip("._-"),
        connection.release,
        {name: value for name, value in settings.items() if name != PROFILE},
        version=connection.version,
        built_in=built_in,
        description=f"{outcome.choice.reason} ({outcome.choice.winner.label})",
        hardware=now.hardware,
        osds=now.osds,
        workload=scenario_slo.scenario or "the cluster's own",
        slos=(scenario_slo.slo.to_dict(),),
        evidence=(evidence,),
    )


def _short_means(means: Mapping[str, float]) -> Dict[str, float]:
    return {name: rounded(value) for name, value in means.items()}
