"""A cluster, or a file of `ceph-tuner gather` in its place, for the commands that only look."""

from __future__ import annotations

from contextlib import closing, contextmanager
from pathlib import Path
from typing import Callable, Iterator, Optional

import typer

from ceph_tuner.cluster import Cluster
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.moments import utc
from ceph_tuner_cli.render import say

FromOption = typer.Option(None, "--from", metavar="FILE", help="A file of `ceph-tuner gather`, in place of a cluster.")
FromReportOption = typer.Option(
    None,
    "--from",
    metavar="FILE",
    help="A file of `ceph-tuner gather`, or what `ceph report` printed, in place of a cluster.",
)


@contextmanager
def cluster_or_state(
    cluster: Optional[str], state: Optional[Path], connect: Callable[[str], Cluster]
) -> Iterator[Cluster]:
    """Open a cluster by `connect`, or read the file and tell of when it is. Raises InputError."""
    if cluster is not None and state is not None:
        raise InputError("--from", f"--cluster {cluster} beside it", "one of them")
    if state is not None:
        with read_state(state) as connection:
            yield connection
    elif cluster is None:
        raise InputError("--cluster", "nothing", "a cluster, or a file of `ceph-tuner gather` (--from)")
    else:
        with closing(connect(cluster)) as connection:
            yield connection


@contextmanager
def read_state(path: Path) -> Iterator[Cluster]:
    """A cluster out of a file; what is wrong with the file ends the command in one line."""
    # of no use to commands that ask a live cluster
    from ceph_tuner.gather.replay import open_state, reading

    with reading(path):
        connection = open_state(path)
        say([f"{path}: as of {utc(connection.clock.now())}, cluster {connection.name}, Ceph {connection.version}"])
        yield connection
