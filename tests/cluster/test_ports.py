"""The contract of the ports on everything that implements them."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Callable, Iterator, List, Sequence

import pytest
from contract import NAME, CommanderContract, ConfigurationContract, StoreContract

from ceph_lab.cluster import Lab, lab_of
from ceph_tuner.cluster import connect, open_cluster
from ceph_tuner.cluster.cephcli import CephCli, failure
from ceph_tuner.cluster.session import NoLibradosError, Session
from ceph_tuner.core.ceph.commands import CommandConfig, CommandStore
from ceph_tuner.core.errors import ClusterNotFound, ClusterTimeout, CommandFailed, PermissionRefused
from monitors import MemoryStore, Monitors
from waiting import until


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], None]:
    return partial(until, seconds=10)


class TestFakeMonitors(ConfigurationContract):
    @pytest.fixture
    def config(self) -> Monitors:
        return Monitors()


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()


class TestCephCli(CommanderContract):
    @pytest.fixture
    def commander(self, any_lab: Lab) -> CephCli:
        return CephCli(any_lab.argv)


class TestConfigurationAndStoreByCephCli(ConfigurationContract, StoreContract):
    """On one release: beyond the commands themselves nothing here differs from the session's on both."""

    @pytest.fixture
    def config(self, tentacle_lab: Lab) -> CommandConfig:
        return CommandConfig(CephCli(tentacle_lab.argv))

    @pytest.fixture
    def store(self, tentacle_lab: Lab) -> CommandStore:
        return CommandStore(CephCli(tentacle_lab.argv))

    # what a value may be is tried with the commands themselves
    @pytest.mark.parametrize("value", ["two\nlines\n"])
    def test_a_value_comes_back_as_it_was_set(self, store: Any, value: str) -> None:
        super().test_a_value_comes_back_as_it_was_set(store, value)


@pytest.fixture(scope="module")
def session(any_lab: Lab) -> Iterator[Session]:
    with Session(any_lab.argv) as opened:
        yield opened


class TestSession(CommanderContract, ConfigurationContract, StoreContract):
    @pytest.fixture
    def commander(self, session: Session) -> Session:
        return session

    @pytest.fixture
    def config(self, session: Session) -> CommandConfig:
        return CommandConfig(session)

    @pytest.fixture
    def store(self, session: Session) -> CommandStore:
        return CommandStore(session)

    def test_commands_take_milliseconds(self, session: Session) -> None:
        session.mon("config dump", {})
        began = time.monotonic()
        for _ in range(50):
            session.mon("config dump", {})
        assert (time.monotonic() - began) / 50 < 0.05

    def test_a_child_that_died_is_said_and_the_next_command_starts_another(self, any_lab: Lab) -> None:
        with Session(any_lab.argv) as session:
            child = session._child
            assert child is not None
            child._process.kill()
            with suppress(ClusterTimeout):
                # as it was just then under way, or not
                session.mon("status", {})
            assert "fsid" in session.mon("status", {})
            assert session._child is not child

    def test_an_osd_that_hangs_costs_its_own_time_and_no_monitors(self, any_lab: Lab) -> None:
        """Also where it is the first of all to be asked, of which the others learn what arguments a command has."""
        pid = any_lab.daemons()["osd.1"]
        os.kill(pid, signal.SIGSTOP)
        try:
            with Session(any_lab.argv) as session:
                asked = session.tell_each(["osd.1", "osd.0", "osd.2"] * 40, "config get", {"var": NAME}, within=12.0)
                began = time.monotonic()
                first = [next(asked) for _ in range(80)]
                assert {daemon for daemon, _ in first} == {"osd.0", "osd.2"}
                assert "fsid" in session.mon("status", {})
                assert time.monotonic() - began < 12.0, "they waited for the one that hangs"
                assert [type(told) for _, told in asked] == [ClusterTimeout] * 40
                assert time.monotonic() - began < 24.0, "it was waited for more than once"
        finally:
            os.kill(pid, signal.SIGCONT)


def test_a_cluster_is_opened_by_its_labs_name(any_lab: Lab) -> None:
    opened = open_cluster(any_lab.name)
    try:
        assert opened.release.name == any_lab.release
        assert lab_of(opened) is not None
        assert isinstance(opened.commander, Session)
        assert opened.config.osds("osd") == any_lab.osds
    finally:
        opened.close()


