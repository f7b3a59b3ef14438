"""`ceph-tuner lab load`: run one load, or a named combination, and print what it measured."""

from __future__ import annotations

import signal
import time
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional

import typer
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table

from ceph_tuner.errors import InputError
from ceph_tuner.lab import scenarios
from ceph_tuner.lab.cluster import Lab
from ceph_tuner.lab.loads import Load, Progress
from ceph_tuner.lab.loads.backfill import BackfillLoad
from ceph_tuner.lab.loads.client import ClientLoad, ClientWork
from ceph_tuner.lab.loads.pools import Tell
from ceph_tuner.lab.loads.recovery import RecoveryLoad
from ceph_tuner.lab.loads.scrub import KINDS, ScrubLoad
from ceph_tuner.lab.loads.session import Session
from ceph_tuner.lab.loads.snaptrim import SnaptrimLoad
from ceph_tuner.lab.options import parse_size
from ceph_tuner.lab.scenarios import Scenario
from ceph_tuner.metrics import METRICS
from ceph_tuner.sample import Measure
from ceph_tuner_cli.render import Format, FormatOption, emit, messages

app = typer.Typer(
    help="Put work on a lab and measure it: client, recovery, backfill, scrub, snaptrim.", no_args_is_help=True
)

_Name = typer.Option("lab", "--name", help="The lab's name.")
_Seconds = typer.Option(30.0, "--seconds", "-s", min=2, max=86400, help="Length of the measured window.")
_Settle = typer.Option(
    scenarios.SETTLE_S, "--settle", min=0, max=600, help="Seconds that run before it and do not count."
)
_Repeat = typer.Option(1, "--repeat", min=1, max=100, help="So many windows, each prepared anew.")
_Remove = typer.Option(
    False, "--remove", help="Delete the load's pools at the end; kept, they make the next run start sooner."
)
_Objects = typer.Option(None, "--objects", min=1, max=1_000_000, help="Number of objects.")


@app.command()
def client(
    rate: Optional[float] = typer.Option(250.0, help="IOPS that the clients offer, with the pauses that fio makes."),
    depth: Optional[int] = typer.Option(None, help="Queue depth of a job. With --closed, what drives the load."),
    closed: bool = typer.Option(False, "--closed", help="Closed loop: no rate, the queue is kept full."),
    block: str = typer.Option("4KiB", help="Bytes of an operation."),
    reads: float = typer.Option(0.0, min=0, max=1, help="Share of reads, 0 to 1."),
    jobs: int = typer.Option(1, min=1, max=64, help="fio jobs that share the rate."),
    image: str = typer.Option("1GiB", help="Size of the RBD image, written once."),
    size: int = typer.Option(3, min=1, max=10, help="Replicas of the pool."),
    seconds: float = _Seconds,
    settle: float = _Settle,
    repeat: int = _Repeat,
    remove: bool = _Remove,
    name: str = _Name,
    form: Format = FormatOption,
) -> None:
    """Clients: fio on an RBD image, latencies by percentile."""
    work = ClientWork(
        rate=None if closed else rate,
        depth=depth,
        block_bytes=parse_size("--block", block),
        read_share=reads,
        jobs=jobs,
        image_bytes=parse_size("--image", image),
        pool_size=size,
    )
    _run_load(
        "client", name, lambda lab, s, tell: ClientLoad(lab, s, work, tell), seconds, settle, repeat, remove, form
    )


@app.command()
def recovery(
    objects: Optional[int] = _Objects,
    object_size: str = typer.Option("1MiB", help="Bytes of an object."),
    osd: Optional[int] = typer.Option(None, help="The OSD that misses writes; the last one by default."),
    seconds: float = _Seconds,
    settle: float = _Settle,
    repeat: int = _Repeat,
    remove: bool = _Remove,
    name: str = _Name,
    form: Format = FormatOption,
) -> None:
    """Recovery of degraded objects: an OSD is stopped, misses writes and comes back."""
    size = parse_size("--object-size", object_size)

    def make(lab: Lab, session: Session, tell: Tell) -> Load:
        if osd is not None and osd not in lab.osds:
            raise InputError("--osd", str(osd), f"one of {', '.join(map(str, lab.osds))}")
        return RecoveryLoad(lab, session, objects or 900, size, osd, tell)

    _run_load("recovery", name, make, seconds, settle, repeat, remove, form)


