"""What a run of the automatic mode comes to: settings that were kept in time, and that met the objectives."""

from __future__ import annotations

from typing import Any, Dict, Optional

from automatic_on_lab import kept_after_s, stages, table

from ceph_tuner.core.autopilot.audit_log import KEPT, PROPOSAL, AuditRecord


def line(number: int, kept_after_s: Optional[float], p99_ms: float, met: bool) -> Dict[str, Any]:
    trail = [AuditRecord(1, 10.0, "automatic mode", PROPOSAL, "smaller chunks")]
    if kept_after_s is not None:
        trail += [AuditRecord(2, 20.0, "automatic mode", KEPT, "they hold")]
        trail += [AuditRecord(3, 21.0, "automatic mode", KEPT, "they hold", outcome="done", refers=2)]
    return {
        "version": 4,
        "run": number,
        "date": "2026-11-28",
        "load": ["client-scrub"],
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
    told = table([*lines, {**line(4, 660.0, 40.0, True)}])
    assert told.startswith("### client-scrub, 3xnvme, canary auto, client.p99_ms <= 60 ms; scrub.bytes_s >= 10 MB/s\n")
    assert "| 4 | 1 | 2026-11-28 | 4.0 min | 1 | 0 | 120 to 40 | 50.0 MB/s to unseen | yes |" in told
    assert "| 4 | 2 | 2026-11-28 | 4.0 min | 1 | 0 | 120 to 80 | 50.0 MB/s to unseen | **no** |" in told
    assert "| 4 | 3 | 2026-11-28 | never | 1 | 0 |" in told
    assert told.endswith("Version 4: settings that meet the objectives were kept in 2 of 4 runs, within 10 min in 1.")


def test_what_was_kept_after_the_wait_had_ended_counts_by_the_trail() -> None:
    waited = {**line(1, 30.0, 40.0, True), "kept_after_s": None}
    assert kept_after_s(waited) == 10.0


def test_runs_of_other_kinds_and_versions_are_apart() -> None:
    older = {**line(1, 240.0, 40.0, True), "version": 3}
    other = {**line(1, 240.0, 40.0, True), "osds": ["2xnvme", "2xhdd"], "noise": "hdd"}
    told = table([other, line(1, 240.0, 40.0, True), older])
    assert told.index("3xnvme") < told.index("2xnvme,2xhdd, canary auto, noise on hdd")
    assert told.index("| 3 | 1 |") < told.index("| 4 | 1 |")
    assert told.count("were kept in 1 of 1 runs") == 3


def test_each_stage_is_told_once() -> None:
    told = stages([line(1, 240.0, 40.0, True)])
    assert told == "- run 1, proposal: smaller chunks\n- run 1, kept: they hold"
