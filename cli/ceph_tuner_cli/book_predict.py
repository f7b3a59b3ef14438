"""`ceph-tuner book predict`: a page for each regime, found on the twin."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Tuple, Union

import typer

from ceph_tuner.core.atomic_write import check_free, write_text
from ceph_tuner.core.book.book import Book, document_of
from ceph_tuner.core.book.page import Page
from ceph_tuner.core.ceph.target import Target
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.slo_calendar import BASE, SloCalendar
from ceph_tuner.core.goals.stored_slo import stored_calendar
from ceph_tuner.core.measure.history import History
from ceph_tuner.core.measure.metrics import CLASS, Scope, scoped
from ceph_tuner.core.measure.quantity import amount
from ceph_tuner.core.measure.sample import Window
from ceph_tuner.core.measure.timeline import timeline
from ceph_tuner.core.regimes.bounds import DEFAULT, RegimeBounds, stored_bounds
from ceph_tuner.core.wording import first_of
from ceph_tuner.files import slo_file
from ceph_tuner.recommend import SearchEffort
from ceph_tuner.report.words import percent_change
from ceph_tuner.twin.described_cluster import DescribedCluster
from ceph_tuner_cli.bounds_file import read_bounds
from ceph_tuner_cli.cluster_option import (
    AnyClusterOption,
    ForceOption,
    KnobsOption,
    TargetOption,
    at_work,
    knobs_in_a_row,
)
from ceph_tuner_cli.description import read_description
from ceph_tuner_cli.from_option import FromOption, cluster_or_state
from ceph_tuner_cli.interruption import INTERRUPTED
from ceph_tuner_cli.prefix_option import open_cluster
from ceph_tuner_cli.render import Format, FormatOption, emit, say, warn, working

if TYPE_CHECKING:
    from ceph_tuner.recommend.regime_pages import RegimeAnswer
    from ceph_tuner.recommend.regime_questions import RegimeQuestion

STILL_MISSED = "whatever was tried, a hard objective would be missed that is kept now, or it was not confirmed"
NONE_SERVES = "no page of another regime is better here than what is in force"


@dataclass(frozen=True)
class ClusterAccount:
    """What a cluster, or a file in its place, says of itself."""

    description: DescribedCluster
    calendar: SloCalendar
    bounds: RegimeBounds
    stored_bounds: RegimeBounds
    """Its own, whatever the question is asked by."""
    regimes: Tuple[str, ...]
    hours: Tuple[Window, ...]
    """Of its history, as far as they tell what clients of these OSDs did."""
    iops: str
    """The metric that tells it."""
    version: str
    at: float

    @property
    def unmarked(self) -> Tuple[str, ...]:
        """Policies that no marker names."""
        marked = [marker.policy for marker in self.bounds.of_policies]
        return tuple(policy.name for policy in self.calendar.policies if policy.name not in marked)


def predict(
    cluster_file: Optional[Path] = typer.Argument(
        None, metavar="[CLUSTER_FILE]", help="A described cluster, in the place of --cluster or --from."
    ),
    cluster: Optional[str] = AnyClusterOption,
    state: Optional[Path] = FromOption,
    target: str = TargetOption,
    slo: Optional[Path] = typer.Option(None, "--slo", "-s", help="An SLO file, in the place of the cluster's own."),
    regime: List[str] = typer.Option(
        [],
        "--regime",
        "-R",
        help="Such as busy+recovering; may be repeated. Default: each one that the cluster was in.",
    ),
    bounds: Optional[Path] = typer.Option(
        None, "--bounds", help="Markers of regimes, as for `book bounds`, in the place of the cluster's own."
    ),
    trials: int = typer.Option(
        SearchEffort.trials, "--trials", "-n", min=1, max=500, help="Settings to try on the twin, for each regime."
    ),
    seed: int = typer.Option(1, "--seed", min=0, max=2**31, help="The same seed gives the same pages."),
    knobs: Optional[str] = KnobsOption,
    processes: Optional[int] = typer.Option(None, "--processes", min=1, help="Runs side by side; else one per core."),
    output: Optional[Path] = typer.Option(None, "--output", "-o", help="Write the pages, for `book import`."),
    force: bool = ForceOption,
    add: bool = typer.Option(False, "--add", help="Put the pages into the cluster's book, unvalidated."),
    form: Format = FormatOption,
) -> int:
    """Search settings for each regime on the twin, as pages of the book. Changes no setting of any cluster.

    The plugin uses such pages where `book_unvalidated` is `twin`, or where one is pinned. Exit code 1 where no regime
    has anything better than what is in force.
    """
    if add and cluster is None:
        raise InputError("--add", "no --cluster", "the cluster whose book gets the pages")
    if output is not None:
        check_free(output, force)
    # a second of imports, which --help and completion do not wait for
    from ceph_tuner.recommend.recommendation import recommend
    from ceph_tuner.recommend.regime_pages import RegimeAnswer, pages_of
    from ceph_tuner.recommend.search import WorkOver
    from ceph_tuner.tune.interrupts import Interrupts
    from ceph_tuner_cli.recommend_page import RecommendProgress

    own_bounds = None if bounds is None else read_bounds(bounds)[1]
    account = _account(cluster_file, cluster, state, target, slo, own_bounds, regime)
    if add and bounds is not None:
        _check_stored_bounds(account, bounds, str(cluster), bool(regime))
    say([f"note: {note}" for note in account.description.notes])
    if account.unmarked:
        names = ", ".join(account.unmarked)
        say([f"note: no marker names these policies, so pages found for the base hold under them too: {names}"])
    warn(account.description.unlikely)
    questions = _questions(account, knobs_in_a_row(knobs), bool(regime))
    others = [] if regime else _others(account, questions, knobs_in_a_row(knobs))
    effort = replace(SearchEffort(), trials=trials, seed=seed)
    answers: List[RegimeAnswer] = []
    interrupted = False
    for number, question in enumerate(questions, 1):
        say([f"{question.regime} ({number} of {len(questions)})"])
        with RecommendProgress(question.question.slo) as progress, Interrupts(progress.interrupted) as interrupts:
            try:
                recommendation = recommend(
                    question.question, effort, progress, processes, explain=False, interruptible=interrupts
                )
            except WorkOver as over:
                # the others are not to be lost after minutes of search
                if regime:
                    raise
                say([f"left out: regime {question.regime}: {over}"])
                continue
        answers.append(RegimeAnswer(question, recommendation))
        interrupted = recommendation.interrupted
        if interrupted:
            others = []
            break
    pages: Tuple[Page, ...] = ()
    if not interrupted:
        what = "trying each regime's settings in the others"
        with working(what) as tell:
            pages = pages_of(
                answers, account.at, target, lambda done, total: tell(what, done, total), processes, others
            )
    page_by_regime = {page.regime: page for page in pages}
    rows = [
        _row(account, answer.question, page_by_regime.get(answer.question.regime), _why_none(answer))
        for answer in answers
    ]
    rows += [_row(account, question, page_by_regime.get(question.regime), "") for question in others]
    _check(pages, account.version)
    book = document_of(pages, account.version)
    document: Dict[str, Any] = {"cluster": account.description.name, "regimes": rows, "book": book}
    if output is not None and pages:
        write_text(output, json.dumps(book, indent=2) + "\n", force)
        document["saved"] = str(output)
    if add and pages and not interrupted:
        say([f"note: {note}" for note in _add(str(cluster), book)])
        document["added"] = len(pages)
    emit(document, form, lambda: "\n".join(_words(document, cluster)))
    if interrupted:
        return INTERRUPTED
    return 0 if pages else 1


def _account(
    cluster_file: Optional[Path],
    cluster: Optional[str],
    state: Optional[Path],
    target: str,
    slo: Optional[Path],
    own_bounds: Optional[RegimeBounds],
    regimes: Sequence[str],
) -> ClusterAccount:
    own = None if slo is None else slo_file.read(slo).at_all_times
    device_class = Target.parse(target, "--target").device_class
    scope = Scope(CLASS, device_class) if device_class else None
    if cluster_file is not None:
        if cluster is not None or state is not None:
            raise InputError("book predict", "CLUSTER_FILE beside --cluster or --from", "one of them")
        if own is None:
            raise InputError("--slo", "nothing", "an SLO file: a described cluster keeps no objectives")
        return _of_file(read_description(cluster_file), own, own_bounds or DEFAULT, regimes)
    from ceph_tuner.describe.live_cluster import describe
    from ceph_tuner.recommend.regime_questions import CLIENTS, regimes_named, work_in

    with (
        working(f"looking at {cluster or state}"),
        cluster_or_state(cluster, state, lambda name: open_cluster(name)) as connection,
    ):
        own = own or stored_calendar(connection.store)
        if own is None:
            raise InputError("--slo", "nothing, and the cluster keeps no objectives", "an SLO file")
        stored, history = stored_bounds(connection.store), History(connection.store)
        bounds = own_bounds or stored
        names = regimes_named(regimes, bounds, timeline(history), str(scope or ""), own.policy_names)
        policies = {BASE, *(bounds.policy_of(name) for name in names)}
        wanted = (slo.work for policy, slo in own.by_policy.items() if policy in policies)
        description = describe(connection, target, work_in(names, bounds).union(*wanted))
        iops, at = scoped(CLIENTS, scope), connection.clock.now()
        hours = tuple(history.hours(at)) if target == "osd" or scope else ()
        return ClusterAccount(description, own, bounds, stored, names, hours, iops, connection.version, at)


def _of_file(
    description: DescribedCluster, calendar: SloCalendar, bounds: RegimeBounds, regimes: Sequence[str]
) -> ClusterAccount:
    import time

    from ceph_tuner.core.knobs.releases import format_version
    from ceph_tuner.recommend.regime_questions import CLIENTS, regimes_named

    model = description.model
    names = regimes_named(regimes, bounds, policies=calendar.policy_names)
    version = format_version(model.version or model.release.newest)
    return ClusterAccount(description, calendar, bounds, DEFAULT, names, (), CLIENTS, version, time.time())


def _questions(account: ClusterAccount, knobs: Optional[Sequence[str]], are_named: bool) -> List[RegimeQuestion]:
    """One for each regime. One that was named has to be answered; another one may be left out, and that is said."""
    results = [_question(account, name, knobs) for name in account.regimes]
    refusals = [result for result in results if isinstance(result, InputError)]
    questions = [result for result in results if not isinstance(result, InputError)]
    if refusals and (are_named or not questions):
        raise refusals[0]
    say([f"left out: {refusal}" for refusal in refusals])
    return questions


def _others(
    account: ClusterAccount, searched: Sequence[RegimeQuestion], knobs: Optional[Sequence[str]]
) -> List[RegimeQuestion]:
    """What the regimes that are searched may come to together, and was not met yet: the pages are tried there too."""
    from ceph_tuner.recommend.regime_questions import combinations_of

    names = combinations_of([question.regime for question in searched], account.bounds, account.calendar.policy_names)
    results = [_question(account, name, knobs) for name in names]
    return [result for result in results if not isinstance(result, InputError)]


def _question(account: ClusterAccount, name: str, knobs: Optional[Sequence[str]]) -> Union[RegimeQuestion, InputError]:
    from ceph_tuner.recommend.regime_questions import question_by_policy

    try:
        return question_by_policy(
            name, account.description, account.calendar, account.bounds, account.hours, account.at, knobs, account.iops
        )
    except InputError as refusal:
        return refusal


def _check(pages: Sequence[Page], version: str) -> None:
    """Refuse what a cluster's plugin would. A page that it refuses is a mistake of this command."""
    from ceph_tuner.core.book.page_check import check_page

    for page in pages:
        check_page(page, version)
    Book(tuple(pages), len(pages))


