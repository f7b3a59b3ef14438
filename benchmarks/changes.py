"""How long a change takes on a large cluster, of which some OSDs hang and some go down meanwhile, and whom it misses.

    python benchmarks/changes.py --osds 10000 --runs 100 --output benchmarks/results/changes.jsonl
    python benchmarks/changes.py --render benchmarks/results/changes.jsonl --page benchmarks/results/changes.md

The applier, the configuration database by commands and the connection's process are the product's own; what answers is
`changes_rados.py`: the twin's monitors, and OSDs that take 6 ms for an answer and 50 ms for a value to take effect.
Each run plans eleven settings, writes them, sees their effect, and takes them back. An OSD is falsely missing where it
is named at any step although it neither hung nor went down. A line of the output is one run; runs that are there
already are not made again.
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
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Set, Tuple
from unittest import mock

import runs_file

from ceph_tuner.cluster.connection import connect
from ceph_tuner.core.changes.osd_poll import Late, OsdPoll
from ceph_tuner.core.errors import TunerError
from ceph_tuner.core.knobs.releases import TENTACLE

_HERE = Path(__file__).resolve()
_PRELUDE = (
    "import json, sys; sys.path[:0] = json.loads({path!r}); import changes_rados; changes_rados.install({given!r});"
)
SETTINGS = {"osd_mclock_profile": "custom", **TENTACLE.profiles["high_client_ops"], "osd_max_scrubs": 1}
BOUND_S = 60.0
STEPS = {"plan_s": "plan", "change_s": "plan, write and check", "back_s": "take back and check"}


def launcher(given: Mapping[str, Any]) -> Any:
    """Runs the connection's program with the stand-in installed before it."""
    path = json.dumps(
        [str(_HERE.parent), *(str(_HERE.parents[1] / folder) for folder in ("tuner", "tests")), *sys.path]
    )

    def launch(command: Sequence[str]) -> List[str]:
        *flags, program, conf, timeout = command[1:]
        prelude = _PRELUDE.format(path=path, given=dict(given))
        return [sys.executable, *flags, f"{prelude}\nexec({program!r})", conf, timeout]

    return launch


@contextmanager
def named_osds() -> Iterator[Set[int]]:
    """OSDs that any check names as late: an entry's note is too short for the names of all."""
    names: Set[int] = set()
    check = OsdPoll.until_right

    def until_right(*arguments: Any, **options: Any) -> Late:
        late = check(*arguments, **options)
        names.update(int(osd) for osd in re.findall(r"osd\.(\d+)", " ".join(late.words)))
        return late

    with mock.patch.object(OsdPoll, "until_right", until_right):
        yield names


def run(given: Mapping[str, Any]) -> Dict[str, Any]:
    """One run, as a line of the output."""
    processors, spent = runs_file.Processors(), time.process_time()
    line: Dict[str, Any] = {"failed": ""}
    with closing(connect("stand-in", launcher(given))) as cluster, named_osds() as names:
        one = cluster.applier()
        began = time.monotonic()
        plan = one.plan("osd", SETTINGS)
        line["plan_s"] = time.monotonic() - began
        try:
            one.apply(plan)
            line["change_s"] = time.monotonic() - began
            back = time.monotonic()
            one.undo()
            line["back_s"] = time.monotonic() - back
        except TunerError as error:
            line["failed"] = str(error)
        told = json.loads(cluster.commander.mon("stand-in", {}))
    return {
        **line,
        "falsely": sorted(names - {*told["hanging"], *told["falling"]}),
        "hanging_named": len(names & set(told["hanging"])),
        "requests": told["most"],
        "memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "processor_s": round(time.process_time() - spent, 2),
        "processors_percent": processors.percent(),
        "date": time.strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "machine": runs_file.machine(),
    }


