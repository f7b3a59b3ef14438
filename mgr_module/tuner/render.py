"""Documents as text, in the manner of Ceph's own tables."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping, Optional, Sequence

from ceph_tuner.core.knobs.releases import CLASSES
from ceph_tuner.core.measure.metrics import METRICS
from ceph_tuner.core.moments import duration, stamp

from . import render_calendar
from .render_table import folded as folded
from .render_table import table as table

_NEVER_S = 9 * 365 * 86400.0
_LARGE = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def number(value: Optional[float], unit: str = "1") -> str:
    """Two to four digits and the unit; a dash for what is not known."""
    if value is None:
        return "-"
    if unit == "s":
        return "never" if value >= _NEVER_S else duration(value)
    scale, prefix = next(((scale, prefix) for scale, prefix in _LARGE if abs(value) >= scale), (1.0, ""))
    if unit == "ms":
        scale, prefix = 1.0, ""
    scaled_value = value / scale
    digits = 0 if scaled_value == int(scaled_value) or abs(scaled_value) >= 100 else 1 if abs(scaled_value) >= 10 else 2
    text = f"{scaled_value:.{digits}f}"
    if unit == "1/s":
        return f"{text}{prefix}/s"
    # a blank before the unit, its prefix beside it: 3.4 MB/s, 12 k
    return f"{text} {prefix}{'' if unit == '1' else unit}".rstrip()


def values(document: Mapping[str, float]) -> str:
    """Metrics with their values."""
    rows = [
        [name, number(document[name], metric.unit), metric.meaning]
        for name, metric in METRICS.items()
        if name in document
    ]
    return table(["METRIC", "VALUE", "MEANING"], rows)


def verdicts(rows: Sequence[Mapping[str, Any]]) -> str:
    """Objectives and whether they hold."""
    if not rows:
        return "no SLO is set (ceph tuner slo set 'client.p95_ms<=80')"
    lines = []
    for row in rows:
        # the optimiser's may be about what this version has no name for
        metric = METRICS.get(row["objective"].partition(" ")[0])
        unit = metric.unit if metric is not None else "1"
        state = {None: "not seen", True: "met", False: "MISSED"}[row.get("met")]
        margin = "-" if row.get("margin") is None else f"{row['margin'] * 100:+.0f} %"
        kind = "hard" if row["hard"] else "soft"
        lines.append([row["objective"], kind, f"{row['priority']:g}", number(row.get("seen"), unit), state, margin])
    return table(["OBJECTIVE", "KIND", "PRIORITY", "NOW", "STATE", "MARGIN"], lines)


def _newest_sample(age: Optional[float]) -> str:
    if age is None:
        return "no sample yet"
    if age < -1:
        return f"last sample {-age:.0f} s ahead of the clock, which was set back"
    return f"last sample {max(age, 0.0):.0f} s ago"


def status(document: Mapping[str, Any]) -> str:
    """Everything at a glance."""
    sampling = document["sampling"]
    newest_sample = _newest_sample(sampling["age"])
    states = ", ".join(f"{count} {state}" for state, count in sorted(document["pg_states"].items()))
    lines = [
        *folded(
            f"ceph-tuner {document['version']} on Ceph {document['release']}: {newest_sample} "
            f"(every {sampling['interval']:g} s, took {sampling['tick_ms']:g} ms)",
            "  ",
        ),
        *(_work(document["window"], document.get("newest", {})) if document["window"] else ["no rates yet"]),
        *folded(f"PGs        {states or '-'}", _UNDER),
        *render_calendar.in_force(document.get("policy")),
        verdicts(document["slo"]),
        in_force(document["in_force"]),
        capacity(document["capacity"]),
        *folded(last_trial(document["last_trial"]), "  "),
        *notes(document["notes"]),
    ]
    return "\n".join(lines)


_UNDER = " " * 11
"""Below the first word of a kind of work's line."""


def notes(texts: Sequence[str]) -> List[str]:
    """What is said beside."""
    return [line for note in texts for line in folded(f"note: {note}", "  ")]


