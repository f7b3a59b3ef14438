from __future__ import annotations

import os
import signal
from typing import Any, Callable, ClassVar, Mapping, Optional, Sequence, Type

import pytest
from fake_cluster import FakeCluster, no_interrupts

from ceph_tuner.core.ceph.uninterrupted import SIGNALS
from ceph_tuner.core.changes.forecast_pairs import forecast_pairs
from ceph_tuner.core.errors import ClusterTimeout, CommandFailed, LabFailed, Locked, NotQuiet, RetryLater
from ceph_tuner.core.goals.slo import Slo, parse_slo
from ceph_tuner.core.goals.trial import FEWER_CHANGES, IN_FORCE, Run, Trial, TrialBudget
from ceph_tuner.core.knobs.catalogue import MCLOCK_NINE, PROFILE
from ceph_tuner.core.knobs.releases import TENTACLE, Settings
from ceph_tuner.core.measure.forecast_record import ForecastInterval, ForecastRecord
from ceph_tuner.optimise import Options, SearchVerdict
from ceph_tuner.optimise.contract import Expected
from ceph_tuner.search.optimiser import Failed, SettingsProposal
from ceph_tuner.search.space import space_for
from ceph_tuner.tune.interrupts import Interrupts
from ceph_tuner.tune.loop import Foretell, Lessons, tune
from ceph_tuner.tune.measurement import Canary, Timing, TrialRunner
from ceph_tuner.tune.outcome import TuneOutcome, TuneTask
from ceph_tuner.tune.search import TuningSearch

SLO = parse_slo({"name": "recovery", "objectives": ["client.p95_ms <= 85 ms", "recovery.bytes_s >= 8 MB/s"]})
PROFILES = TENTACLE.profiles


class Spy(TuningSearch):
    """Keeps what it was told."""

    told: list

    def tell(self, settings: Settings, result: object, old: bool = False, expected: Optional[Expected] = None) -> None:
        self.told = [*getattr(self, "told", []), (settings, result, old)]
        super().tell(settings, result, old, expected)  # type: ignore[arg-type]


def task(slo: Slo = SLO, **changes: object) -> TuneTask:
    values = {"budget": TrialBudget(trials=3), "in_force": PROFILES["balanced"], "profile_in_force": "balanced"}
    values = {**values, "compare": True, **changes}
    return TuneTask(slo, TENTACLE, **values)


# as a cluster whose operator is bold: what the search is careful about has tests of its own
BOLD = Options(safe_probability=0.5, first_step=0.3)


def run(
    cluster: FakeCluster,
    wanted: Optional[TuneTask] = None,
    interruptible: object = no_interrupts,
    spies: Optional[list] = None,
    record: Callable[[Trial], None] = lambda trial: None,
    options: Options = BOLD,
    past: Sequence[Trial] = (),
    lessons: Lessons = lambda baseline: (),
    window: float = 10,
    foretell: Foretell = lambda settings, at: None,
    search_class: Type[Spy] = Spy,
) -> TuneOutcome:
    wanted = wanted or task()
    measuring = TrialRunner(
        wanted.slo, cluster, cluster, cluster, cluster, cluster, interruptible, Timing(settle=2, window=window)
    )
    space = space_for(TENTACLE, wanted.slo.work, wanted.in_force)
    search = search_class(space, wanted.slo, wanted.in_force, PROFILES, 1, options)
    if spies is not None:
        spies.append(search)
    return tune(wanted, measuring, search, record, past, lessons, foretell)


def test_every_measurement_carries_what_the_twin_said_of_all_its_values_before() -> None:
    cluster, asked, kept = FakeCluster(), [], []

    def foretell(settings: Settings, at: float) -> ForecastRecord:
        asked.append((settings, at))
        return ForecastRecord(at, "twin", 0.9, {"client.p95_ms": ForecastInterval(float(len(asked)), 0.0, 100.0)})

    outcome = run(cluster, record=kept.append, foretell=foretell)
    assert outcome.written
    assert [trial.run.forecast.metrics["client.p95_ms"].value for trial in kept] == [*range(1, len(kept) + 1)]
    assert all(at == trial.at for (_, at), trial in zip(asked, kept))
    assert all(set(MCLOCK_NINE) <= set(settings) and PROFILE not in settings for settings, _ in asked)
    assert forecast_pairs([], {}, kept) != []


