"""How one cluster stands, in one look. Changes nothing there."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import closing
from dataclasses import asdict, dataclass, field
from typing import Any, Dict, List, Optional, Sequence, Tuple

from ceph_tuner.autopilot.capacity import DEFAULTS, Stored, findings, summary
from ceph_tuner.clusters.commands import osd_versions
from ceph_tuner.clusters.dashboard import Dashboard, NotByRest
from ceph_tuner.clusters.opening import Cluster
from ceph_tuner.errors import JournalDamaged, TunerError
from ceph_tuner.fleet.contract import Member
from ceph_tuner.fleet.database import Database
from ceph_tuner.fleet.opening import open_member
from ceph_tuner.history import History
from ceph_tuner.journal import APPLIED, Entry, Journal
from ceph_tuner.knobs import PROFILE
from ceph_tuner.plan import Key, same_value
from ceph_tuner.ports import ConfigEntry
from ceph_tuner.releases import Release
from ceph_tuner.slo import evaluate, parse_slo
from ceph_tuner.target import Place

SLO_KEY = "slo"
"""Where the plugin keeps the cluster's SLO."""
RECENT_S = 600.0
"""Of older windows nothing is said: the cluster may be another one by now."""
QUEUE, MCLOCK = "osd_op_queue", "mclock_scheduler"


@dataclass(frozen=True)
class Objectives:
    """The cluster's SLO held against its newest window."""

    met: Tuple[str, ...] = ()
    missed: Tuple[str, ...] = ()
    missed_hard: Tuple[str, ...] = ()
    unseen: Tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """Of all of them."""
        return len(self.met) + len(self.missed) + len(self.unseen)


@dataclass(frozen=True)
class Change:
    """The newest change of the journal."""

    number: int
    at: float
    """When it came into its state, in seconds since the epoch."""
    state: str
    target: str
    who: str
    why: str
    trial: bool


