"""What every command has in common: one line for an error, and the exit code."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def ceph_tuner(*words: str) -> subprocess.CompletedProcess:
    program = "from ceph_tuner_cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["nosuch"], "nosuch"),
        (["lab", "up", "--osds", "x"], "--osds"),
        (["lab", "up", "--nosuch"], "--nosuch"),
        (["tune"], "--cluster"),
        (["knobs", "osd_max_scrub"], "osd_max_scrubs"),
        (["knobs", "--release", "15.2.1"], "15.2.1"),
        (["rollback", "--cluster", "nosuch"], "nosuch"),
        (["rollback", "--cluster", "/nosuch/ceph.conf"], "/nosuch/ceph.conf"),
        (["profile", "check", "/nosuch.yaml"], "/nosuch.yaml"),
        (["slo", "check", "/nosuch.yaml"], "/nosuch.yaml"),
        (["twin", "replay", "/nosuch.gz"], "/nosuch.gz"),
    ],
    ids=lambda value: "_".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_used_ends_in_one_line_that_names_it_and_exit_code_2(words: list, named: str) -> None:
    done = ceph_tuner(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert named in line


def test_help_and_version_are_no_errors() -> None:
    assert ceph_tuner("--help").returncode == 0
    assert ceph_tuner("lab", "up", "-h").returncode == 0
    assert ceph_tuner("--version").stdout.startswith("ceph-tuner ")


@pytest.mark.parametrize("words", [(), ("profile",), ("fleet",)], ids=" ".join)
def test_a_group_without_a_command_shows_its_help_and_nothing_else(words: tuple) -> None:
    done = ceph_tuner(*words)
    assert done.returncode == 2
    assert "Usage: " in done.stdout + done.stderr
    assert "error:" not in done.stdout + done.stderr


@pytest.mark.parametrize(("form", "first"), [("json", "["), ("yaml", "-"), ("table", "Knobs")])
def test_a_reader_that_leaves_early_is_no_error(form: str, first: str) -> None:
    program = f"{sys.executable} -c 'from ceph_tuner_cli.main import main; main()' knobs --format {form}"
    # read a line, then leave; what is printed is more than a pipe holds
    many = " ".join(["osd_max_scrubs"] * 300) if form != "table" else ""
    done = subprocess.run(
        ["bash", "-c", f"{program} {many} | head -1; exit ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout.startswith(first)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_that_leaves_a_help_text_early_is_no_error() -> None:
    # the reading end is closed before anything is written
    reading, writing = os.pipe()
    os.close(reading)
    program = "from ceph_tuner_cli.main import main; main()"
    with os.fdopen(writing) as gone:
        done = subprocess.run(
            [sys.executable, "-c", program, "--help"], stdout=gone, stderr=subprocess.PIPE, check=False
        )
    assert (done.returncode, done.stderr) == (0, b"")


BUSY = """
import sys, time
from pathlib import Path
from ceph_tuner_cli import main
from ceph_tuner_cli.render import say, working

def app(**_):
    try:
        with working("busy"):
            Path(sys.argv[1]).write_text("begun")
            # in pieces: a signal that strikes just before a sleep begins is heard only when that one is over
            for _ in range(600):
                time.sleep(0.1)
    finally:
        say(["taking back"])
        # a shell that is hung up on sends its own after the kernel's
        if sys.argv[2:]:
            import os
            os.kill(os.getpid(), int(sys.argv[2]))
        Path(sys.argv[1]).write_text("taken back")

main.app = app
main.main()
"""


def begun(path: Path, process: subprocess.Popen[bytes]) -> None:
    while not path.exists():
        assert process.poll() is None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_every_signal_that_ends_a_command_has_taken_back_what_it_began_and_130(
    tmp_path: Path, number: signal.Signals
) -> None:
    path = tmp_path / "state"
    again = [] if number is signal.SIGINT else [str(int(number))]
    with subprocess.Popen([sys.executable, "-c", BUSY, str(path), *again], stderr=subprocess.PIPE) as process:
        begun(path, process)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, path.read_text()) == (130, "taken back")
    assert err == b"taking back\ninterrupted\n"


def test_a_terminal_that_is_gone_keeps_nothing_from_being_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "state"
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", BUSY, str(path)], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as process:
        os.close(theirs)
        begun(path, process)
        os.close(ours)
        process.send_signal(signal.SIGHUP)
        process.wait(60)
    assert (process.returncode, path.read_text()) == (130, "taken back")


def test_nohup_is_respected(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with subprocess.Popen(["nohup", sys.executable, "-c", BUSY.replace("600", "10"), str(path)]) as process:
        begun(path, process)
        process.send_signal(signal.SIGHUP)
        process.wait(60)
    assert (process.returncode, path.read_text()) == (0, "taken back")
