"""Looks twice at a cluster by commands that change nothing. What does not answer becomes a note."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import (
    Any,
    Callable,
    Dict,
    FrozenSet,
    List,
    Mapping,
    Optional,
    Set,
    Tuple,
    TypeVar,
)

from ceph_tuner.core.bounded import MISREAD
from ceph_tuner.core.ceph.commands import CommandStore, option_number, shaped
from ceph_tuner.core.ceph.ports import Clock, Commander
from ceph_tuner.core.ceph.questions import Questions, Report
from ceph_tuner.core.ceph.target import Place
from ceph_tuner.core.changes.journal import Journal
from ceph_tuner.core.checks import COUNTERS, OPTIONS, OSD_MAP, PGS, QUEUES, STEADY
from ceph_tuner.core.errors import ClusterTimeout, CommandFailed, PermissionRefused
from ceph_tuner.core.measure.osd_selection import spread
from ceph_tuner.core.measure.pg_documents import DEEP, SHALLOW, flags_of, overdue_pgs, pg_rows
from ceph_tuner.core.measure.queue_dump import QueuedClass, queued, served
from ceph_tuner.core.measure.stale_shards import ShardLook, read_again, seems_stale, settled, unsettled, unsettled_note
from ceph_tuner.core.profiles.in_force import kind_of
from ceph_tuner.core.why.answers import (
    REMOVING,
    Queues,
    both_slots,
    major_of,
    mapping_of,
    pg_now,
    placed,
    pool_now,
    rising_counters,
    states_of,
)
from ceph_tuner.core.why.facts import SLOTS, OsdNow, PgNow, Slots, WhyFacts

OSDS_MOST = 64
"""OSDs that are asked themselves: those whose PGs have work first, then evenly over their ids."""
OF_EACH_CLASS = 4
"""At least so many are asked of each device class."""
PGS_MOST = 20_000
"""PGs that are listed one by one."""

USUAL_S = 7 * 86_400.0
"""Ceph's interval of both kinds of scrub, where nobody says another."""

_DUMPS = 3
"""Dumps of the queues at each look."""
_CLEAN = frozenset(("active", "clean"))

ListPgs = Callable[[], List[Mapping[str, Any]]]
_T = TypeVar("_T")


def gather(
    commander: Commander,
    clock: Clock,
    seconds: float,
    report: Optional[Report] = None,
    osds_most: int = OSDS_MOST,
    pgs_most: int = PGS_MOST,
    list_pgs: Optional[ListPgs] = None,
) -> WhyFacts:
    """Look, wait, look again. `list_pgs`: who does so in the place of `pg ls`, which is the mgr's own command.

    Raises TunerError where nobody tells which OSDs there are.
    """
    looks = TwoLooks(commander, clock, report, osds_most, pgs_most, list_pgs)
    looks.look()
    looks.wait(seconds)
    looks.look()
    return looks.facts()


