from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, List, Tuple

import pytest
from automatic_on_twin import OnTwin, answering
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ceph_tuner.core.autopilot.events import Answered
from ceph_tuner.core.autopilot.policy import Policy
from ceph_tuner.core.autopilot.state import AutopilotState
from ceph_tuner.core.ceph.target import Place
from ceph_tuner.core.errors import CommandFailed, InputError
from ceph_tuner.core.knobs.catalogue import KNOBS
from ceph_tuner.core.knobs.releases import REEF, TENTACLE
from ceph_tuner.core.knobs.settings import fitting_reservations
from ceph_tuner.core.measure.forecast_record import SEARCH_MODEL, ForecastInterval, ForecastRecord
from tuner.inbox import Inbox
from tuner.proposer import LONGEST_WORDS, Proposer
from twins import small_twin

CLIENT = "osd_mclock_scheduler_client_res"
GOOD = {**fitting_reservations(TENTACLE.profiles["balanced"]), "osd_max_scrubs": 2}
ASKING = AutopilotState("auto", "asking", baseline={"client.p95_ms": 90.0})


def proposing(*settings: Any, **more: Any) -> str:
    proposals = [{"settings": found, "why": "a test"} for found in settings]
    return json.dumps({"version": 1, "ok": True, "proposals": proposals, **more})


def ready(aboard: OnTwin, target: str = "osd") -> Proposer:
    aboard.service.slo_commands.set("client.p95_ms<=80", False, 1.0, "")
    aboard.options["auto_target"] = target
    return Proposer(aboard.service, aboard.service.aim(), Inbox(), aboard.twin.clock.now)


def asked(directory: Path, text: str, target: str = "osd") -> Tuple[Answered, OnTwin]:
    aboard = OnTwin(worker_python=answering(directory, text), worker_timeout=20.0)
    return ready(aboard, target).ask(ASKING, Policy()), aboard


@pytest.mark.parametrize("release", [REEF, TENTACLE], ids=str)
def test_a_usable_answer_becomes_settings_of_the_release_and_the_way_to_bring_them_onto_the_cluster(
    tmp_path: Path, release: Any
) -> None:
    wanted = {**release.profiles["balanced"], "osd_max_scrubs": 2}
    aboard = OnTwin(small_twin(release=release), worker_python=answering(tmp_path, proposing(wanted)))
    found = ready(aboard).ask(ASKING, Policy())
    assert (found.refused, found.why) == ("", "a test")
    assert found.settings["osd_max_scrubs"] == 2
    assert found.rollout is not None
    assert found.rollout.stages[-1].osds == (0, 1, 2, 3)
    # what is answered can be written as it is, and nothing was yet
    assert aboard.service.changes().commands("osd", dict(found.settings))
    assert aboard.entries() == []


def test_what_is_in_force_is_not_written_again_and_the_search_is_told_of_it(tmp_path: Path) -> None:
    answer, aboard = asked(tmp_path, proposing(GOOD))
    # the built-in profile stays where none of the nine moves
    assert answer.settings == {"osd_max_scrubs": 2}
    assert aboard.service.changes().commands("osd", dict(answer.settings)) == ["ceph config set osd osd_max_scrubs 2"]
    assert {**answer.unmoved, **answer.settings}.items() >= GOOD.items()


def test_what_one_osd_has_and_another_lacks_is_written_to_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    aboard = OnTwin(worker_python=answering(tmp_path, proposing(GOOD)), worker_timeout=20.0)
    proposer = ready(aboard)
    options_of = aboard.service._options_of_some("osd")
    # by the file of its host, which an entry at the monitors outranks
    options_of[2] = {**options_of[2], "osd_mclock_profile": "high_client_ops"}
    monkeypatch.setattr(aboard.service, "_options_of_some", lambda target: options_of)
    answer = proposer.ask(ASKING, Policy())
    assert answer.settings.items() >= GOOD.items()
    assert answer.unmoved == {}


def test_what_the_search_expects_is_kept_with_its_settings(tmp_path: Path) -> None:
    expected = {"client.p95_ms": [60.0, -3.0, 75.0], "recovery.bytes_s": [2e7, 1e7, 3e7]}
    text = json.dumps({"version": 1, "ok": True, "proposals": [{"settings": GOOD, "why": "w", "expected": expected}]})
    answer, aboard = asked(tmp_path, text)
    record = ForecastRecord.from_dict(answer.forecast)
    assert record is not None
    assert (record.model, record.level, record.at) == (SEARCH_MODEL, 0.95, aboard.twin.clock.now())
    # a latency below nothing is nothing
    assert record.metrics["client.p95_ms"] == ForecastInterval(60.0, 0.0, 75.0)


