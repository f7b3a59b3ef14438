"""Whether every shard of every OSD goes by a built-in profile's values, after each way to one, many times.

    python benchmarks/shards.py --cluster lab --runs 20

On a real cluster under client load. Ways: `rollback` of a custom profile, a built-in profile applied over a custom one,
and one built-in profile applied over another; each with and without a restart of an OSD in between. A shard that goes
by what stood before has no reservation for clients, or a limit: dmClock's clocks show both (`dump_op_pq_state`).
Prints Markdown; ends with 1 where a shard was wrong.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import Callable, Dict, Iterator, List, NamedTuple

from ceph_lab.cluster import Lab
from ceph_tuner.cluster.opening import Cluster, open_cluster
from ceph_tuner.core.changes.applier import Applier
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.releases import nine
from ceph_tuner.doctor.shards import Dump, read_tags, served

CUSTOM = nine((0, 1, 0.9), (0.2, 1, 0.5), (0.05, 1, 0.4))
"""Clients without a reservation and with a limit, as no built-in profile has them."""
LOOK_S = 1.5
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


@contextmanager
def clients(lab: Lab) -> Iterator[None]:
    """Small writes to many PGs, as long as it lasts."""
    command = ["rados", "bench", "-p", "rbd", "86400", "write", "-b", "4096", "-t", "64", "--no-cleanup"]
    with subprocess.Popen(lab.argv(command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as bench:
        try:
            time.sleep(2)
            yield
        finally:
            bench.terminate()


def wrong_shards(lab: Lab, cluster: Cluster) -> Dict[bool, int]:
    """How many shards that served clients were right (False) and wrong (True)."""

    def look(osd: int) -> Dump:
        return read_tags(json.loads(cluster.commander.tell(f"osd.{osd}", "dump_op_pq_state", {})))

    before = {osd: look(osd) for osd in lab.osds}
    time.sleep(LOOK_S)
    found = [item for osd in lab.osds for item in served(before[osd], look(osd)) if item.service_class == "client"]
    wrong = sum(not item.by_reservation or item.by_limit for item in found)
    return {False: len(found) - wrong, True: wrong}


def rows(lab: Lab, cluster: Cluster, runs: int) -> List[str]:
    lines = ["| way | restart between | runs | runs with every shard right | shards seen | wrong |"]
    lines.append("| --- | --- | ---: | ---: | ---: | ---: |")
    applier = cluster.applier()
    for way in WAYS:
        for restart in (False, True):
            right, seen, wrong = 0, 0, 0
            for number in range(runs):
                way.before(applier)
                if restart:
                    osd = lab.osds[number % len(lab.osds)]
                    lab.stop_osd(osd)
                    lab.start_osd(osd)
                    time.sleep(3)
                way.then(applier)
                time.sleep(0.5)
                found = wrong_shards(lab, cluster)
                right += not found[True]
                seen, wrong = seen + sum(found.values()), wrong + found[True]
                applier.undo(everything=True) if applier.undoable(everything=True) else None
                print(f"{way.name}, {restart}, {number}: {found}", file=sys.stderr, flush=True)
            lines.append(f"| {way.name} | {'yes' if restart else 'no'} | {runs} | {right} | {seen} | {wrong} |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cluster", default="lab")
    parser.add_argument("--runs", type=int, default=20)
    arguments = parser.parse_args()
    lab, cluster = Lab.open(arguments.cluster), open_cluster(arguments.cluster)
    try:
        with clients(lab):
            lines = rows(lab, cluster, arguments.runs)
    finally:
        cluster.close()
    print("\n".join([f"Ceph {cluster.version}.", "", *lines]))
    return int(any(not line.endswith("| 0 |") for line in lines[2:]))


if __name__ == "__main__":
    sys.exit(main())
