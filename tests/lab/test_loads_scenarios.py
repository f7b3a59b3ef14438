from __future__ import annotations

import time
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

import pytest
from host_lab import HostLab

from ceph_tuner.errors import InputError, LabFailed, NotQuiet
from ceph_tuner.lab import quiet, scenarios
from ceph_tuner.lab.loads import LoadResult, Progress
from ceph_tuner.lab.loads.session import Session
from ceph_tuner.lab.quiet import Look, Quiet, busy
from ceph_tuner.lab.scenarios import Scenario
from ceph_tuner.metrics import METRICS
from ceph_tuner.sample import Measure


class Noted:
    """A load that only writes down what is asked of it."""

    def __init__(
        self, name: str, log: List[str], metric: str = "client.iops", idle: Optional[float] = None, fails: str = ""
    ) -> None:
        self.name, self.log, self.metrics = name, log, (metric,)
        self.idle, self.fails = idle, fails
        self.measured: Tuple[float, float] = (0, 0)

    def _note(self, what: str) -> None:
        self.log.append(f"{what} {self.name}")
        if what == self.fails:
            raise LabFailed(f"{self.name} cannot {what}")

    def hold(self) -> None:
        self._note("hold")

    def prepare(self) -> None:
        self._note("prepare")

    def start(self) -> None:
        self._note("start")

    def observe(self) -> None: ...

    def progress(self) -> Progress:
        return Progress(1, 1, 1, 1)

    def idle_since(self) -> Optional[float]:
        return self.idle

    def measure(self, start: float, end: float) -> Dict[str, Measure]:
        self.measured = (start, end)
        return {self.metrics[0]: Measure(3.0, 1.0, 2)}

    def remarks(self, measures: Mapping[str, Measure], seconds: float) -> Tuple[str, ...]:
        return (f"{self.name} remarks on {seconds:.0f} s",)

    def stop(self) -> LoadResult:
        self._note("stop")
        return LoadResult(self.name, {}, {}, (f"{self.name} has a note",))

    def cleanup(self) -> None:
        self._note("cleanup")


def made(*loads: Noted) -> Scenario:
    lab = HostLab("")
    return Scenario("test", lab, list(loads), Session(lab))


@pytest.fixture
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenarios, "wait_until_quiet", lambda *_, **__: Quiet(0.0, ()))


@pytest.mark.usefixtures("_quiet")
def test_a_run_starts_everything_measures_and_stops_everything() -> None:
    log: List[str] = []
    scenario = made(Noted("client", log), Noted("recovery", log, "recovery.bytes_s"))
    scenario.prepare()
    assert scenario.run(0.2, settle=0) == {
        "client.iops": Measure(3.0, 1.0, 2),
        "recovery.bytes_s": Measure(3.0, 1.0, 2),
    }
    assert log == [f"{what} {load}" for what in ("hold", "prepare", "start", "stop") for load in ("client", "recovery")]
    assert scenario.remarks()[-2:] == ("client has a note", "recovery has a note")


def test_when_one_load_cannot_start_the_others_are_stopped() -> None:
    log: List[str] = []
    with pytest.raises(LabFailed, match="recovery cannot start"):
        made(Noted("client", log), Noted("recovery", log, fails="start")).run(1)
    assert log[-2:] == ["stop client", "stop recovery"]


def test_when_one_load_cannot_stop_the_others_are_stopped_all_the_same() -> None:
    log: List[str] = []
    scenario = made(Noted("client", log, fails="stop"), Noted("recovery", log))
    scenario.start()
    with pytest.raises(LabFailed, match="client cannot stop"):
        scenario.stop()
    assert log[-1] == "stop recovery"


@pytest.mark.usefixtures("_quiet")
def test_what_prepare_set_is_taken_back_though_nothing_was_started() -> None:
    log: List[str] = []
    with made(Noted("recovery", log)) as scenario:
        scenario.prepare()
        scenario.prepare()
    assert log.count("stop recovery") == 1


def test_a_window_ends_for_all_loads_when_the_work_runs_out() -> None:
    now = time.time()
    client = Noted("client", [])
    scenario = made(client, Noted("recovery", [], "recovery.bytes_s", idle=now - 4))
    scenario.measure(now - 10, now)
    assert client.measured == (now - 10, now - 4)
    assert scenario.remarks()[0] == "recovery ran out of work after 6 s of 10 s"