class TwoLooks:
    """The two looks, for who waits in between by himself."""

    def __init__(
        self,
        commander: Commander,
        clock: Clock,
        report: Optional[Report] = None,
        osds_most: int = OSDS_MOST,
        pgs_most: int = PGS_MOST,
        list_pgs: Optional[ListPgs] = None,
    ) -> None:
        """Ask nothing yet."""
        self._ask = Questions(commander, clock, report)
        self._list_pgs = list_pgs or (lambda: pg_rows(self._ask.mon("pg ls")))
        self._osds_most, self._pgs_most = osds_most, pgs_most
        self._places: List[Place] = []
        self._osds: Tuple[int, ...] = ()
        self._kinds: Dict[int, str] = {}
        self._majors: Dict[int, int] = {}
        self._options: Dict[int, Dict[str, str]] = {}
        self._counters: List[Dict[int, Tuple[float, Dict[str, float]]]] = []
        self._dumps: Dict[int, List[Tuple[float, Queues]]] = {}
        self._shard_looks: Dict[int, ShardLook] = {}
        """By OSD, where both its queues and its options were seen."""
        self._at = 0.0
        self._intervals: Dict[str, float] = {}
        """Option -> seconds, by the monitors."""
        self._reservations: Dict[int, Tuple[Slots, Slots]] = {}
        self._rows: List[List[Mapping[str, Any]]] = []
        self._osd_map: Mapping[str, Any] = {}

    def wait(self, seconds: float) -> None:
        """Let time pass between the looks."""
        self._ask.report(f"waiting {seconds:g} s for the second look", 0, 1)
        self._ask.clock.sleep(seconds)

    def look(self) -> None:
        """Look at everything. Raises TunerError where nobody tells which OSDs there are, or an answer is nonsense."""
        with shaped("an answer"):
            self._look()

    def _look(self) -> None:
        # what the last look lacks counts
        self._ask.unseen.clear()
        self._ask.report("the maps", 0, 1)
        if not self._places:
            self._places = [place for place in self._ask.config.places() if place.up]
        self._osd_map = self._ask.or_note(OSD_MAP, lambda: self._ask.mon("osd dump"), {})
        self._rows.append(self._pgs())
        if not self._osds:
            self._osds = self._sample()
            rows: List[Any] = self._ask.or_note("what the OSDs are", lambda: self._ask.mon("osd metadata"), [])
            rows_by_osd = {int(row["id"]): row for row in rows}
            self._kinds = {
                place.osd: kind_of(rows_by_osd.get(place.osd, {}), place.device_class) for place in self._places
            }
            self._majors = {osd: major_of(row) for osd, row in rows_by_osd.items()}
            self._options = self._ask.each("config show", self._osds, self._ask.config.effective_on)
            if not self._options:
                self._intervals = {kind.option: self._by_monitors(kind.option) for kind in (DEEP, SHALLOW)}
        for number in range(_DUMPS):
            for osd, dump in self._answers_at("dump_op_pq_state", Queues.read).items():
                self._dumps.setdefault(osd, []).append(dump)
            # other questions lie between the dumps
            if number == 0:
                self._counters.append(self._answers_at("perf dump", rising_counters))
            if number == 1:
                reservations = self._answers_at("dump_recovery_reservations", both_slots)
                self._reservations = {osd: own for osd, (_, own) in reservations.items()}
        self._at = self._ask.clock.now()
        if len(self._rows) > 1:
            self._look_at_shards()

    def _look_at_shards(self) -> None:
        """What they served meanwhile; where they seem stale, the OSDs' options are read again."""
        looks = {
            osd: ShardLook(served(dumps[0][1].tags, dumps[-1][1].tags, dumps[0][0]), self._options[osd])
            for osd, dumps in self._dumps.items()
            if osd in self._options
        }
        dumped = {osd: dumps[-1][0] for osd, dumps in self._dumps.items()}

        def options(suspects: List[int]) -> Dict[int, Tuple[float, Dict[str, str]]]:
            return self._ask.each_at("config show", suspects, self._ask.config.effective_on)

        self._shard_looks = read_again(looks, dumped, options)

    def _mclock_on_trial(self) -> bool:
        """Whether the journal says so; with a key that may not read it, the options decide alone."""
        try:
            return Journal(CommandStore(self._ask.commander)).read().mclock_on_trial()
        except (ClusterTimeout, CommandFailed, PermissionRefused, *MISREAD):
            return False

    def facts(self) -> WhyFacts:
        """What both looks show. Raises CommandFailed where an answer is nonsense."""
        with shaped("an answer"):
            return self._facts()

    def _facts(self) -> WhyFacts:
        rows = self._rows[-1] if self._rows else []
        now = self._at
        looks = self._shard_looks
        on_trial = any(map(seems_stale, looks.values())) and self._mclock_on_trial()
        doubts = unsettled(looks, on_trial)
        if doubts:
            self._ask.note(unsettled_note(doubts, looks, on_trial))
        by_pgid = {str(row["pgid"]): row for row in self._rows[0]} if self._rows else {}
        pgs = tuple(pg_now(row, by_pgid.get(str(row["pgid"]), row)) for row in rows)
        pgs = self._late(pgs, rows, now)
        pools = {int(row["pool"]): pool_now(row) for row in self._osd_map.get("pools", [])}
        osds = tuple(
            self._osd(place, looks.get(place.osd), doubts.get(place.osd, frozenset()))
            for place in self._places
            if place.osd in self._osds
        )
        seen = {
            OPTIONS: bool(self._options),
            COUNTERS: any(osd.seconds > 0 for osd in osds),
            QUEUES: bool(self._dumps),
            SLOTS: bool(self._reservations),
            STEADY: not doubts,
        }
        return WhyFacts(
            now,
            osds,
            pgs,
            placed(pools, pgs, {place.osd: place.device_class for place in self._places}),
            flags_of(self._osd_map.get("flags", "")),
            self._ask.notes,
            frozenset((*self._ask.unseen, *(part for part, there in seen.items() if not there))),
        )

    def _osd(self, place: Place, look: Optional[ShardLook], doubts: FrozenSet[str]) -> OsdNow:
        number = place.osd
        kind, major = self._kinds.get(number, "ssd"), self._majors.get(number, 0)
        osd = OsdNow(place, kind, major, self._options.get(number, {}))
        looks = [counters[number] for counters in self._counters if number in counters]
        if len(looks) > 1:
            (first_at, before), (last_at, after) = looks[0], looks[-1]
            osd = replace(osd, removing=int(after.get(REMOVING, 0)))
            rises = {name: value - before[name] for name, value in after.items() if name in before and name != REMOVING}
            # a counter that fell is one of an OSD that started anew
            if last_at > first_at and min(rises.values(), default=0.0) >= 0:
                osd = replace(osd, seconds=last_at - first_at, rises=rises)
        dumps = self._dumps.get(number, [])
        if dumps:
            queues: Tuple[Tuple[QueuedClass, ...], ...] = tuple(queued(own.tags, at) for at, own in dumps)
            strict = tuple(own.strict for _, own in dumps)
            osd = replace(osd, queues=queues, strict=strict, served=settled(look.served, doubts) if look else ())
        local, remote = self._reservations.get(number, (Slots(), Slots()))
        return replace(osd, local=local, remote=remote)

    def _sample(self) -> Tuple[int, ...]:
        up_osds = {place.osd for place in self._places}
        busy: Dict[int, None] = {}
        for row in self._rows[-1]:
            if not states_of(row) >= _CLEAN or "snaptrim" in str(row["state"]) or "scrubbing" in str(row["state"]):
                busy.update(dict.fromkeys(osd for osd in (*row["acting"], *row["up"]) if osd in up_osds))
        most = self._osds_most
        sample = set(spread(busy, most // 2 if len(up_osds) > most else most))
        others = spread(up_osds - sample, most - len(sample))
        few = self._of_small_classes(sample.union(others))[: len(others)]
        sample |= {*few, *spread(others, max(0, len(others) - len(few)))}
        if len(sample) < len(up_osds):
            self._ask.note(f"{len(sample)} of {len(up_osds)} OSDs were asked: of those with work first")
        return tuple(sorted(sample))

    def _of_small_classes(self, sample: Set[int]) -> List[int]:
        """OSDs of device classes that evenly over the ids are left out: a class of few OSDs has pools of its own."""
        few: List[int] = []
        for name in sorted({place.device_class for place in self._places}):
            own = {place.osd for place in self._places if place.device_class == name}
            few += spread(own - sample, max(0, OF_EACH_CLASS - len(own & sample)))
        return few

    def _late(self, pgs: Tuple[PgNow, ...], rows: List[Mapping[str, Any]], now: float) -> Tuple[PgNow, ...]:
        """Those of the PGs whose scrubs are past their date."""
        deep, shallow = (
            overdue_pgs(rows, now, kind, self._interval(kind.option), self._osd_map) for kind in (DEEP, SHALLOW)
        )
        return tuple(replace(pg, deep_late=pg.pgid in deep, scrub_late=pg.pgid in shallow) for pg in pgs)

    def _interval(self, option: str) -> float:
        values = [float(options[option]) for options in self._options.values() if option in options]
        return max(values, default=self._intervals.get(option, USUAL_S))

    def _by_monitors(self, option: str) -> float:
        """What the monitors say of an interval that no OSD was asked for."""
        return self._ask.or_note(option, lambda: option_number(self._ask.commander, "osd", option), USUAL_S)

    def _pgs(self) -> List[Mapping[str, Any]]:
        status: Mapping[str, Any] = self._ask.or_note(
            "the state of the PGs", lambda: self._ask.mon("status")["pgmap"], {}
        )
        count = int(status.get("num_pgs", 0))
        if count > self._pgs_most:
            self._ask.note(f"{count} PGs are not listed one by one (at most {self._pgs_most})")
            self._ask.unseen.add(PGS)
            return []
        return self._ask.or_note(PGS, self._list_pgs, [])

    def _answers_at(self, prefix: str, meaning: Callable[[Mapping[str, Any]], _T]) -> Dict[int, Tuple[float, _T]]:
        """OSD -> when it answered, and what that means. What one says that has no meaning is its fault alone."""

        def read(text: str) -> _T:
            with shaped(prefix):
                return meaning(mapping_of(text, prefix))

        return self._ask.each_at(prefix, self._osds, partial(self._ask.config.each, prefix=prefix, read=read))
