"""Calls of a Kubernetes API server, with bounded answers and a time limit, and its watches."""

from __future__ import annotations

import errno
from contextlib import suppress
from typing import Any, Dict, Iterator, Mapping, NamedTuple, Optional

import requests
from urllib3.exceptions import HTTPError

from ceph_tuner.cluster.transport import Response, Transport, bearer, host
from ceph_tuner.core.bounded import SERVER_ITEMS_PER_MIB, read_json
from ceph_tuner.core.ceph.ports import Clock
from ceph_tuner.core.errors import ClusterTimeout, CommandFailed, Malformed
from ceph_tuner.rook.kubeconfig import ApiAccess, Credentials

MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
LONGEST_EVENT = 4 << 20
"""Bytes of one event of a watch: etcd takes 1.5 MiB for an object."""
_ANSWER = 1 << 24
_CHUNK = 1 << 16


class ApiAnswer(NamedTuple):
    """What the API server answered, and by which status of HTTP."""

    status: int
    document: Dict[str, Any]

    @property
    def words(self) -> str:
        """What it says of a refusal; empty where it says nothing."""
        return " ".join(str(self.document.get("message") or "").split())[:400]


class KubernetesApi:
    """One API server, as one caller. Used by one thread."""

    def __init__(self, name: str, access: ApiAccess, clock: Clock, timeout: float = 30.0) -> None:
        """Nothing is asked yet; `name` is for errors."""
        self.name, self._access, self._clock, self._timeout = name, access, clock, timeout
        where = f"the address of a Kubernetes API server in {access.origin}"
        self._transport = Transport(name, "API server", where, clock, access.ca, timeout=timeout)
        self._credentials: Optional[Credentials] = None

    @property
    def host(self) -> str:
        """The server's address, for people."""
        return host(self._access.url)

    def close(self) -> None:
        """End the connection."""
        self._transport.close()

    def call(
        self,
        method: str,
        path: str,
        body: Optional[Mapping[str, Any]] = None,
        kind: str = "application/json",
        parameters: Optional[Mapping[str, str]] = None,
        command: str = "",
    ) -> ApiAnswer:
        """One call; once more with credentials read anew where they are refused. `command` names it in errors.

        Raises ClusterNotFound, ClusterTimeout, PermissionRefused where the server cannot be trusted, and CommandFailed
        for what is no object of Kubernetes. A refusal is an answer.
        """
        deadline = self._clock.monotonic() + self._timeout
        headers = {"Accept": "application/json", **({"Content-Type": kind} if body is not None else {})}
        for renewal in (False, True):
            own = self._own(renewal)
            url = self._access.url + path
            response = self._transport.call(method, url, deadline, bearer(own.token), headers, body, parameters)
            if response.status != 401:
                break
        return ApiAnswer(response.status, self._document(response, command or f"{method} {path}"))

    def watch(self, path: str, parameters: Mapping[str, str], idle_s: float) -> Iterator[Dict[str, Any]]:
        """Give the events of a watch as they come, until the server ends it or says nothing for `idle_s`.

        An event is `{"type": …, "object": …}`; a refusal is one of the type ERROR. Raises as `call`.
        """
        own = self._own(False)
        url, command = self._access.url + path, f"watch {path}"
        try:
            with self._transport.stream(
                url, bearer(own.token), {"Accept": "application/json"}, parameters, idle_s
            ) as answer:
                if answer.status_code == 401:
                    self._credentials = None
                for line in _lines(answer, command):
                    event = self._object(line, command)
                    yield event if answer.status_code == 200 else {"type": "ERROR", "object": event}
        except (requests.exceptions.Timeout, TimeoutError):
            raise ClusterTimeout(f"{self.host} said nothing for {idle_s:g} s") from None
        except (OSError, HTTPError) as error:
            raise ClusterTimeout(f"the watch of {self.host} broke off ({type(error).__name__})") from None

    def _own(self, renewal: bool) -> Credentials:
        if self._credentials is None or renewal:
            self._credentials = self._access.credentials()
        if self._credentials.certificate:
            self._transport.session.cert = (self._credentials.certificate, self._credentials.key)
        return self._credentials

    def _document(self, response: Response, command: str) -> Dict[str, Any]:
        if response.redirects:
            raise CommandFailed(command, -errno.EIO, self._no_object(response.status))
        return self._object(response.content, command, response.status)

    def _object(self, content: bytes, command: str, status: int = 200) -> Dict[str, Any]:
        document: Any = None
        with suppress(Malformed):
            document = read_json(content, command, _ANSWER, items=SERVER_ITEMS_PER_MIB)
        if not isinstance(document, dict):
            raise CommandFailed(command, -errno.EIO, self._no_object(status))
        return document

    def _no_object(self, status: int) -> str:
        return f"{self.host} answered {status} with no object of Kubernetes"


def _lines(answer: requests.Response, command: str) -> Iterator[bytes]:
    """Each line as it is whole. Raises CommandFailed for one that is too long."""
    rest = bytearray()
    for part in answer.raw.stream(_CHUNK, decode_content=False):
        *lines, end = part.split(b"\n")
        for line in lines:
            rest += line
            if rest.strip():
                yield bytes(rest)
            rest.clear()
        rest += end
        if len(rest) > LONGEST_EVENT:
            raise CommandFailed(command, -errno.EFBIG, f"an event of more than {LONGEST_EVENT} bytes")
    if rest.strip():
        yield bytes(rest)
