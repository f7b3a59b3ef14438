"""`ceph-tuner history`: what was changed, by whom, and whether it is in force."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence

import typer
from rich.console import Group

from ceph_tuner.core.changes.forecast_pairs import ForecastPair, kept_pairs
from ceph_tuner.core.changes.journal import APPLIED, Entry
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.measure.forecast_record import ForecastRecord
from ceph_tuner.core.measure.history import History
from ceph_tuner.core.measure.quantity import amount, quantity
from ceph_tuner.core.moments import utc
from ceph_tuner_cli.cluster_option import ClusterOption, at_work, step_documents, step_table
from ceph_tuner_cli.render import Format, FormatOption, emit, say, warn
from ceph_tuner_cli.tables import Columns, columns

MOST_PAIRS = 40
"""Of the table; --format json has all."""

_CHANGE = "change "


def history(
    cluster: str = ClusterOption,
    change: Optional[int] = typer.Option(None, "--change", help="Show the steps of this one."),
    form: Format = FormatOption,
) -> None:
    """List the changes that the cluster remembers, newest last: they are kept in the cluster itself."""
    with at_work(cluster, "reading its journal") as connection:
        applier = connection.applier()
        entries, set_aside = applier.history(), applier.set_aside()
        has_forecasts, now = any(entry.forecast for entry in entries), connection.clock.now()
        pairs = kept_pairs(History(connection.store), entries, now) if has_forecasts else []
    warn(map(str, set_aside))
    if change is None:
        none = "no change was made by ceph-tuner"
        documents = [_document(entry, pairs) for entry in entries]
        emit(documents, form, lambda: Group(_table(entries), *_forecasts(pairs)) if entries else none)
        return
    matches = [entry for entry in entries if entry.number == change]
    if not matches:
        raise InputError("--change", str(change), "the number of a change (`ceph-tuner history` lists them)")
    (entry,) = matches
    own = [pair for pair in pairs if pair.subject == _subject(entry)]
    document = {**_document(entry, pairs), "steps": step_documents(entry.steps)}
    emit(document, form, lambda: Group(step_table(entry.steps), *_forecasts(own)))
    if form is Format.table and entry.note:
        say([entry.note])


def _table(entries: List[Entry]) -> Columns:
    table = columns(">change", "when", "state", "target", ">writes", "who", "why")
    for entry in entries:
        why = ": ".join(filter(None, (entry.why, entry.note)))
        row = (str(entry.number), utc(entry.at), _state(entry), entry.target, str(len(entry.steps)), entry.who, why)
        table.add_row(*row, style="bold" if entry.state == APPLIED else None)
    return table


def _forecasts(pairs: Sequence[ForecastPair]) -> List[Columns]:
    """What the twin said before changes, and what was measured after, the newest last."""
    changes = [pair for pair in pairs if pair.subject.startswith(_CHANGE)][-MOST_PAIRS:]
    if not changes:
        return []
    table = columns(">change", "metric", "predicted", "interval", "measured", "inside", title="\nThe twin")
    for pair in changes:
        value, ends = amount(pair.metric, pair.interval.value, pair.interval.low, pair.interval.high)
        measurement = quantity(pair.metric, pair.measured)
        number = pair.subject[len(_CHANGE) :]
        table.add_row(
            number, pair.metric, value, f"{ends} ({pair.level:.0%})", measurement, "yes" if pair.inside else "no"
        )
    return [table]


def _subject(entry: Entry) -> str:
    return f"{_CHANGE}{entry.number}"


def _document(entry: Entry, pairs: Sequence[ForecastPair]) -> Dict[str, Any]:
    forecast = ForecastRecord.from_dict(entry.forecast)
    pair_of = {pair.metric: pair for pair in pairs if pair.subject == _subject(entry)}
    return {
        "forecast": None if forecast is None else forecast.to_dict(),
        "measured": {name: {"mean": pair.measured, "inside": pair.inside} for name, pair in pair_of.items()} or None,
        "change": entry.number,
        "at": entry.at,
        "changed": entry.changed,
        "state": _state(entry),
        "target": entry.target,
        "release": entry.release,
        "writes": len(entry.steps),
        "who": entry.who,
        "why": entry.why,
        "note": entry.note,
    }


def _state(entry: Entry) -> str:
    return f"{entry.state} (trial)" if entry.trial else entry.state
