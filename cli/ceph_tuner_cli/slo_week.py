"""`ceph-tuner slo week`: which policy of an SLO's calendar holds when, and what the twin says of each."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import typer
from rich.console import Group
from rich.text import Text

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.goals.slo_calendar import SloCalendar, boosts_in_words
from ceph_tuner.core.goals.stored_slo import stored_baseline, stored_calendar
from ceph_tuner.core.goals.week_ahead import WEEK_DAYS, week_ahead
from ceph_tuner.core.goals.week_behind import HourAhead, hours_ahead, week_behind
from ceph_tuner.core.hours import DAY_S, WEEK_S, zone_of
from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.core.measure.history import History
from ceph_tuner.core.measure.quantity import amount, quantity
from ceph_tuner.core.measure.sample import Window
from ceph_tuner.core.moments import clock, moment_ahead
from ceph_tuner.files import slo_file
from ceph_tuner.recommend import Prediction, SearchEffort
from ceph_tuner.twin.described_cluster import LEAST_CLIENT_IOPS, DescribedCluster
from ceph_tuner_cli.cluster_option import AnyClusterOption
from ceph_tuner_cli.description import read_description
from ceph_tuner_cli.from_option import FromReportOption, cluster_or_state
from ceph_tuner_cli.interruption import INTERRUPTED
from ceph_tuner_cli.prefix_option import open_cluster
from ceph_tuner_cli.render import Format, FormatOption, emit, say, warn, working
from ceph_tuner_cli.tables import Cell, Columns, columns

IN_FORCE, RECOMMENDED = "in_force", "recommended"


@dataclass(frozen=True)
class ClusterAccount:
    """What a cluster, or a file in its place, says of itself."""

    description: DescribedCluster
    hours: Tuple[Window, ...] = ()
    """Of its history, oldest first."""
    baseline: Mapping[str, float] = field(default_factory=dict)
    has_past: bool = False
    """Whether it can be asked for."""


def week(
    file: Optional[Path] = typer.Argument(
        None, help="The SLO file. None with --cluster or --from: the calendar that the cluster keeps."
    ),
    begin: Optional[str] = typer.Option(
        None,
        "--begin",
        help="When the days begin: in so long (3d), or a date in the calendar's time zone (2027-03-25); else now.",
    ),
    days: int = typer.Option(WEEK_DAYS, "--days", min=1, max=366, help="How many days to show."),
    cluster: Optional[str] = AnyClusterOption,
    state: Optional[Path] = FromReportOption,
    cluster_file: Optional[Path] = typer.Option(
        None, "--cluster-file", help="A described cluster, in the place of --cluster: search settings on its twin."
    ),
    trials: int = typer.Option(
        SearchEffort.trials, "--trials", "-n", min=1, max=500, help="Settings to try on the twin for each policy."
    ),
    processes: Optional[int] = typer.Option(None, "--processes", min=1, help="Runs side by side; else one per core."),
    form: Format = FormatOption,
) -> int:
    """Show which policy of a calendar holds when in the next week, on the clock of its zone. Changes nothing.

    With a cluster also what `recommend` predicts under each policy and in each hour of the day, and which of the hours
    that its history keeps miss the calendar. Exit code 1 where a hard objective is still missed under some policy, or
    not seen. Where clients do nothing, no objective about them is judged.
    """
    if sum(each is not None for each in (cluster, state, cluster_file)) > 1:
        raise InputError("slo week", "two of --cluster, --from and --cluster-file", "one of them")
    if file is None and cluster is None and state is None:
        raise InputError("slo week", "no FILE", "an SLO file, or --cluster for the calendar that it keeps")
    calendar = None if file is None else slo_file.read(file).at_all_times
    if cluster is None and state is None and cluster_file is None and calendar is not None:
        document = {"file": str(file), **week_ahead(calendar, _start(begin, calendar), days * DAY_S)}
        emit(document, form, lambda: Group(*_pages(document)))
        return 0
    calendar, known = _known(calendar, cluster, state, cluster_file)
    start = _start(begin, calendar)
    document = {"file": None if file is None else str(file), **week_ahead(calendar, start, days * DAY_S)}
    ahead = hours_ahead(calendar, start, start + days * DAY_S, known.hours)
    if known.has_past:
        document["past"] = week_behind(calendar, known.hours, known.baseline)
    say([f"note: {note}" for note in known.description.notes])
    predictions: Dict[str, Any] = {}
    settings: Dict[str, Dict[str, Settings]] = {}
    for entry in document["policies"]:
        if entry["hours_in_force"] > 0:
            name = entry["name"]
            iops = [each.client_iops for each in ahead if each.policy == name and each.client_iops is not None]
            answer = _prediction_of_policy(
                name, known.description, calendar.by_policy[name], max(iops, default=None), trials, processes
            )
            if answer is None:
                return INTERRUPTED
            predictions[name], settings[name] = answer
    document["cluster"], document["predicted"] = known.description.name, predictions
    document["hours"] = _hours(known, calendar, ahead, settings, processes)
    emit(document, form, lambda: Group(*_pages(document), *_predictions(document), *_by_hour(document)))
    if form is Format.table:
        warn(known.description.unlikely)
    return 1 if any(entry["keeps_hard"] is False for entry in predictions.values()) else 0


def _start(begin: Optional[str], calendar: SloCalendar) -> float:
    now = time.time()
    return now if begin is None else moment_ahead(begin, now, "--begin", zone_of(calendar.zone))


def _known(
    calendar: Optional[SloCalendar],
    cluster: Optional[str],
    state: Optional[Path],
    cluster_file: Optional[Path],
) -> Tuple[SloCalendar, ClusterAccount]:
    """The calendar, the cluster's own where none was named, and what is known of the cluster."""
    if cluster_file is not None and calendar is not None:
        return calendar, ClusterAccount(read_description(cluster_file))
    from ceph_tuner.describe.live_cluster import describe
    from ceph_tuner.gather.replay import NotGathered

    with (
        working(f"looking at {cluster or state}"),
        cluster_or_state(cluster, state, lambda name: open_cluster(name)) as connection,
    ):
        calendar = calendar or stored_calendar(connection.store)
        if calendar is None:
            raise InputError("slo week", "no FILE, and the cluster keeps no objectives", "an SLO file")
        work = frozenset[str]().union(*(slo.work for slo in calendar.by_policy.values()))
        description = describe(connection, "osd", work)
        try:
            now = connection.clock.now()
            hours = tuple(History(connection.store).hours(now, now - WEEK_S))
            baseline = stored_baseline(connection.store)
        except NotGathered as refusal:
            say([f"note: nothing is kept of the past: {refusal.message}"])
            return calendar, ClusterAccount(description)
        load = max((window.means for window in hours), key=_client_iops, default={})
        if not description.model.clients and _client_iops(load) >= LEAST_CLIENT_IOPS:
            # hours differ by how much clients do: of what kind it is, the busiest one tells
            description = describe(connection, "osd", work, load=load)
            note = "clients do nothing now: their work is taken to be of the kind of the busiest kept hour"
            description = replace(description, notes=(*description.notes, note))
        return calendar, ClusterAccount(description, hours, baseline, has_past=True)


