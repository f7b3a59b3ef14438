"""`ceph-tuner mgr`: puts the ceph-mgr plugin in place and takes it out."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any, Dict, Optional

import typer
from rich.table import Table

from ceph_tuner.clusters import open_cluster
from ceph_tuner.clusters.machine import SystemClock
from ceph_tuner.clusters.plugin import Installed, Plugin
from ceph_tuner_cli.render import Format, FormatOption, emit, messages

app = typer.Typer(help="The ceph-mgr plugin: put it in place, take it out.", no_args_is_help=True)

_ClusterOption = typer.Option(..., "--cluster", "-c", help="A lab, a path of a ceph.conf, or `ceph`.")
_PathOption = typer.Option(None, "--path", help="The mgr's module path on this host; asked of the cluster by default.")


@app.command()
def install(
    cluster: str = _ClusterOption,
    path: Optional[Path] = _PathOption,
    enable: bool = typer.Option(True, help="Load it as well; --no-enable only copies, for hosts with a standby mgr."),
    form: Format = FormatOption,
) -> None:
    """Copy the plugin and its library beside the mgr's modules, and load it."""
    with closing(open_cluster(cluster)) as opened:
        plugin = Plugin(opened, SystemClock(), path)
        messages.print(f"{plugin.path}: copying, then waiting for the mgr", markup=False, soft_wrap=True)
        found = plugin.install(enable)
    emit(found.to_dict(), form, lambda: _table(found.to_dict()))
    _warn(found)


@app.command()
def uninstall(
    cluster: str = _ClusterOption,
    path: Optional[Path] = _PathOption,
    purge: bool = typer.Option(False, "--purge", help="Also remove SLO, journal, history and imported profiles."),
    form: Format = FormatOption,
) -> None:
    """Unload the plugin, and remove its files and options; what it stored stays without --purge."""
    with closing(open_cluster(cluster)) as opened:
        removed = Plugin(opened, SystemClock(), path).uninstall(purge)
    emit(removed, form)


@app.command()
def status(cluster: str = _ClusterOption, path: Optional[Path] = _PathOption, form: Format = FormatOption) -> None:
    """Say what is installed, and what runs. Exit code 1 where it does not run."""
    with closing(open_cluster(cluster)) as opened:
        found = Plugin(opened, SystemClock(), path).status()
    emit(found.to_dict(), form, lambda: _table(found.to_dict()))
    _warn(found)
    if found.running is None:
        raise typer.Exit(1)


def _table(document: Dict[str, Any]) -> Table:
    made = Table(box=None, pad_edge=False, show_header=False)
    for key, value in document.items():
        shown = ", ".join(value) if isinstance(value, list) else {None: "-", True: "yes", False: "no"}.get(value, value)
        made.add_row(key, str(shown or "-"))
    return made


def _warn(found: Installed) -> None:
    if found.build is not None and found.build != found.ours:
        messages.print("note: the installed files are of another version: `ceph-tuner mgr install` renews them")
    if found.running is not None and found.build is not None and found.running != found.build:
        messages.print("note: the mgr runs another version than is installed here: `ceph-tuner mgr install` loads it")
