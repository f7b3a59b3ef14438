"""Asks the package index for advisories about the pins, and which of them are withdrawn (`make audit`).

A pin of this Python with an advisory, or withdrawn, fails. Those of other Pythons are named. What the index does not
say is told apart from what it denies, and fails nothing: a machine without network goes on.

Not pip-audit: it takes an answer without advisories for one that there are none, reads one version of a package, and
knows one index.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import date, datetime, timezone
from functools import lru_cache
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, TypeVar, Union
from urllib.parse import urlsplit

import requests
from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename
from packaging.version import Version

import pins
from ceph_tuner.core.errors import InputError
from ceph_tuner.files import schema, yaml_document
from pins import Pin

IGNORED = pins.FOLDER / "ignored-advisories.yaml"
TIMEOUT_S = 20.0
AT_ONCE = 8
PROBE = 3
"""An index that answers a question about none of so many pins is not asked about the others."""

_IGNORED: Dict[str, Any] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {name: {"type": "string", "minLength": 1} for name in ("id", "package", "reason", "until")},
        "required": ["id", "package", "reason", "until"],
        "additionalProperties": False,
    },
}

T = TypeVar("T")


class NotAnswered(Exception):
    """The index does not say it; the message tells why."""


@dataclass(frozen=True)
class Ignored:
    """An advisory that somebody looked at."""

    id: str
    package: str
    reason: str
    until: date
    """The first day on which it counts again."""


@dataclass(frozen=True)
class Finding:
    """Something against a pin."""

    pin: Pin
    names: Tuple[str, ...]
    """Of an advisory, its own first; ("withdrawn",) for a release that the index took back."""
    text: str

    def __str__(self) -> str:
        return f"{self.pin}: {', '.join(self.names)}: {self.text}"


@dataclass(frozen=True)
class Audit:
    """What came of asking."""

    findings: Tuple[Finding, ...]
    unanswered: Mapping[str, Tuple[str, ...]]
    """Why, for each question that was not answered about every pin: "advisories", "withdrawn releases"."""


class Index:
    """A package index: its pages of files (PEP 691, PEP 792) and PyPI's JSON API beside them."""

    def __init__(self, address: str) -> None:
        """Take the address that pip takes, which ends in /simple."""
        self.simple = address.rstrip("/")
        self.releases = re.sub(r"/simple$", "/pypi", self.simple)
        self.host = urlsplit(address).hostname or address
        self._files = lru_cache(maxsize=None)(self._fetch_files)

    def advisories(self, pin: Pin) -> List[Finding]:
        """Raises NotAnswered where the index has no word about advisories."""
        answer = self._get(f"{self.releases}/{pin.name}/{pin.version}/json", "application/json")
        given = answer.get("vulnerabilities")
        if not isinstance(given, list):
            raise NotAnswered(f"{self.host} says nothing about advisories")
        return [_advisory(pin, each) for each in given if not each.get("withdrawn")]

    def withdrawal(self, pin: Pin) -> List[Finding]:
        """The release, if it is yanked or its project is in quarantine. Raises NotAnswered."""
        answer = self._files(pin.name)
        status = answer.get("project-status") or {}
        if status.get("status") == "quarantined":
            return [Finding(pin, ("withdrawn",), f"quarantined: {status.get('reason') or 'no reason given'}")]
        yanked = [each.get("yanked", False) for each in answer["files"] if _version(each["filename"]) == pin.version]
        if not yanked:
            raise NotAnswered(f"{self.host} has no file of {pin}")
        if not all(yanked):
            return []
        reasons = sorted({each for each in yanked if isinstance(each, str)})
        return [Finding(pin, ("withdrawn",), "; ".join(reasons) or "no reason given")]

    def _fetch_files(self, name: str) -> Mapping[str, Any]:
        answer = self._get(f"{self.simple}/{name}/", "application/vnd.pypi.simple.v1+json")
        if not isinstance(answer.get("files"), list):
            raise NotAnswered(f"{self.host} lists no files of {name}")
        return answer

    def _get(self, address: str, kind: str) -> Mapping[str, Any]:
        try:
            answer = requests.get(address, headers={"Accept": kind}, timeout=TIMEOUT_S)
        except requests.RequestException as error:
            raise NotAnswered(f"{self.host} cannot be reached ({type(error).__name__})") from error
        if answer.status_code != 200:
            raise NotAnswered(f"{self.host} answers {answer.status_code} when asked")
        try:
            document = answer.json()
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise NotAnswered(f"{self.host} answers with something else")
        return document


def _advisory(pin: Pin, given: Mapping[str, Any]) -> Finding:
    text = given.get("summary") or given.get("details") or "no summary"
    mended = ", ".join(given.get("fixed_in") or ()) or "no release"
    names = (str(given["id"]), *map(str, given.get("aliases") or ()))
    return Finding(pin, names, f"{' '.join(text.split())[:200]} (mended in {mended})")