def test_a_winner_that_meets_what_the_profiles_miss_is_written_back_and_checked() -> None:
    cluster, spies = FakeCluster(), []
    outcome = run(cluster, spies=spies)
    assert outcome.choice.better
    assert outcome.written
    assert all(verdict.met for verdict in outcome.choice.verdicts)
    assert cluster.config == outcome.settings
    assert not cluster.working
    assert outcome.check is not None
    kinds = [trial.run.kind for trial in outcome.trials]
    # the fourth trial is the best with fewer changes, and is measured again beside it and another
    assert kinds == ["baseline", "profile", "profile", *["trial"] * 4, *["repeat"] * 5, "check"]
    assert len(spies[0].told) == 7


def on_canary(cluster: FakeCluster, canary: FakeCluster, settings: Settings) -> Trial:
    measuring = TrialRunner(
        SLO, cluster, cluster, cluster, cluster, cluster, no_interrupts, Timing(2, 10), canary=Canary("host", canary)
    )
    first = measuring.run(Run("trial", "trial 1", settings), 1, 2, {})
    assert canary.before == cluster.before == {}
    return first if first.failed else measuring.run(Run("trial", "trial 2", settings), 2, 2, {})


def test_settings_go_to_a_canary_first_and_are_taken_back_there() -> None:
    cluster, canary = FakeCluster(), FakeCluster()
    again = on_canary(cluster, canary, {"osd_max_scrubs": 2})
    assert again.failed is None
    # what went well there is not written there again
    assert canary.events == ["apply", "undo"]
    assert [event for event in cluster.events if event in ("apply", "undo")] == ["apply", "undo"] * 2


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (lambda cluster, canary: setattr(cluster, "down", 1.0), "1 OSDs down, 0 before"),
        (lambda cluster, canary: setattr(cluster, "answers", False), "did not answer"),
    ],
)
def test_what_harms_the_cluster_on_a_canary_comes_nowhere_else(harm: Any, words: str) -> None:
    canary = FakeCluster()

    def at_phase(run: Run, phase: str) -> None:
        if phase == "on host alone":
            harm(cluster, canary)

    cluster = FakeCluster(at_phase)
    trial = on_canary(cluster, canary, {"osd_max_scrubs": 2})
    assert trial.failed is not None
    assert trial.failed.startswith("on host alone: ")
    assert words in trial.failed
    assert canary.events == ["apply", "undo"]
    assert "apply" not in cluster.events


def test_what_a_canary_refuses_is_not_written_anywhere() -> None:
    cluster, canary = FakeCluster(), FakeCluster()
    canary.refuse = lambda settings: CommandFailed("config set", -22, "no")
    trial = on_canary(cluster, canary, {"osd_max_scrubs": 2})
    assert "on host alone: the settings could not be written" in (trial.failed or "")
    assert "apply" not in cluster.events


