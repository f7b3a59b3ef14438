"""`ceph-tuner twin predict`: what settings would do, with intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import typer

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.catalogue import MCLOCK_NINE, PROFILE, knob
from ceph_tuner.core.knobs.releases import Release, Settings, Value
from ceph_tuner.core.knobs.settings import check_settings
from ceph_tuner.core.measure.metrics import METRICS
from ceph_tuner.core.profiles.translation import from_release_units, to_release_units, translate
from ceph_tuner.files import fit_file, profile_file
from ceph_tuner.twin.fit import Fit, described_fit
from ceph_tuner.twin.fit_runs import Runner
from ceph_tuner.twin.forecast import DRAWS, LEVEL, Forecast, forecast
from ceph_tuner.twin.knobs_in_force import completed
from ceph_tuner.twin.model import ClusterModel
from ceph_tuner_cli import complete
from ceph_tuner_cli.description import read_description
from ceph_tuner_cli.render import Format, FormatOption, emit, say, working
from ceph_tuner_cli.tables import Columns, columns
from ceph_tuner_profiles import catalogue


def predict(
    settings: List[str] = typer.Option(
        ...,
        "--settings",
        "-s",
        metavar="SETTINGS",
        help="A profile's file or name, or KNOB=VALUE; may be repeated.",
        autocompletion=complete.settings,
    ),
    fit: Optional[Path] = typer.Option(None, "--fit", help="What `twin fit` saved; its cluster, work and errors."),
    description: Optional[Path] = typer.Option(
        None, "--cluster-file", help="A described cluster; with --fit, its own work under the fit's parameters."
    ),
    scenario: Optional[str] = typer.Option(None, "--scenario", help="Which of the fit's scenarios."),
    seconds: float = typer.Option(25.0, "--window", min=1, max=3600, help="Seconds of the window."),
    settle: float = typer.Option(5.0, "--settle", min=0, max=3600, help="Seconds before it that do not count."),
    draws: int = typer.Option(DRAWS, "--draws", min=4, max=1000, help="Simulations, each with parameters of its own."),
    seed: int = typer.Option(1, "--seed", min=0, max=2**31, help="The same seed gives the same prediction."),
    processes: Optional[int] = typer.Option(None, "--processes", min=1, help="Runs side by side; else one per core."),
    form: Format = FormatOption,
) -> None:
    """Predict what settings would do: each metric with the interval that holds a measured window 9 times in 10."""
    known_fit, model = _fit_and_model(fit, description, scenario)
    name = next((name for name, own in known_fit.models.items() if own is model), None)
    trial_settings = _settings(settings, known_fit.settings, model)
    with working(f"simulating {draws} windows"), Runner(processes) as runner:
        forecasts = forecast(
            model, trial_settings, known_fit.draws(draws, seed), known_fit.discrepancy, runner, seconds, settle, seed
        )
    document: Dict[str, Any] = {
        "settings": dict(trial_settings),
        "scenario": name,
        "level": LEVEL,
        "metrics": {entry.metric: entry.to_dict() for entry in forecasts},
    }
    emit(document, form, lambda: _table(forecasts))
    if form is Format.table and fit is None:
        say(["without --fit the errors are guesses: `ceph-tuner twin fit` learns them from windows of the cluster"])
    elif form is Format.table and any(entry.guessed for entry in forecasts):
        unseen = ", ".join(entry.metric for entry in forecasts if entry.guessed)
        say([f"the fit has seen no window with {unseen}: their errors are guesses"])


def _fit_and_model(
    fit: Optional[Path], description: Optional[Path], scenario: Optional[str]
) -> Tuple[Fit, ClusterModel]:
    twin_description = None if description is None else read_description(description)
    if fit is not None:
        described_by = fit_file.read(fit)
        return described_by, described_by.model(scenario) if twin_description is None else twin_description.model
    if twin_description is None:
        raise InputError("twin predict", "neither --fit nor --cluster-file", "one of them, or both")
    described_by = described_fit({twin_description.name: twin_description.model}, twin_description.settings)
    return described_by, described_by.model(scenario)


def _settings(words: List[str], in_force: Settings, model: ClusterModel) -> Settings:
    """All words together, over what is in force: a profile first, single knobs over it."""
    release = model.release
    pairs = [word for word in words if "=" in word and not Path(word).exists()]
    profiles = [word for word in words if word not in pairs]
    if len(profiles) > 1:
        raise InputError("--settings", " and ".join(profiles), "one profile, and single knobs over it")
    whole: Dict[str, Value] = {name: value for name, value in in_force.items() if name != PROFILE}
    for word in profiles:
        own = _profile(word, release, model)
        if any(name in own for name in MCLOCK_NINE) or PROFILE in own:
            whole = {name: value for name, value in whole.items() if name not in MCLOCK_NINE}
        whole.update(own)
    for pair in pairs:
        name, text = (part.strip() for part in pair.split("=", 1))
        if name == PROFILE and text in release.profiles:
            whole = {key: value for key, value in whole.items() if key not in MCLOCK_NINE}
        whole[name] = knob(name, "--settings").read(text, f"--settings {name}")
    complete = _without_throttle(completed(whole, release))
    # checked in what the release writes, which early releases do not do in fractions
    own_units = to_release_units({PROFILE: "custom", **complete}, release, model.osd.hardware)
    check_settings(own_units, release, lambda *keys: f"--settings {'.'.join(map(str, keys))}")
    return complete


def _profile(word: str, release: Release, model: ClusterModel) -> Settings:
    read = profile_file.read(word) if Path(word).is_file() else catalogue.load(word, release, "--settings")
    settings = dict(translate(read, release, model.osd.hardware).settings)
    built_in = release.profiles.get(str(settings.pop(PROFILE, "")), {})
    return {**built_in, **from_release_units(settings, release, model.osd.hardware)}


def _without_throttle(settings: Settings) -> Settings:
    # the throttle is of the described OSD, not of the settings
    return {name: value for name, value in settings.items() if not name.startswith("bluestore_throttle")}


def _table(forecasts: List[Forecast]) -> Columns:
    table = columns("metric", ">prediction", f">{LEVEL:.0%} interval", "unit")
    for entry in forecasts:
        scale, unit = (1e6, "MB/s") if METRICS[entry.metric].unit == "B/s" else (1.0, METRICS[entry.metric].unit)
        value, low, high = (each / scale for each in (entry.value, entry.low, entry.high))
        table.add_row(entry.metric, f"{value:.3g}", f"{low:.3g} to {high:.3g}", unit + (" *" if entry.guessed else ""))
    return table
