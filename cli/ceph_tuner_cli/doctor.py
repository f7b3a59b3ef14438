"""`ceph-tuner doctor`: what would make tuning pointless or wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ceph_tuner.core.ceph.target import reach
from ceph_tuner.core.checks import NotJudged, not_judged, unjudged_words
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.measure.stale_shards import CURE
from ceph_tuner.doctor import POINTLESS, Facts, Finding, examine, examine_host, gather, read_host
from ceph_tuner.doctor.examination import CHECKS, DECISIVE, HOST_CHECKS
from ceph_tuner.doctor.finding import by_cost
from ceph_tuner_cli.cluster_option import (
    AnyClusterOption,
    TargetOption,
    YesOption,
    at_work,
    preview,
    say_undone,
    show_commands,
    step_documents,
    step_table,
)
from ceph_tuner_cli.from_option import FromOption, cluster_or_state
from ceph_tuner_cli.prefix_option import open_cluster
from ceph_tuner_cli.render import Format, FormatOption, emit, say, show_lines, working

LEAST_SHOWN = 0.005
"""A smaller share is written as none."""

_STYLES = {"pointless": "bold red", "misleading": "yellow", "costly": "cyan"}


def doctor(
    cluster: Optional[str] = AnyClusterOption,
    host: bool = typer.Option(False, "--host", help="Look at this machine, a host of OSDs, as well or alone."),
    tree: Path = typer.Option(Path("/"), "--tree", help="Where /proc, /sys and /dev of the host are found."),
    state: Optional[Path] = FromOption,
    cure: Optional[str] = typer.Option(
        None, "--cure", metavar="CHECK", help=f"Cure one finding: {CURE}. Shows the commands; --yes runs them."
    ),
    target: str = TargetOption,
    yes: bool = YesOption,
    form: Format = FormatOption,
) -> int:
    """Look for what would make tuning pointless or wrong. Exit code 1: tuning would be pointless, or may be.

    It may be where a check that can tell did not see what it needs.

    It changes nothing, except by --cure with --yes.
    """
    if cure is not None:
        if state is not None:
            raise InputError("--cure", "--from beside it", "a live cluster (--cluster)")
        return _cure(cluster, cure, target, yes, form)
    if cluster is None and state is None and not host:
        raise InputError("doctor", "neither --cluster nor --from nor --host", "one of them, or --host beside another")
    findings: List[Finding] = []
    unjudged: List[NotJudged] = []
    notes: List[str] = []
    document: Dict[str, Any] = {}
    if cluster is not None or state is not None:
        facts, about, findings, unjudged = _look(cluster, state)
        notes += facts.notes
        document.update(**about, release=facts.release.name, osds=len(facts.osds), asked=len(facts.looked_at))
    if host:
        host_facts = read_host(tree)
        findings += examine_host(host_facts)
        unjudged += not_judged(HOST_CHECKS, host_facts, host_facts.unseen)
        notes += host_facts.notes
        document["host"] = str(tree)
    findings = by_cost(findings)
    checks = [*(CHECKS if cluster or state else ()), *(HOST_CHECKS if host else ())]
    document.update(
        checks=checks,
        not_judged=[{"check": name, "unseen": list(parts)} for name, parts in unjudged],
        findings=[finding.to_dict() for finding in findings],
        notes=notes,
    )
    emit(document, form, lambda: _page(findings, checks, unjudged))
    if form is Format.table:
        _say_commands(findings)
    say([f"note: {note}" for note in notes])
    pointless = any(finding.severity == POINTLESS for finding in findings)
    return 1 if pointless or any(check.name in DECISIVE for check in unjudged) else 0


def _cure(cluster: Optional[str], cure: str, target: str, yes: bool, form: Format) -> int:
    """Make every shard read its values again."""
    if cure != CURE:
        raise InputError("--cure", repr(cure), CURE)
    if cluster is None:
        raise InputError("doctor --cure", "no --cluster", "the cluster to cure")
    with at_work(cluster, "curing, until the OSDs show it" if yes else f"reading what {target} has") as connection:
        applier = connection.applier()
        if yes:
            say_undone(applier.recover())
        plan = applier.plan_rereading(target)
        if yes and plan.steps:
            applier.apply(plan, f"doctor --cure {cure}")
    document = {"cluster": cluster, "target": plan.target, "osds": list(plan.osds), "written": yes}
    emit({**document, "steps": step_documents(plan.steps)}, form, lambda: step_table(plan.steps))
    if form is Format.table:
        show_commands(plan.commands)
    say([f"every shard of {reach(plan.places)} has read its values again" if yes else preview(plan.places)])
    return 0


def _look(
    cluster: Optional[str], state: Optional[Path]
) -> Tuple[Facts, Dict[str, Any], List[Finding], List[NotJudged]]:
    """Gather the facts, with a line that moves for as long as it takes; of which cluster and when they are; results.

    All of it while the file is open: what its answers lead to is the file's fault.
    """
    with (
        working(f"{cluster or state}: looking") as tell,
        cluster_or_state(cluster, state, lambda name: open_cluster(name)) as connection,
    ):
        about = {"cluster": cluster} if state is None else {"cluster": connection.name, "as_of": connection.clock.now()}
        facts = gather(
            connection.commander,
            connection.clock,
            connection.release,
            connection.version,
            lambda what, done, total: tell(f"looking at {what}", done, total if total > 1 else None),
        )
        return facts, about, examine(facts), not_judged(CHECKS, facts, facts.unseen)


def _page(findings: Sequence[Finding], checks: Sequence[str], unjudged: Sequence[NotJudged]) -> RenderableType:
    count = len(findings)
    judged = f"{len(checks) - len(unjudged)} of {len(checks)} checks" if unjudged else f"{len(checks)} checks"
    rest = f"; {unjudged_words(unjudged)}" if unjudged else "."
    if not count:
        return Text(f"Nothing found by {judged}{rest}")
    lead = f"{count} finding{'s' * (count != 1)} by {judged}, the dearest first{rest}"
    parts: List[RenderableType] = [Text(lead)]
    for number, finding in enumerate(findings, 1):
        head = Text(f"{number}. ")
        head.append(finding.severity, _STYLES[finding.severity])
        if finding.share is not None and finding.share >= LEAST_SHOWN:
            head.append(f", {finding.share:.0%}")
        head.append(f": {finding.title}", "bold")
        grid = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0))
        grid.add_column(width=7, no_wrap=True)
        grid.add_column(overflow="fold")
        for at, line in enumerate(finding.evidence):
            grid.add_row("" if at else "   seen", Text(line))
        grid.add_row("  costs", Text(finding.cost))
        grid.add_row("   cure", Text(finding.cure))
        if finding.touches:
            grid.add_row("touches", Text(reach(finding.touches)))
        parts += [Text(""), head, grid]
    return Group(*parts)


def _say_commands(findings: Sequence[Finding]) -> None:
    """The commands, each on a line of its own, to be copied; capitals stand for what the operator knows."""
    commands = [f"{number}. {command}" for number, finding in enumerate(findings, 1) for command in finding.commands]
    show_lines(["", "Commands by finding; nothing was run:", *commands] if commands else [])