@pytest.mark.parametrize(
    "expected", [None, 7, [], {}, {"client.p95_ms": "x"}, {"client.p95_ms": [1, 2]}, {"client.p95_ms": [1, 9, 2]},
                 {"no.metric": [1, 1, 1]}, {"client.p95_ms": [True, True, True]}],
)  # fmt: skip
def test_an_expectation_in_another_form_costs_no_proposal(expected: Any, tmp_path: Path) -> None:
    text = json.dumps({"version": 1, "ok": True, "proposals": [{"settings": GOOD, "why": "w", "expected": expected}]})
    answer, _ = asked(tmp_path, text)
    assert (answer.refused, answer.forecast) == ("", {})
    assert answer.settings["osd_max_scrubs"] == 2


def test_the_profile_that_settings_replace_is_not_one_of_them(tmp_path: Path) -> None:
    found, _ = asked(tmp_path, proposing({**GOOD, "osd_mclock_profile": "custom"}))
    assert found.refused == ""
    own, _ = asked(tmp_path, proposing(GOOD))
    assert found.settings == own.settings


BAD: Dict[str, str] = {
    "no JSON": "hello",
    "nothing": "",
    "half an answer": proposing(GOOD)[:-5],
    "another version": json.dumps({"version": 7, "ok": True, "proposals": []}),
    "an error": json.dumps({"version": 1, "ok": False, "kind": "unavailable", "error": "no scikit-optimize"}),
    "a list": "[1, 2]",
    "no proposals": json.dumps({"version": 1, "ok": True}),
    "proposals that are none": json.dumps({"version": 1, "ok": True, "proposals": [None, 3]}),
    "a verdict that is none": json.dumps({"version": 1, "ok": True, "proposals": [], "verdict": [1]}),
    "settings that are none": json.dumps({"version": 1, "ok": True, "proposals": [{"settings": [1]}]}),
    "no settings": proposing({}),
    "a profile alone": proposing({"osd_mclock_profile": "balanced"}),
    "out of range": proposing({**GOOD, "osd_max_scrubs": 1_000_000}),
    "below range": proposing({**GOOD, CLIENT: -0.5}),
    "more than there is": proposing({**GOOD, CLIENT: 7.0}),
    "not a number": proposing({**GOOD, CLIENT: float("nan")}),
    "without end": proposing({**GOOD, CLIENT: float("inf")}),
    "words for a number": proposing({**GOOD, "osd_max_scrubs": "two"}),
    "a list for a number": proposing({**GOOD, "osd_max_scrubs": [2]}),
    "an object for a number": proposing({**GOOD, "osd_max_scrubs": {"a": 1}}),
    "nothing for a number": proposing({**GOOD, "osd_max_scrubs": None}),
    "one of the nine without the others": proposing({CLIENT: 0.5}),
    "an unknown knob": proposing({**GOOD, "osd_make_it_fast": 1}),
    "an option that is no knob": proposing({**GOOD, "mon_allow_pool_delete": True}),
    "a knob of the monitors' own": proposing({**GOOD, "osd_mclock_max_capacity_iops_ssd": 1e6}),
    "too large": proposing(GOOD, padding="x" * (5 << 20)),
}


@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_used_is_refused_with_a_reason_and_never_written(what: str, tmp_path: Path) -> None:
    found, aboard = asked(tmp_path, BAD[what])
    assert found.refused
    assert (found.settings, found.rollout) == ({}, None)
    assert aboard.entries() == []


@pytest.mark.parametrize("name", sorted(name for name, knob in KNOBS.items() if knob.high is not None))
def test_each_knob_beyond_its_range_is_refused(name: str, tmp_path: Path) -> None:
    found, _ = asked(tmp_path, proposing({name: 1e15}))
    assert found.refused


