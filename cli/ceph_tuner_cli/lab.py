"""`ceph-tuner lab`: a real, throwaway Ceph cluster on this machine."""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import typer

from ceph_lab import drive_file, pools_file
from ceph_lab.bringup import up as bring_up
from ceph_lab.chroot import MIRROR, check_host
from ceph_lab.cluster import Lab
from ceph_lab.drives import DriveSet, preload
from ceph_lab.drives.presets import NAMES
from ceph_lab.options import LabOptions, default_name, format_size, parse_size
from ceph_lab.state import lab_names
from ceph_lab.status import lab_status
from ceph_lab.teardown import down as take_down
from ceph_tuner.core.errors import ClusterNotFound, InputError
from ceph_tuner_cli import complete, lab_load
from ceph_tuner_cli.render import Format, FormatOption, emit, say, working
from ceph_tuner_cli.tables import Columns, columns

app = typer.Typer(
    help="A real, throwaway Ceph cluster on this machine (root on Debian or Ubuntu).", no_args_is_help=True
)
app.add_typer(lab_load.app, name="load")

_DEFAULTS = LabOptions()
_NOT_SHOWN = ("drives", "osds", "pools")
_NameOption = typer.Option(
    None,
    "--name",
    help="The lab's name; `lab` by default, `lab-reef` with --release reef.",
    autocompletion=complete.labs,
)


def _default(value: object) -> str:
    return f" [default: {value}]"


@app.command()
def up(
    release: Optional[str] = typer.Option(None, help="tentacle or reef." + _default(_DEFAULTS.release)),
    name: Optional[str] = _NameOption,
    osds: Optional[str] = typer.Option(
        None,
        help="How many OSDs, each a CRUSH host; or groups on drives of their own, such as 3xnvme,3xhdd, with a device "
        "class where it is not Ceph's own: 2xnvme:fast." + _default(_DEFAULTS.osds),
    ),
    drive: Optional[str] = typer.Option(
        None,
        help=f"What the OSDs stand on: {', '.join(NAMES)}, or a file that describes a drive."
        + _default(_DEFAULTS.groups[0].drive),
        autocompletion=complete.drives,
    ),
    slower: Optional[float] = typer.Option(
        None,
        help="Make emulated drives so many times slower: then they decide more, and the machine's processors less."
        + _default(f"{_DEFAULTS.slower:g}"),
    ),
    storage: Optional[str] = typer.Option(
        None, help="Where the drives' bytes lie: ram, disk, or auto: ram where it fits." + _default(_DEFAULTS.storage)
    ),
    device_size: Optional[str] = typer.Option(
        None, help="Size of a device; its file is sparse. [default: 5GiB in memory, 16GiB on disk]"
    ),
    shards: Optional[int] = typer.Option(
        None, help="osd_op_num_shards. [default: Ceph's for the drive; 1 with throttle]"
    ),
    threads: Optional[int] = typer.Option(
        None, help="osd_op_num_threads_per_shard. [default: Ceph's for the drive; 5 with throttle]"
    ),
    iops: Optional[int] = typer.Option(
        None, help="With throttle: IOPS of a device, reads and writes each." + _default(_DEFAULTS.iops)
    ),
    bandwidth: Optional[str] = typer.Option(
        None,
        help="With throttle: bytes per second of a device, such as 60MiB." + _default(format_size(_DEFAULTS.bandwidth)),
    ),
    mons: Optional[int] = typer.Option(None, help="Monitors, 1 or 3." + _default(_DEFAULTS.mons)),
    mgrs: Optional[int] = typer.Option(None, help="mgr daemons; two for failover." + _default(_DEFAULTS.mgrs)),
    size: Optional[int] = typer.Option(None, help="Replicas of an object." + _default(_DEFAULTS.size)),
    pools: Optional[Path] = typer.Option(
        None, help="A file of the pools to make, replicated and erasure-coded, in the place of `rbd`."
    ),
    mirror: str = typer.Option(
        MIRROR, help="Debian mirror for the first `up` of a release; by default debootstrap's own."
    ),
    form: Format = FormatOption,
) -> None:
    """Bring a lab up; a second time says what is running."""
    own = {}
    if drive is not None and drive not in NAMES:
        drive, description = _drive_of_a_file(drive)
        own = {drive: description}
    options = {
        "release": release,
        "osds": osds,
        "drive": drive,
        "drives": own or None,
        "slower": slower,
        "storage": storage,
        "iops": iops,
        "bandwidth": parse_size("--bandwidth", bandwidth) if bandwidth is not None else None,
        "mons": mons,
        "mgrs": mgrs,
        "size": size,
        "device_size": parse_size("--device-size", device_size) if device_size is not None else None,
        "shards": shards,
        "threads": threads,
        "pools": pools_file.read(pools) if pools is not None else None,
    }
    wishes = {key: value for key, value in options.items() if value is not None}
    with _progress() as report:
        status = lab_status(bring_up(_name(name, release), wishes, report, mirror).name)
    emit(status, form, lambda: _one(status))


