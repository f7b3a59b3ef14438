"""Settings that are not what they seem: ignored, outranked, asleep, incomplete or overbooked."""

from __future__ import annotations

from collections import Counter
from typing import Dict, Iterable, List, Optional, Set, Tuple

from ceph_tuner.core.ceph.ports import ConfigEntry
from ceph_tuner.core.ceph.target import Place, covered, section_of
from ceph_tuner.core.changes.config_database import winner
from ceph_tuner.core.changes.step import Step
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.catalogue import KNOBS, MCLOCK_NINE, NEVER_SET, PROFILE, Knob, unmet_needs
from ceph_tuner.core.knobs.releases import Release, Settings
from ceph_tuner.core.knobs.settings import reservation_sum, same_value, settings_in_force
from ceph_tuner.core.wording import named, some
from ceph_tuner.doctor.facts import ENTRIES, Facts, OsdFacts, grouped
from ceph_tuner.doctor.finding import COSTLY, MISLEADING, POINTLESS, Finding

_AS_DEVICES_ARE = ("capacity", "device", *NEVER_SET)
"""Kinds that an OSD or a host may well have of its own: facts of its device, and what the operator alone sets."""
"""Kinds of knobs that belong at single OSDs: an entry there is no leftover."""
_SCHEDULING = frozenset((PROFILE, *MCLOCK_NINE))
_OWN = ("file", "env", "cmdline")
_QUEUE = "osd_op_queue"
_ROUNDING = 1e-6


def ignored(facts: Facts) -> List[Finding]:
    """Knobs that are set, and that this release does not honour under mClock."""
    mclock = [osd for osd in facts.looked_at if osd.queue == "mclock_scheduler"]
    elsewhere = _under_another_queue(facts)
    evidence: Dict[str, Knob] = {}
    commands = []
    is_used_elsewhere = False
    for entry in facts.entries:
        knob = KNOBS.get(entry.name)
        # most entries of a large cluster are capacities, each at its OSD
        if knob is None or not _doubtful(facts, knob):
            continue
        osd_ids = set(covered(entry.who, [osd.place for osd in mclock]))
        reach = [osd for osd in mclock if osd.place.osd in osd_ids]
        why = _in_vain(facts, knob, reach) if reach else None
        if why:
            others = covered(entry.who, elsewhere)
            beside = f"; {named(others)}, under another queue, may go by it" if others else ""
            evidence[f"{entry.who} {entry.name} {entry.value}: {why}{beside}"] = knob
            if others:
                is_used_elsewhere = True
            else:
                commands.append(Step(entry.who, entry.name, entry.value, None).command)
    own = [
        (f"{name} {osd.sources[name][source]} ({source}): {why}", osd.place.osd)
        for osd in mclock
        for name in osd.sources
        for source in _OWN
        if source in osd.sources[name] and name in KNOBS and (why := _in_vain(facts, KNOBS[name], [osd]))
    ]
    for words, osds in grouped(own).items():
        evidence[f"{named(osds)}: {words}"] = KNOBS[words.split()[0]]
    if not evidence:
        return []
    instead = dict.fromkeys(name for knob in evidence.values() for name in _instead(facts, knob))
    cure = "Remove them" + (", but not what an OSD under another queue goes by." if is_used_elsewhere else ".")
    return [
        Finding(
            "ignored-knobs",
            MISLEADING,
            f"Settings that do nothing on {facts.release.title}: {len(evidence)}",
            some(evidence),
            "nothing by themselves; what they were set for is not done, and whoever reads them is misled",
            f"{cure} What does their job: {', '.join(instead)}." if instead else cure,
            commands=tuple(commands),
        )
    ]


