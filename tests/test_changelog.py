"""The changelog has a section for the version that the code has, and says so as Keep a Changelog does."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import List, Tuple

from packaging.version import Version

import ceph_tuner

ROOT = Path(__file__).resolve().parent.parent
KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]


def sections() -> List[Tuple[str, str]]:
    """Headings of the second level with their text, in the order of the file."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    _, *parts = re.split(r"^## ", text, flags=re.MULTILINE)
    return [(heading, body) for heading, _, body in (part.partition("\n") for part in parts)]


def releases() -> List[Tuple[Version, date]]:
    _, *released = sections()
    dated = [re.fullmatch(r"\[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)", heading) for heading, _ in released]
    assert all(dated), [heading for heading, _ in released]
    return [(Version(match[1]), date.fromisoformat(match[2])) for match in dated if match]


def test_the_newest_release_of_the_changelog_is_the_version_of_the_code() -> None:
    newest, _ = releases()[0]
    assert str(newest) == ceph_tuner.__version__


def test_the_package_has_the_version_of_the_code() -> None:
    done = subprocess.run(
        [sys.executable, "setup.py", "--version"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split()[-1] == ceph_tuner.__version__


def test_what_is_not_released_comes_first_and_then_the_newest_release() -> None:
    (first, _), *_ = sections()
    assert first == "[Unreleased]"
    assert releases() == sorted(releases(), reverse=True)


def test_each_release_says_what_it_changes_by_kind() -> None:
    _, *released = sections()
    for heading, body in released:
        kinds = re.findall(r"^### (.+)$", body, re.MULTILINE)
        assert kinds, heading
        assert kinds == [kind for kind in KINDS if kind in kinds], heading
        for part in re.split(r"^### .+$", body, flags=re.MULTILINE)[1:]:
            assert re.search(r"^- ", part, re.MULTILINE), heading
