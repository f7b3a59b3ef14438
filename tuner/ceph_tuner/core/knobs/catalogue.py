"""Every knob by its name, and the questions that others ask: which may be searched, which works where.

    knob("osd_max_scrubs").parse("5")              5, or InputError
    knob("osd_scrub_cost").effective(REEF)         works False, with the reason and what to use instead
    searchable(TENTACLE)                           knobs that act at once and are honoured there

The data is in `table.py`, the behaviour of one knob in `knob.py`. A knob is in the table only with its page in
`docs/knobs/`, and a real OSD of each lab release is asked whether the data holds (`tests/test_knobs_on_cluster.py`).
"""

from __future__ import annotations

import difflib
from typing import Dict, List, Mapping, Optional

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.knob import Knob, KnobEffect, Since
from ceph_tuner.core.knobs.releases import CLASSES, MCLOCK_NINE, Release, Settings, Value
from ceph_tuner.core.knobs.table import TABLE
from ceph_tuner.core.knobs.table_unsearched import KNOWN

__all__ = [
    "CLASSES",
    "KNOBS",
    "MCLOCK_NINE",
    "NEVER_SET",
    "PROFILE",
    "Knob",
    "KnobEffect",
    "Release",
    "Settings",
    "Since",
    "Value",
    "knob",
    "searchable",
    "unmet_needs",
    "working",
]

PROFILE = "osd_mclock_profile"

NEVER_SET = tuple(work for work, _ in KNOWN)
"""Kinds of knobs that no search, profile export or recommendation sets: an operator may, by name."""

KNOBS: Dict[str, Knob] = {entry.name: entry for entry in TABLE}
"""Every knob by its name, in the order in which people read them: the nine values, then by kind of work."""


def knob(name: str, place: str = "knob") -> Knob:
    """Return the knob of that name. Raises InputError with the nearest names."""
    if name in KNOBS:
        return KNOBS[name]
    nearest = difflib.get_close_matches(name, KNOBS, n=3, cutoff=0.6)
    hint = f"a known knob such as {', '.join(nearest)}" if nearest else "a known knob (`ceph-tuner knobs` lists them)"
    raise InputError(place, repr(name), hint)


def unmet_needs(entry: Knob, release: Release, given: Mapping[str, Value]) -> Dict[str, Value]:
    """Return the knobs that must be set first for this one to work, with the values that they need."""
    needs = entry.effective(release).needs
    return {name: value for name, value in needs if given.get(name, KNOBS[name].default(release)) != value}


def working(release: Release) -> List[Knob]:
    """Knobs that the release honours under mClock."""
    return [entry for entry in KNOBS.values() if entry.effective(release).works]


def searchable(release: Release, given: Optional[Mapping[str, Value]] = None) -> List[Knob]:
    """Knobs that the search may move on a live cluster: they act at once, and the release honours them.

    `given` are settings that hold anyway: with `osd_mclock_override_recovery_settings` true among them,
    the knobs that need it are searchable as well.
    """
    return [
        entry
        for entry in working(release)
        if entry.searched
        and entry.change == "live"
        and entry.scope == "osd"
        and not unmet_needs(entry, release, given or {})
    ]
