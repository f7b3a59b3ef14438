"""The front of two metrics: what is on it, where it has gaps, and that the search looks into them."""

from __future__ import annotations

from typing import List, Tuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.goals.front import GAP, front_of
from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.slo import Slo, parse_slo
from ceph_tuner.recommend import Prediction, Question, SearchEffort
from ceph_tuner.recommend.search import search, unpredictable
from ceph_tuner.twin.model import MIB, ClientStream, RecoveryWork
from silent_listener import SilentListener
from twins import small_model

LATENCY, FINISH = "client.p95_ms", "recovery.finish_s"
WISHES = {"objectives": [f"{LATENCY} <= 100 ms", f"{FINISH} <= 10 h", "recovery.bytes_s >= 1 MB/s"]}


def slo(**goal: str) -> Slo:
    return parse_slo({**WISHES, **goal})


def tried(*pairs: Tuple[float, float]) -> List[Prediction]:
    means = [{LATENCY: one, FINISH: other, "recovery.bytes_s": 1e9} for one, other in pairs]
    return [Prediction(f"trial {number}", {}, (entry,)) for number, entry in enumerate(means)]


@given(st.lists(st.tuples(st.floats(1, 200), st.floats(1, 1e5)), min_size=1, max_size=12))
def test_nothing_that_keeps_all_beats_what_is_on_the_front(pairs: List[Tuple[float, float]]) -> None:
    judge, entries = Judge(slo()), tried(*pairs)
    front = front_of(judge, entries)
    kept = [pair for pair in pairs if pair[0] <= 100 and pair[1] <= 36000]
    best = {one for one in kept if not any(o != one and o[0] <= one[0] and o[1] <= one[1] for o in kept)}
    shown = set() if front is None else {(e.runs[0][LATENCY], e.runs[0][FINISH]) for e in front.entries}
    # one alone is no front
    assert shown == (best if len(best) > 1 else set())


def test_the_goal_leads_and_the_other_is_of_other_work() -> None:
    entries = tried((10, 900), (20, 800))
    front = front_of(Judge(slo(minimise=FINISH)), entries)
    assert front is not None
    assert (front.one, front.other) == (FINISH, LATENCY)
    assert [entry.label for entry in front.entries] == ["trial 1", "trial 0"]
    default = front_of(Judge(slo()), entries)
    assert default is not None
    assert (default.one, default.other) == (LATENCY, FINISH)
    assert front_of(Judge(parse_slo({"objectives": [f"{LATENCY} <= 100 ms"]})), entries) is None


def test_neighbours_that_differ_by_a_factor_of_two_leave_a_gap_the_widest_first() -> None:
    front = front_of(Judge(slo()), tried((10, 900), (19, 800), (40, 790), (50, 100)))
    assert front is not None
    assert [(a.label, b.label) for a, b in front.gaps] == [("trial 2", "trial 3"), ("trial 1", "trial 2")]
    assert GAP == 2


@pytest.mark.slow
def test_the_search_looks_between_neighbours_for_a_quarter_of_its_trials() -> None:
    model = small_model(recovery=(RecoveryWork("rbd", 500_000, 4 * MIB),))
    wishes = parse_slo({"objectives": ["client.p95_ms <= 60 s", "recovery.finish_s <= 300 d"], "minimise": FINISH})
    effort = SearchEffort(trials=12, seeds=1, fresh=2, events=1e5, shortest_s=8.0)
    found = search(Question(model, wishes), effort, SilentListener(), processes=1)
    between = [entry for entry in found.tried if entry.why.startswith("on the front between")]
    assert 0 < len(between) <= 3
    labels = [entry.label for entry in found.tried]
    assert len(set(labels)) == len(labels)
    assert found.front is not None
    # what lies between is of the settings that are searched, and none was simulated twice
    assert len({str(sorted(entry.settings.items())) for entry in found.tried}) == len(found.tried)


def test_a_goal_that_the_twin_does_not_predict_is_refused() -> None:
    question = Question(small_model(), parse_slo({"objectives": ["client.p95_ms <= 1 s"], "minimise": FINISH}))
    (error,) = unpredictable(question)
    assert str(error).startswith("minimise recovery.finish_s: found no recovery in the description")


def test_what_no_client_of_the_description_does_is_not_predicted() -> None:
    wishes = parse_slo({"objectives": ["client.read_p95_ms <= 9 ms", "client.write_iops >= 9", "client.p95_ms <= 1 s"]})
    for read_share, missing in ((0.0, ["client reads"]), (1.0, ["client writes"]), (0.5, [])):
        model = small_model(clients=(ClientStream("rbd", rate=225.0, read_share=read_share),))
        errors = [error.found for error in unpredictable(Question(model, wishes))]
        assert errors == [f"no {each} in the description of the cluster" for each in missing]
