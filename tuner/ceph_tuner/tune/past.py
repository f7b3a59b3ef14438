"""What earlier runs left in a cluster's history: a run to go on with, and trials that teach a new one."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.trial import Run, Trial
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.releases import Release, Settings
from ceph_tuner.core.measure.history import History
from ceph_tuner.core.measure.sample import Measure

OLDEST_S = 30 * 86400.0
"""Trials before this are not looked at: clusters and their loads change."""

MOST = 40
"""Of them, the newest: each makes the search slower."""

Lesson = Tuple[Settings, Mapping[str, Measure]]
"""Settings, and what they gave in an earlier run."""

ALIKE = 0.3
"""How much, as a share, an earlier run's windows of the settings in force now may differ from today's."""


@dataclass(frozen=True)
class Heading:
    """What a run is about: only trials of runs that agree in it can be compared."""

    slo: Dict[str, Any]
    target: str
    work: str
    """A lab's scenario; empty for a cluster's own load."""
    knobs: Tuple[str, ...]
    seed: int
    in_force: Settings
    prior: str = ""

    def record(self, run: float, trial: Trial) -> Dict[str, Any]:
        """Give a trial's entry in the history; `run` is when its run began."""
        about = asdict(self)
        return {**trial.to_dict(), "slo": about.pop("slo"), "target": about.pop("target"), "run": run, "about": about}


@dataclass(frozen=True)
class PastRun:
    """A run as the cluster's history keeps it: what it was for, and its trials in their order."""

    began: float
    heading: Heading
    trials: Tuple[Trial, ...]


def past_runs(history: History) -> List[PastRun]:
    """Give the runs that the history remembers, oldest first; entries of other versions are passed over."""
    runs: Dict[float, Tuple[Heading, List[Trial]]] = {}
    for record in history.trials():
        entry = _read(record)
        if entry is not None:
            began, heading, trial = entry
            runs.setdefault(began, (heading, []))[1].append(trial)
    return [PastRun(began, heading, tuple(trials)) for began, (heading, trials) in sorted(runs.items())]


def keep_learnt(history: History, began: float, explanation: Mapping[str, Any], capacity: Sequence[Any]) -> None:
    """Keep what the run that began then has learnt: less of it where it is too much for one value."""
    lengthy = ("partial_dependence", "convergence")
    for count in range(len(lengthy) + 1):
        left_out: Dict[str, Any] = {name: [] for name in lengthy[:count]}
        # what matters is a handful of numbers: it always fits
        with suppress(ValueError):
            history.add_learnt({"run": began, "explanation": {**explanation, **left_out}, "capacity": list(capacity)})
            return


def learnt_of(history: History, began: float) -> Optional[Mapping[str, Any]]:
    """Give what is kept of the run that began then: its `explanation` and `capacity`, as nobody has checked them."""
    # a run that was gone on with has learnt more since
    return next((record for record in reversed(history.learnt()) if record.get("run") == began), None)


def _read(record: Mapping[str, Any]) -> Optional[Tuple[float, Heading, Trial]]:
    """None for what another version wrote: the past is not worth an error."""
    try:
        about = record["about"]
        heading = Heading(
            dict(record["slo"]),
            str(record["target"]),
            str(about["work"]),
            tuple(about["knobs"]),
            int(about["seed"]),
            dict(about["in_force"]),
            str(about["prior"]),
        )
        return float(record["run"]), heading, Trial.from_dict(record)
    except (KeyError, TypeError, ValueError):
        return None


def to_resume(runs: Sequence[PastRun], heading: Heading) -> PastRun:
    """Give the last run on this target, to go on with. Raises InputError where it was about something else."""
    own = [run for run in runs if run.heading.target == heading.target]
    if not own:
        raise InputError("--resume", f"no earlier run on {heading.target} in the cluster's history", "it left out")
    before, now = asdict(own[-1].heading), asdict(heading)
    differences = [name.replace("_", " ") for name in now if before[name] != now[name]]
    if differences:
        raise InputError(
            "--resume",
            f"a last run on {heading.target} that differs in {', '.join(differences)}",
            "the same, or it left out",
        )
    return own[-1]


class PastTrials:
    """Trials of the run that is gone on with, each to be used once in place of a measurement."""

    def __init__(self, trials: Sequence[Trial] = ()) -> None:
        self._left = [trial for trial in trials if trial.run.kind != "check"]

    def of_search(self) -> Optional[Trial]:
        """Give the first that is left of what the search had asked for; None where there is none."""
        return self._take(lambda run: run.kind == "trial" and not run.fewer_changes)

    def of(self, wanted: Run) -> Optional[Trial]:
        """Give the first that is left of this run, by kind, label and settings; None where there is none."""
        return self._take(
            lambda run: (run.kind, run.label, run.settings) == (wanted.kind, wanted.label, wanted.settings)
        )

    def _take(self, fits: Callable[[Run], bool]) -> Optional[Trial]:
        place = next((place for place, trial in enumerate(self._left) if fits(trial.run)), None)
        return None if place is None else self._left.pop(place)


def lessons(
    runs: Sequence[PastRun],
    heading: Heading,
    baseline: Mapping[str, float],
    now: float,
    nearest: Callable[[Settings], Optional[Settings]],
    release: Release,
) -> List[Lesson]:
    """Give what earlier runs with the same knobs and work measured on this target, where they were on a like load.

    They were where they measured the settings that are in force now, and saw much the same as today's baseline.
    """
    metrics = [entry["objective"].split()[0] for entry in heading.slo["objectives"]]
    windows: List[Lesson] = []
    for run in runs:
        same = (run.heading.target, run.heading.work) == (heading.target, heading.work)
        if not same or set(run.heading.knobs) != set(heading.knobs) or now - run.began > OLDEST_S:
            continue
        own = [
            (nearest(written_out(trial.run.settings, release.profiles, run.heading.in_force)), trial.measures)
            for trial in run.trials
            if trial.failed is None or trial.hopeless
        ]
        own_lessons = [(settings, measures) for settings, measures in own if settings is not None]
        again = [measures for settings, measures in own_lessons if settings == nearest(heading.in_force)]
        if again and all(_alike([m[name].mean for m in again if name in m], baseline.get(name)) for name in metrics):
            windows += own_lessons
    return windows[-MOST:]


def written_out(settings: Settings, profiles: Mapping[str, Settings], in_force: Settings) -> Settings:
    """Give values in place of a profile's name, or of nothing for what is in force.

    Beside a built-in profile's name Ceph ignores values of the classes, and no other knob.
    """
    values = profiles.get(str(settings.get(PROFILE)))
    if values is None:
        return dict(settings or in_force)
    return {**{name: value for name, value in settings.items() if name != PROFILE}, **values}


def _alike(values: Sequence[float], now: Optional[float]) -> bool:
    if not values or now is None:
        return False
    mean = sum(values) / len(values)
    return abs(mean - now) <= ALIKE * max(abs(mean), abs(now))
