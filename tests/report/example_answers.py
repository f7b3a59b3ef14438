"""Documents as `ceph-tuner recommend` and `tune` print them, small."""

from __future__ import annotations

from typing import Any, Dict, List

LIMIT, TRIMS = "osd_mclock_scheduler_background_recovery_lim", "osd_pg_max_concurrent_snap_trims"
OBJECTIVES = [
    {"objective": "client.p95_ms <= 5 ms", "hard": True, "priority": 1.0},
    {"objective": "recovery.bytes_s >= 100 MB/s", "hard": True, "priority": 1.0},
]
AT = 1767225600.0


def recommendation(**changes: Any) -> Dict[str, Any]:
    document: Dict[str, Any] = {
        "cluster": "nvme-node",
        "release": "tentacle",
        "slo": {"name": "wanted", "objectives": OBJECTIVES},
        "recommended": {
            "winner": "trial 7",
            "better": True,
            "reason": "meets client.p95_ms, which the settings in force miss",
            "verdicts": [],
            "settings": {"osd_mclock_profile": "custom"},
        },
        "in_force": {"profile": "balanced", "settings": {}},
        "predictions": [
            _prediction("balanced", 6.6, 1.2e9, {"osd_mclock_profile": "balanced"}),
            _prediction("high_client_ops", 6.4, 1.1e9, {"osd_mclock_profile": "high_client_ops"}),
            _prediction("trial 7", 3.8, 4e8, {LIMIT: 0.4, TRIMS: 1}),
            _prediction("trial 3", 4.1, 3e8, {LIMIT: 0.3}),
        ],
        "tried": [{"label": "trial 1", "means": {"client.p95_ms": 9.0, "recovery.bytes_s": 2e8}}],
        "knobs": [_knob(LIMIT, 1.8), _knob(TRIMS, 1.0, put_back=True)],
        "missed": [],
        "evidence": {"simulated": {"runs": 40, "seconds_each": 9.0, "osds": 4, "settings_tried": 8, "seed": 1}},
        "searched": [LIMIT, TRIMS],
        "model_error_known_for": [],
        "confirmed": True,
        "notes": ["clients never get more than 0.59 of the capacity"],
        "commands": ["ceph config set osd osd_mclock_profile custom", f"ceph config set osd {LIMIT} 0.400000"],
        "undo": [f"ceph config rm osd {LIMIT}", "ceph config rm osd osd_mclock_profile"],
        "capacity": [
            _account("client", 0.5, None, 0.3),
            _account("background_recovery", 0.2, 0.4, 0.35),
            _account("background_best_effort", 0.0, 0.9, 0.0),
        ],
        "explanation": explanation(),
        "elsewhere": [{"profile": "lab-recovery", "suggested": False, "reason": "unlike in load"}],
        "beyond_live_knobs": {
            "changes": [
                {
                    "change": "pg_num of rbd 64 to 128",
                    "kind": "moves data",
                    "effects": [{"metric": "client.p95_ms", "before": 3.8, "after": 3.5}],
                    "steps": [{"command": "ceph osd pool set rbd pg_num 128", "for_each": "", "wait_until": "done"}],
                    "undo": [{"command": "ceph osd pool set rbd pg_num 64", "for_each": "", "wait_until": ""}],
                }
            ]
        },
    }
    return {**document, **changes}


def tuning(**changes: Any) -> Dict[str, Any]:
    document: Dict[str, Any] = {
        "cluster": "lab",
        "release": "tentacle",
        "target": "osd",
        "slo": {"name": "wanted", "objectives": OBJECTIVES},
        "winner": {
            "winner": "trial 1",
            "better": True,
            "reason": "meets client.p95_ms, which the settings in force miss",
            "settings": {LIMIT: 0.4},
        },
        "baseline": {"client.p95_ms": 8.0, "recovery.bytes_s": 2e8},
        "before": {"profile": "balanced", "settings": {}},
        "search": {"state": "budget", "reason": "all 2 trials are made", "at_fault": [], "trust": {}},
        "trials": trials(),
        "written": False,
        "commands": [f"ceph config set osd {LIMIT} 0.400000"],
        "undo": [f"ceph config rm osd {LIMIT}"],
        "capacity": [],
        "explanation": None,
    }
    return {**document, **changes}


