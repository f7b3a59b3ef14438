"""The parts of a page that say what was learnt: complete, in words, within 80 columns."""

from __future__ import annotations

import io
from typing import Any, List

import pytest
from rich.console import Console, Group, RenderableType

from ceph_tuner.core.goals.slo import Objective, parse_slo
from ceph_tuner.optimise.posterior_summary import Dependence, Importance, Influence, TrialProgress
from ceph_tuner.recommend.accounts import LOAD, SHARE, Account
from ceph_tuner.search.explanation import Explained, InTheWay, KeepableBound
from ceph_tuner_cli.explain_page import capacity, learnt, spoken
from ceph_tuner_cli.recommend_page import amount

SLO = parse_slo({"objectives": ["client.p95_ms <= 20 ms", "recovery.finish_s <= 20 min", "client.iops >= 300"]})
LATENCY, FINISH, RATE = SLO.objectives
LIMIT, TRIMS = "osd_mclock_scheduler_background_recovery_lim", "osd_pg_max_concurrent_snap_trims"


def written(metric: str, value: float) -> str:
    return amount(metric, value)[0]


def printed(parts: List[RenderableType]) -> str:
    stream = io.StringIO()
    Console(file=stream, width=80).print(Group(*parts))
    assert max((len(line) for line in stream.getvalue().splitlines()), default=0) <= 80
    return " ".join(stream.getvalue().split())


def influence(name: str, total: float) -> Influence:
    return Influence(name, total, total, (total / 2, total), (total / 2, min(1.0, 1.2 * total)))


def found(**changes: Any) -> Explained:
    matters = Importance(
        "client.p95_ms", 0.4, (influence(TRIMS, 0.7), influence(LIMIT, 0.25), influence("osd_max_scrubs", 0.01))
    )
    still = Importance("client.iops", 0.001, (influence(LIMIT, 0.9),))
    curve = Dependence("client.p95_ms", LIMIT, (0.0, 0.2, 0.6, 1.0), (40.0, 10.0, 20.0, 30.0), (1.0,) * 4, (50.0,) * 4)
    progress = (
        TrialProgress(1, 0.3, 0.1, 0.5, 0.2, True, None, True, None),
        TrialProgress(2, -0.1, -0.2, 0.0, 0.9, True, None, False, -0.1),
    )
    given: Any = {
        "around": None,
        "matters": (matters, still),
        "in_the_way": None,
        "progress": progress,
        "curves": (curve,),
    }
    return Explained(**{**given, **changes})


def way(*conflicts: tuple, together: float = 0.01, probability: float = 0.9) -> InTheWay:
    nearest = (KeepableBound(LATENCY, 26.0, 0.3), KeepableBound(FINISH, 1800.0, 0.5), KeepableBound(RATE, 300.0, 0.0))
    return InTheWay(together, conflicts, ((LATENCY, 0.95), (FINISH, 0.6)), nearest, {}, probability)


@pytest.mark.parametrize(
    ("knob", "words"),
    [
        (LIMIT, "recovery limit"),
        ("osd_mclock_scheduler_background_best_effort_res", "best effort reservation"),
        (TRIMS, TRIMS),
    ],
)
def test_the_nine_are_called_as_one_says_them(knob: str, words: str) -> None:
    assert spoken(knob) == words


def test_the_short_form_names_the_knobs_that_matter_and_no_others() -> None:
    text = printed(learnt(found(), written))
    assert f"client.p95_ms {TRIMS} 70%, recovery limit 25%" in text
    assert "osd_max_scrubs" not in text
    assert "client.iops hardly any knob" in text
    assert "40 ms" not in text
    assert learnt(None, written) == []


def test_the_long_form_has_curves_with_no_limit_last_and_how_the_search_went() -> None:
    text = printed(learnt(found(), written, whole=True))
    assert "0.2: 10 ms, 0.6: 20 ms, 1: 30 ms, none: 40 ms" in text
    assert "1 (earlier run) 0.300" in text
    assert "90%" in text


def test_objectives_in_each_others_way_are_named_with_the_nearest_that_are_not() -> None:
    text = printed(learnt(found(in_the_way=way((LATENCY, FINISH))), written))
    assert "client.p95_ms <= 20 ms and recovery.finish_s <= 20 min cannot be kept together" in text
    assert "Without client.p95_ms <= 20 ms the others are kept with 95%" in text
    nearest = "client.p95_ms <= 26 ms (30% less strict), recovery.finish_s <= 30 min (50% less strict)"
    assert f"Nearest that is kept with 90%: {nearest}, beside client.iops >= 300 /s" in text


def test_an_objective_out_of_reach_is_said_to_be_so_and_no_promise_follows_where_none_can_be_kept() -> None:
    text = printed(learnt(found(in_the_way=way((LATENCY,), probability=0.3)), written))
    assert "client.p95_ms <= 20 ms is out of reach by itself" in text
    assert "Nearest" not in text


def test_where_the_models_see_a_way_more_trials_are_advised() -> None:
    text = printed(learnt(found(in_the_way=way(together=0.8)), written))
    assert "some settings keep every hard objective with 80%" in text
    assert "More trials may" in text


def account(name: str, needed: float, held_by: str) -> Account:
    return Account(name, 0.4, None, None, 0.5, 0.5, needed, held_by)


def test_a_class_that_needs_more_than_it_is_owed_is_said_to_but_none_that_gets_all_it_asks_for() -> None:
    text = printed(capacity([account("client", 0.51, LOAD), account("background_recovery", 0.8, SHARE)]))
    assert "recovery 40% none 80% 50% 50% its share" in text
    assert "At the bounds recovery needs 80% of an OSD, and mClock owes it 50%." in text
    assert "client needs" not in text
    assert capacity([]) == []


def test_bounds_that_need_not_give_way_are_those_of_the_objective() -> None:
    assert KeepableBound(LATENCY, 20.0, 0.0).text == LATENCY.text
    assert KeepableBound(LATENCY, 26.0, 0.3).text == "client.p95_ms <= 26 ms"
    assert isinstance(LATENCY, Objective)
