"""What `ceph-tuner tune` puts together for a run, and what it makes of its outcome."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ContextManager, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ceph_lab.cluster import lab_of
from ceph_lab.recipes import options_for_window
from ceph_lab.scenarios import scenario as make_scenario
from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.cluster.sampler import ClusterSampler
from ceph_tuner.core.autopilot.groups import SECTIONS
from ceph_tuner.core.ceph.target import Place, Target, covered, running
from ceph_tuner.core.changes.applier import Applier
from ceph_tuner.core.changes.step import typed
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.guard import GuardLimits
from ceph_tuner.core.goals.trial import TrialBudget
from ceph_tuner.core.knobs.settings import after_moves, fitting_reservations
from ceph_tuner.core.measure.metrics import CLASS, Scope
from ceph_tuner.core.profiles.in_force import InForce
from ceph_tuner.core.profiles.translation import to_release_units
from ceph_tuner.files import slo_file
from ceph_tuner.optimise import Options
from ceph_tuner.recommend.accounts import Account, accounts
from ceph_tuner.recommend.answer import way_back
from ceph_tuner.search.space import KnobSpace, space_for
from ceph_tuner.tune import MeasuredWork
from ceph_tuner.tune.live_work import LiveWork
from ceph_tuner.tune.measurement import Timing
from ceph_tuner.tune.outcome import TuneOutcome, TuneTask
from ceph_tuner_cli.render import say
from ceph_tuner_cli.tune_prior import Believed


class CanaryPart(NamedTuple):
    """A part of the target that gets settings first."""

    name: str
    targets: Tuple[str, ...]
    osds: int
    """How many run."""


@dataclass(frozen=True)
class TuneRequest:
    """What the command was given, checked as far as it can be without the cluster."""

    wanted: slo_file.SloFile
    target: str
    knobs: Optional[Sequence[str]]
    """Those to search; None: those of the work that the objectives are about."""
    budget: TrialBudget
    timing: Timing
    limits: GuardLimits
    options: Options
    seed: int
    prior: bool
    profiles_from: Sequence[Path]
    elsewhere: bool
    past: bool
    resume: bool
    write_back: bool
    compare: bool
    """With the built-in profiles."""
    canary: Optional[CanaryPart] = None
    """The part of the target that gets settings first; None: none."""
    described: Optional[Believed] = None
    """The model of a description; None: none was given."""

    def space(self, connection: Cluster, now: InForce) -> KnobSpace:
        """Give what is searched."""
        settings, work = fitting_reservations(now.settings), self.wanted.slo.work
        return space_for(connection.release, work, settings, self.knobs, now.hardware.shards, now.kind)

    def task(self, connection: Cluster, now: InForce) -> TuneTask:
        """Give what the loop is asked."""
        settings, release = fitting_reservations(now.settings), connection.release
        in_force = {**settings, **self.space(connection, now).nearest(settings)}
        return TuneTask(self.wanted.slo, release, in_force, now.built_in, self.budget, self.write_back, self.compare)


MANY_OSDS = 50
"""With more, a canary goes first unless none is asked for."""


def canary_of(given: Optional[str], target: str, places: Sequence[Place]) -> Optional[CanaryPart]:
    """Give the part of the target that gets settings first; None where there is to be none. Raises InputError."""
    own = {place.osd for place in running(target, places)}
    if given == "none" or (given is None and len(own) <= MANY_OSDS):
        return None
    if given is not None:
        mask = Target.parse(f"osd/{given}", "--canary")
        running(str(mask), places)
        part = _part(mask, target, places, own) if mask.location_type else None
        if part is None:
            raise InputError("--canary", f"{given}, whose OSDs are no part of {target}", "host:NAME in it, or none")
        return part
    hosts = sorted({place.locations["host"] for place in places if place.osd in own and "host" in place.locations})
    parts = [_part(Target("osd", "host", host), target, places, own) for host in hosts]
    inside = [part for part in parts if part is not None]
    if not inside:
        raise InputError("--canary", f"{len(own)} OSDs and no host that is a part of {target}", "rack:NAME, or none")
    return min(inside, key=lambda part: (len(part.targets) > 1, part.osds))


def _part(mask: Target, target: str, places: Sequence[Place], own: Set[int]) -> Optional[CanaryPart]:
    """What of the target a mask covers; None where that is nothing, all of it, or too much to be named one by one."""
    osds = sorted(set(covered(str(mask), places)) & own)
    if not 0 < len(osds) < len(own):
        return None
    section = Target.parse(target)
    if all(section.covers(place) for place in places if mask.covers(place)):
        return CanaryPart(str(mask), (str(mask),), len(osds))
    # the mask would cover what the target does not
    name = f"the {len(osds)} OSDs of {target} on {mask.location_type} {mask.location}"
    return CanaryPart(name, tuple(f"osd.{osd}" for osd in osds), len(osds)) if len(osds) <= SECTIONS else None


def work_of(
    connection: Cluster, scenario_slo: slo_file.SloFile, timing: Timing, device_class: str = ""
) -> ContextManager[MeasuredWork]:
    """Start a lab's scenario, or take the own load of the cluster, or of one device class, as it is.

    Says beforehand which of a scenario's loads may run out of work.
    """
    lab = lab_of(connection)
    if lab is not None and scenario_slo.scenario:
        seconds = timing.settle + timing.window
        options = options_for_window(scenario_slo.scenario, scenario_slo.options, seconds)
        made = make_scenario(scenario_slo.scenario, lab, **options)
        try:
            say(_before_it_runs_out(made.shortfalls(seconds), options))
        except BaseException:
            made.close()
            raise
        return made
    if scenario_slo.scenario:
        say([f"{connection.name} is no lab: its own load is measured, no scenario is started"])
    of = Scope(CLASS, device_class) if device_class else None
    return nullcontext(LiveWork(ClusterSampler(connection.commander, connection.clock, of=of), connection.clock))


def _before_it_runs_out(shortfalls: Sequence[str], options: Mapping[str, object]) -> List[str]:
    """Which loads may end before a window does, and what helps."""
    amounts = [f"`{name}`" for name in ("seconds", "objects", "clones") if name in options]
    more = f", or more work by {' or '.join(amounts)} under `options:` in the SLO file" if amounts else ""
    return [f"{line}: give a shorter --window{more}" for line in shortfalls]


def capacity_accounts(outcome: TuneOutcome, now: InForce, belief: Believed) -> List[Account]:
    """Account for each class's capacity, where a model of the cluster says what the work costs."""
    if belief.model is None:
        return []
    settings = after_moves(outcome.moves, now.settings, belief.model.release)
    believed_of = {name: getattr(now.hardware, name) for name in ("capacity_iops", "bandwidth_bytes_s", "shards")}
    # what mClock divides is what it believes here, whatever the description says
    model = replace(belief.model, osd=replace(belief.model.osd, **believed_of))
    return accounts(outcome.judge, model, settings, outcome.choice.winner.means)


def commands_of(
    applier: Applier, target: str, outcome: TuneOutcome, connection: Cluster, now: InForce
) -> Tuple[List[str], List[str]]:
    """Give the exact commands for a winner that is not in place and was not refused, and those that take them back."""
    if not outcome.choice.better or not outcome.moves or outcome.written or outcome.withdrawn:
        return [], []
    plan = applier.plan(target, to_release_units(outcome.moves, connection.release, now.hardware))
    back = way_back(connection.config.dump(), plan, connection.config.places(), connection.release)
    return list(typed(plan.steps)), list(back)
