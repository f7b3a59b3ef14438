"""`ceph-tuner recommend`: settings for a cluster that is described in a file, found on the twin. Needs no cluster."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import List, Optional

import typer
from rich.console import Group

from ceph_tuner.core.atomic_write import check_free
from ceph_tuner.core.ceph.target import Target, classes_of, reach, running
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.files import profile_file, slo_file
from ceph_tuner.recommend import SearchEffort
from ceph_tuner.twin.described_cluster import DescribedCluster
from ceph_tuner_cli.cluster_option import ForceOption, KnobsOption, knobs_in_a_row
from ceph_tuner_cli.description import objectives_left_aside, read_description
from ceph_tuner_cli.from_option import FromReportOption, read_state
from ceph_tuner_cli.interruption import INTERRUPTED
from ceph_tuner_cli.recommend_check import check_files
from ceph_tuner_cli.render import Format, FormatOption, emit, say, show_lines, warn


def recommend(
    cluster: Optional[Path] = typer.Argument(
        None, metavar="[CLUSTER_FILE]", help="A described cluster; `twin describe` writes one. None with --from."
    ),
    slo: Optional[Path] = typer.Option(
        None,
        "--slo",
        "-s",
        help="The SLO file (`ceph-tuner slo metrics`); --check goes without.",
    ),
    check: bool = typer.Option(
        False, "--check", help="Only check the files: name all faults, and tell the cluster back."
    ),
    state: Optional[Path] = FromReportOption,
    target: Optional[str] = typer.Option(
        None, "--target", "-t", help="The OSDs to write to, as of `apply`; with --from, to describe."
    ),
    trials: int = typer.Option(
        SearchEffort.trials, "--trials", "-n", min=1, max=500, help="Settings to try on the twin."
    ),
    seed: int = typer.Option(1, "--seed", min=0, max=2**31, help="The same seed gives the same answer."),
    knobs: Optional[str] = KnobsOption,
    profile_from: Optional[List[Path]] = typer.Option(
        None, "--profile-from", help="A profile of another cluster, to try first where that is alike; may be repeated."
    ),
    processes: Optional[int] = typer.Option(None, "--processes", min=1, help="Runs side by side; else one per core."),
    output: Optional[Path] = typer.Option(None, "--output", "-o", help="Write the winner as a profile file."),
    force: bool = ForceOption,
    live_only: bool = typer.Option(False, "--live-only", help="No plan for what needs a restart or moves data."),
    explain: bool = typer.Option(False, "--explain", help="Show all that the search has learnt, curves included."),
    form: Format = FormatOption,
) -> int:
    """Search settings for a described cluster on the twin: no cluster is needed, and none is touched.

    Begin with --check. Exit code 1 where nothing is better than what is in force, or a hard objective is still missed.
    """
    if check:
        if cluster is None or state is not None:
            raise InputError("--check", "no CLUSTER_FILE" if cluster is None else "--from beside it", "a description")
        return check_files(cluster, slo, form)
    if slo is None:
        raise InputError("--slo", "nothing", "an SLO file, or --check")
    # a second of imports, which --help and completion do not wait for; what simulates imports its own meanwhile
    from ceph_tuner.twin.simulation_pool import load_ahead

    if processes != 1:
        load_ahead()
    from ceph_tuner.recommend.document import document as plain
    from ceph_tuner.recommend.question import question_of
    from ceph_tuner.recommend.recommendation import recommend as recommended
    from ceph_tuner.recommend.search import unpredictable
    from ceph_tuner.tune.interrupts import Interrupts
    from ceph_tuner.twin.compiled import available
    from ceph_tuner_cli import recommend_rebuild
    from ceph_tuner_cli.elsewhere import gathered
    from ceph_tuner_cli.recommend_page import RecommendProgress, page, what_to_do

    read = slo_file.read(slo)
    objectives = read.slo
    if read.calendar is not None:
        say([f"objectives of the policy {read.policy}, which holds now (`ceph-tuner slo week` shows each)"])
    description = _description(cluster, state, target, objectives)
    if output is not None:
        check_free(output, force)
    if not available():
        say(["without numba the model runs uncompiled, many times slower"])
    question = question_of(description, objectives, knobs_in_a_row(knobs))
    aside = objectives_left_aside(description, objectives)
    # the search refuses the first of them
    warn([str(refusal) for refusal in unpredictable(question)[1:]])
    others = gathered(profile_from or [])
    with RecommendProgress(question.slo) as progress, Interrupts(progress.interrupted) as interrupts:
        answer = recommended(
            question,
            replace(SearchEffort(), trials=trials, seed=seed),
            progress,
            processes,
            others,
            curves=explain or form is not Format.table,
            stored_bytes=None if live_only else description.stored,
            interruptible=interrupts,
        )
    plan = answer.plan
    document = {
        **plain(answer, description.name),
        "assumptions": list(description.notes),
        "left_aside": aside,
        "beyond_live_knobs": recommend_rebuild.document(plan, question.target),
    }
    profile = answer.profile(description.name)
    if output is not None and profile is not None:
        profile_file.write(output, profile, force)
        document["saved"] = str(output)
    beyond = [] if plan is None else recommend_rebuild.section(plan)
    emit(document, form, lambda: Group(page(answer, explain), *beyond))
    if form is Format.table:
        lines = what_to_do(answer.instructions, document.get("saved"))
        show_lines(lines if plan is None else [*lines, *recommend_rebuild.commands(plan, question.target)])
    if answer.interrupted:
        return INTERRUPTED
    return 0 if answer.better and answer.keeps_hard else 1


def _description(cluster: Optional[Path], state: Optional[Path], target: Optional[str], slo: Slo) -> DescribedCluster:
    """The cluster, by a description or by what was gathered of it. Raises InputError."""
    if state is None:
        if cluster is None:
            raise InputError("recommend", "neither CLUSTER_FILE nor --from", "one of them")
        description = read_description(cluster)
        return description if target is None else replace(description, target=str(Target.parse(target, "--target")))
    if cluster is not None:
        raise InputError("recommend", "CLUSTER_FILE and --from", "one of them")
    # of no use to a description
    from ceph_tuner.describe.live_cluster import describe

    with read_state(state) as connection:
        description = describe(connection, target or "osd", slo.work)
        places = running(description.target, connection.config.places())
        if len(classes_of(places)) > 1:
            raise InputError(
                "--target", f"{description.target}, {reach(places)}", "osd/class:CLASS, whose OSDs are alike"
            )
    say([f"note: {note}" for note in description.notes])
    warn(description.unlikely)
    return description
