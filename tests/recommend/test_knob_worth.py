"""What knobs of a winner are worth: by simulations that differ in them alone, and what goes back is worth nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, List, Sequence, Tuple, cast

import pytest

from ceph_tuner.core.goals.ranking import RankingChoice
from ceph_tuner.core.knobs.catalogue import MCLOCK_NINE, PROFILE
from ceph_tuner.core.knobs.releases import TENTACLE, Settings, nine
from ceph_tuner.files import slo_file
from ceph_tuner.recommend import IN_FORCE, Prediction, Question, SearchEffort, knob_worth
from ceph_tuner.recommend.answer import answer
from ceph_tuner.recommend.knob_worth import NEAR, KnobWorth, leaves_doubt, moved_knobs_of, weighed, worth_nothing
from ceph_tuner.recommend.paired_effect import PairedEffect, paired_effects
from ceph_tuner.recommend.runs import Runs
from ceph_tuner.recommend.search import SearchedSettings, fresh_seeds
from ceph_tuner.search.optimiser import SettingsProposal
from ceph_tuner.twin.model import MIB, RecoveryWork
from twins import small_model

MODEL = small_model(recovery=(RecoveryWork("rbd", 500_000, 4 * MIB),))
SLO = slo_file.from_text("schema: 1\nname: s\nobjectives:\n  - client.p95_ms <= 0.8 * baseline\n").slo
EFFORT = SearchEffort(seeds=2, fresh=3, events=1e5, shortest_s=8.0)
LIMIT, WEIGHT = "osd_mclock_scheduler_background_recovery_lim", "osd_mclock_scheduler_client_wgt"
RESERVATION = "osd_mclock_scheduler_background_recovery_res"
QUESTION = Question(MODEL, SLO)


class Heard:
    def __init__(self) -> None:
        self.said: List[str] = []

    def phase(self, text: str, done: int, total: int) -> None:
        self.said.append(text)

    def best(self, prediction: Prediction) -> None:
        raise AssertionError("nothing is searched")


def searched(winner: Settings, better: bool = True, confirmed: bool = True) -> SearchedSettings:
    in_force = {PROFILE: "balanced"}
    with Runs(QUESTION, EFFORT, 8.0, processes=1) as runs:
        seeds = fresh_seeds(EFFORT)
        started = [(label, own, runs.start(MODEL, own, seeds)) for label, own in ((IN_FORCE, in_force), ("w", winner))]
        before, after = (Prediction(label, dict(own), waiting.collect()) for label, own, waiting in started)
    choice = RankingChoice(after.candidate, (), before.candidate, better, "by the test")
    return SearchedSettings(QUESTION, EFFORT, 8.0, 12, (before, after), (before, after), choice, confirmed)


def balanced(**changes: float) -> Settings:
    return {**TENTACLE.profiles["balanced"], **changes}


def test_what_does_nothing_goes_back_and_what_does_something_stays_with_its_worth() -> None:
    # nothing is scrubbed, so that fewer scrubs at a time are worth nothing; recovery's limit holds it back
    before = searched(balanced(**{RESERVATION: 0.1, LIMIT: 0.15, "osd_max_scrubs": 1}))
    heard = Heard()
    after, worths = weighed(before, heard, processes=1)
    by_name = {entry.name: entry for entry in worths}
    assert by_name["osd_max_scrubs"].put_back
    assert not by_name[LIMIT].put_back
    assert "osd_max_scrubs" not in after.winner.settings
    assert after.winner.settings[LIMIT] == 0.15
    assert after.choice.better
    assert "worth nothing" in after.choice.reason
    (effect,) = by_name[LIMIT].without
    assert effect.ratio is not None
    # without its limit recovery takes from the clients
    assert effect.ratio[1] > 1
    assert after.runs > before.runs
    assert any("what each knob is worth" in text for text in heard.said)
    # what was there to be compared with is there still, and the numbers come from the fresh seeds of the choice
    assert after.compared[:2] == before.compared
    assert len(after.winner.runs) == EFFORT.fresh
    assert "osd_max_scrubs" not in answer(after).settings


def test_a_reservation_that_cannot_go_back_alone_takes_its_limit_with_it() -> None:
    _, worths = weighed(searched(balanced(**{RESERVATION: 0.05, LIMIT: 0.15})), Heard(), processes=1)
    by_name: Dict[str, KnobWorth] = {entry.name: entry for entry in worths}
    # a limit of 0.15 with the 0.5 of balanced reserved is refused
    assert by_name[RESERVATION].names == (RESERVATION, LIMIT)
    assert by_name[LIMIT].names == (LIMIT,)


OVERRIDE = "osd_mclock_override_recovery_settings"


def test_what_a_knob_needs_beside_it_is_a_part_of_that_knob_and_goes_back_with_it() -> None:
    winner = balanced(**{RESERVATION: 0.1, LIMIT: 0.15, "osd_max_backfills": 2, OVERRIDE: True, "osd_max_scrubs": 1})
    after, worths = weighed(searched(winner), Heard(), processes=1)
    # without its override the first would be a knob that does nothing, and settings that nobody can write
    assert {entry.name: entry.names for entry in worths}["osd_max_backfills"] == ("osd_max_backfills",)
    assert OVERRIDE not in [entry.name for entry in worths]
    assert next(entry for entry in worths if entry.name == "osd_max_scrubs").put_back
    assert ("osd_max_backfills" in after.winner.settings) == (OVERRIDE in after.winner.settings)


def test_several_steps_together_lose_no_more_than_one_may(monkeypatch: pytest.MonkeyPatch) -> None:
    before = searched(balanced(**{RESERVATION: 0.1, LIMIT: 0.15, "osd_max_scrubs": 1, "osd_scrub_chunk_max": 9}))
    lost = 1.0

    class Made:
        def __init__(self, seeds: range) -> None:
            self.runs = [run for seed, run in zip(fresh_seeds(EFFORT), before.winner.runs) if seed in seeds]

        def collect(self) -> Tuple[Dict[str, float], ...]:
            return tuple({**run, "client.p95_ms": lost * run["client.p95_ms"]} for run in self.runs)

    monkeypatch.setattr(knob_worth._KnobTrials, "_start", lambda self, settings, seeds: Made(seeds))
    with Runs(QUESTION, EFFORT, 8.0, processes=1) as runs:
        weighing = knob_worth._KnobTrials(before, Heard(), runs)
        lost = 1.015
        first, choice = weighing._confirmation(before.winner, ("osd_max_scrubs",))
        assert choice is not None
        lost = 1.03
        assert weighing._confirmation(first, ("osd_scrub_chunk_max",))[1] is None


def test_an_override_that_was_set_to_false_before_is_false_again() -> None:
    question = replace(QUESTION, in_force={PROFILE: "balanced", OVERRIDE: False})
    settings: Settings = {PROFILE: "balanced", "osd_max_backfills": 3, OVERRIDE: True}
    assert knob_worth._without(("osd_max_backfills",), settings, question) == {PROFILE: "balanced", OVERRIDE: False}


def test_a_bound_goes_back_with_the_knob_that_it_bounds() -> None:
    winner = Prediction("w", {PROFILE: "balanced", "osd_scrub_chunk_min": 2, "osd_scrub_chunk_max": 4}, ())
    assert knob_worth._group("osd_scrub_chunk_min", winner, QUESTION)[1:] == ("osd_scrub_chunk_max",)


@pytest.mark.parametrize(("better", "confirmed"), [(False, True), (True, False)])
def test_nothing_is_weighed_where_nothing_is_written_or_known(better: bool, confirmed: bool) -> None:
    before = searched(balanced(**{LIMIT: 0.6}), better, confirmed)
    assert weighed(before, Heard(), processes=1) == (before, ())


def test_a_built_in_profile_is_one_whole() -> None:
    before = searched({PROFILE: "high_client_ops"})
    assert weighed(before, Heard(), processes=1) == (before, ())
    assert moved_knobs_of(before.winner, QUESTION) == []


def test_knobs_that_are_as_in_force_are_not_moved() -> None:
    moved = Prediction("w", balanced(**{WEIGHT: 9, "osd_max_scrubs": 1}), ())
    assert moved_knobs_of(moved, QUESTION) == [WEIGHT, "osd_max_scrubs"]
    in_force = replace(QUESTION, in_force={**nine((0.5, 9, 0), (0.5, 1, 0), (0.0, 1, 0.9)), PROFILE: "custom"})
    assert WEIGHT not in moved_knobs_of(moved, in_force)


Ratio = Tuple[float, float, float]


@pytest.mark.parametrize(
    ("metric", "ratio", "nothing"),
    [
        ("client.p95_ms", (1.0, 0.99, 1.01), True),
        # it is better without it
        ("client.p95_ms", (0.8, 0.7, 0.9), True),
        ("client.p95_ms", (1.1, 1.05, 1.15), False),
        # as likely as not chance, and yet too much to throw away
        ("client.p95_ms", (1.1, 0.9, 1.3), False),
        # sure, and nothing on a real cluster
        ("client.p95_ms", (1.005, 1.001, 1 + NEAR / 2), True),
        ("client.p95_ms", (1.01, 1.001, 1 + 2 * NEAR), False),
        ("recovery.bytes_s", (0.9, 0.85, 0.95), False),
        ("recovery.bytes_s", (1.3, 1.2, 1.4), True),
    ],
)
def test_worth_nothing_is_no_worse_by_what_counts_nor_surely(metric: str, ratio: Ratio, nothing: bool) -> None:
    assert worth_nothing([PairedEffect(metric, 1.0, ratio[0], ratio)], [metric]) == nothing


@pytest.mark.parametrize(
    ("metric", "ratio", "doubt"),
    [
        ("client.p95_ms", (1.1, 1 + 1.1 * NEAR, 1.2), False),
        ("client.p95_ms", (1.1, 1 + NEAR / 2, 1.2), True),
        ("client.p95_ms", (1.0, 0.9, 1 + 0.9 * NEAR), False),
        ("client.p95_ms", (1.0, 0.9, 1 + 1.1 * NEAR), True),
        ("recovery.bytes_s", (0.9, 0.85, 0.95), False),
        ("recovery.bytes_s", (0.99, 0.96, 1.1), True),
        ("recovery.bytes_s", (1.1, 1.0, 1.2), False),
    ],
)
def test_more_runs_are_made_where_they_may_tell_otherwise(metric: str, ratio: Ratio, doubt: bool) -> None:
    assert leaves_doubt([PairedEffect(metric, 1.0, ratio[0], ratio)], [metric]) == doubt


def test_what_one_metric_tells_for_sure_no_other_can_change() -> None:
    unsure = PairedEffect("client.p95_ms", 1.0, 1.0, (1.0, 0.5, 2.0))
    worse = PairedEffect("recovery.bytes_s", 1.0, 0.5, (0.5, 0.4, 0.6))
    assert leaves_doubt([unsure], ["client.p95_ms"])
    assert not leaves_doubt([unsure, worse], ["client.p95_ms", "recovery.bytes_s"])
    # it is not seen without the knob, and would not be in more runs
    assert not leaves_doubt([unsure], ["client.p95_ms", "recovery.bytes_s"])


def test_a_knob_that_the_first_seeds_tell_all_of_runs_on_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    winner = balanced(**{RESERVATION: 0.1, LIMIT: 0.15, "osd_max_scrubs": 1, "osd_scrub_chunk_max": 9})
    much, nothing, unsure = (1.5, 1.52), (1.0, 1.0), (0.9, 1.1)
    times = {RESERVATION: much, LIMIT: much, "osd_max_scrubs": nothing, "osd_scrub_chunk_max": unsure}
    runs_by_knob: Dict[str, int] = {}

    class Made:
        def __init__(self, settings: Settings, count: int) -> None:
            # a reservation takes its limit with it
            name = next((name for name in times if settings.get(name) != winner[name]), "none")
            runs_by_knob[name] = runs_by_knob.get(name, 0) + count
            self.means = [{"client.p95_ms": times.get(name, nothing)[number % 2]} for number in range(count)]

        def collect(self) -> List[Dict[str, float]]:
            return self.means

    monkeypatch.setattr(knob_worth._KnobTrials, "_start", lambda self, settings, seeds: Made(settings, len(seeds)))
    effort = SearchEffort(seeds=4, fresh=12)
    before = replace(searched(winner), effort=effort)
    with Runs(QUESTION, effort, 8.0, processes=1) as runs:
        trials = knob_worth._KnobTrials(before, Heard(), runs)
        worths = trials.of(before.winner)
        assert runs_by_knob == {"none": 12, RESERVATION: 2, LIMIT: 2, "osd_max_scrubs": 2, "osd_scrub_chunk_max": 12}
        spared = {entry.name for entry in worths if worth_nothing(entry.without, ["client.p95_ms"])}
        assert spared == {"osd_max_scrubs", "osd_scrub_chunk_max"}
        # people are told intervals of as many pairs as the search had runs, and nothing runs twice for that
        assert [entry.name for entry in trials.reported(before.winner)] == [entry.name for entry in worths]
    assert runs_by_knob == {"none": 12, RESERVATION: 4, LIMIT: 4, "osd_max_scrubs": 4, "osd_scrub_chunk_max": 12}


class Thinks:
    """A search that thinks these knobs worth nothing."""

    def __init__(self, *names: str) -> None:
        self._names = list(names)

    def simpler(self, settings: Settings, built_in: bool) -> Tuple[SettingsProposal, List[str]]:
        return SettingsProposal({}, "fewer changes"), self._names


def test_what_the_search_thinks_worth_nothing_goes_back_together_and_is_not_weighed_alone() -> None:
    before = searched(balanced(**{RESERVATION: 0.1, LIMIT: 0.15, "osd_max_scrubs": 1, "osd_scrub_chunk_max": 9}))
    thought = Thinks("osd_max_scrubs", "osd_scrub_chunk_max", "a knob that is not moved")
    heard = Heard()
    after, worths = weighed(replace(before, learnt=cast(Any, thought)), heard, processes=1)
    back = {entry.name: entry for entry in worths if entry.put_back}
    assert set(back) == {"osd_max_scrubs", "osd_scrub_chunk_max"}
    assert back["osd_max_scrubs"].beside == ("osd_scrub_chunk_max",)
    # what is told of them is what becomes of all without both
    assert back["osd_max_scrubs"].without == back["osd_scrub_chunk_max"].without
    assert worth_nothing(back["osd_max_scrubs"].without, SLO.metrics)
    assert set(after.winner.settings) & set(back) == set()
    assert heard.said[0].startswith("without 2 knobs that the search thinks")
    assert {entry.name for entry in worths} - set(back) == {RESERVATION, LIMIT}


def test_a_search_that_thinks_wrong_costs_the_first_seeds_alone() -> None:
    before = searched(balanced(**{RESERVATION: 0.1, LIMIT: 0.15, "osd_max_scrubs": 1}))
    wrong = replace(before, learnt=cast(Any, Thinks(LIMIT, "osd_max_scrubs")))
    after, worths = weighed(wrong, Heard(), processes=1)
    as_weighed, worths_weighed = weighed(before, Heard(), processes=1)
    assert after.runs == as_weighed.runs + EFFORT.seeds
    assert worths == worths_weighed
    assert after.winner == as_weighed.winner


def test_what_is_not_seen_any_more_has_got_worse() -> None:
    assert not worth_nothing([], ["client.p95_ms"])
    assert worth_nothing([PairedEffect("ops.slow", 0.0, 0.0, None)], ["ops.slow"])
    assert not worth_nothing([PairedEffect("ops.slow", 0.0, 3.0, None)], ["ops.slow"])


def test_pairs_leave_what_runs_have_in_common_out_of_the_interval() -> None:
    def seen(values: Sequence[float]) -> Prediction:
        return Prediction("p", {}, tuple({"client.p95_ms": value} for value in values))

    (effect,) = paired_effects(["client.p95_ms"], seen([1, 10, 100]), seen([2, 20, 200]))
    assert effect.ratio == pytest.approx((2, 2, 2))
    assert paired_effects(["recovery.bytes_s"], seen([1, 2]), seen([1, 2])) == ()


def test_all_of_the_nine_can_be_named() -> None:
    moved = nine((0.1, 9, 0.8), (0.2, 8, 0.7), (0.3, 7, 0.6))
    assert moved_knobs_of(Prediction("w", moved, ()), QUESTION) == list(MCLOCK_NINE)