def test_every_trial_is_taken_back_before_the_next_is_written() -> None:
    cluster = FakeCluster()
    run(cluster)
    writes = [event for event in cluster.events if event in ("apply", "undo", "keep")]
    assert writes == ["apply", "undo"] * ((len(writes) - 2) // 2) + ["apply", "keep"]
    # undone in one step, what stays leads back to where the run began
    cluster.undo()
    assert cluster.config == {}


def test_without_write_back_the_cluster_ends_as_it_began() -> None:
    cluster = FakeCluster()
    outcome = run(cluster, task(write_back=False))
    assert outcome.choice.better
    assert not outcome.written
    assert cluster.config == {}


def test_where_nothing_is_better_the_settings_in_force_stay() -> None:
    slo = parse_slo({"objectives": ["recovery.bytes_s >= 1.5 * baseline"]})
    cluster = FakeCluster()
    outcome = run(cluster, task(slo))
    assert not outcome.choice.better
    assert not outcome.written
    assert cluster.config == {}


def test_the_winner_was_measured_more_than_once() -> None:
    outcome = run(FakeCluster())
    assert outcome.choice.winner.repeats == 2
    assert outcome.best_built_in is not None
    assert outcome.best_built_in.repeats == 2


def test_trials_are_recorded_as_they_end() -> None:
    records: list = []
    outcome = run(FakeCluster(), record=records.append)
    assert records == outcome.trials
    assert [Trial.from_dict(record.to_dict()) for record in records] == records


PHASES = ["preparing the load", "settling", "measuring"]


@pytest.mark.slow
@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("phase", [*PHASES, "writing the settings", "taking the settings back"])
@pytest.mark.parametrize("kind", ["profile", "trial", "repeat", "check"])
def test_ctrl_c_in_any_phase_takes_the_settings_back_and_stops_the_load(
    kind: str, phase: str, number: signal.Signals
) -> None:
    sent = []

    def strike(run: Run, now: str) -> None:
        if run.kind == kind and now == phase and not sent:
            sent.append(now)
            os.kill(os.getpid(), number)

    cluster = FakeCluster(strike)
    with Interrupts() as interrupts:
        if (kind, phase) == ("check", "taking the settings back"):
            # a winner that stays is not taken back
            assert run(cluster, interruptible=interrupts).written
            return
        with pytest.raises(KeyboardInterrupt):
            run(cluster, interruptible=interrupts)
    assert sent
    assert cluster.config == {}
    assert not cluster.before
    assert not cluster.working


def test_ctrl_c_pressed_again_while_cleaning_up_skips_nothing() -> None:
    def strike(run: Run, phase: str) -> None:
        if run.kind == "trial" and phase in ("measuring", "taking the settings back"):
            os.kill(os.getpid(), signal.SIGINT)

    cluster, notices = FakeCluster(strike), []
    with Interrupts(lambda: notices.append(1)) as interrupts, pytest.raises(KeyboardInterrupt):
        run(cluster, interruptible=interrupts)
    assert len(notices) == 2
    assert cluster.config == {}
    assert not cluster.working


def test_after_the_interrupts_context_signals_are_handled_as_before() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interrupts():
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) == before


def test_an_osd_that_goes_down_ends_the_trial_at_once_and_it_is_told_as_failed() -> None:
    def strike(run: Run, phase: str) -> None:
        cluster.down = 1.0 if run.label == "trial 2" and phase == "measuring" else 0.0

    cluster, spies = FakeCluster(strike), []
    outcome = run(cluster, spies=spies)
    failed = [trial for trial in outcome.trials if trial.failed]
    assert [trial.run.label for trial in failed] == ["trial 2"]
    assert "1 OSDs down" in str(failed[0].failed)
    (result,) = [result for _, result, _ in spies[0].told if isinstance(result, Failed)]
    assert result.seen["client.p95_ms"] > 0
    assert outcome.choice.winner.label != "trial 2"
    assert failed[0].seconds < 10


def test_a_cluster_that_does_not_answer_ends_the_trial() -> None:
    def strike(run: Run, phase: str) -> None:
        cluster.answers = not (run.label == "trial 1" and phase == "measuring")

    cluster = FakeCluster(strike)
    outcome = run(cluster)
    assert "did not answer" in str(next(t.failed for t in outcome.trials if t.run.label == "trial 1"))
    assert outcome.choice.winner.label != "trial 1"


def test_settings_that_ceph_refuses_are_a_failed_trial() -> None:
    cluster = FakeCluster()
    cluster.refuse = lambda settings: (
        CommandFailed("config set", -22, "Invalid argument") if len(settings) > 1 else None
    )
    outcome = run(cluster)
    assert all(trial.failed for trial in outcome.trials if trial.run.kind == "trial")
    assert not outcome.written
    assert cluster.config == {}


def test_a_lock_that_somebody_else_holds_ends_the_run() -> None:
    cluster = FakeCluster()
    cluster.refuse = lambda settings: Locked("held by another")
    with pytest.raises(Locked):
        run(cluster)
    assert not cluster.working


def test_a_load_that_does_not_come_up_is_tried_again_once() -> None:
    cluster = FakeCluster()
    cluster.unprepared = [NotQuiet("deletions run")]
    assert run(cluster).written
    cluster = FakeCluster()
    cluster.unprepared = [NotQuiet("deletions run"), LabFailed("fio: no such file")]
    with pytest.raises(LabFailed):
        run(cluster)
    assert not cluster.working