def test_work_that_ran_out_early_is_no_measurement() -> None:
    now = time.time()
    with pytest.raises(LabFailed, match="ran out of work after 1 s of 10 s; give it more objects"):
        made(Noted("recovery", [], idle=now - 9)).measure(now - 10, now)


def test_the_rates_of_recovery_and_backfill_add_up() -> None:
    both = made(Noted("recovery", [], "recovery.bytes_s"), Noted("backfill", [], "recovery.bytes_s"))
    assert both.measure(0, 10)["recovery.bytes_s"].mean == 6.0


@pytest.mark.parametrize("name", scenarios.NAMES)
def test_every_scenario_can_be_made_and_names_known_metrics(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Session, "mon", lambda *_, **__: "62914560\n")
    scenario = scenarios.scenario(name, HostLab(""))
    assert {"client.p95_ms"} < set(scenario.metrics) <= set(METRICS)
    assert scenario.loads[0].name == "client"


def test_an_unknown_scenario_or_option_is_the_users_error() -> None:
    with pytest.raises(InputError, match="one of client, client-recovery"):
        scenarios.scenario("nope", HostLab(""))
    with pytest.raises(InputError, match="found the option speed, expected some of rate"):
        scenarios.scenario("client", HostLab(""), speed=1)
    with pytest.raises(InputError, match="option rate: found 'fast', expected a number"):
        scenarios.scenario("client", HostLab(""), rate="fast")
    with pytest.raises(InputError, match="option rate: found -1, expected more than 0"):
        scenarios.scenario("client", HostLab(""), rate=-1)


CALM = ["active+clean"] * 3


def look(at: float, states: Sequence[str] = CALM, used: float = 1e9, deleting: int = 0, silent: int = 0) -> Look:
    return Look(at, states, used, deleting, silent)


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (look(1), []),
        (look(1, ["active+clean", "active+clean+scrubbing+deep"]), ["1 PGs scrubbing"]),
        (look(1, ["active+clean+snaptrim_wait"]), ["1 PGs waiting to trim snapshots"]),
        (look(1, ["active+recovering+degraded"]), ["1 PGs recovering"]),
        (look(1, ["peering"]), ["1 PGs peering", "1 PGs not active"]),
        (look(1, silent=2), ["2 PGs not active"]),
        (look(1, deleting=4), ["4 PGs being deleted"]),
        (look(1, used=0.99e9), ["objects being deleted (10.0 MB/s freed)"]),
        (look(1, used=1e9 - 1000), []),
    ],
)
def test_what_goes_on_in_a_lab_is_named(now: Look, words: List[str]) -> None:
    assert list(busy(look(0), now, []).values()) == words


def test_pgs_that_a_flag_holds_back_are_quiet() -> None:
    held = look(1, ["active+recovery_wait+undersized+degraded", "active+clean"])
    assert busy(look(0), held, ["norecover"]) == {}
    assert busy(look(0), held, ["nobackfill"]) != {}


def waiting(monkeypatch: pytest.MonkeyPatch, looks: Sequence[Look], timeout: float) -> Quiet:
    following = iter(looks)
    monkeypatch.setattr(quiet, "look", lambda *_: next(following))
    monkeypatch.setattr(quiet, "_flags", lambda _: [])
    lab = HostLab("")
    return quiet.wait_until_quiet(lab, Session(lab), timeout, now=lambda: 0.0, sleep=lambda _: None)


def test_waiting_ends_when_nothing_has_happened_for_a_while_and_says_what_did(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = [look(0), look(1, deleting=3), look(2), look(3, deleting=1), look(4), look(5), look(6), look(7)]
    found = waiting(monkeypatch, looks, 60)
    assert found == Quiet(5.0, ("3 PGs being deleted",))
    assert str(found) == "the lab was quiet after 5 s; before that: 3 PGs being deleted"


def test_a_lab_that_never_is_quiet_is_given_up_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotQuiet, match="not quiet after 5 s: 2 PGs being deleted"):
        waiting(monkeypatch, [look(float(at), deleting=2) for at in range(20)], 5)
