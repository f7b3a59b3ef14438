"""States beside which measurements say little: laggy PGs, metadata servers that fall behind, a half-done upgrade."""

from __future__ import annotations

import re
from shlex import quote
from typing import List

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.catalogue import KNOBS, MCLOCK_NINE
from ceph_tuner.core.knobs.releases import parse_version, release_of
from ceph_tuner.core.wording import some
from ceph_tuner.doctor.facts import Facts
from ceph_tuner.doctor.finding import MISLEADING, Finding

_WAITING = ("laggy", "wait")
_MDS = re.compile(r"mds\.[^\s(:]+")
_SEGMENTS = re.compile(r"\((\d+)/(\d+)\)")


def laggy(facts: Facts) -> List[Finding]:
    """PGs that serve no reads until a replica's lease arrives."""
    states = {state: count for state, count in facts.pg_states.items() if set(_WAITING) & set(state.split("+"))}
    if not states:
        return []
    count, total = sum(states.values()), sum(facts.pg_states.values())
    return [
        Finding(
            "laggy-pgs",
            MISLEADING,
            "PGs wait for a replica's lease and answer nobody meanwhile",
            some(f"{number} PGs are {state}" for state, number in states.items()),
            f"{count} of {total} PGs stand still at times; their waits drown whatever a setting changes",
            "Look for OSDs or networks that answer late (`ceph osd perf`, `dump_osd_network`), for C-states "
            "(`ceph-tuner doctor --host`), and for clocks that differ, before tuning.",
            share=count / total,
            commands=("ceph pg dump_stuck", "ceph tell osd.0 dump_osd_network 100"),
        )
    ]


def metadata(facts: Facts) -> List[Finding]:
    """Metadata servers whose journal or metadata I/O falls behind."""
    findings = []
    if "MDS_TRIM" in facts.health:
        summary, *details = facts.health["MDS_TRIM"]
        segments = [(int(match[1]), int(match[2])) for line in details for match in _SEGMENTS.finditer(line)]
        share = max((1 - most / now for now, most in segments if now), default=None)
        findings.append(
            Finding(
                "mds-trimming",
                MISLEADING,
                "A metadata server is behind on trimming its journal",
                some([summary, *details]),
                "its writes come in bursts that no share of mClock explains; its restart takes as long as the journal",
                "Give its pool faster OSDs or a larger share of clients, and look for a client with too many requests.",
                share=None if share is None else max(0.0, share),
                commands=(f"ceph tell {quote(_behind(details))} perf dump mds_log", "ceph fs status"),
            )
        )
    if "MDS_SLOW_METADATA_IO" in facts.health:
        findings.append(
            Finding(
                "mds-slow-io",
                MISLEADING,
                "Metadata I/O is slow: file systems wait for their metadata pool",
                some(facts.health["MDS_SLOW_METADATA_IO"]),
                "the clients' latency is the metadata server's, not the OSDs'",
                "Put the metadata pool on faster OSDs of a class of its own, then tune.",
                commands=("ceph fs status",),
            )
        )
    return findings


def _behind(details: List[str]) -> str:
    """The first metadata server that is named; rank 0 of the only file system where none is."""
    return next((match[0] for line in details if (match := _MDS.match(line))), "mds.0")


def versions(facts: Facts) -> List[Finding]:
    """OSDs of different versions, in the middle of an upgrade."""
    if len(facts.versions) < 2:
        return []
    counts = sorted(facts.versions.items(), key=lambda entry: parse_version(entry[0]))
    newest, total = counts[-1][0], sum(facts.versions.values())
    older = [version for version, _ in counts[:-1]]
    knob_names = sorted({name for version in older for name in _knobs_of_one(version, newest)})
    words = (
        f"knobs work on some of them only: {', '.join(some(knob_names))}"
        if knob_names
        else "the same knobs work on all"
    )
    return [
        Finding(
            "mixed-versions",
            MISLEADING,
            "OSDs run different versions of Ceph",
            some(f"{count} of {total} OSDs run {version}" for version, count in reversed(counts)),
            f"{words}; what is measured is a mixture that is gone after the upgrade",
            f"Bring all of them to {newest}, then tune.",
            share=1 - facts.versions[newest] / total,
            commands=("ceph versions", "ceph orch upgrade status"),
        )
    ]


def _knobs_of_one(one: str, other: str) -> List[str]:
    """Knobs that work, or count in other units, on one of two versions only."""
    try:
        ours, theirs = ((release_of(version), parse_version(version)) for version in (one, other))
    except InputError:
        return []
    other_units = ours[0].units != theirs[0].units
    return [
        knob.name
        for knob in KNOBS.values()
        if knob.effective(*ours).works != knob.effective(*theirs).works or (other_units and knob.name in MCLOCK_NINE)
    ]
