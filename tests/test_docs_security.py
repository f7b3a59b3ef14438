"""The users of docs/security.md, made on real clusters by the page's own commands: what they may do, and what not."""

from __future__ import annotations

import contextlib
import errno
import io
import sys
from typing import Dict, Iterator, List, Sequence, Tuple

import pytest
from made_causes import clients

import documented
from ceph_lab.cluster import Lab
from ceph_tuner.cluster.session import Session
from ceph_tuner.core.errors import CommandFailed, PermissionRefused
from ceph_tuner_cli.main import main
from config_dump import config_dump
from documented import DOCS
from lab_plugin import with_plugin

pytestmark = pytest.mark.long_on_reef

MAKING = {
    command.words[3]: command.words
    for block in documented.blocks(DOCS / "security.md")
    if block.language == "console"
    for command in block.commands
    if command.text.startswith("ceph auth get-or-create ")
}
"""User -> the command that makes it."""

VIEWER, OPERATOR, REQUESTER, APPROVER, LOOKER, READER, TUNER = (
    f"client.tuner{suffix}" for suffix in ("-viewer", "-operator", "-requester", "-approver", "-looker", "-reader", "")
)

Asked = Tuple[str, Dict[str, str]]

READING: List[Asked] = [
    (f"tuner {words}", {})
    for words in (
        "status",
        "sample",
        "history",
        "slo ls",
        "profile ls",
        "profile export",
        "auto explain",
        "capacity ls",
    )
]
OPERATING: List[Asked] = [
    ("tuner slo set", {"objective": "client.p95_ms<=80"}),
    ("tuner slo rm", {"metric": "all"}),
    ("tuner profile apply", {"name": "high_client_ops", "yes": "true"}),
    ("tuner rollback", {"yes": "true"}),
    ("tuner auto on", {"mode": "dry-run"}),
    ("tuner auto off", {}),
]
APPROVE = ("tuner auto on", {"mode": "approve"})
REQUESTING: List[Asked] = [
    ("tuner slo set", {"objective": "client.p95_ms<=80"}),
    APPROVE,
    ("tuner auto pause", {}),
    ("tuner auto resume", {}),
    ("tuner auto off", {}),
]
APPROVING: List[Asked] = [("tuner approve", {}), ("tuner reject", {})]
NOTHING_WAITS = "no proposal waits for approval"
TAKING_BACK: List[Asked] = [("tuner auto pause", {}), ("tuner rollback", {"yes": "true"})]
ALONE: List[Asked] = [
    ("tuner auto on", {"mode": "auto"}),
    # the module's default is the mode without approval
    ("tuner auto on", {}),
    ("tuner profile apply", {"name": "high_client_ops", "yes": "true"}),
    ("tuner boost recovery", {}),
    ("tuner book on", {}),
]
"""What would have an effect without the second person."""
LOOKING = [
    ["doctor"], ["why", "--seconds", "2"], ["watch", "--once", "--interval", "1", "--window", "2"], ["history"],
    ["profile", "export", "--output", "exported.yaml"], ["apply", "high_client_ops"],
    ["twin", "describe", "--sample", "2"],
]  # fmt: skip
WITHOUT_DATA = [
    ["doctor"], ["why", "--seconds", "2"], ["watch", "--once", "--interval", "1", "--window", "2"], ["history"],
    ["gather", "--output", "state.tar.zst", "--interval", "1"], ["twin", "describe", "--sample", "2"],
]  # fmt: skip
"""What a user runs who may ask no OSD; what it cannot see is named."""
WRITING = [["apply", "--set", "osd_max_scrubs=2", "--yes"], ["rollback"]]

FOR_NOBODY: List[Asked] = [
    ("config set", {"who": "mon", "name": "mon_allow_pool_delete", "value": "true"}),
    ("config set", {"who": "mgr", "name": "mgr/tuner/worker_python", "value": "/any"}),
    ("config-key get", {"key": "mgr/dashboard/crt"}),
    ("config-key set", {"key": "mgr/other/key", "val": "x"}),
    ("osd set", {"key": "noout"}),
    ("osd pool create", {"pool": "loot"}),
    ("auth ls", {}),
    ("mgr module disable", {"module": "tuner"}),
    ("balancer off", {}),
]
"""Of the cluster's own commands: what no user of the page may do."""

assert set(MAKING) == {VIEWER, OPERATOR, REQUESTER, APPROVER, LOOKER, READER, TUNER}


@pytest.fixture(scope="module")
def loaded(any_lab: Lab) -> Iterator[Lab]:
    """A lab with the plugin and the users."""
    with with_plugin(any_lab):
        try:
            for user, words in MAKING.items():
                any_lab.run([*words, "-o", f"/lab/{user}.keyring"])
            yield any_lab
        finally:
            for user in MAKING:
                any_lab.run(["ceph", "auth", "rm", user])
                any_lab.host_path(f"/lab/{user}.keyring").unlink(missing_ok=True)


def identity(lab: Lab, user: str) -> List[str]:
    return ["env", f"CEPH_ARGS=-c {lab.conf} --name {user} --keyring /lab/{user}.keyring"]


