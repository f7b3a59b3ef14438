"""`ceph-tuner`: collects the command groups, and turns errors into one line and an exit code."""

from __future__ import annotations

import sys
from typing import Any

import typer

from ceph_tuner import __version__
from ceph_tuner.errors import TunerError
from ceph_tuner_cli import (
    apply,
    doctor,
    fleet_rollout,
    history,
    knobs,
    lab,
    mgr,
    profile,
    recommend,
    report,
    rollback,
    slo,
    tune,
    twin,
    watch,
)
from ceph_tuner_cli.render import messages

# newer releases of typer carry a click of their own, so neither module can be named here
_UsageError = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")

app = typer.Typer(
    name="ceph-tuner",
    help="Tunes Ceph's mClock scheduler to service-level objectives, safely.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(lab.app, name="lab")
app.add_typer(twin.app, name="twin")
app.command("knobs")(knobs.knobs)
app.add_typer(profile.app, name="profile")
app.add_typer(slo.app, name="slo")
app.command("recommend")(recommend.recommend)
app.command("report")(report.report)
app.command("tune")(tune.tune)
app.command("apply")(apply.apply)
app.command("rollback")(rollback.rollback)
app.command("history")(history.history)
app.add_typer(mgr.app, name="mgr")
app.add_typer(fleet_rollout.app, name="fleet")
app.command("doctor")(doctor.doctor)
app.command("watch")(watch.watch)


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
    """Run the program. Exit codes: 0 done, 1 a negative result, 2 to 4 as in `ceph_tuner.errors`, 130 Ctrl-C."""
    try:
        code = app(standalone_mode=False)
    except TunerError as error:
        messages.print(f"error: {error}", markup=False, soft_wrap=True)
        code = error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        messages.print("interrupted", markup=False)
        code = 130
    except BrokenPipeError:
        # the reader (head, less) has left: nothing is wrong
        sys.stderr.close()
        code = 0
    except Exception as error:
        if not isinstance(error, _UsageError):
            raise
        messages.print(f"error: {_usage(error)}", markup=False, soft_wrap=True)
        code = 2
    sys.exit(code if isinstance(code, int) else 0)


def _usage(error: Any) -> str:
    """One line that names the command, what is wrong with the call, and where to read on."""
    command = error.ctx.command_path if getattr(error, "ctx", None) is not None else "ceph-tuner"
    return f"{command}: {error.format_message()} (`{command} --help` says more)"
