"""Real clusters for the tests: one lab of each release, brought up on first use and shared by all tests.

A test that changes a lab restores it. CEPH_TUNER_LAB=0 leaves the real-cluster tests out.
"""

from __future__ import annotations

import gc
import json
import os
import re
import signal
import tempfile
from pathlib import Path
from typing import Any, Dict, Generator, Iterator, List, Optional, Tuple

import pytest
from hypothesis import settings

import debian_packages
import lab_ceph
import running_program
from ceph_lab.bringup import up
from ceph_lab.chroot import check_host
from ceph_lab.cluster import Lab
from ceph_lab.places import LabPlaces
from ceph_lab.state import lab_names, readable_state
from ceph_lab.teardown import down
from ceph_lab.throttle import host_throttle
from ceph_tuner.core.errors import TunerError
from ceph_tuner.core.knobs.catalogue import MCLOCK_NINE, PROFILE
from chromium import chromium
from config_dump import osd_config
from slow_drive import SLOW_NVME

run = running_program.run
"""The program as people run it."""
quick = running_program.quick

# a shell starts what runs in its background with Ctrl-C ignored, and every program that is tested would inherit that
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# nohup does so with a hang-up; the tests themselves go on, as a handler is not handed on
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)

# how long an example takes says more about the machine than about the code
settings.register_profile("same", deadline=None, derandomize=True)
# `make laws` looks for new examples: what it finds becomes a test, instead of failing somebody else's change by chance
settings.register_profile("new", deadline=None, max_examples=1000)
settings.load_profile("same")

_LAB_FIXTURES = {"tentacle_lab", "reef_lab", "any_lab", "needs_lab"}


_CRASH = re.compile(r"Caught signal|FAILED ceph_assert|terminate called")

_SKIPPED = "real cluster: "
_ON_PURPOSE = "CEPH_TUNER_LAB is 0"


_WRITES = {
    "test_autopilot_failover.py",
    "test_drain_on_cluster.py",
    "test_recovery_on_cluster.py",
    "test_shards_on_cluster.py",
    "test_writes_on_cluster.py",
}
"""Files whose tests take about as long as all others on that lab."""


_LASTING = ("both", "tentacle-writes", "tentacle", "own", "reef", "tentacle-alone")
"""Groups of tests on labs, that which lasts longest first."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Garbage is collected of what tests make: not of the tests, thousands of objects that stay until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: List[pytest.Item]) -> None:
    """Whatever uses a lab is a real-cluster test; skip them where this machine can have no lab.

    Tests of one lab stay in one process (pytest-xdist); they mostly wait, so labs are tested side by side: three of
    Tentacle, one of Reef, whose tests are fewer, and beside them what needs both or brings up labs of its own.
    So do tests of a module that share what is made once for it. What lasts begins first, so that what is short is
    left for the end, when processes run out of work (`--no-loadscope-reorder`: else the most tests begin first).
    """
    for item in items:
        if _LAB_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.cluster)
            item.add_marker(pytest.mark.xdist_group(_lab_of(item)))
            if item.get_closest_marker("long_on_reef") and _release_of(item) == "reef":
                item.add_marker(pytest.mark.long)
        elif _shares(item) and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
    items.sort(key=_turn)
    clusters = [item for item in items if item.get_closest_marker("cluster")]
    reason = _no_lab_because() if clusters else ""
    if reason:
        for item in clusters:
            item.add_marker(pytest.mark.skip(reason=_SKIPPED + reason))


def _shares(item: pytest.Item) -> bool:
    """Whether something that it uses is made once for its module: each process that has one of them would make it."""
    made = getattr(item, "_fixtureinfo", None)
    return made is not None and any(found[-1].scope == "module" for found in made.name2fixturedefs.values())


def _release_of(item: pytest.Item) -> str:
    """The release that it runs on, where it runs on each."""
    callspec = getattr(item, "callspec", None)
    return str(callspec.params.get("any_lab", "")) if callspec is not None else ""


def _lab_of(item: pytest.Item) -> str:
    release = _release_of(item)
    if release:
        # tests of a lab come one after the other: a second lab shortens the whole
        return "tentacle-writes" if release == "tentacle" and item.path.name in _WRITES else release
    names = set(getattr(item, "fixturenames", ()))
    if {"tentacle_lab", "reef_lab"} <= names:
        return "both"
    # apart from those that need both, which mostly wait: together they would last longer than all others
    return "tentacle-alone" if "tentacle_lab" in names else "reef" if "reef_lab" in names else "own"


def _turn(item: pytest.Item) -> int:
    """Labs by how long their tests last, what lasts seconds, the rest."""
    marker = item.get_closest_marker("xdist_group")
    if marker is not None and marker.args[0] in _LASTING:
        return _LASTING.index(marker.args[0])
    return len(_LASTING) + (marker is None and not item.get_closest_marker("slow"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test's labs are described in its report: they are gone when it is read.

    On Debian as root a test that is skipped has failed: what it needs is installed there.
    """
    report = yield
    if report.failed and item.get_closest_marker("cluster"):
        for name in lab_names():
            if name.startswith(f"test-{os.getpid()}-"):
                report.sections.append((f"lab {name}", _described(LabPlaces(name))))
    if report.skipped and not hasattr(report, "wasxfail") and debian_packages.on_debian_as_root():
        reason = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if _ON_PURPOSE not in reason:
            report.outcome = "failed"
            report.longrepr = f"{item.nodeid} was left out, which no test is on Debian as root: {reason}"
    return report


