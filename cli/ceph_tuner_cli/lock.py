"""`ceph-tuner lock`: who holds a cluster's lock, and to break it where nobody will let go of it."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence

import typer

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.changes.lock import Claim, break_lock, claims
from ceph_tuner.core.changes.lock_owner import may_live
from ceph_tuner.core.moments import utc
from ceph_tuner_cli.cluster_option import ClusterOption, at_work
from ceph_tuner_cli.render import Format, FormatOption, emit, say
from ceph_tuner_cli.tables import Columns, columns

app = typer.Typer(help="One tuner at a time on a cluster: who that is.", no_args_is_help=True)

_NONE = "nobody holds the lock"


@app.command()
def show(cluster: str = ClusterOption, form: Format = FormatOption) -> None:
    """Show who holds the lock of a cluster, or wants it."""
    with at_work(cluster, "reading the lock's claims") as connection:
        rows = _rows(connection, claims(connection.store))
    emit(rows, form, lambda: _table(rows) if rows else _NONE)


@app.command("break")
def break_(
    cluster: str = ClusterOption,
    yes: bool = typer.Option(False, "--yes", help="Do it; without, show whose claims would be removed."),
    form: Format = FormatOption,
) -> None:
    """Remove every claim, also of a tuner that is alive: it writes nothing more, and the next one takes its trial back.

    Needed for a claim that is not let go of: what died frees the lock by itself within a minute.
    """
    with at_work(cluster, "reading the lock's claims") as connection:
        rows = _rows(connection, break_lock(connection.store) if yes else claims(connection.store))
    emit(rows, form, lambda: _table(rows) if rows else _NONE)
    say(["the lock is broken: whoever held it writes nothing more" if yes else "nothing is changed: --yes does it"])


def _rows(connection: Cluster, claims: Sequence[Claim]) -> List[Dict[str, Any]]:
    now = connection.clock.now()
    return [
        {
            "claim": claim.key,
            "state": _state(claim, now),
            "generation": claim.generation,
            "who": claim.holder.name,
            "host": claim.holder.host,
            "process": claim.holder.process,
            "since": claim.since,
            "renewed_until": claim.expires,
        }
        for claim in claims
    ]


def _state(claim: Claim, now: float) -> str:
    if not may_live(claim.holder):
        return "dead"
    if not claim.expires >= now:
        return "not renewed"
    return "held" if claim.held else "wanted"


def _table(rows: Sequence[Dict[str, Any]]) -> Columns:
    table = columns("state", "who", "host", "since", "renewed until")
    for row in rows:
        table.add_row(row["state"], row["who"], row["host"], utc(row["since"]), utc(row["renewed_until"]))
    return table
