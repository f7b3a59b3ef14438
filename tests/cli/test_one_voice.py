"""What every command says, and where: on a terminal of 80 by 24, into a pipe, and when it shall be quiet."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import Tuple

import pytest

from ceph_tuner.core.knobs.cost import Hardware
from ceph_tuner.core.knobs.releases import TENTACLE, nine
from ceph_tuner.core.profiles.profile import Profile
from ceph_tuner.files import profile_file

pytestmark = pytest.mark.slow

PROGRAM = "from ceph_tuner_cli.main import main; main()"
SLOW = """
import time
from ceph_tuner_cli.render import be_quiet, say, working
be_quiet({quiet})
with working("simulating") as tell:
    say(["a note that stays"])
    for number in range(4):
        time.sleep(0.1)
        tell("half of it", number, 4)
print("the result")
"""
COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-9][0-9;]*m")
ESCAPE = "\x1b"


def environment(**more: str) -> dict:
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "CI")}
    return {**kept, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "TERM": "xterm-256color", **more}


def piped(program: str, *words: str, **more: str) -> Tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=True, env=environment(**more)
    )
    return done.stdout, done.stderr


def on_terminal(program: str, *words: str, columns: int = 80, **more: str) -> str:
    """What a terminal gets to see, escapes included."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen(
        [sys.executable, "-c", program, *words], stdin=theirs, stdout=theirs, stderr=theirs, env=environment(**more)
    ) as process:
        os.close(theirs)
        seen = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:
                break
            if not part:
                break
            seen += part
    os.close(ours)
    assert process.returncode == 0, seen
    return seen.decode().replace("\r\n", "\n")


@pytest.fixture
def night(tmp_path: Path) -> str:
    """A profile whose translation has something to say."""
    shares = nine((0.5, 8, 0.0), (0.2, 1, 0.5), (0.05, 1, 0.3))
    path = tmp_path / "night.yaml"
    profile_file.write(path, Profile.make("night", TENTACLE, shares, hardware=Hardware(935, 62914560, 1)))
    return str(path)


def test_quiet_leaves_the_result_alone_before_the_command_and_after_it(night: str) -> None:
    words = ("profile", "show", night, "--release", "reef")
    out, err = piped(PROGRAM, *words)
    assert "note: " in err
    for quiet in (("-q", *words), (*words, "--quiet"), ("profile", "-q", *words[1:])):
        assert piped(PROGRAM, *quiet) == (out, "")


def test_an_error_is_heard_all_the_same() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "-q", "slo", "check", "/nosuch.yaml"],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: /nosuch.yaml")


def test_colours_are_for_terminals_that_have_them_and_want_them() -> None:
    words = ("profile", "ls")
    assert ESCAPE in on_terminal(PROGRAM, *words)
    assert ESCAPE not in piped(PROGRAM, *words)[0]
    assert ESCAPE not in on_terminal(PROGRAM, *words, TERM="dumb")
    assert not COLOUR.search(on_terminal(PROGRAM, *words, "--help"))


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_document_has_no_colours_and_is_not_wrapped_even_on_a_narrow_terminal(form: str, night: str) -> None:
    words = ("profile", "show", night, "--format", form)
    seen = on_terminal(PROGRAM, *words, columns=40)
    assert ESCAPE not in seen
    assert seen == piped(PROGRAM, *words)[0]
    command = "ceph config set osd osd_mclock_scheduler_background_best_effort_wgt 1"
    assert any(line.strip(' -",') == command for line in seen.splitlines())
    if form == "json":
        assert json.loads(seen)["name"] == "night"


def test_commands_to_be_copied_are_one_line_on_a_narrow_terminal(night: str) -> None:
    seen = on_terminal(PROGRAM, "profile", "show", night, "--quiet", columns=40)
    assert "\nceph config set osd osd_mclock_scheduler_background_best_effort_wgt 1\n" in seen


def test_progress_is_seen_on_a_terminal_and_gone_at_the_end() -> None:
    seen = on_terminal(SLOW.format(quiet=False))
    assert "simulating" in seen
    assert "half of it" in seen
    end = seen.rpartition("half of it")[2]
    # the line is erased, and what comes then is the result
    assert f"{ESCAPE}[2K" in end
    assert end.rstrip().endswith("the result")
    assert "a note that stays" in seen


def test_work_within_work_speaks_on_the_same_line_and_gives_it_back() -> None:
    program = """
import time
from ceph_tuner_cli.render import working
with working("all of it"):
    time.sleep(0.2)
    with working("a part") as tell:
        tell("a part", 1, 2)
        time.sleep(0.2)
    time.sleep(0.2)
"""
    seen = on_terminal(program)
    assert seen.index("all of it") < seen.index("a part") < seen.rindex("all of it")
    assert f"{ESCAPE}[1A{ESCAPE}[2K{ESCAPE}[1A" not in seen


def test_progress_fits_a_narrow_terminal_on_one_line() -> None:
    words = SLOW.format(quiet=False).replace("half of it", "a line that is much too long for a terminal like this")
    seen = on_terminal(words, columns=40)
    assert f"{ESCAPE}[1A{ESCAPE}[2K{ESCAPE}[1A" not in seen, "more than one line was taken back"
    assert "…" in seen


@pytest.mark.parametrize("quiet", [False, True])
def test_there_is_no_progress_without_a_terminal_and_none_when_quiet(quiet: bool) -> None:
    assert piped(SLOW.format(quiet=quiet)) == ("the result\n", "" if quiet else "a note that stays\n")
    seen = on_terminal(SLOW.format(quiet=quiet), **({} if quiet else {"TERM": "dumb"}))
    assert seen == ("the result\n" if quiet else "a note that stays\nthe result\n")


def test_lines_of_several_searches_are_seen_on_a_terminal_only() -> None:
    program = """
from ceph_tuner_cli.fleet_recommend_page import FleetProgress
with FleetProgress(2):
    pass
"""
    assert piped(program) == ("", "")
    seen = on_terminal(program)
    assert "preparing" in seen
    assert seen.endswith(f"{ESCAPE}[2K")
