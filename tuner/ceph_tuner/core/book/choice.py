"""Which page holds in a regime."""

from __future__ import annotations

import math
from typing import Collection, Dict, Optional, Tuple

from ceph_tuner.core.book.book import Book
from ceph_tuner.core.book.page import STRUCK, TWIN, VALIDATED, Page
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.slo import Slo

NONE, OF_THE_TWIN, ALL = "no", "twin", "all"
UNVALIDATED_USE = (NONE, OF_THE_TWIN, ALL)
"""Which pages without a trial on this cluster may be used."""


def choose(
    book: Book, regime: str, unvalidated: str = NONE, resting: Collection[int] = (), policy: str = ""
) -> Optional[Page]:
    """Give the page that is to hold; None: what was there before the book.

    A page that is pinned comes first, then those validated, then those that the operator allows without a trial. Of
    each first those whose evidence is about the policy, then the newest, as it was better than what was in force before
    it. `resting`: numbers of pages that are left out. `policy`: of the calendar, which holds and which the regime's
    name lacks; empty where there is none.
    """
    if unvalidated not in UNVALIDATED_USE:
        raise InputError("book_unvalidated", repr(unvalidated), f"one of {', '.join(UNVALIDATED_USE)}")

    def rank(page: Page) -> Tuple[bool, bool, bool, float, int]:
        of_policy = bool(policy) and page.policy == policy
        return page.pin, page.state == VALIDATED, of_policy, page.at, page.number

    pages = [page for page in book.pages if page.regime == regime and page.number not in resting]
    return max((page for page in pages if is_usable(page, unvalidated, policy)), key=rank, default=None)


def others(
    book: Book, regime: str, unvalidated: str = NONE, resting: Collection[int] = (), policy: str = ""
) -> Tuple[Page, ...]:
    """Give what would hold in each other regime that has a page to use."""
    regimes = sorted({page.regime for page in book.pages} - {regime})
    chosen = (choose(book, each, unvalidated, resting, policy) for each in regimes)
    return tuple(page for page in chosen if page is not None)


def borne(
    book: Book,
    number: int,
    slo: Optional[Slo],
    unvalidated: str = NONE,
    resting: Collection[int] = (),
    policy: str = "",
) -> Dict[str, float]:
    """Give how far a page may fall behind where to go back to what was there before would harm more, by metric.

    That is in objectives that the page found missed, half way (in logarithms) from what it promises to what it found.
    Nothing is borne where the regime has another page to use, or the page does not know both.
    """
    page = next((each for each in book.pages if each.number == number), None)
    if page is None or slo is None:
        return {}
    if choose(book, page.regime, unvalidated, {*resting, number}, policy) is not None:
        return {}
    bounds = {}
    for objective in slo.objectives:
        before, promise = page.load.get(objective.metric, 0.0), page.means.get(objective.metric, 0.0)
        bound = objective.bound.resolve(None)
        if not objective.hard or bound is None or min(before, promise) <= 0:
            continue
        half_way = math.sqrt(before * promise)
        # where half way misses the bound, what was before misses it by more
        if objective.margin(promise, before) > 0 and objective.margin(half_way, bound) < 0:
            bounds[objective.metric] = half_way
    return bounds


def left_out(book: Book, regime: str, policy: str) -> Tuple[Page, ...]:
    """Give the pages of a regime that are not used while the policy holds."""
    return tuple(page for page in book.pages if page.regime == regime and policy in page.left_out)


def is_usable(page: Page, unvalidated: str, policy: str = "") -> bool:
    """Whether a page may hold in its regime at all, under a policy that the regime's name lacks."""
    if page.state == STRUCK or policy in page.left_out:
        return False
    if page.state == VALIDATED or page.pin or unvalidated == ALL:
        return True
    return unvalidated == OF_THE_TWIN and page.origin == TWIN
