"""Whether a page can be used on a cluster: its settings must be the release's, and take effect as they are written."""

from __future__ import annotations

from functools import partial

from ceph_tuner.core.book.page import Page
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.catalogue import KNOBS
from ceph_tuner.core.knobs.releases import parse_version, release_of
from ceph_tuner.core.knobs.settings import check_settings, dotted


def check_page(page: Page, version: str) -> None:
    """Raise InputError for settings that a cluster of this version does not take, or not without a restart."""
    of_page = partial(_place, page.number)
    check_settings(dict(page.settings), release_of(version), of_page, version=parse_version(version))
    for name in page.settings:
        if KNOBS[name].scope != "osd" or KNOBS[name].change != "live":
            # it would come, or stay, with the next restart of an OSD, whatever the regime is then
            raise InputError(of_page("settings", name), name, "a knob of the OSDs that needs no restart")


def _place(number: int, *keys: object) -> str:
    return f"page {number}, {dotted(*keys)}"
