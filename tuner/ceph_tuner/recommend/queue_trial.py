"""Wpq or mClock on a real cluster: one host tries the other queue, others beside it are the control. Writes nothing.

An OSD reads `osd_op_queue` when it starts, so a trial is a change of the database, restarts, and both once more on the
way back. Everything here follows from values that were read before.

Which OSDs      each has an entry of its own: what stands under a device class, or under a host whose CRUSH name is not
                the machine's, reaches an OSD only after it has read this option (docs/ceph-behaviour.md)
How long        so many minutes that a difference of EFFECT is told from chance with POWER, by Student's test of two
                stretches: in each, every minute has a difference between the host and its controls
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from shlex import join, quote
from typing import Any, Collection, Dict, List, Mapping, Sequence, Tuple

from scipy.stats import nct
from scipy.stats import t as student

from ceph_tuner.core.ceph.ports import ConfigEntry
from ceph_tuner.core.ceph.target import Place
from ceph_tuner.core.changes.change_checks import Sources
from ceph_tuner.core.changes.config_database import Database
from ceph_tuner.core.changes.plan import Restore, Step, plan_change, plan_restore
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.ranking import WINDOW_NOISE
from ceph_tuner.core.knobs.releases import Release, Version
from ceph_tuner.core.measure.sample import Window
from ceph_tuner.doctor.facts import OWN_SOURCES
from ceph_tuner.doctor.finding import restarts
from ceph_tuner.recommend.queues import QUEUE
from ceph_tuner.recommend.rebuild import CLEAN
from ceph_tuner.twin.model import MCLOCK, WPQ

EFFECT, SURE, POWER = 0.10, 0.95, 0.90
"""The smallest difference that matters, as a share; how sure a finding shall be, and how likely to be made."""

LEAST_MINUTES, MOST_MINUTES = 30, 24 * 60
"""Of a stretch: shorter ones meet one state of the background work, longer ones another load."""

WARM_MINUTES = 15
"""After a restart caches are cold, and what was written meanwhile is recovered."""

CONTROLS = 3
"""Hosts beside it; more tell little more."""

MEASURED_METRIC = "client.p95_ms"
"""What the noise is taken of."""

NOOUT = "noout"

TELL_TALE: Tuple[Tuple[str, str], ...] = (
    ("client reads and writes, mean", "osd.op_r_latency, osd.op_w_latency of `ceph tell osd.N perf dump`"),
    ("client operations", "osd.op_r, osd.op_w, osd.op_rw of it"),
    ("recovery and backfill", "osd.recovery_bytes of it"),
    ("scrub", "osd.scrub_replicated_read_bytes, osd.scrub_ec_read_bytes of it (Tentacle)"),
)
"""What a stretch reads of each OSD at its beginning and after each minute (`queue_stretch`)."""


RUN, WAIT, MEASURE = "run", "wait", "measure"
"""What a step of a trial asks of whoever carries it out."""


@dataclass(frozen=True)
class TrialStep:
    """A command to run, a state to wait for, or a command that measures."""

    kind: str
    text: str


@dataclass(frozen=True)
class QueueTrial:
    """A trial on one host, its way back, and what to hold against what."""

    host: str
    osds: Tuple[int, ...]
    before: str
    """The queue that the host's OSDs run."""
    tried: str
    controls: Mapping[str, Tuple[int, ...]]
    """Host -> its OSDs, which stay as they are."""
    steps: Tuple[Step, ...]
    undo: Tuple[Step, ...]
    minutes: int
    """Of each of the three stretches: before, under the other queue, and back again."""
    deviation: float
    """Of a minute's difference between host and controls, as a share; the minutes follow from it."""
    measured: bool
    """Whether that comes from the cluster's own past."""
    notes: Tuple[str, ...]
    has_noout: bool = False
    """Whether the host's OSDs have that flag already: whoever has set it takes it back."""
    cluster: str = "ceph"
    """As the command was told of it."""

    @property
    def way(self) -> Tuple[TrialStep, ...]:
        """The trial in its order, up to the end of the measuring under the other queue."""
        before = self._measurement(f"as they are, the host under {self.before}")
        return before, *self._switch(self.steps, self.tried), self._measurement(f"the host under {self.tried}")

    @property
    def way_back(self) -> Tuple[TrialStep, ...]:
        """The inverse, and the proof that it was the queue."""
        return *self._switch(self.undo, self.before), self._measurement(f"the host back under {self.before}")

    def _switch(self, steps: Sequence[Step], queue: str) -> List[TrialStep]:
        """Writes, then every OSD of the host once more from its start, one after the other, until each runs `queue`."""
        trial_steps = [TrialStep(RUN, step.command) for step in steps]
        trial_steps += self._noout("set-group")
        for osd in self.osds:
            by_packages, by_cephadm = restarts([osd])
            trial_steps.append(TrialStep(WAIT, f"`ceph osd ok-to-stop {osd}` says yes"))
            # one command: whoever runs a trial's steps restarts no OSD twice
            trial_steps.append(TrialStep(RUN, f"{by_packages}  # cephadm: {by_cephadm}"))
            trial_steps.append(TrialStep(WAIT, f"`ceph tell osd.{osd} config get {QUEUE}` says {queue}"))
            trial_steps.append(TrialStep(WAIT, CLEAN))
        trial_steps += self._noout("unset-group")
        return [*trial_steps, TrialStep(WAIT, f"{WARM_MINUTES} minutes: caches are cold after a restart")]

    def _noout(self, verb: str) -> List[TrialStep]:
        return [] if self.has_noout else [TrialStep(RUN, f"ceph osd {verb} {NOOUT} {quote(self.host)}")]

    def _measurement(self, what: str) -> TrialStep:
        words = ("ceph-tuner", "compare-queues", "--cluster", self.cluster, "--host", self.host)
        stretch = ("--measure", f"queue-trial-{self.host}.json", "--minutes", str(self.minutes))
        return TrialStep(MEASURE, f"{join((*words, *stretch))}  # {what}")

    def to_dict(self) -> Dict[str, Any]:
        """Plain values, for programs."""
        return {
            "host": self.host,
            "osds": list(self.osds),
            "before": self.before,
            "tried": self.tried,
            "controls": {host: list(osds) for host, osds in self.controls.items()},
            "steps": [asdict(step) for step in self.way],
            "undo": [asdict(step) for step in self.way_back],
            "measure": [{"what": what, "from": where} for what, where in TELL_TALE],
            "minutes": self.minutes,
            "warm_minutes": WARM_MINUTES,
            "told_apart": EFFECT,
            "deviation": self.deviation,
            "deviation_measured": self.measured,
            "notes": list(self.notes),
        }


