from __future__ import annotations

import pytest

from ceph_tuner.core.measure.metrics import METRICS
from ceph_tuner.core.measure.sample import NEVER_S
from tuner import render


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "ms", "-"),
        (3.4e6, "B/s", "3.40 MB/s"),
        (0.0, "B/s", "0 B/s"),
        (12345.0, "1", "12.3 k"),
        (200.2, "1/s", "200/s"),
        (1234.5, "ms", "1234 ms"),
        (0.25, "ms", "0.25 ms"),
        (90.0, "s", "90 s"),
        (NEVER_S, "s", "never"),
    ],
)
def test_numbers_are_short_and_carry_their_unit(value: float, unit: str, text: str) -> None:
    assert render.number(value, unit) == text


def test_columns_line_up() -> None:
    assert render.table(["A", "B"], [["long", "x"], ["s", "y"]]) == "A     B\nlong  x\ns     y"


def test_a_plan_says_that_nothing_is_written_without_yes() -> None:
    change = {"who": "osd", "name": "n", "old": None, "new": "1", "command": "ceph config set osd n 1"}
    found = {"profile": "p", "target": "osd", "osds": [0], "changes": [change], "warnings": ["w"], "applied": False}
    text = render.plan({**found, "change": None})
    assert "nothing is written without --yes" in text
    assert "ceph config set osd n 1" in text
    assert "rollback" in render.plan({**found, "applied": True, "change": 7})
    assert "nothing to write" in render.plan({**found, "changes": [], "change": None})


LONG = "storage-node-with-a-name-of-40-characters"


def fits(text: str) -> bool:
    return all(len(line) <= 80 for line in text.splitlines())


def test_the_history_of_a_large_cluster_fits_a_terminal_and_keeps_every_word() -> None:
    measures = {
        "client.iops": [1234567.0, 1.0, 12],
        "client.p95_ms": [1234.5, 1.0, 12],
        "recovery.bytes_s": [1.234e9, 1.0, 12],
        "scrub.bytes_s": [1.234e9, 1.0, 12],
        "snaptrim.objects_s": [12345.6, 1.0, 12],
    }
    change = {
        "change": 1234,
        "at": 1.7e9,
        "state": "applied",
        "target": f"osd/host:{LONG}",
        "who": f"tuner on {LONG}",
        "note": "",
    }
    trial = {"at": 1.7e9, "kind": "trial", "label": "trial 12", "measures": measures}
    text = render.history(
        {
            "windows": [{"end": 1.7e9, "measures": measures}],
            "changes": [{**change, "why": "fewer scrubs at once, as the clients' objective was missed for an hour"}],
            "trials": [{**trial, "failed": "PGs became inactive while the OSDs of two hosts were restarted by hand"}],
        }
    )
    assert fits(text)
    for words in ("1.23M/s", "1234 ms", "1.23 GB/s", "2023-11-14", f"osd/host:{LONG}", "missed", "inactive"):
        assert words in text


def test_a_status_of_thousands_of_osds_fits_a_terminal() -> None:
    rows = [{"osd": osd, "iops": 315.0 + (osd % 1000 == 7), "source": "default"} for osd in range(4000)]
    assert fits(render.capacity(rows))
    assert "osd.0 to osd.6, osd.8 to osd.1006" in " ".join(render.capacity(rows).split())
    settings = {f"osd_mclock_scheduler_background_best_effort_{part}": 0.123456 for part in ("res", "wgt", "lim")}
    document = {
        "version": "0.1.0",
        "release": "tentacle",
        "sampling": {"age": 12.0, "interval": 5.0, "tick_ms": 1234.5},
        "window": {"measures": {name: [1.23456e9, 0.0, 12] for name in METRICS}},
        "pg_states": {f"active+remapped+backfilling+state{number}": 12345 for number in range(9)},
        "slo": [],
        "in_force": {"settings": settings, "agree": False, "osds": ["osd.1234"]},
        "capacity": rows,
        "last_trial": {
            "kind": "trial", "label": "trial 12", "at": 1.7e9, "seconds": 1.0,
            "failed": "an operation of osd.1234 was slower than 30 s, which the guard does not allow",
        },
        "notes": [f"no sample of osd.1234 on {LONG}, which does not answer the questions of the mgr in time"],
    }  # fmt: skip
    assert fits(render.status(document))


def test_what_is_counted_is_told_as_the_newest_sample_has_it() -> None:
    document = {
        "version": "0.1.0",
        "release": "tentacle",
        "sampling": {"age": 2.0, "interval": 5.0, "tick_ms": 1.0},
        "window": {"measures": {"pgs.inactive": [15.6, 0, 12], "osds.down": [0.83, 0, 12], "ops.slow": [0.4, 0, 12]}},
        "newest": {"pgs.inactive": 0.0, "osds.down": 1.0},
        "pg_states": {}, "slo": [], "in_force": {"settings": {}}, "capacity": [], "last_trial": None, "notes": [],
    }  # fmt: skip
    words = " ".join(render.status(document).split())
    assert "trouble 0 slow operations, 0 PGs inactive, - laggy, 1 OSDs down" in words
    assert "last sample 2 s ago" in words
    document["sampling"] = {"age": -3600.0, "interval": 5.0, "tick_ms": 1.0}
    words = " ".join(render.status(document).split())
    assert "last sample 3600 s ahead of the clock, which was set back" in words


def test_commands_stay_on_one_line_whatever_their_length() -> None:
    command = f"ceph config set osd/host:{LONG} osd_mclock_scheduler_background_best_effort_res 0.25"
    change = {"who": f"osd/host:{LONG}", "name": "osd_mclock_scheduler_background_best_effort_res", "old": None}
    found = {"profile": "p", "target": "osd", "osds": [0], "warnings": [], "applied": False, "change": None}
    lines = render.plan({**found, "changes": [{**change, "new": "0.25", "command": command}]}).splitlines()
    assert lines[-1] == command
    assert all(len(line) <= 80 for line in lines[:-1])
