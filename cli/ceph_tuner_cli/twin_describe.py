"""`ceph-tuner twin describe`: a described cluster out of a live one."""

from __future__ import annotations

from pathlib import Path
from typing import FrozenSet, Optional

import typer

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.errors import PermissionRefused
from ceph_tuner.core.goals.stored_slo import stored_slo
from ceph_tuner.describe.live_cluster import SAMPLE_S, describe
from ceph_tuner.files import cluster_text, slo_file
from ceph_tuner.files.atomic_write import check_free
from ceph_tuner_cli.cluster_option import AnyClusterOption, ForceOption, TargetOption
from ceph_tuner_cli.from_option import FromOption, cluster_or_state
from ceph_tuner_cli.prefix_option import open_cluster
from ceph_tuner_cli.render import Format, FormatOption, emit, say, show_lines, working


def described(
    cluster: Optional[str] = AnyClusterOption,
    state: Optional[Path] = FromOption,
    target: str = TargetOption,
    output: Optional[Path] = typer.Option(None, "--output", "-o", help="The file to write; none prints it."),
    slo: Optional[Path] = typer.Option(
        None, "--slo", "-s", help="An SLO file in place of the cluster's own: its kinds of work are described."
    ),
    sample: float = typer.Option(
        SAMPLE_S, "--sample", min=0.0, max=600.0, help="Seconds to sample a cluster without the plugin; 0: never."
    ),
    force: bool = ForceOption,
    form: Format = FormatOption,
) -> None:
    """Describe a live cluster to its twin, as `recommend` reads it; what is a guess is said. Changes nothing there.

    Work that the SLO is about, and that is not under way, is assumed; without any SLO that is a deep scrub.
    """
    if output is not None:
        check_free(output, force)
    with (
        working(f"looking at {cluster or state}"),
        cluster_or_state(cluster, state, lambda name: open_cluster(name)) as connection,
    ):
        description = describe(connection, target, _also(connection, slo), sample)
    if output is None:
        # a description is a YAML file, for people as well
        if form is Format.json:
            emit(cluster_text.to_dict(description), form)
        else:
            show_lines(cluster_text.to_text(description).splitlines())
        return
    cluster_text.write(output, description, force)
    say([f"note: {note}" for note in description.notes])
    document = {"saved": str(output), "cluster": description.name, "notes": list(description.notes)}
    emit(
        document,
        form,
        lambda: f"{output}: {description.name}; the next step is `ceph-tuner recommend {output} --slo FILE`",
    )


def _also(cluster: Cluster, slo: Optional[Path]) -> FrozenSet[str]:
    try:
        own = stored_slo(cluster.store) if slo is None else slo_file.read(slo).slo
    except PermissionRefused as refusal:
        say([f"note: the cluster's own SLO is not seen ({refusal})"])
        own = None
    return frozenset({"scrub"}) if own is None else own.work