def _client_iops(means: Mapping[str, float]) -> float:
    return means.get("client.iops", 0.0)


def _prediction_of_policy(
    name: str, description: DescribedCluster, slo: Slo, iops: Optional[float], trials: int, processes: Optional[int]
) -> Optional[Tuple[Dict[str, Any], Dict[str, Settings]]]:
    """What a search for one policy ends with at its most clients, and the settings by name; None if interrupted.

    Where the twin says nothing of any objective, why, and no settings.
    """
    # a second of imports, which --help and completion do not wait for
    from ceph_tuner.recommend.document import document as plain
    from ceph_tuner.recommend.policy_hours import question_under, why_none
    from ceph_tuner.recommend.recommendation import recommend
    from ceph_tuner.tune.interrupts import Interrupts
    from ceph_tuner_cli.recommend_page import RecommendProgress

    question, left_out = question_under(description, slo, iops)
    say([f"{name}: nothing is said of {text}: {why}" for text, why in left_out.items()])
    if question is None:
        nothing: Dict[str, Any] = {
            "better": False,
            "keeps_hard": None,
            "client_iops": iops,
            "left_out": list(left_out),
            "settings": {},
        }
        return {**nothing, "verdicts": [], "in_force": [], "reason": why_none(left_out)}, {}
    say([f"{name}: settings are searched on the twin"])
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
    settings = {IN_FORCE: search_result.before.settings}
    if answer.better:
        settings[RECOMMENDED] = search_result.winner.settings
    document = {
        "better": answer.better,
        "keeps_hard": answer.keeps_hard,
        "client_iops": iops,
        "left_out": list(left_out),
        "settings": whole["recommended"]["settings"],
        "verdicts": _verdicts(search_result.judge, search_result.winner),
        "in_force": _verdicts(search_result.judge, search_result.before),
        "reason": None,
    }
    return document, settings


