"""`ceph-tuner twin fit`: the model's parameters out of measured windows."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import typer
from rich.console import Group

from ceph_lab import windows_file
from ceph_lab.cluster import lab_of
from ceph_lab.twin_model import KNOWN, lab_model
from ceph_tuner.cluster.config_log import last_change
from ceph_tuner.core.atomic_write import check_free
from ceph_tuner.core.changes.journal import APPLIED
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.releases import Settings, parse_version
from ceph_tuner.core.measure.history import History
from ceph_tuner.files import fit_file
from ceph_tuner.twin.calibration import FitEffort, Fitting
from ceph_tuner.twin.described_cluster import DescribedCluster
from ceph_tuner.twin.fit import Fit
from ceph_tuner.twin.fit_runs import Runner
from ceph_tuner.twin.model import ClusterModel
from ceph_tuner.twin.observations import Observation
from ceph_tuner.twin.parameters import named
from ceph_tuner.twin.past import past_of
from ceph_tuner_cli import complete
from ceph_tuner_cli.cluster_option import AnyClusterOption, ForceOption
from ceph_tuner_cli.description import read_description
from ceph_tuner_cli.prefix_option import open_cluster
from ceph_tuner_cli.render import Format, FormatOption, emit, say, working
from ceph_tuner_cli.tables import columns


class Given(NamedTuple):
    """Windows, and the cluster that they are of."""

    observations: Sequence[Observation]
    models: Mapping[str, ClusterModel]
    settings: Settings
    origin: Mapping[str, Any]
    known: Tuple[str, ...]
    skipped: Sequence[str]


def fit(
    windows: Optional[Path] = typer.Option(
        None, "--windows", "-w", help="A file of windows that were measured; else --cluster."
    ),
    cluster: Optional[str] = AnyClusterOption,
    description: Optional[Path] = typer.Option(
        None, "--cluster-file", help="The described cluster, where windows and lab do not describe it."
    ),
    scenario: Optional[str] = typer.Option(
        None,
        "--scenario",
        help="The work under which a lab's history was measured.",
        autocompletion=complete.scenarios,
    ),
    only: Optional[str] = typer.Option(None, "--only", help="Labels of the windows to fit on, with commas; else all."),
    known: Optional[str] = typer.Option(None, "--known", help="Parameters that are right as described, with commas."),
    save: Optional[Path] = typer.Option(None, "--save", "-o", help="Write the fit to a file, for `twin predict`."),
    force: bool = ForceOption,
    seed: int = typer.Option(1, "--seed", min=0, max=2**31, help="The same seed gives the same fit."),
    processes: Optional[int] = typer.Option(None, "--processes", min=1, help="Runs side by side; else one per core."),
    effort: int = typer.Option(8, "--effort", min=2, max=64, help="Simulated places for each parameter and round."),
    form: Format = FormatOption,
) -> int:
    """Find the model's parameters from measured windows: values, uncertainty, and what the twin does not explain.

    Exit code 1 where the twin does not explain the cluster; the fit is written all the same.
    """
    if save is not None:
        check_free(save, force)
    sources = _sources(windows, cluster, description, scenario)
    say([f"left out: {reason}" for reason in sources.skipped])
    selection = _selection(sources.observations, only)
    fixed_parameters = (*sources.known, *(parameter.name for parameter in named(_words(known), "--known")))
    with working("compiling the model") as tell, Runner(processes) as runner:
        task = Fitting(
            selection,
            sources.models,
            runner,
            FitEffort(places_per_parameter=effort),
            fixed_parameters,
            report=lambda text, share: tell(text, share, 1.0),
            seed=seed,
        )
        calibration = task.fit()
    result = Fit.of(
        calibration, sources.models, settings=sources.settings, origin=_origin(sources, calibration.runs, selection)
    )
    document = result.to_dict()
    if save is not None:
        fit_file.write(save, result, force)
        document["saved"] = str(save)
    emit(document, form, lambda: page(result))
    if form is Format.table:
        say(result.notes)
        say(result.discrepancy.sentences() or ["the twin explains the cluster as far as choosing settings needs"])
        if save is not None:
            say([f"saved: {save}; `ceph-tuner twin predict --fit {save} --settings …` uses it"])
    return 1 if result.discrepancy.unexplained() else 0


def page(result: Fit) -> Group:
    """Tables of parameters and of what remains."""
    parameters = columns("parameter", ">value", ">90% interval", ">described", "these windows say", title="parameters")
    for entry in result.parameters:
        low, high = entry.interval
        parameters.add_row(
            entry.name, f"{entry.value:.3g} {entry.unit}", f"{low:.3g} to {high:.3g}", f"{entry.described:.3g}",
            entry.verdict,
        )  # fmt: skip
    remains = columns(
        "metric", ">windows", ">median error", ">over noise", ">held out", "largest error", title="\nwhat remains"
    )
    for metric, residual in result.discrepancy.metrics.items():
        remains.add_row(
            metric, str(residual.windows), f"{residual.median_error:.0%}", f"{residual.chi_square**0.5:.1f}",
            f"±{residual.deviation:.0%}", f"{residual.worst_error:.0%} in {residual.worst}",
        )  # fmt: skip
    return Group(parameters, remains)


def _sources(
    windows: Optional[Path], cluster: Optional[str], description: Optional[Path], scenario: Optional[str]
) -> Given:
    if windows is not None and cluster is not None:
        raise InputError("twin fit", "--windows and --cluster", "one of them")
    twin_description = None if description is None else read_description(description)
    if windows is not None:
        release = None if twin_description is None else twin_description.model.release
        read = windows_file.read(windows, release)
        models = dict(read.models)
        if twin_description is not None:
            models = {entry.scenario: twin_description.model for entry in read.observations}
        if not models:
            raise InputError(str(windows), "no description of a cluster", "--cluster-file beside it")
        lab_known = KNOWN if twin_description is None else ()
        return Given(read.observations, models, read.settings, read.origin, lab_known, read.skipped)
    if cluster is None:
        raise InputError("twin fit", "neither --windows nor --cluster", "one of them")
    return _from_cluster(cluster, twin_description, scenario)


def _from_cluster(cluster: str, description: Optional[DescribedCluster], scenario: Optional[str]) -> Given:
    with closing(open_cluster(cluster)) as connection:
        now = connection.in_force("osd")
        fixed_parameters: Tuple[str, ...] = ()
        lab = lab_of(connection)
        if description is not None:
            name, model = scenario or description.name, description.model
        elif lab is not None:
            if scenario is None:
                raise InputError("--scenario", "nothing", "the lab's load when its history was measured")
            version, options = parse_version(connection.version), lab.state.options
            name, model, fixed_parameters = (
                scenario,
                lab_model(options, now.hardware, scenario, connection.release, version),
                KNOWN,
            )
        else:
            raise InputError(
                "--cluster-file", "nothing", f"a description of {cluster}, of which only a lab knows itself"
            )
        entries = [entry for entry in connection.applier().history() if entry.state == APPLIED and not entry.trial]
        changed_at = max((entry.at for entry in entries), default=0.0)
        notes: List[str] = []
        last = last_change(connection, notes)
        observations, omissions = past_of(
            History(connection.store),
            name,
            now.settings,
            changed_at,
            connection.release,
            connection.clock.now(),
            last.at if last is not None else 0.0,
        )
    if not observations:
        raise InputError(
            f"cluster {cluster}", "no windows in its history", "some: the plugin keeps them, `ceph-tuner tune` as well"
        )
    origin = {"ceph": connection.version, "hardware": asdict(now.hardware), "source": f"history of {cluster}"}
    return Given(observations, {name: model}, dict(now.settings), origin, fixed_parameters, [*notes, *omissions])


def _selection(observations: Sequence[Observation], only: Optional[str]) -> List[Observation]:
    if only is None:
        return list(observations)
    labels = {entry.label for entry in observations}
    names = _words(only)
    for label in names:
        if label not in labels:
            raise InputError("--only", repr(label), f"one of {', '.join(sorted(labels))}")
    if not names:
        raise InputError("--only", repr(only), "labels of windows, with commas")
    return [entry for entry in observations if entry.label in names]


def _origin(sources: Given, runs: int, observations: Sequence[Observation]) -> Dict[str, Any]:
    date = datetime.now(timezone.utc).strftime("%Y-%m-%d")
    return {**sources.origin, "fitted": date, "windows": len(observations), "simulations": runs}


def _words(text: Optional[str]) -> List[str]:
    return [word.strip() for word in (text or "").split(",") if word.strip()]
