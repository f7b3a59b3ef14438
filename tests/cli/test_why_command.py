from __future__ import annotations

import json
from pathlib import Path
from typing import Tuple

import pytest

from ceph_tuner_cli import gather, render
from ceph_tuner_cli import why as why_command
from running_program import Run
from twin_cluster.cluster import TwinCluster
from twins import prefixes_sent, small_twin

RECORDED = Path(__file__).resolve().parents[1] / "data" / "why" / "tentacle-reservation-slots.tar.zst"
READS = {
    "osd tree", "osd dump", "osd metadata", "status", "pg ls", "config show", "perf dump", "dump_op_pq_state",
    "dump_recovery_reservations",
}  # fmt: skip


@pytest.fixture
def twin(monkeypatch: pytest.MonkeyPatch) -> TwinCluster:
    opened = small_twin()
    for module in (why_command, gather):
        monkeypatch.setattr(module, "open_cluster", lambda name: opened)
    monkeypatch.setattr(render.console, "width", 80, raising=False)
    return opened


def test_nothing_is_named_on_a_twin_at_ease_and_the_exit_code_is_0(twin: TwinCluster, run: Run) -> None:
    code, out, _ = run("why", "--cluster", "twin")
    assert (code, out.partition(":")[0]) == (0, "Nothing holds work now")


def test_only_commands_that_read_are_sent(twin: TwinCluster, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = prefixes_sent(twin, monkeypatch)
    run("why", "--cluster", "twin")
    assert set(sent) == READS


def test_a_file_of_gather_has_both_looks(twin: TwinCluster, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "state.tar.zst"
    assert run("gather", "--cluster", "twin", "--output", str(path))[0] == 0
    code, out, _ = run("why", "--from", str(path), "--format", "json")
    document = json.loads(out)
    assert (code, document["causes"], document["asked"]) == (0, [], [0, 1, 2, 3])
    assert not [note for note in document["notes"] if "dump" in note]


def test_the_page_fits_80_columns_and_has_evidence_and_commands(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render.console, "width", 80, raising=False)
    code, out, err = run("why", "--from", str(RECORDED))
    page, _, commands = out.partition("Commands by cause")
    assert code == 0
    assert max(len(line) for line in page.splitlines()) <= 80
    assert "ceph tell osd.0 dump_recovery_reservations" in " ".join(page.split())
    assert "ceph config set osd osd_max_backfills 2" in commands
    assert "as of" in err


def test_a_pool_narrows_it_down(run: Run) -> None:
    _, out, _ = run("why", "--from", str(RECORDED), "--pool", "rbd", "--format", "json")
    assert json.loads(out)["causes"] == []
    _, out, _ = run("why", "--from", str(RECORDED), "--pool", "why", "--device-class", "ssd", "--format", "json")
    assert json.loads(out)["causes"][0]["cause"] == "reservation-slots"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--pool", "nowhere"), "--pool: found 'nowhere', expected one of"),
        (("--device-class", "tape"), "--device-class: found 'tape', expected one of"),
        (("--cluster", "ceph"), "--cluster ceph beside it"),
    ],
)
def test_what_is_not_there_is_refused(run: Run, words: Tuple[str, ...], said: str) -> None:
    code, _, err = run("why", "--from", str(RECORDED), *words)
    assert code == 2
    assert said in " ".join(err.split())
