"""The ceph program behind a prefix: what arrives over there is what was sent, whatever it is made of."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Callable, Iterator, List

import pytest
from contract import CommanderContract, ConfigurationContract, StoreContract
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.cluster import cephcli, open_cluster
from ceph_tuner.cluster.prefix_command import PrefixCommand, PrefixedCephCli
from ceph_tuner.core.ceph.commands import CommandConfig, CommandStore
from ceph_tuner.core.ceph.tell_each import tell_each
from ceph_tuner.core.errors import (
    ClusterNotFound,
    ClusterTimeout,
    CommandFailed,
    InputError,
    PermissionRefused,
)
from stand_in_ceph import StandIn, programs_on_the_path
from twins import small_twin

SSH, KUBECTL = "ssh admin@mon1 sudo", "kubectl -n rook-ceph exec deploy/rook-ceph-tools --"
HOSTILE = [
    "two words",
    "it's",
    'a "quoted" one',
    "$(touch owned)",
    "`touch owned`",
    "; touch owned",
    "a && touch owned",
    "> owned",
    "line\nanother\n",
    "\n",
    "*",
    "~",
    "$HOME",
    "\\",
    "'\\''",
    "#",
    "ä → ☃",
    "",
    "a\tb",
    "!!",
    "{a,b}",
]


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    with programs_on_the_path(small_twin().commander, monkeypatch) as made:
        yield made


@pytest.fixture(params=[SSH, KUBECTL], ids=["ssh", "kubectl"])
def commander(request: pytest.FixtureRequest, programs: StandIn) -> PrefixedCephCli:
    return PrefixedCephCli(PrefixCommand.parse(request.param))


class TestPrefixCommand(CommanderContract):
    @pytest.fixture(params=[SSH, KUBECTL], ids=["ssh", "kubectl"])
    def commander(self, request: pytest.FixtureRequest, programs: StandIn) -> PrefixedCephCli:
        return PrefixedCephCli(PrefixCommand.parse(request.param))


class TestConfigurationAndStoreBySsh(ConfigurationContract, StoreContract):
    """Beyond the commands themselves one prefix differs in nothing from the other."""

    @pytest.fixture
    def commander(self, programs: StandIn) -> PrefixedCephCli:
        return PrefixedCephCli(PrefixCommand.parse(SSH))

    @pytest.fixture
    def config(self, commander: PrefixedCephCli) -> CommandConfig:
        return CommandConfig(commander)

    @pytest.fixture
    def store(self, commander: PrefixedCephCli) -> CommandStore:
        return CommandStore(commander)

    @pytest.fixture
    def eventually(self) -> Callable[[Callable[[], bool]], None]:
        def wait(holds: Callable[[], bool]) -> None:
            assert holds()

        return wait


@pytest.mark.parametrize("value", HOSTILE)
def test_a_value_arrives_as_it_was_sent_and_nothing_of_it_is_run(
    commander: PrefixedCephCli, programs: StandIn, value: str
) -> None:
    # the twin takes no such value, and says so itself
    with pytest.raises(CommandFailed, match="-22"):
        commander.mon("config set", {"who": "osd", "name": "osd_max_scrubs", "value": value})
    assert programs.given[-1][-3:] == ["osd", "osd_max_scrubs", value]
    assert not (programs.folder / "owned").exists()


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), st.integers(0, 3))
def test_every_shell_on_the_way_takes_one_level_of_quotes_away(value: str, shells: int) -> None:
    words = PrefixCommand(("ssh", "host"), shells).launch(["ceph", "config", "set", value])[2:]
    for _ in range(shells):
        words = shlex.split(" ".join(words))
    assert words == ["ceph", "config", "set", value]


@pytest.mark.parametrize("value", ["--out-file=/etc/shadow", "-o/etc/shadow", "--", "-c", "a\0b"])
def test_an_option_and_a_nul_are_refused_before_anything_is_sent(
    commander: PrefixedCephCli, programs: StandIn, value: str
) -> None:
    with pytest.raises(InputError):
        commander.mon("config set", {"who": "osd", "name": "osd_max_scrubs", "value": value})
    assert programs.given == []


def test_a_payload_goes_by_way_of_the_input_and_never_as_an_argument(
    commander: PrefixedCephCli, programs: StandIn
) -> None:
    commander.mon("config-key set", {"key": "mgr/tuner/a"}, payload="$(touch owned)\n'")
    assert programs.inputs[-1] == "$(touch owned)\n'"
    assert programs.given[-1][-5:] == ["-i", "-", "config-key", "set", "mgr/tuner/a"]
    assert commander.mon("config-key get", {"key": "mgr/tuner/a"}) == "$(touch owned)\n'"


def test_a_prefix_that_passes_no_input_on_is_refused_before_a_key_is_emptied(programs: StandIn) -> None:
    deaf = programs.folder / "deaf"
    deaf.write_text('#!/bin/sh\nexec "$@" < /dev/null\n')
    deaf.chmod(0o755)
    commander = PrefixedCephCli(PrefixCommand.parse(str(deaf), shells=0))
    good = PrefixedCephCli(PrefixCommand.parse(KUBECTL))
    good.mon("config-key set", {"key": "mgr/tuner/a"}, payload="kept")
    with pytest.raises(InputError, match="passes no input on"):
        commander.mon("config-key set", {"key": "mgr/tuner/a"}, payload="lost")
    assert good.mon("config-key get", {"key": "mgr/tuner/a"}) == "kept"
    assert CommandStore(good).keys("") == ["a"]


@pytest.mark.parametrize(
    ("text", "shells"),
    [
        (SSH, 1),
        (KUBECTL, 0),
        ("/usr/bin/ssh -p 2222 mon1", 1),
        ("sudo kubectl exec pod --", 0),
        ("podman exec ceph-mon", 0),
        ("kubectl exec deploy/ssh --", 0),
        ("kubectl -n ssh-keys exec pod --", 0),
    ],
)
def test_the_programs_decide_how_many_shells_parse(text: str, shells: int) -> None:
    assert PrefixCommand.parse(text).shells == shells


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mussh host", "'mussh', of which is not known whether a shell"),
        ("ssh jump ssh mon1", "ssh and ssh"),
        ("sudo ssh mon1", None),
        ("kubectl exec ssh -- ssh mon1", "kubectl and ssh and ssh"),
        ("ssh -t mon1", "asks for a terminal"),
        ("kubectl exec -it pod --", "`-it`"),
        ("kubectl exec --tty pod --", "`--tty`"),
        ("ssh 'mon1", "no closing quotation"),
        ("", "a command such as"),
    ],
)
def test_what_is_not_certain_is_asked_for(text: str, said: str) -> None:
    if said is None:
        assert PrefixCommand.parse(text).shells == 1
        return
    with pytest.raises(InputError, match=said):
        PrefixCommand.parse(text)


def test_the_operator_may_say_how_many_shells_there_are() -> None:
    assert PrefixCommand.parse("ssh jump ssh mon1", shells=2).launch(["ceph", "a b"])[-1] == shlex.quote("'a b'")
    assert PrefixCommand.parse("mussh host", shells=0).launch(["ceph", "a b"])[-1] == "a b"
    with pytest.raises(InputError, match="0 to 3"):
        PrefixCommand.parse("mussh host", shells=9)


def test_a_container_s_command_is_given_its_input() -> None:
    assert PrefixCommand.parse("sudo podman exec mon").launch(["ceph"]) == [
        "sudo",
        "podman",
        "exec",
        "-i",
        "mon",
        "ceph",
    ]
    for given_already in ("kubectl exec -i pod --", "kubectl exec --stdin pod --"):
        assert PrefixCommand.parse(given_already).launch(["ceph"]) == [*given_already.split(), "ceph"]


def test_a_cluster_is_opened_behind_a_prefix_with_the_ceph_conf_over_there(programs: StandIn) -> None:
    opened = open_cluster("rome", prefix=PrefixCommand.parse(SSH, conf="/etc/ceph/rome's own.conf"))
    assert (opened.name, opened.release.name, opened.run_here) == ("rome", "tentacle", None)
    assert programs.given[-1][:2] == ["--conf", "/etc/ceph/rome's own.conf"]
    assert opened.config.osds("osd") == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ssh unreachable", "Connection refused"),
        ("kubectl exec deploy/gone --", 'deployments.apps "gone" not found'),
        ("ssh mon1 no-such-program", "not found"),
        ("/nowhere/ssh mon1", "no program `/nowhere/ssh`"),
    ],
)
def test_a_prefix_that_does_not_get_there_is_told_in_its_own_words(programs: StandIn, text: str, said: str) -> None:
    with pytest.raises(ClusterNotFound, match=said) as refusal:
        open_cluster("ceph", prefix=PrefixCommand.parse(text))
    assert "\n" not in str(refusal.value)


def test_a_way_that_is_cut_amid_the_work_is_one_to_try_again(programs: StandIn, commander: PrefixedCephCli) -> None:
    commander.mon("status", {})
    for name in ("ssh", "kubectl"):
        (programs.folder / name).write_text("#!/bin/sh\necho 'cut' >&2\nexit 255\n")
    with pytest.raises(ClusterTimeout, match=r"did not reach the cluster: .* ended with 255: cut"):
        commander.mon("status", {})
    told = dict(tell_each(commander, ["osd.0"], "config show", {}, 5.0))
    assert isinstance(told["osd.0"], ClusterTimeout)


def test_what_the_cluster_refuses_is_no_fault_of_the_prefix(programs: StandIn, commander: PrefixedCephCli) -> None:
    def refuse(*_: object) -> str:
        raise PermissionRefused("x", "access denied", "more")

    programs.commander = type("Refusing", (), {"mon": staticmethod(refuse), "tell": staticmethod(refuse)})()
    with pytest.raises(PermissionRefused, match="access denied"):
        commander.mon("status", {})


def failing(programs: StandIn, name: str, code: int, words: str) -> None:
    (programs.folder / name).write_text(f"#!/bin/sh\necho {shlex.quote(words)} >&2\nexit {code}\n")
    (programs.folder / name).chmod(0o755)


@pytest.mark.parametrize(
    ("text", "name", "code", "words"),
    [
        ("sudo kubectl exec pod --", "kubectl", 1, "Unable to connect to the server: net/http: TLS handshake timeout"),
        ("env KUBECONFIG=/x kubectl exec pod --", "kubectl", 1, "error: Internal error occurred: etcd timed out"),
        ("ssh mon1 sudo docker exec mon", "docker", 1, "Error response from daemon: cannot exec in a stopped state"),
        ("docker exec mon", "docker", 1, "Error response from daemon: permission denied"),
        ("sudo podman exec mon", "podman", 125, "Error: no container with name or ID mon"),
        ("sudo kubectl exec pod --", "kubectl", 13, ""),
        ("timeout 9 ssh mon1", "ssh", 124, ""),
        ("sudo docker exec mon", "sudo", 1, "sudo: a password is required"),
    ],
)
def test_what_ends_without_a_word_of_ceph_s_is_a_fault_of_the_way_and_one_to_try_again(
    programs: StandIn, text: str, name: str, code: int, words: str
) -> None:
    commander = PrefixedCephCli(PrefixCommand.parse(text, shells=1 if "ssh" in text else 0))
    failing(programs, name, code, words)
    with pytest.raises(ClusterTimeout, match="did not reach the cluster") as fault:
        commander.mon("config set", {"who": "osd", "name": "osd_max_scrubs", "value": "2"})
    assert (words or f"ended with {code}: no message") in str(fault.value)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("Error EPERM: not permitted", PermissionRefused),
        ("Error EINVAL: no such option", CommandFailed),
        ("noise\n[errno 13] RADOS permission denied (error connecting to the cluster)", PermissionRefused),
        ("[errno 110] RADOS timed out (error connecting to the cluster)", ClusterTimeout),
        ("ObjectNotFound('RADOS object not found (error calling conf_read_file)')", ClusterNotFound),
    ],
)
def test_what_the_program_over_there_says_is_the_cluster_s_answer(
    programs: StandIn, commander: PrefixedCephCli, words: str, error: type
) -> None:
    failing(programs, "ceph", 1, words)
    with pytest.raises(error) as fault:
        commander.mon("status", {})
    assert "did not reach the cluster" not in str(fault.value)


HUNTER = "hunter2"
WITH_A_PASSWORD = [
    f"sshpass -p {HUNTER} ssh -v -p 2222 root@mon1 sudo",
    f"sshpass -p{HUNTER} ssh -o BatchMode=no root@mon1",
    f"ssh ssh://root:{HUNTER}@mon1",
    f"kubectl --token={HUNTER} exec pod --",
    f"sudo kubectl --token {HUNTER} -n rook exec pod --",
    f"env SSHPASS={HUNTER} sshpass -e ssh mon1",
    f"docker exec -e PASSWORD={HUNTER} mon",
    f"docker exec -i -ePASSWORD={HUNTER} mon",
    f"/opt/jump {HUNTER} mon1",
    f"/opt/jump -n {HUNTER} mon1",
]


@pytest.mark.parametrize("text", WITH_A_PASSWORD)
def test_a_password_among_the_words_is_in_no_text(text: str) -> None:
    prefix = PrefixCommand.parse(text, shells=1)
    # what these programs say may repeat all that they were given
    for words in (text, f"unknown argument '-p{HUNTER}'\ncommand terminated with exit code 1", ""):
        assert HUNTER not in prefix.fault(1, words)
    assert HUNTER not in f"{prefix} {prefix!r}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (WITH_A_PASSWORD[0], "`sshpass` to mon1"),
        (WITH_A_PASSWORD[2], "`ssh` to mon1"),
        (WITH_A_PASSWORD[3], "`kubectl`"),
        ("/usr/bin/ssh -4 -oPort=22 -lbob -i key mon1 sudo", "`ssh` to mon1"),
    ],
)
def test_of_the_words_the_program_and_the_host_are_shown(text: str, shown: str) -> None:
    assert str(PrefixCommand.parse(text, shells=1)) == shown


@pytest.mark.parametrize(
    "text",
    [f"SSHPASS={HUNTER} sshpass -e ssh mon1", f"sshpass -p '{HUNTER} ssh mon1", f"ssh {HUNTER} {'x' * 5000}"],
)
def test_words_that_are_refused_are_not_repeated(text: str) -> None:
    for shells in (None, 1):
        with pytest.raises(InputError) as refusal:
            PrefixCommand.parse(text, shells)
        assert HUNTER not in str(refusal.value)


def script(folder: Path, text: str) -> PrefixCommand:
    path = folder / "way"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return PrefixCommand.parse(str(path), shells=0)


def test_a_command_that_hangs_ends_with_all_that_it_has_started(tmp_path: Path) -> None:
    prefix = script(tmp_path, f"sleep 321 & echo $! > {tmp_path}/child; wait")
    began = time.monotonic()
    with pytest.raises(ClusterTimeout, match="did not answer within"):
        PrefixedCephCli(prefix, timeout=-4.0).mon("status", {})
    assert time.monotonic() - began < 60
    assert not lives_on(int((tmp_path / "child").read_text()))


def test_a_process_that_stays_behind_with_the_pipes_is_not_waited_for(tmp_path: Path) -> None:
    # as ssh's own one does that keeps a connection for later commands
    prefix = script(tmp_path, "setsid sleep 60 & echo '{}'")
    began = time.monotonic()
    assert PrefixedCephCli(prefix, timeout=50.0).mon("status", {}) == "{}\n"
    assert time.monotonic() - began < 30


def test_an_answer_without_an_end_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cephcli, "ANSWER", 1 << 20)
    with pytest.raises(CommandFailed, match="more than 1 MiB"):
        PrefixedCephCli(script(tmp_path, "yes"), timeout=20.0).mon("status", {})


def test_ctrl_c_ends_at_once_and_leaves_nothing_running(tmp_path: Path) -> None:
    prefix = script(tmp_path, f"echo $$ > {tmp_path}/child; exec sleep 321")
    program = f"""
