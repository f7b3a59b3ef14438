"""A twin cluster behind the ports: a simulation that answers Ceph's own commands, with a clock of its own.

    cluster = twin_cluster(model, {"osd_mclock_profile": "balanced"})
    cluster.applier().apply(...)                          # as on a real cluster
    observe(ClusterSampler(cluster.commander, cluster.clock), cluster.clock, 60)

Time goes on only when somebody sleeps by the twin's clock; commands take none. Of two twins with the same model,
settings and seed, to whom the same happens, every answer is the same.
"""

from __future__ import annotations

import errno
import json
import threading
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.ceph.commands import CommandConfig, CommandStore
from ceph_tuner.core.changes.lock import Lock
from ceph_tuner.core.changes.lock_owner import may_live, this_process
from ceph_tuner.core.knobs.catalogue import KNOBS, MCLOCK_NINE, PROFILE
from ceph_tuner.core.knobs.releases import Settings, Value, format_version
from ceph_tuner.core.knobs.settings import format_settings
from ceph_tuner.core.profiles.translation import to_release_units
from ceph_tuner.twin.model import MCLOCK, ClusterModel
from ceph_tuner.twin.simulation import SimulatedCounters, Simulation
from twin_cluster.counters import added, histogram_dump, perf_dump
from twin_cluster.maps import TwinMap, facts_of, places_of
from twin_cluster.monitors import TwinMonitors, refusal
from twin_cluster.options import typed
from twin_cluster.osd import Key, TwinOsd

EPOCH = 1_767_225_600.0
"""The twin's time begins in 2026."""

LOOK_S = 1.0
"""The longest step of the simulation: so often PGs and stuck operations are looked at."""


class TwinCommander:
    """`ports.Commander` of a twin. `table` is its configuration database to begin with: (section, option) -> text."""

    def __init__(
        self,
        simulation: Simulation,
        table: Optional[Mapping[Key, str]] = None,
        epoch: float = EPOCH,
        lag_s: float = 0.0,
    ) -> None:
        model = simulation.model
        self.release, self.version = model.release, model.version or model.release.newest
        self._epoch, self._begun = epoch, 0.0
        self._simulation = simulation
        self._before: Optional[SimulatedCounters] = None
        self._using: Dict[int, Settings] = {}
        # the plugin sends its commands from a thread of its own
        self._one_at_a_time = threading.RLock()
        self.osds = [TwinOsd(place, self.release, self.version) for place in places_of(model)]
        facts = facts_of(model, self.release, self.version)
        self.monitors = TwinMonitors(
            self.osds, self.release, self.version, self._elapsed, self.now, {**facts, **(table or {})}, lag_s
        )
        self._map = TwinMap(self.osds, format_version(self.version), self.release.name.partition("-")[0], self.now)
        self._map.begin(simulation)
        self._monitor_commands = {**self.monitors.commands, **self._map.commands}
        self._use()

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        """Answer of a monitor command. Raises CommandFailed."""
        with self._one_at_a_time:
            command = self._monitor_commands.get(prefix)
            if command is None:
                raise refusal(prefix, errno.EINVAL, "command not known")
            try:
                answer = command(arguments, payload)
            except KeyError as missing:
                raise refusal(prefix, errno.EINVAL, f"missing required parameter {missing}") from missing
            self._settle()
            return answer

    def tell(self, daemon: str, prefix: str, arguments: Mapping[str, str]) -> str:
        """Answer of an OSD's command. Raises CommandFailed."""
        commands: Dict[str, Callable[[TwinOsd, Mapping[str, str]], Any]] = {
            "config show": lambda osd, arguments: osd.shown(),
            "config diff": lambda osd, arguments: {"diff": osd.differences()},
            "config get": self._tell_config_get,
            # its shards are one scheduler, and hold no tags that Ceph's dmClock would show
            "dump_op_pq_state": lambda osd, arguments: {},
            "dump_recovery_reservations": lambda osd, arguments: {},
            "perf dump": self._tell_perf,
            "perf histogram dump": self._tell_histogram,
            "query": self._tell_query,
        }
        with self._one_at_a_time:
            osd = self.monitors.osd(daemon, f"tell {daemon} {prefix}")
            if prefix not in commands:
                raise refusal(f"tell {daemon} {prefix}", errno.EINVAL, "No handler for command")
            return json.dumps(commands[prefix](osd, arguments))

    @property
    def simulation(self) -> Simulation:
        """The twin's model under way, which commands read and change."""
        return self._simulation

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._epoch + self._elapsed()

    def advance(self, seconds: float) -> None:
        """Let the twin's time go on."""
        with self._one_at_a_time:
            end = self._elapsed() + max(0.0, seconds)
            while True:
                due = self.monitors.next_delivery()
                step = min(end, end if due is None else due) - self._elapsed()
                if step > 0:
                    self._simulation.advance(min(step, LOOK_S))
                    self._map.follow()
                self._settle()
                if self._elapsed() >= end - 1e-9:
                    return

    def pass_over(self, seconds: float) -> None:
        """Let the clock go on alone: nothing happens on the cluster meanwhile."""
        with self._one_at_a_time:
            self._epoch += seconds

    def begin(self, simulation: Simulation) -> None:
        """Go on with another simulation of the same OSDs: other work. Counters and time go on, settings stay.

        Raises ValueError for other OSDs or another release.
        """
        model, now = simulation.model, self._simulation.model
        if (model.osds, model.osd, model.release, model.version) != (now.osds, now.osd, now.release, now.version):
            raise ValueError("another simulation must be of the same OSDs and release")
        with self._one_at_a_time:
            self._before, self._begun = self.counters(), self._elapsed() - simulation.now
            self._simulation = simulation
            self._using.clear()
            self._map.begin(simulation)
            self._use()

    def counters(self) -> SimulatedCounters:
        """What the OSDs counted since the twin's beginning."""
        return added(self._before, self._simulation.counters())

    def slow_operations(self) -> Dict[int, int]:
        """Operations that Ceph would call slow, by OSD."""
        return self._map.slow_operations()

    @property
    def requested_scrubs(self) -> List[Tuple[float, str]]:
        """Deep scrubs that were asked for: when (seconds since the epoch), and which PG."""
        return list(self._map.requested_scrubs)

    def deep_scrubbed(self, pgid: str, at: float) -> None:
        """Let the last deep scrub of a PG have ended then (seconds since the epoch)."""
        with self._one_at_a_time:
            self._map.pgs.deep_scrubbed(pgid, at)

    def restart(self, osd: int) -> None:
        """Restart an OSD: options read at the start take effect, its scheduler forgets what it had; counters go on."""
        with self._one_at_a_time:
            self.monitors.restart(self.osds[osd])
            self._use()

    def _elapsed(self) -> float:
        return self._begun + self._simulation.now

    def _settle(self) -> None:
        if self.monitors.deliver():
            self._use()

    def _use(self) -> None:
        """Give the simulation what each OSD works by now, where that has changed."""
        changes: Dict[Tuple[Tuple[str, Value], ...], List[int]] = {}
        for number, osd in enumerate(self.osds[: self._simulation.osds]):
            before, own = self._using.get(number, {}), osd.in_force()
            changed = tuple((name, value) for name, value in own.items() if before.get(name) != value)
            if changed:
                changes.setdefault(changed, []).append(number)
                self._using[number] = own
        for settings, numbers in changes.items():
            self._simulation.configure(dict(settings), numbers)

    # what OSDs are told

    def _tell_config_get(self, osd: TwinOsd, arguments: Mapping[str, str]) -> Dict[str, Any]:
        shown, name = osd.effective(), arguments.get("var", "")
        if name not in shown:
            raise refusal("config get", errno.ENOENT, f"error getting '{name}'")
        return {name: typed(KNOBS[name], shown[name], self.release)}

    def _tell_perf(self, osd: TwinOsd, arguments: Mapping[str, str]) -> Dict[str, Any]:
        model = self._simulation.model
        scrubbed = next(((work, model.pool(work.pool)) for work in model.scrub), None)
        document = perf_dump(
            self.counters(),
            osd.place.osd % self._simulation.osds,
            osd.hardware().shards,
            self.version,
            model.scheduler == MCLOCK,
            scrubbed,
        )
        return _logger(document, arguments)

    def _tell_histogram(self, osd: TwinOsd, arguments: Mapping[str, str]) -> Dict[str, Any]:
        return _logger(histogram_dump(self.counters(), osd.place.osd % self._simulation.osds), arguments)

    def _tell_query(self, osd: TwinOsd, arguments: Mapping[str, str]) -> Dict[str, Any]:
        for row in self._map.pgs.rows(self._simulation):
            if row["pgid"] == arguments.get("pgid") and row["acting_primary"] == osd.place.osd:
                return {"info": {"pgid": row["pgid"], "stats": row}, "snap_trimq_len": row["snaptrimq_len"]}
        raise refusal("query", errno.ENOENT, f"i don't have pgid {arguments.get('pgid')}")


