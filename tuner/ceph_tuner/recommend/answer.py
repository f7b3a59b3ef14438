"""What to do with what was found: the settings to write, their commands in a safe order, the way back, a profile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Collection, Dict, Mapping, Sequence, Tuple

from ceph_tuner.core.ceph.ports import ConfigEntry
from ceph_tuner.core.ceph.target import Place, Target
from ceph_tuner.core.changes.plan import ChangePlan, plan_change, plan_restore
from ceph_tuner.core.changes.step import typed
from ceph_tuner.core.knobs.catalogue import MCLOCK_NINE, PROFILE
from ceph_tuner.core.knobs.releases import Release, Settings, format_version
from ceph_tuner.core.knobs.settings import check_settings, format_settings, notes_on
from ceph_tuner.core.profiles.profile import Profile
from ceph_tuner.core.profiles.translation import to_release_units
from ceph_tuner.core.wording import rounded
from ceph_tuner.recommend import Prediction, Question, changed
from ceph_tuner.recommend.busy_network import busy_network
from ceph_tuner.recommend.busy_processors import busy_processors
from ceph_tuner.recommend.search import SearchedSettings
from ceph_tuner.recommend.turns import told

_LOAD = ("client.iops", "client.read_iops", "client.write_iops", "client.bytes_s")
"""What another cluster is held against before it is given this profile."""


@dataclass(frozen=True)
class Instructions:
    """How to act on a recommendation."""

    target: str
    """The OSDs that it is for."""
    settings: Settings
    """What to write, in the release's own units; empty where nothing is better."""
    commands: Tuple[str, ...]
    undo: Tuple[str, ...]
    notes: Tuple[str, ...]


def answer(search_result: SearchedSettings) -> Instructions:
    """Decide the writes, as `ceph-tuner apply` would on a cluster with nothing but what the description says is set.

    What is in force is taken to be set where it is written: the way back leaves the OSDs of others alone.
    """
    model, question = search_result.question.model, search_result.question
    release, hardware = model.release, model.osd.hardware
    common = (*told(model), *busy_processors(search_result), *busy_network(search_result))
    if not search_result.choice.better:
        return Instructions(question.target, {}, (), (), common)
    settings = changed(search_result.winner.settings, question)
    own = to_release_units(settings, release, hardware)
    settings_text = check_settings(own, release)
    before = to_release_units(dict(question.in_force), release, hardware)
    current = [ConfigEntry(question.target, name, text) for name, text in format_settings(before, release).items()]
    places = [_place_in(question)]
    # where the bandwidth that the description states is set, nobody knows: its entries are left alone
    unknown = [f"osd_mclock_max_sequential_bandwidth_{model.osd.device_class}"]
    plan = plan_change(current, question.target, settings_text, release, places, avoid=unknown)
    whole = {**_nine(search_result.winner.settings, release), **search_result.winner.settings}
    return Instructions(
        question.target,
        settings_text,
        typed(plan.steps),
        way_back(current, plan, places, release, unknown),
        (*common, *notes_on(whole, release), *plan.warnings),
    )


def _place_in(question: Question) -> Place:
    """Where the OSD is that stands for all."""
    target = Target.parse(question.target)
    locations = {target.location_type: target.location} if target.location_type else {}
    return Place(target.osd or 0, target.device_class or question.model.osd.device_class, locations)


def way_back(
    current: Sequence[ConfigEntry],
    plan: ChangePlan,
    places: Sequence[Place],
    release: Release,
    avoid: Collection[str] = (),
) -> Tuple[str, ...]:
    """Commands that take a plan back once it is carried out on what is `current`, in a safe order.

    `avoid` is as in `plan_change`.
    """
    after = {(entry.who, entry.name): entry.value for entry in current}
    for step in plan.steps:
        if step.new is None:
            after.pop(step.key, None)
        else:
            after[step.key] = step.new
    entries = [ConfigEntry(who, name, text) for (who, name), text in after.items()]
    return typed(plan_restore(entries, plan.standing(), places, release, avoid=avoid).steps)


def profile(search_result: SearchedSettings, name: str) -> Profile:
    """Make a profile of the winner, with what was simulated as its evidence."""
    model, release = search_result.question.model, search_result.question.model.release
    winner = search_result.winner
    profile_name = str(winner.settings.get(PROFILE, ""))
    settings = {**_nine(winner.settings, release), **winner.settings}
    writes = set(changed(winner.settings, search_result.question))
    built_in = profile_name in release.profiles and writes <= {PROFILE}
    if not writes & {PROFILE, *MCLOCK_NINE}:
        # the profile in force stays: its nine values are not to be written as custom ones
        settings = {name: value for name, value in settings.items() if name not in MCLOCK_NINE}
    return Profile.make(
        profile_name if built_in else f"recommended-{search_result.question.slo.name}"[:64].rstrip("._-"),
        release,
        {knob: value for knob, value in settings.items() if knob != PROFILE and (not built_in or knob in MCLOCK_NINE)},
        version=format_version(model.version) if model.version is not None else "",
        built_in=built_in,
        description=f"{search_result.choice.reason} (predicted by the twin, not measured)",
        hardware=model.osd.hardware,
        osds=model.osds,
        workload=name,
        slos=(search_result.question.slo.to_dict(),),
        evidence=(evidence(search_result),),
    )


def evidence(search_result: SearchedSettings) -> Dict[str, Any]:
    """What was simulated, and what it gave."""
    winner = search_result.winner
    verdicts = search_result.judge.verdicts(winner.means)
    return {
        "simulated": {
            "settings_tried": len(search_result.tried),
            "runs": search_result.runs,
            "seconds_each": search_result.run_s,
            "seed": search_result.effort.seed,
            "fresh_seeds": len(winner.runs) if search_result.confirmed else 0,
            "osds": search_result.question.model.simulated_osds or search_result.question.model.osds,
        },
        "predicted": {
            metric: _with_interval(winner, metric)
            for metric in search_result.question.slo.metrics
            if metric in winner.means
        },
        "load": {name: rounded(value) for name, value in winner.means.items() if name in _LOAD},
        "before": _means(search_result.before, search_result),
        "built_in": {entry.label: _means(entry, search_result) for entry in search_result.built_in},
        "verdicts": [f"{verdict.objective.text}: {'met' if verdict.met else 'missed'}" for verdict in verdicts],
    }


def _with_interval(prediction: Prediction, metric: str) -> Dict[str, Any]:
    entry: Dict[str, Any] = {"mean": rounded(prediction.means[metric])}
    interval = prediction.interval(metric)
    if interval is not None:
        entry["interval"] = [rounded(end) for end in interval]
    return entry


def _means(prediction: Prediction, search_result: SearchedSettings) -> Dict[str, float]:
    metrics = search_result.question.slo.metrics
    means = prediction.means
    return {metric: rounded(means[metric]) for metric in metrics if metric in means}


def _nine(settings: Mapping[str, object], release: Release) -> Settings:
    return dict(release.profiles.get(str(settings.get(PROFILE, "")), {}))
