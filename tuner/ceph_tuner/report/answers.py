"""From the document of a recommendation or a tuning run to findings."""

from __future__ import annotations

import shlex
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.core.bounded import MISREAD
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.slo import Slo, parse_slo
from ceph_tuner.core.goals.trial import Trial
from ceph_tuner.core.knobs.catalogue import MCLOCK_NINE, PROFILE
from ceph_tuner.core.knobs.releases import Release, Settings, release_named
from ceph_tuner.core.measure.metrics import METRICS
from ceph_tuner.files.yaml_document import YamlDocument
from ceph_tuner.optimise.posterior_summary import Dependence, Importance, Influence, TrialProgress
from ceph_tuner.recommend import COVERAGE
from ceph_tuner.recommend.accounts import Account
from ceph_tuner.report import RECOMMENDATION, TUNING, Findings, Learnt, MetricEstimate, Option, answer_file, unknown
from ceph_tuner.report.commands import all_rewritten, rewritten
from ceph_tuner.report.trial_options import custom, headline, measured_options
from ceph_tuner.search.explanation import InTheWay, KeepableBound
from ceph_tuner.twin.knobs_in_force import completed


def read_answer(name: str) -> Findings:
    """Read a file, or standard input for `-`. Raises InputError that names the place."""
    return findings_of(answer_file.load(name))


def findings_of(document: YamlDocument) -> Findings:
    """Take a checked document apart. Raises InputError where its parts do not fit together."""
    try:
        return _recommendation(document) if "recommended" in document.data else _tuning(document)
    except MISREAD as error:
        words = f"{type(error).__name__}: {error}"
        raise InputError(document.place(), words[:200], answer_file.EXPECTED) from error


def _recommendation(document: YamlDocument) -> Findings:
    data: Mapping[str, Any] = document.data
    slo = parse_slo(data["slo"], place=lambda *keys: document.place("slo", *keys))
    release = release_named(data["release"], document.place("release"))
    choice = data["recommended"]
    options = tuple(
        Option(
            entry["label"],
            _estimates(entry),
            int(entry["runs"]),
            in_force=place == 0,
            built_in=entry["label"] in release.profiles,
            chosen=entry["label"] == choice["winner"],
        )
        for place, entry in enumerate(data["predictions"])
    )
    if not any(option.chosen for option in options):
        winner = f"the winner {choice['winner']!r}, which no prediction is of"
        raise InputError(document.place("recommended", "winner"), winner, "one of the predictions' labels")
    before, after = (_settings_of(data, label, release) for label in (options[0].label, choice["winner"]))
    hard_missed = [
        entry["objective"] for entry in choice.get("verdicts", []) if entry.get("hard") and not entry.get("met")
    ]
    lead = "" if data.get("confirmed", True) else "Interrupted, and not yet run on fresh seeds. "
    return Findings(
        RECOMMENDATION,
        data["cluster"],
        lead + headline(choice["winner"], choice["better"], choice["reason"], hard_missed),
        slo,
        release,
        options[0].means,
        options,
        f"where {COVERAGE:.0%} of clusters like the description fall, by runs that differ by chance",
        better=choice["better"],
        tried=tuple(_named_metrics(entry["means"]) for entry in data.get("tried", [])),
        before={**before, **data.get("in_force", {}).get("settings", {})},
        after=after if choice["better"] else {},
        capacity=_capacity(data),
        learnt=_learnt(document, slo),
        commands=_commands(document, "commands"),
        undo=_commands(document, "undo"),
        plans=_plans(document),
        worths=tuple(data.get("knobs", [])),
        notes=(*data.get("notes", []), *_elsewhere(data), *_not_worth_it(data)),
        evidence=_simulations(data),
        unknown=unknown.of_recommendation(data, slo),
    )


