"""Gathers a state: runs what the read commands run, over a commander that keeps the answers.

So a file has what these commands ask for, and what a later version asks for is a matter of that version's `gather`.
Nothing is written to the cluster.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Callable, Dict, List, Sequence, Set, Tuple

from ceph_tuner.cluster.config_log import last_change
from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.cluster.sampler import OSDS_MAX, ClusterSampler, deep_scrub_interval
from ceph_tuner.core.bounded import MISREAD
from ceph_tuner.core.ceph.commands import STORE_PREFIX, CommandConfig, CommandStore, osd_versions
from ceph_tuner.core.errors import ClusterTimeout, CommandFailed, PermissionRefused, TunerError
from ceph_tuner.core.measure.metrics import CLASS, Scope
from ceph_tuner.core.measure.osd_selection import spread
from ceph_tuner.core.measure.scopes import NO_CLASS
from ceph_tuner.core.why.cluster_facts import TwoLooks
from ceph_tuner.describe.osds import OsdsSeen
from ceph_tuner.describe.pools import PGS_MOST, pools_seen
from ceph_tuner.doctor import gather as gather_facts
from ceph_tuner.gather.kept_fields import without_secrets
from ceph_tuner.gather.recorder import WITHIN_S, Recorder
from ceph_tuner.gather.state import FIRST_SAMPLE, REFUSED, ClusterState

OSDS = 64
"""OSDs that say what their options are, evenly over their ids; beside them some of each device class."""
INTERVAL_S = 20.0
"""Between the two samples."""
SAMPLES = 2
_COUNTERS = ("perf dump", "perf histogram dump")

Report = Callable[[str, int, int], None]


def gather(
    cluster: Cluster,
    osds: int = OSDS,
    interval_s: float = INTERVAL_S,
    report: Report = lambda what, done, total: None,
) -> ClusterState:
    """Gather a cluster's state; `report` is told how far it is. Raises TunerError where nothing answers.

    What the cluster refuses, or does not answer in time, is kept as such, and told by `notes` of what is gathered.
    """
    return _StateReader(cluster, osds, interval_s, report).state()


class _StateReader:
    def __init__(self, cluster: Cluster, osds: int, interval_s: float, report: Report) -> None:
        self._live, self._osds, self._interval_s, self._report = cluster, osds, interval_s, report
        self._recorder = Recorder(cluster.commander, cluster.clock)
        self._cluster = replace(
            cluster,
            commander=self._recorder,
            config=CommandConfig(self._recorder),
            store=CommandStore(self._recorder),
        )

    def state(self) -> ClusterState:
        """All of it."""
        live, recorder = self._live, self._recorder
        at = live.clock.now()
        osd_versions(recorder)
        self._report("the store", 0, 1)
        self._ignore_faults(lambda: recorder.mon("config-key dump", {"key": STORE_PREFIX}))
        self._ignore_faults(lambda: recorder.mon("tuner auto explain", {}))
        up_osds = self._up_osds()
        sample = spread(up_osds, self._osds)
        self._ask("config show", sample)
        # it goes by the options that are there; after the doctor has looked at queues they are asked for again
        self._describe()
        self._ignore_faults(lambda: gather_facts(recorder, live.clock, live.release, live.version, self._report))
        # of objectives about a class or a pool, and of the dates of scrubs
        self._ignore_faults(lambda: recorder.mon("osd crush dump", {}))
        self._ignore_faults(lambda: deep_scrub_interval(recorder))
        if up_osds:
            self._look_twice(up_osds)
        if len(up_osds) > OSDS_MAX:
            recorder.notes.append(
                f"{len(up_osds)} OSDs are not sampled (at most {OSDS_MAX}): `watch` has no rates, and `twin describe` "
                "goes by the plugin's windows, or by what the monitors reckon"
            )
        if not any(answer.command == "pg ls" for answer in recorder.answers):
            recorder.notes.append(f"the PGs are not listed (at most {PGS_MOST}): `scrub plan` needs the cluster itself")
        answerers = {
            int(answer.key[0].partition(".")[2])
            for answer in recorder.answers
            if answer.key[0] and answer.command == "config show" and answer.fault is None
        }
        if len(answerers) < len(up_osds):
            recorder.notes.append(f"{len(answerers)} of {len(up_osds)} OSDs said what they have")
        return ClusterState(
            live.name,
            live.version,
            at,
            tuple(recorder.answers),
            osds=len(up_osds),
            asked=tuple(sorted(answerers)),
            notes=tuple(map(without_secrets, (*recorder.notes, *_without_answer(recorder)))),
        )

    def _up_osds(self) -> List[int]:
        places: List[int] = []
        with suppress(CommandFailed, ClusterTimeout, PermissionRefused):
            places = [place.osd for place in self._cluster.config.places() if place.up]
        return places

    def _ask(self, command: str, osds: Sequence[int]) -> None:
        """Ask OSDs, many at a time; who has answered is not asked again within the look."""
        daemons = [f"osd.{osd}" for osd in osds]
        with suppress(PermissionRefused, ClusterTimeout):
            for done, _ in enumerate(self._recorder.tell_each(daemons, command, {}, WITHIN_S)):
                self._report(f"{command} of the OSDs", done, len(daemons))

    def _describe(self) -> None:
        """What a description asks for, of all OSDs and of each device class."""
        self._report("pools and device classes", 0, 1)
        self._ignore_faults(lambda: pools_seen(self._recorder))
        last_change(self._cluster, [])
        # of fewer PGs these are not asked for
        self._ignore_faults(lambda: self._recorder.mon("df", {"detail": "detail"}))
        classes = {""}
        with suppress(TunerError):
            classes |= {place.device_class for place in self._cluster.config.places()}
        for name in sorted(classes):
            target = f"osd/class:{name}" if name else "osd"
            self._ignore_faults(lambda target=target: OsdsSeen(self._cluster, target, []).model())  # type: ignore[misc]

    def _look_twice(self, up_osds: Sequence[int]) -> None:
        """Two looks: samples of all OSDs where these are few, and what `why` asks of some."""
        clock = self._live.clock
        sampler = self._sampler() if len(up_osds) <= OSDS_MAX else None
        looks = TwoLooks(self._recorder, clock, self._report)
        for number in range(SAMPLES):
            began = clock.monotonic()
            self._recorder.begin(FIRST_SAMPLE + number)
            if sampler is not None:
                for command in _COUNTERS:
                    self._ask(command, up_osds)
                self._ignore_faults(sampler.sample)
            self._ignore_faults(lambda: self._recorder.mon("osd pool stats", {}))
            self._ignore_faults(looks.look)
            if number + 1 < SAMPLES:
                self._report(f"waiting {self._interval_s:g} s for the second sample", 0, 1)
                clock.sleep(max(0.0, self._interval_s - (clock.monotonic() - began)))

    def _sampler(self) -> ClusterSampler:
        """Of device classes as well: what their objectives need is asked for each time."""
        classes = {place.device_class or NO_CLASS for place in self._cluster.config.places()}
        scopes = tuple(Scope(CLASS, name) for name in sorted(classes))
        return ClusterSampler(self._recorder, self._live.clock, scopes)

    def _ignore_faults(self, ask: Callable[[], object]) -> None:
        """What fails is recorded as such, command by command."""
        with suppress(TunerError, *MISREAD):
            ask()


def _without_answer(recorder: Recorder) -> List[str]:
    """In words, which commands had no answer; of OSDs those alike together."""
    daemons_by_fault: Dict[Tuple[str, str, str], Set[str]] = {}
    for answer in recorder.answers:
        if answer.fault is not None:
            kind = "refused" if answer.fault.kind == REFUSED else "no answer"
            words = answer.fault.words.strip() or "no message"
            command = f"ceph tell osd.N {answer.command}" if answer.key[0] else answer.shown
            daemons_by_fault.setdefault((command, kind, words), set()).add(answer.key[0])
    notes = []
    for (command, kind, words), daemons in daemons_by_fault.items():
        count = f" ({len(daemons)} OSD{'s' * (len(daemons) != 1)})" if daemons != {""} else ""
        notes.append(f"`{command}`{count}: {kind} ({words})")
    return notes
