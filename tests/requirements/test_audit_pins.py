"""What the index says about the pins, what it denies, and what it does not say."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Iterator, Optional

import pytest

import audit_pins
import pins
from fake_dashboard import FakeDashboard, serving

LOCK = "jinja2==2.10\nmarkupsafe==3.0.4\nrequests==2.32.5 ; python_full_version < '3'\n"

# as PyPI's JSON API has it
ADVISORY = {
    "id": "PYSEC-2021-66",
    "aliases": ["CVE-2020-28493", "GHSA-g3rq-g295-4j3m"],
    "details": "This affects the package jinja2 from 0.0.0 and before 2.11.3.\nThe ReDoS vulnerability is mainly "
    "due to the `_punctuation_re regex` operator and its use of multiple wildcards.",
    "fixed_in": ["2.11.3"],
    "link": "https://osv.dev/vulnerability/PYSEC-2021-66",
    "source": "osv",
    "summary": None,
    "withdrawn": None,
}
NAMES = "PYSEC-2021-66, CVE-2020-28493, GHSA-g3rq-g295-4j3m"


class Registry:
    """Pages of an index, and a lock file that is asked about."""

    def __init__(self, served: FakeDashboard, folder: Path) -> None:
        self.pages: Dict[str, Any] = {}
        served.before = lambda asked: (200, self.pages[asked.path]) if asked.path in self.pages else (404, b"no")
        self.served, self.folder = served, folder
        for name, version in (("jinja2", "2.10"), ("markupsafe", "3.0.4"), ("requests", "2.32.5")):
            self.files(name, {f"{name}-{version}.tar.gz": False, f"{name}-{version}-py3-none-any.whl": False})
            self.advisories(name, version)

    def files(self, name: str, yanked: Dict[str, Any], **more: Any) -> None:
        listed = [{"filename": filename, "yanked": each} for filename, each in yanked.items()]
        self.pages[f"/simple/{name}/"] = {"meta": {"api-version": "1.4"}, "name": name, "files": listed, **more}

    def advisories(self, name: str, version: str, *advisories: Dict[str, Any]) -> None:
        self.pages[f"/pypi/{name}/{version}/json"] = {"info": {}, "vulnerabilities": list(advisories)}

    def audit(self, ignored: str = "[]\n", lock: str = LOCK, address: Optional[str] = None) -> int:
        (self.folder / "lock.txt").write_text(lock)
        (self.folder / "ignored.yaml").write_text(ignored)
        address = address or f"{self.served.url}/simple/"
        return audit_pins.main(
            ["--index", address, "--ignored", str(self.folder / "ignored.yaml"), str(self.folder / "lock.txt")]
        )


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    with serving(FakeDashboard({})) as served:
        yield Registry(served, tmp_path)


def ignoring(name: str, until: str) -> str:
    return f'- id: {name}\n  package: jinja2\n  reason: no text of others is compiled\n  until: "{until}"\n'


def test_pins_without_advisories_pass(registry: Registry, capsys: pytest.CaptureFixture[str]) -> None:
    assert registry.audit() == 0
    assert capsys.readouterr().out.splitlines() == [
        "3 releases are pinned, 2 of them for this Python",
        "advisories: none known",
        "withdrawn releases: none known",
    ]


def test_a_known_vulnerability_fails_and_is_named(registry: Registry, capsys: pytest.CaptureFixture[str]) -> None:
    registry.advisories("jinja2", "2.10", ADVISORY)
    assert registry.audit() == 1
    said = capsys.readouterr().out
    assert f"FAILS: jinja2 2.10: {NAMES}: This affects the package jinja2 from 0.0.0 and before 2.11.3. The" in said
    assert "(mended in 2.11.3)" in said
    assert "advisories: 1 known" in said


def test_one_that_was_withdrawn_does_not_count(registry: Registry, capsys: pytest.CaptureFixture[str]) -> None:
    registry.advisories("jinja2", "2.10", {**ADVISORY, "withdrawn": "2021-03-22T16:34:00Z"})
    assert registry.audit() == 0
    assert "advisories: none known" in capsys.readouterr().out


def test_a_pin_of_other_pythons_is_named_and_fails_nothing(
    registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    registry.advisories("requests", "2.32.5", ADVISORY)
    assert registry.audit() == 0
    assert f"on other Pythons: requests 2.32.5: {NAMES}" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["PYSEC-2021-66", "CVE-2020-28493"])
def test_one_that_is_ignored_fails_nothing_until_its_day(
    registry: Registry, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    registry.advisories("jinja2", "2.10", ADVISORY)
    assert registry.audit(ignoring(name, until="2999-01-31")) == 0
    said = capsys.readouterr().out
    assert f"ignored until 2999-01-31: jinja2 2.10: {NAMES}" in said
    assert "- no text of others is compiled" in said


def test_one_whose_day_has_come_fails_again(registry: Registry, capsys: pytest.CaptureFixture[str]) -> None:
    registry.advisories("jinja2", "2.10", ADVISORY)
    assert registry.audit(ignoring("PYSEC-2021-66", until="2021-03-01")) == 1
    said = capsys.readouterr().out
    assert "FAILS: jinja2 2.10" in said
    assert "PYSEC-2021-66 of jinja2 is no longer ignored: its day was 2021-03-01" in said


def test_what_is_ignored_of_one_package_counts_for_others(registry: Registry) -> None:
    registry.advisories("markupsafe", "3.0.4", ADVISORY)
    assert registry.audit(ignoring("PYSEC-2021-66", until="2999-01-31")) == 1


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        (ignoring("PYSEC-2021-66", until="soon"), ":4 "),
        ("- id: PYSEC-2021-66\n  package: jinja2\n", ":1 "),
        ("jinja2: PYSEC-2021-66\n", ":1: "),
    ],
)
def test_a_file_of_ignored_ones_that_is_wrong_is_refused(
    registry: Registry, capsys: pytest.CaptureFixture[str], wrong: str, line: str
) -> None:
    assert registry.audit(wrong) == 2
    assert f"ignored.yaml{line}" in capsys.readouterr().err


def test_a_withdrawn_release_fails_with_its_reason(registry: Registry, capsys: pytest.CaptureFixture[str]) -> None:
    registry.files("jinja2", {"Jinja2-2.10.tar.gz": "leaks", "Jinja2-2.10-py2.py3-none-any.whl": "leaks"})
    assert registry.audit() == 1
    said = capsys.readouterr().out
    assert "FAILS: jinja2 2.10: withdrawn: leaks\n" in said
    assert "withdrawn releases: 1 known" in said


def test_other_releases_and_single_files_may_be_withdrawn(registry: Registry) -> None:
    files = {"jinja2-2.10.tar.gz": True, "jinja2-2.10-py3-none-any.whl": False, "jinja2-2.9.tar.gz": True}
    registry.files("jinja2", {**files, "Jinja2-2.10-py2.6.egg": True})
    assert registry.audit() == 0


def test_a_project_in_quarantine_fails(registry: Registry, capsys: pytest.CaptureFixture[str]) -> None:
    registry.files("jinja2", {}, **{"project-status": {"status": "quarantined", "reason": "malware"}})
    assert registry.audit() == 1
    assert "jinja2 2.10: withdrawn: quarantined: malware" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("page", "why"),
    [
        (None, "127.0.0.1 answers 404 when asked"),
        ({"info": {}}, "127.0.0.1 says nothing about advisories"),
        (b"<html></html>", "127.0.0.1 answers with something else"),
    ],
    ids=["no page", "a mirror's page", "no JSON"],
)
def test_an_index_that_serves_no_advisories_fails_nothing_and_is_said(
    registry: Registry, capsys: pytest.CaptureFixture[str], page: object, why: str
) -> None:
    for path in [path for path in registry.pages if path.startswith("/pypi/")]:
        del registry.pages[path]
        if page is not None:
            registry.pages[path] = page
    assert registry.audit() == 0
    said = capsys.readouterr().out
    assert f"advisories: COULD NOT BE ASKED: {why}\n" in said
    assert "advisories: none known" not in said
    assert "withdrawn releases: none known" in said


def test_without_an_index_nothing_fails_and_nothing_is_denied(
    registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    # nothing listens on port 1; what is secret in an address is not shown
    assert registry.audit(address="http://user:secret@127.0.0.1:1/simple") == 0
    said = capsys.readouterr().out
    assert said.count("COULD NOT BE ASKED: 127.0.0.1 cannot be reached (ConnectionError)") == 2
    assert "none known" not in said
    assert "secret" not in said


def test_one_pin_without_an_answer_hides_nothing_about_the_others(
    registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    registry.advisories("jinja2", "2.10", ADVISORY)
    assert registry.audit(lock=f"absent==1.0\n{LOCK}") == 1
    said = capsys.readouterr().out
    assert "advisories: 1 known\nadvisories: COULD NOT BE ASKED: 127.0.0.1 answers 404 when asked" in said


def test_an_index_that_answers_nothing_is_not_asked_about_every_pin(registry: Registry) -> None:
    registry.pages.clear()
    registry.audit(lock="".join(f"package{number}==1.0\n" for number in range(50)))
    assert len(registry.served.asked) == 2 * audit_pins.PROBE


def test_what_is_ignored_here_is_readable_and_of_pins() -> None:
    names = {pin.name for lock in (pins.PROGRAM, pins.DEVELOPMENT) for pin in pins.read(lock)}
    assert {each.package for each in audit_pins.read_ignored(audit_pins.IGNORED)} <= names


def test_a_release_in_two_locks_is_asked_about_once(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text("jinja2==3.1.6\n")
    assert [str(pin) for pin in audit_pins.locked([tmp_path / "one", tmp_path / "two"])] == ["jinja2 3.1.6"]


def test_a_release_that_one_lock_installs_here_counts_for_this_python(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("jinja2==3.1.6\n")
    (tmp_path / "two").write_text("jinja2==3.1.6 ; python_full_version < '3'\n")
    for locks in (["one", "two"], ["two", "one"]):
        (pin,) = audit_pins.locked([tmp_path / lock for lock in locks])
        assert pin.applies()