@app.command()
def backfill(
    objects: Optional[int] = _Objects,
    object_size: str = typer.Option("1MiB", help="Bytes of an object."),
    seconds: float = _Seconds,
    settle: float = _Settle,
    repeat: int = _Repeat,
    remove: bool = _Remove,
    name: str = _Name,
    form: Format = FormatOption,
) -> None:
    """Backfill of misplaced objects: PGs move to another OSD, and back the next time."""
    size = parse_size("--object-size", object_size)
    _run_load(
        "backfill",
        name,
        lambda lab, session, tell: BackfillLoad(lab, session, objects or 900, size, tell),
        seconds,
        settle,
        repeat,
        remove,
        form,
    )


@app.command()
def scrub(
    kind: str = typer.Option("periodic", help="periodic (obeys osd_max_scrubs) or requested (all PGs at once)."),
    objects: Optional[int] = _Objects,
    object_size: str = typer.Option("1MiB", help="Bytes of an object."),
    pgs: int = typer.Option(16, min=1, max=256, help="PGs of the pool."),
    seconds: float = _Seconds,
    settle: float = _Settle,
    repeat: int = _Repeat,
    remove: bool = _Remove,
    name: str = _Name,
    form: Format = FormatOption,
) -> None:
    """Deep scrub of the same objects, over and over."""
    if kind not in KINDS:
        raise InputError("--kind", repr(kind), " or ".join(KINDS))
    size = parse_size("--object-size", object_size)
    _run_load(
        "scrub",
        name,
        lambda lab, session, tell: ScrubLoad(lab, session, kind, objects or 1200, size, pgs, tell),
        seconds,
        settle,
        repeat,
        remove,
        form,
    )


@app.command()
def snaptrim(
    objects: Optional[int] = _Objects,
    object_size: str = typer.Option("256KiB", help="Bytes of an object."),
    overwrite: str = typer.Option("4KiB", help="Bytes of each object that are overwritten after the snapshot."),
    seconds: float = _Seconds,
    settle: float = _Settle,
    repeat: int = _Repeat,
    remove: bool = _Remove,
    name: str = _Name,
    form: Format = FormatOption,
) -> None:
    """Snaptrim: objects are overwritten after a snapshot, which is then removed."""
    size, overwritten = parse_size("--object-size", object_size), parse_size("--overwrite", overwrite)
    _run_load(
        "snaptrim",
        name,
        lambda lab, session, tell: SnaptrimLoad(lab, session, objects or 2000, size, overwritten, tell),
        seconds,
        settle,
        repeat,
        remove,
        form,
    )


@app.command()
def scenario(
    which: str = typer.Argument(..., metavar="SCENARIO", help="One of `ceph-tuner lab load ls`."),
    option: List[str] = typer.Option([], "--option", "-o", help="name=value, as `lab load ls` lists them."),
    seconds: float = _Seconds,
    settle: float = _Settle,
    repeat: int = _Repeat,
    remove: bool = _Remove,
    name: str = _Name,
    form: Format = FormatOption,
) -> None:
    """Run a named combination of loads."""
    options = _options(which, option)
    lab = Lab.open(name)
    _run(lambda tell: scenarios.scenario(which, lab, tell, **options), lab, seconds, settle, repeat, remove, form)


@app.command("ls")
def list_scenarios(form: Format = FormatOption) -> None:
    """List the named scenarios with their options."""
    found = scenarios.described()

    def table() -> Table:
        drawn = Table("scenario", "what runs", "options", box=None, pad_edge=False)
        for entry in found:
            drawn.add_row(entry.name, entry.meaning, " ".join(f"{key}={value}" for key, value in entry.options.items()))
        return drawn

    emit([{"name": e.name, "meaning": e.meaning, "options": dict(e.options)} for e in found], form, table)


@app.command()
def clean(name: str = _Name) -> None:
    """Remove the pools and flags of every load, also of one that was interrupted."""
    lab = Lab.open(name)
    with _ending_in_order(), messages.status("removing the loads' pools and flags"):
        scenarios.clean(lab)


_Make = Callable[[Lab, Session, Tell], Load]


def _run_load(
    load: str, name: str, make: _Make, seconds: float, settle: float, repeat: int, remove: bool, form: Format
) -> None:
    lab = Lab.open(name)

    def assemble(tell: Tell) -> Scenario:
        session = Session(lab)
        return Scenario(load, lab, [make(lab, session, tell)], session, tell)

    _run(assemble, lab, seconds, settle, repeat, remove, form)