def worker(directory: Path, body: str) -> str:
    program = directory / "worker"
    program.write_text(f"#!{sys.executable}\nimport os, time\n{body}\n")
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("os.kill(os.getpid(), 9)", "signal 9"),
        ("os.kill(os.getpid(), 11)", "signal 11"),
        ("raise SystemExit('no module named skopt')", "no module named skopt"),
        ("os.close(0); os.close(1); raise SystemExit(3)", "exit code 3"),
        ("time.sleep(600)", "worker_timeout"),
    ],
)
def test_a_worker_that_dies_or_hangs_is_refused_with_what_became_of_it(body: str, words: str, tmp_path: Path) -> None:
    timeout = 1.0 if "sleep" in body else 30.0
    aboard = OnTwin(worker_python=worker(tmp_path, body), worker_timeout=timeout)
    found = ready(aboard).ask(ASKING, Policy())
    assert words in found.refused
    # operators see the same in a health check
    assert words in aboard.service.health()["TUNER_WORKER_FAILED"]


def test_a_worker_that_is_not_installed_is_refused_by_its_name() -> None:
    aboard = OnTwin(worker_python="/no/such/python")
    assert "/no/such/python" in ready(aboard).ask(ASKING, Policy()).refused


def test_what_the_optimiser_says_is_bounded_so_that_the_state_can_be_stored(tmp_path: Path) -> None:
    """A reason of 100 KB would never fit into the store, and the answer would stand in everybody's way."""
    long = "x" * 100_000
    proposal = {"version": 1, "ok": True, "proposals": [{"settings": GOOD, "why": long}]}
    nothing = {"version": 1, "ok": True, "proposals": [], "verdict": {"state": "done", "reason": long}}
    failed = {"version": 1, "ok": False, "kind": "internal", "error": long}
    for document in (proposal, nothing, failed):
        found, _ = asked(tmp_path, json.dumps(document))
        assert 0 < len(found.why + found.refused) <= LONGEST_WORDS


def test_no_proposal_is_no_failure_and_has_the_optimisers_reason(tmp_path: Path) -> None:
    found, _ = asked(tmp_path, proposing(verdict={"state": "converged", "reason": "nothing better is expected"}))
    assert (found.refused, found.rollout, dict(found.settings)) == ("", None, {})
    assert found.why == "converged: nothing better is expected"


def test_without_objectives_there_is_nothing_to_ask_for() -> None:
    aboard = OnTwin(worker_python="/no/such/python")
    found = Proposer(aboard.service, aboard.service.aim(), Inbox(), aboard.twin.clock.now).ask(ASKING, Policy())
    assert found.refused == ""
    assert "slo set" in found.why


def test_the_search_begins_with_all_that_is_in_force(tmp_path: Path) -> None:
    """Not with the nine alone: what was kept last may be a chunk."""
    kept = tmp_path / "request"
    body = f"import sys; open({str(kept)!r}, 'w').write(sys.stdin.read()); print({proposing(GOOD)!r})"
    aboard = OnTwin(worker_python=worker(tmp_path, body), worker_timeout=20.0)
    aboard.service.config.set("osd", "osd_scrub_chunk_max", "7")
    assert ready(aboard).ask(ASKING, Policy()).refused == ""
    in_force = json.loads(kept.read_text())["in_force"]
    assert in_force["osd_scrub_chunk_max"] == 7
    assert in_force["osd_mclock_profile"] == "balanced"
    # also what is at its default: another patch level has another one
    assert in_force["osd_max_scrubs"] == 3


def test_what_is_in_force_is_that_of_osds_of_the_target(tmp_path: Path) -> None:
    kept = tmp_path / "request"
    body = f"import sys; open({str(kept)!r}, 'w').write(sys.stdin.read()); print({proposing(GOOD)!r})"
    aboard = OnTwin(worker_python=worker(tmp_path, body), worker_timeout=20.0)
    aboard.service.config.set("osd.3", "osd_scrub_chunk_max", "7")
    ready(aboard, "osd.3").ask(ASKING, Policy())
    assert json.loads(kept.read_text())["in_force"]["osd_scrub_chunk_max"] == 7
    ready(aboard, "osd.2").ask(ASKING, Policy())
    assert json.loads(kept.read_text())["in_force"]["osd_scrub_chunk_max"] == 15


@pytest.mark.parametrize("target", ["osd/class:nvme", "osd/host:nowhere", "mon", "osd.77", "???"])
def test_a_target_that_is_not_there_is_refused(target: str, tmp_path: Path) -> None:
    found, _ = asked(tmp_path, proposing(GOOD), target)
    assert found.refused


