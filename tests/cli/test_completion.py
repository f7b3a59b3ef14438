"""What bash offers behind a word that is begun, asked of the real bash."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Dict, List

import pytest

pytestmark = pytest.mark.slow

FLEET = """schema: 1
clusters:
  paris:
    ceph: {conf: /etc/ceph/paris.conf}
    labels: {tier: gold}
  berlin:
    ceph: {conf: /etc/ceph/berlin.conf}
    labels: {tier: silver}
"""
PROGRAM = "import sys; sys.argv[0] = 'ceph-tuner'; from ceph_tuner_cli.main import main; main()"
ASK = """
source completion
COMP_WORDS=("$@")
COMP_CWORD=$(( $# - 1 ))
_ceph_tuner_completion ceph-tuner
printf '%s\\n' "${COMPREPLY[@]}"
"""


def environment(here: Path) -> Dict[str, str]:
    return {
        **os.environ,
        "PATH": f"{here / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        # which shell asks is seen from the processes above, and here pytest is among them
        "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
    }


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place where the program is installed, with what it says to bash."""
    place = tmp_path_factory.mktemp("here")
    program = place / "bin" / "ceph-tuner"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\n{PROGRAM}\n", encoding="utf-8")
    program.chmod(0o755)
    (place / "fleet.yaml").write_text(FLEET, encoding="utf-8")
    with (place / "completion").open("w") as script:
        subprocess.run([program, "--show-completion", "bash"], stdout=script, check=True, env=environment(place))
    return place


def offered(here: Path, *words: str) -> List[str]:
    done = subprocess.run(
        ["bash", "-c", ASK, "bash", "ceph-tuner", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=here,
        env=environment(here),
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["pro"], ["profile"]),
        (["profile", "show", "reef/high"], ["reef/high_client_ops", "reef/high_recovery_ops"]),
        (["apply", "--set", "osd_max_s"], ["osd_max_scrubs="]),
        (["tune", "--knobs", "osd_max_scrubs,osd_max_tr"], ["osd_max_scrubs,osd_max_trimming_pgs"]),
        (["example", "nvme-6"], ["nvme-60"]),
        (["knobs", "--release", "squ"], ["squid"]),
        (["fleet", "status", ""], ["paris", "berlin"]),
        (["fleet", "status", "--label", "ti"], ["tier=gold", "tier=silver"]),
        (["apply", "--cluster", "cep"], ["ceph"]),
        (["history", "--format", "y"], ["yaml"]),
        (["lab", "load", "scenario", "client-scr"], ["client-scrub"]),
        (["rollback", "--qu"], ["--quiet"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_bash_offers_what_is_known_here(here: Path, words: List[str], found: List[str]) -> None:
    assert offered(here, *words) == found


def test_every_command_is_offered(here: Path) -> None:
    assert {"doctor", "tune", "fleet", "lab", "watch"} <= set(offered(here, ""))


def test_a_path_is_left_to_the_shell(here: Path) -> None:
    assert offered(here, "apply", "--cluster", "/etc/ce") == []


def test_a_fleet_that_cannot_be_read_offers_nothing_and_says_nothing(here: Path) -> None:
    (here / "broken.yaml").write_text("clusters: [", encoding="utf-8")
    assert offered(here, "fleet", "status", "--fleet", "broken.yaml", "") == []


def test_completion_and_help_wait_for_no_numerical_library_and_those_of_one_cluster_for_none_of_http() -> None:
    # one process for all: what one command has imported stays
    script = """
import json, os, sys
from ceph_tuner_cli.main import main
heavy = {"scipy", "sklearn", "skopt", "matplotlib", "numba", "dask", "requests"}
for words in json.loads(sys.argv.pop()):
    sys.argv = ["ceph-tuner"]
    os.environ.update(COMP_CWORD=str(len(words)), COMP_WORDS="\\n".join(["ceph-tuner", *words]))
    try:
        main()
    except SystemExit:
        pass
    if words[0] == "fleet":
        heavy.discard("requests")
    assert not heavy & set(sys.modules), (words, heavy & set(sys.modules))
"""
    of_one_cluster = [
        ["--help"],
        ["apply", "--cl"],
        ["tune", "--cl"],
        ["report", "--cl"],
        ["recommend", "--kn"],
        ["twin", "fit", "--fo"],
    ]
    done = subprocess.run(
        [sys.executable, "-c", script, json.dumps([*of_one_cluster, ["fleet", "status", ""]])],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "_CEPH_TUNER_COMPLETE": "complete_bash",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert {"--cluster", "--knobs", "--format"} <= set(done.stdout.split())


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_are_told_what_each_value_is(here: Path, shell: str) -> None:
    asked = {
        "_CEPH_TUNER_COMPLETE": f"complete_{shell}",
        "_TYPER_COMPLETE_ARGS": "ceph-tuner knobs osd_max_scr",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    done = subprocess.run(
        ["ceph-tuner"], capture_output=True, text=True, check=True, env={**environment(here), **asked}, cwd=here
    )
    assert "osd_max_scrubs" in done.stdout
    assert "scrubs that an OSD takes part in at once" in done.stdout
