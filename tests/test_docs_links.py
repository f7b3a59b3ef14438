"""Links between pages lead somewhere, those of pages that Sphinx does not build too."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import List, Set

import pytest
from markdown_it import MarkdownIt

import documented
from documented import ROOT

_PARSER = MarkdownIt("commonmark").enable("table")


def targets(page: Path) -> List[str]:
    """Of links and pictures, other sites left out."""
    inline = [child for token in _PARSER.parse(page.read_text(encoding="utf-8")) for child in token.children or []]
    found = [str(each.attrs.get("href", each.attrs.get("src", ""))) for each in inline]
    return [target for target in found if target and not re.match(r"[a-z]+:", target)]


def anchors(page: Path) -> Set[str]:
    """Of a page's headings, as GitHub and MyST make them."""
    tokens = _PARSER.parse(page.read_text(encoding="utf-8"))
    headings = [after for token, after in zip(tokens, tokens[1:]) if token.type == "heading_open"]
    made: Counter = Counter()
    names = set()
    for heading in headings:
        text = "".join(child.content for child in heading.children or [])
        name = re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")
        names.add(f"{name}-{made[name]}" if made[name] else name)
        made[name] += 1
    return names


@pytest.mark.parametrize("page", documented.pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_to_a_file_and_a_heading_of_it(page: Path) -> None:
    for target in targets(page):
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), target
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file), target


def test_links_are_found_and_headings_have_anchors(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A `b`, c\n\n## Twice\n\n## Twice\n\n[x](y.md#z) ![p](q.svg) <https://a.b> [m](https://c.d)\n")
    assert targets(page) == ["y.md#z", "q.svg"]
    assert anchors(page) == {"a-b-c", "twice", "twice-1"}
