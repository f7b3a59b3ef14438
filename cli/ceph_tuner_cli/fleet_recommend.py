"""`ceph-tuner fleet recommend`: settings for each cluster of a fleet, found on its twin."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Dict, List, Optional, Tuple

import typer

from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.errors import RetryLater
from ceph_tuner.files import slo_file
from ceph_tuner.fleet import advice as advising
from ceph_tuner.fleet import fleet_file
from ceph_tuner.fleet.advice import SearchTask
from ceph_tuner.fleet.advice_for_all import KeptAnswers, Known, NotKept, advise_all
from ceph_tuner.fleet.answers_folder import AnswersFolder, Nowhere
from ceph_tuner.fleet.questions import question_for
from ceph_tuner.recommend import SearchEffort
from ceph_tuner.workers import CallFailure, CallResult, WorkerLoss, Workers
from ceph_tuner_cli.elsewhere import gathered
from ceph_tuner_cli.fleet import FleetOption, LabelOption, NamesArgument, WithinOption, asked
from ceph_tuner_cli.fleet import app as app
from ceph_tuner_cli.fleet_recommend_page import FleetProgress, Row, page
from ceph_tuner_cli.interruption import INTERRUPTED
from ceph_tuner_cli.render import Format, FormatOption, emit, fail, say, warn
from ceph_tuner_cli.workers_option import DaskOption, InsecureOption, ProcessesOption, check_workers, workers_for

EFFORT = SearchEffort()


@app.command()
def recommend(
    names: Optional[List[str]] = NamesArgument,
    fleet: Path = FleetOption,
    labels: List[str] = LabelOption,
    slo: Optional[Path] = typer.Option(None, "--slo", "-s", help="The SLO file of clusters that have none."),
    trials: int = typer.Option(EFFORT.trials, "--trials", "-n", min=1, max=500, help="Settings to try on each twin."),
    seed: int = typer.Option(1, "--seed", min=0, max=2**31, help="The same seed gives the same answers."),
    profile_from: Optional[List[Path]] = typer.Option(
        None, "--profile-from", help="A profile of another cluster, to try first on like ones; may be repeated."
    ),
    processes: Optional[int] = ProcessesOption,
    dask: Optional[str] = DaskOption,
    insecure: bool = InsecureOption,
    output: Optional[Path] = typer.Option(
        None, "--output", "-o", metavar="DIR", help="Where answers and profiles are kept; it goes on with what it has."
    ),
    within: float = WithinOption,
    form: Format = FormatOption,
) -> int:
    """Search settings for each cluster on its twin, and touch none: one row a cluster, as `recommend` gives a page.

    Exit code 1 where a cluster has no answer, or misses a hard objective even so; 130 after Ctrl-C, which shows what
    is known by then.
    """
    check_workers(processes, dask)
    members = fleet_file.read(fleet).chosen(names or (), labels)
    if slo is not None:
        slo_file.read(slo)  # now, not once for each cluster
    others = tuple(gathered(profile_from or []))
    answers: KeptAnswers = Nowhere()
    if output is not None:
        answers = AnswersFolder(output, [member.name for member in members], SystemClock())
    rows = {member.name: Row(member.name) for member in members}
    effort = replace(EFFORT, trials=trials, seed=seed)
    # Dask is reached before clusters are asked: where it is not there, nobody has waited for these
    with workers_for(processes, dask, advising, insecure) as workers:
        tasks: Dict[str, SearchTask] = {}
        for answer in asked(members, lambda member: question_for(member, within, slo), within):
            name = answer.member.name
            if answer.found is None:
                rows[name].problem = answer.reason
            else:
                own = answer.found
                tasks[name] = SearchTask(name, own.question, effort, others, explain=output is not None, seen=own.seen)
                rows[name].notes = own.notes
        interrupted, failure = _search(tasks, rows, answers, workers) if tasks else (False, None)
    row_list = list(rows.values())
    for row in row_list:
        if isinstance(answers, AnswersFolder) and row.better and row.kept and answers.profile(row.name).exists():
            row.saved = str(answers.profile(row.name))
    emit([row.to_dict() for row in row_list], form, lambda: page(row_list))
    if form is Format.table:
        say([line for row in row_list for line in row.remarks])
    _say_next(row_list, output, interrupted)
    if failure is not None:
        fail(failure.advised)
        return failure.exit_code
    if interrupted:
        return INTERRUPTED
    return 0 if all(row.well for row in row_list) else 1


def _search(
    tasks: Dict[str, SearchTask], rows: Dict[str, Row], answers: KeptAnswers, workers: Workers
) -> Tuple[bool, Optional[RetryLater]]:
    """Fill the rows. Whether it was interrupted, and who left it."""
    with FleetProgress(len(tasks)) as progress:
        try:
            progress.place(workers.place)
            for note in workers.notes:
                say([f"note: {note}"])
            for event in advise_all(tasks, workers, answers):
                if isinstance(event, NotKept):
                    rows[event.key].kept = False
                    warn([f"{event.key}: its answer is shown but not kept: {event.reason}"])
                    continue
                if isinstance(event, (CallResult, Known)):
                    rows[event.key].answer = event.result.document
                elif isinstance(event, CallFailure):
                    rows[event.key].problem = event.reason
                elif isinstance(event, WorkerLoss):
                    warn([f"{event.key}: {event.reason}; it begins anew"])
                progress.hear(event, rows)
        except KeyboardInterrupt:
            return True, None
        except RetryLater as failure:
            return False, failure
    return False, None


def _say_next(rows: List[Row], output: Optional[Path], interrupted: bool) -> None:
    open_rows = [row for row in rows if row.answer is None and not row.problem]
    if open_rows:
        goes_on = "the same command goes on" if output is not None else "with --output DIR the same command would go on"
        say([f"{len(open_rows)} of {len(rows)} clusters are not done{' yet' if interrupted else ''}: {goes_on}"])
    profile_rows = [row for row in rows if row.saved]
    if profile_rows:
        say([f"{len(profile_rows)} profiles in {output}; the next step, for one of them:"])
        say([f"  ceph-tuner fleet import {profile_rows[0].saved} {profile_rows[0].name}"])
    elif output is None and any(row.better for row in rows):
        say(["--output DIR keeps profiles for `ceph-tuner fleet import|apply`, and answers for `ceph-tuner report`"])
