"""What `ceph-tuner scrub` shows to people: the plan, a drain under way, and how it ended."""

from __future__ import annotations

from datetime import datetime, timezone, tzinfo
from typing import List, Mapping, Optional, Sequence, Tuple

from rich.console import Group, RenderableType
from rich.text import Text

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.measure.quantity import amount, quantity
from ceph_tuner.core.moments import duration, utc_minute
from ceph_tuner.core.wording import first_of
from ceph_tuner.scrub_plan import RateRange, ScrubPg
from ceph_tuner.scrub_plan.drain import DrainOutcome, DrainProgress
from ceph_tuner.scrub_plan.plan import ScrubPlan
from ceph_tuner.scrub_plan.rates import SCRUBBED
from ceph_tuner_cli.tables import Columns, columns

FIRST_PGS, FIRST_OBSTACLE_PGS = 15, 4


def plan_page(plan: ScrubPlan, zone: tzinfo, every: bool) -> RenderableType:
    """The whole plan: the answer first."""
    parts: List[RenderableType] = [Text(line) for line in _headlines(plan)]
    parts += [Text(""), _obstacles(plan), Text(""), _rates(plan, zone)]
    if plan.schedule.scrubs:
        parts += [Text(""), _scrubs(plan, every)]
    if every:
        parts += [Text(""), _hours(plan)]
    parts += [Text(f"note: {note}", "dim") for note in plan.notes]
    return Group(*parts)


def _headlines(scrub_plan: ScrubPlan) -> List[str]:
    view, plan = scrub_plan.view, scrub_plan.schedule
    to_come = sum(1 for scrub in plan.to_be_late if scrub.due_at > view.at)
    lines = [f"{len(scrub_plan.late)} of {len(view.pgs)} PGs are late with their deep scrub; {to_come} more will be."]
    lines += _shallow_lines(scrub_plan)
    first, last = scrub_plan.gone_between
    if scrub_plan.flagged:
        lines.append("nodeep-scrub is set, so nothing is done about it. Dates count from its removal.")
    if plan.gone_at is None:
        end = plan.hours[-1].start + plan.hours[-1].seconds if plan.hours else view.at
        lines.append(f"The backlog is not gone by {utc_minute(end)}, the end of what is planned.")
    elif plan.gone_at <= view.at:
        lines.append("There is no backlog.")
    else:
        lines.append(f"The backlog is gone by {utc_minute(plan.gone_at)}.")
        lines.append(f"By the rates' 90% interval that is between {_moment(first)} and {_moment(last)}.")
    need, there = quantity(SCRUBBED, scrub_plan.needed_bytes_s), quantity(SCRUBBED, scrub_plan.there_bytes_s)
    lines.append(f"Every PG in its interval takes {need}; there are {there} in the mean of the hours.")
    if scrub_plan.needed_bytes_s > scrub_plan.there_bytes_s:
        lines.append("That is not enough for ever: the backlog grows. Longer intervals, or looser objectives, help.")
    lines += [
        f"Objectives{f' ({policy})' if policy else ''}: "
        + (", ".join(scrub_plan.objectives.get(policy, ())) or "none, so nothing but scrubs themselves is a limit")
        for policy in scrub_plan.hours_by_policy
    ]
    if plan.held:
        lines.append(f"{len(plan.held)} PGs wait for what nobody knows the end of, and are left out.")
    return lines


def _shallow_lines(scrub_plan: ScrubPlan) -> List[str]:
    """Nothing where all shallow scrubs are in time: a plan is about deep ones."""
    late, to_come = scrub_plan.shallow_late, scrub_plan.shallow_to_be_late
    if not (late or to_come):
        return []
    pgs = first_of([pg.pgid for pg in (*late, *to_come)], FIRST_OBSTACLE_PGS)
    is_flagged = any(scrub_plan.view.rules.forbids_shallow(pg.pool) for pg in (*late, *to_come))
    begins = "noscrub keeps Ceph from beginning these" if is_flagged else "Ceph begins these itself"
    return [
        f"{len(late)} of {len(scrub_plan.view.pgs)} PGs are late with their shallow scrub; "
        f"{len(to_come)} more will be: {pgs}. {begins}, and a deep scrub does for them."
    ]


def _moment(at: Optional[float]) -> str:
    return "a date that is not within it" if at is None else utc_minute(at)


def _obstacles(plan: ScrubPlan) -> Columns:
    table = columns("stands in the way", "until", "PGs", keep=("until",))
    for obstacle in plan.obstacles:
        pgs = first_of(obstacle.pgs, FIRST_OBSTACLE_PGS)
        until = utc_minute(obstacle.until) if obstacle.until is not None else "unknown" if obstacle.pgs else ""
        table.add_row(obstacle.words, until, pgs)
    return table


def _rates(plan: ScrubPlan, zone: tzinfo) -> Columns:
    name = "UTC" if zone is timezone.utc else str(zone)
    policies = plan.hours_by_policy
    head = ("hours", *(["policy"] if list(policies) != [""] else []))
    table = columns(*head, ">rate", "interval", ">windows", "by", title=f"What the objectives leave for scrub ({name})")
    for policy, hours in policies.items():
        for first, end, rate in _alike(hours, plan.rates.by_policy[policy]):
            table.add_row(f"{first:02d}-{end:02d}", *([policy] if len(head) > 1 else []), *_rate(rate))
    return table