def leftovers(facts: Facts) -> List[Finding]:
    """Entries at hosts, racks or single OSDs that outrank what is set for the OSDs above them."""
    evidence, commands = [], []
    osds: Set[int] = set()
    osds_of_scheduling: Set[int] = set()
    for entry in facts.entries:
        target = section_of(entry.who)
        knob = KNOBS.get(entry.name)
        if target is None or knob is None or knob.work in _AS_DEVICES_ARE or (entry.who, entry.name) in facts.on_trial:
            continue
        if not target.location_type and not target.section.startswith("osd."):
            # what is meant for a device class stays
            continue
        reach = covered(entry.who, facts.places)
        osd_ids = set(reach)
        others = [other for other in facts.entries if other.name == entry.name and other is not entry]
        below = {
            decides.value: decides.who
            for place in facts.places
            if place.osd in osd_ids and (decides := winner(others, entry.name, place)) and decides.who != entry.who
        }
        if any(same_value(value, entry.value) for value in below):
            continue
        over = f" over {', '.join(f'{value} of {who}' for value, who in below.items())}" if below else ""
        where = named(reach) if reach else "no running OSD now"
        evidence.append(f"{entry.who} {entry.name} {entry.value}{over}: {where}")
        osds.update(reach)
        osds_of_scheduling.update(reach if entry.name in _SCHEDULING else ())
        commands.append(Step(entry.who, entry.name, entry.value, None).command)
    if not evidence:
        return []
    total = len([place for place in facts.places if place.up])
    share = len(osds) / total if total else 0.0
    return [
        Finding(
            "leftovers",
            POINTLESS if total and len(osds_of_scheduling) == total else MISLEADING,
            "Entries at hosts or single OSDs outrank what is set for all OSDs",
            some(evidence),
            f"a profile written to `osd` does not reach {len(osds)} of {total} OSDs in full",
            "Remove what nobody wants any more. The nine values go before the profile, while that is still custom "
            "(`ceph-tuner rollback` keeps that order for its own).",
            share=share,
            commands=tuple(sorted(commands, key=lambda command: command.endswith(PROFILE))),
        )
    ]


def asleep(facts: Facts) -> List[Finding]:
    """Some of the nine values set where a built-in profile is in force, or not all nine under custom."""
    if ENTRIES in facts.unseen:
        # what nobody showed is not what nobody set
        return []
    findings = []
    idle, incomplete = [], []
    # most entries of a large cluster are capacities, each at its OSD
    entries = [entry for entry in facts.entries if entry.name in _SCHEDULING]
    permanent = [entry for entry in entries if (entry.who, entry.name) not in facts.on_trial]
    for osd in facts.osds:
        profile = _profile(facts.release, entries, osd)
        present = [name for name in MCLOCK_NINE if _set(entries, osd, name)]
        asleep_here = [name for name in present if _set(permanent, osd, name)]
        if profile != "custom" and asleep_here:
            idle.append((f"{len(asleep_here)} of the nine values are set under {profile}", osd.place.osd))
        if profile == "custom" and len(MCLOCK_NINE) - len(present) > 0:
            incomplete.append((_absent([name for name in MCLOCK_NINE if name not in present]), osd.place.osd))
    if idle:
        vain, in_use = _of_no_use(facts, entries, permanent, {osd for _, osd in idle})
        findings.append(
            Finding(
                "nine-under-built-in",
                MISLEADING,
                "mClock values are set while a built-in profile is in force",
                (*some(f"{named(osds)}: {words}" for words, osds in grouped(idle).items()), *some(in_use)),
                "an OSD that started with them, or whose profile was written since, goes by them, another by its "
                "profile, and both say the former; ceph-tuner changes no profile there, as it could not take that back",
                "Remove them, then set the profile to custom and back: until then an OSD goes on as it did. "
                "Or set it to custom with all nine." + (" What OSDs under custom go by stays." if in_use else ""),
                share=len(idle) / len(facts.osds),
                commands=tuple(Step(entry.who, entry.name, entry.value, None).command for entry in vain),
            )
        )
    if incomplete:
        findings.append(
            Finding(
                "nine-incomplete",
                MISLEADING,
                "The profile is custom and some of the nine values are not set",
                some(f"{named(osds)}: {words}" for words, osds in grouped(incomplete).items()),
                "an OSD goes on with the last profile's values until it restarts; then what is not set is 0, 1 and 0",
                "Set all nine (`ceph-tuner apply PROFILE --cluster NAME`), or go back to a built-in profile.",
                share=len(incomplete) / len(facts.osds),
            )
        )
    return findings


