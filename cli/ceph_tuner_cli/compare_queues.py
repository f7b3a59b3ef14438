"""`ceph-tuner compare-queues`: wpq or mClock, on the twin of a described cluster, and as a trial on one real host."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Optional

import typer
from rich.console import Group, RenderableType

from ceph_tuner.cluster import Cluster
from ceph_tuner.core.ceph.commands import parsed, shaped
from ceph_tuner.core.ceph.target import Place
from ceph_tuner.core.errors import InputError, TunerError
from ceph_tuner.core.knobs.releases import parse_version
from ceph_tuner.core.measure.history import History
from ceph_tuner.core.measure.osd_documents import osd_queues_in, osd_values
from ceph_tuner.doctor.facts import OsdFacts
from ceph_tuner.files import slo_file
from ceph_tuner.recommend import SearchEffort
from ceph_tuner_cli.cluster_option import AnyClusterOption, at_work
from ceph_tuner_cli.description import objectives_left_aside, read_description
from ceph_tuner_cli.interruption import INTERRUPTED
from ceph_tuner_cli.render import Format, FormatOption, emit, say, show_lines, working

QUEUE = "osd_op_queue"
MINUTE_S = 60.0

if TYPE_CHECKING:
    # they bring scipy and scikit-learn, which --help and completion do not wait for
    from ceph_tuner.recommend.queue_trial import QueueTrial
    from ceph_tuner.recommend.queues import QueueComparison


def compare_queues(
    described: Optional[Path] = typer.Argument(
        None, metavar="[CLUSTER_FILE]", help="A described cluster; `twin describe` writes one."
    ),
    slo: Optional[Path] = typer.Option(None, "--slo", "-s", help="The SLO file, with a described cluster."),
    trials: int = typer.Option(
        SearchEffort.trials, "--trials", "-n", min=1, max=500, help="mClock settings to try on the twin."
    ),
    seed: int = typer.Option(1, "--seed", min=0, max=2**31, help="The same seed gives the same answer."),
    processes: Optional[int] = typer.Option(None, "--processes", min=1, help="Runs side by side; else one per core."),
    cluster: Optional[str] = AnyClusterOption,
    host: str = typer.Option("", "--host", help="The host that tries the other queue; else one with a like one."),
    measure: Optional[Path] = typer.Option(
        None, "--measure", metavar="FILE", help="Measure a stretch of the trial on --host, beside those that FILE has."
    ),
    minutes: Optional[int] = typer.Option(
        None, "--minutes", min=2, max=24 * 60, help="With --measure: how long; else as the plan says."
    ),
    form: Format = FormatOption,
) -> int:
    """Say what wpq would do in the place of mClock, and what the change costs. Writes nothing to a cluster.

    With a described cluster it is simulated under both queues. With --cluster a trial on one host is planned, and its
    way back. The plan measures with --measure: host and controls, minute by minute, kept in a file.
    """
    from ceph_tuner_cli import queues_page

    if measure is not None:
        if cluster is None or described is not None or slo is not None:
            raise InputError(
                "--measure", "no --cluster, or a described cluster beside it", "--cluster and --host alone"
            )
        return _measure(cluster, host, measure, minutes, form)
    if minutes is not None:
        raise InputError("--minutes", "no --measure", "both")

    if described is None and cluster is None:
        raise InputError("compare-queues", "neither a described cluster nor --cluster", "one of them, or both")
    if (described is None) != (slo is None):
        half = "a described cluster without --slo" if slo is None else "--slo without a described cluster"
        raise InputError("compare-queues", half, "both, or neither")
    comparison: Optional[QueueComparison] = None
    if described is not None and slo is not None:
        effort = replace(SearchEffort(), trials=trials, seed=seed)
        comparison = _comparison(described, slo, effort, processes)
    trial = _queue_trial(cluster, host) if cluster is not None else None
    document: Dict[str, Any] = {
        "comparison": None if comparison is None else queues_page.document(comparison, cluster or "ceph"),
        "trial": None if trial is None else {"cluster": cluster, **trial.to_dict()},
    }

    def page() -> RenderableType:
        parts: List[RenderableType] = [] if comparison is None else queues_page.page(comparison)
        return Group(*parts, *([] if trial is None else queues_page.trial_page(trial)))

    emit(document, form, page)
    if form is Format.table:
        show_lines([] if comparison is None else queues_page.change_steps(comparison, cluster or "ceph"))
        show_lines([] if trial is None else queues_page.trial_steps(trial))
        say(["nothing is changed: this is a plan that nobody but you carries out"])
    return INTERRUPTED if comparison is not None and comparison.searched.interrupted else 0


def _comparison(path: Path, slo: Path, effort: SearchEffort, processes: Optional[int]) -> QueueComparison:
    """Search the best mClock settings as `recommend` does, then run wpq on the same seeds."""
    from ceph_tuner.recommend.question import question_of
    from ceph_tuner.recommend.queues import compare_queues as compare
    from ceph_tuner.recommend.search import search
    from ceph_tuner.tune.interrupts import Interrupts
    from ceph_tuner.twin.compiled import available
    from ceph_tuner_cli.recommend_page import RecommendProgress

    read, objectives = read_description(path), slo_file.read(slo).slo
    if not available():
        say(["without numba the model runs uncompiled, many times slower"])
    question = question_of(read, objectives)
    objectives_left_aside(read, objectives)
    with RecommendProgress(question.slo) as progress, Interrupts(progress.interrupted) as interrupts, interrupts():
        result = search(question, effort, progress, processes)
    with working("simulating wpq, and what a restart costs"):
        return compare(result, read.stored, processes, read.sleeps)


def _queue_trial(cluster: str, host: str) -> QueueTrial:
    """Read what the plan needs; nothing is written."""
    with at_work(cluster, "reading which queue its OSDs run") as connection:
        return replace(_plan(connection, host), cluster=cluster)


def _plan(connection: Cluster, host: str) -> QueueTrial:
    from ceph_tuner.recommend.queue_trial import hosts_of, noout_hosts, plan_queue_trial

    places = connection.config.places()
    hosts = hosts_of(places)
    osd_ids = [osd for osds in hosts.values() for osd in osds]
    with shaped("osd dump"):
        noout = noout_hosts(parsed(connection.commander.mon("osd dump", {}), "osd dump"), hosts)
    return plan_queue_trial(
        host,
        connection.config.dump(),
        places,
        _queues(connection, osd_ids),
        connection.release,
        parse_version(connection.version),
        _sources(connection, osd_ids),
        History(connection.store).windows(connection.clock.now()),
        noout,
    )


def _measure(cluster: str, host: str, path: Path, minutes: Optional[int], form: Format) -> int:
    """Measure one stretch, put it beside those in the file, and show all of them."""
    from ceph_tuner.recommend import queue_stretch
    from ceph_tuner_cli import queues_page

    with at_work(cluster, "measuring host and controls") as connection:
        measured = queue_stretch.read(path)
        if measured is None:
            plan = _plan(connection, host)
            measured = queue_stretch.MeasuredTrial(plan.host, plan.osds, plan.controls)
            minutes = minutes or plan.minutes
        elif host not in ("", measured.host):
            raise InputError(str(path), f"a trial on {measured.host}", f"another file, or --host {measured.host}")
        minutes = minutes or max(len(stretch.looks) - 1 for stretch in measured.stretches)
        running = sorted(set(_queues(connection, list(measured.osds)).values()))
        if len(running) != 1:
            raise InputError(
                f"host {measured.host}", f"OSDs under {' and '.join(running) or 'no known queue'}", "all under one"
            )
        osds = [*measured.osds, *measured.control_osds]
        looks, began = [_look(connection, osds)], connection.clock.monotonic()
        for minute in range(1, minutes + 1):
            connection.progress(f"minute {minute} of {minutes}", minute - 1, minutes)
            connection.clock.sleep(max(0.0, began + MINUTE_S * minute - connection.clock.monotonic()))
            looks.append(_look(connection, osds))
    measured = measured.with_stretch(queue_stretch.Stretch(running[0], tuple(looks)))
    queue_stretch.write(path, measured)
    emit(queues_page.measured_document(measured), form, lambda: Group(*queues_page.measured_page(measured)))
    return 0


def _look(connection: Cluster, osds: List[int]) -> Dict[int, Dict[str, float]]:
    """What each OSD that answers has counted so far."""
    from ceph_tuner.recommend.queue_stretch import AT, COUNTED

    def counted(perf_dump: str) -> Dict[str, float]:
        values = osd_values(parsed(perf_dump, "perf dump")["osd"])
        return {AT: connection.clock.monotonic(), **{name: values[name] for name in COUNTED if name in values}}

    answers = connection.config.each(osds, "perf dump", counted, ("osd",))
    return {osd: answer for osd, answer in answers if not isinstance(answer, TunerError)}


def _queues(connection: Cluster, osds: List[int]) -> Dict[int, str]:
    """The queue that each OSD runs. Counters of mClock's queues tell: the option may have changed since the start."""
    answers = connection.config.each(osds, "perf dump", osd_queues_in)
    answer_of = {osd: bool(answer) for osd, answer in answers if not isinstance(answer, TunerError)}
    queue_of: Dict[int, str] = {}
    for osd, options in connection.config.effective_on(osds, (QUEUE,)):
        if not isinstance(options, TunerError) and osd in answer_of:
            queue_of[osd] = OsdFacts(Place(osd), options=options, mclock_queues=answer_of[osd]).queue
    return queue_of


def _sources(connection: Cluster, osds: List[int]) -> Dict[int, Any]:
    answers = connection.config.sources_on(osds)
    return {osd: {} if isinstance(answer, TunerError) else answer for osd, answer in answers}
