"""The picture of the README shows what the program prints."""

from __future__ import annotations

import re
import sys
from xml.etree import ElementTree

from ceph_tuner.files import slo_file
from documented import DOCS, ROOT

sys.path.insert(0, str(DOCS))

import write_picture


def text_of(drawing: str) -> str:
    """Of an SVG, blanks as such."""
    return "\n".join(ElementTree.fromstring(drawing).itertext()).replace("\xa0", " ")  # noqa: S314 - our own file


def test_what_a_command_prints_is_drawn_up_to_a_line() -> None:
    printed = write_picture.printed(["knobs", "osd_scrub_cost", "--release", "reef"])
    drawn = text_of(write_picture.picture(f"{printed}\nLast line\nbeyond it", "knobs", "Last"))
    assert "osd_scrub_cost" in drawn
    assert "does nothing" in drawn
    assert "Last line" not in drawn
    assert "beyond it" not in drawn


def test_colours_of_the_terminal_are_in_the_drawing() -> None:
    plain, coloured = (write_picture.picture(text, "", "end") for text in ("word", "\x1b[38;2;1;2;3mword\x1b[0m"))
    assert "#010203" in coloured
    assert "#010203" not in plain


def test_the_picture_shows_the_objectives_of_the_example_and_the_settings_found_for_them() -> None:
    shown = text_of(write_picture.PICTURE.read_text(encoding="utf-8"))
    for objective in slo_file.read(write_picture.EXAMPLES / "slo-nvme-node.yaml").slo.objectives:
        assert str(objective.metric) in shown
    assert "Recommended" in shown
    assert "osd_mclock_scheduler_client_res" in shown
    assert write_picture.LAST not in shown


def test_the_picture_is_small_and_loads_nothing() -> None:
    drawing = write_picture.PICTURE.read_text(encoding="utf-8")
    assert len(drawing.encode()) < 200_000
    assert not re.search(r"url\(['\"]?http|<image|href=", drawing)


def test_readme_and_recommend_page_show_the_picture() -> None:
    assert "](docs/recommend.svg)" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert "](recommend.svg)" in (DOCS / "recommend.md").read_text(encoding="utf-8")