def trials() -> List[Dict[str, Any]]:
    return [
        _trial("baseline", "settings in force", 0, 8.0, {}, why="balanced"),
        _trial("profile", "high_client_ops", 1, 7.0, {"osd_mclock_profile": "high_client_ops"}),
        _trial("trial", "trial 1", 2, 4.0, {LIMIT: 0.4}),
        _trial("trial", "trial 2", 3, 20.0, {LIMIT: 1.0}, failed="client.p95_ms is 20 ms at best", hopeless=True),
        _trial("repeat", "trial 1", 4, 4.4, {LIMIT: 0.4}),
        _trial("repeat", "settings in force", 5, 7.6, {}, why="balanced"),
    ]


def explanation() -> Dict[str, Any]:
    curve = {"mean": [9.0, 4.0, 5.0, 7.0], "low": [8.0, 3.0, 4.0, 6.0], "high": [12.0, 5.0, 6.0, 9.0]}
    return {
        "around": None,
        "importance": {
            "client.p95_ms": {"deviation": 0.4, "knobs": [_influence(LIMIT, 0.7), _influence(TRIMS, 0.2)]},
            "recovery.bytes_s": {"deviation": 0.001, "knobs": [_influence(LIMIT, 0.9)]},
        },
        "in_the_way": {
            "together": 0.02,
            "conflicts": [[entry["objective"] for entry in OBJECTIVES]],
            "without": {entry["objective"]: 0.9 for entry in OBJECTIVES},
            "nearest": [{"objective": OBJECTIVES[0]["objective"], "instead": "", "bound": 6.0, "share": 0.2}],
            "settings": {LIMIT: 0.5},
            "probability": 0.9,
        },
        "partial_dependence": [
            {"metric": "client.p95_ms", "name": LIMIT, "values": [0, 0.2, 0.6, 1.0], **curve},
            {"metric": "client.p95_ms", "name": TRIMS, "values": [1, 2, 4, 16], **curve},
        ],
        "convergence": [
            {"number": 1, "mean": 0.3, "low": 0.1, "high": 0.5, "feasible": 0.2, "best": None},
            {"number": 2, "mean": -0.1, "low": -0.2, "high": 0.0, "feasible": 0.9, "best": -0.1},
        ],
    }


def _prediction(label: str, latency: float, rate: float, settings: Dict[str, Any]) -> Dict[str, Any]:
    return {
        "label": label,
        "settings": settings,
        "runs": 12,
        "means": {"client.p95_ms": latency, "recovery.bytes_s": rate},
        "intervals": {"client.p95_ms": [0.9 * latency, 1.1 * latency], "recovery.bytes_s": [0.8 * rate, 1.2 * rate]},
    }


def _knob(name: str, ratio: float, put_back: bool = False) -> Dict[str, Any]:
    ends = [0.9 * ratio, 1.1 * ratio]
    without = [
        {"metric": "client.p95_ms", "with": 3.8, "without": 3.8 * ratio, "ratio": ratio, "interval": ends},
        {"metric": "recovery.bytes_s", "with": 4e8, "without": 0.0, "ratio": None, "interval": None},
    ]
    return {"name": name, "in_force": 0, "value": 1, "beside": [], "put_back": put_back, "without": without}


def _account(name: str, reserved: float, limit: Any, got: float) -> Dict[str, Any]:
    shares = {"asked": None, "owed": got, "got": got, "needed": 1.2 * got}
    return {"name": name, "reserved": reserved, "limit": limit, "held_by": "its share", **shares}


def _influence(name: str, total: float) -> Dict[str, Any]:
    ends = {"first_interval": [total / 2, total], "total_interval": [total / 2, min(1.0, 1.2 * total)]}
    return {"name": name, "first": total, "total": total, **ends}


def _trial(kind: str, label: str, turn: int, latency: float, settings: Dict[str, Any], **more: Any) -> Dict[str, Any]:
    measures = {"client.p95_ms": [latency, 0.5, 5], "recovery.bytes_s": [2e8, 1e7, 5]}
    plain = {"kind": kind, "label": label, "settings": settings, "at": AT + 40 * turn, "seconds": 35.0}
    return {**plain, "measures": measures, "why": "", "failed": None, "notes": [], **more}
