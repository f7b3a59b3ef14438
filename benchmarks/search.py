"""Holds the search against other optimisers: the same problems, starts, noise and number of trials.

    python benchmarks/search.py --output search.jsonl --table search.md
    python benchmarks/search.py --output search.jsonl --suite constrained --optimiser ours --rerun ours
    python benchmarks/search.py --output benchmarks/results/search.jsonl.gz --render --page benchmarks/results/search.md

Suites: `constrained` is COCO's, a seed being an instance of 9 functions; `sampled`, `disturbed` and `bent` are drawn
functions; `tuning` is scenarios on the twin. `mistaken`, `mistaken-mechanism` and `mistaken-direction` are the same
with a prior that is wrong, for the optimiser that has priors, with it and without. `engineering` and `learner` are kept
aside: run them once for a version, at the end.

Every run is appended to `--output` as one line, and what is there already is not run again, so that a comparison goes
on after it was stopped. `--rerun` drops an optimiser's lines first. Optimisers whose package is not installed get a
row that says so. Prints Markdown tables.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import math
import os
import time
import zlib
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

# before numpy: each run is to have one core, whatever else runs
os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import measured_page
import numpy as np
from search_peers import ALL, NEEDS
from search_problem import Problem
from search_table import MISTAKEN, ROWS, tables

from ceph_tuner.optimise.contract import Settings
from ceph_tuner.processes.process_pool import ProcessPool

Result = Dict[str, Any]
"""One line of the output."""


def constrained(seeds: Iterable[int]) -> Iterable[Problem]:
    from constrained_suite import problems

    return problems(seeds)


def sampled(seeds: Iterable[int]) -> Iterable[Problem]:
    import sampled_suite

    return sampled_suite.sampled(seeds)


def disturbed(seeds: Iterable[int]) -> Iterable[Problem]:
    import sampled_suite

    return sampled_suite.disturbed(seeds)


def bent(seeds: Iterable[int]) -> Iterable[Problem]:
    import sampled_suite

    return sampled_suite.bent(seeds)


def engineering(seeds: Iterable[int]) -> Iterable[Problem]:
    from engineering_suite import problems

    return problems(seeds)


def learner(seeds: Iterable[int]) -> Iterable[Problem]:
    from learner_suite import problems

    return problems(seeds)


def tuning(seeds: Iterable[int]) -> Iterable[Problem]:
    from scenarios import scenarios

    return scenarios(seeds)


def mistaken(seeds: Iterable[int], mistake: str) -> Iterable[Problem]:
    from scenarios import scenarios

    return scenarios(seeds, infeasible=(False,), mistake=mistake)


SUITES: Dict[str, Callable[[Iterable[int]], Iterable[Problem]]] = {
    "constrained": constrained,
    "sampled": sampled,
    "disturbed": disturbed,
    "bent": bent,
    "tuning": tuning,
    **{suite: partial(mistaken, mistake=mistake) for suite, mistake in MISTAKEN.items()},
    "engineering": engineering,
    "learner": learner,
}
KEPT_ASIDE = ("engineering", "learner")
"""Suites that are run where they are named alone: whoever looks at them while developing develops on them."""
SEEDS = {
    "constrained": "1-4", "sampled": "1-30", "disturbed": "1-30", "bent": "1-30", "tuning": "1-30",
    **dict.fromkeys(MISTAKEN, "1-30"), "engineering": "1-3", "learner": "1-19",
}  # fmt: skip


def suits(suite: str, problem: Problem, optimiser: str) -> bool:
    """Whether a run would say anything that no other run says."""
    if suite in MISTAKEN:
        return optimiser in ROWS[suite]
    if optimiser == "designs":
        return bool(problem.designs)
    return WITHOUT[optimiser](problem) if optimiser in WITHOUT else True


def tells_noise(problem: Problem) -> bool:
    """Whether a measurement comes with the standard error of its mean."""
    values = problem.measure(problem.start, np.random.default_rng(0))
    return any(math.isfinite(value.error) for value in values.values())


WITHOUT: Dict[str, Callable[[Problem], bool]] = {
    "ours-no-prior": lambda problem: bool(problem.priors),
    "ours-no-suggestions": lambda problem: bool(problem.designs),
    "ours-no-noise": tells_noise,
}
"""Ours without something -> whether a problem has it."""


class Task(NamedTuple):
    """One optimiser on the problems of one seed."""

    suite: str
    seed: int
    optimiser: str
    finished: Tuple[str, ...]
    """Problems that are not to be run again."""


def judge(suite: str, problem: Problem, optimiser: str) -> Result:
    """One run, with what is true of every trial and of what was recommended."""
    name = problem.name.encode()
    peer = ALL[optimiser](problem, zlib.crc32(name) % 2**31)
    scale = problem.scale[problem.objective]
    objectives: List[float] = []
    violated: List[bool] = []
    unsafe: List[bool] = []
    beyond: List[float] = []
    promised: List[Optional[float]] = []
    seconds: List[float] = []
    for trial in range(problem.budget):
        begin = time.process_time()
        settings = peer.ask()
        asked = time.process_time()
        if settings is None:
            break
        assert trial or settings == problem.start
        # the same noise for every optimiser: drawn from the run and the trial's number alone
        values = problem.measured(settings, trial, zlib.crc32(name))
        measured = time.process_time()
        peer.tell(settings, values)
        seconds.append(asked - begin + time.process_time() - measured)
        objectives.append(problem.truth(settings)[problem.objective] / scale)
        violated.append(problem.violated(settings))
        unsafe.append(problem.unsafe(settings))
        beyond.append(round(problem.beyond(settings), 4))
        promised.append(peer.promised if trial else None)
    recommended: Settings = peer.recommend()
    measured_best = peer.best_measured()
    return {
        "suite": suite,
        "problem": problem.name,
        "optimiser": optimiser,
        "feasible": problem.feasible,
        "budget": problem.budget,
        "first_model_trial": peer.first_model_trial,
        "objectives": objectives,
        "violated": [int(value) for value in violated],
        "unsafe": [int(value) for value in unsafe],
        "beyond": beyond,
        "promised": promised,
        "recommended": problem.truth(recommended)[problem.objective] / scale,
        "recommended_violates": problem.violated(recommended),
        "best_measured": problem.truth(measured_best)[problem.objective] / scale,
        "best_measured_violates": problem.violated(measured_best),
        "verdict": peer.verdict,
        "trust": peer.trust(),
        "cpu_s": [round(value, 3) for value in seconds],
    }


def run(task: Task) -> Iterator[Result]:
    for problem in SUITES[task.suite]([task.seed]):
        if problem.name not in task.finished and suits(task.suite, problem, task.optimiser):
            yield judge(task.suite, problem, task.optimiser)


def run_all(task: Task) -> List[Result]:
    return list(run(task))


def read(path: Path) -> List[Result]:
    """Every run of the file, which may be compressed; a last line that was cut short by a kill is left out."""
    if not path.exists():
        return []
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


def keep(path: Path, results: Iterable[Result]) -> None:
    """Let the file hold these runs and no others; one that does is left alone, as somebody may be appending to it."""
    text = "".join(json.dumps(result) + "\n" for result in results)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        part = path.with_suffix(path.suffix + ".part")
        part.write_text(text, encoding="utf-8")
        part.replace(path)


def seeds(text: str) -> List[int]:
    """`1-4,7` -> [1, 2, 3, 4, 7]."""
    ends = [part.partition("-") for part in text.split(",")]
    return [seed for first, _, last in ends for seed in range(int(first), int(last or first) + 1)]


def missing(optimisers: Iterable[str]) -> Set[str]:
    """Optimisers whose packages are not installed."""
    return {name for name in optimisers if any(importlib.util.find_spec(need) is None for need in NEEDS.get(name, ()))}


def tasks(suites: Sequence[str], chosen: Sequence[int], names: Iterable[str], done: Iterable[Result]) -> List[Task]:
    finished: Dict[Tuple[str, str], List[str]] = {}
    for result in done:
        finished.setdefault((result["suite"], result["optimiser"]), []).append(result["problem"])
    return [
        Task(suite, seed, name, tuple(finished.get((suite, name), ())))
        for suite in suites
        for name in names
        for seed in chosen
    ]


def work(todo: Sequence[Task], processes: int) -> Iterator[Result]:
    if processes == 1:
        for task in todo:
            yield from run(task)
        return
    with ProcessPool(processes) as pool:
        for wait in [pool.start(run_all, task) for task in todo]:
            yield from wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument(
        "--suite", choices=SUITES, action="append", help="may be repeated; by default all that are not kept aside"
    )
    parser.add_argument("--seeds", "--instances", type=seeds, help="such as 1-4; by default the suite's own")
    parser.add_argument("--optimiser", choices=ALL, action="append", help="may be repeated; all by default")
    parser.add_argument("--output", type=Path, required=True, help="JSON lines, appended to")
    parser.add_argument("--rerun", choices=ALL, action="append", default=[], help="run again what is there already")
    parser.add_argument("--beside", type=Path, action="append", default=[], help="another output, for the tables only")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--table", type=Path, help="a Markdown file for the tables")
    parser.add_argument("--render", action="store_true", help="only print the tables of what is there")
    parser.add_argument("--page", type=Path, help="put the tables between the marks of this page as well")
    given = parser.parse_args()
    suites = given.suite or [suite for suite in SUITES if suite not in KEPT_ASIDE]
    absent = missing(ALL)
    done = read(given.output)
    if not given.render:
        fresh = [result for result in done if result["suite"] not in suites or result["optimiser"] not in given.rerun]
        keep(given.output, fresh)
        names = [name for name in given.optimiser or ALL if name not in absent]
        for suite in suites:
            chosen = given.seeds or seeds(SEEDS[suite])
            for result in work(tasks([suite], chosen, names, fresh), given.processes):
                with given.output.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(result) + "\n")
                spent, trials = sum(result["cpu_s"]), len(result["objectives"])
                print(f"{suite} {result['problem']}: {result['optimiser']}, {trials} trials, {spent:.1f} s", flush=True)
        done = read(given.output)
    done += [result for path in given.beside for result in read(path)]
    # what is installed here says nothing of where the runs were made
    text = tables([result for result in done if result["suite"] in suites], () if given.render else absent)
    print(text)
    if given.table:
        given.table.write_text(text + "\n", encoding="utf-8")
    if given.page:
        measured_page.put(text, given.page)


if __name__ == "__main__":
    main()
