from __future__ import annotations

import os
import signal
from typing import Callable, Optional, Sequence

import pytest
from fake_cluster import FakeCluster, no_interrupts

from ceph_tuner.bayesian import Options
from ceph_tuner.errors import CommandFailed, LabFailed, Locked, NotQuiet, RetryLater
from ceph_tuner.releases import TENTACLE, Settings
from ceph_tuner.search.optimiser import Failed
from ceph_tuner.search.space import space_for
from ceph_tuner.slo import Slo, parse_slo
from ceph_tuner.trial import Budget, Run, Trial
from ceph_tuner.tuning.interrupts import Interrupts
from ceph_tuner.tuning.loop import Lessons, Outcome, Task, tune
from ceph_tuner.tuning.measuring import Measuring, Timing
from ceph_tuner.tuning.searching import TuningSearch

SLO = parse_slo({"name": "recovery", "objectives": ["client.p95_ms <= 85 ms", "recovery.bytes_s >= 8 MB/s"]})
PROFILES = TENTACLE.profiles


class Spy(TuningSearch):
    """Keeps what it was told."""

    told: list

    def tell(self, settings: Settings, result: object, old: bool = False) -> None:
        self.told = [*getattr(self, "told", []), (settings, result, old)]
        super().tell(settings, result, old)  # type: ignore[arg-type]


def task(slo: Slo = SLO, **changes: object) -> Task:
    values = {"budget": Budget(trials=3), "in_force": PROFILES["balanced"], "profile_in_force": "balanced"}
    values = {**values, "compare": True, **changes}
    return Task(slo, PROFILES, **values)


# as a cluster whose operator is bold: what the search is careful about has tests of its own
BOLD = Options(safe_probability=0.5, first_step=0.3)


def run(
    cluster: FakeCluster,
    wanted: Optional[Task] = None,
    interruptible: object = no_interrupts,
    spies: Optional[list] = None,
    record: Callable[[Trial], None] = lambda trial: None,
    options: Options = BOLD,
    past: Sequence[Trial] = (),
    lessons: Lessons = lambda baseline: (),
    window: float = 10,
) -> Outcome:
    wanted = wanted or task()
    measuring = Measuring(
        wanted.slo, cluster, cluster, cluster, cluster, cluster, interruptible, Timing(settle=2, window=window)
    )
    space = space_for(TENTACLE, wanted.slo.work, wanted.in_force)
    search = Spy(space, wanted.slo, wanted.in_force, PROFILES, 1, options)
    if spies is not None:
        spies.append(search)
    return tune(wanted, measuring, search, record, past, lessons)


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
    assert kinds == ["baseline", "profile", "profile", *["trial"] * 3, *["repeat"] * 3, "check"]
    assert len(spies[0].told) == 6


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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
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
    (result,) = [result for _, result in spies[0].told if isinstance(result, Failed)]
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


def test_a_run_that_cannot_be_measured_twice_says_nothing_about_its_settings() -> None:
    def strike(run: Run, phase: str) -> None:
        if run.label == "trial 2" and phase == "preparing the load":
            cluster.unprepared = [LabFailed("out of work")]

    cluster, spies = FakeCluster(strike), []
    outcome = run(cluster, spies=spies)
    assert [t.run.label for t in outcome.trials if str(t.failed).startswith("not measured: ")] == ["trial 2"]
    assert len(spies[0].told) == 5
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
