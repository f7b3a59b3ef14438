"""`ceph-tuner slo week`: which policy of an SLO's calendar holds when, and what the twin says of each."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional

import typer
from rich.console import Group

from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.goals.slo_calendar import SloCalendar, boosts_in_words
from ceph_tuner.core.goals.week_ahead import WEEK_DAYS, week_ahead
from ceph_tuner.core.hours import DAY_S, zone_of
from ceph_tuner.core.moments import moment_ahead
from ceph_tuner.files import slo_file
from ceph_tuner.recommend import Prediction, SearchEffort
from ceph_tuner.report.words import amount
from ceph_tuner.twin.described_cluster import DescribedCluster
from ceph_tuner_cli.description import read_description
from ceph_tuner_cli.interruption import INTERRUPTED
from ceph_tuner_cli.render import Format, FormatOption, emit, say, warn
from ceph_tuner_cli.tables import Columns, columns


def week(
    file: Path = typer.Argument(help="The SLO file."),
    begin: Optional[str] = typer.Option(
        None, "--from", help="When the days begin: in so long (3d), or a date such as 2027-03-25; else now."
    ),
    days: int = typer.Option(WEEK_DAYS, "--days", min=1, max=366, help="How many days to show."),
    cluster: Optional[Path] = typer.Option(
        None, "--cluster-file", help="A described cluster: search settings for each policy on its twin."
    ),
    trials: int = typer.Option(
        SearchEffort.trials, "--trials", "-n", min=1, max=500, help="Settings to try on the twin for each policy."
    ),
    processes: Optional[int] = typer.Option(None, "--processes", min=1, help="Runs side by side; else one per core."),
    form: Format = FormatOption,
) -> int:
    """Show which policy of a calendar holds when in the next week, on the clock of its zone.

    With --cluster-file also what `recommend` predicts under each. Exit code 1 where a hard objective is missed then.
    """
    now = time.time()
    start = now if begin is None else moment_ahead(begin, now, "--from")
    read = slo_file.read(file, lambda: start)
    calendar = read.calendar or SloCalendar(read.slo)
    document = week_ahead(calendar, start, days * DAY_S)
    if cluster is None:
        emit({"file": str(file), **document}, form, lambda: Group(*_pages(document)))
        return 0
    description = read_description(cluster)
    predictions: Dict[str, Any] = {}
    for entry in document["policies"]:
        if entry["hours_in_force"] > 0:
            say([f"{entry['name']}: settings are searched on the twin"])
            answer = _prediction_of_policy(description, calendar.by_policy[entry["name"]], trials, processes)
            if answer is None:
                return INTERRUPTED
            predictions[entry["name"]] = answer
    document["cluster"], document["predicted"] = description.name, predictions
    emit({"file": str(file), **document}, form, lambda: Group(*_pages(document), *_predictions(document)))
    if form is Format.table:
        warn(description.unlikely)
    return 0 if all(entry["keeps_hard"] for entry in predictions.values()) else 1


def _prediction_of_policy(
    description: DescribedCluster, slo: Slo, trials: int, processes: Optional[int]
) -> Optional[Dict[str, Any]]:
    """What a search for one policy ends with; None where it was interrupted."""
    # a second of imports, which --help and completion do not wait for
    from ceph_tuner.recommend.document import document as plain
    from ceph_tuner.recommend.question import question_of
    from ceph_tuner.recommend.recommendation import recommend
    from ceph_tuner.tune.interrupts import Interrupts
    from ceph_tuner_cli.recommend_page import RecommendProgress

    question = question_of(description, slo)
    with RecommendProgress(question.slo) as progress, Interrupts(progress.interrupted) as interrupts:
        answer = recommend(
            question,
            replace(SearchEffort(), trials=trials),
            progress,
            processes,
            explain=False,
            curves=False,
            interruptible=interrupts,
        )
    if answer.interrupted:
        return None
    whole = plain(answer, description.name)
    search_result = answer.searched
    return {
        "better": answer.better,
        "keeps_hard": answer.keeps_hard,
        "settings": whole["recommended"]["settings"],
        "verdicts": _verdicts(search_result.judge, search_result.winner),
        "in_force": _verdicts(search_result.judge, search_result.before),
    }


def _verdicts(judge: Judge, prediction: Prediction) -> List[Dict[str, Any]]:
    return [verdict.to_dict() for verdict in judge.verdicts(prediction.candidate.means)]


def _pages(document: Mapping[str, Any]) -> List[Any]:
    zone = zone_of(document["zone"])

    def clock(moment: float) -> str:
        return datetime.fromtimestamp(moment, zone).strftime("%a %Y-%m-%d %H:%M")

    title = f"{document['slo']}, by the clock of {document['zone']}"
    times = columns("from", "until", ">hours", "policy", keep=("from", "until", "policy"))
    times.title = title
    for spell in document["spells"]:
        hours = (spell["end"] - spell["start"]) / 3600
        times.add_row(clock(spell["start"]), clock(spell["end"]), f"{hours:.4g}", spell["policy"])
    table = columns("policy", ">hours", "objective", "", keep=("objective",))
    for entry in document["policies"]:
        name, hours = entry["name"], f"{entry['hours_in_force']:.4g}"
        for row in entry["objectives"]:
            kind = "hard" if row["hard"] else "soft"
            table.add_row(name, hours, row["objective"], f"{kind}, priority {row['priority']:g}")
            name = hours = ""
    notes = [
        f"{clock(each['at'])}: the clock is set {'forward' if each['after'] > each['before'] else 'back'}, "
        f"from UTC{each['before'] / 3600:+g} h to UTC{each['after'] / 3600:+g} h"
        for each in document["clock_changes"]
    ]
    never = [entry["name"] for entry in document["policies"] if not entry["hours_in_force"]]
    notes += [f"not in force in these days: {', '.join(never)}"] if never else []
    limited = [(entry["name"], boosts_in_words(entry["boosts"])) for entry in document["policies"]]
    notes += [f"{name}: {words}" for name, words in limited if words]
    return [times, "", table, *notes]


def _predictions(document: Mapping[str, Any]) -> List[Any]:
    table: Columns = columns("policy", "objective", "in force", "recommended", "", keep=("objective",))
    table.title = f"\n{document['cluster']}: what the twin predicts for the described load under each policy"
    for name, entry in document["predicted"].items():
        first_cell = name
        for now, then in zip(entry["in_force"], entry["verdicts"]):
            metric = then["objective"].split()[0]
            verdict_word = {True: "met", False: "missed", None: "unknown"}[then["met"]]
            table.add_row(
                first_cell,
                then["objective"],
                amount(metric, now["seen"])[0],
                amount(metric, then["seen"])[0] if entry["better"] else "nothing better",
                verdict_word,
            )
            first_cell = ""
    return ["", table]
