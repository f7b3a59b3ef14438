"""What `ceph-tuner watch` shows of a moment, on 80 columns and any height. Says everything in words, not in colours."""

from __future__ import annotations

from dataclasses import dataclass, field
from textwrap import wrap
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from rich.console import Group, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from ceph_tuner.core.book.explanation import BOOK_OFF
from ceph_tuner.core.changes.journal import Entry
from ceph_tuner.core.goals.judge import Judge, Verdict
from ceph_tuner.core.goals.slo_calendar import policy_in_words
from ceph_tuner.core.measure.quantity import amount
from ceph_tuner.core.measure.sample import NEVER_S
from ceph_tuner.core.moments import utc
from ceph_tuner.core.regimes.telling import calendar_turn

WIDTH = 80
_BAR = 10
_FIRST = 8
_BOOK_LINES = 2
"""Whether it is on, and which page is in force."""

_WORK = {
    "client": ("client.iops", "", "client.bytes_s", "", ""),
    "recovery": ("", "recovery.objects_s", "recovery.bytes_s", "recovery.objects_left", "recovery.finish_s"),
    "backfill": ("", "backfill.objects_s", "", "backfill.objects_left", "backfill.finish_s"),
    "scrub": ("", "scrub.objects_s", "scrub.bytes_s", "scrub.pgs_late", "scrub.interval_s"),
    "snaptrim": ("", "snaptrim.objects_s", "", "snaptrim.queue", "snaptrim.drain_s"),
}
"""Kind of work -> its metrics: operations, objects, bandwidth, what is left, when it is done."""
_LEFT = {"scrub": "PGs late", "snaptrim": "snapshots"}
_LATENCY = {"all": "client.{}_ms", "reads": "client.read_{}_ms", "writes": "client.write_{}_ms"}
_QUEUES = {"client": "client", "recovery": "background_recovery", "best effort": "background_best_effort"}
_TROUBLES = {
    "ops.slow": "slow operation{}",
    "pgs.inactive": "inactive PG{}",
    "pgs.laggy": "laggy PG{}",
    "osds.down": "OSD{} down",
}