def plan_queue_trial(
    host: str,
    entries: Sequence[ConfigEntry],
    places: Sequence[Place],
    queues: Mapping[int, str],
    release: Release,
    version: Version,
    sources: Mapping[int, Sources],
    windows: Sequence[Window] = (),
    noout: Collection[str] = (),
) -> QueueTrial:
    """Plan it. `queues`: the queue that each running OSD shows; `windows`: minutes of the cluster's past.

    `noout`: hosts whose OSDs have that flag (`noout_hosts`).

    An empty `host` is chosen: the one with the fewest OSDs that has a control. Raises InputError: no such host, none
    that is like it, OSDs of two queues, or an entry that would outrank the change.
    """
    hosts = hosts_of(places)
    trial_host = _trial_host(host, hosts, places)
    osds = hosts[trial_host]
    states = _queue_states(queues, entries, places, sources)
    own_queues = sorted({states[osd] for osd in osds if osd in states})
    if len(own_queues) != 1 or own_queues[0] not in (MCLOCK, WPQ):
        raise InputError(
            f"host {trial_host}", f"OSDs under {' and '.join(own_queues) or 'no known queue'}", f"{MCLOCK} or {WPQ}"
        )
    before = own_queues[0]
    other = WPQ if before == MCLOCK else MCLOCK
    controls = {
        name: hosts[name]
        for name in _alike(trial_host, hosts, places)
        if all(states.get(osd) == before for osd in hosts[name])
    }
    if not controls:
        raise InputError(
            f"host {trial_host}", f"no host with OSDs of the same classes under {before}", "one to compare with"
        )
    steps, undo = _steps(osds, other, entries, places, sources, release, version)
    deviation, is_measured = _deviation(windows)
    return QueueTrial(
        trial_host,
        osds,
        before,
        other,
        dict(list(controls.items())[:CONTROLS]),
        steps,
        undo,
        minutes_for(EFFECT, deviation),
        deviation,
        is_measured,
        tuple(_notes(before, other)),
        trial_host in noout,
    )


def _queue_states(
    queues: Mapping[int, str],
    entries: Sequence[ConfigEntry],
    places: Sequence[Place],
    sources: Mapping[int, Sources],
) -> Dict[int, str]:
    """The queue of each OSD; of one that will run another one after its next restart, both in words."""
    database, by_osd = Database(entries), {place.osd: place for place in places}
    states = {}
    for osd, queue in queues.items():
        own = sources.get(osd, {}).get(QUEUE, {})
        own_value = next((own[source] for source in OWN_SOURCES if source in own), None)
        later = own_value or (database.value(QUEUE, by_osd[osd]) if osd in by_osd else None) or MCLOCK
        states[osd] = queue if queue == later else f"{queue}, and {later} after a restart"
    return states


def hosts_of(places: Sequence[Place]) -> Dict[str, Tuple[int, ...]]:
    """Host -> its running OSDs, by the CRUSH map."""
    osds_by_host: Dict[str, List[int]] = {}
    for place in sorted(places, key=lambda place: place.osd):
        if place.up and "host" in place.locations:
            osds_by_host.setdefault(place.locations["host"], []).append(place.osd)
    return {host: tuple(osds) for host, osds in osds_by_host.items()}


