"""Every command of the documentation runs, page by page as a reader would: here, or on a lab where it needs a cluster.

What is only parsed has its reason in the page. The tutorial has a test of its own, which holds its output as well.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable, Iterator, List, Optional, Tuple

import pytest
from ruamel.yaml import YAML

import documented
from ceph_lab.cluster import Lab
from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.cluster.plugin import OPTION_PREFIX
from ceph_tuner.core.changes.journal import UNDONE, Journal
from ceph_tuner.core.errors import CommandFailed
from documented import DOCS, ROOT, Command
from lab_plugin import with_plugin
from running_program import in_this_process

pytestmark = pytest.mark.slow

FILES = ROOT / "tests" / "data" / "docs"
TUNED = ROOT / "profiles" / "ceph_tuner_profiles" / "tuned" / "lab-scrub.yaml"
TUTORIAL = DOCS / "tutorial.md"
FEW = {"recommend": "--trials 2 --live-only --processes 1", "compare-queues": "--trials 2 --processes 1"}
"""What is searched for on the twin here is any answer, not the best."""

Run = Callable[[str], Tuple[int, str]]


def commands(page: Path) -> List[Command]:
    """What is to be run of a page."""
    return [
        command
        for block in documented.blocks(page)
        if block.language == "console"
        for command in block.commands
        if not command.unrun
    ]


def needs_a_cluster(command: Command) -> bool:
    """Whether it is about a cluster that runs."""
    for part in command.parts:
        words = part.words
        if words[0] == "ceph" or (words[0] == "ceph-tuner" and words[1] in ("lab", "fleet", "mgr")):
            return True
        if words[0] == "ceph-tuner" and {"--cluster", "-c"} & set(words):
            return True
    return False


PAGES = [page for page in documented.pages() if page != TUTORIAL and commands(page)]
HERE = [page for page in PAGES if not any(map(needs_a_cluster, commands(page)))]
ON_A_LAB = [page for page in PAGES if page not in HERE]


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the files that the pages speak of."""
    for name in ("examples", "dashboards"):
        shutil.copytree(ROOT / name, tmp_path / name)
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    for given, names in {
        FILES / "my-cluster.yaml": ["my-cluster.yaml"],
        FILES / "my-slo.yaml": ["my-slo.yaml", "slo.yaml"],
        TUNED: ["night.yaml"],
    }.items():
        for name in names:
            shutil.copy(given, tmp_path / name)
    (tmp_path / "mine.json").write_text(json.dumps(YAML(typ="safe", pure=True).load(TUNED)), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("CEPH_TUNER_FLEET", raising=False)
    return tmp_path


def execute(page: Path, run: Run) -> None:
    """Run a page's commands in order, and hold each against the exit code that the page gives it."""
    for command in commands(page):
        code, said = run(command.text)
        assert code == command.exits, f"{named(page)}:{command.line} `{command.text}` ended with {code}:\n{said}"


def fewer(text: str) -> str:
    """The same command with a search of a few trials."""
    text = text.replace(".venv/bin/ceph-tuner", "ceph-tuner")
    for command, few in FEW.items():
        text = re.sub(rf"(ceph-tuner {command} [^|>&]*?)(?= *(?:$|[|>&]))", rf"\1 {few}", text)
    return text


@pytest.mark.parametrize("page", HERE, ids=named)
def test_commands_that_need_no_cluster_run_as_they_stand_there(page: Path, desk: Path) -> None:
    execute(page, running(desk))


def plain_words(text: str) -> List[str]:
    """The words of a line in which nothing is left to a shell; else none."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    words = list(lexer)
    return [] if any(set(word) <= set("|&;<>()") for word in words) else words


def running(desk: Path, lab: Optional[Lab] = None) -> Run:
    """Runs a line: plain ones of `ceph-tuner` in this process and of `ceph` by the lab's, the rest by a shell."""
    programs = desk / ".bin"
    programs.mkdir(exist_ok=True)
    start = f'exec {sys.executable} -c "from ceph_tuner_cli.main import main; main()" "$@"'
    ceph = {} if lab is None else {"ceph": f'exec {shlex.join(lab.argv(["ceph"]))} "$@"'}
    for name, line in {"ceph-tuner": start, **ceph}.items():
        (programs / name).write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
        (programs / name).chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }

    def run(text: str) -> Tuple[int, str]:
        text = fewer(text)
        words = plain_words(text)
        # `lab exec` becomes the command that it runs
        if words[:1] == ["ceph-tuner"] and "exec" not in words:
            return in_this_process(words)
        if words[:1] == ["ceph"] and lab is not None:
            return by_the_lab(lab, words)
        done = subprocess.run(
            ["bash", "-c", text], cwd=desk, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        return done.returncode, done.stdout + done.stderr

    return run


def by_the_lab(lab: Lab, words: List[str]) -> Tuple[int, str]:
    try:
        return 0, lab.run(words, timeout=120)
    except CommandFailed as error:
        return error.code, str(error)


# on a lab


@pytest.fixture(scope="module")
def loaded(tentacle_lab: Lab) -> Iterator[Cluster]:
    """A lab with this tree's plugin."""
    with with_plugin(tentacle_lab) as cluster:
        deadline = time.monotonic() + 40
        while not json.loads(cluster.commander.mon("tuner status", {}))["window"]:
            assert time.monotonic() < deadline, "no sample in time"
            time.sleep(1)
        yield cluster


@pytest.fixture
def restored(loaded: Cluster) -> Iterator[Cluster]:
    """What a page has changed and left is taken back, and nothing is left of it."""
    before = loaded.config.dump()
    yield loaded
    loaded.commander.mon("tuner auto off", {})
    loaded.commander.mon("tuner slo rm", {"metric": "all"})
    if any(entry.state != UNDONE for entry in Journal(loaded.store).entries()):
        loaded.applier().undo(everything=True)
    for key in loaded.store.keys("profile/"):
        loaded.store.remove(key)
    changed = [entry for entry in loaded.config.dump() if entry not in before]
    assert [entry for entry in changed if not entry.name.startswith(OPTION_PREFIX)] == []


def on_the_lab(text: str, lab: str) -> str:
    """The same command for the lab of the tests instead of the reader's cluster."""
    text = re.sub(r"--cluster (?:ceph|lab(?:-reef)?)\b", f"--cluster {lab}", text)
    text = re.sub(r"ceph-tuner lab exec (?!--name)", f"ceph-tuner lab exec --name {lab} ", text)
    text = re.sub(r"ceph-tuner lab load clean\b", f"ceph-tuner lab load clean --name {lab}", text)
    return re.sub(r"--name lab\b", f"--name {lab}", text)


@pytest.mark.parametrize("page", ON_A_LAB, ids=named)
def test_commands_that_need_a_cluster_run_on_a_lab(
    page: Path, desk: Path, restored: Cluster, tentacle_lab: Lab
) -> None:
    fleet = (FILES / "fleet.yaml").read_text(encoding="utf-8").replace("LAB", tentacle_lab.name)
    (desk / "fleet.yaml").write_text(fleet, encoding="utf-8")
    run = running(desk, tentacle_lab)
    execute(page, lambda text: run(on_the_lab(text, tentacle_lab.name)))


_VALIDATE = """
import contextlib, io, json, sys, rados
from ceph_argparse import json_command, parse_json_funcsigs, validate_command
cluster = rados.Rados(conffile="/lab/ceph.conf", name="client.admin")
cluster.connect(timeout=30)
code, found, words = json_command(cluster, prefix="get_command_descriptions")
signatures = parse_json_funcsigs(found.decode(), "cli")
with contextlib.redirect_stderr(io.StringIO()):
    print(json.dumps([bool(validate_command(signatures, each)) for each in json.load(sys.stdin)]))
"""


def test_what_is_only_parsed_of_cephs_own_program_is_what_this_ceph_takes(loaded: Cluster, tentacle_lab: Lab) -> None:
    found = {
        (block.place, command.text): arguments(part.words)
        for block in documented.every_block("console")
        for command in block.commands
        if command.unrun
        for part in command.parts
        if part.words[0] == "ceph"
    }
    # the dashboard is not switched on here: it has tests of its own
    asked = {place: words for place, words in found.items() if words and words[0] not in ("dashboard", "tell")}
    assert asked
    answers = json.loads(tentacle_lab.run(["python3", "-c", _VALIDATE], payload=json.dumps(list(asked.values()))))
    assert [place for place, good in zip(asked, answers) if not good] == []


def arguments(words: List[str]) -> List[str]:
    """What the `ceph` program sends, without its own options."""
    left, own = iter(words[1:]), []
    for word in left:
        if word in ("-i", "-o", "-n", "-k", "-f", "--format", "--name", "--keyring", "-W"):
            next(left)
        elif word not in ("-s", "-w"):
            own.append(word)
    return own
