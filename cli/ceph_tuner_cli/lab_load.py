"""`ceph-tuner lab load`: run one load, or a named combination, and print what it measured."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence

import typer

from ceph_lab import scenarios
from ceph_lab.cluster import Lab
from ceph_lab.loads import Load
from ceph_lab.loads import backfill as backfill_load
from ceph_lab.loads import client as client_load
from ceph_lab.loads import recovery as recovery_load
from ceph_lab.loads import scrub as scrub_load
from ceph_lab.loads import snaptrim as snaptrim_load
from ceph_lab.loads.backfill import BackfillLoad
from ceph_lab.loads.client import ClientLoad
from ceph_lab.loads.client_work import ClientWork
from ceph_lab.loads.layout import layout_of
from ceph_lab.loads.pools import Tell
from ceph_lab.loads.recovery import RecoveryLoad
from ceph_lab.loads.scrub import KINDS, ScrubLoad
from ceph_lab.loads.session import LabSession
from ceph_lab.loads.snaptrim import SnaptrimLoad
from ceph_lab.options import parse_size
from ceph_lab.recipes import MARGIN_S, Bench
from ceph_tuner.core.errors import InputError
from ceph_tuner_cli import complete
from ceph_tuner_cli.lab_load_run import How, run_load, run_scenario
from ceph_tuner_cli.render import Format, FormatOption, emit, working
from ceph_tuner_cli.tables import Columns, columns

app = typer.Typer(
    help="Put work on a lab and measure it: client, recovery, backfill, scrub, snaptrim.", no_args_is_help=True
)

_Name = typer.Option("lab", "--name", help="The lab's name.", autocompletion=complete.labs)
_Seconds = typer.Option(30.0, "--seconds", "-s", min=2, max=86400, help="Length of the measured window.")
_Settle = typer.Option(
    scenarios.SETTLE_S, "--settle", min=0, max=600, help="Seconds that run before it and do not count."
)
_Repeat = typer.Option(1, "--repeat", min=1, max=100, help="So many windows, each prepared anew.")
_Remove = typer.Option(
    False, "--remove", help="Delete the load's pools at the end; kept, they make the next run start sooner."
)
_Pool = typer.Option("", "--pool", help="replicated:N or ec:K+M, such as ec:2+1. By default the load's own replicas.")
_Class = typer.Option("", "--class", help="Device class of the OSDs that are used, such as hdd. By default all.")
_Objects = typer.Option(
    None, "--objects", min=1, max=1_000_000, help="Number of objects. By default work for the whole run, where it ends."
)

MOST_CLONED = 2000
"""Objects of snaptrim: more clones than that are of the same objects."""


@app.command()
def client(
    rate: Optional[float] = typer.Option(250.0, help="IOPS that the clients offer."),
    depth: Optional[int] = typer.Option(None, help="Queue depth of a job. With --closed, what drives the load."),
    closed: bool = typer.Option(False, "--closed", help="Closed loop: no rate, the queue is kept full."),
    block: str = typer.Option("4KiB", help="Bytes of an operation."),
    reads: float = typer.Option(0.0, min=0, max=1, help="Share of reads, 0 to 1."),
    sequential: bool = typer.Option(False, "--sequential", help="Offsets one after the other, not random."),
    jobs: int = typer.Option(1, min=1, max=64, help="Clients that share the rate."),
    image: str = typer.Option("1GiB", help="Size of the RBD image, written once."),
    engine: Optional[str] = typer.Option(
        None,
        help="librbd (each operation at its time; the default for a rate) or fio (waits for all of them when it "
        "pauses; the default with --closed).",
    ),
    seed: int = typer.Option(1, help="The same seed offers the same operations at the same times. With librbd."),
    pool: str = _Pool,
    device_class: str = _Class,
    seconds: float = _Seconds,
    settle: float = _Settle,
    repeat: int = _Repeat,
    remove: bool = _Remove,
    name: str = _Name,
    form: Format = FormatOption,
) -> None:
    """Clients on an RBD image, latencies by percentile."""
    work = ClientWork(
        rate=None if closed else rate,
        depth=depth,
        block_bytes=parse_size("--block", block),
        read_share=reads,
        jobs=jobs,
        image_bytes=parse_size("--image", image),
        sequential=sequential,
        engine=engine,
        seed=seed,
    )

    def make(lab: Lab, session: LabSession, tell: Tell) -> Load:
        layout = layout_of(lab, pool, device_class, client_load.REPLICAS, "--pool")
        return ClientLoad(lab, session, work, tell, layout)

    run_load("client", name, make, How(seconds, settle, repeat, remove, form))


@app.command()
def recovery(
    objects: Optional[int] = _Objects,
    object_size: str = typer.Option("1MiB", help="Bytes of an object."),
    osd: Optional[int] = typer.Option(None, help="The OSD that misses writes; the last one by default."),
    pool: str = _Pool,
    device_class: str = _Class,
    seconds: float = _Seconds,
    settle: float = _Settle,
    repeat: int = _Repeat,
    remove: bool = _Remove,
    name: str = _Name,
    form: Format = FormatOption,
) -> None:
    """Recovery of degraded objects: an OSD is stopped, misses writes and comes back."""
    size = parse_size("--object-size", object_size)

    def make(lab: Lab, session: LabSession, tell: Tell) -> Load:
        if osd is not None and osd not in lab.osds:
            raise InputError("--osd", str(osd), f"one of {', '.join(map(str, lab.osds))}")
        layout = layout_of(lab, pool, device_class, recovery_load.REPLICAS, "--pool")
        count = objects or Bench(lab, session, tell).moved(settle + seconds + MARGIN_S, layout, size)
        return RecoveryLoad(lab, session, count, size, osd, tell, layout)

    run_load("recovery", name, make, How(seconds, settle, repeat, remove, form))


@app.command()
def backfill(
    objects: Optional[int] = _Objects,
    object_size: str = typer.Option("1MiB", help="Bytes of an object."),
    pool: str = _Pool,
    device_class: str = _Class,
    seconds: float = _Seconds,
    settle: float = _Settle,
    repeat: int = _Repeat,
    remove: bool = _Remove,
    name: str = _Name,
    form: Format = FormatOption,
) -> None:
    """Backfill of misplaced objects: PGs move to another OSD, and back the next time."""
    size = parse_size("--object-size", object_size)

    def make(lab: Lab, session: LabSession, tell: Tell) -> Load:
        layout = layout_of(lab, pool, device_class, backfill_load.REPLICAS, "--pool")
        count = objects or Bench(lab, session, tell).misplaced(settle + seconds + MARGIN_S, layout, size)
        return BackfillLoad(lab, session, count, size, tell, layout)

    run_load("backfill", name, make, How(seconds, settle, repeat, remove, form))


@app.command()
def scrub(
    kind: str = typer.Option("periodic", help="periodic (obeys osd_max_scrubs) or requested (all PGs at once)."),
    objects: Optional[int] = _Objects,
    object_size: str = typer.Option("1MiB", help="Bytes of an object."),
    pgs: int = typer.Option(16, min=1, max=256, help="PGs of the pool."),
    pool: str = _Pool,
    device_class: str = _Class,
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

    def make(lab: Lab, session: LabSession, tell: Tell) -> Load:
        layout = layout_of(lab, pool, device_class, scrub_load.REPLICAS, "--pool")
        return ScrubLoad(lab, session, kind, objects or 1200, size, pgs, tell, layout)

    run_load("scrub", name, make, How(seconds, settle, repeat, remove, form))


@app.command()
def snaptrim(
    objects: Optional[int] = _Objects,
    object_size: str = typer.Option("256KiB", help="Bytes of an object."),
    overwrite: str = typer.Option("4KiB", help="Bytes of each object that are overwritten after the snapshot."),
    pool: str = _Pool,
    device_class: str = _Class,
    seconds: float = _Seconds,
    settle: float = _Settle,
    repeat: int = _Repeat,
    remove: bool = _Remove,
    name: str = _Name,
    form: Format = FormatOption,
) -> None:
    """Snaptrim: objects are overwritten after a snapshot, which is then removed."""
    size, overwritten = parse_size("--object-size", object_size), parse_size("--overwrite", overwrite)

    def make(lab: Lab, session: LabSession, tell: Tell) -> Load:
        layout = layout_of(lab, pool, device_class, snaptrim_load.REPLICAS, "--pool")
        clones = objects or Bench(lab, session, tell).clones(settle + seconds + MARGIN_S, layout)
        return SnaptrimLoad(lab, session, min(clones, MOST_CLONED), size, overwritten, tell, layout, clones)

    run_load("snaptrim", name, make, How(seconds, settle, repeat, remove, form))


@app.command()
def scenario(
    which: str = typer.Argument(
        ..., metavar="SCENARIO", help="One of `ceph-tuner lab load ls`.", autocompletion=complete.scenarios
    ),
    option: List[str] = typer.Option([], "--option", "-o", help="name=value, as `lab load ls` lists them."),
    pool: str = _Pool,
    device_class: str = _Class,
    seconds: float = _Seconds,
    settle: float = _Settle,
    repeat: int = _Repeat,
    remove: bool = _Remove,
    name: str = _Name,
    form: Format = FormatOption,
) -> None:
    """Run a named combination of loads."""
    options = {"pool": pool, "device_class": device_class, **scenario_options(which, option)}
    lab = Lab.open(name)
    run_scenario(
        lambda tell: scenarios.scenario(which, lab, tell, **options), lab, How(seconds, settle, repeat, remove, form)
    )


@app.command("ls")
def list_scenarios(form: Format = FormatOption) -> None:
    """List the named scenarios with their options."""
    descriptions = scenarios.described()

    def table() -> Columns:
        rows = columns(
            "scenario",
            "what runs",
            "options",
            caption="pool: replicated:N or ec:K+M, else each load's own; device_class: OSDs of it alone, else all.",
        )
        for entry in descriptions:
            rows.add_row(entry.name, entry.meaning, " ".join(f"{key}={value}" for key, value in entry.options.items()))
        return rows

    emit([{"name": e.name, "meaning": e.meaning, "options": dict(e.options)} for e in descriptions], form, table)


@app.command()
def clean(name: str = _Name, form: Format = FormatOption) -> None:
    """Remove the pools and flags of every load, also of one that was interrupted."""
    lab = Lab.open(name)
    with working("removing the loads' pools and flags"):
        scenarios.clean(lab)
    emit({"lab": name, "clean": True}, form, lambda: f"lab {name} has no pools and flags of loads")


def scenario_options(which: str, texts: Sequence[str]) -> Dict[str, Any]:
    """Options out of `NAME=VALUE`, with the types of the recipe's. Raises InputError."""
    recipe = {entry.name: entry.options for entry in scenarios.described()}.get(which)
    if recipe is None:
        raise InputError(f"scenario {which}", "no such scenario", f"one of {', '.join(scenarios.NAMES)}")
    options: Dict[str, Any] = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator or key not in recipe:
            raise InputError(f"--option {text}", repr(key), f"name=value with one of {', '.join(recipe)}")
        options[key] = _value(key, value, recipe[key])
    return options


def _value(key: str, text: str, default: Any) -> Any:
    if isinstance(default, str):
        return text
    if key.endswith("_bytes"):
        return parse_size(f"--option {key}", text)
    try:
        return type(default)(text)
    except ValueError as error:
        raise InputError(f"--option {key}", repr(text), "a number") from error
