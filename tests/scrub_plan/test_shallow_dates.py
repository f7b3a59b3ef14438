"""Shallow scrubs past their date, and those that will be: a plan says which, and asks for none."""

from __future__ import annotations

import io
import json
from datetime import timezone
from typing import Any, Dict, FrozenSet, List

import pytest
from rich.console import Console

from ceph_tuner.scrub_plan import ScrubPg
from ceph_tuner.scrub_plan.cluster_view import read_view
from ceph_tuner.scrub_plan.plan import ScrubPlan, plan
from ceph_tuner_cli.scrub_page import plan_page
from overdue import DAY, MB, NOW, daily, overdue_twin, pg, rate, view
from twins import answering

NOSCRUB = frozenset(("noscrub",))


def dated(pgid: str, due_days: float, deep_due_days: float = 100.0, **changes: Any) -> ScrubPg:
    """A PG whose shallow scrub is due in so many days, and its deep one too."""
    due = {"shallow_due_at": NOW + due_days * DAY, "shallow_late": due_days < 0}
    return pg(pgid, -deep_due_days, interval_s=100 * DAY, **due, **changes)


def planned(*pgs: ScrubPg, **rules: Any) -> ScrubPlan:
    return plan(view(pgs, **rules), daily(rate(1000 * MB)), days=7)


def ids(pgs: List[ScrubPg]) -> List[str]:
    return [each.pgid for each in pgs]


def test_late_ones_are_named_the_longest_late_first() -> None:
    found = planned(dated("1.0", -1), dated("1.1", 2), dated("1.2", -3))
    assert ids(found.shallow_late) == ["1.2", "1.0"]
    assert found.to_dict()["shallow_late"][0] == {"pgid": "1.2", "pool": "rbd", "due_at": NOW - 3 * DAY}


def test_ceph_begins_the_others_in_time_unless_something_keeps_it_from_that() -> None:
    pgs = [dated("1.0", 2), dated("1.1", 5), dated("1.2", 8), dated("2.0", 1, pool="archive")]
    assert planned(*pgs).shallow_to_be_late == []
    # 1.2 is due behind the end of the plan
    assert ids(planned(*pgs, flags=NOSCRUB).shallow_to_be_late) == ["2.0", "1.0", "1.1"]
    assert ids(planned(*pgs, pool_flags={"archive": NOSCRUB}).shallow_to_be_late) == ["2.0"]
    assert ids(planned(*pgs, max_scrubs=0).shallow_to_be_late) == ["2.0", "1.0", "1.1"]


def test_a_pg_that_waits_for_what_nobody_knows_the_end_of_will_be_late() -> None:
    degraded = frozenset(("active", "undersized", "degraded"))
    found = planned(dated("1.0", 2, state=degraded), dated("1.1", 2))
    assert ids(found.shallow_to_be_late) == ["1.0"]


def test_a_planned_deep_scrub_does_for_a_shallow_one() -> None:
    found = planned(dated("1.0", 3, deep_due_days=-1.0), dated("1.1", 3), flags=NOSCRUB)
    assert [scrub.pgid for scrub in found.schedule.scrubs] == ["1.0"]
    assert ids(found.shallow_to_be_late) == ["1.1"]


def test_a_page_names_them_and_says_nothing_where_all_are_in_time() -> None:
    def lines(*pgs: ScrubPg, flags: FrozenSet[str] = NOSCRUB) -> List[str]:
        console = Console(width=200, record=True, file=io.StringIO())
        console.print(plan_page(planned(*pgs, flags=flags), timezone.utc, False))
        return console.export_text().splitlines()

    (line,) = [line for line in lines(dated("1.0", -1), dated("1.1", 2), dated("1.2", 9)) if "shallow scrub;" in line]
    assert line.startswith("1 of 3 PGs are late with their shallow scrub; 1 more will be: 1.0, 1.1.")
    assert "noscrub keeps Ceph from beginning these" in line
    assert any("Ceph begins these itself" in line for line in lines(dated("1.0", -1), flags=frozenset()))
    assert not any("shallow scrub;" in line for line in lines(dated("1.2", 9)))


@pytest.mark.slow
def test_dates_are_by_the_pool_s_own_interval_else_by_that_of_the_osds() -> None:
    # PGs without a day had their last scrub an hour ago
    twin = overdue_twin({"1.0": 20.0, "1.1": 8.0, "1.2": 3.0})
    options = json.loads(twin.commander.tell("osd.0", "config show", {}))
    dump = json.loads(twin.commander.mon("osd dump", {}))

    def late(max_interval: str, of_pool: Dict[str, float]) -> List[str]:
        pools = [{**row, "options": of_pool} for row in dump["pools"]]
        shown = {**options, "osd_scrub_max_interval": max_interval}
        by_osd = {(f"osd.{place.osd}", "config show"): shown for place in twin.config.places()}
        cluster = answering(twin, {"osd dump": {**dump, "pools": pools}, **by_osd})
        return [each.pgid for each in read_view(cluster).pgs if each.shallow_late]

    assert late(str(7 * DAY), {}) == ["1.0", "1.1"]
    assert late(str(7 * DAY), {"scrub_max_interval": 10 * DAY}) == ["1.0"]
    assert late("0", {}) == []
    assert late("0", {"scrub_max_interval": 2 * DAY}) == ["1.0", "1.1", "1.2"]
    # an older file of `gather` may not have the option
    assert [each.shallow_due_at for each in read_view(twin).pgs] == [None] * 16
