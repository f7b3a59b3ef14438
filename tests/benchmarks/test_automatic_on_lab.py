"""What a run of the automatic mode comes to: settings that were kept in time, and that met the objectives."""

from __future__ import annotations

from typing import Any, Dict, Optional

from automatic_on_lab import stages, table

from ceph_tuner.core.autopilot.audit_log import KEPT, PROPOSAL, AuditRecord


def line(number: int, kept_after_s: Optional[float], p99_ms: float, met: bool) -> Dict[str, Any]:
    trail = [AuditRecord(1, 10.0, "automatic mode", PROPOSAL, "smaller chunks")]
    if kept_after_s is not None:
        trail += [AuditRecord(2, 20.0, "automatic mode", KEPT, "they hold")]
        trail += [AuditRecord(3, 21.0, "automatic mode", KEPT, "they hold", outcome="done", refers=2)]
    return {
        "run": number,
        "osds": ["3xnvme"],
        "canary": "auto",
        "objectives": ["client.p99_ms <= 60 ms", "scrub.bytes_s >= 10 MB/s"],
        "kept_after_s": kept_after_s,
        "met": [met, True],
        "before": {"client.p99_ms": 120.0, "scrub.bytes_s": 50e6},
        "after": {"client.p99_ms": p99_ms},
        "trail": [record.to_dict() for record in trail],
    }


def test_only_what_was_kept_and_meets_every_objective_counts() -> None:
    lines = [line(1, 240.0, 40.0, True), line(2, 240.0, 80.0, False), line(3, None, 40.0, True)]
    told = table(lines)
    assert "| 1 | 3xnvme | auto | 4.0 min | 1 | 0 | 120 to 40 | 50.0 MB/s to unseen | yes |" in told
    assert "| 2 | 3xnvme | auto | 4.0 min | 1 | 0 | 120 to 80 | 50.0 MB/s to unseen | no |" in told
    assert "| 3 | 3xnvme | auto | never | 1 | 0 |" in told
    assert told.endswith("were kept in 1 of 3 runs.")


def test_each_stage_is_told_once() -> None:
    told = stages([line(1, 240.0, 40.0, True)])
    assert told == "- run 1, proposal: smaller chunks\n- run 1, kept: they hold"