def _tuning(document: YamlDocument) -> Findings:
    data: Mapping[str, Any] = document.data
    slo = parse_slo(data["slo"], place=lambda *keys: document.place("slo", *keys))
    release = release_named(data["release"], document.place("release")) if "release" in data else None
    choice, trials = data["winner"], tuple(Trial.from_dict(entry) for entry in data["trials"])
    options, noise = measured_options(trials, choice["winner"])
    misses = [entry["objective"] for entry in choice.get("verdicts", []) if entry.get("hard") and not entry.get("met")]
    withdrawn = data.get("withdrawn", "")
    words = headline(choice["winner"], choice["better"], choice["reason"], misses)
    return Findings(
        TUNING,
        data["cluster"],
        words + (f" Taken back again: {withdrawn}." if withdrawn else ""),
        slo,
        release,
        _named_metrics(data["baseline"]),
        options,
        noise,
        better=choice["better"],
        before=_nine_of(data.get("before", {}), release),
        after=custom(choice.get("moves", choice.get("settings", {}))) if choice["better"] else {},
        trials=trials,
        capacity=_capacity(data),
        learnt=_learnt(document, slo),
        commands=_commands(document, "commands"),
        undo=(shlex.join(["ceph-tuner", "rollback", "--cluster", data["cluster"]]),)
        if data["written"]
        else _commands(document, "undo"),
        written=data["written"],
        notes=(*_why_it_ended(data["search"]), *_elsewhere(data)),
        evidence=(f"{len(trials)} measurements on {data['cluster']}, target {data.get('target', 'osd')}.",),
        unknown=unknown.of_trials(trials, data["search"]),
    )


def _estimates(entry: Mapping[str, Any]) -> Dict[str, MetricEstimate]:
    intervals = entry.get("intervals", {})
    estimates = {}
    for name, mean in _named_metrics(entry["means"]).items():
        ends = intervals.get(name)
        estimates[name] = MetricEstimate(mean, None if ends is None else (max(0.0, min(ends)), max(ends)))
    return estimates


def _named_metrics(means: Mapping[str, float]) -> Dict[str, float]:
    """Without what this version has no name for."""
    return {name: float(value) for name, value in means.items() if name in METRICS}


def _settings_of(data: Mapping[str, Any], label: str, release: Release) -> Settings:
    """The nine values written out, and the profile that they are of."""
    settings = next(entry["settings"] for entry in data["predictions"] if entry["label"] == label)
    return {PROFILE: str(settings.get(PROFILE, "custom")), **completed(settings, release)}


def _nine_of(before: Mapping[str, Any], release: Optional[Release]) -> Settings:
    settings: Settings = dict(before.get("settings", {}))
    profile = before.get("profile")
    if release is not None and not all(name in settings for name in MCLOCK_NINE):
        settings = {**completed({PROFILE: profile} if profile else {}, release), **settings}
    return {PROFILE: profile or "custom", **settings}


def kept_learnt(record: Optional[Mapping[str, Any]], slo: Slo) -> Optional[Tuple[Learnt, Tuple[Account, ...]]]:
    """What a run had learnt, as a cluster keeps it; None where it keeps nothing that this version can read."""
    if record is None:
        return None
    try:
        document = answer_file.parse_learnt(record, "the cluster's history")
        return _learnt(document, slo), _capacity(document.data)
    except (InputError, *MISREAD):
        # of another version: the past is not worth an error
        return None


def _capacity(data: Mapping[str, Any]) -> Tuple[Account, ...]:
    names = Account.__dataclass_fields__
    return tuple(Account(**{name: entry[name] for name in names}) for entry in data.get("capacity", []))


def _learnt(document: YamlDocument, slo: Slo) -> Learnt:
    explanation = document.data.get("explanation")
    if explanation is None:
        return Learnt()
    matters = tuple(
        Importance(metric, entry["deviation"], tuple(_influence(knob) for knob in entry["knobs"]))
        for metric, entry in explanation["importance"].items()
        if metric in METRICS
    )
    curves = tuple(
        _curve(document, entry) for entry in explanation.get("partial_dependence", []) if entry["metric"] in METRICS
    )
    progress = tuple(
        TrialProgress(
            int(entry["number"]),
            float(entry["mean"]),
            float(entry["low"]),
            float(entry["high"]),
            float(entry["feasible"]),
            bool(entry.get("safe", True)),
            entry.get("failed"),
            bool(entry.get("old", False)),
            entry.get("best"),
        )
        for entry in explanation.get("convergence", [])
    )
    return Learnt(
        matters,
        explanation.get("around") is not None,
        curves,
        progress,
        _in_the_way(explanation.get("in_the_way"), slo),
    )


