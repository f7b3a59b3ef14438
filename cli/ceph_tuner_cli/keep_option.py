"""The objectives about clients that work at their pace is held to: `--keep`, `--slo`, else the cluster's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Optional, Sequence

import typer

from ceph_tuner.cluster import Cluster
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.slo import Slo, parse_objective
from ceph_tuner.files import slo_file

if TYPE_CHECKING:
    from ceph_tuner.pacing.wanted import WantedObjectives

KeepOption = typer.Option(
    [],
    "--keep",
    help="An objective about clients, such as 'client.p95_ms<=20'; repeatable. Default: the cluster's own.",
)
SloOption = typer.Option(None, "--slo", help="An SLO file, in the place of --keep.")


def wanted_objectives(connection: Cluster, keep: Sequence[str], slo: Optional[Path]) -> WantedObjectives:
    """Those of each moment: the cluster's own follow its calendar, and what is set meanwhile. Raises InputError."""
    if keep and slo is not None:
        raise InputError("--keep", "--slo as well", "one of them")
    from ceph_tuner.pacing.objectives import check_scopes
    from ceph_tuner.pacing.wanted import WantedObjectives

    if slo is not None:
        given = slo_file.read(slo)
        result = WantedObjectives(given.at_all_times)
        check_scopes(connection, result.scopes, str(slo))
        return result
    if not keep:
        return WantedObjectives.stored(connection.store)
    objectives = tuple(parse_objective(text, lambda *keys: "--keep") for text in keep)
    for objective in objectives:
        if not objective.metric.startswith("client."):
            raise InputError("--keep", objective.text, "an objective about clients, such as 'client.p95_ms<=20'")
    try:
        result = WantedObjectives.of(Slo("keep", objectives))
    except ValueError as fault:
        raise InputError("--keep", str(fault), "one objective for each metric") from fault
    check_scopes(connection, result.scopes, "--keep")
    return result
