"""How an API server is reached, and what of it no text shows."""

from __future__ import annotations

import base64
import json
import stat
import time
from pathlib import Path
from typing import Any, Dict

import pytest

from ceph_tuner.core.errors import InputError, PermissionRefused
from ceph_tuner.rook import kubeconfig
from ceph_tuner.rook.kubeconfig import Credentials, api_access

HUNTER = "hunter2-token"


def written(folder: Path, user: Dict[str, Any], **cluster: Any) -> Dict[str, str]:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "one", "user": "me"}}],
        "clusters": [{"name": "one", "cluster": {"server": "https://127.0.0.1:6443", **cluster}}],
        "users": [{"name": "me", "user": user}],
    }
    path = folder / "config"
    path.write_text(json.dumps(document), "utf-8")
    return {"KUBECONFIG": str(path)}


def test_a_token_and_a_ca_in_the_file_itself(tmp_path: Path) -> None:
    ca = base64.b64encode(b"a certificate").decode()
    access = api_access(written(tmp_path, {"token": HUNTER}, **{"certificate-authority-data": ca}), context="here")
    assert (access.url, access.credentials().token) == ("https://127.0.0.1:6443", HUNTER)
    assert Path(access.ca).read_bytes() == b"a certificate"
    assert stat.S_IMODE(Path(access.ca).stat().st_mode) == 0o600
    assert HUNTER not in repr(access)


def test_paths_are_meant_from_the_file_on_and_a_token_is_read_anew(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("one\n", "utf-8")
    access = api_access(written(tmp_path, {"tokenFile": "token"}, **{"certificate-authority": "ca.pem"}))
    assert access.ca == str(tmp_path / "ca.pem")
    assert access.credentials() == Credentials("one")
    (tmp_path / "token").write_text("two\n", "utf-8")
    assert access.credentials() == Credentials("two")


def test_a_client_certificate(tmp_path: Path) -> None:
    key = base64.b64encode(b"key").decode()
    given = written(tmp_path, {"client-certificate": "tuner.crt", "client-key-data": key})
    credentials = api_access(given).credentials()
    assert credentials.certificate == str(tmp_path / "tuner.crt")
    assert Path(credentials.key).read_bytes() == b"key"


def program(folder: Path, script: str) -> Dict[str, Any]:
    path = folder / "login"
    path.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    path.chmod(0o755)
    version = "client.authentication.k8s.io/v1"
    return {"exec": {"apiVersion": version, "command": "./login", "env": [{"name": "WHO", "value": HUNTER}]}}


def test_the_program_of_exec_gives_a_token(tmp_path: Path) -> None:
    script = 'echo "$KUBERNETES_EXEC_INFO" | grep -q ExecCredential && echo "{\\"status\\": {\\"token\\": \\"$WHO\\"}}"'
    assert api_access(written(tmp_path, program(tmp_path, script))).credentials().token == HUNTER


def test_a_program_that_fails_shows_nothing_of_what_it_said(tmp_path: Path) -> None:
    access = api_access(written(tmp_path, program(tmp_path, 'echo "$WHO"; echo "$WHO" >&2; exit 3')))
    with pytest.raises(PermissionRefused, match="exit code 3") as refusal:
        access.credentials()
    assert HUNTER not in str(refusal.value)


ANSWERS = ["[]", "{}", '{"status": null}', '{"status": {"clientCertificateData": 1}}', "no JSON"]


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_program_that_answers_in_another_shape_is_refused_in_words(tmp_path: Path, answer: str) -> None:
    access = api_access(written(tmp_path, program(tmp_path, f"echo '{answer}'")))
    with pytest.raises(InputError):
        access.credentials()


def test_an_exec_of_another_shape_is_refused_in_words(tmp_path: Path) -> None:
    for spec in ({"apiVersion": "client.authentication.k8s.io/v1"}, None, "login"):
        with pytest.raises(InputError, match="another shape"):
            api_access(written(tmp_path, {"exec": spec})).credentials()


@pytest.mark.parametrize("end", ["\n", "\r\nX-Other: 1", "\N{EURO SIGN}", "\0"])
def test_a_token_that_no_header_takes_is_refused_without_it(tmp_path: Path, end: str) -> None:
    login = tmp_path / "login"
    answer = json.dumps({"status": {"token": HUNTER + end}})
    program(tmp_path, f"cat <<'END'\n{answer}\nEND")
    spec = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(login)}
    for user in ({"token": HUNTER + end}, {"exec": spec}):
        with pytest.raises(InputError, match="no header takes") as refusal:
            api_access(written(tmp_path, user)).credentials()
        assert HUNTER not in str(refusal.value)
    (tmp_path / "token").write_text(f"one{end}two", "utf-8")
    with pytest.raises(InputError, match="no header takes"):
        api_access(written(tmp_path, {"tokenFile": "token"})).credentials()


def test_a_program_has_its_time_and_its_size_and_ends_with_what_it_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubeconfig, "EXEC_S", 1.0)
    for script, words in (("exec yes", "more than 256 KiB"), ("sleep 60 & echo $! > child; wait", "within 1 s")):
        with pytest.raises(PermissionRefused, match=words):
            api_access(written(tmp_path, program(tmp_path, f"cd {tmp_path}; {script}"))).credentials()
    child = Path(f"/proc/{(tmp_path / 'child').read_text('utf-8').strip()}/stat")
    end_s = time.monotonic() + 10
    while has_not_ended(child):
        assert time.monotonic() < end_s
        time.sleep(0.05)


def has_not_ended(process: Path) -> bool:
    try:
        return process.read_text("utf-8").split()[2] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_pod_uses_its_own_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubeconfig, "SERVICE_ACCOUNT", tmp_path)
    (tmp_path / "token").write_text(HUNTER, "utf-8")
    where = {"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    access = api_access(where)
    assert (access.url, access.credentials().token) == ("https://[fd00::1]:443", HUNTER)
    assert access.ca == str(tmp_path / "ca.crt")


def test_where_nothing_says_how(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing that says how its API server is reached"):
        api_access({"HOME": str(tmp_path)})


@pytest.mark.parametrize(
    ("user", "cluster", "words"),
    [
        ({}, {"server": "http://127.0.0.1"}, "https://HOST:PORT"),
        ({}, {"server": f"https://me:{HUNTER}@127.0.0.1"}, "https://HOST:PORT"),
        ({}, {"insecure-skip-tls-verify": True}, "certificate-authority"),
        ({}, {"insecure-skip-tls-verify": "false"}, "certificate-authority"),
        ({}, {"proxy-url": "socks5://127.0.0.1"}, "not followed"),
        ({"token": HUNTER, "as": "system:serviceaccount:rook-ceph:reader"}, {}, "not followed"),
        ({"token": HUNTER, "as-groups": ["readers"]}, {}, "not followed"),
        ({"auth-provider": {"name": "gcp"}}, {}, "retired"),
        ({"client-key-data": "*"}, {}, "no base64"),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path: Path, user: Any, cluster: Any, words: str) -> None:
    with pytest.raises(InputError, match=words) as refusal:
        api_access(written(tmp_path, user, **cluster))
    assert HUNTER not in str(refusal.value)


def test_another_shape_is_refused_without_its_values(tmp_path: Path) -> None:
    (tmp_path / "config").write_text(json.dumps({"current-context": "a", "contexts": HUNTER}), "utf-8")
    with pytest.raises(InputError, match="another shape") as refusal:
        api_access({"KUBECONFIG": str(tmp_path / "config")})
    assert HUNTER not in str(refusal.value)


def test_an_unknown_context_names_those_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="one of here"):
        api_access(written(tmp_path, {}), context="there")
