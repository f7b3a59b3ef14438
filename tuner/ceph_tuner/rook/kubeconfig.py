"""How a Kubernetes API server is reached: by a kubeconfig, or by a pod's own service account.

Of a kubeconfig are read: the server's address, its CA, and the user's token, client certificate or `exec` program.
No text shows a token.
"""

from __future__ import annotations

import atexit
import base64
import binascii
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional

from ceph_tuner.core.bounded import MISREAD, VALUE, decoded, read_file, read_json
from ceph_tuner.core.ceph.conversation import Conversation, end_all
from ceph_tuner.core.errors import InputError, Malformed, PermissionRefused
from ceph_tuner.files import yaml_document

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
EXEC_S = 30.0
_PIPE, _NULL = subprocess.PIPE, subprocess.DEVNULL
_EXPECTED = "a kubeconfig (KUBECONFIG, or ~/.kube/config), or a pod's service account"
_SERVER = re.compile(r"https://[^/@?#\s]+(/[^@?#\s]*)?")
_NOT_OF_CLUSTERS = {
    "insecure-skip-tls-verify": "`certificate-authority`: a token goes to no server that cannot be told from another",
    "tls-server-name": "a server with its own name in its certificate",
    "proxy-url": "a server without it, or HTTPS_PROXY in the environment",
}
_NOT_OF_USERS = dict.fromkeys(
    ("as", "as-uid", "as-groups", "as-user-extra"), "the account itself, with no more rights than it needs"
)
"""Who calls would have the rights of the account, not those of whom it is to stand for."""
_EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class Credentials(NamedTuple):
    """Who calls: by a token, or by the files of a certificate."""

    token: str = ""
    certificate: str = ""
    key: str = ""


def _credentials_of(place: str, token: str, certificate: str = "", key: str = "") -> Credentials:
    if not (token.isascii() and token.isprintable()):
        # the words of whoever refuses it later would show it
        raise InputError(place, "a token with characters that no header takes", "ASCII text in one line")
    return Credentials(token, certificate, key)


@dataclass(frozen=True)
class ApiAccess:
    """One API server, and how its caller is known."""

    url: str
    credentials: Callable[[], Credentials] = field(repr=False)
    """Asked anew when the server refuses the ones before: tokens end."""
    ca: str = ""
    origin: str = ""
    """Where this stands, for people."""


def api_access(environment: Mapping[str, str], kubeconfig: str = "", context: str = "") -> ApiAccess:
    """Read how the API server is reached. Raises InputError, PermissionRefused."""
    path = _path(environment, kubeconfig)
    if path is None:
        return _in_cluster(environment)
    return _KubeconfigReader(path, _Files()).access(context)


def _path(environment: Mapping[str, str], kubeconfig: str) -> Optional[Path]:
    paths_text = kubeconfig or environment.get("KUBECONFIG", "")
    paths = [Path(part).expanduser() for part in paths_text.split(os.pathsep) if part]
    if len(paths) > 1:
        raise InputError("KUBECONFIG", f"{len(paths)} files", "one file (`kubectl config view --flatten` makes one)")
    usual = Path(environment.get("HOME", "/")) / ".kube" / "config"
    return paths[0] if paths else usual if usual.is_file() else None


def _in_cluster(environment: Mapping[str, str]) -> ApiAccess:
    host, port = (environment.get(f"KUBERNETES_SERVICE_{part}", "") for part in ("HOST", "PORT"))
    token, ca = SERVICE_ACCOUNT / "token", SERVICE_ACCOUNT / "ca.crt"
    if not host or not token.is_file():
        raise InputError("kubernetes", "nothing that says how its API server is reached", _EXPECTED)
    address = f"[{host}]" if ":" in host else host
    # read anew each time: the kubelet renews it
    return ApiAccess(f"https://{address}:{port or 443}", lambda: _of_file(token), str(ca), origin="this pod")


class _Files:
    """What a kubeconfig holds in itself, as the files that TLS wants. They end with the process."""

    def __init__(self) -> None:
        self._folder = ""

    def of(self, name: str, text: str, place: str) -> str:
        try:
            content = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raise InputError(place, "what is no base64", "the file's content in base64") from None
        return self.written(name, content)

    def written(self, name: str, content: bytes) -> str:
        if not self._folder:
            # for its owner alone
            self._folder = tempfile.mkdtemp(prefix="ceph-tuner-")
            atexit.register(shutil.rmtree, self._folder, ignore_errors=True)
        path = Path(self._folder) / name
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
            stream.write(content)
        return str(path)


