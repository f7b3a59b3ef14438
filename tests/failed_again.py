"""Runs the tests that failed once more, one after the other, up to the first that fails again (`make test AGAIN=1`).

Beside others, on a machine with two cores, a real cluster may be late. What passes by itself is listed as failed above,
and as passed here.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import List

import pytest

FAILED = Path(".pytest_cache/v/cache/lastfailed")
MOST = 10
"""More are no accident."""
_GROUP = re.compile(r"@[\w-]+$")
"""Of pytest-xdist, at the end of a test's name."""


def failed(path: Path = FAILED) -> List[str]:
    """The names of the tests, as pytest takes them."""
    return [_GROUP.sub("", name) for name in json.loads(path.read_text(encoding="utf-8"))] if path.exists() else []


def main() -> int:
    """0 where all pass."""
    names = failed()
    if not 0 < len(names) <= MOST:
        sys.exit(f"{len(names)} tests are known to have failed: up to {MOST} would run again")
    # one process, with the groups in the names as before: what passes is then no longer among those that failed
    return int(pytest.main(["--exitfirst", "-n", "1", "--dist", "loadgroup", *names]))


if __name__ == "__main__":
    sys.exit(main())
