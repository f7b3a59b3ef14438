"""The page in a real Chromium without a screen: quiet, whole, and within the width of a phone."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any, Dict

import pytest
from example_answers import AT, recommendation, tuning

from ceph_tuner.core.measure.sample import Measure, Window
from ceph_tuner.report import Findings, Mark, Span, answer_file
from ceph_tuner.report.answers import findings_of
from ceph_tuner.report.page import page
from ceph_tuner.report.regimes_in_time import COLOURS
from chromium import opened

pytestmark = pytest.mark.slow

LONG = "a-name-of-an-operator-or-a-cluster-that-has-no-place-to-break-it-" * 4


def read(document: Any) -> Findings:
    return findings_of(answer_file.parse(json.dumps(document).encode(), "answer.json"))


def with_past(found: Findings) -> Findings:
    windows = tuple(
        Window(AT + 60 * n, AT + 60 * n + 60, {"client.p95_ms": Measure(8.0 + n % 3, 0.5, 6)}) for n in range(60)
    )
    marks = tuple(Mark(AT + 600 * n, LONG, "<b>why</b>", "operator", "kept") for n in range(1, 5))
    spans = tuple(
        Span(kind, f"{name}-{LONG}", AT + 600 * n, AT + 600 * n + 500)
        for n, (kind, name) in enumerate(product(COLOURS, ("one", "other")))
    )
    past = {"windows": windows, "hours": windows[:3], "marks": marks, "spans": spans}
    return Findings(**{**found.__dict__, **past})


PAGES = {
    "recommendation": lambda: read(recommendation()),
    "tuning": lambda: read(tuning()),
    "past": lambda: with_past(read(tuning(cluster=LONG))),
    "long": lambda: read(recommendation(cluster=LONG, notes=[LONG])),
}


@pytest.fixture(scope="module", params=PAGES)
def written(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("pages") / f"{request.param}.html"
    path.write_text(page(PAGES[request.param](), AT, "answer.json"), encoding="utf-8")
    return path


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_quiet_and_fits_the_width(browser: Any, written: Path, width: int, scheme: str) -> None:
    with opened(browser, written, width, scheme) as shown:
        assert shown.said == []
        assert shown.asked == [written.as_uri()]
        assert shown.holds(width)
        for name in ("objectives", "commands", "unknown"):
            assert shown.tab.locator(f"#{name}").is_visible()
        # every plot that is shown has a size, and its text can be read: 8 px at least
        sizes = shown.tab.evaluate(
            """[...document.querySelectorAll('svg')].filter(one => one.checkVisibility()).map(one => {
             const box = one.getBoundingClientRect();
             return {width: box.width, height: box.height, scale: box.width / one.viewBox.baseVal.width}})"""
        )
        assert len(sizes) >= 2
        assert all(0 < box["width"] <= width and box["height"] > 50 for box in sizes)
        assert all(box["scale"] * 9 >= 8 for box in sizes)
        paper: Dict[str, str] = shown.tab.evaluate("getComputedStyle(document.body).backgroundColor")
        assert paper == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(21, 24, 28)")


def test_commands_are_copied_line_by_line(browser: Any, written: Path) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 800})
    tab = context.new_page()
    tab.goto(written.as_uri())
    shown = tab.locator("#commands ~ pre").first.inner_text()
    commands = [line for line in shown.splitlines() if line.strip()]
    assert commands
    assert all(line.startswith("ceph") for line in commands)
    context.close()


def test_texts_of_a_plot_do_not_leave_it(browser: Any, written: Path) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    tab = context.new_page()
    tab.goto(written.as_uri())
    outside = tab.evaluate(
        """[...document.querySelectorAll('svg text')].filter(one => one.checkVisibility()).filter(one => {
             const text = one.getBoundingClientRect(), plot = one.ownerSVGElement.getBoundingClientRect();
             return text.left < plot.left - 2 || text.right > plot.right + 2 || text.bottom > plot.bottom + 2
           }).map(one => one.textContent)"""
    )
    assert outside == []
    context.close()


def test_it_prints_dark_on_white(browser: Any, written: Path) -> None:
    context = browser.new_context(color_scheme="dark")
    tab = context.new_page()
    tab.goto(written.as_uri())
    tab.emulate_media(media="print")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    # of the plots over time the small ones: two to a row, their letters as large as the page's
    assert not tab.evaluate("[...document.querySelectorAll('.wide')].some(one => one.checkVisibility())")
    printed = tab.pdf(format="A4")
    assert printed.startswith(b"%PDF")
    assert len(printed) > 20_000
    context.close()
