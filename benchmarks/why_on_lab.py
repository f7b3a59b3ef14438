"""Whether `ceph-tuner why` names a cause first that was made on a real cluster, and none on a healthy one.

    python benchmarks/why_on_lab.py --cluster why --runs 10
    python benchmarks/why_on_lab.py --render benchmarks/results/why-on-lab.jsonl --page benchmarks/results/why-on-lab.md

Brings up the lab that a cause needs, makes the cause (`made_causes`), looks as the command does, takes it back. A line
for each look: what was made, what was named, with how much of the work each held. `--states` keeps what was seen, as
`gather` would: the tests read it.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import sys
import time
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

import runs_file
from made_causes import HEALTHY, MADE, MadeCause, made

from ceph_lab.bringup import up
from ceph_lab.cluster import Lab
from ceph_lab.teardown import down
from ceph_tuner.cluster import Cluster, open_cluster
from ceph_tuner.core.errors import TunerError
from ceph_tuner.core.why import Cause, examine
from ceph_tuner.core.why.cluster_facts import TwoLooks
from ceph_tuner.gather.recorder import Recorder
from ceph_tuner.gather.state import FIRST_SAMPLE, ClusterState
from ceph_tuner.gather.state_file import write

SECONDS = 10.0
CASES = {**HEALTHY, **MADE}


def look(cluster: Cluster, keep: Optional[Path] = None) -> List[Cause]:
    """The causes that the command names; the answers are kept where asked for."""
    recorder = Recorder(cluster.commander, cluster.clock)
    looks = TwoLooks(recorder, cluster.clock)
    for number in range(2):
        recorder.begin(FIRST_SAMPLE + number)
        looks.look()
        if number == 0:
            looks.wait(SECONDS)
    facts = looks.facts()
    if keep is not None:
        asked = tuple(osd.id for osd in facts.osds)
        keep.parent.mkdir(parents=True, exist_ok=True)
        state = ClusterState(
            cluster.name, cluster.version, facts.at, tuple(recorder.answers), osds=len(asked), asked=asked
        )
        write(keep, replace(state, notes=tuple(recorder.notes)), force=True)
    return examine(facts)


def tried(lab: Lab, name: str, cause: MadeCause, keep: Optional[Path] = None) -> Dict[str, Any]:
    """Make it, look, take it back; one line of the results."""
    begun, load = time.monotonic(), os.getloadavg()[0]
    with closing(open_cluster(lab.name)) as cluster, made(lab, cause):
        causes = look(cluster, keep)
        version = cluster.version
    named = [[each.name, each.work, round(each.held, 3)] for each in causes]
    first = named[0][:2] if named else ["", ""]
    return {
        "made": name,
        "release": lab.release,
        "version": version,
        "named": named,
        "right": first == [cause.name, cause.work],
        "took_s": round(time.monotonic() - begun, 1),
        "load_before": round(load, 1),
    }


def table(lines: Iterable[Dict[str, Any]]) -> str:
    """The page's tables out of the lines."""
    groups: Dict[Tuple[str, str], List[Dict[str, Any]]] = {}
    for line in lines:
        groups.setdefault((line["made"], line["version"]), []).append(line)
    rows = ["| made | Ceph | times | named first | what else was named first |", "| --- | --- | --- | --- | --- |"]
    for (name, version), own in sorted(groups.items()):
        others = sorted({line["named"][0][0] if line["named"] else "nothing" for line in own if not line["right"]})
        right = sum(line["right"] for line in own)
        rows.append(f"| {name} | {version} | {len(own)} | {right} | {', '.join(others)} |")
    return "\n".join(rows)


def attempted(lab: Lab, name: str, keep: Optional[Path]) -> Optional[Dict[str, Any]]:
    """One line, or None where the lab did not get there."""
    try:
        return tried(lab, name, CASES[name], keep)
    except (TunerError, TimeoutError) as fault:
        first = f", after {fault.__context__}" if fault.__context__ else ""
        print(f"{name} could not be made: {fault}{first}", file=sys.stderr, flush=True)
        return None


def lab_of(name: str) -> str:
    """The options of the lab that a case needs, in words."""
    return json.dumps(CASES[name].lab)


def missing(names: Iterable[str], runs: int, there: Sequence[Dict[str, Any]], release: str) -> List[str]:
    """Each case as often as it needs looks to have `runs` of this release, in an order by chance."""
    looked = Counter(line["made"] for line in there if line["release"] == release)
    due = [name for name in names for _ in range(runs - looked[name])]
    random.Random(len(due)).shuffle(due)
    return due


def main() -> int:
    parser = runs_file.lab_parser(__doc__ or "", "why-on-lab.jsonl")
    parser.set_defaults(cluster="why")
    parser.add_argument("--release", default="tentacle")
    parser.add_argument("--runs", type=int, default=10, help="looks at each on this release, with those that are there")
    parser.add_argument("--only", nargs="*", default=[*CASES])
    parser.add_argument("--states", type=Path, help="directory for what was seen")
    given = parser.parse_args()
    for _, alike in itertools.groupby(() if given.render else sorted(given.only, key=lab_of), lab_of):
        names = missing(alike, given.runs, runs_file.lines_of(given.output), given.release)
        if not names or runs_file.over(given):
            continue
        lab = up(given.cluster, {"release": given.release, **CASES[names[0]].lab}, lambda line: None)
        try:
            for name in names:
                keep = (
                    given.states / f"{given.release}-{name}-{time.strftime('%H%M%S')}.tar.zst" if given.states else None
                )
                line = None if runs_file.over(given) else attempted(lab, name, keep)
                if line is not None:
                    runs_file.append(given.output, line)
                    print(json.dumps(line), flush=True)
        finally:
            down(given.cluster, lambda line: None)
    lines = runs_file.lines_of(given.render or given.output)
    runs_file.show(table(lines), given)
    return 0 if all(line["right"] for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
