"""Whether a page can be used on a cluster: its settings must be the release's, and take effect as they are written."""

from __future__ import annotations

from functools import partial

from ceph_tuner.core.book.page import Page
from ceph_tuner.core.knobs.releases import parse_version, release_of
from ceph_tuner.core.knobs.settings import check_live_settings, dotted


def check_page(page: Page, version: str) -> None:
    """Raise InputError for settings that a cluster of this version does not take, or not without a restart."""
    check_live_settings(dict(page.settings), release_of(version), partial(_place, page.number), parse_version(version))


def _place(number: int, *keys: object) -> str:
    return f"page {number}, {dotted(*keys)}"
