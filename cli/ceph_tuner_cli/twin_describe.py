"""`ceph-tuner twin describe`: a described cluster out of a live one."""

from __future__ import annotations

from pathlib import Path
from typing import Dict, FrozenSet, Optional

import typer

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.atomic_write import check_free
from ceph_tuner.core.ceph.target import classes_of, running
from ceph_tuner.core.errors import CommandFailed, PermissionRefused
from ceph_tuner.core.goals.stored_slo import stored_slo
from ceph_tuner.describe.live_cluster import SAMPLE_S, describe
from ceph_tuner.files import cluster_text, slo_file
from ceph_tuner_cli.cluster_option import AnyClusterOption, ForceOption, TargetOption
from ceph_tuner_cli.from_option import FromReportOption, cluster_or_state
from ceph_tuner_cli.prefix_option import open_cluster
from ceph_tuner_cli.render import Format, FormatOption, emit, say, show_lines, working


def described(
    cluster: Optional[str] = AnyClusterOption,
    state: Optional[Path] = FromReportOption,
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

    Work that the SLO is about, and that is not under way, is assumed; without any SLO that is a deep scrub. Of OSDs of
    several device classes each class is described by itself: FILE-CLASS.yaml.
    """
    with (
        working(f"looking at {cluster or state}"),
        cluster_or_state(cluster, state, lambda name: open_cluster(name)) as connection,
    ):
        targets = _by_class(connection, target)
        paths = [] if output is None else [_of_class(output, name) for name in targets]
        for path in paths:
            check_free(path, force)
        also = _also(connection, slo)
        descriptions = [describe(connection, each, also, sample) for each in targets.values()]
    if output is None:
        # a description is a YAML file, for people as well
        if form is Format.json:
            documents = [{**cluster_text.to_dict(each), "notes": list(each.notes)} for each in descriptions]
            emit(documents[0] if len(documents) == 1 else documents, form)
        else:
            show_lines("---\n".join(map(cluster_text.to_text, descriptions)).splitlines())
        return
    saved = []
    for path, description in zip(paths, descriptions):
        cluster_text.write(path, description, force)
        say([f"note: {note}" for note in description.notes])
        saved.append({"saved": str(path), "cluster": description.name, "notes": list(description.notes)})
    lines = [
        f"{each['saved']}: {each['cluster']}; the next step is `ceph-tuner recommend {each['saved']} --slo FILE`"
        for each in saved
    ]
    emit(saved[0] if len(saved) == 1 else saved, form, lambda: "\n".join(lines))


def _by_class(cluster: Cluster, target: str) -> Dict[str, str]:
    """Device class -> what to describe of it; of all OSDs that are alike, "" -> the target itself."""
    classes = classes_of(running(target, cluster.config.places()))
    if target != "osd" or len(classes) < 2 or "" in classes:
        return {"": target}
    return {name: f"osd/class:{name}" for name in classes}


def _of_class(output: Path, name: str) -> Path:
    return output.with_name(f"{output.stem}-{name}{output.suffix}") if name else output


def _also(cluster: Cluster, slo: Optional[Path]) -> FrozenSet[str]:
    try:
        own = stored_slo(cluster.store) if slo is None else slo_file.read(slo).slo
    except (CommandFailed, PermissionRefused) as fault:
        say([f"note: the cluster's own SLO is not seen ({fault})"])
        own = None
    return frozenset({"scrub"}) if own is None else own.work
