"""How every command that takes a cluster reaches it: from here, or behind a prefix command.

Such commands open it by `open_cluster` of this module. The two options are added to them by `tree.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Optional

import typer

from ceph_tuner.core.errors import InputError

if TYPE_CHECKING:
    from ceph_tuner.cluster import Cluster

_values: Dict[str, Any] = {}
"""What the command that runs was given."""

_PANEL = "How the cluster is reached"
_carrier = typer.Typer(add_completion=False)


def begin() -> None:
    """Forget what an earlier command of this process was given."""
    _values.clear()


def _keep_prefix(text: Optional[str]) -> None:
    if text is not None:
        _values["prefix"] = text


def _keep_rook(text: Optional[str]) -> None:
    if text is not None:
        _values["rook"] = text


def _keep_shells(count: Optional[int]) -> None:
    if count is not None:
        _values["shells"] = count


@_carrier.command()
def _options(
    prefix_command: Optional[str] = typer.Option(
        None,
        "--prefix-command",
        callback=_keep_prefix,
        expose_value=False,
        metavar="WORDS",
        help="What to type before `ceph`: `ssh admin@mon1 sudo`, `kubectl exec deploy/rook-ceph-tools --`.",
        rich_help_panel=_PANEL,
    ),
    prefix_shells: Optional[int] = typer.Option(
        None,
        "--prefix-shells",
        min=0,
        callback=_keep_shells,
        expose_value=False,
        help="How many shells parse the arguments on that way; by default 1 for ssh, 0 for kubectl and its like.",
        rich_help_panel=_PANEL,
    ),
    rook: Optional[str] = typer.Option(
        None,
        "--rook",
        callback=_keep_rook,
        expose_value=False,
        metavar="NAMESPACE/NAME",
        help="The CephCluster of a cluster that Rook manages: it is written to as well. `none`: it is left alone.",
        rich_help_panel=_PANEL,
    ),
) -> None:
    """Carry the options, so that typer makes options of them."""


OPTIONS: List[Any] = list(typer.main.get_command(_carrier).params)


def open_cluster(name: str) -> Cluster:
    """Open a cluster as the options say. Raises as `ceph_tuner.cluster.open_cluster`, InputError."""
    # --help and completion do not wait for it
    from ceph_tuner.rook.management import RookChoice, on_rook

    return on_rook(_connection(name), RookChoice(_values.get("rook", "")))


def _connection(name: str) -> Cluster:
    # --help and completion do not wait for these
    from ceph_tuner import cluster as clusters
    from ceph_tuner.cluster.prefix_command import PrefixCommand

    if "prefix" not in _values:
        if "shells" in _values:
            raise InputError("--prefix-shells", "no --prefix-command", "both, or neither")
        return clusters.open_cluster(name)
    return clusters.open_cluster(
        name, prefix=PrefixCommand.parse(_values["prefix"], _values.get("shells"), _conf(name))
    )


def is_behind_a_prefix() -> bool:
    """Whether the cluster's machines are others than this one."""
    return "prefix" in _values


def _conf(name: str) -> str:
    """Path over there; empty for the usual one."""
    if name == "ceph":
        return ""
    if ("/" in name or name.endswith(".conf")) and not name.startswith("-"):
        return name
    raise InputError(
        "--cluster", f"{name!r} with --prefix-command", "`ceph`, or the path of a ceph.conf on the other side"
    )
