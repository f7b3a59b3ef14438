"""`ceph-tuner`: names the commands, and turns errors into one line and an exit code."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Any, Dict, Tuple

import typer

from ceph_tuner import __version__
from ceph_tuner.core.errors import TunerError
from ceph_tuner.core.printable import printable
from ceph_tuner_cli import prefix_option
from ceph_tuner_cli.interruption import INTERRUPTED, orderly_end
from ceph_tuner_cli.render import ReaderLeft, begin, errors, fail
from ceph_tuner_cli.tree import DEBUG, group_of

# newer releases of typer carry a click of their own, so neither module can be named here
_UsageError = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")

UNEXPECTED = 70
"""EX_SOFTWARE of sysexits.h."""

COMMANDS: Dict[str, Tuple[str, str, str]] = {
    "doctor": ("doctor", "doctor", "What would make tuning a cluster pointless or wrong."),
    "why": ("why", "why", "Which work waits now, and what holds it."),
    "gather": ("gather", "gather", "A cluster's state in one file, for --from elsewhere."),
    "tune": ("tune", "tune", "From an SLO to settings: tried, guarded, written back."),
    "recommend": ("recommend", "recommend", "Settings for a described cluster; needs no cluster."),
    "example": ("example", "example", "A described cluster and its objectives, to begin with."),
    "boost": ("boost", "app", "Recovery, backfill, scrub or snaptrim sooner, until done."),
    "book": ("book", "app", "The settings of each regime, and which are in force."),
    "compare-queues": ("compare_queues", "compare_queues", "Wpq or mClock: what the change would do, and cost."),
    "watch": ("watch", "watch", "A live view of rates, objectives, queues and the trial."),
    "scrub": ("scrub", "app", "When deep scrubs come; to have them done by a date."),
    "drain": ("moves", "drain", "Empty an OSD or a host at the clients' pace."),
    "reweight": ("moves", "reweight", "Change CRUSH weights at the clients' pace."),
    "pgs": ("moves", "pgs_app", "Change a pool's number of PGs at the clients' pace."),
    "moves": ("moves", "moves_app", "Moves of data, and what they have paused."),
    "report": ("report", "report", "A page of a recommendation, a run, or a cluster's past."),
    "apply": ("apply", "apply", "Set a profile or knobs, so that they can be taken back."),
    "rollback": ("rollback", "rollback", "Take changes back."),
    "history": ("history", "history", "What was changed, by whom, and whether it is in force."),
    "guardian": ("guardian", "guardian", "Takes back what a tuner that died has left."),
    "lock": ("lock", "app", "Who is at work on a cluster; break a lock that is stuck."),
    "profile": ("profile", "app", "Named settings: built-in ones, files, what a cluster has."),
    "slo": ("slo", "app", "Objectives: check a file, hold a cluster against it."),
    "knobs": ("knobs", "knobs", "What each Ceph release does with each option."),
    "fleet": ("fleet_commands", "app", "Many clusters at once, as fleet.yaml names them."),
    "mgr": ("mgr", "app", "The ceph-mgr plugin: put it in place, take it out."),
    "controller": ("controller", "controller", "Objectives, boosts and modes as resources of Kubernetes."),
    "twin": ("twin", "app", "The model of Ceph's OSDs, and what it is held against."),
    "lab": ("lab", "app", "A real, throwaway Ceph cluster on this machine."),
}
"""Name -> module, what it is there, and what the list of commands says of it."""

app = typer.Typer(
    name="ceph-tuner",
    cls=group_of(COMMANDS),
    help="Tunes Ceph's mClock scheduler to service-level objectives, safely.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ceph-tuner {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """Tunes Ceph's mClock scheduler to service-level objectives, safely."""


def main() -> None:
    """Run the program. Exit codes: docs/exit-codes.md."""
    begin()
    prefix_option.begin()
    with orderly_end():
        code = _run()
    sys.exit(code)


def _run() -> int:
    try:
        code = app(standalone_mode=False)
    except TunerError as error:
        fail(error.advised)
        code = error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        errors.print("interrupted", markup=False)
        code = INTERRUPTED
    except ReaderLeft:
        _write_nowhere()
        code = 0
    except SystemExit as end:
        # click and rich take a reader of a help text that leaves (head, less) for a failure
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        _write_nowhere()
        code = 0
    except Exception as error:
        if isinstance(error, _UsageError):
            code = 2
            if type(error).__name__ == "NoArgsIsHelpError":
                # a group that is called without a command: its text is the help
                errors.print(printable(str(error), lines=True), markup=False, soft_wrap=True)
            else:
                fail(_usage(error))
        else:
            if os.environ.get(DEBUG):
                errors.print(printable(traceback.format_exc(), lines=True), markup=False, soft_wrap=True)
            fail(_fault_words(error))
            code = UNEXPECTED
    return code if isinstance(code, int) else 0


def _write_nowhere() -> None:
    """What is still to be written does not end in the next error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _usage(error: Any) -> str:
    """One line that names the command, what is wrong with the call, and where to read on."""
    command = error.ctx.command_path if getattr(error, "ctx", None) is not None else "ceph-tuner"
    message = error.format_message()
    return f"{command}: {message} (`{command} --help` says more)" if message else ""


def _fault_words(error: Exception) -> str:
    """One line of what nobody thought of: what is left behind, and how to find and tell the cause."""
    words = " ".join(f"{type(error).__name__}: {error}".split())
    return (
        f"unexpected {words}. Whatever was begun on a cluster is in its journal (`ceph-tuner history`), and the next "
        "write takes it back first. Please report it, with what the same command says with --debug"
    )
