"""How one cluster stands, in one look. Changes nothing there."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.cluster.dashboard import NotByRest
from ceph_tuner.core.autopilot.capacity import findings, summary
from ceph_tuner.core.ceph.commands import osd_versions, parsed, shaped
from ceph_tuner.core.ceph.ports import ConfigEntry
from ceph_tuner.core.ceph.target import Place
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.goals.stored_slo import stored_judge
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.measure.history import RECENT_S, History
from ceph_tuner.core.profiles.in_force import kinds_of
from ceph_tuner.files import slo_file
from ceph_tuner.fleet.changes import NewestChange, changes_of
from ceph_tuner.fleet.configuration import entries_of, profile_words, stored_capacities
from ceph_tuner.fleet.connection import open_member
from ceph_tuner.fleet.contract import Member


@dataclass(frozen=True)
class Objectives:
    """The cluster's SLO held against its newest window."""

    met: Tuple[str, ...] = ()
    missed: Tuple[str, ...] = ()
    missed_hard: Tuple[str, ...] = ()
    unseen: Tuple[str, ...] = ()
    idle: Tuple[str, ...] = ()
    """About rates of work that is not there now: there is nothing to be held against them."""

    @property
    def count(self) -> int:
        """Of those that something can be said about, or should."""
        return len(self.met) + len(self.missed) + len(self.unseen)


@dataclass(frozen=True)
class Standing:
    """What a rollout watches. None stands for what cannot be known by the way that the cluster is reached."""

    osds: int
    up: int
    objectives: Optional[Objectives]
    """None where they cannot be known; none at all where no SLO is set."""
    drift: Optional[Tuple[str, ...]]
    last_change: Optional[NewestChange]
    warnings: Tuple[str, ...]
    """Health checks that the tuner's plugin has raised."""
    notes: Tuple[str, ...]

    @property
    def missing_hard(self) -> bool:
        """Whether a hard objective is known to be missed."""
        has_warning = any(warning.startswith("TUNER_SLO_MISSED") for warning in self.warnings)
        return has_warning or (self.objectives is not None and bool(self.objectives.missed_hard))


@dataclass(frozen=True)
class Status(Standing):
    """One cluster: how it stands, and what it is."""

    release: str
    version: str
    versions: Tuple[str, ...]
    """Of its OSDs, each once."""
    profile: str
    """In force by the configuration database: `balanced`, or `balanced 2, custom 1` where OSDs differ."""
    profile_certain: bool
    """False where masks are hidden, so that an entry may be for some OSDs only."""
    capacities_wrong: int
    """OSDs whose stored capacity is not believed."""
    capacity: Tuple[str, ...]
    """Why, one line for each rule."""

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, for programs."""
        return asdict(self)


def look(member: Member, timeout: float = 30.0) -> Status:
    """Open a member and look at it. Raises TunerError."""
    with closing(open_member(member, timeout)) as cluster:
        return status_of(cluster, own_slo(member))


def own_slo(member: Member) -> Optional[Slo]:
    """The SLO that fleet.yaml names for it, which goes before the one that the cluster keeps. Raises InputError."""
    return slo_file.read(member.slo).slo if member.slo else None


def standing_of(cluster: Cluster, slo: Optional[Slo] = None, since: float = 0.0) -> Standing:
    """Look at what changes from one minute to the next, not at what its OSDs and drives are. Raises TunerError.

    `slo`: what it is held against; what it keeps itself where None. `since`: seconds since the epoch; windows that
    began before are none.
    """
    return _standing(cluster, entries_of(cluster)[0], cluster.config.places(), slo, since)


def status_of(cluster: Cluster, slo: Optional[Slo] = None) -> Status:
    """Look at a cluster through its ports, `slo` as for `standing_of`. Raises TunerError."""
    entries, masks_hidden = entries_of(cluster)
    places = cluster.config.places()
    up_places = [place for place in places if place.up]
    wrong = findings(stored_capacities(entries, up_places, kinds_of(cluster.commander, up_places)))
    return Status(
        **vars(_standing(cluster, entries, places, slo, 0.0)),
        release=cluster.release.name,
        version=cluster.version,
        versions=tuple(sorted(set(osd_versions(cluster.commander)))),
        profile=profile_words(entries, up_places, cluster.release),
        profile_certain=not masks_hidden or not any(entry.name == PROFILE for entry in entries),
        capacities_wrong=len({finding.osd for finding in wrong}),
        capacity=tuple(summary(wrong)),
    )


def _standing(
    cluster: Cluster, entries: Sequence[ConfigEntry], places: Sequence[Place], slo: Optional[Slo], since: float
) -> Standing:
    notes: List[str] = []
    objectives = drift = last_change = None
    try:
        objectives = _objectives(cluster, notes, slo, since)
        drift, last_change = changes_of(cluster, entries, notes)
    except NotByRest as refusal:
        notes.append(f"SLOs, drift and changes are not known: {refusal.why}")
    return Standing(
        osds=len(places),
        up=sum(place.up for place in places),
        objectives=objectives,
        drift=drift,
        last_change=last_change,
        warnings=tuple(_warnings(cluster)),
        notes=tuple(notes),
    )


def _objectives(cluster: Cluster, notes: List[str], slo: Optional[Slo], since: float) -> Objectives:
    try:
        judge = stored_judge(cluster.store, slo)
    except NotByRest:
        raise
    except InputError as fault:
        notes.append(f"the stored SLO cannot be read: {fault}")
        return Objectives()
    if judge.slo is None:
        return Objectives()
    window = History(cluster.store).newest(cluster.clock.now())
    means = {} if window is None or window.start < since else window.means
    if window is None:
        notes.append(f"no window of the last {RECENT_S / 60:g} min: is the plugin running? (`ceph-tuner mgr status`)")
    verdicts = judge.verdicts_at_work(means)
    misses = [verdict.objective for verdict in verdicts if verdict.met is False]
    return Objectives(
        met=tuple(verdict.objective.text for verdict in verdicts if verdict.met),
        missed=tuple(objective.text for objective in misses),
        missed_hard=tuple(objective.text for objective in misses if objective.hard),
        unseen=tuple(each.objective.text for each in verdicts if each.met is None and not each.idle),
        idle=tuple(each.objective.text for each in verdicts if each.idle),
    )


def _warnings(cluster: Cluster) -> List[str]:
    answer = cluster.commander.mon("health", {})
    with shaped("health"):
        checks = parsed(answer, "health")["checks"]
        return [f"{name}: {check['summary']['message']}" for name, check in checks.items() if name.startswith("TUNER_")]
