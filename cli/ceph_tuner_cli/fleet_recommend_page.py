"""What `ceph-tuner fleet recommend` shows: how far the searches are, and a table of what came of them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column
from rich.text import Text

from ceph_tuner.core.measure.quantity import amount
from ceph_tuner.fleet.advice_for_all import Known
from ceph_tuner.workers import CallFailure, CallMessage, CallResult, CallStart, Event, WorkerLoss
from ceph_tuner_cli.render import Moving, say
from ceph_tuner_cli.tables import Columns, cell_lines, columns

Plain = Mapping[str, Any]

AT_ONCE = 8
"""So many searches under way have a line of their own."""


@dataclass
class Row:
    """One cluster: its answer (as `ceph-tuner recommend --format json` prints it), or why it has none."""

    name: str
    answer: Optional[Plain] = None
    problem: str = ""
    saved: Optional[str] = None
    kept: bool = True
    """False: it could not be written to where answers are kept."""
    notes: Sequence[str] = ()
    """What was guessed where it was asked for its description."""

    @property
    def before(self) -> Plain:
        """What is in force."""
        return _predictions(self.answer)[0]

    @property
    def after(self) -> Plain:
        """What is recommended: what is in force, where nothing is better."""
        label = (self.answer or {})["recommended"]["winner"]
        return next(
            (entry for entry in _predictions(self.answer) if self.better and entry["label"] == label), self.before
        )

    @property
    def better(self) -> bool:
        """Whether something is better than what is in force."""
        return self.answer is not None and bool(self.answer["recommended"]["better"])

    @property
    def well(self) -> bool:
        """Whether it has an answer that keeps every hard objective."""
        return self.answer is not None and all(entry["met"] for entry in self.after["verdicts"] if entry["hard"])

    @property
    def settings(self) -> str:
        """The profile in force, and the one that is recommended."""
        if self.answer is None:
            return "no answer" if self.problem else "not done"
        now = self.answer["in_force"]["profile"] or "custom"
        then = self.answer["recommended"]["settings"].get("osd_mclock_profile", now)
        return f"{now}\n→ {then if then != now else 'other values'}" if self.better else f"{now}\nstays"

    @property
    def objectives(self) -> List[Dict[str, Any]]:
        """Hard objectives (all, where none is hard), under what is in force and under what is recommended."""
        if self.answer is None:
            return []
        pairs = list(zip(self.before["verdicts"], self.after["verdicts"]))
        return [
            {
                "objective": one["objective"],
                "in_force": _metric_entry(self.before, one),
                "recommended": _metric_entry(self.after, other),
            }
            for one, other in [pair for pair in pairs if pair[0]["hard"]] or pairs
        ]

    @property
    def remarks(self) -> List[str]:
        """What does not fit a cell, behind the name of the cluster."""
        if self.problem:
            return [f"{self.name}: {self.problem}"]
        if self.answer is None:
            return []
        lines = [] if self.better else [f"nothing better found: {self.answer['recommended']['reason']}"]
        hard = {entry["objective"] for entry in self.after["verdicts"] if entry["hard"]}
        lines += [_miss_text(entry) for entry in self.answer["missed"] if entry["objective"] in hard]
        if self.notes:
            lines.append(f"described by itself, with {len(self.notes)} guesses (--format json, or `twin describe`)")
        return [f"{self.name}: {line}" for line in lines]

    def to_dict(self) -> Dict[str, Any]:
        """The member's entry of `fleet recommend --format json`."""
        head = {"cluster": self.name, "answered": self.answer is not None, "problem": self.problem or None}
        head["guesses"] = list(self.notes)
        if self.answer is None:
            return head
        choice = self.answer["recommended"]
        return {
            **head,
            "release": self.answer["release"],
            "in_force": self.answer["in_force"]["profile"] or "custom",
            "better": self.better,
            "winner": choice["winner"],
            "reason": choice["reason"],
            "meets_hard_objectives": self.well,
            "objectives": self.objectives,
            "missed": self.answer["missed"],
            "settings": choice["settings"],
            "commands": self.answer["commands"],
            "undo": self.answer["undo"],
            "saved": self.saved,
        }


def page(rows: Sequence[Row]) -> Columns:
    """One row a cluster, of as many lines as it has objectives."""
    table = columns("cluster", "settings", "objective", "in force", "recommended", keep=["in force", "recommended"])
    for row in rows:
        if not row.objectives:
            table.add_row(row.name, row.settings, style="red" if row.problem else None)
        for index, entry in enumerate(row.objectives):
            metric, _, bound = entry["objective"].partition(" ")
            first = (row.name, row.settings) if index == 0 else ("", "")
            cells = [_cell(metric, entry[key]) for key in ("in_force", "recommended")]
            table.add_row(*first, cell_lines(metric, bound), *cells)
    return table