def _run(
    assemble: Callable[[Tell], Scenario],
    lab: Lab,
    seconds: float,
    settle: float,
    repeat: int,
    remove: bool,
    form: Format,
) -> None:
    """Prepare, run and print; Ctrl-C stops the load first, and a second one does not disturb that."""
    windows = []
    with _ending_in_order(), messages.status("") as spinner, assemble(spinner.update) as made:
        try:
            for number in range(repeat):
                of = f" ({number + 1} of {repeat})" if repeat > 1 else ""
                spinner.start()
                began = time.monotonic()
                made.prepare()
                prepared = time.monotonic() - began
                spinner.stop()
                measures = _measured(made, seconds, settle, of)
                windows.append(_window(measures, made, prepared))
        except BaseException:
            _ignore_interrupts()
            spinner.stop()
            messages.print("stopping the load", markup=False)
            raise
        finally:
            made.stop()
            if remove:
                made.cleanup()
        document = {
            "scenario": made.name,
            "lab": lab.name,
            "release": lab.release,
            "seconds": seconds,
            "windows": windows,
        }
    emit(document, form, lambda: _table(windows))


def _measured(made: Scenario, seconds: float, settle: float, of: str) -> Mapping[str, Measure]:
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn(), TextColumn("{task.fields[words]}"))
    with Bar(*columns, console=messages, transient=True) as bar:
        task = bar.add_task(f"{made.name}{of}", total=1.0, words="")

        def on_progress(share: float, progress: Mapping[str, Progress]) -> None:
            words = ", ".join(_words(name, entry) for name, entry in progress.items())
            bar.update(task, completed=share, words=words)

        return made.run(seconds, on_progress, settle)


def _words(name: str, progress: Progress) -> str:
    if progress.left_objects is None:
        return f"{name}: {progress.done_objects:.0f} done"
    return f"{name}: {progress.done_objects:.0f} done, {progress.left_objects:.0f} left"


def _window(measures: Mapping[str, Measure], made: Scenario, prepared: float) -> Dict[str, Any]:
    metrics = {
        name: {
            "mean": measure.mean,
            "deviation": measure.deviation,
            "count": measure.count,
            "unit": METRICS[name].unit,
        }
        for name, measure in measures.items()
    }
    evidence = {result.name: dict(result.evidence) for result in made.results}
    return {
        "metrics": metrics,
        "prepare_s": prepared,
        "before": str(made.quiet or ""),
        "remarks": list(made.remarks()),
        "evidence": evidence,
    }


def _table(windows: List[Dict[str, Any]]) -> Table:
    columns = [f"window {number + 1}" for number in range(len(windows))] if len(windows) > 1 else ["mean"]
    table = Table("metric", "unit", *columns, "deviation within", box=None, pad_edge=False)
    names = [name for name in METRICS if any(name in window["metrics"] for window in windows)]
    for name in names:
        entries = [window["metrics"].get(name) for window in windows]
        cells = [f"{entry['mean']:,.1f}" if entry else "" for entry in entries]
        spread = max((entry["deviation"] for entry in entries if entry), default=0.0)
        table.add_row(name, METRICS[name].unit, *cells, f"{spread:,.1f}")
    remarks = dict.fromkeys(remark for window in windows for remark in window["remarks"])
    table.caption = "\n".join(remarks) or None
    return table


def _options(which: str, given: List[str]) -> Dict[str, Any]:
    recipe = {entry.name: entry.options for entry in scenarios.described()}.get(which)
    if recipe is None:
        raise InputError(f"scenario {which}", "no such scenario", f"one of {', '.join(scenarios.NAMES)}")
    found: Dict[str, Any] = {}
    for text in given:
        key, separator, value = text.partition("=")
        if not separator or key not in recipe:
            raise InputError(f"--option {text}", repr(key), f"name=value with one of {', '.join(recipe)}")
        found[key] = _value(key, value, recipe[key])
    return found


def _value(key: str, text: str, default: Any) -> Any:
    if isinstance(default, str):
        return text
    if key.endswith("_bytes"):
        return parse_size(f"--option {key}", text)
    try:
        return type(default)(text)
    except ValueError as error:
        raise InputError(f"--option {key}", repr(text), "a number") from error


@contextmanager
def _ending_in_order() -> Iterator[None]:
    """SIGTERM and SIGHUP end like Ctrl-C, so that the load is stopped."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ignore_interrupts() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