def noout_hosts(osd_map: Mapping[str, Any], hosts: Collection[str]) -> Tuple[str, ...]:
    """Hosts whose OSDs are not marked out: the cluster has `noout`, or the host has (`ceph osd dump`)."""
    if NOOUT in str(osd_map.get("flags", "")).split(","):
        return tuple(hosts)
    by_node = osd_map.get("crush_node_flags") or {}
    return tuple(host for host in hosts if NOOUT in by_node.get(host, ()))


def minutes_for(effect: float, deviation: float) -> int:
    """Minutes of each of two stretches that tell a difference of `effect` from chance (Student, of logarithms)."""
    log_effect = math.log1p(effect)
    for count in range(LEAST_MINUTES, MOST_MINUTES):
        freedom = 2 * count - 2
        least = float(student.ppf((1 + SURE) / 2, freedom))
        if 1.0 - float(nct.cdf(least, freedom, log_effect / deviation * math.sqrt(count / 2))) >= POWER:
            return count
    return MOST_MINUTES


def _trial_host(host: str, hosts: Mapping[str, Tuple[int, ...]], places: Sequence[Place]) -> str:
    if host:
        if host not in hosts:
            raise InputError("--host", repr(host), f"a host with running OSDs: {', '.join(sorted(hosts)) or 'none'}")
        return host
    with_control = [name for name in hosts if _alike(name, hosts, places)]
    if not with_control:
        raise InputError("--host", "no two hosts with OSDs of the same device classes", "one to compare with")
    return min(with_control, key=lambda name: (len(hosts[name]), name))


def _alike(host: str, hosts: Mapping[str, Tuple[int, ...]], places: Sequence[Place]) -> List[str]:
    """Hosts whose OSDs are of the same device classes, those with as many of them first."""
    classes = {place.osd: place.device_class for place in places}

    def kinds(name: str) -> Dict[str, int]:
        own = [classes[osd] for osd in hosts[name]]
        return {kind: own.count(kind) for kind in own}

    own_kinds = kinds(host)
    others = [name for name in hosts if name != host and set(kinds(name)) == set(own_kinds)]
    return sorted(others, key=lambda name: (sum(abs(kinds(name)[kind] - own_kinds[kind]) for kind in own_kinds), name))


def _steps(
    osds: Sequence[int],
    queue: str,
    entries: Sequence[ConfigEntry],
    places: Sequence[Place],
    sources: Mapping[int, Sources],
    release: Release,
    version: Version,
) -> Tuple[Tuple[Step, ...], Tuple[Step, ...]]:
    """The writes, one OSD after the other, and what takes them back."""
    now = list(entries)
    there: List[Step] = []
    restores: List[Restore] = []
    for osd in osds:
        plan = plan_change(now, f"osd.{osd}", {QUEUE: queue}, release, places, sources, version)
        there += plan.steps
        restores += plan.standing()
        for step in plan.steps:
            now = [entry for entry in now if (entry.who, entry.name) != step.key]
            now += [] if step.new is None else [ConfigEntry(step.who, step.name, step.new)]
    return tuple(there), plan_restore(now, restores, places, release).steps


def _deviation(windows: Sequence[Window]) -> Tuple[float, bool]:
    """Of one minute's difference between two groups of OSDs, in logarithms, and whether it was measured."""
    values = [window.means[MEASURED_METRIC] for window in windows if window.means.get(MEASURED_METRIC, 0.0) > 0.0]
    # minute to minute: the slow drift of the load is alike for the host and its controls
    falls = [math.log(after / before) for before, after in zip(values, values[1:])]
    if len(falls) < LEAST_MINUTES:
        return math.sqrt(2.0) * WINDOW_NOISE, False
    return max(math.sqrt(sum(fall**2 for fall in falls) / len(falls)), 0.01), True


def _notes(before: str, other: str) -> List[str]:
    notes = [
        "the minutes go by the noise of the whole cluster, and a host's own may be larger: where the interval of a "
        "change is twice as wide as wanted, measure four times as long",
        "a write is answered when its replicas have it, and these are on other hosts: of the difference in writes a "
        "host shows a part, of that in reads all of it",
        "a scrub goes at the pace of its slowest copy, as recovery does: of what the queue does to their rates a host "
        "shows next to nothing where other hosts have the other copies",
        f"{other} on one host beside {before} on others is not tested upstream; no data depend on the queue",
        "stop, and go back, where PGs become inactive, slow operations name an OSD of the host, or its p95 is twice "
        "that of the controls",
    ]
    if other == WPQ:
        notes.append(
            "under wpq an OSD goes by osd_max_backfills, osd_recovery_max_active*, osd_recovery_sleep*, "
            "osd_snap_trim_sleep* and osd_scrub_sleep as the database has them; mClock ignores these"
        )
        notes.append("the mClock values stay in the database, and count again after the way back")
    return notes
