"""What moves of data show to people: the plan, the line while one goes on, how it ended, and those that are known."""

from __future__ import annotations

from typing import Any, Mapping, Sequence, Union

from rich.console import Group, RenderableType
from rich.text import Text

from ceph_tuner.core.moments import utc, utc_minute
from ceph_tuner.core.wording import digits, first_of
from ceph_tuner.moves.forecast import FinishTime
from ceph_tuner.moves.mover import DONE, INTERRUPTED, MoveOutcome, MoveProgress
from ceph_tuner_cli.tables import Columns, columns

_ENDS = {DONE: "done", INTERRUPTED: "interrupted; the same command goes on"}


def size(count: float) -> str:
    """Bytes for people."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if count < 1024 or unit == "TiB":
            return f"{digits(count)} {unit}"
        count /= 1024
    return ""


def outcome_page(name: str, outcome: MoveOutcome) -> RenderableType:
    """How it ended."""
    lines = [
        f"{name}: {_ENDS.get(outcome.reason, outcome.reason)}. "
        f"{outcome.moved} moves in {outcome.steps} steps, {size(outcome.moved_bytes)}.",
    ]
    if outcome.windows:
        lines.append(f"{outcome.windows - outcome.windows_missed} of {outcome.windows} windows kept the objectives.")
    if outcome.held:
        lines.append(f"{outcome.held} PGs are held where they are by upmap entries.")
    if outcome.left:
        lines.append(f"left: {first_of(outcome.left, 8)}")
    return Group(*(Text(line) for line in lines))


def records_page(rows: Sequence[Mapping[str, Any]]) -> Union[str, Columns]:
    """The moves that are known."""
    if not rows:
        return "no move is known"
    table = columns("move", "state", "since", "has paused", ">way back", keep=("move",))
    for row in rows:
        pauses = [*(["balancer"] if row["balancer"] else []), *(f"autoscaler of {pool}" for pool in row["autoscale"])]
        back = f"{len(row['undo'])} commands" if row["undo"] else ""
        table.add_row(row["name"], row["state"], utc(row["began"]), ", ".join(pauses), back)
    return table


def progress_words(progress: MoveProgress) -> str:
    """One line."""
    if progress.left is None:
        line = "what moves is known once CRUSH has the weights"
    else:
        rest = f"{progress.left} PGs left ({size(progress.left_bytes)})"
        line = f"{rest}, {progress.under_way} on their way, {_finish(progress)}"
    return f"{line}; waits for {progress.waits_for}" if progress.waits_for else line


def _finish(progress: MoveProgress) -> str:
    return "its end is known once PGs have arrived" if progress.finish is None else finish_words(progress.finish)


def finish_words(finish: FinishTime) -> str:
    """When, with its interval."""
    mean, low, high = finish.mean, finish.low, finish.high
    if mean is None:
        return "not done within a year"
    between = (
        ""
        if low is None
        else f" (90%: {utc_minute(low)} to {'later than a year' if high is None else utc_minute(high)})"
    )
    return f"done by {utc_minute(mean)}{between}"
