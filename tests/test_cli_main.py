"""What every command has in common: one line for an error, and the exit code."""

from __future__ import annotations

import subprocess
import sys

import pytest


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


def test_a_reader_that_leaves_early_is_no_error() -> None:
    done = subprocess.run(  # noqa: S602 - the pipe is what is tested
        f"{sys.executable} -c 'from ceph_tuner_cli.main import main; main()' knobs --format json | head -1",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout.strip() in ("{", "[")
    assert "Traceback" not in done.stderr
