"""`ceph-tuner guardian`: takes back what a tuner leaves whose process is gone, until it is told to end."""

from __future__ import annotations

from contextlib import closing

import typer

from ceph_tuner.core.changes.guardian import Guardian
from ceph_tuner.core.errors import TunerError
from ceph_tuner_cli.cluster_option import ClusterOption, say_undone
from ceph_tuner_cli.interruption import stopped_by_signals
from ceph_tuner_cli.prefix_option import open_cluster
from ceph_tuner_cli.render import say, warn

LONGEST_WAIT_S = 60.0
"""Between two looks where the cluster does not answer."""


def guardian(
    cluster: str = ClusterOption,
    every: float = typer.Option(5.0, "--every", min=1, max=300, help="Seconds between two looks."),
) -> int:
    """Take back trials whose tuner is gone: a mgr died, the module was disabled, a tune was killed. SIGTERM ends it.

    A tuner on another host counts as gone once it has not renewed its lock for 30 s.
    """
    stop, wait_s, problem = stopped_by_signals(), every, ""
    with closing(open_cluster(cluster)) as opened:
        watching = Guardian(opened.commander, opened.clock, entity=opened.entity)
        say([f"{cluster}: watching, a look every {every:g} s"])
        while not stop.is_set():
            try:
                undone = watching.look()
            except TunerError as fault:
                if str(fault) != problem:
                    warn([fault.advised])
                problem, wait_s = str(fault), min(2 * wait_s, max(every, LONGEST_WAIT_S))
            else:
                if problem:
                    say([f"{cluster}: it answers again"])
                problem, wait_s = "", every
                say_undone(undone)
            stop.wait(wait_s)
        watching.leave()
    return 0
