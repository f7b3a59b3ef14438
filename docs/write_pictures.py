"""Draws the pictures of README and documentation: what the program prints on a terminal, and pages in a browser.

What they show of a cluster was gathered on a real one, a lab of three OSDs under load (`tests/data`).
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Tuple

from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, SVG_EXPORT_THEME, TerminalTheme
from rich.text import Text

HERE = Path(__file__).parent
PICTURES = HERE / "pictures"
EXAMPLES = HERE.parent / "examples"
TESTS = HERE.parent / "tests"
LAB = TESTS / "data" / "lab" / "nvme.tar.zst"
HELD = TESTS / "data" / "why" / "tentacle-limit.tar.zst"
PROGRAM = "from ceph_tuner_cli.main import main; main()"
THEMES: Dict[str, TerminalTheme] = {"light": DEFAULT_TERMINAL_THEME, "dark": SVG_EXPORT_THEME}


@dataclass(frozen=True)
class Terminal:
    """A command on a terminal of so many columns."""

    words: Tuple[str, ...]
    columns: int
    theme: str
    title: str
    last: str = ""
    """The picture ends above the line that begins so."""


WATCH = ("watch", "--once", "--from", str(LAB))
WHY = ("why", "--from", str(HELD))
RECOMMEND = ("recommend", str(EXAMPLES / "cluster-nvme-node.yaml"), "--slo", str(EXAMPLES / "slo-nvme-node.yaml"))
TERMINALS = {
    "recommend": Terminal(RECOMMEND, 100, "dark", "make recommend", "capacity of an OSD"),
    "watch-80": Terminal(WATCH, 80, "dark", "ceph-tuner watch"),
    "watch-200": Terminal(WATCH, 200, "light", "ceph-tuner watch"),
    "why-80": Terminal(WHY, 80, "dark", "ceph-tuner why"),
    "why-200": Terminal(WHY, 200, "light", "ceph-tuner why"),
}
DASHBOARD = {
    "dashboard-work": ("Objectives", "Work"),
    "dashboard-latency": ("Latency and queues", "Trouble, and the plugin itself"),
    "dashboard-mode": ("Automatic mode",),
}
"""Rows of the Grafana dashboard that share a picture."""
REPORT = ("report", "--from", str(LAB), "--hours", "3")
WINDOW = (1000, 900)
"""Of the browser; what is below is not in the picture."""


def printed(words: Tuple[str, ...], columns: int) -> str:
    """Standard output of a command of `ceph-tuner` on a terminal of so many columns, with its colours."""
    environment = {**os.environ, "FORCE_COLOR": "1", "COLORTERM": "truecolor", "COLUMNS": str(columns)}
    environment.pop("NO_COLOR", None)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], env=environment, capture_output=True, encoding="utf-8", check=True
    )
    return done.stdout


def lines_of(text: str, last: str = "") -> List[Text]:
    """The lines above the one that begins with `last`."""
    lines: List[Text] = []
    for line in text.splitlines():
        drawn = Text.from_ansi(line)
        if last and drawn.plain.lstrip().startswith(last):
            break
        lines.append(drawn)
    return lines


def picture(terminal: Terminal, text: str) -> str:
    """SVG of a terminal with a text on it."""
    console = Console(record=True, width=terminal.columns, file=io.StringIO())
    for line in lines_of(text, terminal.last):
        console.print(line, highlight=False)
    drawing = console.export_svg(title=terminal.title, theme=THEMES[terminal.theme], unique_id="ceph-tuner")
    # a page loads nothing from the network: the reader's own monospaced font does
    return re.sub(r"\s*@font-face \{.*?\}", "", drawing, flags=re.DOTALL)


def report(directory: Path) -> Path:
    """The page of the lab's past."""
    page = directory / "report.html"
    printed((*REPORT, "--output", str(page)), 80)
    return page


def dashboard(directory: Path) -> Dict[str, Path]:
    """Pages with the rows of the dashboard, with values of the lab."""
    from draw_dashboard import page
    from lab_hour import dashboard_source

    from dashboard_queries import DASHBOARD as DOCUMENT

    pages = {name: directory / f"{name}.html" for name in DASHBOARD}
    with dashboard_source(directory) as source:
        for name, rows in DASHBOARD.items():
            pages[name].write_text(page(DOCUMENT, source, rows), encoding="utf-8")
    return pages


def photograph(
    browser: Any, page: Path, scheme: str, picture_file: Path, width: int = WINDOW[0], whole: bool = False
) -> None:
    """What a browser's window shows of a page, or the whole of it."""
    from chromium import opened

    with opened(browser, page, width, scheme, WINDOW[1]) as shown:
        shown.tab.screenshot(path=picture_file, full_page=whole)


def main() -> None:
    """Write all of them."""
    sys.path[:0] = [str(TESTS), str(TESTS / "mgr")]
    from draw_dashboard import WIDTH

    from chromium import chromium

    for name, terminal in TERMINALS.items():
        drawing = picture(terminal, printed(terminal.words, terminal.columns))
        (PICTURES / f"{name}.svg").write_text(drawing, encoding="utf-8")
    with tempfile.TemporaryDirectory() as directory, chromium() as browser:
        page = report(Path(directory))
        for scheme in THEMES:
            photograph(browser, page, scheme, PICTURES / f"report-{scheme}.png")
        for name, drawn in dashboard(Path(directory)).items():
            for scheme in THEMES:
                photograph(browser, drawn, scheme, PICTURES / f"{name}-{scheme}.png", WIDTH, whole=True)


if __name__ == "__main__":
    main()
