from __future__ import annotations

import json
from pathlib import Path
from typing import Callable, Optional, Tuple

import pytest

from ceph_tuner.core.goals.stored_slo import BASELINE
from ceph_tuner_cli import cluster_option, slo
from twins import small_twin

Run = Callable[..., Tuple[int, str, str]]


@pytest.mark.parametrize(("baseline", "met", "code"), [(None, None, 1), (1e6, True, 0), (1e-6, False, 1)])
def test_a_relative_bound_is_held_against_the_baseline_that_the_cluster_keeps(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, baseline: Optional[float], met: Optional[bool], code: int
) -> None:
    twin = small_twin()
    monkeypatch.setattr(cluster_option, "open_cluster", lambda name: twin)
    monkeypatch.setattr(slo, "SystemClock", lambda: twin.clock)
    if baseline is not None:
        twin.store.set(BASELINE, json.dumps({"client.p95_ms": baseline}))
    path = tmp_path / "slo.yaml"
    path.write_text("schema: 1\nname: x\nobjectives: [client.p95_ms <= 1.2 * baseline]\n")
    ended, out, _ = run("slo", "measure", str(path), "--cluster", "twin", "--format", "json")
    (verdict,) = json.loads(out)["verdicts"]
    assert (ended, verdict["met"]) == (code, met)


def test_a_rate_of_work_that_is_not_there_is_idle_and_not_missed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twin = small_twin()
    monkeypatch.setattr(cluster_option, "open_cluster", lambda name: twin)
    monkeypatch.setattr(slo, "SystemClock", lambda: twin.clock)
    path = tmp_path / "slo.yaml"
    path.write_text("schema: 1\nname: x\nobjectives: [client.iops >= 1 IOPS, recovery.bytes_s >= 12 MB/s]\n")
    command = ("slo", "measure", str(path), "--cluster", "twin")
    code, out, _ = run(*command, "--format", "json")
    found = json.loads(out)
    assert (code, found["idle"]) == (0, ["recovery.bytes_s >= 12 MB/s"])
    assert [verdict["met"] for verdict in found["verdicts"]] == [True, None]
    assert "idle" in run(*command)[1]
