"""The module's options, as `ceph config set mgr mgr/tuner/NAME VALUE` takes them. `docs/plugin.md` explains them."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple


class OptionRow(NamedTuple):
    """One option: its Ceph type, default, bounds and meaning."""

    name: str
    type: str
    default: Any
    low: Any
    high: Any
    meaning: str


OPTIONS: List[OptionRow] = [
    OptionRow("sample_interval", "float", 5.0, 1.0, 300.0, "seconds between samples"),
    OptionRow("histogram_osds", "uint", 16, 0, 256, "OSDs asked for latency histograms and queue lengths per sample"),
    OptionRow("pg_detail_limit", "uint", 2000, 0, 100000, "PGs up to which all are looked at for scrub and snaptrim"),
    OptionRow("history_minutes", "uint", 120, 20, 1440, "windows of a minute that are kept"),
    OptionRow("history_hours", "uint", 168, 48, 2160, "windows of an hour that are kept"),
    OptionRow("history_trials", "uint", 200, 20, 1000, "records of trials that are kept"),
    OptionRow("worker_python", "str", "python3", None, None, "Python that runs the optimiser; needs scikit-optimize"),
    OptionRow("worker_timeout", "float", 60.0, 1.0, 600.0, "seconds after which the optimiser is stopped"),
]

DEFAULTS: Dict[str, Any] = {option.name: option.default for option in OPTIONS}
