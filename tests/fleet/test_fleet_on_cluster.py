"""A fleet of two real clusters of different releases: seen, broken off, killed, gone on with and taken back."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

import pytest

from ceph_lab.cluster import Lab
from ceph_tuner.cluster import open_cluster
from ceph_tuner.cluster.plugin import OPTION_PREFIX, Plugin
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.changes.journal import APPLIED
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.releases import Settings, nine
from ceph_tuner.core.measure.history import History
from ceph_tuner.fleet.contract import ByLab, Member
from ceph_tuner.fleet.rollout import roll_out
from ceph_tuner.fleet.site import MemberSite
from ceph_tuner.fleet.status import status_of
from ceph_tuner.shipped.plugin_files import LIBRARY, MODULE
from fake_dashboard import PASSWORD, USER
from lab_dashboard import dashboards
from waiting import until

TENTACLE, REEF = "amsterdam", "brussels"
LIMIT = "osd_mclock_scheduler_client_lim"
MILD: Settings = {**nine((0.4, 1, 0.8), (0.4, 1, 0), (0, 1, 0)), "osd_mclock_profile": "custom"}
STARVING: Settings = {**nine((0.01, 1, 0.01), (0.5, 1, 0), (0, 1, 0)), "osd_mclock_profile": "custom"}
"""Clients at 1% of the capacity, some 23 operations/s of a lab: too few for those of one cluster."""

OFFERED = {TENTACLE: 10, REEF: 60}
"""Operations per second of the clients of each."""
ENOUGH, MORE = "client.iops >= 2 /s", "client.iops >= 36 /s"
WANTED = {TENTACLE: ENOUGH, REEF: MORE}

# so many at a time that a busy machine, too, gets through with what is offered
FIO = (
    "fio --name=clients --ioengine=rbd --clientname=admin --pool=rbd --rbdname=fleet --rw=randwrite --bs=4k "
    "--iodepth=64 --rate_iops={} --time_based --runtime=900"
)

SHORT_MINUTES = """

MINUTE = 4.0
"""
"""Appended to a lab's copy of the history: a window every few seconds, so that a breach is seen as soon."""

PROGRAM = [sys.executable, "-c", "from ceph_tuner_cli.main import main; main()"]


class City:
    """A cluster of the fleet with the plugin in its mgr, and a few clients."""

    def __init__(self, name: str, lab: Lab) -> None:
        self.name, self.lab = name, lab
        self.cluster = open_cluster(lab.name)
        self._plugin = Plugin(self.cluster, SystemClock())
        self._clients: List[subprocess.Popen[bytes]] = []

    def set_up(self) -> None:
        self._plugin.install(enable=False)
        with (self.lab.mgr_modules / LIBRARY / "core" / "measure" / "history.py").open("a") as installed:
            installed.write(SHORT_MINUTES)
        # the mgrs have not told of the module's options yet
        self.lab.run(["ceph", "config", "set", "mgr", f"{OPTION_PREFIX}sample_interval", "1", "--force"])
        if self._plugin.status().enabled:
            self.cluster.commander.mon("mgr module disable", {"module": MODULE})
        self.cluster.commander.mon("mgr module enable", {"module": MODULE, "force": "--force"})
        self.wants(WANTED[self.name])
        self.lab.run(["rbd", "create", "--size", "64M", "rbd/fleet"])
        command = self.lab.argv(FIO.format(OFFERED[self.name]).split())
        self._clients.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def close(self) -> None:
        for clients in self._clients:
            clients.send_signal(signal.SIGINT)
            clients.wait(60)
            self.lab.run(["rbd", "rm", "rbd/fleet"])
        self.undo()
        self._plugin.uninstall(purge=True)
        self.cluster.close()

    def wants(self, objective: str) -> None:
        self.cluster.store.set("slo", json.dumps({"name": "fleet", "objectives": [objective]}))

    def dump(self) -> str:
        """`ceph config dump --format json`, byte for byte."""
        return self.cluster.commander.mon("config dump", {})

    def limits(self) -> List[str]:
        return [entry.value for entry in self.cluster.config.dump() if entry.name == LIMIT]

    def well(self, since: float) -> bool:
        """Whether its plugin sees every objective met, by a window that began after `since`."""
        found, windows = status_of(self.cluster), History(self.cluster.store).windows(self.cluster.clock.now())
        met = found.objectives is not None and bool(found.objectives.met) and not found.warnings
        return met and windows[-1].start >= since

    def undo(self) -> None:
        with suppress(InputError):
            # nothing is in force where no test failed
            self.cluster.applier().undo(everything=True)


