"""What the measurement of kills calls a violation, and what it does not."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, List, Mapping

import kills_on_lab
import lock_trace
import pytest
from kills_on_lab import Ledger, Observer, Program, SteppedClock, Stop, arguments, clock_library, summaries, table

from appliers import FULL, LIMIT, Killed, applier, kill_at
from ceph_tuner.core.changes.journal import PREFIX, Journal
from ceph_tuner.core.changes.lock import Holder, Lock
from ceph_tuner.core.errors import InputError, Locked
from ceph_tuner.core.knobs.releases import nine
from monitors import ManualClock, Monitors

WRITES = range(1, 40)


def observed(monitors: Monitors) -> tuple[Observer, Ledger]:
    ledger = Ledger(None, 1)
    return Observer(monitors, monitors.store, ledger), ledger


def write(monitors: Monitors, settings: Mapping[str, Any], who: str = "one") -> None:
    writer = applier(monitors, who)
    writer.apply(writer.plan("osd", settings))


@pytest.mark.slow
@pytest.mark.parametrize("landed", [False, True])
def test_wherever_a_writer_dies_every_look_is_in_order(landed: bool) -> None:
    deaths = 0
    for at in WRITES:
        monitors = Monitors()
        observer, ledger = observed(monitors)
        kill_at(monitors, at, landed)
        try:
            write(monitors, FULL)
            applier(monitors).undo()
        except Killed:
            deaths += 1
        monitors.before_write = monitors.after_write = lambda: None
        observer.look()
        # whoever comes next takes back what was half done
        with suppress(InputError):
            applier(monitors, "two").undo(everything=True)
        observer.look()
        write(monitors, {"osd_max_scrubs": 2}, "two")
        observer.look()
        applier(monitors, "two").undo(everything=True)
        observer.look()
        assert (ledger.counts["looks"], dict(ledger.broken)) == (4, {})
        assert observer.table() == observer.before
    assert deaths > 20


def test_a_value_that_no_change_plans_is_a_violation(tmp_path: Path) -> None:
    monitors, output = Monitors(), tmp_path / "kills.jsonl"
    ledger = Ledger(output, 3)
    observer = Observer(monitors, monitors.store, ledger)
    write(monitors, FULL)
    monitors.set("osd.1", "osd_max_scrubs", "7")
    observer.look()
    observer.look()
    assert ledger.broken == {"inverse": 2, "quiet": 2}
    # the same words are told once
    told = [json.loads(line) for line in output.read_text().splitlines()]
    assert [(line["run"], line["violation"]) for line in told] == [(3, "inverse"), (3, "quiet")]
    assert told[0]["words"] == "osd.1 osd_max_scrubs is 7, and should be None"


def test_a_change_in_force_whose_value_is_gone_is_a_violation_and_one_half_done_is_not() -> None:
    monitors = Monitors()
    observer, ledger = observed(monitors)
    write(monitors, FULL)
    monitors.remove("osd", LIMIT)
    observer.look()
    assert ledger.broken == {"quiet": 1}
    # the same values in a change that is under way: its other steps are to come
    (entry,) = Journal(monitors.store).entries()
    key = f"{PREFIX}{entry.number:08d}"
    monitors.store.set(key, json.dumps({**json.loads(monitors.store.values[key]), "state": "applying"}))
    observer.look()
    assert (ledger.counts["looks"], ledger.broken) == (2, {"quiet": 1})


def test_a_journal_that_cannot_be_read_is_a_violation() -> None:
    monitors = Monitors()
    observer, ledger = observed(monitors)
    monitors.store.set(f"{PREFIX}00000001", "{}")
    observer.look()
    assert list(ledger.broken) == ["journal"]


def test_a_journal_that_changes_during_every_look_is_none() -> None:
    monitors = Monitors()
    observer, ledger = observed(monitors)
    dump, numbers = monitors.dump, iter(range(2, 99))

    def changing() -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(monitors, "dump", dump)
            write(monitors, {"osd_max_scrubs": next(numbers)})
        return dump()

    monitors.dump = changing  # type: ignore[method-assign]
    observer.look()
    assert ledger.counts == {"looks at a journal that changed meanwhile": 1}
    assert not ledger.broken


@pytest.fixture
def traced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The lock with its notes, in a file of this test."""
    for name in ("_acquire", "_release", "check"):
        monkeypatch.setattr(Lock, name, getattr(Lock, name))
    lock_trace.install(Lock, str(tmp_path / "trace"))
    return tmp_path / "trace"


def test_holders_one_after_the_other_are_never_two_inside(traced: Path) -> None:
    monitors = Monitors()
    for name in ("one", "two"):
        write(monitors, {"osd_max_scrubs": 2 if name == "one" else 3}, name)
    notes = lock_trace.read(traced)
    assert [note["generation"] for note in notes if note["what"] == lock_trace.ENTERED] == [1, 2]
    assert sum(note["what"] == lock_trace.MAY_WRITE for note in notes) > 4
    assert lock_trace.two_inside(notes) == []


def test_a_holder_that_slept_is_not_let_write_and_is_no_violation(traced: Path) -> None:
    monitors, clock = Monitors(), ManualClock()
    sleeper = Lock(monitors.store, clock, Holder("one"), heartbeat=False)
    sleeper.__enter__()
    clock.sleep(40)
    with Lock(monitors.store, clock, Holder("two"), heartbeat=False) as second:
        second.check()
        with pytest.raises(Locked):
            sleeper.check()
    assert lock_trace.two_inside(lock_trace.read(traced)) == []