def measure(arguments: argparse.Namespace) -> None:
    given = {
        "osds": arguments.osds,
        "hang": round(arguments.hang * arguments.osds),
        "down": round(arguments.down * arguments.osds),
        "answer_ms": arguments.answer_ms,
        "effect_ms": arguments.effect_ms,
        "down_after_s": arguments.down_after,
    }
    for seed in range(len(runs_file.lines_of(arguments.output)) + 1, arguments.runs + 1):
        if runs_file.over(arguments):
            return
        line = {"seed": seed, **given, "settings": len(SETTINGS), **run({**given, "seed": seed})}
        runs_file.append(arguments.output, line)
        print(json.dumps(line), file=sys.stderr, flush=True)


def table(lines: Sequence[Mapping[str, Any]]) -> str:
    """The measured part of the results' page."""
    whole = [line for line in lines if not line["failed"]]
    rows = ["| | median | longest | processor time of the program, median |", "| --- | ---: | ---: | ---: |"]
    for name, words in STEPS.items():
        values = [line[name] for line in whole]
        if values:
            rows.append(f"| {words} | {statistics.median(values):.1f} s | {max(values):.1f} s | |")
    spent = [line["processor_s"] for line in whole]
    if spent:
        rows.append(f"| all of a run | | | {statistics.median(spent):.1f} s |")
    falsely = sum(len(line["falsely"]) for line in lines)
    late = sum(line["change_s"] > BOUND_S for line in whole)
    days = sorted({line["date"] for line in lines})
    conditions = [
        f"{osds:,} OSDs of which {hang} hang and {down} go down {after:g} s after the first write, {answer:g} ms an "
        f"answer, {effect:g} ms to take effect, {settings} settings"
        for osds, hang, down, after, answer, effect, settings in _each(lines, _CLUSTER)
    ]
    machines = [f"Python {python}; {machine}." for python, machine in _each(lines, _MACHINE)]
    return "\n".join(
        [
            f"{' to '.join(dict.fromkeys((days[0], days[-1])))}; {'; '.join(conditions)}.",
            *machines,
            "",
            *rows,
            "",
            f"- Runs: {len(lines)}; {len(lines) - len(whole)} of them failed.",
            f"- Runs that planned, wrote and checked for longer than {BOUND_S:g} s: {late}.",
            f"- OSDs falsely missing, all runs together: {falsely}.",
            f"- Of the OSDs that hang, named in each run: {_range([line['hanging_named'] for line in lines])}.",
            f"- Requests under way: {max(line['requests'] for line in lines)} at most.",
            f"- Memory of the program: {max(line['memory_mib'] for line in lines)} MiB at most.",
            "- The machine's processors were busy for "
            f"{_range([round(line['processors_percent']['busy']) for line in lines])}% of the time.",
            *(f"- Run {line['seed']} failed: {line['failed']}" for line in lines if line["failed"]),
        ]
    )


_CLUSTER = ("osds", "hang", "down", "down_after_s", "answer_ms", "effect_ms", "settings")
_MACHINE = ("python", "machine")


def _each(lines: Sequence[Mapping[str, Any]], names: Sequence[str]) -> List[Tuple[Any, ...]]:
    """The different values of these fields, as they came."""
    return list(dict.fromkeys(tuple(line[name] for name in names) for line in lines))


def _range(values: Sequence[int]) -> str:
    return " to ".join(dict.fromkeys((str(min(values)), str(max(values)))))


def main() -> None:
    parser = runs_file.parser(__doc__, "changes.jsonl")
    parser.add_argument("--osds", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--hang", type=float, default=0.01, help="share of the OSDs")
    parser.add_argument("--down", type=float, default=0.01, help="share of the OSDs")
    parser.add_argument("--answer-ms", type=float, default=6.0)
    parser.add_argument("--effect-ms", type=float, default=50.0)
    parser.add_argument("--down-after", type=float, default=0.0, help="seconds after the first write")
    arguments = parser.parse_args()
    runs_file.measure_and_show(arguments, measure, table)


if __name__ == "__main__":
    main()