def test_a_trial_that_cannot_be_taken_back_at_once_is_before_anything_else_is_written() -> None:
    class Electing(FakeCluster):
        silent = 2

        def undo(self) -> None:
            if self.before and self.silent:
                self.silent -= 1
                raise ClusterTimeout("the monitors elect")
            super().undo()

    cluster = Electing()
    outcome = run(cluster)
    assert (cluster.silent, outcome.written) == (0, True)
    # an apply with the last one there is refused by the fake
    assert [event for event in cluster.events if event in ("apply", "undo")].count("undo") > 2
    assert any(str(trial.failed).startswith("not measured: the monitors elect") for trial in outcome.trials)


def test_a_run_that_cannot_be_measured_twice_says_nothing_about_its_settings() -> None:
    def strike(run: Run, phase: str) -> None:
        if run.label == "trial 2" and phase == "preparing the load":
            cluster.unprepared = [LabFailed("out of work")]

    cluster, spies = FakeCluster(strike), []
    outcome = run(cluster, spies=spies)
    assert [t.run.label for t in outcome.trials if str(t.failed).startswith("not measured: ")] == ["trial 2"]
    # what is in force, two profiles, two trials, and the best with fewer changes
    assert len(spies[0].told) == 6
    assert outcome.written


def test_two_runs_in_a_row_that_cannot_be_measured_end_it() -> None:
    def strike(run: Run, phase: str) -> None:
        if run.kind == "trial" and phase == "preparing the load":
            cluster.unprepared = [LabFailed("out of work")]

    cluster = FakeCluster(strike)
    with pytest.raises(LabFailed):
        run(cluster)
    assert cluster.config == {}
    assert not cluster.working


def test_a_metric_that_the_baseline_does_not_show_is_said_at_once() -> None:
    slo = parse_slo({"objectives": ["client.p95_ms <= 85 ms", "scrub.bytes_s >= 8 MB/s"]})
    with pytest.raises(RetryLater, match=r"no scrub\.bytes_s"):
        run(FakeCluster(), task(slo))


def test_a_winner_that_does_worse_once_it_is_written_is_taken_back() -> None:
    def strike(run: Run, phase: str) -> None:
        if run.kind == "check" and phase == "measuring":
            cluster.seen = lambda: {"client.p95_ms": 150.0, "recovery.bytes_s": 1e6}  # type: ignore[method-assign]

    cluster = FakeCluster(strike)
    outcome = run(cluster)
    assert not outcome.written
    assert "worse than the settings in force" in outcome.withdrawn
    assert "keep" not in cluster.events
    assert cluster.config == {}


def test_a_custom_profile_in_force_is_measured_as_the_baseline_beside_all_built_in_ones() -> None:
    cluster = FakeCluster()
    outcome = run(cluster, task(profile_in_force=None))
    assert [trial.run.label for trial in outcome.trials[:4]] == ["settings in force", *PROFILES]


@pytest.mark.parametrize("wrong", [{"settle": -1}, {"window": 0}, {"window": float("nan")}])
def test_timing_that_makes_no_sense_is_refused(wrong: dict) -> None:
    with pytest.raises(ValueError, match="="):
        Timing(**wrong)


def tried(outcome: TuneOutcome) -> list:
    return [trial for trial in outcome.trials if trial.run.kind == "trial"]


def test_profiles_are_measured_up_front_only_where_they_are_wanted_for_comparison() -> None:
    outcome = run(FakeCluster(), task(compare=False))
    assert [trial.run.kind for trial in outcome.trials][:2] == ["baseline", "trial"]
    assert outcome.best_built_in is not None
    assert outcome.best_built_in.label == "balanced"


