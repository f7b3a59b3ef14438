"""What README and the tutorial's first section show of a cluster is what the program prints, numbers included.

A page says above a block that it is about the recorded cluster (`recorded_cluster.py`):

    <!-- on the recorded cluster -->                           its numbers are the printed ones
    <!-- on the recorded cluster; numbers within N% -->        a search's differ between processors
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import List, Optional

import pytest

import documented
from documented import DOCS, ROOT, Block, unlike
from recorded_cluster import RecordedCluster

README, TUTORIAL = ROOT / "README.md", DOCS / "tutorial.md"
_RECORDED = re.compile(r"<!-- on the recorded cluster(?:; numbers within (\d+)%)? -->")
_FILE = re.compile(r"<!-- file: (\S+) -->")


def noted(block: Block, note: re.Pattern) -> Optional[re.Match]:
    return next((found for each in block.notes if (found := note.fullmatch(each))), None)


def recorded(page: Path) -> List[Block]:
    return [block for block in documented.blocks(page) if noted(block, _RECORDED)]


@pytest.mark.slow
@pytest.mark.parametrize("page", [README, TUTORIAL], ids=lambda page: page.stem)
def test_the_program_prints_what_a_page_shows_of_the_recorded_cluster(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = RecordedCluster(tmp_path, monkeypatch)
    for block in recorded(page):
        file, note = noted(block, _FILE), noted(block, _RECORDED)
        if file:
            reader.files(file[1], block)
            continue
        assert note
        for command in block.commands:
            code, said = reader.types(command.text)
            place = f"{page.name}:{command.line} `{command.text}`"
            assert code == command.exits, f"{place} ended with {code}:\n{said}"
            left = unlike(command.output, said, float(note[1] or 0) / 100)
            assert left == "", f"{place} did not say:\n{left}\n\n{said}"


def test_the_first_section_of_the_tutorial_needs_no_cluster_and_is_whole() -> None:
    text = TUTORIAL.read_text(encoding="utf-8")
    end = text[: text.index("\n## 2. ")].count("\n")
    first = [block for block in documented.blocks(TUTORIAL) if block.line < end]
    assert [block.place for block in first if not noted(block, _RECORDED)] == []
    assert recorded(TUTORIAL) == first
    commands = [command.words[1] for block in first for command in block.commands]
    assert commands == ["gather", "doctor", "recommend", "apply", "apply", "rollback"]


def test_readme_shows_ten_lines_that_the_program_prints() -> None:
    shown = [line for block in recorded(README) for command in block.commands for line in command.output]
    assert len([line for line in shown if "…" not in line]) >= 10


SAID = "2 findings\n\n  seen osd.0: 95% of 1.05\nlast 3.5 ms\n"


@pytest.mark.parametrize(
    ("shown", "left"),
    [
        (["2 findings", "seen osd.0: 95% of 1.05", "last 3.5 ms"], ""),
        (["…", "last 3.5 ms"], ""),
        (["2 findings", "…"], ""),
        (["2 findings", "seen …: 95% of 1.05", "last … ms"], ""),
        (["2 findings", "last 3.5 ms"], "last 3.5 ms"),
        (["2 findings", "seen osd.0: 95% of 1.06", "…"], "seen osd.0: 95% of 1.06"),
        (["3 findings", "…"], "3 findings"),
        (["2 findings", "…", "last 3.5 s"], "last 3.5 s"),
        (["2 findings"], "2 findings (and then:   seen osd.0: 95% of 1.05)"),
        ([], " (and then: 2 findings)"),
    ],
)
def test_a_page_shows_lines_in_order_and_marks_those_that_it_leaves_out(shown: List[str], left: str) -> None:
    assert unlike(shown, SAID) == left


@pytest.mark.parametrize(("shown", "fits"), [("p95 7.0 ms", True), ("p95 9.0 ms", False), ("p99 7.0 ms", False)])
def test_numbers_of_a_search_may_be_off_by_a_part_and_those_of_names_may_not(shown: str, fits: bool) -> None:
    assert (unlike([shown], "p95 7.3 ms", 0.1) == "") is fits