def _hours(
    known: ClusterAccount,
    calendar: SloCalendar,
    ahead: Sequence[HourAhead],
    settings: Mapping[str, Mapping[str, Settings]],
    processes: Optional[int],
) -> List[Dict[str, Any]]:
    """What the twin says of each hour whose clients are known; nothing where no hour is kept."""
    from ceph_tuner.recommend.policy_hours import predict_hours

    seen = [each for each in ahead if each.client_iops is not None]
    if not seen:
        if known.has_past:
            say(["no hour is kept in the history: nothing is said by hour (`ceph-tuner mgr status`: does it run?)"])
        return []
    with working("simulating each hour of the day") as tell:
        rows = predict_hours(
            known.description,
            calendar,
            seen,
            settings,
            known.baseline,
            lambda done, total: tell("simulating each hour of the day", done, total),
            processes,
        )
    return [row.to_dict() for row in rows]


def _verdicts(judge: Judge, prediction: Prediction) -> List[Dict[str, Any]]:
    return [verdict.to_dict() for verdict in judge.verdicts(prediction.means)]


def _pages(document: Mapping[str, Any]) -> List[Any]:
    zone = zone_of(document["zone"])

    title = f"{document['slo']}, by the clock of {document['zone']}"
    times = columns("from", "until", ">hours", "policy", keep=("from", "until", "policy"))
    times.title = title
    for spell in document["spells"]:
        hours = (spell["end"] - spell["start"]) / 3600
        times.add_row(clock(spell["start"], zone), clock(spell["end"], zone), f"{hours:.4g}", spell["policy"])
    table = columns("policy", ">hours", "objective", "", keep=("objective",))
    for entry in document["policies"]:
        name, hours = entry["name"], f"{entry['hours_in_force']:.4g}"
        for row in entry["objectives"]:
            kind = "hard" if row["hard"] else "soft"
            table.add_row(name, hours, row["objective"], f"{kind}, priority {row['priority']:g}")
            name = hours = ""
    notes = [
        f"{clock(each['at'], zone)}: the clock is set {'forward' if each['after'] > each['before'] else 'back'}, "
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
        if not entry["verdicts"]:
            table.add_row(name, f"none is judged: {entry['reason']}", "-", "-", "-")
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


def _by_hour(document: Mapping[str, Any]) -> List[Any]:
    """The hours of the day, each by the objective that is nearest to its bound, and what was missed of the past."""
    parts: List[Any] = []
    if document["hours"]:
        table = columns("hour", "policy", ">clients", "objective", "in force", "recommended", keep=("objective",))
        table.title = (
            "\nby hour of the day, at the most that clients did in that hour: the objective nearest to its bound"
        )
        for row in document["hours"]:
            verdicts = row["verdicts"]
            clients = quantity("client.iops", row["client_iops"])
            cells: Tuple[Cell, Cell, Cell] = (f"none is judged: {row['reason']}", "-", "-")
            if verdicts:
                cells = _nearest(verdicts[IN_FORCE], verdicts.get(RECOMMENDED))
            table.add_row(f"{row['hour']:02d}-{(row['hour'] + 1) % 24:02d}", row["policy"], clients, *cells)
        parts += ["", table]
    past = document.get("past")
    if past is not None and past["windows"]:
        parts += ["", *_missed(past, zone_of(document["zone"]))]
    return parts


def _nearest(now: Sequence[Mapping[str, Any]], then: Optional[Sequence[Mapping[str, Any]]]) -> Tuple[Cell, Cell, Cell]:
    """Objective, and what is predicted of it under either settings."""
    known = [place for place, verdict in enumerate(now) if verdict["margin"] is not None]
    if not known:
        return "-", "unknown", "unknown"
    place = min(known, key=lambda each: now[each]["margin"])
    return now[place]["objective"], _seen(now[place]), "nothing better" if then is None else _seen(then[place])


def _seen(verdict: Mapping[str, Any]) -> Cell:
    text = quantity(verdict["objective"].split()[0], verdict["seen"])
    return Text(f"{text}, missed", "red") if verdict["met"] is False else text


def _missed(past: Mapping[str, Any], zone: tzinfo) -> List[Any]:
    """The kept hours that miss the calendar."""
    missed = past["missed"]
    head = f"of {past['windows']} hours that the history keeps, {len(missed)} miss the calendar's objectives"
    notes = ["an hour's percentile is the mean of its minutes': shorter misses are not seen"]
    if not missed:
        return [f"{head}; {notes[0]}"]
    table = columns("from", "policy", "missed", keep=("from", "policy"))
    table.title = head
    for window in missed:
        words = "; ".join(
            f"{each['objective']}: {quantity(each['objective'].split()[0], each['seen'])}"
            for each in window["objectives"]
        )
        table.add_row(clock(window["start"], zone), window["policy"], words)
    return [table, *notes]
