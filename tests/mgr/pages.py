"""Tables in the documentation that are held against the program. CEPH_TUNER_WRITE_DOCS=1 writes them anew."""

from __future__ import annotations

import os
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
BEGIN, END = "<!-- held against the program -->\n", "<!-- end -->\n"


def holds(page: str, expected: str) -> bool:
    """Whether a page has the expected text between its marks."""
    path = DOCS / page
    head, _, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    found, _, tail = rest.partition(END)
    if os.environ.get("CEPH_TUNER_WRITE_DOCS"):
        path.write_text(f"{head}{BEGIN}{expected}{END}{tail}", encoding="utf-8")
        return True
    return found == expected
