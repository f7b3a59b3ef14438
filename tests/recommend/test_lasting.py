"""The winner in the long run: what only short runs keep is not recommended, and the answer says why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import pytest

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.slo import parse_slo
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.releases import Settings, nine
from ceph_tuner.recommend import IN_FORCE, Prediction, Question, SearchEffort, lasting, recommendation
from ceph_tuner.recommend.lasting import LONG, SEEDS, Decline, does_not_last
from ceph_tuner.recommend.runs import Runs
from ceph_tuner.recommend.search import SearchedSettings, choice_among, fresh_seeds
from ceph_tuner.twin.model import KIB, MIB, ClientStream, ClusterModel, Device, OsdModel, Pool, ScrubWork
from silent_listener import SilentListener
from twins import small_model

METRIC = "client.p95_ms"
EFFORT = SearchEffort(seeds=2, fresh=4)
QUESTION = Question(small_model(), parse_slo({"objectives": [f"{METRIC} <= 100 ms"]}))


def searched(**p95_ms: Sequence[float]) -> SearchedSettings:
    predictions = [
        Prediction(IN_FORCE if label == "old" else label, {PROFILE: label}, tuple({METRIC: each} for each in values))
        for label, values in p95_ms.items()
    ]
    choice = choice_among(QUESTION, predictions)
    return SearchedSettings(QUESTION, EFFORT, 4.0, 0, tuple(predictions), tuple(predictions), choice, True)


class LongRuns:
    """What a long run of each settings shows."""

    def __init__(self, p95_ms: Mapping[str, float]) -> None:
        self._p95_ms = p95_ms
        self.made: List[Tuple[str, float, List[int]]] = []
        self.done = 0

    def __call__(self, question: Question, effort: SearchEffort, seconds: float, processes: Any) -> LongRuns:
        self.seconds = seconds
        return self

    def __enter__(self) -> LongRuns:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def start(self, model: ClusterModel, settings: Settings, seeds: Sequence[int], standing: bool = False) -> Started:
        self.made.append((str(settings[PROFILE]), self.seconds, list(seeds)))
        return Started(self._p95_ms.get(str(settings[PROFILE])), len(seeds))


class Started(NamedTuple):
    """Runs under way."""

    p95_ms: Optional[float]
    seeds: int

    def collect(self) -> Tuple[Dict[str, float], ...]:
        if self.p95_ms is None:
            raise InputError("twin", "more requests at a time than foreseen after 9.0 s", "a smaller model")
        return ({METRIC: self.p95_ms},) * self.seeds


def judged(monkeypatch: pytest.MonkeyPatch, found: SearchedSettings, **p95_ms: float) -> Optional[Decline]:
    runs = LongRuns(p95_ms)
    monkeypatch.setattr(lasting, "Runs", runs)
    said = does_not_last(found)
    assert runs.made == [("new", LONG * 4.0, list(fresh_seeds(EFFORT)[:SEEDS]))]
    return said


def test_a_winner_that_stays_as_it_was_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert judged(monkeypatch, searched(old=[300] * 4, new=[20, 22, 21, 20]), new=21.5) is None


def test_a_winner_that_misses_an_objective_later_does_not_last(monkeypatch: pytest.MonkeyPatch) -> None:
    decline = judged(monkeypatch, searched(old=[300] * 4, new=[20, 22, 21, 20]), new=150)
    assert decline is not None
    assert decline.words == "over 24 s it gets worse (client.p95_ms 21 ms to 150 ms)"
    assert decline.long is not None
    assert decline.long.means == {METRIC: 150.0}


def test_runs_that_are_long_already_become_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = LongRuns({"new": 21.0})
    monkeypatch.setattr(lasting, "Runs", runs)
    long = LONG * EFFORT.longest_s
    assert does_not_last(replace(searched(old=[300] * 4, new=[20] * 4), run_s=long)) is None
    assert [seconds for _, seconds, _ in runs.made] == [long]


def test_more_work_than_the_twin_has_room_for_does_not_last(monkeypatch: pytest.MonkeyPatch) -> None:
    decline = judged(monkeypatch, searched(old=[300] * 4, new=[20, 22, 21, 20]))
    assert decline is not None
    assert decline.long is None
    assert "over 24 s more work waits" in decline.words


def test_what_is_in_force_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lasting, "Runs", None)
    assert does_not_last(searched(old=[20] * 4, new=[300] * 4)) is None


def test_the_next_best_that_lasts_is_recommended_and_the_answer_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lasting, "Runs", LongRuns({"new": 150.0, "next": 31.0}))
    monkeypatch.setattr(recommendation, "weighed", lambda found, listener, pool: (found, ()))
    found = searched(old=[300] * 4, new=[20] * 4, next=[80] * 4)
    assert found.winner.label == "new"
    lasts, _ = recommendation._lasting(found, SilentListener(), None)  # type: ignore[arg-type]
    assert lasts.winner.label == "next"
    assert lasts.choice.reason.endswith("; not new: over 24 s it gets worse (client.p95_ms 20 ms to 150 ms)")


def test_what_gets_worse_and_is_better_than_what_is_in_force_for_long_as_well_is_recommended_by_long_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recommendation, "weighed", lambda found, listener, pool: (found, ()))
    found = searched(old=[300] * 4, new=[20] * 4, next=[80] * 4)

    def by_long_runs(**p95_ms: float) -> SearchedSettings:
        monkeypatch.setattr(lasting, "Runs", LongRuns(p95_ms))
        result, _ = recommendation._lasting(found, SilentListener(), None)  # type: ignore[arg-type]
        return result

    better = by_long_runs(old=310.0, new=150.0, next=120.0)
    assert better.winner.label == "next"
    assert (better.before.means, better.winner.means) == ({METRIC: 310.0}, {METRIC: 120.0})
    assert better.run_s == LONG * found.run_s
    assert better.choice.reason.endswith("; by runs of 24 s, as nothing better stays as it is")
    for nothing in (by_long_runs(old=310.0, new=320.0, next=330.0), by_long_runs(old=310.0), by_long_runs(new=150.0)):
        assert not nothing.choice.better
        assert nothing.winner.label == IN_FORCE
        assert nothing.run_s == found.run_s


@pytest.mark.slow
def test_scrubs_of_large_chunks_are_quiet_at_first_and_keep_clients_waiting_later() -> None:
    osd = OsdModel(
        Device(1075.0, 60.0 * MIB, shared=False), 935.0, 60.0 * MIB, shards=2, threads_per_shard=2,
        throttle_bytes=256.0 * KIB,
    )  # fmt: skip
    clients = (ClientStream("rbd", rate=2500.0, depth=256, read_share=0.3),)
    # of what nobody writes: writes would stop such chunks
    pools, scrub = (Pool("rbd", 64), Pool("cold", 64)), (ScrubWork("cold", 100_000, 4 * MIB),)
    model = ClusterModel(8, osd, pools, clients, scrub=scrub, hosts=0)
    large = {**nine((0.18, 64, 0), (0.47, 1, 0), (0.0, 64, 0.9)), "osd_max_scrubs": 7, "osd_scrub_chunk_max": 49}
    question = Question(model, parse_slo({"objectives": [f"{METRIC} <= 60 ms"]}))
    effort, seconds = SearchEffort(seeds=2, fresh=2), 12.0
    with Runs(question, effort, seconds, processes=1) as runs:
        seeds = fresh_seeds(effort)
        old, new = (
            Prediction(label, settings, runs.start(model, settings, seeds).collect())
            for label, settings in ((IN_FORCE, {PROFILE: "balanced"}), ("large", large))
        )
    choice = choice_among(question, [old, new])
    found = SearchedSettings(question, effort, seconds, 0, (old, new), (old, new), choice, True)
    assert found.winner.label == "large"
    decline = does_not_last(found, 1)
    assert decline is not None
    assert "it gets worse" in decline.words