class FleetProgress(AbstractContextManager["FleetProgress"]):
    """The whole fleet on the terminal: a line for all, one for each search under way, and one left behind for each."""

    def __init__(self, total: int) -> None:
        self._progress = Moving(
            SpinnerColumn(),
            TextColumn(
                "{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)
            ),
            BarColumn(bar_width=8, table_column=Column(width=8)),
            TimeElapsedColumn(table_column=Column(width=7, no_wrap=True)),
            TimeRemainingColumn(compact=True, table_column=Column(width=5, no_wrap=True)),
            expand=True,
        )
        self._done = self._failed = 0
        self._under_way: List[str] = []
        self._lines: Dict[str, Any] = {}
        self._where = ""
        self._all = self._progress.add_task("preparing: compiles the model on its first use", total=total)

    def __enter__(self) -> FleetProgress:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def place(self, where: str) -> None:
        """Where the searches run."""
        self._where = where
        self._summary()

    def hear(self, event: Union[Event, Known], rows: Mapping[str, Row]) -> None:
        """Show what has happened."""
        if isinstance(event, CallStart):
            self._under_way.append(event.key)
            if len(self._lines) < AT_ONCE:
                self._lines[event.key] = self._progress.add_task(f"  {event.key}: begins", total=None)
        elif isinstance(event, CallMessage):
            if event.key in self._lines:
                # the bar says how far it is: where there is no room, that is cut
                best = f"best {event.message['best']}; " if event.message["best"] else ""
                self._progress.update(
                    self._lines[event.key],
                    description=f"  {event.key}: {best}{event.message['text']}",
                    completed=event.message["done"],
                    total=event.message["total"],
                )
        else:
            if event.key in self._under_way:
                self._under_way.remove(event.key)
            if event.key in self._lines:
                self._progress.remove_task(self._lines.pop(event.key))
            if not isinstance(event, WorkerLoss):
                self._take_end(event, rows[event.key])
        self._summary()

    def _take_end(self, event: Union[CallResult, CallFailure, Known], row: Row) -> None:
        self._done += 1
        self._failed += isinstance(event, CallFailure)
        remark = " (by an earlier run)" if isinstance(event, Known) else ""
        outcome = f": {row.problem}" if row.problem else _short(row)
        say([f"{row.name}: {' '.join(row.settings.split())}{remark}{outcome}"])

    def _summary(self) -> None:
        words = [
            f"{self._done} of {self._progress.tasks[0].total:.0f} clusters done",
            f"{len(self._under_way)} under way",
        ]
        words += [f"{self._failed} failed"] if self._failed else []
        text = f"{', '.join(words)}; {self._where}"
        self._progress.update(self._all, completed=self._done, description=text)


def _predictions(answer: Optional[Plain]) -> List[Plain]:
    return list((answer or {})["predictions"])


def _metric_entry(prediction: Plain, verdict: Plain) -> Dict[str, Any]:
    metric = verdict["objective"].split(" ")[0]
    interval = prediction["intervals"].get(metric)
    return {
        "mean": prediction["means"].get(metric),
        # a list of its own: YAML names those that stand twice
        "interval": None if interval is None else list(interval),
        "met": verdict["met"],
    }


def _cell(metric: str, numbers: Plain) -> Text:
    value, ends = amount(metric, numbers["mean"], *(numbers["interval"] or ()))
    return Text.assemble(
        (f"{'✓' if numbers['met'] else '✗'} {value}", "green" if numbers["met"] else "red"),
        (f"\n  {ends}" if ends else "", "dim"),
    )


def _short(row: Row) -> str:
    """What changes, on a line."""
    parts = []
    for entry in row.objectives:
        metric = entry["objective"].split(" ")[0]
        values = [amount(metric, entry[key]["mean"])[0] for key in ("in_force", "recommended")]
        mark = "" if entry["recommended"]["met"] else ", missed"
        parts.append(f"{metric} {' → '.join(values if row.better else values[:1])}{mark}")
    return f"; {'; '.join(parts)}" if parts else ""


def _miss_text(entry: Plain) -> str:
    metric = entry["objective"].split(" ")[0]
    alone, best = entry["without_other_work"], entry["best_seen"]
    words = f"{entry['objective']} is missed: {amount(metric, entry['predicted'])[0]}"
    if alone is not None:
        words += f", with no other work {amount(metric, alone)[0]}"
    if best is not None:
        beside = f", which misses {' and '.join(entry['which_misses'])}" if entry["which_misses"] else ""
        words += f", at best {amount(metric, best)[0]} ({entry['best_seen_with']}{beside})"
    return words
