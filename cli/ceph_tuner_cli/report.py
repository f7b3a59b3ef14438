"""`ceph-tuner report`: one self-contained HTML page of a recommendation, a tuning run, or a cluster's past."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, Optional, Tuple

import typer

from ceph_tuner.core.atomic_write import check_free, write_text
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.printable import printable
from ceph_tuner.report import Findings, answer_file
from ceph_tuner_cli import complete
from ceph_tuner_cli.cluster_option import ForceOption
from ceph_tuner_cli.from_option import FromOption, cluster_or_state
from ceph_tuner_cli.prefix_option import open_cluster
from ceph_tuner_cli.render import Format, FormatOption, emit, working

HOUR_S = 3600.0


def report(
    context: typer.Context,
    source: Optional[str] = typer.Argument(
        None,
        metavar="[ANSWER]",
        help="What recommend or tune printed with --format json (-: standard input); with --slo a described cluster.",
    ),
    output: Path = typer.Option(..., "--output", "-o", help="The HTML file to write."),
    slo: Optional[Path] = typer.Option(
        None, "--slo", "-s", help="The SLO file: `recommend` is run for the described cluster first."
    ),
    trials: Optional[int] = typer.Option(None, "--trials", "-n", min=1, max=500, help="With --slo: settings to try."),
    cluster: Optional[str] = typer.Option(
        None,
        "--cluster",
        "-c",
        help="A lab, a path of a ceph.conf, or `ceph`: what it remembers is in the page.",
        autocompletion=complete.clusters,
    ),
    state: Optional[Path] = FromOption,
    hours: float = typer.Option(24.0, "--hours", min=0.1, max=8760, help="How far back the cluster's past is shown."),
    force: bool = ForceOption,
    form: Format = FormatOption,
) -> int:
    """Write one HTML page that needs no network: objectives, plots over time, trade-offs, knobs, capacity, commands."""
    if source is None and cluster is None and state is None:
        raise InputError("report", "neither an answer nor --cluster or --from", "at least one of them")
    if slo is not None and source in (None, answer_file.STDIN):
        raise InputError("--slo", "no described cluster", "its file in front of it (`ceph-tuner twin describe`)")
    check_free(output, force)
    code, findings = 0, None
    if source is not None:
        code, findings = _findings(context, source, slo, trials)
    if cluster is not None or state is not None:
        from ceph_tuner.report.cluster_history import with_history

        history = _past(cluster, state, hours)
        findings = history if findings is None else with_history(findings, history)
    with working("drawing the page"):
        from ceph_tuner.report.page import page  # brings matplotlib

        text = page(findings or Findings("", "", ""), SystemClock().now(), _heading(source, cluster, state))
    write_text(output, text, force)
    size = len(text.encode())
    line = f"written: {output} ({size // 1024} KiB; open it in a browser)"
    emit({"saved": str(output), "bytes": size, "interrupted": code != 0}, form, lambda: line)
    return code


def _findings(context: typer.Context, source: str, slo: Optional[Path], trials: Optional[int]) -> Tuple[int, Findings]:
    """Read an answer, or make one. Where making it was interrupted, the code says so and what was found counts."""
    # brings scipy, which --help and completion do not wait for, as the other imports inside of functions here
    from ceph_tuner.report import answers

    if slo is None:
        return 0, answers.read_answer(source)
    root: Any = context.find_root()
    recommend = root.command.commands["recommend"]
    output = io.StringIO()
    words = [source, "--slo", str(slo), "--format", "json", *(["--trials", str(trials)] if trials else [])]
    with redirect_stdout(output):
        code = recommend.main(words, "ceph-tuner recommend", standalone_mode=False)
    document = answer_file.parse(output.getvalue().encode(), f"recommend {source}")
    # a recommendation that nothing is better is a page as well
    return (0 if code in (0, 1) else int(code)), answers.findings_of(document)


def _past(cluster: Optional[str], state: Optional[Path], hours: float) -> Findings:
    from ceph_tuner.report.cluster_history import remembered

    with (
        working(f"{cluster or state}: reading what it remembers"),
        cluster_or_state(cluster, state, lambda name: open_cluster(name)) as connection,
    ):
        now = connection.clock.now()
        entries = connection.applier().history()
        return remembered(connection.name, connection.store, entries, connection.release, now - hours * HOUR_S, now)


def _heading(source: Optional[str], cluster: Optional[str], state: Optional[Path]) -> str:
    answer = {None: "", answer_file.STDIN: "standard input"}.get(source, Path(source or "").name)
    memory = f"cluster {cluster}" if cluster is not None else state.name if state is not None else ""
    return printable(" and ".join(part for part in (answer, memory and f"the memory of {memory}") if part))