def test_the_finalists_are_measured_again_in_turns_with_the_settings_in_force() -> None:
    outcome = run(FakeCluster(), task(budget=TrialBudget(trials=3, repeats=2)))
    rounds = [trial.run.label for trial in outcome.trials if trial.run.kind == "repeat"]
    assert set(rounds[: len(rounds) // 2]) == set(rounds[len(rounds) // 2 :])
    assert rounds[: len(rounds) // 2] != rounds[len(rounds) // 2 :]
    assert rounds.count(IN_FORCE) == 2
    assert outcome.choice.in_force.repeats == 3
    assert outcome.choice.bounds["client.p95_ms"] > outcome.choice.winner.means["client.p95_ms"]


def test_where_nothing_is_safe_any_more_the_search_ends_and_says_why() -> None:
    class Careful(Spy):
        def ask(self) -> None:
            return None

        def verdict(self) -> SearchVerdict:
            asked = len(self.told) > 1
            return SearchVerdict("nothing safe", "none left") if asked else SearchVerdict("searching", "one more")

    cluster = FakeCluster()
    space = space_for(TENTACLE, SLO.work, PROFILES["balanced"])
    timing = Timing(settle=2, window=10)
    measuring = TrialRunner(SLO, cluster, cluster, cluster, cluster, cluster, no_interrupts, timing)
    for compare, state in ((True, "nothing safe"), (False, "searching")):
        search = Careful(space, SLO, PROFILES["balanced"], PROFILES, 1)
        outcome = tune(task(compare=compare), measuring, search, lambda trial: None)
        assert not tried(outcome)
        assert outcome.verdict.state == state
        assert cluster.config == {} or outcome.written
        measuring.take_back(outcome.trials[-1].run, 1, 1)


def test_a_search_that_broke_too_many_objectives_freezes_and_the_trials_that_did_are_named() -> None:
    def strike(run: Run, phase: str) -> None:
        # every trial, whatever its settings, does much worse than what is in force
        if phase == "measuring" and run.kind == "trial":
            cluster.seen = lambda: {"client.p95_ms": 150.0, "recovery.bytes_s": 1e6}  # type: ignore[method-assign]
        elif phase == "preparing the load":
            cluster.seen = lambda: FakeCluster.seen(cluster)  # type: ignore[method-assign]

    cluster = FakeCluster(strike)
    options = Options(safe_probability=0.0, first_step=0.3, violation_budget=1)
    outcome = run(cluster, task(budget=TrialBudget(trials=8)), options=options)
    assert outcome.verdict.state == "frozen"
    assert len(tried(outcome)) == 2
    assert [trial.run.label for trial in outcome.unsafe] == ["trial 1", "trial 2"]
    assert not outcome.written


def test_time_is_kept_for_the_finalists_and_the_check() -> None:
    cluster = FakeCluster()
    began = cluster.time
    outcome = run(cluster, task(budget=TrialBudget(trials=50, hours=0.05)))
    assert 0 < len(tried(outcome)) < 50
    assert "0.05 hours are over" in outcome.verdict.reason
    assert cluster.time - began <= 0.05 * 3600


def test_a_trial_that_is_hopeless_ends_early_and_is_told_with_what_it_showed() -> None:
    def strike(run: Run, phase: str) -> None:
        if phase == "measuring" and run.label == "trial 1":
            cluster.seen = lambda: {"client.p95_ms": 140.0, "recovery.bytes_s": 26e6}  # type: ignore[method-assign]
        elif phase == "preparing the load":
            cluster.seen = lambda: FakeCluster.seen(cluster)  # type: ignore[method-assign]

    cluster, spies = FakeCluster(strike), []
    outcome = run(cluster, spies=spies, window=60)
    (ended,) = [trial for trial in outcome.trials if trial.hopeless]
    assert ended.run.label == "trial 1"
    assert ended.seconds < 30 < max(trial.seconds for trial in outcome.trials)
    assert "breaks client.p95_ms <= 85 ms" in str(ended.failed)
    told = [result for _, result, _ in spies[0].told if result is ended.measures]
    assert told[0]["client.p95_ms"].mean == 140.0
    assert outcome.unsafe == [ended]
    assert outcome.choice.winner.label != "trial 1"


def test_a_profile_that_grossly_misses_an_objective_is_stopped_but_is_no_failure_that_condemns_what_is_near() -> None:
    def strike(run: Run, phase: str) -> None:
        if phase == "measuring" and run.kind == "profile":
            cluster.seen = lambda: {"client.p95_ms": 400.0, "recovery.bytes_s": 26e6}  # type: ignore[method-assign]
        elif phase == "preparing the load":
            cluster.seen = lambda: FakeCluster.seen(cluster)  # type: ignore[method-assign]

    cluster, spies = FakeCluster(strike), []
    outcome = run(cluster, task(compare=True), spies=spies, window=60)
    stopped = [trial for trial in outcome.trials if trial.run.kind == "profile"]
    assert len(stopped) == 2
    assert all(trial.seconds < 15 and "more than 2 times off" in str(trial.failed) for trial in stopped)
    told = [result for _, result, _ in spies[0].told]
    assert not any(isinstance(result, Failed) for result in told)
    assert all(trial.measures in told and trial.means["client.p95_ms"] == 400.0 for trial in stopped)
    assert outcome.choice.winner.label not in {trial.run.label for trial in stopped}


def settings_of(outcome: TuneOutcome) -> list:
    return [trial.run.settings for trial in outcome.trials]


@pytest.mark.parametrize("killed_in", ["trial 1", "trial 3", "repeat"])
def test_a_run_that_is_resumed_goes_on_as_if_it_had_not_been_interrupted(killed_in: str) -> None:
    kept: list = []

    def strike(run: Run, phase: str) -> None:
        if killed_in in (run.label, run.kind) and phase == "measuring":
            raise KeyboardInterrupt

    whole = run(FakeCluster())
    with pytest.raises(KeyboardInterrupt):
        run(FakeCluster(strike), record=kept.append)
    assert 0 < len(kept) < len(whole.trials)
    again: list = []
    cluster = FakeCluster()
    resumed = run(cluster, past=kept, record=again.append)
    assert settings_of(resumed) == settings_of(whole)
    assert resumed.to_dict()["winner"] == whole.to_dict()["winner"]
    assert len(again) == len(whole.trials) - len(kept)
    assert cluster.events.count("start") == len(again)


def test_lessons_of_earlier_runs_are_told_as_old_after_the_baseline() -> None:
    first, spies = run(FakeCluster(), task(write_back=False)), []
    learnt = [(trial.run.settings, trial.measures) for trial in tried(first)]
    outcome = run(FakeCluster(), task(compare=False), spies=spies, lessons=lambda baseline: learnt)
    assert [old for _, _, old in spies[0].told] == [
        False,
        *[True] * len(learnt),
        *[False] * len(tried(outcome)),
    ]
    assert outcome.lessons == len(learnt) == 4


def test_what_stands_in_the_way_is_named() -> None:
    slo = parse_slo({"objectives": ["client.p95_ms <= 20 ms", "recovery.bytes_s >= 8 MB/s"]})
    outcome = run(FakeCluster(), task(slo))
    (words,) = outcome.at_fault
    assert words.startswith("client.p95_ms <= 20 ms was met by nothing")


def test_bounds_relative_to_the_baseline_stay_where_it_put_them() -> None:
    slo = parse_slo({"objectives": ["client.p95_ms <= 0.9 * baseline", "recovery.bytes_s >= 0.4 * baseline"]})
    outcome = run(FakeCluster(), task(slo))
    first = outcome.trials[0].means
    assert [verdict.bound for verdict in outcome.choice.verdicts] == [
        pytest.approx(0.9 * first["client.p95_ms"]),
        pytest.approx(0.4 * first["recovery.bytes_s"]),
    ]
    assert outcome.written
    assert all(verdict.met for verdict in outcome.choice.verdicts)


def test_a_latency_that_the_load_does_not_show_any_more_is_not_the_last_one_for_ever() -> None:
    """One second of its stretch was grossly slow; then its clients were not seen, and the cluster shows them well."""
    cluster = FakeCluster()
    slow = [{"client.p95_ms": 1000.0}]
    cluster.observe = lambda: slow.pop() if cluster.working and slow else {}  # type: ignore[method-assign]
    measuring = TrialRunner(SLO, cluster, cluster, cluster, cluster, cluster, no_interrupts, Timing(0.0, 60.0))
    baseline = {"client.p95_ms": 80.0, "recovery.bytes_s": 20e6}
    trial = measuring.run(Run("trial", "one", PROFILES["balanced"], ""), 1, 1, baseline)
    assert trial.failed is None
    assert not slow


RESERVATION, LIMIT = "osd_mclock_scheduler_client_res", "osd_mclock_scheduler_background_recovery_lim"


class Simplifying(Spy):
    """Leaves out of whatever is best what does nothing on this cluster."""

    leaves_out: ClassVar[Mapping[str, float]] = {RESERVATION: PROFILES["balanced"][RESERVATION]}

    def simpler(self, settings: Settings, built_in: bool) -> Optional[SettingsProposal]:
        assert built_in
        return SettingsProposal({**settings, **self.leaves_out}, f"{FEWER_CHANGES}the reservation")


def test_the_best_with_fewer_changes_is_measured_as_often_as_the_best_and_wins_where_it_is_as_good() -> None:
    outcome = run(FakeCluster(), search_class=Simplifying)
    simpler = [trial for trial in outcome.trials if trial.run.why.startswith(FEWER_CHANGES)]
    assert [trial.run.kind for trial in simpler] == ["trial", "repeat"]
    assert outcome.choice.winner.label == simpler[0].run.label == "trial 4"
    assert outcome.choice.winner.repeats == 2
    assert "knobs moved" in outcome.choice.reason
    assert outcome.settings[RESERVATION] == PROFILES["balanced"][RESERVATION]
    # as often as the one that it was made of
    repeated = [trial.run.label for trial in outcome.trials if trial.run.kind == "repeat"]
    (whole,) = {
        trial.run.label
        for trial in outcome.trials
        if trial.run.kind == "trial"
        and trial not in simpler
        and {**trial.run.settings, **Simplifying.leaves_out} == simpler[0].run.settings
    }
    assert {whole, "trial 4"} <= set(repeated)


def test_fewer_changes_that_do_worse_do_not_win() -> None:
    class TooSimple(Simplifying):
        leaves_out: ClassVar[Mapping[str, float]] = {LIMIT: PROFILES["balanced"][LIMIT]}

    outcome = run(FakeCluster(), search_class=TooSimple)
    assert any(trial.run.label == "trial 4" for trial in outcome.trials)
    assert outcome.choice.better
    assert outcome.choice.winner.label != "trial 4"


def test_fewer_changes_that_were_measured_already_are_measured_once_more_under_their_label() -> None:
    class Known(Spy):
        def simpler(self, settings: Settings, built_in: bool) -> Optional[SettingsProposal]:
            return SettingsProposal(self.told[3][0], f"{FEWER_CHANGES}some")

    outcome = run(FakeCluster(), search_class=Known)
    labels = [trial.run.label for trial in tried(outcome)]
    assert labels == ["trial 1", "trial 2", "trial 3", "trial 1"]
    # so that it is known as well as the others, it is a finalist too
    assert [trial.run.label for trial in outcome.trials if trial.run.kind == "repeat"].count("trial 1") == 1


def test_a_resumed_run_measures_other_fewer_changes_itself() -> None:
    kept: list = []
    first = run(FakeCluster(), record=kept.append, search_class=Simplifying)
    assert [trial.run.label for trial in kept if trial.run.fewer_changes] == ["trial 4"]
    # with fewer trials the fourth is none of the search's, and was measured with other settings
    again: list = []
    shorter = run(
        FakeCluster(), task(budget=TrialBudget(trials=1)), record=again.append, past=kept, search_class=Simplifying
    )
    assert [trial.run.label for trial in again if trial.run.fewer_changes] == ["trial 2"]
    assert shorter.trials != first.trials
    # with more of them the new best is simplified as well
    longer: list = []
    run(FakeCluster(), task(budget=TrialBudget(trials=5)), record=longer.append, past=kept, search_class=Simplifying)
    assert [trial.run.label for trial in longer if trial.run.kind == "trial"][:2] == ["trial 4", "trial 5"]


def test_a_search_that_found_nothing_better_leaves_nothing_out() -> None:
    class Wary(Spy):
        def simpler(self, settings: Settings, built_in: bool) -> Optional[SettingsProposal]:
            raise AssertionError("there is nothing to leave out")

    wanted = task(parse_slo({"objectives": ["recovery.bytes_s >= 1.5 * baseline"]}))
    assert not run(FakeCluster(), wanted, search_class=Wary).choice.better