def _work(document: Mapping[str, Any], newest: Mapping[str, float]) -> List[str]:
    """A line for each kind of work: rates of the last minute, and what there is by the newest sample."""

    def show(name: str) -> str:
        measure = document["measures"].get(name)
        return number(None if measure is None else measure[0], METRICS[name].unit)

    def count(name: str) -> str:
        # a mean of 0.83 OSDs is none
        measure = document["measures"].get(name)
        value = newest.get(name, None if measure is None else measure[0])
        return number(None if value is None else round(value))

    lines = [
        f"client     {show('client.read_iops')} read, {show('client.write_iops')} written, {show('client.bytes_s')}; "
        f"mean {show('client.mean_ms')}, p50 {show('client.p50_ms')}, p95 {show('client.p95_ms')}, "
        f"p99 {show('client.p99_ms')}",
        f"recovery   {show('recovery.objects_s')} objects, {show('recovery.bytes_s')}; "
        f"{count('recovery.objects_left')} left, done in {show('recovery.finish_s')}",
        f"backfill   {show('backfill.objects_s')} objects; "
        f"{count('backfill.objects_left')} left, done in {show('backfill.finish_s')}",
        f"scrub      {show('scrub.objects_s')} objects, {show('scrub.bytes_s')}; {count('scrub.pgs_late')} PGs late",
        f"snaptrim   {show('snaptrim.objects_s')} clones; {count('snaptrim.queue')} queued, "
        f"drained in {show('snaptrim.drain_s')}",
        f"queues     client {show('queue.client')}, recovery {show('queue.background_recovery')}, "
        f"best effort {show('queue.background_best_effort')} (items per OSD)",
        f"trouble    {count('ops.slow')} slow operations, {count('pgs.inactive')} PGs inactive, "
        f"{count('pgs.laggy')} laggy, {count('osds.down')} OSDs down",
    ]
    return [part for line in lines for part in folded(line, _UNDER)]


def in_force(document: Mapping[str, Any]) -> str:
    """The profile, and its nine values as three lines."""
    settings: Dict[str, Any] = document["settings"]
    if not settings:
        return "profile in force: no OSD answers"
    head = f"profile in force: {settings.get('osd_mclock_profile', '?')}"
    if not document["agree"]:
        head += f" ({document['osds'][0]}; others differ)"
    rows = []
    for name in CLASSES:
        parts = [settings.get(f"osd_mclock_scheduler_{name}_{part}") for part in ("res", "wgt", "lim")]
        rows.append([name, *["-" if part is None else f"{part:g}" for part in parts]])
    return head + "\n" + table(["CLASS", "RESERVATION", "WEIGHT", "LIMIT"], rows)


def capacity(rows: Sequence[Mapping[str, Any]]) -> str:
    """Capacity in force, OSDs with the same one together."""
    groups: Dict[Any, List[int]] = {}
    for row in rows:
        groups.setdefault((row["iops"], row["source"]), []).append(row["osd"])
    lines = [[_osds(osds), f"{iops:g} IOPS", source] for (iops, source), osds in groups.items()]
    return table(["OSDS", "CAPACITY", "SOURCE"], lines)


def _osds(numbers: Sequence[int]) -> str:
    """`osd.0 to osd.7, osd.9`: there may be thousands."""
    runs: List[List[int]] = []
    for osd in sorted(numbers):
        if runs and runs[-1][-1] == osd - 1:
            runs[-1][1:] = [osd]
        else:
            runs.append([osd])
    return ", ".join(" to ".join(f"osd.{end}" for end in run) for run in runs)


def last_trial(document: Optional[Mapping[str, Any]]) -> str:
    """One line about the last trial."""
    if document is None:
        return "last trial: none"
    came = f"failed: {document['failed']}" if document["failed"] else f"measured for {document['seconds']:.0f} s"
    return f"last trial: {document['kind']} {document['label']!r} at {stamp(document['at'])}, {came}"


def slo(document: Optional[Mapping[str, Any]]) -> str:
    """Objectives as they were set, or the week of some that are not set yet."""
    given = document or {}
    if "week" in given:
        lines = [render_calendar.week(given["week"])]
    elif "objectives" in given:
        lines = [f"SLO {given['name']}", render_calendar.objectives(given["objectives"])]
        lines += render_calendar.calendar(given)
    else:
        lines = ["no SLO is set"]
    return "\n".join([*lines, *notes(given.get("notes", ()))])