def _of_no_use(
    facts: Facts, entries: List[ConfigEntry], permanent: List[ConfigEntry], idle: Set[int]
) -> Tuple[List[ConfigEntry], List[str]]:
    """Entries of the nine that reach idle OSDs: those that no OSD goes by, and, in words, those that one does.

    An OSD that is down goes by them again when it starts; one on a trial by the `permanent` ones when that is over.
    """
    osds = {osd.place.osd: osd for osd in facts.osds}
    custom = [
        place
        for place in facts.places
        if _profile(facts.release, entries, osds.get(place.osd, OsdFacts(place))) == "custom"
    ]
    vain, in_use = [], []
    for entry in permanent:
        if entry.name not in MCLOCK_NINE or not idle.intersection(covered(entry.who, facts.places)):
            continue
        going_by = [
            place.osd
            for place in custom
            if any(winner(own, entry.name, place) is entry for own in (entries, permanent))
        ]
        if going_by:
            in_use.append((entry.who, f"also set for {named(going_by)}, under custom"))
        else:
            vain.append(entry)
    counts = Counter(in_use)
    return vain, [
        f"{who}: {count} of the nine {words}, and not to be removed" for (who, words), count in counts.items()
    ]


def overbooked(facts: Facts) -> List[Finding]:
    """Reservations that sum to more than the OSD has."""
    if facts.release.units != "fraction":
        return []
    sums: List[Tuple[OsdFacts, str, float]] = []
    for osd in facts.looked_at:
        values = _nine(osd)
        if values is not None and osd.queue == "mclock_scheduler":
            total = reservation_sum(values)
            if total > 1 + _ROUNDING:
                sums.append((osd, str(values.get(PROFILE, "custom")), total))
    if not sums:
        return []
    most = max(total for _, _, total in sums)
    own = all(profile != "custom" for _, profile, _ in sums)
    lines = [(f"{profile}: reservations sum to {total:.3g}", osd.place.osd) for osd, profile, total in sums]
    return [
        Finding(
            "overbooked",
            COSTLY if own else MISLEADING,
            "Reservations promise more than an OSD has",
            some(f"{named(osds)}: {words}" for words, osds in grouped(lines).items()),
            f"on a busy OSD each class gets {1 / most:.0%} of its reservation",
            "Ceph ships this profile so; a custom profile of ceph-tuner sums to 1 at most."
            if own
            else "Lower them to a sum of at most 1.",
            share=1 - 1 / most,
        )
    ]


def _doubtful(facts: Facts, knob: Knob) -> bool:
    effect = knob.effective(facts.release, facts.version)
    return bool(effect.needs) or not effect.works


def _in_vain(facts: Facts, knob: Knob, osds: List[OsdFacts]) -> Optional[str]:
    """Why a knob does nothing on these OSDs; None where it works on some."""
    effect = knob.effective(facts.release, facts.version)
    if not effect.works:
        return effect.because
    needs = dict(effect.needs)
    for osd in osds:
        values = settings_in_force(osd.options, tuple(needs))
        if not unmet_needs(knob, facts.release, values):
            return None
    return effect.because if needs else None


def _under_another_queue(facts: Facts) -> List[Place]:
    """OSDs that run another queue, by their own word, or by the entries where they were not asked."""
    queues = {osd.place.osd: osd.queue for osd in facts.looked_at}
    entries = [entry for entry in facts.entries if entry.name == _QUEUE]
    places = []
    for place in facts.places:
        decides = winner(entries, _QUEUE, place)
        set_there = facts.release.default_queue if decides is None else decides.value
        if queues.get(place.osd, set_there) != "mclock_scheduler":
            places.append(place)
    return places


def _instead(facts: Facts, knob: Knob) -> Iterable[str]:
    effect = knob.effective(facts.release, facts.version)
    return [f"{name}={KNOBS[name].format(value)} beside it" for name, value in effect.needs] or effect.instead


def _profile(release: Release, entries: Iterable[ConfigEntry], osd: OsdFacts) -> str:
    if osd.options and osd.whole:
        return osd.options.get(PROFILE, release.default_profile)
    decides = winner(entries, PROFILE, osd.place)
    return release.default_profile if decides is None else decides.value


def _set(entries: Iterable[ConfigEntry], osd: OsdFacts, name: str) -> bool:
    own = any(source in osd.sources.get(name, {}) for source in _OWN)
    return own or winner(entries, name, osd.place) is not None


def _absent(names: List[str]) -> str:
    if len(names) == len(MCLOCK_NINE):
        return "none of the nine is set"
    return f"without {', '.join(name.replace('osd_mclock_scheduler_', '') for name in names)}"


def _nine(osd: OsdFacts) -> Optional[Settings]:
    try:
        values = settings_in_force(osd.options)
    except InputError:
        return None
    return values if all(name in values for name in MCLOCK_NINE) else None
