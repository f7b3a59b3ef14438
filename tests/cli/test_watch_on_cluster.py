"""The live view of a real cluster, on a terminal of 80 columns and 24 lines."""

from __future__ import annotations

import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from contextlib import closing
from typing import List

from ceph_lab.cluster import Lab
from ceph_tuner.cluster import open_cluster

PROGRAM = [sys.executable, "-c", "from ceph_tuner_cli.main import main; main()"]
HOME, LEAVE, CURSOR = "\x1b[H", "\x1b[?1049l", "\x1b[?25h"


def on_a_terminal(*words: str, until: str, seconds: float) -> str:
    """What the program writes until it has written some words; then Ctrl-C is typed."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    process = subprocess.Popen(
        [*PROGRAM, *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        env={**environment, "TERM": "xterm-256color"},
    )
    os.close(theirs)
    written, end_s = "", time.monotonic() + seconds
    try:
        while until not in written:
            assert time.monotonic() < end_s, written
            if select.select([ours], [], [], 0.5)[0]:
                written += os.read(ours, 1 << 16).decode()
        process.send_signal(signal.SIGINT)
        try:
            while more := os.read(ours, 1 << 16).decode():
                written += more
        except OSError:
            # the other end is closed
            pass
        assert process.wait(30) == 0, written
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    return written


def plain(page: str) -> List[str]:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", page).splitlines()


def test_a_terminal_shows_rates_objectives_queues_and_what_is_on_trial_and_is_given_back(tentacle_lab: Lab) -> None:
    with closing(open_cluster(tentacle_lab.name)) as cluster:
        applier = cluster.applier()
        before = cluster.store.get("slo")
        cluster.store.set("slo", '{"name": "watched", "objectives": ["scrub.pgs_late <= 100000"]}')
        entry = applier.apply(applier.plan("osd", {"osd_max_scrubs": 2}), "a trial to look at", trial=True)
        try:
            words = ("watch", "--cluster", tentacle_lab.name, "--interval", "2")
            written = on_a_terminal(*words, until="a trial to look at", seconds=90)
        finally:
            if entry is not None:
                applier.undo_entry(entry)
            cluster.store.remove("slo")
            if before is not None:
                cluster.store.set("slo", before)
    page = plain(written.rpartition(HOME)[2].partition(LEAVE)[0])
    shown = "\n".join(page)
    for part in (
        f"{tentacle_lab.name}, Ceph ",
        "recovery",
        "snaptrim",
        "done in",
        "queue per OSD: client",
        "no OSDs",
    ):
        assert part in shown, shown
    assert re.search(r"scrub.pgs_late <= 100000 +hard +\d+ +\+\d+% +met", shown)
    assert re.search(r"On trial for \d+ s: change \d+, target osd: a trial to look at", shown)
    assert all(len(line) <= 80 for line in page)
    # the terminal is as it was: its own screen, with a cursor
    assert LEAVE in written
    assert written.rindex(CURSOR) > written.index(HOME)