def history(document: Mapping[str, Any]) -> str:
    """Windows as lines of the numbers that people ask for first, then trials."""
    columns = {
        "client.iops": "CLIENT",
        "client.p95_ms": "P95",
        "recovery.bytes_s": "RECOVERY",
        "scrub.bytes_s": "SCRUB",
        "snaptrim.objects_s": "SNAPTRIM",
    }
    rows = []
    for entry in document["windows"]:
        measures = entry["measures"]
        cells = [number(measures[name][0], METRICS[name].unit) if name in measures else "-" for name in columns]
        rows.append([stamp(entry["end"]), *cells])
    lines = [table(["UNTIL", *columns.values()], rows)]
    if document["changes"]:
        changes = [
            [str(c["change"]), stamp(c["at"]), c["state"], c["target"], _why(c), c["who"]] for c in document["changes"]
        ]
        lines += ["", table(["CHANGE", "AT", "STATE", "TARGET", "WHY", "WHO"], changes)]
        forecasts = [
            [
                str(change["change"]),
                pair["metric"],
                number(pair["predicted"], METRICS[pair["metric"]].unit),
                f"{number(pair['low'], METRICS[pair['metric']].unit)} to "
                f"{number(pair['high'], METRICS[pair['metric']].unit)} ({pair['level']:.0%})",
                number(pair["measured"], METRICS[pair["metric"]].unit),
                "yes" if pair["inside"] else "no",
            ]
            for change in document["changes"]
            for pair in change.get("forecast", ())
        ]
        if forecasts:
            lines += ["", table(["CHANGE", "METRIC", "EXPECTED", "INTERVAL", "MEASURED", "INSIDE"], forecasts)]
    if document["trials"]:
        trials = [
            [stamp(t["at"]), t["kind"], t["label"], t["failed"] or "measured", _spread(t["measures"])]
            for t in document["trials"]
        ]
        lines += ["", table(["TRIAL", "KIND", "SETTINGS", "RESULT", "CLIENT P95"], trials)]
    return "\n".join(lines)


def _why(change: Mapping[str, Any]) -> str:
    """Why it was made, and how that ended."""
    return ": ".join(filter(None, (change["why"], change["note"])))


def document(value: Any) -> str:
    """As it is, for people and for files."""
    return json.dumps(value, indent=2)


def profiles(rows: Sequence[Mapping[str, Any]]) -> str:
    """Profiles at hand; reservation-weight-limit by class."""
    lines = []
    for row in rows:
        mark = "in force" if row["in_force"] else ""
        origin = "built in" if row.get("built_in") else row["release"]
        lines.append([row["name"], *(_shares(row["settings"], name) for name in CLASSES), origin, mark])
    return table(["PROFILE", "CLIENT", "RECOVERY", "BEST EFFORT", "FROM", ""], lines)


def profile(document: Mapping[str, Any]) -> str:
    """One profile's settings."""
    description = f": {document['description']}" if document.get("description") else ""
    head = f"{document['name']}, for {document['release']}{description}"
    rows = [[name, str(value)] for name, value in document["settings"].items()]
    return "\n".join([*folded(head, "  "), table(["KNOB", "VALUE"], rows)])


def imported(document: Mapping[str, Any]) -> str:
    """What was kept, and what changes when it is applied here."""
    head = f"profile {document['name']} is kept; apply it by: ceph tuner profile apply {document['name']}"
    return "\n".join([head, *notes(document["notes"])])


def plan(document: Mapping[str, Any]) -> str:
    """What was or would be written."""
    warnings = notes(document["warnings"])
    if not document["changes"]:
        return "\n".join([f"{document['profile']} is in force on {document['target']}: nothing to write", *warnings])
    rows = [
        [row["who"], row["name"], "-" if row["old"] is None else row["old"], "-" if row["new"] is None else row["new"]]
        for row in document["changes"]
    ]
    lines = [table(["WHO", "OPTION", "OLD", "NEW"], rows), *warnings]
    if document["applied"]:
        return "\n".join([*lines, f"applied as change {document['change']}; back by: ceph tuner rollback --yes"])
    commands = [row["command"] for row in document["changes"]]
    return "\n".join([*lines, "nothing is written without --yes; the commands would be:", *commands])


def rollback(document: Mapping[str, Any]) -> str:
    """What was or would be taken back."""
    lines = []
    for change in document["undone"]:
        lines.append(f"change {change['change']} ({change['why'] or 'no reason given'}) is taken back")
        lines += notes([*change["drift"], *change["unseen"]])
    for change in document["would"]:
        lines.append(f"change {change['change']} ({change['why']}, by {change['who']}) would be taken back by:")
        lines += [*change["commands"], *notes(change["drift"])]
    if document["would"]:
        lines.append("nothing is written without --yes")
    return "\n".join(lines)


def _shares(settings: Mapping[str, Any], service_class: str) -> str:
    parts = [settings.get(f"osd_mclock_scheduler_{service_class}_{part}") for part in ("res", "wgt", "lim")]
    return "-".join("?" if part is None else f"{part:g}" for part in parts)


def _spread(measures: Mapping[str, Sequence[float]]) -> str:
    return number(measures["client.p95_ms"][0], "ms") if "client.p95_ms" in measures else "-"
