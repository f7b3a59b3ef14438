"""Late deep scrubs beside clients: drained at the clients' pace, by Ceph's own scheduler, or with more at a time.

    ceph-tuner lab up --name backlog
    python benchmarks/scrub_backlog.py --cluster backlog --repeats 3
    python benchmarks/scrub_backlog.py --render benchmarks/results/scrub-backlog.jsonl \
        --page benchmarks/results/scrub-backlog.md

All PGs of a pool are late, each by another time. `scrub drain` keeps the objective; it is promised a date before it
begins, and says another one as it goes. Ceph's own scheduler has no objective: it runs under each built-in profile,
and under `balanced` with more scrubs an OSD, as an operator raises them by hand. One line of the output is one backlog.
Run it on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import statistics
import time
from contextlib import ExitStack, closing
from datetime import timezone
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

import runs_file
from day_on_lab import bound_of, written

from ceph_lab.cluster import Lab
from ceph_lab.loads.client import ClientLoad
from ceph_lab.loads.client_work import ClientWork
from ceph_lab.loads.scrub import OVERDUE_S, TURN_S, ScrubLoad
from ceph_lab.loads.session import LabSession
from ceph_lab.scenarios import Scenario
from ceph_tuner.cluster import open_cluster
from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.goals.slo import Slo, parse_objective
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.releases import BUILT_IN_PROFILES, Settings
from ceph_tuner.pacing.wanted import WantedObjectives
from ceph_tuner.scrub_plan.cluster_view import read_view
from ceph_tuner.scrub_plan.drain import Drain, DrainProgress, DrainTask
from ceph_tuner.scrub_plan.pace import ScrubLimits, due_until
from ceph_tuner_cli.scrub_rates import planned

WINDOW_S = 10.0
DRAIN_WINDOW_S = 15.0
"""By which a drain judges the objective."""
MANY_SCRUBS = 8
"""osd_max_scrubs, as raised by hand; by default it is 3."""
DRAIN, BY_HAND = "scrub drain", f"balanced, osd_max_scrubs {MANY_SCRUBS}"
WAYS: Dict[str, Settings] = {
    DRAIN: {},
    **{profile: {PROFILE: profile} for profile in BUILT_IN_PROFILES},
    BY_HAND: {PROFILE: "balanced", "osd_max_scrubs": MANY_SCRUBS},
}
BUSY_HOST = 1000.0
"""osd_scrub_load_threshold: a lab's OSDs share the host with its clients, and Ceph would begin no scrub beside them."""


class Backlog:
    """PGs that are late, and whether they still are."""

    def __init__(self, load: ScrubLoad) -> None:
        self._load = load
        for place, pgid in enumerate(load.pool.pgids):
            load.set_date(pgid, OVERDUE_S - TURN_S * place)
        self._stamps = self._read()

    def _read(self) -> Dict[str, str]:
        return {pg["pgid"]: str(pg["stats"]["last_deep_scrub_stamp"]) for pg in self._load.pool.pgs()}

    @property
    def left(self) -> int:
        now = self._read()
        return sum(now[pgid] == stamp for pgid, stamp in self._stamps.items())


def drained(cluster: Cluster, objective: str, pool: str, at_most_s: float) -> Dict[str, Any]:
    """By the program's own plan and drain: when it promised to be done, and what came of it."""
    wanted = WantedObjectives.of(Slo("keep", (parse_objective(objective),)))
    plan = planned(cluster, wanted, None, timezone.utc, window_s=DRAIN_WINDOW_S)
    begun = cluster.clock.now()
    order = tuple(pg for pg in due_until(plan.view, begun) if pg.pool == pool)
    limits = ScrubLimits(plan.view.rules.max_scrubs, 8)
    task = DrainTask(order, begun + at_most_s, limits, wanted, plan.rates, despite_flags=True, window_s=DRAIN_WINDOW_S)
    promises: List[Tuple[float, float]] = []
    steps: List[List[Any]] = []

    def look(progress: DrainProgress) -> None:
        steps.append([round(time.time() - begun, 1), progress.done, progress.running, progress.at_once])
        if progress.finish_at is not None:
            promises.append((progress.done / progress.total, progress.finish_at - begun))

    with cluster.lock("a backlog") as lock:
        outcome = Drain(cluster, plan.view, task, lock, look).run()
    rate = plan.rates.at(begun)
    return {
        "planned_s": None if plan.schedule.gone_at is None else plan.schedule.gone_at - begun,
        "planned_between_s": [None if end is None else end - begun for end in plan.gone_between],
        "rate": {"mean": rate.mean, "source": rate.source},
        "promises": promises,
        "steps": steps,
        "seconds": outcome.ended - outcome.began,
        "left": len(outcome.left),
        "remarks": list(outcome.remarks),
    }


