"""Whether every shard of every OSD goes by a built-in profile's values, after each way to one, many times.

    ceph-tuner lab up --shards 8 && python benchmarks/shards.py --runs 20

On a real cluster under client load. Ways: `rollback` of a custom profile, a built-in profile applied over a custom one,
and one built-in profile applied over another; each with and without a restart of an OSD in between. A shard that goes
by what stood before has no reservation for clients, or a limit: dmClock's clocks show both (`dump_op_pq_state`).
Ends with 1 where a shard was wrong. What was measured is in shards.jsonl, and is not measured again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import runs_file

from ceph_lab.cluster import Lab
from ceph_lab.loads.background import wait_for
from ceph_lab.loads.small_writes import small_writes
from ceph_tuner.cluster.connection import Cluster, open_cluster
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.changes.applier import Applier
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.releases import nine
from ceph_tuner.core.measure.queue_dump import served_meanwhile

CUSTOM = nine((0, 1, 0.9), (0.2, 1, 0.5), (0.05, 1, 0.4))
"""Clients without a reservation and with a limit, as no built-in profile has them."""
LOOK_S = 1.5
REBUILT_S = 300.0
Step = Callable[[Applier], None]


def applied(settings: Dict[str, object]) -> Step:
    def step(applier: Applier) -> None:
        applier.apply(applier.plan("osd", settings), "shards")

    return step


def taken_back(applier: Applier) -> None:
    applier.undo()


class Way(NamedTuple):
    """How a built-in profile is come to."""

    name: str
    before: Step
    then: Step


WAYS = (
    Way("custom, rollback", applied(dict(CUSTOM)), taken_back),
    Way("custom, then high_client_ops", applied(dict(CUSTOM)), applied({PROFILE: "high_client_ops"})),
    Way(
        "high_recovery_ops, then high_client_ops",
        applied({PROFILE: "high_recovery_ops"}),
        applied({PROFILE: "high_client_ops"}),
    ),
)


def wrong_shards(lab: Lab, cluster: Cluster) -> Dict[bool, int]:
    """How many shards that served clients were right (False) and wrong (True)."""
    looks = served_meanwhile(cluster.commander, lab.osds, SystemClock(), LOOK_S)
    shards = [item for osd in lab.osds for item in looks[osd] if item.service_class == "client"]
    wrong = sum(not item.by_reservation or item.by_limit for item in shards)
    return {False: len(shards) - wrong, True: wrong}


def measure(lab: Lab, cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Go each way, with and without a restart of an OSD, as often as is asked for and not yet in the output."""
    release = str(cluster.version)
    kept = Counter((line["release"], line["way"], line["restart"]) for line in runs_file.lines_of(arguments.output))
    applier = cluster.applier()
    for way in WAYS:
        for restart in (False, True):
            for number in range(kept[release, way.name, restart], arguments.runs):
                if runs_file.over(arguments):
                    return
                shards = run(lab, cluster, applier, way, lab.osds[number % len(lab.osds)] if restart else None)
                line = {"release": release, "way": way.name, "restart": restart, "run": number + 1}
                line.update(right=shards[False], wrong=shards[True], date=time.strftime("%Y-%m-%d", time.gmtime()))
                runs_file.append(arguments.output, line)
                print(line, file=sys.stderr, flush=True)


def run(lab: Lab, cluster: Cluster, applier: Applier, way: Way, restart: Optional[int]) -> Dict[bool, int]:
    """Go one way, by way of a restart of that OSD; how many shards were right and wrong after it."""
    way.before(applier)
    if restart is not None:
        lab.stop_osd(restart)
        lab.start_osd(restart)
        time.sleep(3)
    # not all the time: an OSD reads the logs of its PGs when it starts, and takes minutes where all of them are full
    with small_writes(lab):
        way.then(applier)
        time.sleep(0.5)
        shards = wrong_shards(lab, cluster)
    if applier.undoable(everything=True):
        applier.undo(everything=True)
    if restart is not None:
        wait_for("nothing is degraded", lambda: not degraded(lab), REBUILT_S)
    return shards


def degraded(lab: Lab) -> int:
    """Copies that are missing."""
    (answer,) = lab.mon_commands([{"prefix": "status", "format": "json"}])
    return int(json.loads(answer)["pgmap"].get("degraded_objects", 0))


def table(lines: Sequence[Mapping[str, Any]]) -> str:
    """As Markdown; a run in which no shard served a client says nothing, and is none that was right."""
    rows = ["| Ceph | way | restart between | runs | with every shard right | shards seen | wrong |"]
    rows.append("| --- | --- | --- | ---: | ---: | ---: | ---: |")
    kinds: Dict[Tuple[str, str, bool], List[Mapping[str, Any]]] = {}
    for line in lines:
        kinds.setdefault((line["release"], line["way"], line["restart"]), []).append(line)
    for (release, way, restart), runs in sorted(kinds.items(), key=lambda kind: kind[0]):
        right = sum(not each["wrong"] and each["right"] > 0 for each in runs)
        seen, wrong = sum(each["right"] + each["wrong"] for each in runs), sum(each["wrong"] for each in runs)
        between = "yes" if restart else "no"
        rows.append(f"| {release} | {way} | {between} | {len(runs)} | {right} | {seen} | {wrong} |")
    return "\n".join(rows)


def main() -> int:
    parser = runs_file.lab_parser(__doc__, "shards.jsonl")
    parser.add_argument("--runs", type=int, default=20, help="of each way")
    arguments = parser.parse_args()
    if arguments.render is None:
        lab, cluster = Lab.open(arguments.cluster), open_cluster(arguments.cluster)
        try:
            measure(lab, cluster, arguments)
        finally:
            cluster.close()
    lines = runs_file.lines_of(arguments.render or arguments.output)
    runs_file.show(table(lines), arguments)
    return int(any(line["wrong"] or not line["right"] for line in lines))


if __name__ == "__main__":
    sys.exit(main())
