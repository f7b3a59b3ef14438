"""The part of a recommendation that is beyond live knobs: restarts and moves of data, as a page and for programs."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Tuple

from rich.console import RenderableType
from rich.filesize import decimal
from rich.text import Text

from ceph_tuner.core.knobs.catalogue import KNOBS
from ceph_tuner.core.measure.metrics import METRICS, work_of
from ceph_tuner.core.wording import rounded
from ceph_tuner.recommend import COVERAGE
from ceph_tuner.recommend.paired_effect import PairedEffect
from ceph_tuner.recommend.rebuild import RESTART, RebuildStep
from ceph_tuner.recommend.rebuild_cost import LOG_ENTRY_BYTES, RESTART_S, Cost
from ceph_tuner.recommend.rebuild_plan import Plan, Planned
from ceph_tuner.report.words import percent_change
from ceph_tuner.twin.model import ClusterModel
from ceph_tuner_cli.recommend_page import amount
from ceph_tuner_cli.tables import Columns, columns

TITLE = "Beyond live knobs"


def section(plan: Plan) -> List[RenderableType]:
    """Lay out a plan, or what speaks against one."""
    parts: List[RenderableType] = [Text("")]
    if plan.changes:
        parts.append(Text(f"{TITLE}, as a plan that nobody but you carries out:"))
    else:
        parts.append(Text(f"{TITLE}: nothing that needs a restart or moves data is worth it."))
    for number, entry in enumerate(plan.changes, 1):
        parts += [Text(f"{number}. {_change_name(entry)}"), _effects(entry)]
        parts += [Text(line) for line in _cost(entry)]
    for entry in plan.rejected:
        changes = "; ".join(_change(effect) for effect in entry.effects)
        parts.append(Text(f"Not worth it: {_change_name(entry)}, the best of its kind ({changes})."))
    if any(entry.change.kind == RESTART for entry in plan.changes):
        parts.append(
            Text("Note: the twin knows no limit of the CPU. Restart one OSD with other threads first, and look.")
        )
    return parts


def commands(plan: Plan, target: str) -> List[str]:
    """Lines with the plan's commands for a target's OSDs, to be printed unwrapped."""
    lines: List[str] = []
    for number, entry in enumerate(plan.changes, 1):
        lines += ["", f"{TITLE}, step {number}: {_change_name(entry)}"]
        lines += step_lines(entry.change.steps(entry.before.settings, target))
        undo = entry.change.undo(entry.before.settings, entry.model, target)
        if undo:
            lines += ["To take it back, at the same cost:", *step_lines(undo)]
        else:
            lines += ["It has no way back in steps: the number before is no power of two."]
    return lines


def document(plan: Optional[Plan], target: str) -> Optional[Dict[str, Any]]:
    """For programs; None where nobody looked."""
    if plan is None:
        return None
    return {
        "changes": [_document(entry, target) for entry in plan.changes],
        "not_worth_it": [_document(entry, target) for entry in plan.rejected],
        "tried": plan.tried,
        "runs": plan.runs,
    }


def _change_name(entry: Planned) -> str:
    return f"{'restart all OSDs' if entry.change.kind == RESTART else 'move data'}, {entry.change.label}"


def _effects(entry: Planned) -> Columns:
    table = columns("   metric", "before", "after", f"change ({COVERAGE:.0%} of cases)")
    for effect in entry.effects:
        before, after = (amount(effect.metric, value)[0] for value in (effect.before, effect.after))
        table.add_row(f"   {effect.metric}", before, after, _change(effect, with_name=False), style=_style(effect))
    return table


def _change(effect: PairedEffect, with_name: bool = True) -> str:
    if effect.ratio is None:
        words = f"{amount(effect.metric, effect.before)[0]} to {amount(effect.metric, effect.after)[0]}"
    else:
        mean, low, high = (percent_change(part) for part in effect.ratio)
        words = f"{mean} ({low} to {high})"
    return f"{effect.metric} {words}" if with_name else words


def _style(effect: PairedEffect) -> str:
    """Green and red for what is more than chance."""
    if effect.ratio is None or effect.ratio[1] <= 1 <= effect.ratio[2]:
        return ""
    falls = effect.ratio[2] < 1
    return "green" if falls == METRICS[effect.metric].lower_is_better else "red"


def _cost(entry: Planned) -> List[str]:
    cost = entry.cost
    if cost is None:
        return ["   Cost: not known, it is more than the twin can simulate at once."]
    lines = [f"   Cost: {restart_cost(cost, entry.model) if cost.rounds else _bytes_text(cost)}."]
    meanwhile = _meanwhile(entry, cost)
    if meanwhile:
        lines.append(f"   Meanwhile: {meanwhile}.")
    lines.append(f"   Memory: {_memory(cost)}.")
    return lines


def restart_cost(cost: Cost, model: ClusterModel) -> str:
    """Say what restarting every OSD of that cluster costs."""
    what = "host" if model.hosts else "OSD"
    words = f"{cost.restarts} OSDs restarted, one {what} at a time ({cost.rounds} in all)"
    if cost.round_s is None or cost.time_s is None:
        return f"{words}; under these settings what is written meanwhile would never be recovered"
    least = amount("recovery.finish_s", RESTART_S * cost.rounds)[0]
    if cost.round_s == RESTART_S:
        return f"{words}; {least}"
    return (
        f"{words}; {least}, and {amount('recovery.finish_s', cost.time_s)[0]} where every write of that time "
        "missed another object"
    )


def _bytes_text(cost: Cost) -> str:
    words = f"{cost.moved_share:.0%} of the pool's copies move"
    if cost.moved_bytes is not None:
        words += f", {decimal(round(cost.moved_bytes))}"
    if not cost.rate_bytes_s:
        return f"{words}; under these settings they would never arrive"
    words += f", at {amount('recovery.bytes_s', cost.rate_bytes_s)[0]}"
    if cost.time_s is None:
        return f"{words} (`stored` in the description says how long that takes)"
    return f"{words}: {amount('backfill.finish_s', cost.time_s)[0]}"


def _meanwhile(entry: Planned, cost: Cost) -> str:
    means: Mapping[str, float] = cost.meanwhile.means if cost.meanwhile else {}
    metrics = [effect.metric for effect in entry.effects if work_of(effect.metric) in ("client", "scrub")]
    return ", ".join(f"{metric} {amount(metric, means[metric])[0]}" for metric in metrics if metric in means)


def _memory(cost: Cost) -> str:
    (entries, more), (dups, more_dups) = cost.log_entries, cost.log_dups
    if (entries, dups) == (more, more_dups):
        return f"an OSD's PG logs keep their {entries} entries"
    words = f"an OSD's PG logs go from {entries} to {more} entries and from {dups} to {more_dups} dups"
    return f"{words}, entries of {LOG_ENTRY_BYTES} B or more"


def step_lines(steps: Tuple[RebuildStep, ...]) -> List[str]:
    """Lines to be printed unwrapped: commands are copied."""
    lines = []
    for step in steps:
        indent = ""
        if step.each:
            lines.append(f"  for one {step.each} after the other:")
            indent = "  "
        lines.append(f"  {indent}{step.command}")
        if step.until:
            lines.append(f"  {indent}# wait until {step.until}")
        if step.note:
            lines.append(f"  {indent}# {step.note}")
    return lines


def _document(entry: Planned, target: str) -> Dict[str, Any]:
    return {
        "change": entry.change.label,
        "kind": entry.change.kind,
        "pool": entry.change.pool,
        "knobs": {
            name: {"before": before, "after": after, "unit": KNOBS[name].unit}
            for name, (before, after) in entry.change.values.items()
        },
        "steps": [step_document(step) for step in entry.change.steps(entry.before.settings, target)],
        "undo": [step_document(step) for step in entry.change.undo(entry.before.settings, entry.model, target)],
        "effects": [_effect(effect) for effect in entry.effects],
        "gain": {"mean": rounded(entry.gain[0]), "at_least": rounded(entry.gain[1])},
        "cost": None if entry.cost is None else cost_document(entry.cost),
    }


def step_document(step: RebuildStep) -> Dict[str, str]:
    """For programs."""
    return {"command": step.command, "for_each": step.each, "wait_until": step.until, "note": step.note}


def _effect(effect: PairedEffect) -> Dict[str, Any]:
    ratio = None if effect.ratio is None else [rounded(part) for part in effect.ratio]
    return {
        "metric": effect.metric,
        "before": rounded(effect.before),
        "after": rounded(effect.after),
        "ratio": None if ratio is None else ratio[0],
        "interval": None if ratio is None else ratio[1:],
    }


def cost_document(cost: Cost) -> Dict[str, Any]:
    """For programs."""
    means = cost.meanwhile.means if cost.meanwhile else {}
    return {
        "moved_share": rounded(cost.moved_share),
        "moved_bytes": cost.moved_bytes,
        "rate_bytes_s": cost.rate_bytes_s,
        "osds_restarted": cost.restarts,
        "failure_domains": cost.rounds,
        "seconds_each": cost.round_s,
        "seconds": cost.time_s,
        "log_entries": list(cost.log_entries),
        "log_dups": list(cost.log_dups),
        "memory_bytes": cost.memory_bytes,
        "meanwhile": {name: rounded(value) for name, value in means.items()},
    }