@dataclass(frozen=True)
class Moment:
    """Everything that the page says, as plain values."""

    cluster: str
    version: str
    at: float
    """Seconds since the epoch, by the cluster's clock."""
    seconds: float = 0.0
    """That the means are of; 0: nothing was seen of late."""
    means: Mapping[str, float] = field(default_factory=dict)
    newest: Mapping[str, float] = field(default_factory=dict)
    """Of the last look: what is left and what is wrong is told as of now, not as a mean."""
    judge: Judge = field(default_factory=lambda: Judge(None))
    policy: Optional[Mapping[str, Any]] = None
    """Of the objectives' calendar, which holds: its `name`, and `until` when; None without a calendar."""
    trial: Optional[Mapping[str, Any]] = None
    """`ceph tuner auto explain --format json`; None without the plugin."""
    boost: Optional[Mapping[str, Any]] = None
    """`ceph tuner boost status --format json`, while one is on."""
    on_trial: Tuple[Entry, ...] = ()
    """Changes of the journal that end with their owner: of a tuning run, a rollout, or the automatic mode."""
    notes: Tuple[str, ...] = ()

    def verdicts(self) -> List[Verdict]:
        """The objectives held against what was seen; the rate of work that is not there misses nothing."""
        return self.judge.verdicts_at_work(self.means)

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, for programs."""
        return {
            "cluster": self.cluster,
            "version": self.version,
            "at": self.at,
            "seconds": self.seconds,
            "means": dict(self.means),
            "newest": dict(self.newest),
            "verdicts": [verdict.to_dict() for verdict in self.verdicts()],
            "policy": None if self.policy is None else dict(self.policy),
            "on_trial": [
                {
                    "change": entry.number,
                    "since": entry.changed,
                    "target": entry.target,
                    "who": entry.who,
                    "why": entry.why,
                }
                for entry in self.on_trial
            ],
            "boost": None if self.boost is None else dict(self.boost),
            "automatic": None if self.trial is None else dict(self.trial),
            "notes": list(self.notes),
        }


def page(moment: Moment, height: int = 24, width: int = WIDTH) -> RenderableType:
    """Lay a moment out on so many lines; where they do not suffice, the trial's words are cut short first."""
    stamp = utc(moment.at)
    over = f"means of {moment.seconds:.0f} s" if moment.seconds else "no sample"
    parts: List[RenderableType] = [Text(f"{moment.cluster}, Ceph {moment.version}, {stamp}, {over}", "bold")]
    parts += [_work(moment.means, moment.newest), Text(""), _latency(moment.means), Text("")]
    lines = [_queues(moment.means), _trouble(moment.newest), *(f"note: {note}" for note in moment.notes)]
    lines_used = 1 + 1 + len(_WORK) + 1 + 1 + len(_LATENCY) + 1 + len(lines)
    parts += [Text(line, no_wrap=True, overflow="ellipsis") for line in lines]
    verdicts = moment.verdicts()
    others = [*_policy(moment.policy), *_regimes(moment.trial), *_words(moment.boost), *_words(moment.trial)]
    trials = _trials(moment)
    words = [*trials, *others]
    room = height - lines_used
    if verdicts and room > 2:
        # half of the room at least is the trial's, where there is one
        rows = verdicts[: max(1, room - 2 - (min(len(words) + 1, room // 2) if words else 0))]
        parts += [Text(""), _objectives(rows, len(verdicts) - len(rows))]
        room -= 2 + len(rows)
    if words and room > 1:
        if len(_wrapped(words, width)) >= room:
            words = [*(_cut(line, width) for line in trials), *others]
        lines_shown = _lines_for(words, room - 1, width)
        parts += [Text(""), *(Text(line) for line in lines_shown)]
    return Group(*parts)


def _table(*headings: str, left: int = 1, column: int = 10) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for at, heading in enumerate(headings):
        # of one width whatever they hold, so that a live view does not jump
        justify: JustifyMethod = "left" if at < left else "right"
        least = _FIRST if at < left else column
        table.add_column(heading, justify=justify, no_wrap=True, overflow="ellipsis", min_width=least)
    return table


def _work(means: Mapping[str, float], newest: Mapping[str, float]) -> Table:
    table = _table("work", "operations", "objects", "bandwidth", "left", "done in")
    for kind, (operations, objects, nbytes, left_objects, done) in _WORK.items():
        table.add_row(
            kind,
            _cell(operations, means),
            _cell(objects, means),
            _cell(nbytes, means),
            f"{_cell(left_objects, newest)} {_LEFT.get(kind, '')}".strip() if left_objects in newest else "",
            _cell(done, means),
        )
    return table


def _latency(means: Mapping[str, float]) -> Table:
    columns = ("mean", "p50", "p95", "p99")
    table = _table("latency", *columns)
    for who, pattern in _LATENCY.items():
        table.add_row(who, *(_cell(pattern.format(column), means) for column in columns))
    return table


def _queues(means: Mapping[str, float]) -> str:
    """Items that wait, with bars of one scale: `#` for what a class has of the longest queue."""
    depths = {name: means.get(f"queue.{metric}") for name, metric in _QUEUES.items()}
    if all(depth is None for depth in depths.values()):
        return "queue per OSD: not seen (mClock does not run, or nothing was sampled)"
    most = max(depth or 0.0 for depth in depths.values())
    rows = []
    for name, depth in depths.items():
        bar = "#" * round(_BAR * (depth or 0.0) / most) if most > 0 else ""
        rows.append(f"{name} {'-' if depth is None else f'{depth:.3g}'}{f' {bar}' if bar else ''}")
    return f"queue per OSD: {', '.join(rows)}"


def _trouble(newest: Mapping[str, float]) -> str:
    counts = {words: newest[metric] for metric, words in _TROUBLES.items() if metric in newest}
    if not counts:
        return "trouble: not seen"
    troubles = [f"{count:g} {words.format('s' * (count != 1))}" for words, count in counts.items() if count > 0]
    return f"TROUBLE: {', '.join(troubles)}" if troubles else f"no {', no '.join(counts)}".format(*"s" * len(counts))


def _objectives(verdicts: Sequence[Verdict], more: int) -> Table:
    table = _table(f"objective{f' ({more} more)' if more else ''}", "kind", "seen", "margin", "", left=2, column=7)
    for verdict in verdicts:
        margin = "" if verdict.margin is None else f"{100 * max(-9.99, min(9.99, verdict.margin)):+.0f}%"
        state = {True: "met", False: "MISSED", None: "unknown"}[verdict.met]
        style = {True: "green", False: "bold red", None: "dim"}[verdict.met]
        value = amount(verdict.objective.metric, verdict.seen)[0]
        kind = "hard" if verdict.objective.hard else "soft"
        table.add_row(verdict.objective.text, kind, value, margin, Text(state, style))
    return table


def _trials(moment: Moment) -> List[str]:
    """One for each change on trial."""
    return [
        f"On trial for {max(0.0, moment.at - entry.changed):.0f} s: change {entry.number}, "
        f"target {entry.target}: {entry.why}"
        for entry in moment.on_trial
    ]


def _cut(line: str, width: int) -> str:
    """The beginning of it, on one line."""
    return line if len(line) <= width else f"{line[: width - 1]}…"


def _policy(policy: Optional[Mapping[str, Any]]) -> List[str]:
    """Which policy of the calendar holds; nothing without a calendar."""
    return [] if policy is None else [f"policy: {policy_in_words(policy['name'], policy['until'])}"]


def _regimes(trial: Optional[Mapping[str, Any]]) -> List[str]:
    """What the cluster does, and what the book makes of it."""
    if trial is None:
        return []
    rows = [row for row in trial.get("regimes") or () if isinstance(row, Mapping)]
    book = [str(line) for line in trial.get("book") or () if line != BOOK_OFF]
    return [*map(_regime, rows), *book[:_BOOK_LINES]]


def _regime(row: Mapping[str, Any]) -> str:
    of = f" of {row['scope']}" if row.get("scope") else ""
    # a plugin of an earlier version knows of no calendar
    turn = calendar_turn(row.get("turns_at"))
    return f"regime{of}: {row.get('regime')} since {utc(float(row.get('since') or 0.0))}{turn and f'; {turn}'}"


def _words(trial: Optional[Mapping[str, Any]]) -> List[str]:
    if trial is None:
        return []
    words = [str(line) for line in trial.get("words", [])]
    return [*words, *([f"Problem: {trial['problem']}"] if trial.get("problem") else [])]


def _lines_for(words: Sequence[str], room: int, width: int) -> List[str]:
    """As many lines as there is room for, each as long as the width allows."""
    lines = _wrapped(words, width)
    return lines if len(lines) <= room else [*lines[: room - 1], f"… {len(lines) - room + 1} more lines"]


def _wrapped(words: Sequence[str], width: int) -> List[str]:
    return [part for line in words for part in wrap(line, width, subsequent_indent="  ")]


def _cell(metric: str, means: Mapping[str, float]) -> str:
    if metric not in means:
        return ""
    if means[metric] >= NEVER_S:
        return "never"
    return amount(metric, means[metric])[0]