from ceph_tuner.cluster.prefix_command import PrefixCommand, PrefixedCephCli
PrefixedCephCli(PrefixCommand({prefix.words!r})).mon("status", {{}})
"""
    process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE)
    child = tmp_path / "child"
    deadline = time.monotonic() + 20
    while not (child.exists() and child.read_text().strip()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(0.5)  # the child runs before Popen() has returned: an interrupt in between leaves nobody who knows it
    process.send_signal(signal.SIGINT)
    assert b"KeyboardInterrupt" in process.communicate(timeout=60)[1]
    assert not lives_on(int(child.read_text()))


def test_many_osds_are_asked_at_a_time_and_their_number_is_bounded(programs: StandIn) -> None:
    under_way, most, lock = [0], [0], threading.Lock()

    class Slow:
        def mon(self, *_: object) -> str:
            return "{}"

        def tell(self, *_: object) -> str:
            with lock:
                under_way[0] += 1
                most[0] = max(most[0], under_way[0])
            time.sleep(0.2)
            with lock:
                under_way[0] -= 1
            return "{}"

    programs.commander = Slow()
    osds: List[str] = [f"osd.{number}" for number in range(16)]
    told = dict(tell_each(PrefixedCephCli(PrefixCommand.parse(SSH)), osds, "config show", {}, 10.0))
    assert set(told) == set(osds)
    assert 2 <= most[0] <= cephcli.AT_ONCE


def lives_on(pid: int) -> bool:
    """Whether it still runs after a moment; one that waits to be buried does not."""
    for _ in range(50):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return False
        except FileNotFoundError:
            return False
        time.sleep(0.1)
    return True
