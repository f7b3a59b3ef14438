"""The module's options, as `ceph config set mgr mgr/tuner/NAME VALUE` takes them. `docs/plugin.md` explains them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable, Dict, Iterable, List, NamedTuple

from ceph_tuner.core.autopilot.policy import Policy, option_name, options
from ceph_tuner.core.book import limits
from ceph_tuner.core.errors import InputError


class OptionRow(NamedTuple):
    """One option: its Ceph type, default, bounds and meaning."""

    name: str
    type: str
    default: Any
    low: Any
    high: Any
    meaning: str


OPTIONS: List[OptionRow] = [
    OptionRow(
        "sample_interval",
        "float",
        5.0,
        1.0,
        50.0,
        "seconds between samples: counters more than 60 s apart are not compared",
    ),
    OptionRow("histogram_osds", "uint", 32, 0, 256, "OSDs asked for latency histograms and queue lengths per sample"),
    OptionRow("pg_detail_limit", "uint", 2000, 0, 100000, "PGs up to which all are looked at for scrub and snaptrim"),
    OptionRow("osds_per_tick", "uint", 500, 50, 100000, "OSDs whose counters are read per sample; more take turns"),
    OptionRow("history_minutes", "uint", 120, 20, 1440, "windows of a minute that are kept"),
    OptionRow("history_hours", "uint", 168, 48, 2160, "windows of an hour that are kept"),
    OptionRow("history_trials", "uint", 200, 20, 1000, "records of trials that are kept"),
    OptionRow("worker_python", "str", "python3", None, None, "Python that runs the optimiser; needs scikit-optimize"),
    OptionRow("worker_memory", "uint", 4096, 512, 65536, "MiB of memory that the optimiser may have"),
    OptionRow("worker_timeout", "float", 60.0, 1.0, 600.0, "seconds after which the optimiser is stopped"),
]

_TYPES = {float: "float", int: "uint", str: "str"}


def _rows(items: Iterable[Any], name: Callable[[Any], str]) -> List[OptionRow]:
    return [
        OptionRow(
            name(item),
            _TYPES[type(item.default)],
            item.default,
            item.metadata["low"],
            item.metadata["high"],
            item.metadata["meaning"],
        )
        for item in items
    ]


OPTIONS += [
    OptionRow("auto_target", "str", "osd", None, None, "OSDs that the automatic mode tunes: osd, or osd/class:ssd"),
    OptionRow(
        "boost_rules",
        "str",
        "",
        None,
        None,
        "boosts that begin by themselves: recovery after 5min at-most 6h keep client.p95_ms<=20, scrub after 1d",
    ),
    OptionRow("metrics_port", "uint", 0, 0, 65535, "port of the metrics for Prometheus (9285, say); 0 for none"),
    OptionRow("metrics_address", "str", "", None, None, "address of the metrics; empty for every one"),
    *_rows(options(), option_name),
    *_rows(limits.options(), limits.option_name),
]

AT_ALL_TIMES = "mon-sun"

DEFAULTS: Dict[str, Any] = {option.name: option.default for option in OPTIONS}


def policy_of(option: Callable[[str], Any]) -> Policy:
    """Read the automatic mode's options. Raises InputError for a combination that makes no sense."""
    policy = Policy(**{item.name: option(option_name(item)) for item in options()})
    if policy.window < option("sample_interval"):
        raise InputError(
            "auto_window", f"{policy.window:g}", f"at least sample_interval ({option('sample_interval'):g})"
        )
    return policy


class PolicyOptions:
    """The options as the automatic mode reads them, turn after turn."""

    def __init__(self, option: Callable[[str], Any]) -> None:
        self._option, self._policy = option, Policy()
        self.problem = ""
        """Why the options made no sense when they were read last."""

    def read(self) -> Policy:
        """Give the policy. Where the options make no sense no move is permitted, and what is on trial goes."""
        try:
            self._policy, self.problem = policy_of(self._option), ""
        except InputError as error:
            # not an error of each turn: with options that nobody can read the guard must go on, and commands too
            self.problem = f"an option makes no sense: {error}"
            return replace(self._policy, hours="", blackout=AT_ALL_TIMES)
        return self._policy


class BookOptions:
    """The options as the book reads them, turn after turn."""

    def __init__(self, option: Callable[[str], Any]) -> None:
        self._option, self._limits = option, limits.BookLimits()
        self.problem = ""
        """Why the options made no sense when they were read last."""
        self.never_read = True
        """Whether they never made sense in this mgr: then nobody knows when a page may be in force."""

    def read(self) -> limits.BookLimits:
        """Give the limits. Where the options make no sense those of before hold: the guard must go on."""
        try:
            values = {item.name: self._option(limits.option_name(item)) for item in limits.options()}
            self._limits, self.problem, self.never_read = limits.BookLimits(**values), "", False
        except InputError as error:
            self.problem = f"an option makes no sense, and what held before holds: {error}"
        return self._limits
