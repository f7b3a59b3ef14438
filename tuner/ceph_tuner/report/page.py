"""Findings as one HTML document: its own style, plots as SVG in it, no script, nothing from elsewhere."""

from __future__ import annotations

from importlib.resources import files
from typing import Any, Dict, List, Mapping, Optional

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ceph_tuner import __version__
from ceph_tuner.core.goals.judge import Verdict
from ceph_tuner.core.knobs.catalogue import KNOBS, PROFILE
from ceph_tuner.core.knobs.releases import Value
from ceph_tuner.core.measure.metrics import METRICS
from ceph_tuner.core.measure.quantity import amount, quantity
from ceph_tuner.core.moments import utc_minute
from ceph_tuner.core.printable import printable
from ceph_tuner.optimise.posterior_summary import Dependence
from ceph_tuner.report import (
    Findings,
    Option,
    plots,
    plots_in_time,
    plots_of_forecasts,
    plots_of_search,
    regimes_in_time,
)
from ceph_tuner.report.words import in_the_way, percent_change, shown, spoken
from ceph_tuner.search.explanation import NOTABLE, notable

MOST_CURVES = 12
"""Plots of one knob each; the other curves are in no plot."""

_HARDLY = 0.02
"""Variation of a metric below which no knob matters for it."""


def _printable(value: Any) -> Any:
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def page(findings: Findings, made_at: float, source: str) -> str:
    """Write the page. `made_at` is seconds since the epoch, `source` where the findings are from."""
    environment = Environment(
        loader=PackageLoader("ceph_tuner.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_printable,
    )
    environment.filters.update(day=utc_minute, percent=_percent, amount=lambda value, metric: quantity(metric, value))
    return environment.get_template("page.html.j2").render(
        found=findings,
        style=Markup(files("ceph_tuner.report").joinpath("page.css").read_text(encoding="utf-8")),  # noqa: S704 - ours
        made_at=made_at,
        source=source,
        version=__version__,
        objectives=_objectives(findings),
        columns=[(option, plots.role_of(option, findings.better)) for option in plots.compared(findings)],
        settings=_settings(findings),
        worths=_worths(findings),
        put_back=[spoken(entry["name"]) for entry in findings.worths if entry["put_back"]],
        in_time=_in_time(findings),
        regimes=_regimes(findings),
        metrics=plots_in_time.metrics_in_time(findings),
        trade_offs=_trade_offs(findings),
        matters=_matters(findings),
        curves=_curves(findings),
        in_the_way=in_the_way(findings.learnt.in_the_way, quantity) if findings.learnt.in_the_way else [],
        progress=Markup(plots_of_search.progress(findings.learnt.progress)) if findings.learnt.progress else None,  # noqa: S704
        capacity=_capacity(findings),
        forecasts=_forecasts(findings),
        plans=[_plan(plan) for plan in findings.plans],
        meanings={name: METRICS[name].meaning for name in findings.metrics},
        spoken=spoken,
    )


def _objectives(findings: Findings) -> List[Dict[str, Any]]:
    """Each objective with a plot, and a cell for each option."""
    if not findings.options or findings.slo is None:
        return []
    columns = plots.compared(findings)
    tables = [findings.verdicts(option) for option in columns]
    return [
        {
            "objective": objective,
            "bound": quantity(objective.metric, tables[0][place].bound) if objective.bound.relative else "",
            "cells": [_cell(table[place], option) for table, option in zip(tables, columns)],
            "plot": _svg(plots.objective(findings, place)) if _drawable(findings, objective.metric) else None,
        }
        for place, objective in enumerate(findings.slo.objectives)
    ]


def _drawable(findings: Findings, metric: str) -> bool:
    return any(metric in option.seen for option in plots.compared(findings))


def _cell(verdict: Verdict, option: Option) -> Dict[str, Any]:
    estimate = option.seen.get(verdict.objective.metric)
    value, ends = amount(verdict.objective.metric, verdict.seen, *((estimate.interval or ()) if estimate else ()))
    return {"value": value, "ends": ends, "met": verdict.met}


def _settings(findings: Findings) -> List[Dict[str, str]]:
    """Knobs that change, before and after."""
    rows = []
    for name in dict.fromkeys([PROFILE, *KNOBS, *findings.after]):
        if name not in findings.after:
            continue
        knob, after = KNOBS.get(name), findings.after[name]
        default = None if knob is None or findings.release is None else knob.default(findings.release)
        before = findings.before.get(name, default)
        if before != after:
            rows.append({"knob": name, "before": _value(name, before), "after": _value(name, after)})
    return rows


def _value(name: str, value: Optional[Value]) -> str:
    entry = KNOBS.get(name)
    if value is None:
        return "not known"
    if entry is None or isinstance(value, str):
        return str(value)
    return "no limit" if name.endswith("_lim") and value == 0 else shown(entry, value)


def _worths(findings: Findings) -> List[Dict[str, Any]]:
    """Knobs that the recommendation moves, with what becomes of each metric without them."""
    return [
        {"knobs": " and ".join(map(spoken, (entry["name"], *entry["beside"]))), "cells": _changes(entry, findings)}
        for entry in findings.worths
        if not entry["put_back"]
    ]


def _changes(entry: Mapping[str, Any], findings: Findings) -> List[Dict[str, str]]:
    by_metric = {effect["metric"]: effect for effect in entry["without"]}
    cells = []
    for metric in findings.metrics:
        effect = by_metric.get(metric, {})
        ratio, ends = effect.get("ratio"), effect.get("interval")
        value = quantity(metric, effect.get("without")) if ratio is None else percent_change(ratio)
        cells.append({"value": value, "ends": " to ".join(map(percent_change, ends)) if ends else ""})
    return cells


def _in_time(findings: Findings) -> List[Dict[str, Any]]:
    metrics = plots_in_time.metrics_in_time(findings)
    parts = []
    for part in plots_in_time.stretches(findings):
        charts = [
            {size: plots_in_time.in_time(findings, part, metric, size) for size in plots_in_time.SIZES}
            for metric in metrics
        ]
        figures = [{size: _svg(text) for size, text in sizes.items() if text} for sizes in charts]
        parts.append({"title": part.title, "figures": [sizes for sizes in figures if sizes]})
    return parts


def _regimes(findings: Findings) -> Optional[Dict[str, Any]]:
    charts = {size: regimes_in_time.draw(findings.spans, size) for size in plots_in_time.SIZES}
    if not all(charts.values()):
        return None
    rows = [
        {"name": name, "times": len(held), "minutes": round(sum(span.end - span.start for span in held) / 60.0)}
        for name, held in regimes_in_time.rows_of(findings.spans).items()
    ]
    return {"rows": rows, **{size: _svg(text) for size, text in charts.items() if text}}


def _trade_offs(findings: Findings) -> List[Dict[str, Any]]:
    return [
        {"one": one, "other": other, "plot": _svg(plots.trade_off(findings, one, other))}
        for one, other in plots.pairs(findings.metrics)
        if sum(one in option.seen and other in option.seen for option in findings.options) > 1
    ]


def _matters(findings: Findings) -> List[Dict[str, Any]]:
    return [
        {
            "metric": entry.metric,
            "knobs": knobs,
            "plot": _svg(plots_of_search.importance(entry)) if knobs and entry.deviation >= _HARDLY else None,
        }
        for entry in findings.learnt.matters
        for knobs in [notable(entry)]
    ]


def _forecasts(findings: Findings) -> List[Dict[str, Any]]:
    """By metric: how often the twin's intervals held, and every pair."""
    return [
        {
            "metric": metric,
            "inside": sum(pair.inside for pair in pairs),
            "pairs": pairs,
            "promised": sum(pair.level for pair in pairs) / len(pairs),
            "plot": _svg(plots_of_forecasts.coverage(metric, pairs)),
        }
        for metric, pairs in plots_of_forecasts.by_metric(findings.forecasts).items()
    ]


def _curves(findings: Findings) -> Dict[str, Any]:
    """Those of the knobs that matter most, as far as there is room."""
    totals = {(entry.metric, one.name): one.total for entry in findings.learnt.matters for one in entry.influences}

    def weight(curve: Dependence) -> float:
        return -totals.get((curve.metric, curve.name), 0.0)

    curves = sorted(findings.learnt.curves, key=weight)[:MOST_CURVES]
    order = [entry.metric for entry in findings.learnt.matters]
    curves.sort(key=lambda curve: (order.index(curve.metric) if curve.metric in order else len(order), weight(curve)))
    return {
        "left_out": len(findings.learnt.curves) - len(curves),
        "least": NOTABLE,
        "plots": [
            {
                "curve": curve,
                "plot": _svg(plots_of_search.dependence(curve, number)),
                "rows": [
                    (_value(curve.name, value), *amount(curve.metric, mean, low, high))
                    for value, mean, low, high in zip(curve.values, curve.mean, curve.low, curve.high)
                ],
            }
            for number, curve in enumerate(curves)
        ],
    }


def _capacity(findings: Findings) -> Optional[Dict[str, Any]]:
    if not findings.capacity:
        return None
    stays = findings.chosen if findings.better else next(iter(findings.options), None)
    verdicts = findings.verdicts(stays) if stays is not None else []
    return {
        # work that nothing bounds needs what it got, and a drive may give more than mClock believes
        "missed": any(verdict.objective.hard and verdict.met is False for verdict in verdicts),
        "plot": _svg(plots.capacity(findings.capacity)),
        "rows": [(plots.class_name(entry.name), entry) for entry in findings.capacity],
        "needed": sum(entry.needed for entry in findings.capacity),
        "starved": [(plots.class_name(entry.name), entry) for entry in findings.capacity if entry.starved],
    }


def _plan(plan: Mapping[str, Any]) -> Dict[str, Any]:
    effects = [effect for effect in plan["effects"] if effect["metric"] in METRICS]
    return {
        "change": plan["change"],
        "kind": plan["kind"],
        "effects": effects,
        "steps": _lines(plan["steps"]),
        "undo": _lines(plan["undo"]),
    }


def _lines(steps: List[Mapping[str, Any]]) -> List[str]:
    """Commands, and in comments what they are to wait for."""
    lines: List[str] = []
    for step in steps:
        lines += [f"# for one {step['for_each']} after the other:"] if step.get("for_each") else []
        lines.append(step["command"])
        lines += [f"# wait until {step['wait_until']}"] if step.get("wait_until") else []
        lines += [f"# {step['note']}"] if step.get("note") else []
    return lines


def _svg(text: str) -> Markup:
    # written by `svg.inline`, which escapes what it was given
    return Markup(text)  # noqa: S704


def _percent(share: float) -> str:
    return f"{share:.0%}"
