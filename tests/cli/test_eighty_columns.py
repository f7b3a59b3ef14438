"""Tables fit 80 columns, and lose nothing by it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, List, Tuple

import pytest
from rich.console import Console, RenderableType

from ceph_tuner.core.changes.journal import Entry
from ceph_tuner.core.changes.plan import Step
from ceph_tuner.core.knobs.releases import RELEASES
from ceph_tuner.fleet.asking import MemberAnswer
from ceph_tuner.fleet.changes import NewestChange
from ceph_tuner.fleet.status import Standing, Status
from ceph_tuner_cli import fleet, history, lab, lab_load_run, mgr, render
from ceph_tuner_cli.cluster_option import step_table
from ceph_tuner_cli.tables import columns

Run = Callable[..., Tuple[int, str, str]]
ROOT = Path(__file__).resolve().parent.parent.parent
TRACES = sorted(str(path) for path in (ROOT / "tests/data/dmclock").glob("*.gz"))
HOST = "storage-node-with-a-name-of-40-characters"
CLUSTER = "a-cluster-of-the-second-site-in-the-north"
COMMANDS: List[Tuple[str, ...]] = [
    ("knobs",),
    *(("profile", "ls", "--release", name) for name in RELEASES),
    ("profile", "ls"),
    ("profile", "show", "tentacle/balanced"),
    ("profile", "show", "tuned/lab-recovery"),
    ("profile", "diff", "reef/high_client_ops", "tentacle/high_recovery_ops"),
    ("slo", "metrics"),
    ("slo", "check", *(str(path) for path in sorted((ROOT / "examples").glob("slo-*.yaml")))),
    ("lab", "load", "ls"),
    ("twin", "replay", *TRACES[:2]),
]


def rows_of(text: str) -> List[str]:
    """Without commands that are to be copied, and without paths."""
    return [line for line in text.splitlines() if not line.startswith(("ceph config set", "/"))]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_what_needs_no_cluster_fits_and_keeps_every_word(
    words: Tuple[str, ...], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = {}
    for width in (80, 400):
        monkeypatch.setattr(render.console, "_width", width)
        code, shown[width], err = run(*words)
        assert code == 0, err
    assert max(map(len, rows_of(shown[80]))) <= 80
    assert set(shown[400].split()) <= set(shown[80].split())
    assert "…" not in shown[80]


@pytest.mark.parametrize("release", RELEASES)
def test_knobs_of_a_release_leave_out_the_range_alone_and_say_so(
    release: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render.console, "_width", 80)
    _, out, _ = run("knobs", "--release", release)
    assert max(map(len, out.splitlines())) <= 80
    assert out.splitlines()[-1].endswith("; and the range")


def drawn(page: RenderableType) -> str:
    """At 80 columns; nothing of what a wide terminal shows is missing."""
    texts = []
    for width in (80, 1000):
        console = Console(width=width, highlight=False)
        with console.capture() as captured:
            console.print(page)
        texts.append(captured.get())
    narrow, wide = texts
    assert max(map(len, narrow.splitlines())) <= 80
    assert set(wide.split()) <= set(narrow.split())
    return narrow


def test_steps_of_a_host_with_a_long_name() -> None:
    name = "osd_mclock_scheduler_background_best_effort_res"
    text = drawn(step_table([Step(f"osd/host:{HOST}", name, None, "0.123456"), Step("osd.1234", name, "0.1", None)]))
    assert HOST in text
    assert "osd.1234" in text


def entry(**changed: Any) -> Entry:
    steps = (Step(f"osd/host:{HOST}", "osd_max_scrubs", None, "1"),)
    who, where = f"ceph-tuner apply by root on {HOST}", f"osd/host:{HOST}"
    made = Entry(1234, "applied", 1.7e9, 1.7e9, who, "fewer scrubs", "tentacle", where, steps, ())
    return replace(made, **changed)


def test_a_history_of_long_names_and_reasons() -> None:
    noted = entry(number=1235, note="not applied: osd.1234 shows osd_max_scrubs = 3, expected 1, 30 s after it was set")
    text = drawn(history._table([entry(), noted]))
    assert "1235" in text


def test_a_fleet_with_long_names() -> None:
    member: Any = SimpleNamespace(name=CLUSTER)
    change = NewestChange(1234, 1.7e9, "applied", "osd", "root", "why", False)
    profile = "balanced 2, custom 1, high_recovery_ops 4"
    standing = Standing(4321, 4320, None, ("a",) * 123, change, warnings=(), notes=())
    found = Status(
        **vars(standing),
        release="tentacle",
        version="20.2.4",
        versions=("20.2.4", "18.2.7"),
        profile=profile,
        profile_certain=False,
        capacities_wrong=1234,
        capacity=(),
    )
    answers = [MemberAnswer(member, found), MemberAnswer(SimpleNamespace(name="b"), None, f"no {HOST}", "failed")]  # type: ignore[arg-type]
    text = drawn(fleet._table(answers))
    assert CLUSTER in text
    assert "4320/4321" in text


def test_labs_and_their_loads() -> None:
    options = {
        "groups": "3xnvme,3xhdd",
        "storage": "ram",
        "iops": 1234567,
        "bandwidth": 1 << 40,
        "device_size": 1 << 40,
        "shards": 0,
        "osds": 6,
        "drives": {},
    }
    found = {"name": CLUSTER, "release": "tentacle", "phase": "running", "health": "HEALTH_WARN", "options": options}
    assert CLUSTER in drawn(lab._many([found, {**found, "name": "b"}]))
    daemons = [{"name": f"osd.{osd}", "pid": 1234567, "device": "/dev/loop123"} for osd in range(3)]
    drawn(lab._one({**found, "directory": f"/var/lib/{CLUSTER}", "daemons": daemons}))
    measured = {"mean": 123456.7, "deviation": 1234.5}
    metrics = {"client.write_bytes_s": measured, "recovery.objects_left": measured}
    window = {"metrics": metrics, "remarks": ["recovery ran out of work after 12 s of 30 s " * 3]}
    assert "recovery.objects_left" in drawn(lab_load_run._table([window] * 9))


def test_what_the_plugin_says_of_itself() -> None:
    path = f"/usr/share/ceph/mgr/{HOST}"
    drawn(mgr._table({"path": path, "build": "0.1.0-12345678", "running": None, "modules": [HOST, "dashboard"] * 4}))


def test_a_comparison_of_five_settings_with_intervals() -> None:
    headings = ["in force\n(mine)", "high_\nclient_ops", "balanced", "high_\nrecovery_ops", "recommended\n(trial 123)"]
    table = columns("objective", *headings, keep=headings)
    cells = ["✗ 1234 ms\n  1200–1300"] * 5
    table.add_row("client.write_p99_ms <= 0.95 * baseline\n(soft)", *cells)
    text = drawn(table)
    assert text.count("1200–1300") == 5
    table.add_row("recovery.finish_s <= 12 h", *["✓ 123456.7 min\n  12345.6–1234567.8"] * 5)
    assert drawn(table).count("12345.6–1234567.8") == 5
