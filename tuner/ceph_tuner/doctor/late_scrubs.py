"""Scrubs that are late now: how many PGs, how long a round over all of them takes, and what keeps them from beginning.

`scrub.py` judges what the settings permit; this judges the backlog that is there. The same rules say in `ceph-tuner
why` what holds a scrub (`core/knobs/scrub_slots.py`, `scrub_hours.py`).
"""

from __future__ import annotations

from shlex import quote
from typing import Callable, Dict, FrozenSet, List, NamedTuple, Optional, Sequence, Tuple

from ceph_tuner.core.knobs.scrub_hours import bounding_options, bounds_of, may_begin
from ceph_tuner.core.knobs.scrub_slots import (
    COUNTED_APART,
    RECOVERING,
    SCRUBS_DEFAULT,
    ScrubSlots,
    forbidding_flag,
    scrub_slots_of,
)
from ceph_tuner.core.measure.pg_documents import DEEP, STAMP_AHEAD_S
from ceph_tuner.core.moments import duration
from ceph_tuner.core.wording import first_of, named
from ceph_tuner.doctor.facts import Facts, OsdFacts, PgFacts
from ceph_tuner.doctor.finding import MISLEADING, Finding
from ceph_tuner.doctor.scrub import permitted_share, seconds_seen

_SLOTS, _HOURS = "osd_max_scrubs", "the permitted hours"
_LOAD = "osd_scrub_load_threshold"


class _Hold(NamedTuple):
    """One thing that keeps scrubs of late PGs from beginning."""

    name: str
    words: str
    commands: Tuple[str, ...]
    pgs: List[PgFacts]


def late_scrubs(facts: Facts) -> List[Finding]:
    """PGs whose scrubs are past their date by a tenth of the interval."""
    late = [pg for pg in facts.pgs if pg.late]
    if not late:
        return []
    under_way = [pg for pg in late if "scrubbing" in pg.states]
    holds, others = _holds(facts, [pg for pg in late if pg not in under_way])
    # what holds PGs of OSDs that were not asked cannot be seen
    osds = {osd.place.osd for osd in facts.with_options}
    rest = [pg for pg in others if osds.intersection(pg.acting)]
    first = holds[0].name if holds and len(holds[0].pgs) >= len(rest) else ""
    held = f"held by {first}" if first else "nothing that shows holds them" if rest else "what holds them was not seen"
    if not holds and not others:
        held = "all of them are scrubbed now"
    pace = _pace(facts, first)
    count, deep = len(late), sum(pg.deep_late for pg in late)
    evidence = [
        f"{count} of {len(facts.pgs)} PGs: {deep} wait for a deep scrub, {count - deep} for a shallow one; "
        f"{len(under_way)} under way: {first_of((pg.pgid for pg in late), 3)}",
        *(f"{hold.words}; {len(hold.pgs)} late PGs wait for that" for hold in holds),
        *([f"{len(rest)} late PGs wait, and nothing that shows holds them{_load(facts)}"] if rest else []),
        *([f"{len(others) - len(rest)} late PGs wait on OSDs that were not asked"] if len(others) > len(rest) else []),
        *pace.evidence,
    ]
    commands = [command for hold in holds for command in hold.commands]
    if rest and not first:
        commands.append(f"ceph config set osd {_LOAD} LOAD")
    return [
        Finding(
            "late-scrubs",
            MISLEADING,
            f"{count} {'PG is' if count == 1 else 'PGs are'} late; {pace.words}; {held}",
            tuple(evidence),
            f"{count / len(facts.pgs):.0%} of the PGs are past their date: an objective on the interval is missed, and "
            "damage to copies stays unseen for longer",
            "Take away what holds them, within what clients bear. `ceph-tuner scrub plan` says when all are done.",
            share=count / len(facts.pgs),
            commands=tuple(dict.fromkeys(commands)),
        )
    ]


def _holds(facts: Facts, waiting: Sequence[PgFacts]) -> Tuple[List[_Hold], List[PgFacts]]:
    """What holds these PGs, who holds most first, and those that nothing holds that shows. A PG counts once."""
    osds = {osd.place.osd: osd for osd in facts.with_options}
    recovering = frozenset(osd for pg in facts.pgs if pg.states & RECOVERING for osd in pg.acting)
    slots = _slots(facts, osds)
    rules: Tuple[Callable[[PgFacts], Optional[Tuple[str, str, Tuple[str, ...]]]], ...] = (
        lambda pg: _flag(facts, pg),
        lambda pg: _stamp(facts, pg),
        lambda pg: _hours(osds, pg, facts.at),
        lambda pg: _recovery(osds, pg, recovering),
        lambda pg: _full(osds, slots, pg),
    )
    holds: Dict[Tuple[str, str, Tuple[str, ...]], List[PgFacts]] = {}
    rest = []
    for pg in waiting:
        hold = next((hold for rule in rules if (hold := rule(pg)) is not None), None)
        if hold is None:
            rest.append(pg)
        else:
            holds.setdefault(hold, []).append(pg)
    entries = [_Hold(*hold, pgs) for hold, pgs in holds.items()]
    return sorted(entries, key=lambda entry: -len(entry.pgs)), rest


def _flag(facts: Facts, pg: PgFacts) -> Optional[Tuple[str, str, Tuple[str, ...]]]:
    flag = forbidding_flag(pg.deep_late)
    if flag in facts.flags:
        return f"the flag {flag}", f"the flag {flag} is set", (f"ceph osd unset {flag}",)
    pool = next((pool for pool in facts.pools if pool.number == pg.pool), None)
    if pool is not None and flag in pool.flags:
        command = f"ceph osd pool set {quote(pool.name)} {flag} 0"
        return f"the flag {flag}", f"the pool {pool.name} has the flag {flag}", (command,)
    return None