def test_what_something_else_on_the_cluster_outranks_is_refused(tmp_path: Path) -> None:
    aboard = OnTwin(worker_python=answering(tmp_path, proposing({"osd_max_scrubs": 2})))
    aboard.service.config.set("osd.1", "osd_max_scrubs", "5")
    found = ready(aboard).ask(ASKING, Policy())
    assert "osd.1" in found.refused


def test_monitors_that_do_not_answer_are_a_refusal_as_well(tmp_path: Path) -> None:
    aboard = OnTwin(worker_python=answering(tmp_path, proposing(GOOD)))
    proposer = ready(aboard)
    found, needed = ask_with(aboard, proposer, fails_from=1000)
    assert (found.refused, needed > 10) == ("", True)
    for call in range(needed):
        found, _ = ask_with(aboard, proposer, call)
        assert "no quorum" in found.refused, call
        assert (found.settings, found.rollout) == ({}, None)
    # all that it needs was answered
    assert ask_with(aboard, proposer, needed)[0].refused == ""


def ask_with(aboard: OnTwin, proposer: Proposer, fails_from: int) -> Tuple[Answered, int]:
    """The answer where the monitors' commands fail from some call on, and how many there were."""
    commander, original, made = aboard.commander, aboard.commander.mon, [0]
    aboard.service.slos.begin_interval()

    def mon(*arguments: Any, **named: Any) -> str:
        made[0] += 1
        if made[0] > fails_from:
            raise CommandFailed("mon", -5, "no quorum")
        return original(*arguments, **named)

    commander.mon = mon  # type: ignore[method-assign]
    try:
        return proposer.ask(ASKING, Policy()), made[0]
    finally:
        commander.mon = original  # type: ignore[method-assign]


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Tuple[Proposer, Path]:
    directory = tmp_path_factory.mktemp("worker")
    aboard = OnTwin(worker_python=answering(directory, ""))
    return ready(aboard), directory


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers(-(10**20), 10**20) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
knob_names = st.sampled_from(sorted(KNOBS)) | st.text(max_size=6)
proposals = st.lists(
    st.fixed_dictionaries(
        {"settings": st.dictionaries(knob_names, json_values | st.floats(0.0, 1.0), max_size=3)},
        optional={"why": json_values},
    )
    | json_values,
    max_size=2,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(proposals, json_values)
def test_whatever_comes_back_is_an_answer_that_is_refused_or_can_be_written(
    fuzzed: Tuple[Proposer, Path], proposed: Any, verdict: Any
) -> None:
    proposer, directory = fuzzed
    answering(directory, json.dumps({"version": 1, "ok": True, "proposals": proposed, "verdict": verdict}))
    found = proposer.ask(ASKING, Policy())
    if found.refused:
        assert (dict(found.settings), found.rollout) == ({}, None)
    elif found.settings:
        assert found.rollout is not None
        for name, value in found.settings.items():
            assert KNOBS[name].read(KNOBS[name].format(value)) is not None
    else:
        assert proposed == []


@pytest.mark.parametrize(
    ("target", "queue", "units", "iops", "refused"),
    [
        ("osd", "mclock_scheduler", "fraction", [1000, 9000], "classes hdd and ssd"),
        ("osd/class:ssd", "wpq", "fraction", [1000, 1000], "osd_op_queue of osd.1: found wpq"),
        ("osd/class:ssd", "mclock_scheduler", "iops", [1000, 9000], "capacities of 1000 to 9000 IOPS"),
        ("osd/class:ssd", "mclock_scheduler", "iops", [1000, 1500], ""),
        ("osd/class:ssd", "mclock_scheduler", "fraction", [1000, 9000], ""),
    ],
)
def test_one_set_of_values_is_asked_for_only_where_it_suits_all(
    target: str, queue: str, units: str, iops: List[float], refused: str
) -> None:
    service: Any = SimpleNamespace(
        config=SimpleNamespace(effective=lambda osd: {"osd_op_queue": queue}),
        release=lambda: SimpleNamespace(units=units),
        capacities=lambda osds: [SimpleNamespace(iops=value) for value in iops],
    )
    aim: Any = SimpleNamespace(target=target)
    proposer = Proposer(service, aim, Inbox(), time.time)
    places = [Place(0, "hdd"), Place(1, "ssd"), Place(2, "ssd"), Place(3, "hdd", up=False)]
    if refused:
        with pytest.raises(InputError, match=refused):
            proposer._refuse_unlike(target, places)
    else:
        proposer._refuse_unlike(target, places)