class Fleet:
    """The program, with a file that names both clusters."""

    def __init__(self, directory: Path, tentacle: City, reef: City) -> None:
        self.tentacle, self.reef = tentacle, reef
        self.cities = (tentacle, reef)
        self._directory = directory
        self.mild, self.starving = str(directory / "mild.yaml"), str(directory / "starving.yaml")
        """Profiles that travel, found on the Tentacle cluster."""
        self.names({city.name: {"lab": city.lab.name} for city in self.cities})

    def names(self, members: Dict[str, Dict[str, Any]]) -> None:
        # JSON is YAML
        (self._directory / "fleet.yaml").write_text(json.dumps({"schema": 1, "clusters": members}))

    def start(self, *words: str) -> subprocess.Popen[str]:
        command = [*PROGRAM, "fleet", *words, "--fleet", str(self._directory / "fleet.yaml")]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, *words: str) -> Tuple[int, str, str]:
        with self.start(*words) as process:
            out, err = process.communicate(timeout=300)
        assert "Traceback" not in err
        return process.returncode, out, err

    def status(self, *words: str) -> Dict[str, Any]:
        return {row["cluster"]: row for row in json.loads(self.run("status", "--format", "json", *words)[1])}

    def apply(self, file: str, watch: int) -> List[str]:
        shown = ["--yes", "--format", "json", "--although-unlike", "--unpredicted"]
        return ["apply", file, "--canary", TENTACLE, "--watch", str(watch), *shown]

    def dumps(self) -> List[str]:
        return [city.dump() for city in self.cities]

    def well(self, since: float = 0.0) -> None:
        """Wait until every objective is met everywhere, as the plugins see it."""

        def seen() -> Any:
            return [status_of(city.cluster) for city in self.cities]

        until(lambda: all(city.well(since) for city in self.cities), 90, seen)


def on_trial(city: City, rollout: Optional[subprocess.Popen[str]] = None) -> None:
    """Wait until it is brought there."""

    def brought() -> bool:
        assert rollout is None or rollout.poll() is None, rollout.communicate()
        return any(entry.trial and entry.state == APPLIED for entry in city.cluster.applier().history())

    until(brought, 90)