def connected(lab: Lab, user: str) -> Session:
    return Session(lambda command: lab.argv([*identity(lab, user), *command]))


def refused(session: Session, asked: List[Asked]) -> List[Asked]:
    """Those commands for which the cluster says that capabilities are missing; any other failure is one of the test."""
    return [(prefix, arguments) for prefix, arguments in asked if not allowed(session, prefix, arguments)]


def allowed(session: Session, prefix: str, arguments: Dict[str, str]) -> bool:
    try:
        if prefix.startswith(("tuner", "balancer")):
            # as the ceph program does; by way of the monitors, their capabilities would count
            session.tell("mgr", prefix, arguments)
        else:
            session.mon(prefix, arguments)
    except PermissionRefused:
        return False
    except CommandFailed as failure:
        # the module has answered, if only that it has no sample yet, or that no trial waits
        if failure.code != -errno.EAGAIN and NOTHING_WAITS not in str(failure):
            raise
    return True


def program(lab: Lab, user: str, words: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> Tuple[int, str]:
    """Exit code and output of `ceph-tuner` for a lab, with that user's key."""
    argv = Lab.argv
    said = io.StringIO()
    with monkeypatch.context() as patched:
        patched.setattr(Lab, "argv", lambda self, command: argv(self, [*identity(lab, user), *command]))
        patched.setattr(sys, "argv", ["ceph-tuner", *words, "--cluster", lab.name])
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), pytest.raises(SystemExit) as ended:
            main()
    return int(ended.value.code or 0), said.getvalue()


def test_a_user_may_do_what_the_page_says_and_no_more(
    loaded: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("desk"))
    before = config_dump(loaded)

    with connected(loaded, VIEWER) as viewer, connected(loaded, OPERATOR) as operator:
        assert refused(viewer, READING) == refused(operator, [*READING, *OPERATING]) == []
        assert refused(viewer, OPERATING) == OPERATING
    with connected(loaded, READER) as reader, connected(loaded, LOOKER) as looker:
        assert refused(reader, OPERATING) == refused(looker, OPERATING) == OPERATING
        with pytest.raises(PermissionRefused):
            looker.tell("osd.0", "config show", {})
    assert config_dump(loaded) == before

    # of a cluster without clients nothing can be described
    with clients(loaded, 4096, 1, pool="rbd"):
        for words in LOOKING:
            code, said = program(loaded, READER, words, monkeypatch)
            # a finding is an answer, too
            assert code in (0, 1), f"{words}: {said}"
        for words in WITHOUT_DATA:
            code, said = program(loaded, LOOKER, words, monkeypatch)
            assert code in (0, 1), f"{words}: {said}"
            assert words == ["history"] or "not seen" in said or "refused (EACCES)" in said, said
    for user in (READER, LOOKER):
        code, said = program(loaded, user, WRITING[0], monkeypatch)
        assert code == 2, said
    assert config_dump(loaded) == before
    for words in WRITING:
        code, said = program(loaded, TUNER, words, monkeypatch)
        assert code == 0, f"{words}: {said}"
    assert config_dump(loaded) == before


def test_who_switches_the_mode_on_approves_nothing_and_who_approves_switches_nothing(loaded: Lab) -> None:
    before = config_dump(loaded)
    with connected(loaded, REQUESTER) as requester, connected(loaded, APPROVER) as approver:
        assert refused(requester, [*READING, *REQUESTING]) == []
        assert refused(requester, [*APPROVING, *ALONE]) == [*APPROVING, *ALONE]
        assert refused(approver, [*READING, *APPROVING]) == []
        others = [*(each for each in REQUESTING if each not in TAKING_BACK), *ALONE]
        assert refused(approver, others) == others
        for either in (requester, approver):
            loaded.run(["ceph", "tuner", "auto", "on", "approve"])
            loaded.run(["ceph", "tuner", "profile", "apply", "high_client_ops", "--yes"])
            assert config_dump(loaded) != before
            assert refused(either, TAKING_BACK) == []
            assert config_dump(loaded) == before
    loaded.run(["ceph", "tuner", "auto", "off"])
    loaded.run(["ceph", "tuner", "slo", "rm", "all"])


@pytest.mark.parametrize("user", sorted(MAKING))
def test_no_user_may_do_what_has_nothing_to_do_with_tuning(loaded: Lab, user: str) -> None:
    with connected(loaded, user) as session:
        assert refused(session, FOR_NOBODY) == FOR_NOBODY


def test_less_would_not_do(loaded: Lab) -> None:
    """Why the page asks for so much: where Ceph becomes more lenient, it can ask for less."""
    user = "client.tuner-less"
    loaded.run(
        ["ceph", "auth", "get-or-create", user, "mon", "allow rw", "mgr", "allow r", "osd", "allow rwx",
         "-o", f"/lab/{user}.keyring"]
    )  # fmt: skip
    try:
        with connected(loaded, user) as session:
            assert not allowed(session, "config-key get", {"key": "mgr/tuner/slo"})
            with pytest.raises(PermissionRefused):
                session.tell("osd.0", "config diff", {})
    finally:
        loaded.run(["ceph", "auth", "rm", user])
        loaded.host_path(f"/lab/{user}.keyring").unlink(missing_ok=True)
