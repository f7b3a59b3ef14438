"""`ceph-tuner mgr`: puts the ceph-mgr plugin in place and takes it out."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Optional

import typer

from ceph_tuner.cluster import Cluster
from ceph_tuner.cluster.plugin import Installed, Plugin
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.errors import InputError
from ceph_tuner_cli.cluster_option import ClusterOption, at_work
from ceph_tuner_cli.prefix_option import is_behind_a_prefix
from ceph_tuner_cli.render import Format, FormatOption, emit, say, warn
from ceph_tuner_cli.tables import Columns, columns

app = typer.Typer(help="The ceph-mgr plugin: put it in place, take it out.", no_args_is_help=True)

_PathOption = typer.Option(None, "--path", help="The mgr's module path on this host; asked of the cluster by default.")


@app.command()
def install(
    cluster: str = ClusterOption,
    path: Optional[Path] = _PathOption,
    enable: bool = typer.Option(True, help="Load it as well; --no-enable asks monitors and only copies."),
    form: Format = FormatOption,
) -> None:
    """Copy the plugin and its library beside the mgr's modules, and load it.

    Warns where that is an older version than the one that runs, and a page of the book, a boost or a trial stands, or
    the calendar of the SLO says which boosts may run.
    """
    with at_work(cluster, "copying the plugin, then waiting for the mgr") as connection:
        own = _plugin(connection, path)
        left_behind = own.left_to_an_older_one()
        plugin = own.install(enable)
    emit(plugin.to_dict(), form, lambda: _table(plugin.to_dict()))
    warn(left_behind)
    _warn(plugin)


@app.command()
def uninstall(
    cluster: str = ClusterOption,
    path: Optional[Path] = _PathOption,
    purge: bool = typer.Option(False, "--purge", help="Also remove SLO, journal, history and imported profiles."),
    form: Format = FormatOption,
) -> None:
    """Unload the plugin, and remove its files and options; what it stored stays without --purge."""
    with at_work(cluster, "unloading the plugin, then removing it") as connection:
        lines = _plugin(connection, path).uninstall(purge)
    emit(lines, form, lambda: "\n".join(f"removed: {each}" for each in lines) or "nothing was installed")


@app.command()
def status(cluster: str = ClusterOption, path: Optional[Path] = _PathOption, form: Format = FormatOption) -> None:
    """Say what is installed, and what runs. Exit code 1 where it does not run."""
    with at_work(cluster, "asking what is installed") as connection:
        plugin = _plugin(connection, path).status()
    emit(plugin.to_dict(), form, lambda: _table(plugin.to_dict()))
    _warn(plugin)
    if plugin.running is None:
        raise typer.Exit(1)


def _plugin(connection: Cluster, path: Optional[Path]) -> Plugin:
    """The plugin of a cluster. Raises InputError where its mgrs have other files than this machine."""
    if path is None and is_behind_a_prefix():
        expected = "--path with the folder that its mgrs see, or this command on a host of a mgr"
        raise InputError("mgr", "a cluster behind --prefix-command, whose mgrs are elsewhere", expected)
    return Plugin(connection, SystemClock(), path)


def _table(document: Dict[str, Any]) -> Columns:
    rows = columns("", "")
    for key, value in document.items():
        text = ", ".join(value) if isinstance(value, list) else {None: "-", True: "yes", False: "no"}.get(value, value)
        rows.add_row(key, str(text or "-"))
    return rows


def _warn(plugin: Installed) -> None:
    if plugin.build is not None and plugin.build != plugin.ours:
        say(["note: the installed files are of another version: `ceph-tuner mgr install` renews them"])
    if plugin.running is not None and plugin.build is not None and plugin.running != plugin.build:
        say(["note: the mgr runs another version than is installed here: `ceph-tuner mgr install` loads it"])