def _described(places: LabPlaces, lines: int = 25) -> str:
    """What a lab's options are, which of its daemons run, how its mgrs crashed, and how the last ones' logs end."""
    state = readable_state(places)
    if state is None:
        return "its state cannot be read"
    lab = Lab(places, state)
    running = lab.daemons()
    found = [f"not running: {', '.join(sorted(set(lab.daemon_names) - set(running))) or 'none'}", *_options(lab)]
    for name in ("supervision", *(f"mgr.{mgr}" for mgr in lab.mgrs)):
        log = places.shared / "log" / f"{name}.log"
        text = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
        parts = {f"{log.name}:": text[-lines:]}
        crashes = [number for number, line in enumerate(text) if _CRASH.search(line)]
        if crashes:
            parts[f"{log.name}, how it crashed last:"] = text[crashes[-1] :][:lines]
        for title, part in parts.items():
            found += ["", title, *(line[:240] for line in part)]
    return "\n".join(found)


def _options(lab: Lab) -> List[str]:
    """What somebody set, what each OSD goes by, and what its queues hold: a queue may go by values of before."""
    found = []
    try:
        dump = lab.json(["ceph", "config", "dump"])
        found = [f"{entry['section']}/{entry['mask']} {entry['name']} = {entry['value']}" for entry in dump]
        for osd in lab.osds:
            shown = osd_config(lab, osd)
            in_force = {name: shown.get(name) for name in (PROFILE, *MCLOCK_NINE)}
            found.append(f"osd.{osd}: {in_force}")
            queues = lab.json(["ceph", "tell", f"osd.{osd}", "dump_op_pq_state"])
            found.append(f"osd.{osd}'s queues: {json.dumps(queues)[:4000]}")
    except (TunerError, ValueError, KeyError) as error:
        found.append(f"no more options: {error}")
    return found


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in one plain line, seen without any option, how many real-cluster tests were left out and why."""
    reasons = [str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", [])]
    clusters = [reason.split(_SKIPPED, 1)[1] for reason in reasons if _SKIPPED in reason]
    if clusters:
        terminalreporter.write_line(f"{len(clusters)} real-cluster tests skipped: {clusters[0]}")


def _no_lab_because() -> str:
    if os.environ.get("CEPH_TUNER_LAB") == "0":
        return _ON_PURPOSE
    try:
        check_host()
        host_throttle()
    except TunerError as error:
        return str(error)
    return ""


@pytest.fixture(scope="session", autouse=True)
def one_process() -> Iterator[None]:
    """Beside other processes of tests, what asks for no number of processes is done in one: each start costs."""
    with pytest.MonkeyPatch.context() as patch:
        if "PYTEST_XDIST_WORKER" in os.environ:
            for place in ("processes.process_pool", "workers.process_workers"):
                patch.setattr(f"ceph_tuner.{place}.cores", lambda: 1)
        yield


@pytest.fixture(scope="session", autouse=True)
def kept_ceph() -> Iterator[None]:
    """What is asked of a lab by `ceph` is asked of one that is kept: each start costs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Lab, "run", lab_ceph.kept(Lab.run))
        yield
    lab_ceph.end_all()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody can reach; pytest's own are for one user alone."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A Chromium, to look at pages."""
    with chromium() as found:
        yield found


@pytest.fixture(scope="session")
def needs_lab() -> None:
    """For tests that make labs of their own."""
    for name in lab_names():
        # left behind by a test run that was killed
        match = re.fullmatch(r"test-(\d+)-.*", name)
        if match and not Path(f"/proc/{match[1]}").exists():
            down(name, lambda line: None)


_LABS: Dict[str, Tuple[pytest.FixtureDef[Any], pytest.FixtureRequest]] = {}
"""Those of this process, by their fixtures' names."""


@pytest.hookimpl
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> None:
    """Keep what ends a lab."""
    if fixturedef.argname in ("tentacle_lab", "reef_lab"):
        _LABS[fixturedef.argname] = fixturedef, request


@pytest.hookimpl(trylast=True)  # after what the test and its module set up
def pytest_runtest_teardown(item: pytest.Item, nextitem: Optional[pytest.Item]) -> None:
    """A process's labs go with the last test on them: its other tests may take longer than these did."""
    if nextitem is None or not nextitem.get_closest_marker("cluster"):
        while _LABS:
            definition, request = _LABS.popitem()[1]
            # made anew where a test asks for it after all
            definition.finish(request)  # type: ignore[arg-type]


def _session_lab(release: str, mgrs: int) -> Iterator[Lab]:
    name = f"test-{os.getpid()}-{release}"
    try:
        yield up(name, {"release": release, "mgrs": mgrs, **SLOW_NVME}, lambda line: None)
    finally:
        down(name, lambda line: None)


@pytest.fixture(scope="session")
def tentacle_lab(needs_lab: None) -> Iterator[Lab]:
    """The Tentacle lab of this test run: three OSDs, two mgrs so that one can fail, a pool named rbd."""
    yield from _session_lab("tentacle", mgrs=2)


@pytest.fixture(scope="session")
def reef_lab(needs_lab: None) -> Iterator[Lab]:
    """The Reef lab of this test run."""
    yield from _session_lab("reef", mgrs=1)


@pytest.fixture(scope="session", params=["tentacle", "reef"])
def any_lab(request: pytest.FixtureRequest) -> Any:
    """Each lab in turn."""
    return request.getfixturevalue(f"{request.param}_lab")