def scheduled(cluster: Cluster, load: ScrubLoad, backlog: Backlog, at_most_s: float) -> Dict[str, Any]:
    """By Ceph alone."""
    begun = time.monotonic()
    cluster.config.set("osd", "osd_scrub_load_threshold", str(BUSY_HOST))
    try:
        for flag in ("noscrub", "nodeep-scrub"):
            load.flags.clear(flag)
        while (left := backlog.left) and time.monotonic() < begun + at_most_s:
            time.sleep(2.0)
    finally:
        seconds = time.monotonic() - begun
        load.halt()
        cluster.config.remove("osd", "osd_scrub_load_threshold")
    return {"seconds": seconds, "left": left}


def windows(clients: ClientLoad, start: float, end: float) -> List[Dict[str, float]]:
    """Of the clients' own latencies, while the backlog was worked on."""
    found = []
    for number in range(int((end - start) / WINDOW_S)):
        measures = clients.measure(start + number * WINDOW_S, start + (number + 1) * WINDOW_S)
        found.append({name: measures[name].mean for name in ("client.p95_ms", "client.mean_ms") if name in measures})
    return [window for window in found if window]


def one_backlog(name: str, cluster: Cluster, lab: Lab, arguments: argparse.Namespace) -> Dict[str, Any]:
    """Make it, and let it be worked off in one of the ways."""
    session = LabSession(lab)
    quiet: Callable[[str], None] = lambda line: None  # noqa: E731
    scrub = ScrubLoad(lab, session, objects=arguments.objects, pgs=arguments.pgs, tell=quiet)
    clients = ClientLoad(lab, session, ClientWork(rate=arguments.rate), quiet)
    with closing(Scenario("backlog", lab, (clients, scrub), session)) as scenario, ExitStack() as beside:
        scenario.prepare()
        if WAYS[name]:
            beside.enter_context(written(cluster, WAYS[name]))
        backlog = Backlog(scrub)
        # the mgr has to hear of the dates
        while sum(pg.late for pg in read_view(cluster).pgs if pg.pool == scrub.pool.name) < len(scrub.pool.pgids):
            time.sleep(1.0)
        clients.start()
        beside.callback(clients.stop)
        time.sleep(arguments.alone)
        start = time.time()
        alone = clients.measure(start - arguments.alone + 5.0, start)["client.p95_ms"].mean
        if name == DRAIN:
            result = drained(cluster, arguments.objective, scrub.pool.name, arguments.at_most)
        else:
            result = scheduled(cluster, scrub, backlog, arguments.at_most)
        return {**result, "alone_p95_ms": alone, "windows": windows(clients, start, start + result["seconds"])}


def measure(arguments: argparse.Namespace) -> None:
    lab = Lab.open(arguments.cluster)
    conditions = {
        "ceph": lab.state.ceph_version,
        "osds": list(map(str, lab.state.options.groups)),
        "slower": lab.state.options.slower,
        "objective": arguments.objective,
        "pgs": arguments.pgs,
        "objects": arguments.objects,
        "client_rate": arguments.rate,
    }

    def run(name: str) -> Dict[str, Any]:
        with closing(open_cluster(arguments.cluster)) as cluster:
            return {**conditions, "settings": WAYS[name], **one_backlog(name, cluster, lab, arguments)}

    runs_file.measure_each(
        arguments, WAYS, run, lambda line: f"{line['seconds']:.0f} s, missed for {missed_s(line):.0f} s"
    )


