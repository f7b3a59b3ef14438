"""The units of systemd: they start commands of the program, and again only where that may end otherwise."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Dict, Iterator, List, Tuple

import pytest
import typer

import documented
from ceph_tuner.core import errors
from ceph_tuner.core.errors import RetryLater, TunerError
from ceph_tuner_cli.interruption import INTERRUPTED
from ceph_tuner_cli.main import app
from documented import DOCS, ROOT

PACKAGES = ROOT / "packages"
UNITS = sorted((PACKAGES / "systemd").glob("*.service"))
WORK = "ceph-tuner@.service"
PROGRAM = typer.main.get_command(app)


def settings(unit: str) -> Dict[str, str]:
    lines = (PACKAGES / "systemd" / unit).read_text("utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def exit_codes(fault: type[TunerError]) -> Iterator[int]:
    if fault.__module__ == errors.__name__:
        yield fault.exit_code
    for each in fault.__subclasses__():
        yield from exit_codes(each)


def test_work_starts_again_only_where_that_may_end_otherwise() -> None:
    unit = settings(WORK)
    again = {RetryLater.exit_code}
    others = {str(code) for code in {*exit_codes(TunerError), 70} - again}
    assert set(unit["RestartPreventExitStatus"].split()) == others
    assert unit["SuccessExitStatus"] == str(INTERRUPTED)
    assert unit["Restart"] == "on-failure"
    # SIGTERM, which ends it in order, is what systemd sends; a trial of another tuner may last
    assert "KillSignal" not in unit
    assert unit["StartLimitIntervalSec"] == "0"


def files_in_the_documentation() -> List[Tuple[Path, str]]:
    pages = [DOCS / "scrub.md", DOCS / "moving-data.md"]
    return [(page, text) for page in pages for text in re.findall(r"^ARGUMENTS=(.*)$", page.read_text("utf-8"), re.M)]


@pytest.mark.parametrize(("page", "text"), files_in_the_documentation(), ids=lambda value: getattr(value, "stem", ""))
def test_a_file_of_the_documentation_is_a_command_that_does_something(page: Path, text: str) -> None:
    assert settings(WORK)["ExecStart"] == "/usr/bin/ceph-tuner $ARGUMENTS"
    # systemd splits the value at spaces and removes quotes, as a shell would; what else a shell does, it does not
    words = shlex.split(text)
    assert "--yes" in words
    documented.parse(PROGRAM, words)


def test_both_pages_have_such_a_file() -> None:
    assert {page.stem for page, _ in files_in_the_documentation()} == {"scrub", "moving-data"}


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: str(unit.name))
def test_both_packages_have_every_unit_and_stop_it_when_they_go(unit: Path) -> None:
    spec = (PACKAGES / "rpm/ceph-tuner.spec").read_text("utf-8")
    assert f"\n/usr/lib/systemd/system/{unit.name}\n" in spec
    name = unit.name.replace("@.", "@*.")
    assert re.search(rf"stop '?{re.escape(name)}", (PACKAGES / "debian/ceph-tuner.prerm").read_text("utf-8"))
    assert re.search(rf"try-restart '?{re.escape(name)}", (PACKAGES / "debian/ceph-tuner.postinst").read_text("utf-8"))
    assert re.search(rf"(stop|disable --now) '?{re.escape(name)}", spec)
    assert re.search(rf"try-restart .*{re.escape(name)}", spec)


def test_a_package_is_laid_out_with_all_of_them() -> None:
    assert {unit.name for unit in UNITS} == {WORK, "ceph-tuner-guardian.service"}
    source = (PACKAGES / "lay_out.py").read_text("utf-8")
    assert 'UNITS.glob("*.service")' in source
