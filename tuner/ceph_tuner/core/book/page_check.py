"""Whether a page can be used on a cluster: its settings must be the release's, and take effect as they are written.

Where a book is of another release, its shares must be in the unit of this one.
"""

from __future__ import annotations

from functools import partial
from typing import List, Sequence

from ceph_tuner.core.book.page import Page
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.catalogue import KNOBS, MCLOCK_NINE
from ceph_tuner.core.knobs.releases import parse_version, release_of
from ceph_tuner.core.knobs.settings import check_live_settings, dotted

_UNITS = {"fraction": "fractions of the capacity", "iops": "IOPS per shard"}


def check_page(page: Page, version: str) -> None:
    """Raise InputError for settings that a cluster of this version does not take, or not without a restart."""
    check_live_settings(dict(page.settings), release_of(version), partial(_place, page.number), parse_version(version))


def check_origin(origin: str, pages: Sequence[Page], version: str) -> List[str]:
    """What is to be known of pages from a cluster of another version, as notes.

    Raises InputError where their shares are in another unit: a number alone does not tell.
    """
    there, here = release_of(origin, "the book's version of Ceph"), release_of(version)
    if there is here or not pages:
        return []
    names = sorted({name for page in pages for name in page.settings if name in KNOBS})
    if there.units != here.units and any(name in MCLOCK_NINE for name in names):
        found = f"shares in {_UNITS[there.units]}, of {there.title}"
        remedy = "or a profile, whose shares are translated (`ceph-tuner book import --profile`)"
        raise InputError("the book", found, f"{_UNITS[here.units]}, which {here.title} takes, {remedy}")
    levels = parse_version(origin), parse_version(version)
    others = [
        name for name in names if KNOBS[name].effective(there, levels[0]) != KNOBS[name].effective(here, levels[1])
    ]
    differ = f", and differs in {', '.join(others)}" if others else ""
    return [f"the pages are of {there.title}: this is {here.title}, which may do otherwise by them{differ}"]


def _place(number: int, *keys: object) -> str:
    return f"page {number}, {dotted(*keys)}"
