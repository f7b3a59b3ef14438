"""Regimes as questions to the twin, and its answers as pages of the book."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Dict, List, Optional, Tuple, cast

import pytest

from ceph_tuner.core.book.page import TWIN, UNVALIDATED, Page
from ceph_tuner.core.book.page_check import check_page
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.goals.slo_calendar import SloCalendar, parse_slo_calendar
from ceph_tuner.core.knobs.catalogue import KNOBS, MCLOCK_NINE, PROFILE
from ceph_tuner.core.knobs.releases import QUINCY_EARLY, REEF, Release
from ceph_tuner.core.measure.sample import Measure, Window
from ceph_tuner.core.measure.timeline import POLICY, REGIME, TimelineEntry
from ceph_tuner.core.regimes.bounds import DEFAULT, Marker, PolicyMarker, RegimeBounds, regime_of
from ceph_tuner.files import slo_file
from ceph_tuner.recommend import Prediction, SearchEffort, regime_pages, regime_questions
from ceph_tuner.recommend.lasting import Decline
from ceph_tuner.recommend.question import question_of
from ceph_tuner.recommend.recommendation import recommend
from ceph_tuner.recommend.regime_pages import CLIENT_WEIGHT, PageTrial, RegimeAnswer, TriedSettings, pages_of
from ceph_tuner.recommend.regime_questions import (
    MOST_PREDICTED,
    combinations_of,
    hours_in,
    question_by_policy,
    question_in,
    slo_in,
    usual_regimes,
    work_in,
)
from ceph_tuner.twin.described_cluster import DescribedCluster
from ceph_tuner.twin.model import MIB, ClientStream, ClusterModel, RecoveryWork, ScrubWork, SnaptrimWork
from ceph_tuner.twin.simulation import Simulation
from silent_listener import SilentListener
from twins import small_model

WORK: Any = {
    "recovery": (RecoveryWork("rbd", 500_000, MIB), RecoveryWork("rbd", 400_000, MIB, degraded=False)),
    "scrub": (ScrubWork("rbd", 200_000, MIB),),
    "snaptrim": (SnaptrimWork("rbd", 100_000, MIB),),
}
MODEL = small_model(clients=(ClientStream("rbd", rate=225.0), ClientStream("rbd", rate=75.0)), **WORK)
CLUSTER = DescribedCluster("small", MODEL)
EFFORT = SearchEffort(trials=6, seeds=2, fresh=4, events=1e5, shortest_s=1.0)
HEAVIEST = KNOBS[CLIENT_WEIGHT].search_high
CAPACITY = MODEL.osds * MODEL.osd.capacity_iops


def slo(*objectives: str, goal: str = "") -> Slo:
    lines = "".join(f"  - {line}\n" for line in objectives)
    return slo_file.from_text(f"schema: 1\nname: wanted\nobjectives:\n{lines}{goal}").slo


CLIENTS = slo("client.p95_ms <= 60 s")
BETTER = slo("client.p95_ms <= 0.8 * baseline", "recovery.bytes_s >= 1 kB/s")
"""Limits and small chunks of recovery give it here."""


def kinds(regime: str, wanted: Slo = CLIENTS) -> Tuple[str, ...]:
    return question_in(regime, CLUSTER, wanted, DEFAULT).work


def test_markers_may_be_named_in_any_order_and_none_is_idle() -> None:
    assert regime_of("trimming + recovering", DEFAULT) == "recovering+trimming"
    assert regime_of("idle", DEFAULT) == "idle"
    for wrong in ("", "recover", "idle+busy", "busy+"):
        with pytest.raises(InputError, match="idle, or with"):
            regime_of(wrong, DEFAULT)


def test_usual_are_each_marker_alone_and_what_the_cluster_was_in() -> None:
    entries = [
        TimelineEntry(1.0, REGIME, "", "busy+recovering"),
        TimelineEntry(2.0, REGIME, "class=ssd", "busy+trimming"),
        TimelineEntry(3.0, POLICY, "", "night"),
        TimelineEntry(4.0, REGIME, "", "of-other-bounds"),
    ]
    assert usual_regimes(DEFAULT, entries) == (
        "idle", "backfilling", "busy", "recovering", "scrub-late", "trimming", "busy+recovering",
    )  # fmt: skip


def test_what_markers_make_together_and_was_not_met_yet_is_named_as_the_plugin_does() -> None:
    assert combinations_of(("idle", "busy"), DEFAULT) == ()
    # of as many markers what is at risk goes first
    assert combinations_of(("idle", "recovering", "busy", "trimming"), DEFAULT) == (
        "busy+recovering", "recovering+trimming", "busy+trimming", "busy+recovering+trimming",
    )  # fmt: skip
    assert combinations_of(("idle", "recovering", "busy", "trimming", "busy+trimming"), DEFAULT) == (
        "busy+recovering", "recovering+trimming", "busy+recovering+trimming",
    )  # fmt: skip
    every = combinations_of(usual_regimes(DEFAULT), DEFAULT)
    assert len(every) == 2**5 - 1 - 5
    assert all(DEFAULT.tells(regime) for regime in every)
    assert [regime.count("+") for regime in every] == sorted(regime.count("+") for regime in every)
    many = RegimeBounds(tuple(Marker(f"m{number}", "client.iops", number + 1, number) for number in range(12)))
    singles = usual_regimes(many)
    assert len(singles) + len(combinations_of(singles, many)) == MOST_PREDICTED


def test_a_regime_has_the_work_of_its_markers_and_no_other() -> None:
    assert work_in(("busy+recovering", "trimming"), DEFAULT) == {"recovery", "snaptrim"}
    assert kinds("idle") == ("client",)
    assert kinds("recovering") == ("client", "recovery")
    # what is moved is recovered as well, as Ceph counts
    assert set(kinds("backfilling")) == {"client", "recovery", "backfill"}
    model = question_in("backfilling", CLUSTER, CLIENTS, DEFAULT).question.model
    assert [work.degraded for work in model.recovery] == [False]
    assert kinds("scrub-late+trimming") == ("client", "scrub", "snaptrim")


def test_scrub_goes_on_in_every_regime_but_beside_recovery_where_it_is_wanted() -> None:
    wanted = slo("client.p95_ms <= 60 s", "scrub.interval_s <= 4 w")
    assert kinds("idle", wanted) == ("client", "scrub")
    assert kinds("recovering", wanted) == ("client", "recovery")


def test_objectives_about_other_work_are_left_out_and_named() -> None:
    wanted = slo(
        "client.p95_ms <= 60 s", "recovery.finish_s <= 2 h", "scrub.pgs_late <= 0", goal="maximise: recovery.bytes_s"
    )
    question = question_in("busy", CLUSTER, wanted, DEFAULT)
    assert [each.metric for each in question.question.slo.objectives] == ["client.p95_ms"]
    assert question.question.slo.goal is None
    assert len(question.left_out) == 3
    assert question_in("recovering", CLUSTER, wanted, DEFAULT).question.slo.goal is not None
    with pytest.raises(InputError, match="no objective about its work"):
        question_in("trimming", CLUSTER, slo("recovery.finish_s <= 2 h"), DEFAULT)


def test_a_page_comes_while_the_work_goes_on_under_what_is_in_force() -> None:
    question = question_in("recovering", replace(CLUSTER, settings={"osd_max_scrubs": 5}), CLIENTS, DEFAULT)
    assert question.question.switched_from == {"osd_max_scrubs": 5}
    assert replace(question.question, switched=False).switched_from is None


def test_the_work_of_a_regime_outlasts_every_run_however_little_is_left_now() -> None:
    last = {
        "recovery": (RecoveryWork("rbd", 20, MIB), RecoveryWork("rbd", 10, MIB, degraded=False)),
        "snaptrim": (SnaptrimWork("rbd", 30, MIB),),
    }
    ending = replace(CLUSTER, model=small_model(clients=MODEL.clients, **last))
    model = question_in("backfilling+recovering+trimming", ending, CLIENTS, DEFAULT).question.model
    for profile in model.release.profiles:
        simulation = Simulation(model, {PROFILE: profile})
        simulation.advance(60.0)
        left = simulation.counters()
        assert min(left.degraded_left, left.misplaced_left, left.clones_left) > 0
    # in PGs that are as large as they are
    degraded = model.recovery[0]
    assert degraded.objects / degraded.rounds == 20
    # and times to its end are of what there is
    assert all(work.objects / work.times == there for work, there in zip(model.recovery, (20, 10)))
    assert model.snaptrim[0].clones / model.snaptrim[0].times == 30


def test_work_that_is_over_before_a_run_counts_is_refused_by_its_objective() -> None:
    ending = replace(CLUSTER, model=small_model(clients=MODEL.clients, recovery=(RecoveryWork("rbd", 3, MIB),)))
    for wanted in (
        slo("recovery.bytes_s >= 0.7 * baseline"),
        slo("client.p95_ms <= 60 s", goal="minimise: recovery.finish_s\n"),
    ):
        # it goes on meanwhile under what is in force
        question = replace(question_of(ending, wanted), switched=True)
        with pytest.raises(InputError, match=r"recovery.*nothing of it is left once a run of the twin counts"):
            recommend(question, EFFORT, SilentListener(), 1, explain=False)


def test_a_regime_whose_work_is_not_described_cannot_be_asked_of() -> None:
    with pytest.raises(InputError, match="no snaptrim in the description"):
        question_in("trimming", replace(CLUSTER, model=replace(MODEL, snaptrim=())), CLIENTS, DEFAULT)


def asked_iops(regime: str, *seen: float, model: ClusterModel = MODEL) -> float:
    question = question_in(regime, replace(CLUSTER, model=model), CLIENTS, DEFAULT, seen)
    rates = [stream.rate or 0.0 for stream in question.question.model.clients]
    assert question.client_iops is not None
    assert math.isclose(sum(rates), question.client_iops)
    # each stream keeps its part
    assert math.isclose(rates[0], 3 * rates[1])
    return question.client_iops / CAPACITY


def test_clients_ask_for_the_most_that_was_seen_in_the_regime() -> None:
    described = 300.0 / CAPACITY
    assert described < 0.1
    assert asked_iops("idle") == pytest.approx(described)
    assert asked_iops("idle", 0.09 * CAPACITY, 0.5 * CAPACITY) == pytest.approx(0.09)
    assert asked_iops("busy") == pytest.approx(0.1)
    assert asked_iops("busy", 0.09 * CAPACITY, 0.5 * CAPACITY) == pytest.approx(0.5)
    loaded = replace(
        MODEL, clients=(ClientStream("rbd", rate=0.3 * CAPACITY), ClientStream("rbd", rate=0.1 * CAPACITY))
    )
    # nothing was seen below the bound: between where it begins and where it ends
    assert asked_iops("idle", model=loaded) == pytest.approx(0.075)
    assert asked_iops("busy", model=loaded) == pytest.approx(0.4)


def test_rates_stay_where_no_bound_tells_them_or_clients_have_none() -> None:
    by_queue = RegimeBounds((Marker("trimming", "snaptrim.queue", 1, 0),))
    assert question_in("trimming", CLUSTER, CLIENTS, by_queue).client_iops is None
    closed = replace(CLUSTER, model=replace(MODEL, clients=(ClientStream("rbd", depth=8),)))
    question = question_in("busy", closed, CLIENTS, DEFAULT)
    assert (question.client_iops, question.question.model.clients) == (None, closed.model.clients)


OFFICE, NIGHT = PolicyMarker("office", "office"), PolicyMarker("night", "dark")
BY_POLICY = RegimeBounds((OFFICE, NIGHT, *DEFAULT.markers))
WITHOUT_RATES = RegimeBounds((OFFICE, NIGHT, Marker("recovering", "recovery.objects_left", 1, 0)))


def calendar(*policies: str) -> SloCalendar:
    """Each holds for one hour after another of the day, and wants other latencies."""
    document: Dict[str, Any] = {"objectives": ["client.p95_ms <= 60 ms", "recovery.finish_s <= 9 s"]}
    items = [
        {"name": name, "hours": f"{hour:02d}:00-{hour + 1:02d}:00", "objectives": [f"client.p95_ms <= {hour + 1} ms"]}
        for hour, name in enumerate(policies)
    ]
    return parse_slo_calendar({**document, **({"calendar": {"policies": items}} if items else {})})


def wanted(regime: str, of: SloCalendar, bounds: RegimeBounds = BY_POLICY) -> List[str]:
    return [each.text for each in slo_in(regime, of, bounds).objectives]


def test_what_is_wanted_is_that_of_the_regimes_policy_and_else_of_the_base() -> None:
    both, rest = calendar("office", "dark"), ["recovery.finish_s <= 9 s"]
    assert wanted("office+busy", both) == [*rest, "client.p95_ms <= 1 ms"]
    assert wanted("night", both) == [*rest, "client.p95_ms <= 2 ms"]
    assert wanted("busy", both) == ["client.p95_ms <= 60 ms", *rest]
    assert wanted("busy", both, DEFAULT) == wanted("busy", calendar()) == ["client.p95_ms <= 60 ms", *rest]
    with pytest.raises(InputError, match="no policy dark in the calendar, expected base, office"):
        slo_in("night", calendar("office"), BY_POLICY)
    with pytest.raises(InputError, match="no policy dark in the calendar, expected a calendar with that policy"):
        slo_in("night", calendar(), BY_POLICY)


def test_where_each_policy_and_the_base_has_a_marker_no_regime_is_without_one() -> None:
    every = RegimeBounds((*BY_POLICY.markers, PolicyMarker("else", "base")))
    assert wanted("else", calendar("office", "dark"), every)[0] == "client.p95_ms <= 60 ms"
    with pytest.raises(InputError, match="one of office, night, else in it: each policy of the calendar has a marker"):
        slo_in("busy", calendar("office", "dark"), every)


def test_where_each_policy_has_a_marker_each_marker_is_searched_under_each_policy() -> None:
    every, policies = (
        RegimeBounds((*BY_POLICY.markers, PolicyMarker("else", "base"))),
        calendar("office", "dark").policy_names,
    )
    single = [marker.name for marker in DEFAULT.markers]
    usual = usual_regimes(every, (), "", policies)
    assert set(usual) == {"office", "night", "else"} | {
        regime_of(f"{policy}+{name}", every) for policy in ("office", "night", "else") for name in single
    }
    for regime in usual:
        assert wanted(regime, calendar("office", "dark"), every)
    others = combinations_of(usual, every, policies)
    assert len(usual) + len(others) == MOST_PREDICTED
    assert all(every.policy_of(regime) is not None for regime in others)
    assert {f"{policy}+busy+recovering" for policy in ("office", "night")} <= {*others}
    assert "busy+recovering+else" in others
    # the base has no marker: the time outside of the policies has no name in a regime
    assert usual_regimes(BY_POLICY, (), "", policies) == usual_regimes(BY_POLICY)
    # a policy that the calendar does not have never holds
    assert "night+busy" not in usual_regimes(every, (), "", calendar("office").policy_names)


def test_no_policy_starves_and_work_at_risk_goes_first_where_there_is_no_room_for_all() -> None:
    both = calendar("office", "dark")
    usual = usual_regimes(BY_POLICY, (), "", both.policy_names)
    others = combinations_of(usual, BY_POLICY, both.policy_names)
    assert len(usual) + len(others) == MOST_PREDICTED
    by_policy = {
        policy: [each for each in others if BY_POLICY.policy_of(each) == policy] for policy in (None, "office", "dark")
    }
    counts = [len(each) for each in by_policy.values()]
    assert max(counts) - min(counts) <= 1
    for policy, name in (("office", "office"), ("dark", "night")):
        alone = [name, *(regime_of(f"{name}+{each.name}", BY_POLICY) for each in DEFAULT.markers)]
        assert by_policy[policy][0] == regime_of(f"{name}+recovering", BY_POLICY)
        assert {*alone} <= {*usual, *others}
        beside = ("busy", "backfilling", "scrub-late", "trimming")
        assert {regime_of(f"{name}+recovering+{each}", BY_POLICY) for each in beside} <= {*others}


def test_what_the_cluster_was_in_is_named_by_the_markers_of_now() -> None:
    reordered = RegimeBounds(tuple(reversed(DEFAULT.markers)))
    entries = [TimelineEntry(1.0, REGIME, "", "busy+recovering"), TimelineEntry(2.0, REGIME, "", "recovering+busy")]
    usual = usual_regimes(reordered, entries)
    assert usual[-1] == "recovering+busy"
    assert all(reordered.tells(regime) for regime in usual)
    # under markers of each policy what named none is never told again
    every, policies = (
        RegimeBounds((*BY_POLICY.markers, PolicyMarker("else", "base"))),
        calendar("office", "dark").policy_names,
    )
    assert "busy+recovering" not in usual_regimes(every, entries, "", policies)


def test_how_much_work_lasts_is_tried_once_for_regimes_of_the_same_work_and_clients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried_models: List[ClusterModel] = []

    def counted(model: ClusterModel, settings: Any) -> Simulation:
        tried_models.append(model)
        return Simulation(model, settings)

    monkeypatch.setattr(regime_questions, "Simulation", counted)
    policies = calendar("office", "dark")
    cluster = replace(CLUSTER, model=replace(MODEL, network_s=51e-6))

    def models_of(*regimes: str) -> List[ClusterModel]:
        questions = (question_by_policy(regime, cluster, policies, BY_POLICY, (), 0.0) for regime in regimes)
        return [question.question.model for question in questions]

    one, *others = models_of("recovering", "office+recovering", "night+recovering", "office+recovering")
    assert others == [one] * 3
    each = len(MODEL.release.profiles)
    assert len(tried_models) == each
    # other work, or more clients, is another question
    models_of("office+trimming", "office+busy+recovering", "night+busy+recovering", "trimming")
    assert len(tried_models) == 3 * each


def hour(number: int, iops: float) -> Window:
    start = 20_000 * 86400.0 + number * 3600.0
    return Window(start, start + 3600.0, {"client.iops": Measure(iops, 0.0, 1)})


def test_clients_of_a_policy_ask_for_the_most_of_its_hours() -> None:
    both, hours = calendar("office", "dark"), [hour(0, 900.0), hour(1, 20.0), hour(2, 300.0), hour(24, 700.0)]
    now = hours[1].end - 60.0

    def seen(regime: str, of: SloCalendar = both, bounds: RegimeBounds = BY_POLICY) -> Tuple[List[float], bool]:
        own, present = hours_in(regime, of, bounds, hours, now)
        return [window.means["client.iops"] for window in own], present

    assert seen("office+busy") == ([900.0, 700.0], False)
    assert seen("night") == ([20.0], True)
    # outside of the policies that have markers
    assert seen("busy") == ([300.0], False)
    everything = ([900.0, 20.0, 300.0, 700.0], True)
    assert seen("busy", both, DEFAULT) == everything
    # none of its hours is kept
    assert seen("night", calendar("office", "elsewhen", "x", "dark")) == everything


def test_a_policys_hours_tell_what_clients_ask_for_also_where_no_bound_does() -> None:
    def asked(bounds: RegimeBounds, *seen: float, present: bool = False) -> Any:
        return question_in("night", CLUSTER, CLIENTS, bounds, seen, present=present).client_iops

    assert asked(WITHOUT_RATES, 20.0, 30.0) == pytest.approx(30.0)
    assert asked(WITHOUT_RATES, 20.0, present=True) == pytest.approx(300.0)
    # nobody knows: as they are
    assert asked(WITHOUT_RATES, 0.0) is None
    # below the bound of what is busy
    assert asked(BY_POLICY, 20.0, 0.5 * CAPACITY) == pytest.approx(20.0)
    assert asked(BY_POLICY, 0.5 * CAPACITY) == pytest.approx(0.075 * CAPACITY)


def test_two_policies_make_no_regime_together() -> None:
    usual = usual_regimes(BY_POLICY, [TimelineEntry(1.0, REGIME, "", "office+busy")])
    assert usual[:3] == ("idle", "backfilling", "busy")
    assert {"office", "night", "office+busy"} <= set(usual)
    found = combinations_of(("idle", "office", "night", "busy", "office+busy"), BY_POLICY)
    assert found == ("night+busy",)


def answered(wanted: Slo, in_force: Any = None, regime: str = "recovering", cluster: Any = CLUSTER) -> RegimeAnswer:
    question = question_in(regime, replace(cluster, settings=in_force or {}), wanted, DEFAULT)
    return RegimeAnswer(question, recommend(question.question, EFFORT, SilentListener(), 1, explain=False))


def pages(*answers: RegimeAnswer) -> Dict[str, Page]:
    return {page.regime: page for page in pages_of(answers, 5.0, "osd/class:ssd", processes=1)}


@pytest.fixture(scope="module")
def better() -> RegimeAnswer:
    return answered(BETTER)


@pytest.fixture(scope="module")
def no_better() -> RegimeAnswer:
    return answered(slo("client.p95_ms <= 60 s", "recovery.bytes_s >= 1 kB/s"))


@pytest.mark.slow
def test_an_answer_is_a_page_that_says_all_of_its_settings() -> None:
    page = pages(answered(BETTER, {PROFILE: "high_client_ops", "osd_max_scrubs": 5}))["recovering"]
    assert (page.number, page.state, page.origin, page.at, page.target) == (1, UNVALIDATED, TWIN, 5.0, "osd/class:ssd")
    # whatever is in force when it is written
    assert page.settings[PROFILE] in ("custom", "high_client_ops")
    assert (page.settings[PROFILE] == "custom") == (MCLOCK_NINE[0] in page.settings)
    assert page.settings["osd_max_scrubs"] == 5
    assert page.effects["client.p95_ms"] < -0.2
    assert page.load["client.iops"] > 0
    # a boost asks how fast the work is under it
    assert page.means["recovery.bytes_s"] > 0
    assert "predicted by the twin" in page.verdict
    check_page(page, "20.2.1")
    with pytest.raises(InputError, match="page 1"):
        check_page(replace(page, settings={"osd_op_num_shards": 4}), "20.2.1")


@pytest.mark.slow
@pytest.mark.parametrize(("release", "version"), [(QUINCY_EARLY, "17.2.0"), (REEF, "18.2.7")])
def test_a_page_is_in_the_units_of_its_release(release: Release, version: str) -> None:
    # early Quincy limits recovery by default, and later releases do not
    wanted = BETTER if release is REEF else slo("client.p95_ms <= 60 s", "recovery.bytes_s >= 1.3 * baseline")
    old = replace(CLUSTER, model=replace(MODEL, release=release, version=None))
    page = pages(answered(wanted, cluster=old))["recovering"]
    check_page(page, version)
    shares = [page.settings[name] for name in MCLOCK_NINE if name.endswith("_res") and name in page.settings]
    assert all(isinstance(share, int) == (release.units == "iops") for share in shares)


@pytest.mark.slow
def test_no_page_is_no_better_or_of_a_search_that_was_interrupted(
    better: RegimeAnswer, no_better: RegimeAnswer
) -> None:
    unconfirmed = replace(better.recommendation, searched=replace(better.recommendation.searched, confirmed=False))
    assert pages(replace(better, recommendation=unconfirmed)) == {}
    assert not no_better.recommendation.better
    assert pages(no_better) == {}


@pytest.mark.slow
def test_clients_of_a_page_weigh_the_most_so_that_no_limited_class_goes_first_once_it_is_lifted(
    better: RegimeAnswer,
) -> None:
    light = better.recommendation.searched.winner
    assert int(light.settings[CLIENT_WEIGHT]) < HEAVIEST
    (page,) = pages(better).values()
    assert page.settings[CLIENT_WEIGHT] == HEAVIEST
    assert {**page.settings, CLIENT_WEIGHT: light.settings[CLIENT_WEIGHT]}.items() >= light.settings.items()
    assert f"clients weigh {HEAVIEST}" in page.verdict
    assert page.effects["client.p95_ms"] < -0.2


def test_clients_weigh_as_found_where_more_does_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    before, light, harmed = prediction(300.0, 50.0), prediction(60.0, 50.0), prediction(60.0, 20.0)
    light = replace(light, settings=dict.fromkeys(MCLOCK_NINE, 1))

    def answer_of(winner: Prediction, knobs: Any) -> RegimeAnswer:
        searched = SimpleNamespace(
            winner=winner, before=before, judge=Judge(TRIED, before.means), effort=EFFORT, run_s=4.0
        )
        question = question_in("recovering", CLUSTER, TRIED, DEFAULT, knobs=knobs)
        return RegimeAnswer(question, cast(Any, SimpleNamespace(searched=searched)))

    def with_heavy(winner: Prediction, heavy: Prediction, knobs: Any = None) -> Prediction:
        trials = {"light": PageTrial(winner, winner), "heavy": PageTrial(heavy, heavy)}
        monkeypatch.setattr(regime_pages, "_trials", lambda *_: trials)
        monkeypatch.setattr(regime_pages, "_lasting", lambda tried, *_: tried)
        return regime_pages._with_heavy_clients(answer_of(winner, knobs), 1)

    assert with_heavy(light, harmed) is light
    # recovery as fast as before: its label stays that of the search
    as_good = replace(prediction(61.0, 50.0), label="heavy")
    assert with_heavy(light, as_good) == replace(as_good, label=light.label)
    # no knob moves that the operator did not name
    assert with_heavy(light, as_good, ["osd_mclock_scheduler_background_best_effort_lim"]) is light
    assert with_heavy(light, as_good, [CLIENT_WEIGHT]) is not light
    # nothing to weigh: a built-in profile, and clients that weigh the most
    for winner in (replace(light, settings={}), replace(light, settings={**light.settings, CLIENT_WEIGHT: HEAVIEST})):
        assert with_heavy(winner, as_good) is winner


@pytest.mark.slow
def test_where_a_hard_objective_is_missed_in_any_case_a_page_misses_it_less() -> None:
    missed = answered(slo("client.p95_ms <= 0.001 ms", "recovery.bytes_s >= 1 kB/s"))
    assert not missed.recommendation.keeps_hard
    (page,) = pages(missed).values()
    assert page.effects["client.p95_ms"] < -0.2
    assert "still misses client.p95_ms" in page.verdict


P95, RECOVERY = "client.p95_ms", "recovery.bytes_s"
TRIED = slo("client.p95_ms <= 100 ms", "recovery.bytes_s >= 0.9 * baseline")


def prediction(p95: float, recovery: float) -> Prediction:
    return Prediction("tried", {}, tuple({P95: p95 * worse, RECOVERY: recovery} for worse in (0.9, 1.1)))


def tried(before: Prediction, by_source: Dict[str, PageTrial], wanted: Slo = TRIED) -> TriedSettings:
    question = question_in("recovering", CLUSTER, wanted, DEFAULT)
    return TriedSettings(question, Judge(wanted, before.means), before, by_source)


def fit(before: Tuple[float, float], wanted: Slo = TRIED, **by_source: Tuple[float, float]) -> Dict[str, float]:
    """p95 and recovery of each; gives the margins of those that may have a page."""
    predictions = {name: prediction(*values) for name, values in by_source.items()}
    trials = {name: PageTrial(each, each) for name, each in predictions.items()}
    return tried(prediction(*before), trials, wanted).margins()


def test_settings_that_keep_every_hard_objective_may_have_a_page_and_others_beside_them_not() -> None:
    margins = fit((150.0, 50.0), roomy=(50.0, 48.0), tight=(95.0, 50.0), slow=(50.0, 20.0), wild=(140.0, 60.0))
    # of the worst run
    assert margins == {"roomy": pytest.approx(0.45), "tight": pytest.approx(-0.045)}


def test_where_none_keeps_them_those_that_miss_least_and_break_nothing_more_may_have_one() -> None:
    margins = fit((300.0, 50.0), less=(120.0, 50.0), alike=(123.0, 50.0), much=(200.0, 50.0), slow=(101.0, 20.0))
    assert set(margins) == {"less", "alike"}
    # 44 is a little less than 0.9 * 50, and 42 is not
    assert set(fit((300.0, 50.0), hardly=(101.0, 44.0), more=(101.0, 42.0))) == {"hardly"}


def test_settings_that_fall_behind_in_what_is_wished_are_not_shared() -> None:
    each = {"fast": (80.0, 100.0), "as_good": (90.0, 97.0), "roomy": (20.0, 50.0)}
    assert set(fit((300.0, 50.0), **each)) == set(each)
    soft = slo("client.p95_ms <= 100 ms", "{objective: recovery.bytes_s >= 100 B/s, hard: false}")
    assert set(fit((300.0, 50.0), soft, **each)) == {"fast", "as_good"}
    goal = slo("client.p95_ms <= 100 ms", goal="maximise: recovery.bytes_s\n")
    assert set(fit((300.0, 50.0), goal, **each)) == {"fast", "as_good"}
    # where nothing does better they are as good as it gets
    assert set(fit((300.0, 50.0), soft, roomy=(20.0, 50.0), wild=(140.0, 100.0))) == {"roomy"}


def test_settings_that_get_worse_in_the_long_run_are_judged_by_that(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: List[str] = []
    sound = {
        name: PageTrial(prediction(*means), prediction(*means))
        for name, means in (("a", (9, 90)), ("b", (8, 90)), ("c", (8, 90)), ("d", (8, 90)))
    }
    before = tried(prediction(20, 100), sound)
    assert set(before.margins()) == {"a", "b", "c", "d"}
    later = {"b": None, "c": prediction(500, 90), "d": prediction(12, 90)}

    def gets_worse(
        question: Any, effort: Any, run_s: float, judge: Any, short: Prediction, *more: Any
    ) -> Optional[Decline]:
        asked.append(short.label)
        # as it stands
        assert more == (1, True)
        name = next(name for name, trial in sound.items() if trial.standing is short)
        return Decline("over 24 s it gets worse", later[name]) if name in later else None

    monkeypatch.setattr(regime_pages, "gets_worse", gets_worse)
    after = regime_pages._lasting(before, SearchEffort(), 4.0, 1)
    # more work waits than the twin has room for
    assert set(after.by_source) == {"a", "c", "d"}
    assert set(after.margins()) == {"a", "d"}
    assert after.by_source["d"].standing == later["d"]
    assert len(asked) == 4


def test_where_what_is_in_force_keeps_them_no_page_misses_one() -> None:
    assert fit((90.0, 50.0), missed=(101.0, 80.0)) == {}
    # nor is one worse than that
    assert fit((50.0, 50.0), worse=(99.0, 46.0)) == {}


def test_a_page_is_judged_as_it_stands_and_does_no_harm_as_it_comes() -> None:
    in_force, kept, missed = prediction(300.0, 50.0), prediction(60.0, 50.0), prediction(110.0, 50.0)
    # scrubs that began before it go on: still better than what is in force, and the guard leaves it alone
    shared = tried(in_force, {"shared": PageTrial(prediction(150.0, 50.0), kept), "own": PageTrial(missed, missed)})
    assert shared.margins() == {"shared": pytest.approx(0.34)}
    assert shared.words("shared") == "keeps the objectives here too"
    # worse than what is in force, or what is kept now is broken meanwhile
    for harm in (prediction(400.0, 50.0), prediction(60.0, 42.0)):
        assert tried(in_force, {"harm": PageTrial(harm, kept)}).margins() == {}
    assert tried(prediction(90.0, 50.0), {"harm": PageTrial(prediction(111.0, 50.0), kept)}).margins() == {}


@pytest.mark.slow
def test_regimes_share_settings_where_these_keep_the_objectives_in_each_so_that_there_is_less_to_switch(
    better: RegimeAnswer,
) -> None:
    told: List[Tuple[int, int]] = []
    answers = [answered(BETTER, regime="idle"), better, answered(BETTER, regime="recovering+trimming")]
    # nobody recovers in it, so that what limits recovery changes nothing there
    assert not answers[0].recommendation.better
    made = pages_of(answers, 5.0, "osd", lambda done, total: told.append((done, total)), 1)
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert [page.number for page in made] == list(range(1, len(made) + 1))
    settings = {page.regime: dict(page.settings) for page in made}
    # the one with more markers serves the one with fewer
    assert settings["recovering"] == settings["recovering+trimming"]
    (shared,) = (page for page in made if page.regime == "recovering")
    assert "found for recovering+trimming" in shared.verdict
    assert shared.effects["client.p95_ms"] < -0.2


@pytest.mark.slow
def test_settings_that_miss_another_regime_s_objectives_are_not_shared() -> None:
    # what helps the clients here leaves recovery alone, which is wanted as fast as now there
    fast = slo("client.p95_ms <= 60 s", "recovery.bytes_s >= 0.98 * baseline", "snaptrim.objects_s >= 1.5 * baseline")
    limited = slo("client.p95_ms <= 0.3 * baseline", "recovery.bytes_s >= 1 kB/s")
    made = pages(answered(limited), answered(fast, regime="recovering+trimming"))
    assert list(made) == ["recovering"]
    assert made["recovering"].effects["recovery.bytes_s"] < -0.1


@pytest.mark.slow
def test_pages_are_tried_in_regimes_in_which_nothing_was_searched(better: RegimeAnswer) -> None:
    others = [question_in(regime, CLUSTER, BETTER, DEFAULT) for regime in ("busy+recovering", "recovering+trimming")]
    told: List[Tuple[int, int]] = []
    made = pages_of([better], 5.0, "osd", lambda done, total: told.append((done, total)), 1, others)
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert [page.regime for page in made] == ["recovering", "busy+recovering", "recovering+trimming"]
    assert [page.number for page in made] == [1, 2, 3]
    # what an operator finds in force once an OSD is lost in the busy hours for the first time
    assert all(page.settings == made[0].settings for page in made)
    assert all("those of page 1" in page.verdict for page in made[1:])
    assert all(page.effects["client.p95_ms"] < -0.2 for page in made)
    assert made[1].load["client.iops"] > 1.2 * made[0].load["client.iops"]


@pytest.mark.slow
def test_a_regime_in_which_the_pages_miss_an_objective_gets_none(better: RegimeAnswer, no_better: RegimeAnswer) -> None:
    missed = slo("client.p95_ms <= 60 s", "recovery.bytes_s >= 2 * baseline")
    others = [question_in("busy+recovering", CLUSTER, missed, DEFAULT)]
    assert [page.regime for page in pages_of([better], 5.0, "osd", processes=1, others=others)] == ["recovering"]
    assert pages_of([no_better], 5.0, "osd", processes=1, others=others) == ()