class _KubeconfigReader:
    """Reads a kubeconfig; every fault is told with its place."""

    def __init__(self, path: Path, files: _Files) -> None:
        self._path, self._files = path, files
        self._document = yaml_document.load(path)

    def access(self, context: str) -> ApiAccess:
        try:
            return self._access(context)
        except InputError:
            raise
        except MISREAD as fault:
            # not its words: they may hold a value
            raise InputError(str(self._path), f"another shape ({type(fault).__name__})", "a kubeconfig") from None

    def _access(self, context: str) -> ApiAccess:
        context_name = context or str(self._document.data.get("current-context") or "")
        context_entry = self._entry("contexts", "context", context_name)
        cluster = self._entry("clusters", "cluster", str(context_entry["cluster"]))
        user = self._entry("users", "user", str(context_entry.get("user") or "")) if context_entry.get("user") else {}
        self._refuse_ignored(cluster, _NOT_OF_CLUSTERS)
        self._refuse_ignored(user, _NOT_OF_USERS)
        url, ca = str(cluster["server"]).rstrip("/"), str(cluster.get("certificate-authority") or "")
        if not _SERVER.fullmatch(url):
            # without what stands before an @: it may be a password
            raise InputError(str(self._path), f"the server {url.rpartition('@')[2][:80]!r}", "https://HOST:PORT")
        if "certificate-authority-data" in cluster:
            ca = self._files.of("ca.crt", cluster["certificate-authority-data"], str(self._path))
        return ApiAccess(url, self._credentials(user), self._beside(ca), f"{self._path} (context {context_name})")

    def _refuse_ignored(self, entry: Mapping[str, Any], meanings: Mapping[str, str]) -> None:
        """What says that the server is reached, or its caller known, in another way than here."""
        for name, expectation in meanings.items():
            if entry.get(name):
                raise InputError(str(self._path), f"`{name}`, which is not followed here", expectation)

    def _credentials(self, user: Mapping[str, Any]) -> Callable[[], Credentials]:
        if "exec" in user:
            return lambda: self._by_program(user["exec"])
        if "auth-provider" in user:
            raise InputError(str(self._path), "an `auth-provider`, which Kubernetes has retired", "`exec`, or a token")
        if "tokenFile" in user:
            path = Path(self._beside(str(user["tokenFile"])))
            return lambda: _of_file(path)
        certificate, key = (self._file(user, name) for name in ("client-certificate", "client-key"))
        return lambda: _credentials_of(str(self._path), str(user.get("token") or ""), certificate, key)

    def _file(self, user: Mapping[str, Any], name: str) -> str:
        if f"{name}-data" in user:
            return self._files.of(name, user[f"{name}-data"], str(self._path))
        return self._beside(str(user.get(name) or ""))

    def _by_program(self, spec: Mapping[str, Any]) -> Credentials:
        """What the program of `exec` answers (client-go credential plugins)."""
        try:
            return self._exec_credentials(spec)
        except InputError:
            raise
        except MISREAD as fault:
            # not its words: they may hold a secret
            fault_text = f"an `exec`, or an answer of its program, of another shape ({type(fault).__name__})"
            raise InputError(str(self._path), fault_text, "an ExecCredential with a token or a certificate") from None

    def _exec_credentials(self, spec: Mapping[str, Any]) -> Credentials:
        version = str(spec.get("apiVersion"))
        if version not in _EXEC_VERSIONS:
            raise InputError(str(self._path), f"`exec` of {version[:60]}", f"one of {', '.join(_EXEC_VERSIONS)}")
        command = str(spec["command"])
        # as kubectl: a path is meant from the file on, a plain name is looked for
        argv = [self._beside(command) if "/" in command else command, *map(str, spec.get("args") or [])]
        info = {"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": False}}
        variables = {str(item["name"]): str(item["value"]) for item in spec.get("env") or []}
        environment = {**os.environ, **variables, "KUBERNETES_EXEC_INFO": json.dumps(info)}
        status = read_json(_output(argv, environment), f"`{argv[0]}`")["status"]
        files = [
            self._files.written(name, status[key].encode()) if key in status else ""
            for name, key in (("exec.crt", "clientCertificateData"), ("exec.key", "clientKeyData"))
        ]
        return _credentials_of(f"`{argv[0]}`", str(status.get("token") or ""), *files)

    def _entry(self, group: str, kind: str, name: str) -> Dict[str, Any]:
        entries: List[Any] = self._document.data.get(group) or []
        for entry in entries:
            if entry["name"] == name:
                return dict(entry[kind])
        names = ", ".join(str(entry["name"]) for entry in entries) or "none"
        raise InputError(str(self._path), f"no {kind} {name!r} under `{group}`", f"one of {names}"[:200])

    def _beside(self, path: str) -> str:
        """Paths are meant from the file's own directory on."""
        return str(self._path.parent / Path(path).expanduser()) if path else ""


def _of_file(path: Path) -> Credentials:
    try:
        return _credentials_of(str(path), decoded(read_file(path, "a token"), str(path)).strip())
    except Malformed:
        raise InputError(str(path), "what is no text", "a token") from None


def _output(argv: List[str], environment: Mapping[str, str]) -> bytes:
    """What it prints, which has its time and its size, and ends with it."""
    refusal = partial(PermissionRefused, f"`{argv[0]}`")
    try:
        process = subprocess.Popen(
            argv, env=dict(environment), stdin=_NULL, stdout=_PIPE, stderr=_NULL, start_new_session=True
        )
    except (OSError, ValueError) as fault:
        raise refusal(type(fault).__name__, "a program that gives credentials") from None
    conversation, deadline = Conversation(process, b"", VALUE), time.monotonic() + EXEC_S
    try:
        conversation.until(deadline)
        if conversation.too_much:
            raise refusal(f"more than {VALUE >> 10} KiB", "a program that gives credentials")
        code = process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise refusal(f"no end within {EXEC_S:g} s", "a program that gives credentials") from None
    finally:
        end_all(process)
    if code:
        # what it prints may be a secret
        raise refusal(f"exit code {code}", "credentials: run it by hand")
    return bytes(conversation.output)
