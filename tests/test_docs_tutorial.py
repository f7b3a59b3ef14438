"""The tutorial, followed to the letter on a lab of its own: exit codes, and the words of the output that it shows.

Beside the comments of `documented.py`, above a block:

    <!-- file: NAME -->                   the block is the contents of a file that the reader writes
    <!-- asked again for N s -->          its last command is given again until it says what is shown
    <!-- on the recorded cluster -->      it is not of the lab: `test_docs_shown.py` holds it
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Dict, Iterator, List, Tuple

import pytest

import documented
from ceph_lab.teardown import down
from documented import DOCS, ROOT, Block, Command

PAGE = DOCS / "tutorial.md"
BLOCKS = [
    block
    for block in documented.blocks(PAGE)
    if not any(note.startswith("<!-- on the recorded cluster") for note in block.notes)
]
LAB = f"test-{os.getpid()}-tutorial"


def words_of(line: str) -> List[str]:
    """What is compared of a line: words, not numbers, which differ from run to run, and not what stands for `…`."""
    return re.findall(r"[A-Za-z_][A-Za-z_]+", line)


def missing(shown: Tuple[str, ...], said: str) -> str:
    """The first shown line whose words do not follow in what was said; empty where all do, in that order."""
    left = iter(words_of(said))
    for line in shown:
        if not all(any(word == other for other in left) for word in words_of(line)):
            return line
    return ""


def note(block: Block, pattern: str) -> str:
    return next((found[1] for each in block.notes if (found := re.fullmatch(pattern, each))), "")


class Reader:
    """Somebody at a shell, in a directory of their own."""

    def __init__(self, desk: Path) -> None:
        self.desk = desk
        (desk / "examples").symlink_to(ROOT / "examples")
        program = desk / ".bin" / "ceph-tuner"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -c "from ceph_tuner_cli.main import main; main()" "$@"\n')
        program.chmod(0o755)
        path = os.pathsep.join([str(program.parent), os.environ["PATH"]])
        modules = os.pathsep.join(each for each in sys.path if each)
        self.environment: Dict[str, str] = {**os.environ, "PATH": path, "PYTHONPATH": modules, "COLUMNS": "80"}

    def types(self, command: Command) -> Tuple[int, str]:
        """Exit code, and all that is said."""
        text = on_the_lab(command.text)
        with (self.desk / ".said").open("w+", encoding="utf-8") as said:
            # into a file: what goes on in the background would hold a pipe open
            done = subprocess.run(
                ["bash", "-c", text], cwd=self.desk, env=self.environment, stdin=subprocess.DEVNULL,
                stdout=said, stderr=subprocess.STDOUT, timeout=300, check=False,
            )  # fmt: skip
            said.seek(0)
            return done.returncode, said.read()

    def follows(self, block: Block) -> None:
        """A block of commands."""
        patience = float(note(block, r"<!-- asked again for (\d+) s -->") or 0)
        for command in block.commands:
            deadline = time.monotonic() + patience
            code, said = self.types(command)
            while (code, missing(command.output, said)) != (command.exits, "") and time.monotonic() < deadline:
                time.sleep(2)
                code, said = self.types(command)
            place = f"tutorial.md:{command.line} `{command.text}`"
            assert code == command.exits, f"{place} ended with {code}:\n{said}"
            assert not missing(command.output, said), f"{place} did not say:\n{missing(command.output, said)}\n\n{said}"


def on_the_lab(text: str) -> str:
    """The same command for a lab with a name of its own: somebody may have one of the usual name on this machine."""
    if text.startswith("make "):
        printed = subprocess.run(["make", "--dry-run", *text.split()[1:]], cwd=ROOT, capture_output=True, text=True)
        calls = [line.split() for line in printed.stdout.splitlines() if line.split(" ")[0].endswith("/ceph-tuner")]
        assert calls, text
        return " && ".join(on_the_lab(shlex.join(["ceph-tuner", *words[1:]])) for words in calls)
    text = re.sub(r"--cluster lab\b", f"--cluster {LAB}", text)
    text = re.sub(r"--name lab\b", f"--name {LAB}", text)
    return re.sub(r"ceph-tuner lab (up|exec|down|load [a-z-]+)\b(?! --name)", rf"ceph-tuner lab \1 --name {LAB}", text)


@pytest.fixture
def reader(needs_lab: None, tmp_path: Path) -> Iterator[Reader]:
    try:
        yield Reader(tmp_path)
    finally:
        down(LAB, lambda line: None)


@pytest.mark.cluster
@pytest.mark.long
@pytest.mark.timeout(1200)
def test_a_newcomer_gets_from_nothing_to_the_end_of_the_tutorial(reader: Reader) -> None:
    for block in BLOCKS:
        name = note(block, r"<!-- file: (\S+) -->")
        if name:
            (reader.desk / name).write_text(block.text.replace("lab: lab\n", f"lab: {LAB}\n"), encoding="utf-8")
        elif block.language == "console":
            reader.follows(block)


def test_the_tutorial_leaves_nothing_unrun() -> None:
    assert [block.place for block in BLOCKS if any(command.unrun for command in block.commands)] == []
    assert sum(len(block.commands) for block in BLOCKS) > 25
    assert BLOCKS[-1].commands[-1].text == "ceph-tuner lab down"
