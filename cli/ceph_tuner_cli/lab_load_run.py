"""Runs the loads of `ceph-tuner lab load`, and draws what they measured."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Tuple

from ceph_lab.cluster import Lab
from ceph_lab.loads import Load, LoadProgress
from ceph_lab.loads.pools import Tell
from ceph_lab.loads.session import LabSession
from ceph_lab.scenarios import Scenario
from ceph_tuner.core.ceph.uninterrupted import SIGNALS
from ceph_tuner.core.measure.metrics import METRICS
from ceph_tuner.core.measure.sample import Measure
from ceph_tuner_cli.render import Format, emit, say, working
from ceph_tuner_cli.tables import Columns, columns

Make = Callable[[Lab, LabSession, Tell], Load]


@dataclass(frozen=True)
class How:
    """What every load is told: how long, how often, what is left, how it is printed."""

    seconds: float
    settle: float
    repeat: int
    remove: bool
    form: Format


def run_load(load: str, name: str, make: Make, how: How) -> None:
    """Run one load on the named lab."""
    lab = Lab.open(name)

    def assemble(tell: Tell) -> Scenario:
        session = LabSession(lab)
        return Scenario(load, lab, [make(lab, session, tell)], session, tell)

    run_scenario(assemble, lab, how)


def run_scenario(assemble: Callable[[Tell], Scenario], lab: Lab, how: How) -> None:
    """Prepare, run and print; Ctrl-C stops the load first, and a second one does not disturb that."""
    windows = []
    with working(f"lab {lab.name}") as tell, assemble(tell) as scenario:
        try:
            for number in range(how.repeat):
                of = f" ({number + 1} of {how.repeat})" if how.repeat > 1 else ""
                began = time.monotonic()
                shortfalls = scenario.shortfalls(how.settle + how.seconds)
                say(shortfalls if number == 0 else ())
                scenario.prepare()
                prepare_s = time.monotonic() - began

                def on_progress(share: float, progress: Mapping[str, LoadProgress], of: str = of) -> None:
                    words = ", ".join(_words(name, entry) for name, entry in progress.items())
                    tell(f"{scenario.name}{of}: {words}", share, 1.0)

                measures = scenario.run(how.seconds, on_progress, how.settle)
                windows.append(_window(measures, scenario, prepare_s, shortfalls))
        except BaseException:
            _ignore_interrupts()
            say(["stopping the load"])
            raise
        finally:
            scenario.stop()
            if how.remove:
                scenario.cleanup()
        document = {
            "scenario": scenario.name,
            "lab": lab.name,
            "release": lab.release,
            "seconds": how.seconds,
            "windows": windows,
        }
    emit(document, how.form, lambda: _table(windows))


def _words(name: str, progress: LoadProgress) -> str:
    if progress.left_objects is None:
        return f"{name}: {progress.done_objects:.0f} done"
    return f"{name}: {progress.done_objects:.0f} done, {progress.left_objects:.0f} left"


def _window(
    measures: Mapping[str, Measure], scenario: Scenario, prepare_s: float, shortfalls: Tuple[str, ...]
) -> Dict[str, Any]:
    metrics = {
        name: {
            "mean": measure.mean,
            "deviation": measure.deviation,
            "count": measure.count,
            "unit": METRICS[name].unit,
        }
        for name, measure in measures.items()
    }
    evidence = {result.name: dict(result.evidence) for result in scenario.results}
    return {
        "metrics": metrics,
        "prepare_s": prepare_s,
        "before": str(scenario.quiet or ""),
        "remarks": [*shortfalls, *scenario.remarks()],
        "evidence": evidence,
    }


def _table(windows: List[Dict[str, Any]]) -> Columns:
    means = [f">window {number + 1}" for number in range(len(windows))] if len(windows) > 1 else [">mean"]
    remarks = dict.fromkeys(remark for window in windows for remark in window["remarks"])
    table = columns("metric", "unit", *means, ">deviation within", caption="\n".join(remarks))
    names = [name for name in METRICS if any(name in window["metrics"] for window in windows)]
    for name in names:
        entries = [window["metrics"].get(name) for window in windows]
        cells = [f"{entry['mean']:,.1f}" if entry else "" for entry in entries]
        spread = max((entry["deviation"] for entry in entries if entry), default=0.0)
        table.add_row(name, METRICS[name].unit, *cells, f"{spread:,.1f}")
    return table


def _ignore_interrupts() -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