def _version(filename: str) -> Optional[Version]:
    """Of a release's file; None for the kinds of file that are no longer made."""
    try:
        return parse_wheel_filename(filename)[1] if filename.endswith(".whl") else parse_sdist_filename(filename)[1]
    except (InvalidWheelFilename, InvalidSdistFilename):
        return None


def read_ignored(path: Union[str, Path]) -> List[Ignored]:
    """Raises InputError with the line of what is wrong in the file."""
    document = yaml_document.load(path)
    schema.check(document, _IGNORED)
    ignored = []
    for number, entry in enumerate(document.data):
        try:
            until = datetime.strptime(entry["until"], "%Y-%m-%d").date()
        except ValueError:
            place = document.place(number, "until")
            raise InputError(place, repr(entry["until"]), 'a day such as "2027-06-30"') from None
        ignored.append(Ignored(entry["id"], entry["package"].lower(), entry["reason"], until))
    return ignored


def ask(index: Index, pinned: Sequence[Pin]) -> Audit:
    """Ask about all pins, several at a time."""
    findings: List[Finding] = []
    unanswered: Dict[str, Tuple[str, ...]] = {}
    questions = {"advisories": index.advisories, "withdrawn releases": index.withdrawal}
    for question, of in questions.items():
        answers, reasons = _answers(of, pinned)
        findings += [finding for answer in answers for finding in answer]
        if reasons:
            unanswered[question] = tuple(sorted(set(reasons)))
    return Audit(tuple(findings), unanswered)


def _answers(of: Callable[[Pin], T], pinned: Sequence[Pin]) -> Tuple[List[T], List[str]]:
    def answer(pin: Pin) -> Union[T, NotAnswered]:
        try:
            return of(pin)
        except NotAnswered as error:
            return error

    answers = [answer(pin) for pin in pinned[:PROBE]]
    if not all(isinstance(each, NotAnswered) for each in answers):
        with ThreadPoolExecutor(AT_ONCE) as pool:
            answers += pool.map(answer, pinned[PROBE:])
    return (
        [each for each in answers if not isinstance(each, NotAnswered)],
        [str(each) for each in answers if isinstance(each, NotAnswered)],
    )


def _ignored(finding: Finding, ignored: Sequence[Ignored], today: date) -> Optional[Ignored]:
    fits = (each for each in ignored if each.package == finding.pin.name and each.id in finding.names)
    return next((each for each in fits if today < each.until), None)


def judge(audit: Audit, ignored: Sequence[Ignored], today: date) -> Tuple[List[str], bool]:
    """What to say, a line each, and whether something fails."""
    lines, failed = [], False
    for finding in sorted(audit.findings, key=str):
        excuse = _ignored(finding, ignored, today)
        if excuse is not None:
            lines.append(f"ignored until {excuse.until}: {finding} - {excuse.reason}")
        elif finding.pin.applies():
            lines.append(f"FAILS: {finding}")
            failed = True
        else:
            lines.append(f"on other Pythons: {finding}")
    lines += [
        f"{each.id} of {each.package} is no longer ignored: its day was {each.until}"
        for each in ignored
        if each.until <= today
    ]
    for question in ("advisories", "withdrawn releases"):
        of = [each for each in audit.findings if (each.names == ("withdrawn",)) == (question == "withdrawn releases")]
        unanswered = audit.unanswered.get(question)
        if of or not unanswered:
            lines.append(f"{question}: {len(of) or 'none'} known")
        if unanswered:
            lines.append(f"{question}: COULD NOT BE ASKED: {'; '.join(unanswered)}")
    return lines, failed


def locked(locks: Sequence[Path]) -> List[Pin]:
    """Each release in the lock files once, with a marker that applies here where one does."""
    releases: Dict[str, Pin] = {}
    for pin in (pin for lock in locks for pin in pins.read(lock)):
        if str(pin) not in releases or pin.applies():
            releases[str(pin)] = replace(pin, hashes=())
    return list(releases.values())


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Exit code: 0, 1 for what fails, 2 for a file that cannot be read."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple")
    parser.add_argument("--index", default=default, help="as pip takes it; PIP_INDEX_URL, or PyPI")
    parser.add_argument("--ignored", type=Path, default=IGNORED, help="advisories that fail nothing")
    parser.add_argument("locks", nargs="*", type=Path, default=[pins.PROGRAM, pins.DEVELOPMENT], help="lock files")
    given = parser.parse_args(arguments)
    try:
        ignored = read_ignored(given.ignored)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    pinned = locked(given.locks)
    lines, failed = judge(ask(Index(given.index), pinned), ignored, datetime.now(timezone.utc).date())
    print(f"{len(pinned)} releases are pinned, {sum(pin.applies() for pin in pinned)} of them for this Python")
    print("\n".join(lines))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
