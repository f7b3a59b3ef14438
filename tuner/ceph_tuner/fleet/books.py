"""Books of the fleet's members: what each has, and pages that one validated, offered to others like it."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Collection, Dict, List, Mapping, Tuple

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.book.book import document_of, parse_book
from ceph_tuner.core.book.page import LONGEST_TEXT, VALIDATED, Page, same_settings
from ceph_tuner.core.book.page_check import check_page
from ceph_tuner.core.ceph.target import running
from ceph_tuner.core.errors import ClusterNotFound, InputError, PermissionRefused
from ceph_tuner.core.goals.stored_slo import stored_calendar
from ceph_tuner.core.knobs.cost import Hardware
from ceph_tuner.core.knobs.releases import Release
from ceph_tuner.core.profiles.in_force import hardware_on
from ceph_tuner.core.profiles.translation import from_release_units, to_release_units
from ceph_tuner.core.regimes.bounds import RegimeBounds, regime_of, stored_bounds
from ceph_tuner.fleet.connection import open_member
from ceph_tuner.fleet.contract import Member
from ceph_tuner.fleet.plugin_of_member import member_plugin_answer
from ceph_tuner.search.transfer import unlike_hardware


@dataclass(frozen=True)
class OfferedPage:
    """A page, its shares as fractions of the capacity, and the OSDs that it was validated on."""

    page: Page
    hardware: Hardware
    osds: int


@dataclass(frozen=True)
class Offer:
    """What one cluster validated."""

    cluster: str
    release: Release
    pages: Tuple[OfferedPage, ...]
    left_out: Tuple[str, ...] = ()
    """Validated pages that cannot be offered, and why."""


@dataclass(frozen=True)
class Taken:
    """What comes of an offer on one member."""

    pages: Tuple[Page, ...]
    """In the release's own units, with the numbers that they have at the origin."""
    refused: Tuple[str, ...]
    there: Tuple[int, ...] = ()
    """Numbers, at the origin, of pages that the member has already."""

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, for programs."""
        pages = [page.to_dict() for page in self.pages]
        return {"pages": pages, "refused": list(self.refused), "there": list(self.there)}


def shown(member: Member, within_s: float) -> Mapping[str, Any]:
    """The book of a member, as `ceph tuner book show` gives it. Raises TunerError."""
    with closing(open_member(member, within_s)) as cluster:
        document: Dict[str, Any] = member_plugin_answer(cluster, "tuner book show", {})
        return document


def offer_of(member: Member, within_s: float) -> Offer:
    """What a member validated. Raises TunerError."""
    with closing(open_member(member, within_s)) as cluster:
        pages: List[OfferedPage] = []
        left_out: List[str] = []
        for page in _book(cluster):
            if page.state != VALIDATED:
                continue
            try:
                check_page(page, cluster.version)
                hardware, osds = _hardware(cluster, page.target)
                settings = from_release_units(page.settings, cluster.release, hardware)
                pages.append(OfferedPage(replace(page, settings=settings), hardware, osds))
            except InputError as fault:
                left_out.append(_words_of(fault, page))
        return Offer(member.name, cluster.release, tuple(pages), tuple(left_out))


def take(offer: Offer, member: Member, within_s: float, really: bool) -> Taken:
    """Hold an offer against a member, and put what suits it into its book where `really`. Raises TunerError."""
    with closing(open_member(member, within_s)) as cluster:
        bounds, calendar = stored_bounds(cluster.store), stored_calendar(cluster.store)
        policies = () if calendar is None else calendar.policy_names
        own = _book(cluster)
        pages: List[Page] = []
        refused: List[str] = []
        there: List[int] = []
        for offered in offer.pages:
            try:
                page = _fitted(offered, offer, cluster, bounds, policies)
            except InputError as fault:
                refused.append(_words_of(fault, offered.page))
                continue
            if any(each.regime == page.regime and same_settings(each, page.target, page.settings) for each in own):
                there.append(page.number)
            else:
                pages.append(page)
        if really and pages:
            member_plugin_answer(cluster, "tuner book import", {}, json.dumps(document_of(pages, cluster.version)))
        return Taken(tuple(pages), tuple(refused), tuple(there))


def _fitted(
    offered: OfferedPage, offer: Offer, cluster: Cluster, bounds: RegimeBounds, policies: Collection[str]
) -> Page:
    """The page as this cluster would have it. Raises InputError where it does not suit."""
    page = offered.page
    if cluster.release is not offer.release:
        found = f"settings validated on {offer.release.title}"
        raise InputError("release", found, f"pages of {cluster.release.title}")
    regime = regime_of(page.regime, bounds, "regime", policies)
    hardware, _ = _hardware(cluster, page.target)
    reason = unlike_hardware(offered.hardware, offered.osds, hardware)
    if reason:
        raise InputError("hardware", reason, "OSDs that are alike")
    verdict = f"of {offer.cluster}{f': {page.verdict}' if page.verdict else ''}"[:LONGEST_TEXT]
    settings = to_release_units(page.settings, cluster.release, hardware)
    fitted = replace(page, regime=regime, settings=settings, verdict=verdict)
    check_page(fitted, cluster.version)
    return fitted


def _words_of(fault: InputError, page: Page) -> str:
    """Why a page does not suit. Raises a fault that is about the cluster and not the page."""
    if isinstance(fault, (PermissionRefused, ClusterNotFound)):
        raise fault
    return f"page {page.number}, {page.regime}: {fault}"


def _hardware(cluster: Cluster, target: str) -> Tuple[Hardware, int]:
    """Of a target's OSDs, and how many there are. Raises InputError where it covers none."""
    places = running(target, cluster.config.places())
    return hardware_on(cluster.commander, cluster.config, places[0]), len(places)


def _book(cluster: Cluster) -> Tuple[Page, ...]:
    document = member_plugin_answer(cluster, "tuner book export", {})
    return parse_book(document, f"the book of {cluster.name}").pages
