from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any, Dict

import pytest

import ceph_tuner
from mgr_boundaries import guardians
from tuner.guardian import Guardian, access

RADOS = """
import json, os
class Error(Exception): pass
class Rados:
    def __init__(self, **_): pass
    def connect(self, timeout): pass
    def shutdown(self): pass
    def mon_command(self, command, payload):
        with open(os.environ["SEEN"], "a") as seen: seen.write(json.loads(command)["prefix"] + "\\n")
        found = {"osd": {"ceph version 20.2.4 (x)": 3}} if "versions" in command else {}
        return 0, json.dumps(found).encode(), ""
"""
"""A cluster with an empty store, by the few calls of librados that the guardian makes."""


class Mgr:
    """What a mgr in a container of Rook's knows: monitors by its command line, the key in a file."""

    def get(self, data_name: str) -> Any:
        v2, v1 = ({"type": kind, "addr": f"10.0.0.1:{port}"} for kind, port in (("v2", 3300), ("v1", 6789)))
        other = {"type": "v2", "addr": "[fd00::2]:3300"}
        found = {"mon_map": {"mons": [{"public_addrs": {"addrvec": row}} for row in ([v2, v1], [other])]}}
        return found[data_name]

    def get_ceph_option(self, key: str) -> Any:
        return {"keyring": "/etc/ceph/keyring-store/keyring"}.get(key, "")

    def get_ceph_conf_path(self) -> str:
        return ""

    def get_mgr_id(self) -> str:
        return "a"


def reach() -> Dict[str, str]:
    return {"name": "mgr.x", "conf": "", "mon_host": "127.0.0.1:1"}


@pytest.fixture
def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the commands that reach the cluster are written down."""
    (tmp_path / "rados.py").write_text(RADOS)
    library = Path(ceph_tuner.__file__).parent.parent
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{library}")
    monkeypatch.setenv("SEEN", str(tmp_path / "seen"))
    return tmp_path / "seen"


def wait_for(condition: object, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_it_is_sent_away_without_having_done_anything(seen: Path) -> None:
    guardian = Guardian(reach, "the test")
    guardian.start()
    assert guardian.problem == ""
    assert len(guardians()) == 1
    guardian.start()
    assert len(guardians()) == 1
    guardian.stop()
    assert guardians() == []
    assert not seen.exists()


def test_one_that_was_killed_gets_a_successor_at_the_next_sign_of_life(seen: Path) -> None:
    guardian = Guardian(reach, "the test")
    guardian.start()
    (first,) = guardians()
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: guardians() == [])

    # its name is gone a moment before its end of the pipe is
    def beats_until_there_is_another() -> bool:
        guardian.beat()
        return guardians() not in ([], [first])

    wait_for(beats_until_there_is_another)
    assert guardian.problem == ""
    assert len(guardians()) == 1
    guardian.stop()


def test_sigterm_does_not_end_it_since_systemd_sends_that_when_the_mgr_has_died(seen: Path) -> None:
    guardian = Guardian(reach, "the test")
    guardian.start()
    (pid,) = guardians()
    os.kill(pid, signal.SIGTERM)
    guardian.beat()
    assert guardians() == [pid]
    guardian.stop()


def test_after_a_long_silence_it_looks_for_what_is_left(seen: Path) -> None:
    guardian = Guardian(reach, "the test", silence_s=0.5)
    guardian.start()
    wait_for(lambda: seen.exists() and "config-key dump" in seen.read_text())
    wait_for(lambda: guardians() == [])
    guardian.stop()


def test_where_librados_is_missing_the_trial_goes_on_and_the_problem_is_named(
    seen: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (seen.parent / "rados.py").write_text("raise ImportError('no librados here')")
    guardian = Guardian(reach, "the test")
    guardian.start()
    assert "no librados here" in guardian.problem
    assert guardians() == []
    guardian.beat()
    guardian.stop()
    (seen.parent / "rados.py").write_text(RADOS)
    guardian.start()
    assert guardian.problem == ""
    guardian.stop()


def test_the_way_to_the_cluster_is_the_mgr_s_own() -> None:
    assert access(Mgr()) == {
        "conf": "",
        "name": "mgr.a",
        "mon_host": "[v2:10.0.0.1:3300/0,v1:10.0.0.1:6789/0] [v2:[fd00::2]:3300/0]",
        "keyring": "/etc/ceph/keyring-store/keyring",
    }