@pytest.fixture(scope="module")
def fleet(tentacle_lab: Lab, reef_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with ExitStack() as stack:
        cities = [City(TENTACLE, tentacle_lab), City(REEF, reef_lab)]
        for city in cities:
            stack.callback(city.close)
        with ThreadPoolExecutor() as together:
            list(together.map(City.set_up, cities))
        found = Fleet(tmp_path_factory.mktemp("fleet"), *cities)
        found.well()
        # as it was found there, with that cluster's hardware and load as its evidence
        applier = cities[0].cluster.applier()
        for settings, file in ((MILD, found.mild), (STARVING, found.starving)):
            applier.apply(applier.plan("osd", settings))
            code, _, err = found.run("export", TENTACLE, "--output", file)
            applier.undo()
            assert code == 0, err
        yield found


@pytest.fixture
def before(fleet: Fleet) -> Iterator[List[str]]:
    """Both configurations, which every test leaves as they were."""
    fleet.well()
    dumps = fleet.dumps()
    yield dumps
    after = fleet.dumps()
    for city in fleet.cities:
        city.undo()
    assert after == dumps
    for city in fleet.cities:
        assert city.cluster.store.keys("lock/") == []


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_each_is_seen_whichever_way_it_is_reached_and_those_that_are_away_delay_nobody(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as nobody, dashboards(fleet.reef.lab, tmp_path) as served:
        nobody.bind(("127.0.0.1", 0))
        monkeypatch.setenv("PW", PASSWORD)
        rest = {"username": USER, "password": {"env": "PW"}, "verify": False}
        fleet.names(
            {
                TENTACLE: {"lab": fleet.tentacle.lab.name},
                REEF: {"lab": fleet.reef.lab.name, "labels": {"site": "b"}},
                "by-rest": {"dashboard": {"url": served.urls, **rest}},
                "gone": {"dashboard": {"url": f"http://127.0.0.1:{nobody.getsockname()[1]}", **rest}},
            }
        )
        try:
            # with its dashboard the mgr has started anew: the first window of its plugin holds too few operations
            fleet.well(since=time.time())
            rows = fleet.status()
            assert [row["answer"] for row in rows.values()] == ["ok", "ok", "ok", "failed"], [
                row["problem"] for row in rows.values()
            ]
            tentacle, reef, by_rest = (rows[name]["status"] for name in (TENTACLE, REEF, "by-rest"))
            assert (tentacle["release"], reef["release"]) == ("tentacle", "reef")
            assert (tentacle["objectives"]["met"], reef["objectives"]["met"]) == ([ENOUGH], [MORE])
            assert (by_rest["version"], by_rest["osds"]) == (reef["version"], reef["osds"])
            assert by_rest["objectives"] is by_rest["drift"] is None

            # a monitor that hangs: its cluster is late, the others have their rows as before
            mon = fleet.reef.lab.daemon_pid("mon.a")
            assert mon is not None
            with stopped(mon):
                code, out, err = fleet.run("status", TENTACLE, REEF, "--within", "6")
            shown = {line.split()[0]: line.split()[1] for line in out.splitlines()}
            assert (code, shown[TENTACLE]) == (1, tentacle["version"])
            assert shown[REEF] in ("late", "down"), err
            until(lambda: fleet.run("status", TENTACLE, REEF)[0] == 0, 30)
        finally:
            fleet.names({city.name: {"lab": city.lab.name} for city in fleet.cities})
    # without its dashboard the mgr starts anew, and so does the plugin in it
    fleet.well(since=time.time())


def test_killed_with_a_wave_on_trial_the_same_command_goes_on_and_then_passes_over_what_is_kept_until_the_rollback(
    fleet: Fleet, before: List[str]
) -> None:
    rollout = fleet.start(*fleet.apply(fleet.mild, watch=3))
    on_trial(fleet.reef, rollout)
    rollout.kill()
    rollout.communicate()
    assert fleet.reef.dump() != before[1]
    code, out, err = fleet.run(*fleet.apply(fleet.mild, watch=3))
    assert (code, json.loads(out)["before"], json.loads(out)["kept"]) == (0, [TENTACLE], [REEF]), err
    assert [city.limits() for city in fleet.cities] == [["0.800000"], ["0.800000"]]
    code, out, err = fleet.run(*fleet.apply(fleet.mild, watch=3))
    assert (code, json.loads(out)["before"], json.loads(out)["kept"]) == (0, [TENTACLE, REEF], []), err
    assert {row["status"]["profile"] for row in fleet.status().values()} == {"custom"}
    code, _, err = fleet.run("rollback", fleet.mild)
    assert code == 0, err


def test_an_objective_that_it_makes_missed_takes_its_wave_back_and_the_same_command_goes_on_later(
    fleet: Fleet, before: List[str]
) -> None:
    code, out, err = fleet.run(*fleet.apply(fleet.starving, watch=40))
    assert code == 4, err
    outcome = json.loads(out)
    assert (outcome["kept"], outcome["taken_back"]) == ([TENTACLE], [REEF])
    assert outcome["breach"] == f"{REEF}: a hard objective is missed ({MORE})"
    assert fleet.reef.dump() == before[1]
    try:
        # it is agreed to do with less: what was kept is passed over
        fleet.reef.wants(ENOUGH)
        fleet.well()
        code, out, err = fleet.run(*fleet.apply(fleet.starving, watch=3))
        assert (code, json.loads(out)["before"], json.loads(out)["kept"]) == (0, [TENTACLE], [REEF]), err
    finally:
        code, _, err = fleet.run("rollback", fleet.starving)
        fleet.reef.wants(MORE)
    assert code == 0, err


def site(city: City) -> MemberSite:
    member = Member(city.name, ByLab(city.lab.name))
    return MemberSite(member, lambda: open_cluster(city.lab.name), "fleet wave", "osd", lambda cluster: MILD)


def test_an_osd_that_goes_down_on_one_takes_the_whole_wave_back_everywhere(fleet: Fleet, before: List[str]) -> None:
    # no other breach is meant: clients that a busy machine serves slowly would end the wave before it is whole
    fleet.reef.wants(ENOUGH)
    fleet.well()
    sites = [site(city) for city in fleet.cities]
    said: List[str] = []
    down: List[Future[None]] = []

    def lose_an_osd() -> None:
        # while both are watched
        on_trial(fleet.reef)
        fleet.reef.lab.stop_osd(2)

    def heard(line: str) -> None:
        said.append(line)
        if line == f"{REEF}: on trial":
            down.append(together.submit(lose_an_osd))

    with ThreadPoolExecutor() as together, ExitStack() as stack:
        for one in sites:
            stack.callback(one.close)
        try:
            outcome = roll_out([sites], SystemClock(), 60.0, 1.0, heard)
        finally:
            for stopping in down:
                stopping.result()
            fleet.reef.lab.start_osd(2)
            fleet.reef.wants(MORE)
    assert outcome.taken_back == (TENTACLE, REEF), outcome
    assert outcome.breach == f"{REEF}: 1 of its 3 OSDs are down"
    assert said[-2:] == [f"{REEF}: taken back", f"{TENTACLE}: taken back"]
    assert fleet.dumps() == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_ctrl_c_takes_back_what_is_on_trial(fleet: Fleet, before: List[str], number: signal.Signals) -> None:
    rollout = fleet.start(*fleet.apply(fleet.mild, watch=60))
    on_trial(fleet.tentacle, rollout)
    rollout.send_signal(number)
    out, err = rollout.communicate(timeout=60)
    assert rollout.returncode == 130, err
    assert "Traceback" not in err
    assert (json.loads(out)["interrupted"], json.loads(out)["taken_back"]) == (True, [TENTACLE])
    assert fleet.dumps() == before


def test_what_is_imported_is_shown_first_and_taken_back_like_any_change(fleet: Fleet, before: List[str]) -> None:
    words = ["import", fleet.mild, REEF, "--although-unlike", "--unpredicted", "--format", "json"]
    code, out, err = fleet.run(*words)
    assert (code, fleet.reef.dump()) == (0, before[1]), err
    assert f"ceph config set osd {LIMIT} 0.800000" in [step["command"] for step in json.loads(out)[0]["steps"]]
    code, out, err = fleet.run(*words, "--yes")
    assert code == 0, err
    assert fleet.reef.limits() == ["0.800000"]
    (undone,) = fleet.reef.cluster.applier().undo()
    assert undone.entry.number == json.loads(out)[0]["change"]
    assert not undone.drift
