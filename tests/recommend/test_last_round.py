"""The best again, on fresh seeds: what is surely beaten on the first of them runs on no more, and wins nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, List, Mapping, Sequence, cast

import pytest

from ceph_tuner.core.goals.slo import Slo, parse_slo
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.recommend import IN_FORCE, Prediction, Question, SearchEffort
from ceph_tuner.recommend import search as search_module
from ceph_tuner.recommend.runs import Runs
from ceph_tuner.recommend.search import fresh_seeds, in_rounds
from silent_listener import SilentListener
from twins import small_model

METRIC = "client.p95_ms"
EFFORT = SearchEffort(seeds=4, fresh=12)
QUESTION = Question(small_model(), parse_slo({"objectives": [f"{METRIC} <= 100 ms"]}))


class MadeRuns:
    """Runs whose p95 (ms) is told by settings and seed."""

    seconds, done = 4.0, 0

    def __init__(self, p95_ms: Dict[str, List[float]], scrubbed: Mapping[str, float] = {}) -> None:
        self._p95_ms, self._scrubbed = p95_ms, scrubbed
        self.seeds: Dict[str, List[int]] = {}

    def start(self, model: Any, settings: Settings, seeds: Sequence[int]) -> MadeRuns.Started:
        name = str(settings[PROFILE])
        self.seeds.setdefault(name, []).extend(seeds)
        values = self._p95_ms[name]
        scrubbed = {"scrub.objects_s": self._scrubbed[name]} if name in self._scrubbed else {}
        return MadeRuns.Started([{METRIC: values[seed % len(values)], **scrubbed} for seed in seeds])

    class Started:
        def __init__(self, means: List[Dict[str, float]]) -> None:
            self._means = means

        def collect(self) -> List[Dict[str, float]]:
            return self._means


def again(slo: Slo = QUESTION.slo, scrubbed: Mapping[str, float] = {}, **p95_ms: List[float]) -> Any:
    runs = MadeRuns(p95_ms, scrubbed)
    race = search_module._Race(replace(QUESTION, slo=slo), EFFORT, SilentListener(), cast(Runs, runs), 0)
    entrants = [
        Prediction(
            IN_FORCE if name == "old" else name,
            {PROFILE: name},
            tuple(runs.start(None, {PROFILE: name}, [0]).collect()),
        )
        for name in p95_ms
    ]
    runs.seeds.clear()
    race.tried = entrants
    return runs, race._again(entrants)


def test_what_is_surely_beaten_runs_on_the_first_seeds_alone() -> None:
    runs, predictions = again(old=[80, 82], best=[20, 22], alike=[20.5, 21.5], beaten=[400, 410])
    first, others = in_rounds(fresh_seeds(EFFORT), EFFORT)
    assert (len(first), len(others)) == (4, 8)
    every = list(fresh_seeds(EFFORT))
    # what is in force is what all are held against
    assert runs.seeds == {"old": every, "best": every, "alike": every, "beaten": list(first)}
    assert [len(entry.runs) for entry in predictions] == [12, 12, 12, 4]


def test_what_may_win_yet_goes_on() -> None:
    # one seed in two it is the better one by far
    runs, _ = again(old=[80, 82], best=[20, 600], other=[700, 15])
    assert len(runs.seeds["other"]) == EFFORT.fresh


def test_what_keeps_a_bound_that_the_best_may_yet_miss_goes_on() -> None:
    wanted = parse_slo({"objectives": [f"{METRIC} <= 100 ms", {"objective": "scrub.objects_s >= 12", "hard": False}]})
    # the best scrubs more, and is beyond the bound on later seeds
    first, others = in_rounds(fresh_seeds(EFFORT), EFFORT)
    at = {seed % EFFORT.fresh: 99.0 if seed in first else 120.0 for seed in (*first, *others)}
    edge, room = [at[place] for place in range(EFFORT.fresh)], [60.0]
    scrubbed = {"old": 12.0, "edge": 10.0, "room": 8.0}
    _, predictions = again(wanted, scrubbed, old=[400, 410], edge=edge, room=room)
    assert [len(entry.runs) for entry in predictions] == [12, 12, 12]
    choice = search_module.choice_among(replace(QUESTION, slo=wanted), predictions)
    assert choice.winner.label == "room"


@pytest.mark.parametrize("seeds", [1, 2])
def test_of_one_pair_nothing_is_known(seeds: int) -> None:
    first, others = in_rounds(range(10, 15), SearchEffort(seeds=seeds))
    assert (list(first), list(others)) == ([10, 11], [12, 13, 14])


def settled(*p95_ms: float, trials: int = 16, batch: int = 2) -> bool:
    runs = cast(Runs, MadeRuns({}))
    race = search_module._Race(QUESTION, SearchEffort(trials=trials, batch=batch), SilentListener(), runs, 0)
    race.tried = [Prediction(f"trial {number}", {}, ({METRIC: value},)) for number, value in enumerate(p95_ms)]
    race._trials = len(p95_ms) - 1
    return race._has_settled()


def test_the_search_ends_where_two_batches_of_its_models_gain_next_to_nothing() -> None:
    assert settled(200, *[40] * 12)
    # the models' first trials come after half of them
    assert not settled(200, *[40] * 11)
    # what is missed is searched for to the end
    assert not settled(200, *[150] * 14)
    assert not settled(200, *[40] * 11, 2)


def test_of_settings_that_do_the_same_run_for_run_the_cheapest_to_reach_is_run_again() -> None:
    race = search_module._Race(QUESTION, EFFORT, SilentListener(), cast(Runs, MadeRuns({})), 0)
    same, other = ({METRIC: 20.0}, {METRIC: 22.0}), ({METRIC: 20.0}, {METRIC: 22.5})
    snaptrim = "osd_pg_max_concurrent_snap_trims"
    predictions = [
        Prediction("both", {"osd_max_scrubs": 7, snaptrim: 5}, same),
        Prediction("scrubs", {"osd_max_scrubs": 7}, same),
        Prediction("chunks", {"osd_scrub_chunk_max": 7}, other),
        Prediction("trims", {snaptrim: 5}, same),
    ]
    assert [entry.label for entry in race._different(predictions)] == ["scrubs", "chunks"]