def _check_stored_bounds(account: ClusterAccount, file: Path, cluster: str, are_named: bool) -> None:
    """Refuse bounds by which pages would be made that the cluster's own never bring into force."""
    from ceph_tuner.recommend.regime_questions import combinations_of

    stored, policies = account.stored_bounds, account.calendar.policy_names
    others = () if are_named else combinations_of(account.regimes, account.bounds, policies)
    untold = [
        name
        for name in (*account.regimes, *others)
        if not stored.tells(name, policies) or stored.policy_of(name) != account.bounds.policy_of(name)
    ]
    if untold:
        found = f"regimes that {cluster} does not tell by its own bounds: {first_of(untold, 5)}"
        raise InputError("--bounds beside --add", found, f"`ceph-tuner book bounds {file} --cluster {cluster}` first")


def _add(cluster: str, book: Dict[str, Any]) -> List[str]:
    """Give what the plugin notes of it."""
    from ceph_tuner.cluster.plugin_commands import plugin_answer

    with at_work(cluster, "adding the pages") as connection:
        document = plugin_answer(connection.commander, "tuner book import", {}, json.dumps(book))
    return [str(note) for note in document.get("notes", [])]


def _why_none(answer: RegimeAnswer) -> str:
    return STILL_MISSED if answer.recommendation.better else answer.recommendation.searched.choice.reason


