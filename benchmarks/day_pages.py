"""Pages of the book for `day.py`: what the twin is asked for, and what it found."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import List, Optional, Sequence, Tuple

from day_kinds import Kind, hours_of_clients
from day_world import DAY_BEGINS, DayWorld, rate_at, with_work

from ceph_tuner.core.book.book import document_of, parse_book
from ceph_tuner.core.book.page import Page
from ceph_tuner.core.goals.slo_calendar import SloCalendar
from ceph_tuner.core.knobs.releases import format_version
from ceph_tuner.core.measure.sample import Window
from ceph_tuner.core.regimes.bounds import RegimeBounds
from ceph_tuner.twin.model import ClusterModel


@cache
def predicted(path: Path) -> Tuple[Page, ...]:
    """Pages that the twin found."""
    return parse_book(json.loads(path.read_text(encoding="utf-8")), str(path)).pages


def predict(output: Path, kind: Kind) -> None:
    """Ask the twin for pages as after day 0, and keep the answers by themselves beside them."""
    model = with_work(DayWorld(0, kind.scrubbed).twin.simulation.model, rate_at(0.0), (10**6, kind.scrubbed, 10**6))
    each = output.with_name(kind.each.name)
    write_pages(
        output, model, kind.searched, kind.page_objectives, kind.bounds, hours_of_clients(), DAY_BEGINS, 30, each
    )


def write_pages(
    output: Path,
    model: ClusterModel,
    regimes: Sequence[str],
    calendar: SloCalendar,
    bounds: RegimeBounds,
    hours: Sequence[Window],
    now: float,
    trials: int,
    each: Optional[Path] = None,
) -> None:
    """Ask a twin for a page of each regime, as `ceph-tuner book predict` does; `hours`: that it kept of its clients.

    `each`: where the answers go as they are before regimes share settings.
    """
    # each of them is of use to this alone
    from ceph_tuner.recommend import SearchEffort
    from ceph_tuner.recommend.recommendation import recommend
    from ceph_tuner.recommend.regime_pages import RegimeAnswer, pages_of
    from ceph_tuner.recommend.regime_questions import RegimeQuestion, combinations_of, question_by_policy
    from ceph_tuner.twin.described_cluster import DescribedCluster
    from silent_listener import SilentListener

    cluster = DescribedCluster("day", model)

    def question(regime: str) -> RegimeQuestion:
        return question_by_policy(regime, cluster, calendar, bounds, hours, now)

    answers: List[RegimeAnswer] = []
    for regime in regimes:
        regime_question = question(regime)
        recommendation = recommend(
            regime_question.question, SearchEffort(trials=trials), SilentListener(), 1, explain=False
        )
        answers.append(RegimeAnswer(regime_question, recommendation))
        print(f"{regime}: {recommendation.searched.choice.reason}", flush=True)
    if each is not None:
        _write(each, [page for answer in answers for page in pages_of([answer], 1.0, "osd", processes=1)], model)
    others = [question(regime) for regime in combinations_of(regimes, bounds)]
    pages = pages_of(answers, 1.0, "osd", lambda done, total: print(f"{done} of {total}", flush=True), 1, others)
    _write(output, pages, model)


def _write(output: Path, pages: Sequence[Page], model: ClusterModel) -> None:
    version = format_version(model.version or model.release.newest)
    output.write_text(json.dumps(document_of(pages, version), indent=1) + "\n", encoding="utf-8")