def _alike(hours: Sequence[int], rates: Sequence[RateRange]) -> List[Tuple[int, int, RateRange]]:
    """Hours in a row with the same rate: the first one, and the one after the last."""
    rows: List[Tuple[int, int, RateRange]] = []
    for hour in hours:
        if rows and rows[-1][1] == hour and rows[-1][2] == rates[hour]:
            rows[-1] = (rows[-1][0], hour + 1, rates[hour])
        else:
            rows.append((hour, hour + 1, rates[hour]))
    return rows


def _rate(rate: RateRange) -> List[str]:
    mean, ends = amount(SCRUBBED, rate.mean, rate.low, rate.high)
    return [mean, ends, str(rate.windows) if rate.windows else "", rate.source]


def _scrubs(plan: ScrubPlan, every: bool) -> Columns:
    scrubs = sorted(plan.schedule.scrubs, key=lambda each: (each.start, each.due_at))
    rows = scrubs if every else scrubs[:FIRST_PGS]
    more = len(scrubs) - len(rows)
    table = columns(
        "PG", "pool", "due", "planned", ">late at its end", keep=("PG", "due", "planned"),
        title="Scrubs in their order (UTC)", caption=f"{more} more: --all, or --format json" if more else "",
    )  # fmt: skip
    for scrub in rows:
        due = "no date" if scrub.due_at < 86400 * 3650 else _short(scrub.due_at)
        late = duration(scrub.late_s) if scrub.late_s and scrub.due_at >= 86400 * 3650 else ""
        table.add_row(scrub.pgid, scrub.pool, due, _short(scrub.start), late)
    return table


def _hours(plan: ScrubPlan) -> Columns:
    table = columns("hour (UTC)", ">share", ">planned", "by", title="Each hour's share, and what is planned of it")
    for hour in plan.schedule.hours:
        share, plan_rate = (quantity(SCRUBBED, part / hour.seconds) for part in (hour.share_bytes, hour.planned_bytes))
        table.add_row(_short(hour.start), share, plan_rate, hour.source)
    return table


def _short(at: float) -> str:
    return datetime.fromtimestamp(at, timezone.utc).strftime("%m-%d %H:%M")


def order_page(
    order: Sequence[ScrubPg],
    by: float,
    keeps: str,
    done_by: Optional[float],
    refusals: Sequence[InputError] = (),
) -> RenderableType:
    """What a drain would do."""
    if order:
        lines = [f"{len(order)} PGs are late or due by {utc_minute(by)}. They would be asked for in this order:"]
    else:
        lines = [f"No PG is late, and none is due by {utc_minute(by)}."]
    lines += [f"ceph pg deep-scrub {pg.pgid}" for pg in order[:FIRST_PGS]]
    if len(order) > FIRST_PGS:
        lines.append(f"and {len(order) - FIRST_PGS} more: --format json")
    lines.append(f"It {keeps}.")
    if order:
        lines.append(f"By the rates of `scrub plan` all are {_done_words(done_by, by)}, if it begins now.")
    refused = [f"With --yes it is refused: {each.place}: {each.found}. Use {each.expected}." for each in refusals]
    return Group(*map(Text, lines), *(Text(line, "yellow") for line in refused))


def drain_page(outcome: DrainOutcome) -> RenderableType:
    """How a drain ended."""
    seconds = max(outcome.ended - outcome.began, 1e-9)
    lines = [
        f"{outcome.done} of {outcome.total} PGs are deep-scrubbed, {outcome.reason} at {utc_minute(outcome.ended)}."
    ]
    if outcome.scrubbed_bytes:
        rate = quantity(SCRUBBED, outcome.scrubbed_bytes / seconds)
        lines.append(f"{rate} in the mean of {quantity('scrub.interval_s', seconds)}.")
    if outcome.gone:
        lines.append(f"{outcome.gone} PGs are not there any more.")
    if outcome.windows:
        lines.append(f"Objectives were missed in {outcome.windows_missed} of {outcome.windows} windows.")
    if outcome.left:
        lines.append(f"{len(outcome.left)} PGs are left; the same command goes on with them.")
    return Group(*(Text(line) for line in lines))


def progress_words(progress: DrainProgress, by: float) -> str:
    """One line."""
    pace = "" if progress.at_once is None else f" of {progress.at_once}"
    under_way = progress.running + progress.asked
    line = (
        f"{progress.done} of {progress.total} PGs, {under_way}{pace} at a time, {_done_words(progress.finish_at, by)}"
    )
    if progress.trims_wait:
        line = f"{line}; {_trims_words(progress.trims_wait)}"
    return f"{line}; waits for {progress.waits_for}" if progress.waits_for else line


def _done_words(at: Optional[float], by: float) -> str:
    end = "not within 60 days" if at is None else f"by {utc_minute(at)}"
    return f"done {end}{' (too late)' if at is None or at > by else ''}"


def _trims_words(trims_wait: Mapping[str, Optional[float]]) -> str:
    ends = [end for end in trims_wait.values() if end is not None]
    until = f" until {utc_minute(max(ends))}" if len(ends) == len(trims_wait) else ""
    return f"trimming of {first_of(trims_wait, FIRST_OBSTACLE_PGS)} waits for scrubs{until}"
