"""The automatic mode's documents as text."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.core.autopilot.state import OFF
from ceph_tuner.core.moments import stamp

from . import render, render_calendar, render_regimes
from .render import number
from .render_table import folded, table


def modes(document: Mapping[str, Any]) -> str:
    """What every mode does; the whole cluster's is left out where classes have their own and it does nothing."""
    classes = document.get("classes") or {}
    parts = [f"class {name}:\n{automatic(own)}" for name, own in classes.items()]
    if not parts or document["mode"] != OFF or document.get("proposed"):
        parts.insert(0, automatic(document))
    else:
        parts += render.notes(document["notes"])
    book = [line for words in document.get("book") or () for line in folded(words, "  ")]
    policy = render_calendar.in_force(document.get("policy"))
    return "\n".join([*parts, *policy, *render_regimes.held(document.get("regimes") or ()), *book])


def automatic(document: Mapping[str, Any]) -> str:
    """What it does and why, the settings on trial, and what they did so far."""
    lines = [line for words in document["words"] for line in folded(words, "  ")]
    proposed = document.get("proposed")
    if proposed:
        rows = [[name, f"{value}"] for name, value in sorted(proposed["settings"].items())]
        lines.append(f"settings of proposal {proposed['number']}:\n" + table(["OPTION", "VALUE"], rows))
    if document["effects"]:
        lines.append(effects(document["effects"]))
    lines += render.notes(document["notes"])
    if document["problem"]:
        lines += folded(f"problem: {document['problem']}", "  ")
    return "\n".join(lines)


def boost(document: Mapping[str, Any]) -> str:
    """What is boosted, what is left, when it will be done, and the settings."""
    lines = [line for words in document["words"] for line in folded(words, "  ")]
    if document["settings"]:
        rows = [[name, f"{value}"] for name, value in sorted(document["settings"].items())]
        lines.append(table(["OPTION", "VALUE"], rows))
    # of a dry run, which has no problems
    lines += document.get("commands", [])
    lines += render.notes(document["notes"])
    for problem in (document.get("problem"), document.get("turn_problem")):
        lines += folded(f"problem: {problem}", "  ") if problem else []
    return "\n".join(lines)


def effects(rows: Sequence[Mapping[str, Any]]) -> str:
    """Effects with their intervals."""
    cells = [
        [row["metric"], share(row["change"]), f"{share(row['low'])} to {share(row['high'])}", row["verdict"]]
        for row in rows
    ]
    return table(["METRIC", "EFFECT", "INTERVAL", "SO FAR"], cells)


def history(document: Mapping[str, Any]) -> str:
    """The past: windows, changes and trials, and the audit trail."""
    timeline = [render_regimes.timeline(document["timeline"])] if document.get("timeline") else []
    return "\n".join([render.history(document), *timeline, trail(document["trail"])])


def trail(rows: Sequence[Mapping[str, Any]]) -> str:
    """The audit trails, the newest last; what came of an act stands beside it."""
    if not rows:
        return "nothing was done yet"
    acts = {_key(row, row["number"]): row for row in rows if not row["refers"]}
    outcomes: Dict[Tuple[str, int], List[Mapping[str, Any]]] = {}
    cells = []
    for row in rows:
        act = acts.get(_key(row, row["refers"]))
        if act is not None and act["what"] == row["what"]:
            outcomes.setdefault(_key(row, row["refers"]), []).append(row)
    told = {id(row) for ends in outcomes.values() for row in ends}
    for row in rows:
        if id(row) in told:
            continue
        own = [] if row["refers"] else outcomes.get(_key(row, row["number"]), [])
        of = f"of {_numbered(row, row['refers'])}" if row["refers"] else ""
        parts = [of, row["outcome"], *(end["outcome"] for end in own), row["why"], *(end["why"] for end in own)]
        parts += [_effects(each) for each in (row, *own)]
        # an outcome says again why the act was
        words = "; ".join(dict.fromkeys(part for part in parts if part))
        cells.append([_numbered(row, row["number"]), stamp(row["at"]), row["what"], row["who"], words])
    return table(["NUMBER", "AT", "WHAT", "WHO", "WHY, AND WHAT CAME OF IT"], cells)


def _key(row: Mapping[str, Any], number: int) -> Tuple[str, int]:
    return row.get("trail", ""), number


def _numbered(row: Mapping[str, Any], number: int) -> str:
    """`boost 3`: each trail counts for itself."""
    return f"{row.get('trail', '')} {number}".lstrip()


def _effects(row: Mapping[str, Any]) -> str:
    return "; ".join(
        f"{effect['metric']} {share(effect['change'])} ({share(effect['low'])} to {share(effect['high'])})"
        for effect in row["detail"].get("effects", [])
        if effect["change"] is not None
    )


def capacity_report(document: Mapping[str, Any]) -> str:
    """The capacity that mClock reckons with, and what is wrong with it."""
    rows = [
        [f"osd.{row['osd']}", number(row["iops"], "1/s"), row["source"], number(row.get("seen"), "1/s")]
        for row in document["osds"]
    ]
    lines = [table(["OSD", "CAPACITY", "SOURCE", "SEEN AT MOST"], rows)]
    findings = document["findings"] or ["nothing speaks against these capacities"]
    lines += [line for finding in findings for line in folded(finding, "  ")]
    return "\n".join(lines)


def capacity_measured(document: Mapping[str, Any]) -> str:
    """A fresh bench beside what is in force."""
    lines = [
        f"osd.{document['osd']}: {number(document['measured'], '1/s')} measured, "
        f"{number(document['iops'], '1/s')} in force ({document['source']})",
    ]
    if document.get("bandwidth") is not None:
        lines.append(
            f"osd.{document['osd']}: {number(document['bandwidth'], 'B/s')} measured, "
            f"{number(document['bandwidth_in_force'], 'B/s')} in force ({document['bandwidth_source']})"
        )
    lines += [line for finding in document["findings"] for line in folded(finding, "  ")]
    outcome = f"stored as change {document['change']}" if document["change"] else "nothing was changed"
    return "\n".join([*lines, *document["commands"], outcome if document["stored"] else f"{outcome}; --yes stores it"])


def class_measured(document: Mapping[str, Any]) -> str:
    """What some OSDs of a class measured, and the plan to roll it out."""
    rows = [
        [
            f"osd.{row['osd']}",
            number(row["measured"], "1/s"),
            number(row["iops"], "1/s"),
            number(row["bandwidth"], "B/s"),
            number(row["bandwidth_in_force"], "B/s"),
        ]
        for row in document["osds"]
    ]
    lines = [table(["OSD", "MEASURED", "IN FORCE", "BANDWIDTH", "IN FORCE"], rows)]
    lines += [line for reason in document["left_out"] for line in folded(f"left out: {reason}", "  ")]
    words = "Each gets its own IOPS; measure the others one by one."
    if document["alike"]:
        words = f"They stand for {document['of']} OSDs. Set the last line once these have done well for some hours."
    elif document["osds"][0]["bandwidth"] is not None:
        words = "They do not agree, so each gets its own: measure the others one by one."
    outcome = f"stored as changes {', '.join(map(str, document['changes']))}" if document["changes"] else ""
    lines += [*folded(words, "  "), *document["commands"]]
    return "\n".join([*lines, outcome or "nothing was changed; --yes stores it"])


def share(change: Optional[float]) -> str:
    """`-12 %`; a dash for what is not known or has no end."""
    return "-" if change is None else f"{100 * change:+.0f} %"
