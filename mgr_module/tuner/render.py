"""Documents as text, in the manner of Ceph's own tables."""

from __future__ import annotations

import time
from typing import Any, Dict, List, Mapping, Optional, Sequence

from ceph_tuner.metrics import METRICS

_LARGE = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def number(value: Optional[float], unit: str = "1") -> str:
    """Two to four digits and the unit; a dash for what is not known."""
    if value is None:
        return "-"
    if unit == "s":
        return _duration(value)
    scale, prefix = next(((scale, prefix) for scale, prefix in _LARGE if abs(value) >= scale), (1.0, ""))
    if unit == "ms":
        scale, prefix = 1.0, ""
    shown = value / scale
    digits = 0 if shown == int(shown) or abs(shown) >= 100 else 1 if abs(shown) >= 10 else 2
    text = f"{shown:.{digits}f}"
    # a blank before the unit, its prefix beside it: 3.4 MB/s, 12 k
    return f"{text} {prefix}{'' if unit == '1' else unit}".rstrip()


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as they must be, two blanks apart."""
    widths = [max(len(row[place]) for row in [head, *rows]) for place in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in [head, *rows]]
    return "\n".join(lines)


def values(found: Mapping[str, float], deviations: Optional[Mapping[str, float]] = None) -> str:
    """Metrics with their values, and their spread where it is known."""
    rows = []
    for name, metric in METRICS.items():
        if name in found:
            spread = "" if deviations is None else f"± {number(deviations[name], metric.unit)}"
            rows.append([name, number(found[name], metric.unit), spread, metric.meaning])
    if deviations is None:
        return table(["METRIC", "VALUE", "MEANING"], [[row[0], row[1], row[3]] for row in rows])
    return table(["METRIC", "MEAN", "SPREAD", "MEANING"], rows)


def window(document: Mapping[str, Any]) -> str:
    """A window's means and deviations."""
    measures = document["measures"]
    return values({name: m[0] for name, m in measures.items()}, {name: m[1] for name, m in measures.items()})


def verdicts(rows: Sequence[Mapping[str, Any]]) -> str:
    """Objectives and whether they hold."""
    if not rows:
        return "no SLO is set (ceph tuner slo set 'client.p95_ms<=80')"
    lines = []
    for row in rows:
        unit = METRICS[row["objective"].split()[0]].unit
        state = {None: "not seen", True: "met", False: "MISSED"}[row["met"]]
        margin = "-" if row["margin"] is None else f"{row['margin'] * 100:+.0f} %"
        kind = "hard" if row["hard"] else "soft"
        lines.append([row["objective"], kind, f"{row['priority']:g}", number(row["seen"], unit), state, margin])
    return table(["OBJECTIVE", "KIND", "PRIORITY", "NOW", "STATE", "MARGIN"], lines)


def status(document: Mapping[str, Any]) -> str:
    """Everything at a glance."""
    sampling = document["sampling"]
    seen = "no sample yet" if sampling["age"] is None else f"last sample {sampling['age']:.0f} s ago"
    lines = [
        f"ceph-tuner {document['version']} on Ceph {document['release']}: {seen} "
        f"(every {sampling['interval']:g} s, took {sampling['tick_ms']:g} ms)",
        "",
        window(document["window"]) if document["window"] else "no rates yet",
        "",
        "PGs: " + (", ".join(f"{count} {state}" for state, count in sorted(document["pg_states"].items())) or "-"),
        "",
        verdicts(document["slo"]),
        "",
        in_force(document["in_force"]),
        "",
        capacity(document["capacity"]),
        "",
        last_trial(document["last_trial"]),
    ]
    lines += [f"note: {note}" for note in document["notes"]]
    return "\n".join(lines)


def in_force(document: Mapping[str, Any]) -> str:
    """The profile, and its nine values as three lines."""
    settings: Dict[str, Any] = document["settings"]
    if not settings:
        return "profile in force: no OSD answers"
    head = f"profile in force: {settings.get('osd_mclock_profile', '?')}"
    if not document["agree"]:
        head += f" (osd.{document['osds'][0]}; others differ)"
    rows = []
    for name in ("client", "background_recovery", "background_best_effort"):
        parts = [settings.get(f"osd_mclock_scheduler_{name}_{part}") for part in ("res", "wgt", "lim")]
        rows.append([name, *["-" if part is None else f"{part:g}" for part in parts]])
    return head + "\n" + table(["CLASS", "RESERVATION", "WEIGHT", "LIMIT"], rows)