def _stamp(facts: Facts, pg: PgFacts) -> Optional[Tuple[str, str, Tuple[str, ...]]]:
    if pg.deep_scrubbed_at <= facts.at + STAMP_AHEAD_S:
        return None
    words = "the last deep scrub is in the future by a clock that was ahead, and Ceph begins none before"
    return "a stamp in the future", words, ("ceph pg deep-scrub PGID",)


def _hours(osds: Dict[int, OsdFacts], pg: PgFacts, at: float) -> Optional[Tuple[str, str, Tuple[str, ...]]]:
    primary = osds.get(pg.acting[0]) if pg.acting else None
    if primary is None:
        return None
    days, hours = bounds_of(primary.options)
    if may_begin(days, hours, at):
        return None
    words = f"scrubs begin from {hours[0]} to {hours[1]} h on days {days[0]} to {days[1]} alone (0 is Sunday)"
    commands = tuple(f"ceph config rm osd {name}" for name in bounding_options(days, hours))
    return _HOURS, f"{words}, which is not now by UTC", commands


def _recovery(
    osds: Dict[int, OsdFacts], pg: PgFacts, recovering: FrozenSet[int]
) -> Optional[Tuple[str, str, Tuple[str, ...]]]:
    name = "osd_scrub_during_recovery"
    if not any(osds[osd].options.get(name) == "false" for osd in recovering.intersection(pg.acting, osds)):
        return None
    return "recovery", f"OSDs recover, and {name} is false", (f"ceph config set osd {name} true",)


def _full(osds: Dict[int, OsdFacts], slots: ScrubSlots, pg: PgFacts) -> Optional[Tuple[str, str, Tuple[str, ...]]]:
    full = slots.hold(pg.acting)
    if not full:
        return None
    most = min(_most(osds[osd]) for osd in full)
    return (
        "osd_max_scrubs",
        f"osd_max_scrubs is {most}, and OSDs have none left",
        (f"ceph config set osd osd_max_scrubs {most + 1}",),
    )


def _slots(facts: Facts, osds: Dict[int, OsdFacts]) -> ScrubSlots:
    apart = set(osds) if facts.version[0] >= COUNTED_APART else set()
    under_way = [pg.acting for pg in facts.pgs if "scrubbing" in pg.states]
    return scrub_slots_of({number: _most(osd) for number, osd in osds.items()}, apart, under_way)


def _most(osd: OsdFacts) -> int:
    return int(osd.number("osd_max_scrubs", SCRUBS_DEFAULT))


class _Pace(NamedTuple):
    """How long a round over all PGs takes, in words, and by what."""

    words: str
    evidence: Tuple[str, ...] = ()


def _pace(facts: Facts, hold: str) -> _Pace:
    """By what was measured just now. Else, where all permitted slots are taken, as long as the last scrubs took.

    Else by what was done of late.
    """
    if forbidding_flag(True) in facts.flags:
        return _Pace("no deep scrub begins")
    if facts.scrub_round_s is not None:
        words = f"all data takes {duration(facts.scrub_round_s)} at the rate of the last minute"
        return _Pace(f"at this pace a round takes {duration(facts.scrub_round_s)}", (words,))
    permitted, seen = _permitted_round(facts), _seen_round(facts)
    pace = (permitted or seen) if hold in (_SLOTS, _HOURS) else (seen or permitted)
    return pace or _Pace("how long a round takes is not known")


def _permitted_round(facts: Facts) -> Optional[_Pace]:
    """By the slowest OSD; None where no last deep scrub tells."""
    rounds = [
        (seconds / permitted_share(osd), osd.place.osd)
        for osd in facts.with_options
        if (seconds := seconds_seen([pg for pg in facts.pgs if osd.place.osd in pg.acting], osd)) is not None
    ]
    if not rounds:
        return None
    seconds, osd = max(rounds)
    words = f"osd.{osd} takes {duration(seconds)} for a round, if its PGs take as long as at their last deep scrubs"
    return _Pace(f"at this pace a round takes {duration(seconds)}", (words,))


def _seen_round(facts: Facts) -> Optional[_Pace]:
    """By how many PGs of the pools that are behind were deep-scrubbed within their interval; None where none was."""
    usual = max((osd.number(DEEP.option) for osd in facts.with_options), default=0.0)
    own = {pool.number: pool.deep_scrub_interval for pool in facts.pools if pool.deep_scrub_interval > 0}
    behind = {pg.pool for pg in facts.pgs if pg.deep_late}
    pgs = [(pg, own.get(pg.pool, usual)) for pg in facts.pgs if pg.pool in behind]
    latest = facts.at + STAMP_AHEAD_S
    recent = [every for pg, every in pgs if every > 0 and facts.at - every < pg.deep_scrubbed_at <= latest]
    if not recent:
        return None
    names = first_of((pool.name for pool in facts.pools if pool.number in behind), 3)
    words = f"{len(recent)} of {len(pgs)} PGs of {names} were deep-scrubbed within their interval"
    return _Pace(f"at this pace a round takes {duration(len(pgs) / sum(1 / every for every in recent))}", (words,))


def _load(facts: Facts) -> str:
    """What may hold them all the same, in words."""
    groups: Dict[str, List[int]] = {}
    for osd in facts.with_options:
        if _LOAD in osd.options:
            groups.setdefault(f"{osd.number(_LOAD):g}", []).append(osd.place.osd)
    parts = [f"{value} on {named(osds)}" if len(groups) > 1 else value for value, osds in groups.items()]
    return f"; a host with more load for each CPU than {_LOAD} ({', '.join(parts)}) begins none" if parts else ""