class TwinClock:
    """`ports.Clock` of a twin: its simulation goes on while somebody sleeps."""

    def __init__(self, commander: TwinCommander) -> None:
        self._commander = commander

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._commander.now()

    def monotonic(self) -> float:
        """The same: nobody sets a twin's clock."""
        return self._commander.now()

    def sleep(self, seconds: float) -> None:
        """Let the simulation go on for so long."""
        self._commander.advance(seconds)


@dataclass(frozen=True)
class TwinCluster(Cluster):
    """A twin behind the ports, as a real cluster is."""

    def lock(self, who: str = "") -> Lock:
        """As on a real cluster, but renewed when it is looked at: a thread that does so has another clock."""
        return Lock(self.store, self.clock, this_process(who), may_live, heartbeat=False)

    @property
    def twin(self) -> TwinCommander:
        """The commander, with what only a twin can do."""
        assert isinstance(self.commander, TwinCommander)
        return self.commander


def twin_cluster(
    model: ClusterModel, settings: Optional[Mapping[str, Value]] = None, seed: int = 0, lag_s: float = 0.0
) -> TwinCluster:
    """Make a twin whose operator has written those settings to `osd`: a profile, or the nine values, and other knobs.

    Reservations and limits are fractions, whatever the release takes.
    """
    own: Settings = dict(settings or {})
    if any(name in own for name in MCLOCK_NINE):
        own[PROFILE] = "custom"
    texts = format_settings(to_release_units(own, model.release, model.osd.hardware), model.release)
    commander = TwinCommander(
        Simulation(model, own, seed), {("osd", name): text for name, text in texts.items()}, lag_s=lag_s
    )
    return TwinCluster(
        "twin",
        commander,
        CommandConfig(commander),
        CommandStore(commander),
        model.release,
        format_version(commander.version),
        clock=TwinClock(commander),
    )


def _logger(document: Dict[str, Any], arguments: Mapping[str, str]) -> Dict[str, Any]:
    """One section, or all."""
    logger = arguments.get("logger", "")
    return {name: section for name, section in document.items() if logger in ("", name)}
