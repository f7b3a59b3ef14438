"""The pictures of README and documentation: what the program prints now, whole, and with no empty part."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, Dict, List
from xml.etree import ElementTree

import pytest
from rich.cells import cell_len

from ceph_tuner.files import slo_file
from chromium import opened
from documented import DOCS, ROOT

sys.path.insert(0, str(DOCS))

import write_pictures
from write_pictures import PICTURES, TERMINALS, THEMES, Terminal

pytestmark = pytest.mark.slow

ON_A_CLUSTER = [name for name in TERMINALS if name != "recommend"]
CONTRAST = 3.0
"""Of large or bold text (WCAG 2.1, 1.4.3); a terminal's own colours are its owner's."""


def text_of(drawing: str) -> List[str]:
    """Words of an SVG, line by line."""
    texts = ElementTree.fromstring(drawing).iter("{http://www.w3.org/2000/svg}text")  # noqa: S314 - our own file
    return " ".join("".join(text.itertext()).replace("\xa0", " ") for text in texts).split()


@pytest.fixture(scope="module", params=ON_A_CLUSTER)
def on_a_cluster(request: Any) -> Terminal:
    return TERMINALS[request.param]


@pytest.fixture(scope="module")
def printed(on_a_cluster: Terminal) -> str:
    return write_pictures.printed(on_a_cluster.words, on_a_cluster.columns)


def test_what_a_command_prints_is_drawn_up_to_a_line() -> None:
    knobs = Terminal(("knobs", "osd_scrub_cost", "--release", "reef"), 100, "dark", "knobs", "Last")
    drawn = text_of(write_pictures.picture(knobs, f"{write_pictures.printed(knobs.words, 100)}\nLast line\nbeyond it"))
    assert "osd_scrub_cost" in drawn
    assert "does nothing" in " ".join(drawn)
    assert not {"Last", "beyond"} & set(drawn)


def test_colours_of_the_terminal_are_in_the_drawing() -> None:
    terminal = Terminal((), 80, "dark", "")
    plain, coloured = (write_pictures.picture(terminal, text) for text in ("word", "\x1b[38;2;1;2;3mword\x1b[0m"))
    assert "#010203" in coloured
    assert "#010203" not in plain


def test_the_picture_shows_the_objectives_of_the_example_and_the_settings_found_for_them() -> None:
    shown = text_of((PICTURES / "recommend.svg").read_text(encoding="utf-8"))
    for objective in slo_file.read(write_pictures.EXAMPLES / "slo-nvme-node.yaml").slo.objectives:
        assert str(objective.metric) in shown
    assert {"Recommended,", "osd_mclock_scheduler_client_res"} <= set(shown)
    assert "capacity" not in shown


def test_no_line_is_cut_or_longer_than_the_terminal(on_a_cluster: Terminal, printed: str) -> None:
    lines = [line.plain for line in write_pictures.lines_of(printed)]
    assert max(map(cell_len, lines)) <= on_a_cluster.columns
    assert not [line for line in lines if "…" in line]


def test_the_picture_is_what_the_program_prints_now(on_a_cluster: Terminal, printed: str) -> None:
    name = next(name for name, terminal in TERMINALS.items() if terminal is on_a_cluster)
    kept = (PICTURES / f"{name}.svg").read_text(encoding="utf-8")
    assert text_of(kept) == text_of(write_pictures.picture(on_a_cluster, printed)), "`make pictures` draws it anew"


def test_no_part_of_the_live_view_is_empty() -> None:
    shown = [line.plain for line in write_pictures.lines_of(write_pictures.printed(write_pictures.WATCH, 80))]
    (client,) = (line for line in shown if line.startswith("client "))
    (every,) = (line for line in shown if line.startswith("all "))
    assert re.search(r"[1-9]\S* /s .*[1-9]\S* [kM]?B/s", client)
    assert len(re.findall(r"[\d.]+ ms", every)) == 4
    assert any(re.search(r"(met|MISSED)$", line) for line in shown)
    assert any(line.startswith("regime: ") for line in shown)
    assert any(line.startswith("The automatic mode is") for line in shown)


def test_why_names_a_cause_with_its_evidence_and_what_to_do() -> None:
    shown = "\n".join(line.plain for line in write_pictures.lines_of(write_pictures.printed(write_pictures.WHY, 80)))
    assert re.search(r"^1\. \w+, \d+% held: ", shown, re.MULTILINE)
    for part in ("waits", "seen", "do this", "Commands by cause"):
        assert part in shown


def luminance(colour: str) -> float:
    """Relative, of `rgb(1, 2, 3)` (WCAG 2.1)."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("scheme", THEMES)
