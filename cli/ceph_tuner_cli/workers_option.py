"""`--processes` and `--dask`: where what takes long is carried out, the same for every command that offers them."""

from __future__ import annotations

from importlib.util import find_spec
from types import ModuleType
from typing import Optional

import typer

from ceph_tuner.core.errors import InputError
from ceph_tuner.workers import Workers

ProcessesOption = typer.Option(None, "--processes", min=1, help="Twins side by side; else one a core.")
DaskOption = typer.Option(
    None, "--dask", metavar="ADDRESS", help="Run twins on the workers of this Dask scheduler (tls://HOST:8786)."
)
InsecureOption = typer.Option(
    False, "--insecure", help="A Dask scheduler without TLS (tcp://): whoever reaches it can run code on this machine."
)


def check_workers(processes: Optional[int], dask: Optional[str]) -> None:
    """Before anything takes time. Raises InputError where Dask is asked for and not there, or both are."""
    if dask is None:
        return
    if processes is not None:
        raise InputError("--dask", "--processes as well", "one of them: Dask's workers are as many as were started")
    if find_spec("distributed") is None:
        raise InputError("--dask", "no Dask here", "the Python package `distributed`")


def workers_for(processes: Optional[int], dask: Optional[str], module: ModuleType, insecure: bool = False) -> Workers:
    """Workers for calls of `module`: of a Dask cluster, else processes of this machine (None: one a core).

    Raises InputError, RetryLater where no Dask answers.
    """
    check_workers(processes, dask)
    if dask is None:
        # with numba, which who only asks for help does not wait for
        from ceph_tuner.twin.simulation_pool import warm
        from ceph_tuner.workers.process_workers import ProcessWorkers

        return ProcessWorkers(processes, prepare=warm, preload=[module.__name__])
    from ceph_tuner.workers.dask_workers import DaskWorkers  # brings Dask, which nothing else needs

    return DaskWorkers(dask, insecure=insecure)
