"""`ceph-tuner gather`: what the read commands need of a cluster, in one file without secrets."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any, Dict, Optional

import typer

from ceph_tuner.core.atomic_write import check_free
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.moments import utc
from ceph_tuner.doctor.finding import size as size_of
from ceph_tuner.gather import state_file
from ceph_tuner.gather.read_commands import INTERVAL_S, OSDS
from ceph_tuner.gather.read_commands import gather as gathered
from ceph_tuner.gather.state import ClusterState, contents
from ceph_tuner_cli.cluster_option import AnyClusterOption, ForceOption
from ceph_tuner_cli.prefix_option import open_cluster
from ceph_tuner_cli.render import Format, FormatOption, emit, say, working
from ceph_tuner_cli.tables import Columns, columns


def gather(
    cluster: Optional[str] = AnyClusterOption,
    output: Optional[Path] = typer.Option(None, "--output", "-o", help="The file to write, such as state.tar.zst."),
    show: Optional[Path] = typer.Option(
        None, "--show", metavar="FILE", help="Show what is in a file; asks no cluster."
    ),
    osds: int = typer.Option(
        OSDS, "--osds", min=OSDS, max=10_000, help="OSDs that say their options, evenly over the ids."
    ),
    interval: float = typer.Option(INTERVAL_S, "--interval", "-n", min=1, max=50, help="Seconds between two samples."),
    force: bool = ForceOption,
    form: Format = FormatOption,
) -> None:
    """Gather a cluster's state in one file, for `--from` of other commands. Changes nothing, and keeps no secrets.

    What the cluster refuses or does not answer is told, and ends nothing.
    """
    if show is not None:
        if cluster is not None or output is not None:
            raise InputError("--show", "--cluster or --output beside it", "one file to look into")
        state = state_file.read(show)
        _tell(state, show, show.stat().st_size, form)
        return
    if cluster is None or output is None:
        raise InputError("gather", f"no {'--cluster' if cluster is None else '--output'}", "both, or --show FILE")
    check_free(output, force)
    with working(f"{cluster}: connecting") as tell, closing(open_cluster(cluster)) as connection:
        state = gathered(
            connection,
            osds,
            interval,
            lambda what, done, total: tell(f"{cluster}: {what}", done, total if total > 1 else None),
        )
    size = state_file.write(output, state, force)
    _tell(state, output, size, form)


def _tell(state: ClusterState, path: Path, size: int, form: Format) -> None:
    emit(_document(state, path, size), form, lambda: _table(state))
    say([f"note: {note}" for note in state.notes])
    if form is Format.table:
        nbytes = sum(content.nbytes for content in contents(state).values())
        say([f"{path}: {size_of(size)}, {size_of(nbytes)} unpacked; cluster {state.cluster} at {utc(state.at)}"])


def _document(state: ClusterState, path: Path, size: int) -> Dict[str, Any]:
    parts = contents(state)
    return {
        "saved": str(path),
        "bytes": size,
        "unpacked_bytes": sum(content.nbytes for content in parts.values()),
        "cluster": state.cluster,
        "version": state.version,
        "at": state.at,
        "osds": state.osds,
        "asked": list(state.asked),
        "contents": [
            {
                "command": command,
                "answers": content.answers - content.without,
                "without_answer": content.without,
                "bytes": content.nbytes,
            }
            for command, content in parts.items()
        ],
        "notes": list(state.notes),
    }


def _table(state: ClusterState) -> Columns:
    table = columns("command", ">answers", ">none", ">size")
    for command, content in contents(state).items():
        none = str(content.without) if content.without else ""
        table.add_row(command, str(content.answers - content.without), none, size_of(content.nbytes))
    return table