def capacity(rows: Sequence[Mapping[str, Any]]) -> str:
    """Capacity in force, OSDs with the same one together."""
    groups: Dict[Any, List[int]] = {}
    for row in rows:
        groups.setdefault((row["iops"], row["source"]), []).append(row["osd"])
    lines = [
        [", ".join(f"osd.{osd}" for osd in osds), f"{iops:g} IOPS", source] for (iops, source), osds in groups.items()
    ]
    return table(["OSDS", "CAPACITY", "SOURCE"], lines)


def last_trial(document: Optional[Mapping[str, Any]]) -> str:
    """One line about the last trial."""
    if document is None:
        return "last trial: none"
    came = f"failed: {document['failed']}" if document["failed"] else f"measured for {document['seconds']:.0f} s"
    return f"last trial: {document['kind']} {document['label']!r} at {_stamp(document['at'])}, {came}"


def slo(document: Optional[Mapping[str, Any]]) -> str:
    """Objectives as they were set."""
    if document is None:
        return "no SLO is set"
    rows = [
        [row["objective"], "hard" if row["hard"] else "soft", f"{row['priority']:g}"] for row in document["objectives"]
    ]
    return f"SLO {document['name']}\n" + table(["OBJECTIVE", "KIND", "PRIORITY"], rows)


def history(document: Mapping[str, Any]) -> str:
    """Windows as lines of the numbers that people ask for first, then trials."""
    columns = ("client.iops", "client.p95_ms", "recovery.bytes_s", "scrub.bytes_s", "snaptrim.objects_s")
    rows = []
    for entry in document["windows"]:
        measures = entry["measures"]
        cells = [number(measures[name][0], METRICS[name].unit) if name in measures else "-" for name in columns]
        rows.append([_stamp(entry["end"]), *cells])
    lines = [table(["UNTIL", *(name.upper() for name in columns)], rows)]
    if document["trials"]:
        trials = [
            [_stamp(t["at"]), t["kind"], t["label"], t["failed"] or "measured", _seen(t["measures"])]
            for t in document["trials"]
        ]
        lines += ["", table(["TRIAL", "KIND", "SETTINGS", "RESULT", "CLIENT P95"], trials)]
    return "\n".join(lines)


def recommendation(document: Mapping[str, Any]) -> str:
    """The proposal, what is known of it, and what to run."""
    proposal = document["proposal"]
    lines = [verdicts(document["slo"]), ""]
    if proposal is None:
        lines.append("the optimiser proposes nothing")
    else:
        settings = sorted(proposal["settings"].items())
        lines += [f"to try next ({proposal.get('why', 'no reason given')}):"]
        lines += [table(["KNOB", "VALUE"], [[name, f"{value}"] for name, value in settings]), ""]
    best = document["best"]
    if best:
        lines += [f"best of {document['trials']} trials so far:", verdicts(best["verdicts"]), ""]
    else:
        lines += [
            "no trial has been measured: the effect of these settings is not known (ceph-tuner tune finds it)",
            "",
        ]
    lines.append(accounting(document["capacity"]))
    if document.get("commands"):
        lines += ["", "to write them: ", *document["commands"]]
    return "\n".join(lines)


def accounting(document: Mapping[str, Any]) -> str:
    """What the capacity is promised to."""
    head = f"capacity of all OSDs: {number(document['total_iops'])} IOPS (source: {', '.join(document['sources'])})"
    rows = []
    for name, share in document["classes"].items():
        limit = "none" if share["limit_iops"] is None else number(share["limit_iops"])
        rows.append([name, number(share["guaranteed_iops"]), limit])
    return head + "\n" + table(["CLASS", "GUARANTEED IOPS", "LIMIT IOPS"], rows)


def _seen(measures: Mapping[str, Sequence[float]]) -> str:
    return number(measures["client.p95_ms"][0], "ms") if "client.p95_ms" in measures else "-"


def _stamp(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at))


def _duration(seconds: float) -> str:
    if seconds >= 9 * 365 * 86400:
        return "never"
    for scale, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= scale:
            return f"{seconds / scale:.1f} {unit}"
    return f"{seconds:.1f} s"