# what it came to


def missed_s(line: Mapping[str, Any]) -> float:
    """How long the clients' p95 was beyond the bound."""
    return WINDOW_S * sum(window["client.p95_ms"] > bound_of(line) for window in line["windows"])


def promised_s(line: Mapping[str, Any], done: float) -> float:
    """When a drain said that it would be done, once so much of it was."""
    promises: List[Tuple[float, float]] = line["promises"]
    return next((said for share, said in promises if share >= done), promises[-1][1])


def table(lines: List[Dict[str, Any]]) -> str:
    """One row a way, and one a promise."""
    first = lines[0]
    text = [
        f"{first['pgs']} late PGs, {first['objects']} objects of 1 MiB. Clients: {first['client_rate']:g} writes/s of "
        f"4 KiB. Objective: `{first['objective']}`. Ceph {first['ceph']}, OSDs {', '.join(first['osds'])}.",
        "",
        "| backlog worked off by | backlogs | time | PGs left | of it the objective was missed | highest p95 |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    by_name = {name: [line for line in lines if line["name"] == name] for name in WAYS}
    for name, own in by_name.items():
        if own:
            cells = (
                _ends([line["seconds"] for line in own], "s"),
                _ends([line["left"] for line in own], ""),
                _ends([missed_s(line) for line in own], "s"),
                _ends([max(window["client.p95_ms"] for window in line["windows"]) for line in own], "ms"),
            )
            text.append(f"| {name} | {len(own)} | {' | '.join(cells)} |")
    drains = [line for line in by_name[DRAIN] if line["promises"]]
    if drains:
        text += ["", "| drain | took | planned beforehand, rate by | said at its begin | said at half |"]
        text.append("| ---: | ---: | ---: | ---: | ---: |")
        for line in drains:
            cells = [f"{_off(line['planned_s'], line)}, {line['rate']['source']}"]
            cells += [_off(promised_s(line, share), line) for share in (0.0, 0.5)]
            text.append(f"| {line['repeat']} | {line['seconds']:.0f} s | {' | '.join(cells)} |")
    alone = statistics.fmean(line["alone_p95_ms"] for line in lines)
    busy = statistics.fmean(line["processors"]["busy"] for line in lines)
    dates = ", ".join(sorted({line["date"] for line in lines}))
    text += [
        "",
        f"Clients alone have a p95 of {alone:.0f} ms. Measured on {dates}; {first['machine']}, {busy:.0f}% busy.",
    ]
    return "\n".join(text)


def _off(said_s: Any, line: Mapping[str, Any]) -> str:
    """What was said, and how far it is from how long it took."""
    return "no date" if said_s is None else f"{said_s:.0f} s ({100 * (said_s / line['seconds'] - 1):+.0f}%)"


def _ends(values: Sequence[float], unit: str) -> str:
    space = " " if unit.isalpha() else ""
    mean = f"{statistics.fmean(values):,.0f}{space}{unit}"
    return mean if len(values) < 2 else f"{mean} ({min(values):,.0f} to {max(values):,.0f})"


def main() -> None:
    parser = runs_file.lab_parser(__doc__, "scrub-backlog.jsonl")
    parser.add_argument("--objective", default="client.p95_ms <= 20 ms")
    parser.add_argument("--rate", type=float, default=250.0, help="client operations a second")
    parser.add_argument("--pgs", type=int, default=16)
    parser.add_argument("--objects", type=int, default=1600, help="of 1 MiB")
    parser.add_argument("--alone", type=float, default=20.0, help="seconds of clients before the first scrub")
    parser.add_argument("--at-most", type=float, default=1200.0, help="seconds for a backlog")
    parser.add_argument("--only", action="append", help="one of the ways; may be repeated")
    parser.add_argument("--repeats", type=int, default=1)
    runs_file.measure_and_show(parser.parse_args(), measure, table)


if __name__ == "__main__":
    main()
