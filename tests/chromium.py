"""A Chromium without a screen, to look at the pages that we write."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterator, List

import pytest

import debian_packages

# libatomic1 is what Playwright's driver needs, and does not bring
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@dataclass
class Opened:
    """A page that was opened, with every fold open."""

    tab: Any
    said: List[str] = field(default_factory=list)
    """On the console, errors included."""
    asked: List[str] = field(default_factory=list)
    """Of the network, the page itself included."""

    def holds(self, width: int) -> bool:
        """Whether nothing is wider than the window, and nobody complained or was asked for more."""
        wide = self.tab.evaluate("document.documentElement.scrollWidth")
        return bool(wide <= width) and self.said == [] and len(self.asked) == 1


def program() -> str:
    """Where it is. Debian's is installed where there is none; the test is skipped where we cannot."""
    pytest.importorskip("playwright")
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None or debian_packages.on_debian_as_root():
        debian_packages.install(["libatomic1", *([] if found else NAMES[:1])])
    return found or NAMES[0]


@contextmanager
def chromium() -> Iterator[Any]:
    """A running one."""
    found = shutil.which(program())
    from playwright.sync_api import sync_playwright

    with sync_playwright() as running:
        # a sandbox takes rights that root in a container has not; the page is our own
        opened = running.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield opened
        opened.close()


@contextmanager
def opened(browser: Any, path: Path, width: int, scheme: str = "light", height: int = 800) -> Iterator[Opened]:
    """Open a page in a window of that size."""
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    found = Opened(context.new_page())
    found.tab.on("console", lambda message: found.said.append(message.text))
    found.tab.on("pageerror", lambda error: found.said.append(str(error)))
    found.tab.on("request", lambda request: found.asked.append(request.url))
    found.tab.goto(path.as_uri())
    found.tab.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    yield found
    context.close()
