"""The objectives that a cluster keeps itself, as `ceph tuner slo set` writes them."""

from __future__ import annotations

import json
import time
from functools import partial
from typing import Any, Callable, Dict, Mapping, Optional

from ceph_tuner.core.bounded import MISREAD, read_json
from ceph_tuner.core.ceph.ports import Store
from ceph_tuner.core.ceph.stored_document import unknown_in, versioned
from ceph_tuner.core.errors import InputError, Malformed
from ceph_tuner.core.goals.goal import MAXIMISE, MINIMISE
from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.slo import OBJECTIVE_FIELDS, Slo
from ceph_tuner.core.goals.slo_calendar import SloCalendar, parse_slo_calendar
from ceph_tuner.core.knobs.settings import dotted

SLO_KEY = "slo"
_FIELDS = ("schema", "name", "objectives", "calendar", MINIMISE, MAXIMISE)
BASELINE = "slo/baseline"
"""What relative bounds refer to, metric by metric: it must not follow every change that is kept."""


def stored_slo(store: Store, now: Callable[[], float] = time.time) -> Optional[Slo]:
    """What is wanted now; None where it keeps no objectives. Raises InputError where they cannot be read."""
    calendar = stored_calendar(store)
    return None if calendar is None else calendar.at(now())


def stored_calendar(store: Store) -> Optional[SloCalendar]:
    """What is wanted, and when; None where it keeps no objectives. Raises InputError where they cannot be read."""
    text = store.get(SLO_KEY)
    if not text:
        return None
    try:
        document = read_json(text, "the stored SLO")
    except Malformed as fault:
        raise InputError("the stored SLO", fault.found, "`ceph tuner slo rm all`, then set it anew") from None
    return parse_slo_calendar(_without_unknown(document), place=partial(dotted, "the stored SLO"))


def store_slo(store: Store, calendar: SloCalendar, anew: bool = False) -> None:
    """Keep what is wanted. What another version stored beside it stays, unless all of it is given `anew`."""
    text = None if anew else store.get(SLO_KEY)
    try:
        before = read_json(text or "{}", "the stored SLO")
    except Malformed:
        before = {}
    document = versioned(calendar.to_dict(), unknown_in(before, _FIELDS))
    items = before.get("objectives") if isinstance(before, Mapping) else None
    beside = {
        str(item.get("objective")): unknown_in(item, OBJECTIVE_FIELDS)
        for item in (items if isinstance(items, list) else [])
        if isinstance(item, dict)
    }
    document["objectives"] = [{**beside.get(item["objective"], {}), **item} for item in document["objectives"]]
    store.set(SLO_KEY, json.dumps(document))


def _without_unknown(document: Any) -> Any:
    """Without what another version stored beside; in a file that an operator gives it is refused."""
    if not isinstance(document, Mapping):
        return document
    return {**document, "objectives": _known_objectives(document.get("objectives"))}


def _known_objectives(items: Any) -> Any:
    if not isinstance(items, list):
        return items
    return [
        {name: item[name] for name in item if name in OBJECTIVE_FIELDS} if isinstance(item, dict) else item
        for item in items
    ]


def stored_baseline(store: Store) -> Dict[str, float]:
    """What relative bounds refer to, as far as the plugin has seen it."""
    try:
        document = read_json(store.get(BASELINE) or "{}", BASELINE)
        return {str(name): float(value) for name, value in document.items()}
    except MISREAD:
        return {}


def stored_judge(store: Store, slo: Optional[Slo] = None, now: Callable[[], float] = time.time) -> Judge:
    """Judges by `slo`, else by what the cluster itself wants now; relative bounds refer to what it keeps.

    Raises InputError where the stored objectives are asked for and cannot be read.
    """
    slo = slo if slo is not None else stored_slo(store, now)
    return Judge(slo, stored_baseline(store) if slo is not None else {})
