"""Pages of the book for `day.py`: what the twin is asked for, and what it found."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, List, Optional, Sequence, Tuple

from day_world import BOUNDS, MARKERS, SCRUBBED, DayWorld, rate_at, with_work

from ceph_tuner.core.book.book import parse_book
from ceph_tuner.core.book.page import Page
from ceph_tuner.core.ceph.stored_document import versioned
from ceph_tuner.core.regimes.bounds import RegimeBounds
from ceph_tuner.twin.model import ClusterModel

RESULTS = Path(__file__).parent / "results"
PREDICTED, EACH = RESULTS / "day-pages.json", RESULTS / "day-pages-each.json"
"""What `book predict` makes, and the answer of each regime by itself, without what regimes share."""
WANTED: Tuple[Any, ...] = (
    "client.p95_ms <= 23 ms",
    "recovery.bytes_s >= 0.75 * baseline",
    {"objective": "scrub.objects_s >= 12", "hard": False},
    {"objective": "snaptrim.objects_s >= 0.5 * baseline", "hard": False},
)
"""What pages are predicted for: 92% of the bound, three quarters of the recovery of now, and scrubs within the day."""
MET = ("idle", *MARKERS, "busy+scrubbing", "recovering+scrubbing")
"""Regimes for which settings are searched: one for each marker, and what the plugin told on day 0 with `balanced`."""


@cache
def predicted(path: Path = PREDICTED) -> Tuple[Page, ...]:
    """Pages that the twin found."""
    return parse_book(json.loads(path.read_text(encoding="utf-8")), str(path)).pages


def predict(output: Path) -> None:
    """Ask the twin for pages as after day 0, and keep the answers by themselves beside them."""
    model = with_work(DayWorld(0).twin.simulation.model, rate_at(0.0), (10**6, SCRUBBED, 10**6))
    rates = [rate_at(hour) for hour in range(24)]
    write_pages(output, model, MET, WANTED, BOUNDS, rates, 30, output.with_name(EACH.name))


def write_pages(
    output: Path,
    model: ClusterModel,
    regimes: Sequence[str],
    objectives: Sequence[Any],
    bounds: RegimeBounds,
    rates: Sequence[float],
    trials: int,
    each: Optional[Path] = None,
) -> None:
    """Ask a twin for a page of each regime, as `ceph-tuner book predict` does; `rates`: of the clients, by hour.

    `each`: where the answers go as they are before regimes share settings.
    """
    # each of them is of use to this alone
    from ceph_tuner.core.goals.slo import parse_slo
    from ceph_tuner.recommend import SearchEffort
    from ceph_tuner.recommend.recommendation import recommend
    from ceph_tuner.recommend.regime_pages import RegimeAnswer, pages_of
    from ceph_tuner.recommend.regime_questions import combinations_of, question_in
    from ceph_tuner.twin.described_cluster import DescribedCluster
    from silent_listener import SilentListener

    cluster, wanted = DescribedCluster("day", model), parse_slo({"objectives": list(objectives)})
    answers: List[RegimeAnswer] = []
    for regime in regimes:
        asked = question_in(regime, cluster, wanted, bounds, rates)
        found = recommend(asked.question, SearchEffort(trials=trials), SilentListener(), 1, explain=False)
        answers.append(RegimeAnswer(asked, found))
        print(f"{regime}: {found.searched.choice.reason}", flush=True)
    if each is not None:
        _write(each, [page for answer in answers for page in pages_of([answer], 1.0, "osd", processes=1)])
    others = [question_in(regime, cluster, wanted, bounds, rates) for regime in combinations_of(regimes, bounds)]
    _write(
        output, pages_of(answers, 1.0, "osd", lambda done, total: print(f"{done} of {total}", flush=True), 1, others)
    )


def _write(output: Path, pages: Sequence[Page]) -> None:
    numbered = [replace(page, number=number) for number, page in enumerate(pages, 1)]
    document = versioned({"pages": [page.to_dict() for page in numbered]})
    output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
