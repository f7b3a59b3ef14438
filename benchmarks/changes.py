"""How long a change takes on a large cluster, of which some OSDs hang and some go down meanwhile, and whom it misses.

    python benchmarks/changes.py --osds 10000 --runs 100 --output docs/results/changes.md

The applier, the configuration database by commands and the connection's process are the product's own; what answers is
`changes_rados.py`: the twin's monitors, and OSDs that take 6 ms for an answer and 50 ms for a value to take effect.
Each run plans eleven settings, writes them, sees their effect, and takes them back. An OSD is falsely missing where it
is named although it neither hung nor went down.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import resource
import statistics
import sys
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Dict, List, Sequence

import runs_file
from measured_page import put

from ceph_tuner.clusters.opening import connect
from ceph_tuner.errors import TunerError
from ceph_tuner.releases import TENTACLE

_HERE = Path(__file__).resolve()
_PRELUDE = (
    "import json, sys; sys.path[:0] = json.loads({path!r}); import changes_rados; changes_rados.install({given!r});"
)
SETTINGS = {"osd_mclock_profile": "custom", **TENTACLE.profiles["high_client_ops"], "osd_max_scrubs": 1}
BOUND_S = 60.0


def launcher(given: Dict[str, Any]) -> Any:
    """Runs the connection's program with the stand-in installed before it."""
    path = json.dumps([str(_HERE.parent), str(_HERE.parents[1] / "tuner"), *sys.path])

    def launch(command: Sequence[str]) -> List[str]:
        *flags, program, conf, timeout = command[1:]
        return [sys.executable, *flags, _PRELUDE.format(path=path, given=given) + f"\nexec({program!r})", conf, timeout]

    return launch


def run(given: Dict[str, Any]) -> Dict[str, Any]:
    cluster = connect("stand-in", launcher(given))
    try:
        one = cluster.applier()
        found: Dict[str, Any] = {"failed": ""}
        began = time.monotonic()
        plan = one.plan("osd", SETTINGS)
        found["plan_s"] = time.monotonic() - began
        try:
            entry = one.apply(plan)
            found["change_s"], named = time.monotonic() - began, entry.note if entry else ""
            back = time.monotonic()
            (undone,) = one.undo()
            found["back_s"] = time.monotonic() - back
            named += " ".join(undone.unseen)
        except TunerError as error:
            found["failed"], named = str(error), ""
        told = json.loads(cluster.commander.mon("stand-in", {}))
        odd = {*told["hanging"], *told["falling"]}
        found["falsely"] = sorted({int(osd) for osd in re.findall(r"osd\.(\d+)", named)} - odd)
        return {**found, "most": told["most"]}
    finally:
        cluster.close()


def summary(lines: List[Dict[str, Any]], given: Dict[str, Any]) -> List[str]:
    fine = [line for line in lines if not line["failed"]]
    rows = [["", "median", "longest"]]
    names = (("plan_s", "plan"), ("change_s", "plan, write and check"), ("back_s", "take back and check"))
    for key, words in names:
        values = [line[key] for line in fine]
        if values:
            rows.append([words, f"{statistics.median(values):.1f} s", f"{max(values):.1f} s"])
    head, *body = [f"| {' | '.join(row)} |" for row in rows]
    missing = sum(len(line["falsely"]) for line in fine)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    worst = max(line["most"] for line in lines)
    late = sum(line["change_s"] > BOUND_S for line in fine)
    return [
        f"{given['osds']} OSDs, {given['hang']} hang, {given['down']} go down; {len(lines)} runs, "
        f"{len(lines) - len(fine)} failed, {missing} OSDs falsely missing, {late} runs longer than {BOUND_S:g} s.",
        f"At most {worst} requests under way; {memory} MiB of memory at most in the process that asks.",
        "",
        head,
        "| --- | ---: | ---: |",
        *body,
        *(f"- failed: {line['failed']}" for line in lines if line["failed"]),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--osds", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--hang", type=float, default=0.01)
    parser.add_argument("--down", type=float, default=0.01)
    parser.add_argument("--answer-ms", type=float, default=6.0)
    parser.add_argument("--effect-ms", type=float, default=50.0)
    parser.add_argument("--down-after", type=float, default=0.0, help="seconds after the first write")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    given = {
        "osds": arguments.osds,
        "hang": round(arguments.hang * arguments.osds),
        "down": round(arguments.down * arguments.osds),
        "answer_ms": arguments.answer_ms,
        "effect_ms": arguments.effect_ms,
        "down_after_s": arguments.down_after,
    }
    lines = []
    for seed in range(1, arguments.runs + 1):
        lines.append(run({**given, "seed": seed}))
        print(json.dumps(lines[-1]), file=sys.stderr, flush=True)
    text = summary(lines, given)
    print("\n".join(text))
    if arguments.output:
        date = datetime.now(timezone.utc).strftime("%Y-%m-%d")
        command = f"`python benchmarks/changes.py --osds {arguments.osds} --runs {arguments.runs}`"
        conditions = f"{command}, {date}; Python {platform.python_version()}; {runs_file.machine()}."
        put("\n".join([conditions, "", *text]), arguments.output)


if __name__ == "__main__":
    main()
