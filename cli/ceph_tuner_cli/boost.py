"""`ceph-tuner boost`: has the plugin finish some background work sooner, and shows how far it is."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional

import typer

from ceph_tuner.cluster.plugin_commands import plugin_answer
from ceph_tuner.core.boost.goals import SEPARATOR
from ceph_tuner.core.boost.kinds import BACKFILL, RECOVERY, SCRUB, SNAPTRIM
from ceph_tuner.core.boost.offer import FORETELL
from ceph_tuner_cli.boost_predict import TwinAnswer, ask_twin, twin_search
from ceph_tuner_cli.cluster_option import ClusterOption, at_work
from ceph_tuner_cli.interruption import INTERRUPTED
from ceph_tuner_cli.render import Format, FormatOption, emit, say

app = typer.Typer(help="Recovery, backfill, scrub or snaptrim sooner, until it is done.", no_args_is_help=True)

STATUS = "tuner boost status"

CLEAN = "clean"
"""The one end that there is."""

UntilOption = typer.Option(CLEAN, "--until", help="Only `clean`: until nothing of it is left.")
AtMostOption = typer.Option("6h", "--at-most", help="It ends after this time, whatever is left: 90min, 6h, 2d.")
KeepOption = typer.Option(
    [], "--keep", help="An objective that ends it when it is missed, such as 'client.p95_ms<=20'; repeatable."
)
WhoOption = typer.Option("osd", "--target", "-t", help="osd, osd/class:…, osd/host:…, osd/rack:… or osd.N.")

DryRunOption = typer.Option(
    False, "--dry-run", help="Only show the settings, their grounds, the forecast, and what would let it go."
)
PredictOption = typer.Option(
    False,
    "--predict",
    help="First search the fastest settings on the twin, for minutes. What was measured here stays first.",
)
TrialsOption = typer.Option(
    None, "--trials", "-n", min=1, max=500, help="With --predict: settings to try on the twin.", show_default="32"
)
ProcessesOption = typer.Option(None, "--processes", min=1, help="With --predict: runs side by side; else one per core.")


def _command(kind: str, words: str) -> None:
    @app.command(kind, help=words)
    def begin(
        cluster: str = ClusterOption,
        until: str = UntilOption,
        at_most: str = AtMostOption,
        keep: List[str] = KeepOption,
        target: str = WhoOption,
        dry_run: bool = DryRunOption,
        predict: bool = PredictOption,
        trials: Optional[int] = TrialsOption,
        processes: Optional[int] = ProcessesOption,
        form: Format = FormatOption,
    ) -> int:
        # in the order in which the plugin declares them
        arguments = {"until": until, "at_most": at_most, "who": target}
        if keep:
            arguments["keep"] = SEPARATOR.join(keep)
        search = twin_search(predict, trials, processes)
        twin = None
        if search is not None:
            twin = ask_twin(kind, cluster, arguments, search)
            if twin is None:
                return INTERRUPTED
            say(twin.words)
        _begin(kind, cluster, arguments, dry_run, twin, form)
        return 0


for _kind, _words in {
    RECOVERY: "Recover degraded objects sooner, and take the settings back when none are left. Acts at once.",
    BACKFILL: "Move degraded and misplaced objects sooner, and take the settings back when none are left. Acts at "
    "once.",
    SCRUB: "Scrub PGs past their deep-scrub date sooner, and take the settings back when none are left. Acts at once.",
    SNAPTRIM: "Empty the snaptrim queue sooner, and take the settings back when it is empty. Acts at once.",
}.items():
    _command(_kind, _words)


@app.command()
def status(cluster: str = ClusterOption, form: Format = FormatOption) -> None:
    """Say what is boosted, what is left, when it will be done, and what ends it."""
    with at_work(cluster, "asking the plugin") as connection:
        document = plugin_answer(connection.commander, STATUS, {})
    _show(document, form)


@app.command()
def cancel(
    cluster: str = ClusterOption,
    why: str = typer.Option("", "--why", help="A word for the audit trail."),
    form: Format = FormatOption,
) -> None:
    """End the boost, and take its settings back."""
    with at_work(cluster, "ending the boost") as connection:
        document = plugin_answer(connection.commander, "tuner boost cancel", {"why": why} if why else {})
    _show(document, form)


def _begin(
    kind: str, cluster: str, arguments: Mapping[str, str], dry_run: bool, twin: Optional[TwinAnswer], form: Format
) -> None:
    # a command of its own: an older plugin drops an option that it does not know, and begins
    command = FORETELL if dry_run else f"tuner boost {kind}"
    own = {"kind": kind} if dry_run else {}
    with at_work(cluster, f"asking about a boost of {kind}" if dry_run else f"beginning to boost {kind}") as connection:
        payload = "" if twin is None else twin.payload
        document: Dict[str, Any] = plugin_answer(connection.commander, command, {**own, **arguments}, payload)
    _show(document if twin is None else {**document, "twin": twin.to_dict()}, form)


def _show(document: Mapping[str, Any], form: Format) -> None:
    lines = [*document.get("words", []), *document.get("commands", [])]
    emit(document, form, lambda: "\n".join(map(str, lines)))
