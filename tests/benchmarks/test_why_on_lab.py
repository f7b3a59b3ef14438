from __future__ import annotations

from collections import Counter

import why_on_lab


def test_only_looks_that_are_missing_are_made() -> None:
    there = [
        {"made": "limit", "release": "tentacle"},
        {"made": "limit", "release": "tentacle"},
        {"made": "limit", "release": "reef"},
        {"made": "idle", "release": "reef"},
    ]
    due = why_on_lab.missing(["limit", "idle"], 3, there, "reef")
    assert Counter(due) == {"limit": 2, "idle": 2}
    assert Counter(why_on_lab.missing(["limit"], 1, there, "tentacle")) == {}