@dataclass(frozen=True)
class Status:
    """One cluster. None stands for what cannot be known by the way that it is reached."""

    release: str
    version: str
    versions: Tuple[str, ...]
    """Of its OSDs, each once."""
    osds: int
    up: int
    profile: str
    """In force by the configuration database: `balanced`, or `balanced 2, custom 1` where OSDs differ."""
    profile_certain: bool
    """False where masks are hidden, so that an entry may be for some OSDs only."""
    capacities_wrong: int
    """OSDs whose stored capacity is not believed."""
    capacity: Tuple[str, ...]
    """Why, one line for each rule."""
    objectives: Optional[Objectives]
    """None where they cannot be known; none at all where no SLO is set."""
    drift: Optional[Tuple[str, ...]]
    last_change: Optional[Change]
    warnings: Tuple[str, ...] = ()
    """Health checks that the tuner's plugin has raised."""
    notes: Tuple[str, ...] = field(default=())

    @property
    def missing_hard(self) -> bool:
        """Whether a hard objective is known to be missed."""
        told = any(warning.startswith("TUNER_SLO_MISSED") for warning in self.warnings)
        return told or (self.objectives is not None and bool(self.objectives.missed_hard))

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, for programs."""
        return asdict(self)


def look(member: Member, timeout: float = 30.0) -> Status:
    """Open a member and look at it. Raises TunerError."""
    with closing(open_member(member, timeout)) as cluster:
        return status_of(cluster)


def status_of(cluster: Cluster) -> Status:
    """Look at a cluster through its ports. Raises TunerError."""
    entries, masks_hidden = entries_of(cluster)
    places = cluster.config.places()
    running = [place for place in places if place.up]
    wrong = findings(stored_capacities(entries, running))
    notes: List[str] = []
    objectives = drift = last_change = None
    try:
        objectives = _objectives(cluster, notes)
        drift, last_change = _changes(cluster, entries, notes)
    except NotByRest as refusal:
        notes.append(f"SLOs, drift and changes are not known: {refusal.why}")
    return Status(
        release=cluster.release.name,
        version=cluster.version,
        versions=tuple(sorted(set(osd_versions(cluster.commander)))),
        osds=len(places),
        up=len(running),
        profile=profile_words(entries, running, cluster.release),
        profile_certain=not masks_hidden or not any(entry.name == PROFILE for entry in entries),
        capacities_wrong=len({finding.osd for finding in wrong}),
        capacity=tuple(summary(wrong)),
        objectives=objectives,
        drift=drift,
        last_change=last_change,
        warnings=tuple(_warnings(cluster)),
        notes=tuple(notes),
    )


def profile_words(entries: Sequence[ConfigEntry], running: Sequence[Place], release: Release) -> str:
    """The profile by the configuration database, with how many OSDs have which where they differ."""
    database = Database(entries)
    counts: Counter[str] = Counter()
    for place in running:
        kind = database.value(QUEUE, place) or release.default_queue
        counts[kind if kind != MCLOCK else database.value(PROFILE, place) or release.default_profile] += 1
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{profile} {count}" for profile, count in counts.most_common())


def stored_capacities(entries: Sequence[ConfigEntry], running: Sequence[Place]) -> List[Stored]:
    """Capacity of each OSD by the configuration database; what a ceph.conf of its own says is not seen."""
    database, found = Database(entries), []
    for place in running:
        kind = "hdd" if place.device_class == "hdd" else "ssd"
        entry = database.winner(f"osd_mclock_max_capacity_iops_{kind}", place)
        iops = DEFAULTS[kind] if entry is None else float(entry.value)
        source = "default" if entry is None else entry.who
        # mClock itself never takes less than 1
        found.append(Stored(place.osd, kind, max(1.0, iops), source, place.device_class))
    return found


def drifted(entries: Sequence[ConfigEntry], standing: Sequence[Entry]) -> List[str]:
    """Keys that are not as the changes in force left them."""
    ours: Dict[Key, Optional[str]] = {step.key: step.new for entry in standing for step in entry.steps}
    now = {(entry.who, entry.name): entry.value for entry in entries}
    return [
        f"{who} {name}: {_shown(now.get((who, name)))} instead of {_shown(wanted)}"
        for (who, name), wanted in ours.items()
        if not _same(now.get((who, name)), wanted)
    ]


def entries_of(cluster: Cluster) -> Tuple[List[ConfigEntry], bool]:
    """The configuration database, and whether it came without its masks."""
    if isinstance(cluster.commander, Dashboard):
        return [ConfigEntry(*stated) for stated in cluster.commander.stated()], True
    return cluster.config.dump(), False


def _objectives(cluster: Cluster, notes: List[str]) -> Objectives:
    text = cluster.store.get(SLO_KEY)
    if not text:
        return Objectives()
    try:
        slo = parse_slo(json.loads(text))
    except (ValueError, TunerError) as fault:
        notes.append(f"the stored SLO cannot be read: {fault}")
        return Objectives()
    windows = History(cluster.store).windows(cluster.clock.now() - RECENT_S)
    means = {name: measure.mean for name, measure in windows[-1].measures.items()} if windows else {}
    if not windows:
        notes.append(f"no window of the last {RECENT_S / 60:g} min: is the plugin running? (`ceph-tuner mgr status`)")
    verdicts = evaluate(slo, means)
    missed = [verdict.objective for verdict in verdicts if verdict.met is False]
    return Objectives(
        met=tuple(verdict.objective.text for verdict in verdicts if verdict.met),
        missed=tuple(objective.text for objective in missed),
        missed_hard=tuple(objective.text for objective in missed if objective.hard),
        unseen=tuple(verdict.objective.text for verdict in verdicts if verdict.met is None),
    )


def _changes(
    cluster: Cluster, entries: Sequence[ConfigEntry], notes: List[str]
) -> Tuple[Optional[Tuple[str, ...]], Optional[Change]]:
    try:
        journal = Journal(cluster.store).entries()
    except JournalDamaged as damage:
        notes.append(str(damage))
        return None, None
    notes += [f"change {entry.number} was left half done ({entry.state})" for entry in journal if entry.unfinished]
    standing = [entry for entry in journal if entry.state == APPLIED]
    last = max(journal, key=lambda entry: (entry.changed, entry.number), default=None)
    if last is None:
        return (), None
    change = Change(last.number, last.changed, last.state, last.target, last.who, last.why, last.trial)
    return tuple(drifted(entries, standing)), change


def _warnings(cluster: Cluster) -> List[str]:
    checks = json.loads(cluster.commander.mon("health", {}))["checks"]
    return [f"{name}: {check['summary']['message']}" for name, check in checks.items() if name.startswith("TUNER_")]


def _same(one: Optional[str], other: Optional[str]) -> bool:
    return one == other if one is None or other is None else same_value(one, other)


def _shown(value: Optional[str]) -> str:
    return "nothing" if value is None else value