def test_without_librados_the_ceph_program_is_used(any_lab: Lab) -> None:
    def launch(command: Sequence[str]) -> List[str]:
        return ["false"] if command[0] == "python3" else any_lab.argv(command)

    opened = connect(any_lab.name, launch)
    assert isinstance(opened.commander, CephCli)
    assert opened.release.name == any_lab.release


@pytest.mark.parametrize("kind", [CephCli, Session])
def test_a_key_that_the_cluster_does_not_know_is_a_refused_permission(any_lab: Lab, kind: Any) -> None:
    def launch(command: Sequence[str]) -> List[str]:
        # the keyring is the one of the configuration: none is there under this path
        return any_lab.argv(["env", "CEPH_KEYRING=/dev/null", "CEPH_ARGS=--keyring=/dev/null", *command])

    with pytest.raises((PermissionRefused, ClusterNotFound, CommandFailed)) as refusal:
        kind(launch, timeout=10).mon("status", {})
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("path", ["/nowhere/ceph.conf", "./nothing.conf"])
def test_a_path_without_a_file_is_one_line_that_names_it(path: str) -> None:
    with pytest.raises(ClusterNotFound, match=f"no file {Path(path)}"):
        open_cluster(path)


def test_a_conf_that_may_not_be_read_is_a_refused_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conf = tmp_path / "ceph.conf"
    conf.write_text("")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(PermissionRefused, match=r"ceph\.conf"):
        open_cluster(str(conf))


def test_a_machine_without_the_ceph_program_is_told_what_to_install() -> None:
    with pytest.raises(ClusterNotFound, match="ceph-common"):
        CephCli(lambda command: ["/nowhere/ceph", *command[1:]]).mon("status", {})


def test_a_command_that_hangs_ends_in_a_timeout() -> None:
    with pytest.raises(ClusterTimeout, match="`ceph status` did not answer within"):
        CephCli(lambda command: ["sleep", "60"], timeout=-4.9).mon("status", {})


def test_a_python_without_librados_is_told_apart_from_a_cluster_that_does_not_answer() -> None:
    with pytest.raises(NoLibradosError):
        Session(lambda command: ["echo", '{"ready": false, "reason": "No module named rados"}'])
    with pytest.raises(NoLibradosError):
        Session(lambda command: ["/nowhere/python3"])
    with pytest.raises(ClusterTimeout):
        Session(lambda command: ["echo", '{"ready": false, "code": -110, "reason": "[errno 110] RADOS timed out"}'])


@pytest.mark.parametrize("then", ["exit 1", """echo '{"ready": false, "reason": "no rados"}'""", "echo nonsense"])
def test_a_connection_that_does_not_come_back_is_a_timeout_as_for_any_cluster_that_is_gone(
    tmp_path: Path, then: str
) -> None:
    begun = tmp_path / "begun"
    script = f"[ -e {begun} ] && {{ {then}; exit; }}; touch {begun}; echo '{{\"ready\": true}}'"
    with Session(lambda command: ["sh", "-c", script]) as session:
        for _ in range(2):
            with pytest.raises(ClusterTimeout):
                session.mon("status", {})


@pytest.mark.parametrize(
    ("code", "message", "error", "words"),
    [
        (-22, "noise\nError EINVAL: no such thing\n", CommandFailed, "no such thing"),
        (-13, "Error EACCES: access denied", PermissionRefused, "access denied"),
        (-13, "[errno 13] RADOS permission denied (error connecting to the cluster)", PermissionRefused, "denied"),
        # as the `ceph` program ends when it does not get as far as a command
        (-1, "[errno 110] RADOS timed out (error connecting to the cluster)", ClusterTimeout, "timed out"),
        (-1, "[errno 13] RADOS permission denied (error connecting to the cluster)", PermissionRefused, "denied"),
        (-110, "[errno 110] RADOS timed out (error connecting to the cluster)", ClusterTimeout, "timed out"),
        (-1, "ObjectNotFound('RADOS object not found (error calling conf_read_file)')", ClusterNotFound, "ceph.conf"),
        (-5, "", CommandFailed, "EIO"),
    ],
)
def test_a_failure_becomes_the_error_that_says_what_to_do(code: int, message: str, error: Any, words: str) -> None:
    made = failure("ceph x", code, message)
    assert type(made) is error
    assert words in str(made)
    assert "\n" not in str(made)
