"""What the optimiser proposes as text: the proposal, what was learnt, what the capacity is promised to."""

from __future__ import annotations

from typing import Any, List, Mapping, Optional

from .render import number, verdicts
from .render_table import folded, table


def recommendation(document: Mapping[str, Any]) -> str:
    """The proposal, what is known of it, and what to run."""
    proposal = document["proposal"]
    lines = [verdicts(document["slo"]), ""]
    if proposal is None:
        verdict = document.get("verdict") or {}
        lines += folded(f"nothing is proposed: {verdict.get('reason', 'the optimiser does not say why')}", "  ")
    else:
        settings = sorted(proposal["moves"].items())
        lines += folded(f"to try next ({proposal.get('why', 'no reason given')}):", "  ")
        lines += [table(["KNOB", "VALUE"], [[name, f"{value}"] for name, value in settings]), ""]
    best = document["best"]
    if best:
        lines += [f"best of {document['trials']} trials so far:", verdicts(best["verdicts"]), ""]
    else:
        lines += [
            *folded("no trial has been measured: the effect of these settings is not known (ceph-tuner tune finds it)"),
            "",
        ]
    lines += learnt(document.get("explanation"))
    for entry in document.get("elsewhere", []):
        usage = "is suggested" if entry["suggested"] else "is not used"
        lines += folded(f"profile {entry['profile']} {usage}: {entry['reason']}", "  ")
    lines.append(accounting(document["capacity"]))
    if document.get("commands"):
        lines += ["", "to write them: ", *document["commands"]]
    return "\n".join(lines)


def learnt(document: Optional[Mapping[str, Any]]) -> List[str]:
    """Which knobs matter for what, and which objectives are in each other's way; nothing before a few trials."""
    if document is None:
        return []
    rows = [
        [metric, ", ".join(f"{entry['knob']} {entry['share'] * 100:.0f} %" for entry in knobs) or "hardly any knob"]
        for metric, knobs in document["importance"].items()
    ]
    lines = [table(["METRIC", "DEPENDS ON (SHARE OF ITS VARIATION)"], rows)]
    way = document["in_the_way"]
    for conflict in way["conflicts"] if way else ():
        together = "cannot be met together" if len(conflict) > 1 else "is out of reach by itself"
        lines += folded(f"by all that was tried, {' and '.join(conflict)} {together}", "  ")
    if way and way["conflicts"]:
        lines += folded(f"nearest that can be: {', '.join(entry['instead'] for entry in way['nearest'])}", "  ")
    return [*lines, ""]


def accounting(document: Mapping[str, Any]) -> str:
    """What the capacity is promised to."""
    head = f"capacity of all OSDs: {number(document['total_iops'])} IOPS (source: {', '.join(document['sources'])})"
    rows = []
    for name, share in document["classes"].items():
        limit = "none" if share["limit_iops"] is None else number(share["limit_iops"])
        rows.append([name, number(share["guaranteed_iops"]), limit])
    return "\n".join([*folded(head, "  "), table(["CLASS", "GUARANTEED IOPS", "LIMIT IOPS"], rows)])