@app.command()
def status(name: Optional[str] = _NameOption, form: Format = FormatOption) -> None:
    """Say what is running: every lab, or one with its daemons."""
    check_host()
    if name is None:
        with working("asking the labs"):
            labs = [lab_status(each) for each in lab_names()]
        none = "no labs on this machine: `ceph-tuner lab up` makes one"
        emit(labs, form, lambda: _many(labs) if labs else none)
        return
    if name not in lab_names():
        raise ClusterNotFound(f"lab {name}", "no such lab", f"one of {', '.join(lab_names()) or 'none'}")
    with working(f"asking lab {name}"):
        status = lab_status(name)
    emit(status, form, lambda: _one(status))


@app.command("exec", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
def execute(
    command: List[str] = typer.Argument(..., help="For example: ceph -s"),
    name: Optional[str] = _NameOption,
) -> None:
    """Run a command inside a lab; its exit code is this one's."""
    check_host()
    lab = Lab.open(name or default_name("tentacle"))
    argv = lab.argv(command)
    sys.stdout.flush()
    os.execvp(argv[0], argv)  # noqa: S606


@app.command()
def slow(
    monitor: str = typer.Argument(..., help="For example: b"),
    seconds: float = typer.Option(..., "--seconds", "-s", min=0, max=600, help="How much longer; 0: as fast as it is."),
    name: Optional[str] = _NameOption,
    form: Format = FormatOption,
) -> None:
    """Make a monitor slow: each of its writes that must last takes longer, from now on."""
    check_host()
    lab = Lab.open(name or default_name("tentacle"))
    mon = monitor[len("mon.") :] if monitor.startswith("mon.") else monitor
    if mon not in lab.mons:
        raise InputError("monitor", repr(monitor), f"one of {', '.join(lab.mons)}")
    preload.slow_down(lab.places, mon, seconds)
    words = (
        f"mon.{mon} takes {seconds:g} s longer for each lasting write" if seconds else f"mon.{mon} is as fast as it is"
    )
    emit({"monitor": mon, "seconds": seconds}, form, lambda: words)


@app.command()
def down(
    name: Optional[str] = _NameOption,
    every: bool = typer.Option(False, "--all", help="Take every lab of this machine down."),
    form: Format = FormatOption,
) -> None:
    """Take a lab down and leave nothing of it, also after a crash."""
    if every and name is not None:
        raise InputError("ceph-tuner lab down", "--all with --name", "one of the two")
    check_host()
    names = lab_names() if every else [name or default_name("tentacle")]
    with _progress() as report:
        remains = {each: take_down(each, report) for each in names}
    texts = [
        f"lab {each} is down" if was else f"there is no lab {each}: nothing to take down"
        for each, was in remains.items()
    ]
    emit([{"lab": each, "was_there": was} for each, was in remains.items()], form, lambda: "\n".join(texts))


def _drive_of_a_file(text: str) -> Tuple[str, DriveSet]:
    if os.sep not in text and not text.endswith((".yaml", ".yml")):
        raise InputError("--drive", repr(text), f"{', '.join(NAMES)}, or a file that describes one")
    return drive_file.read(text)


def _name(name: Optional[str], release: Optional[str]) -> str:
    return name if name is not None else default_name(release or _DEFAULTS.release)


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """What is being done now, and lines that stay."""
    began = time.monotonic()
    with working("looking at what is there") as tell:

        def report(line: str) -> None:
            say([f"{time.monotonic() - began:5.1f} s  {line}"])
            tell(line)

        yield report


def _one(status: Dict[str, Any]) -> Columns:
    table = columns("", "")
    for key in ("name", "release", "phase", "health", "monitor", "directory", "conf", "mgr_modules", "capacity_iops"):
        table.add_row(key.replace("_", " "), str(status.get(key, "")))
    for drive, doubt in status.get("capacity_doubts", {}).items():
        table.add_row("not verified", f"the capacity on {drive}: {doubt}")
    for key, value in status["options"].items():
        if key not in _NOT_SHOWN:
            text = format_size(value) if key in ("bandwidth", "device_size") else str(value or "Ceph's own")
            table.add_row(key.replace("_", " "), text)
    table.add_row("pools", str(status.get("pools", "")))
    for daemon in status["daemons"]:
        pid = f"process {daemon['pid']}" if daemon["pid"] else "not running"
        table.add_row(daemon["name"], "  ".join([pid, *([daemon["device"]] if daemon.get("device") else [])]))
    return table


def _many(labs: List[Dict[str, Any]]) -> Columns:
    table = columns("name", "release", "phase", "osds", "storage", "health")
    for lab in labs:
        options = lab["options"]
        cells = [options.get("groups", ""), options.get("storage", ""), lab.get("health", "")]
        table.add_row(lab["name"], lab.get("release", ""), lab["phase"], *map(str, cells))
    return table
