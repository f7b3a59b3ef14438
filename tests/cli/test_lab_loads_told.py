"""What is said of a lab's loads before they run."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, List, Tuple

import pytest

from ceph_tuner.core.errors import ClusterTimeout
from ceph_tuner.core.goals.slo import parse_slo
from ceph_tuner.files.slo_file import SloFile
from ceph_tuner.tune.measurement import Timing
from ceph_tuner_cli import tune_parts
from running_program import Run

SHORT = "recovery may run out of work: at the drives' full speed it lasts for 12 s of 30 s"


class Loads:
    """A scenario with too little work; `fails` where the lab does not answer."""

    def __init__(self, fails: bool = False) -> None:
        self.fails, self.asked, self.closed = fails, [], False  # type: ignore[var-annotated]

    def shortfalls(self, seconds: float) -> Tuple[str, ...]:
        self.asked.append(seconds)
        if self.fails:
            raise ClusterTimeout("osd.0")
        return (SHORT,)

    def close(self) -> None:
        self.closed = True


def on_a_lab(loads: Loads, monkeypatch: pytest.MonkeyPatch, **options: Any) -> List[str]:
    said: List[str] = []
    monkeypatch.setattr(tune_parts, "lab_of", lambda connection: SimpleNamespace())
    monkeypatch.setattr(tune_parts, "make_scenario", lambda name, lab, **given: loads)
    monkeypatch.setattr(tune_parts, "say", said.extend)
    wanted = SloFile(
        parse_slo({"objectives": ["recovery.bytes_s >= 1 MB/s"]}), scenario="client-recovery", options=options
    )
    connection: Any = SimpleNamespace(name="lab")
    assert tune_parts.work_of(connection, wanted, Timing(5.0, 25.0)) is loads
    return said


def test_tune_says_beforehand_which_load_ends_before_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    loads = Loads()
    said = on_a_lab(loads, monkeypatch, seconds=14.0)
    assert loads.asked == [30.0]
    assert said == [f"{SHORT}: give a shorter --window, or more work by `seconds` under `options:` in the SLO file"]
    assert not loads.closed


def test_a_lab_that_does_not_answer_leaves_no_session_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    loads = Loads(fails=True)
    with pytest.raises(ClusterTimeout):
        on_a_lab(loads, monkeypatch)
    assert loads.closed


def test_the_list_of_scenarios_has_every_option(run: Run) -> None:
    _, out, _ = run("lab", "load", "ls", "--format", "json")
    documents = {entry["name"]: entry["options"] for entry in json.loads(out)}
    _, out, _ = run("lab", "load", "ls")
    shown = "".join(out.split())
    for options in documents.values():
        assert {"pool", "device_class"} <= set(options)
        assert all(f"{name}=" in shown for name in options)
    assert shown.count("pool=") == len(documents)
    assert "pool:replicated:Norec:K+M" in shown