def test_a_lock_that_lets_two_in_is_found(traced: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monitors, clock = Monitors(), ManualClock()
    monkeypatch.setattr(Lock, "others", lambda self: [])
    monkeypatch.setattr(Lock, "_others_of", lambda self, found: [])
    monkeypatch.setattr(Lock, "_is_ours", lambda self, found, settle=True: True)
    first = Lock(monitors.store, clock, Holder("one"), heartbeat=False)
    with first, Lock(monitors.store, clock, Holder("two"), heartbeat=False):
        first.check()
    (words,) = lock_trace.two_inside(lock_trace.read(traced))
    assert "(one) was let write as holder 1" in words
    assert "(two) had entered as holder 2" in words


def test_two_that_are_the_same_holder_are_found() -> None:
    notes = [{"at": float(pid), "pid": pid, "who": "x", "what": lock_trace.ENTERED, "generation": 4} for pid in (1, 2)]
    assert lock_trace.two_inside(notes) == ["process 2 (x) entered as holder 4, and so had process 1 (x)"]


def test_a_note_that_its_writer_did_not_finish_is_left_out(tmp_path: Path) -> None:
    note = {"at": 1.0, "pid": 1, "who": "x", "what": lock_trace.ENTERED, "generation": 1}
    (tmp_path / "trace").write_text(json.dumps(note) + '\n{"at": 2.0, "pi')
    assert lock_trace.read(tmp_path / "trace") == [note]


def test_the_wall_clock_of_one_process_steps_while_it_runs_and_no_other_clock_does(tmp_path: Path) -> None:
    clock = SteppedClock(tmp_path, "a", clock_library(tmp_path))
    told = "import time; print(time.time(), time.clock_gettime(time.CLOCK_BOOTTIME), flush=True)"
    script = f"{told}; input(); {told}"
    with subprocess.Popen(
        [sys.executable, "-c", script],
        env=clock.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        before = [float(word) for word in process.stdout.readline().split()]
        clock.set(-3600.25)
        after = [float(word) for word in process.communicate("\n")[0].split()]
    assert before[0] == pytest.approx(time.time(), abs=20)
    assert after[0] - before[0] == pytest.approx(after[1] - before[1] - 3600.25, abs=0.1)
    assert 0 <= after[1] - before[1] < 20


def program(tmp_path: Path, ledger: Ledger) -> Program:
    lab: Any = SimpleNamespace(name="no-such-lab", osds=[0, 1, 2])
    clock = SteppedClock(tmp_path, "0", clock_library(tmp_path))
    return Program("0", lab, clock, tmp_path / "trace", ledger, "7/program 0")


def test_a_command_that_ends_as_the_documentation_says_is_no_violation(tmp_path: Path) -> None:
    ledger = Ledger(None, 1)
    assert program(tmp_path, ledger).run(["rollback", "--all"]) == 2
    assert dict(ledger.broken) == {}


@pytest.mark.parametrize("end", ["raise ValueError('x')", "import sys; sys.exit(70)"])
def test_a_traceback_and_an_unknown_exit_code_are_violations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    (tmp_path / "kills_participant.py").write_text(end)
    (tmp_path / "clock_step.c").write_text((kills_on_lab.HERE / "clock_step.c").read_text())
    monkeypatch.setattr(kills_on_lab, "HERE", tmp_path)
    ledger = Ledger(None, 1)
    program(tmp_path, ledger).run(["rollback"])
    assert list(ledger.broken) == ["exit code"]


def test_a_command_that_does_not_end_is_killed_and_a_violation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kills_participant.py").write_text("import time; time.sleep(60)")
    (tmp_path / "clock_step.c").write_text((kills_on_lab.HERE / "clock_step.c").read_text())
    monkeypatch.setattr(kills_on_lab, "HERE", tmp_path)
    monkeypatch.setattr(kills_on_lab, "LASTS_S", 0.5)
    ledger = Ledger(None, 1)
    program(tmp_path, ledger).run(["rollback"])
    assert dict(ledger.broken) == {"hang": 1}


def test_a_part_of_the_measurement_that_ends_by_an_error_makes_no_clean_run() -> None:
    def work(_: Stop) -> None:
        raise FileNotFoundError("drives")

    ledger = Ledger(None, 1)
    ledger.told(work, Stop())
    assert dict(ledger.broken) == {"measurement": 1}


def test_every_change_that_is_drawn_is_one_that_can_be_planned() -> None:
    randomness, drawn = random.Random(1), []
    for _ in range(200):
        words = arguments(randomness, [0, 1, 2])
        drawn.append(words[0])
        settings: Dict[str, float] = {
            name: float(value) for name, _, value in (word[6:].partition("=") for word in words if word[:6] == "--set=")
        }
        if len(settings) == 9:
            assert list(settings) == list(nine((0, 1, 0), (0, 1, 0), (0, 1, 0)))
            assert sum(value for name, value in settings.items() if name.endswith("_res")) <= 1.0
    assert {"apply", "rollback"} == set(drawn)


def line(number: int, **violations: int) -> Dict[str, Any]:
    counts = {"looks": 100, "commands of the program": 20, "commands of the plugin": 5, "mgrs killed": 2}
    return {
        "run": number,
        "seed": 40 + number,
        "minutes": 15.0,
        "counts": counts,
        "entered": 12,
        "checks": 80,
        "violations": violations,
    }


def test_the_page_has_each_run_with_its_violations() -> None:
    lines: List[Dict[str, Any]] = [line(1), {"violation": "quiet", "words": "x", "run": 2, "at": 1.0}, line(2, quiet=3)]
    assert len(summaries(lines)) == 2
    told = table(lines)
    assert "| 1 | 41 | 15.0 | 100 | 25 | 0 | 2 | 0 | 0 | 12 | none |" in told
    assert "| 2 | 42 | 15.0 | 100 | 25 | 0 | 2 | 0 | 0 | 12 | quiet: 3 |" in told
    assert told.endswith("3 violations in 200 looks and 30 minutes.")
