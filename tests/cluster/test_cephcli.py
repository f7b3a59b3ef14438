"""What reaches the ceph program as one of its options: nothing that came from elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import List, Sequence

import pytest

from ceph_tuner.cluster.cephcli import CephCli
from ceph_tuner.core.errors import InputError


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "ceph"
    path.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\" > " + str(tmp_path / "given") + "\necho '{}'\n")
    path.chmod(0o755)
    return path


def given(program: Path) -> List[str]:
    return (program.parent / "given").read_text().splitlines()


def cli(program: Path) -> CephCli:
    def launch(command: Sequence[str]) -> List[str]:
        return [str(program), *command[1:]]

    return CephCli(launch)


@pytest.mark.parametrize(
    "value",
    ["--out-file=/etc/shadow", "-o/etc/shadow", "--id=admin", "-", "--", "--force", "-c", "-i", "-1x", "--value "],
)
def test_a_value_that_is_an_option_is_refused_before_the_program_starts(program: Path, value: str) -> None:
    with pytest.raises(InputError, match="no option of the ceph program"):
        cli(program).mon("config set", {"who": "osd", "name": "osd_max_scrubs", "value": value})
    with pytest.raises(InputError, match="no option of the ceph program"):
        cli(program).tell("osd.0", "config get", {"var": value})
    assert not (program.parent / "given").exists()


def test_the_programs_own_options_stand_before_the_command_and_its_values(program: Path) -> None:
    cli(program).mon("config set", {"who": "osd", "name": "osd_recovery_sleep", "value": "-1.5"})
    assert given(program)[-5:] == ["config", "set", "osd", "osd_recovery_sleep", "-1.5"]
    assert given(program)[:4] == ["--connect-timeout", "30", "--format", "json"]
    cli(program).mon("config-key set", {"key": "mgr/tuner/a"}, payload="--x")
    assert given(program)[-5:] == ["-i", "-", "config-key", "set", "mgr/tuner/a"]
    cli(program).mon("mgr module enable", {"module": "tuner", "force": "--force"})
    assert given(program)[-2:] == ["tuner", "--force"]
    cli(program).mon("status", {})
    assert given(program)[-1] == "status"


def test_an_argument_of_several_words_reaches_the_program_as_words_and_brings_no_option(program: Path) -> None:
    cli(program).mon("osd pg-upmap-items", {"pgid": "1.0", "id": "3 5 4 6"})
    assert given(program)[-5:] == ["1.0", "3", "5", "4", "6"]
    with pytest.raises(InputError, match="no option of the ceph program"):
        cli(program).mon("osd pg-upmap-items", {"pgid": "1.0", "id": "3 --force"})