def _row(account: ClusterAccount, question: RegimeQuestion, page: Optional[Page], why_none: str) -> Dict[str, Any]:
    """`why_none`: why there is no page; empty where nothing was searched for the regime."""
    means = page.means if page is not None else {}
    return {
        "regime": question.regime,
        "policy": (account.bounds.policy_of(question.regime) or BASE) if account.calendar.policies else None,
        "searched": bool(why_none),
        "client_iops": question.client_iops,
        "work": list(question.work),
        "left_out": list(question.left_out),
        "page": None if page is None else page.number,
        "reason": (why_none or NONE_SERVES) if page is None else page.verdict,
        "settings": {} if page is None else dict(page.settings),
        "effects": {metric: {"before": page.load[metric], "after": means[metric]} for metric in means if page},
    }


def _words(document: Dict[str, Any], cluster: Optional[str]) -> List[str]:
    lines = []
    for row in document["regimes"]:
        asks = "" if row["client_iops"] is None else f"clients ask for {amount('client.iops', row['client_iops'])[0]}; "
        outcome = f"page {row['page']}: {row['reason']}" if row["page"] else f"no page: {row['reason']}"
        lines.append(f"{row['regime']}: {outcome}")
        if not row["searched"]:
            continue
        policy = "" if row["policy"] is None else f"objectives of the policy {row['policy']}; "
        lines.append(f"  {policy}{asks}{', '.join(row['work'])}")
        if row["page"]:
            lines.append(f"  {', '.join(f'{name}={value}' for name, value in row['settings'].items())}")
            lines += [f"  {_effect(metric, **ends)}" for metric, ends in row["effects"].items()]
        lines += [f"  nothing is said of: {text}" for text in row["left_out"]]
    if "saved" in document:
        lines.append(f"saved: {document['saved']}, for `ceph-tuner book import`")
    if "added" in document:
        lines.append(f"added to the book of {cluster}, unvalidated: {document['added']}")
        lines.append("they are used where `book_unvalidated` is `twin`, and where you pin one")
    return lines


def _effect(metric: str, before: float, after: float) -> str:
    change = f" ({percent_change(after / before)})" if before > 0 else ""
    return f"{metric} {amount(metric, before)[0]} -> {amount(metric, after)[0]}{change}"