def _influence(entry: Mapping[str, Any]) -> Influence:
    ends = [(float(entry[name][0]), float(entry[name][1])) for name in ("first_interval", "total_interval")]
    return Influence(entry["name"], float(entry["first"]), float(entry["total"]), *ends)


def _curve(document: YamlDocument, entry: Mapping[str, Any]) -> Dependence:
    columns: List[Tuple[Any, ...]] = [tuple(entry[name]) for name in ("values", "mean", "low", "high")]
    if len({len(column) for column in columns}) != 1 or not columns[0]:
        lengths = f"{', '.join(str(len(column)) for column in columns)} values, means and ends for {entry['name']}"
        raise InputError(document.place("explanation", "partial_dependence"), lengths, "as many of each, at least one")
    return Dependence(entry["metric"], entry["name"], *columns)


def _in_the_way(explanation: Optional[Mapping[str, Any]], slo: Slo) -> Optional[InTheWay]:
    if explanation is None:
        return None
    by_text = {objective.text: objective for objective in slo.objectives}
    return InTheWay(
        float(explanation["together"]),
        tuple(tuple(by_text[text] for text in conflict) for conflict in explanation["conflicts"]),
        tuple((by_text[text], float(probability)) for text, probability in explanation["without"].items()),
        tuple(
            KeepableBound(by_text[bound["objective"]], float(bound["bound"]), float(bound["share"]))
            for bound in explanation["nearest"]
        ),
        dict(explanation["settings"]),
        float(explanation["probability"]),
    )


def _commands(document: YamlDocument, key: str) -> Tuple[str, ...]:
    return all_rewritten(document.data.get(key, []), lambda number: document.place(key, number))


def _plans(document: YamlDocument) -> Tuple[Mapping[str, Any], ...]:
    changes: Sequence[Mapping[str, Any]] = (document.data.get("beyond_live_knobs") or {}).get("changes", [])
    return tuple(
        {**change, **{key: _steps(document, place, key, change[key]) for key in ("steps", "undo")}}
        for place, change in enumerate(changes)
    )


def _steps(
    document: YamlDocument, change: int, key: str, steps: Sequence[Mapping[str, Any]]
) -> List[Mapping[str, Any]]:
    place = ("beyond_live_knobs", "changes", change, key)
    return [
        {**step, "command": rewritten(step["command"], document.place(*place, number))}
        for number, step in enumerate(steps)
    ]


def _elsewhere(data: Mapping[str, Any]) -> List[str]:
    verdict = {True: "is used", False: "is not used"}
    return [
        f"Profile {entry['profile']} of another cluster {verdict[entry['suggested']]}: {entry['reason']}"
        for entry in data.get("elsewhere", [])
    ]


def _not_worth_it(data: Mapping[str, Any]) -> List[str]:
    plan = data.get("beyond_live_knobs")
    return ["Nothing that needs a restart or moves data is worth it"] if plan and not plan["changes"] else []


def _simulations(data: Mapping[str, Any]) -> Tuple[str, ...]:
    own = data.get("evidence", {}).get("simulated", {})
    if not own:
        return ()
    return (
        f"{own.get('runs', 0):g} simulations of {own.get('seconds_each', 0):g} s with {own.get('osds', 0):g} OSDs, "
        f"{own.get('settings_tried', 0):g} settings of {len(data.get('searched', []))} knobs, "
        f"seed {own.get('seed', 0):g}.",
    )


def _why_it_ended(search: Mapping[str, Any]) -> List[str]:
    lines = [f"The search ended ({search['state']}): {search['reason']}"]
    return lines + [f"In the way: {words}" for words in search.get("at_fault", [])]
