from __future__ import annotations

import builtins
import sys
from pathlib import Path
from typing import Any, Optional

import pytest

from ceph_tuner.core.errors import InputError, PermissionRefused
from ceph_tuner.fleet.secret import Secret

PASSWORD = "Tr0ub4dor-and-3"  # noqa: S105


def test_it_comes_from_the_environment() -> None:
    assert Secret("env", "PW").read({"PW": PASSWORD}) == PASSWORD


def test_it_is_the_first_line_of_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "pw"
    path.write_text(f"{PASSWORD}\nand a remark\n")
    path.chmod(0o600)
    assert Secret("file", str(path)).read() == PASSWORD


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_file_that_others_may_read_is_refused_with_the_cure(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "pw"
    path.write_text(PASSWORD)
    path.chmod(mode)
    with pytest.raises(PermissionRefused, match=f"chmod 600 {path}") as refusal:
        Secret("file", str(path)).read()
    assert PASSWORD not in str(refusal.value)


def test_what_is_missing_is_named_by_its_origin(tmp_path: Path) -> None:
    empty = tmp_path / "pw"
    empty.touch(0o600)
    for secret, words in [
        (Secret("env", "PW", place="fleet.yaml:7 password"), "fleet.yaml:7 password: found nothing in the environment"),
        (Secret("file", str(tmp_path / "no")), "no file"),
        (Secret("file", str(tmp_path)), "no regular file"),
        (Secret("file", str(empty)), "nothing in the first line"),
    ]:
        with pytest.raises(InputError, match=words):
            secret.read({})


def test_bytes_that_are_no_text_are_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "pw"
    path.write_bytes(b"\xff\xfe" + PASSWORD.encode())
    path.chmod(0o600)
    with pytest.raises(InputError, match="no UTF-8") as refusal:
        Secret("file", str(path)).read()
    assert refusal.value.__cause__ is None
    assert PASSWORD not in str(refusal.value)


def test_it_comes_from_the_keyring_by_service_and_user() -> None:
    import keyring
    from keyring import backend

    class InMemory(backend.KeyringBackend):  # type: ignore[name-defined,misc]
        priority = 1

        def get_password(self, service: str, username: str) -> Optional[str]:
            return {("berlin", "tuner"): PASSWORD}.get((service, username))

        def set_password(self, service: str, username: str, password: str) -> None:
            raise AssertionError("never written to")

    before = keyring.get_keyring()
    keyring.set_keyring(InMemory())
    try:
        assert Secret("keyring", "berlin", "tuner").read() == PASSWORD
        with pytest.raises(InputError, match="no entry berlin of somebody"):
            Secret("keyring", "berlin", "somebody").read()
    finally:
        keyring.set_keyring(before)


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("keyring"):
            raise ImportError(name)
        return real(name, *rest)

    for name in [name for name in sys.modules if name.split(".")[0] == "keyring"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match="pip install keyring"):
        Secret("keyring", "berlin", "tuner").read()


def test_an_origin_is_one_of_the_three() -> None:
    with pytest.raises(ValueError, match="env, file, keyring"):
        Secret("text", PASSWORD)