def test_all_text_of_a_terminal_can_be_read_and_lies_within_it(
    browser: Any, on_a_cluster: Terminal, printed: str, scheme: str, tmp_path: Path
) -> None:
    themed = Terminal(on_a_cluster.words, on_a_cluster.columns, scheme, on_a_cluster.title)
    page = tmp_path / "terminal.html"
    page.write_text(f"<meta charset=utf-8><body>{write_pictures.picture(themed, printed)}", encoding="utf-8")
    with opened(browser, page, 2600) as shown:
        seen: Dict[str, Any] = shown.tab.evaluate(
            """() => {
             const drawing = document.querySelector('svg'), frame = drawing.getBoundingClientRect();
             const texts = [...drawing.querySelectorAll('text')].map(one => {
               const box = one.getBoundingClientRect();
               return {words: one.textContent, colour: getComputedStyle(one).fill, left: box.left - frame.left,
                       right: frame.right - box.right, below: frame.bottom - box.bottom}});
             return {ground: getComputedStyle(drawing.querySelector('rect[fill]')).fill, texts}}"""
        )
    texts = [text for text in seen["texts"] if text["words"].strip("\xa0 \n")]
    assert len(texts) > 8
    assert [text["words"] for text in texts if min(text["left"], text["right"], text["below"]) < 0] == []
    faint = [text for text in texts if contrast(text["colour"], seen["ground"]) < CONTRAST]
    assert [(text["words"], text["colour"]) for text in faint] == []


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pictures.report(tmp_path_factory.mktemp("report"))


@pytest.mark.parametrize("scheme", THEMES)
def test_every_part_of_the_report_of_a_lab_has_something_in_it(
    browser: Any, report: Path, scheme: str, tmp_path: Path
) -> None:
    with opened(browser, report, 1280, scheme) as shown:
        assert shown.holds(1280)
        plots: List[Dict[str, Any]] = shown.tab.evaluate(
            """[...document.querySelectorAll('svg')].filter(one => one.checkVisibility()).map(one => {
             const frame = one.getBoundingClientRect();
             const cut = [...one.querySelectorAll('text')].filter(text => {
               const box = text.getBoundingClientRect();
               return box.left < frame.left - 2 || box.right > frame.right + 2 || box.bottom > frame.bottom + 2});
             // curves have many points, bars and shades an area; axes and ticks have neither
             const drawn = [...one.querySelectorAll('path')].filter(path => {
               const box = path.getBoundingClientRect();
               return box.width > 30 && box.height > 3 && getComputedStyle(path).fill !== 'rgb(255, 255, 255)'});
             return {title: one.getAttribute('aria-label') || one.textContent.trim().slice(0, 40),
                     marks: drawn.length, cut: cut.map(text => text.textContent)}})"""
        )
        assert len(plots) > 4
        assert [plot["title"] for plot in plots if not plot["marks"]] == []
        assert [text for plot in plots for text in plot["cut"]] == []
        rows = shown.tab.evaluate("[...document.querySelectorAll('table')].map(one => one.rows.length)")
        assert min(rows) > 1
        for name in ("in-time", "commands", "unknown"):
            assert shown.tab.locator(f"#{name}").is_visible()
    photograph = tmp_path / "report.png"
    write_pictures.photograph(browser, report, scheme, photograph)
    assert photograph.stat().st_size > 50_000


def test_the_pictures_are_small_and_load_nothing() -> None:
    for path in PICTURES.iterdir():
        assert path.stat().st_size < 250_000, path.name
        if path.suffix == ".svg":
            assert not re.search(r"url\(['\"]?http|<image|href=", path.read_text(encoding="utf-8")), path.name


def test_every_picture_stands_in_the_documentation() -> None:
    written = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *DOCS.glob("*.md")))
    assert [path.name for path in PICTURES.iterdir() if f"pictures/{path.name})" not in written] == []
    assert {f"{name}.svg" for name in TERMINALS} <= {path.name for path in PICTURES.iterdir()}
