"""HTTP to one server of a cluster: certificates, a time limit and a size limit over all of an answer, errors in a line.

Nothing is read from ~/.netrc, no cookie is kept, and no redirection is followed: what is sent goes to the address that
was given, and nowhere else.
"""

from __future__ import annotations

import base64
import errno
from typing import Any, Callable, Mapping, NamedTuple, Optional, Union

import requests
import urllib3
from requests.auth import AuthBase
from requests.cookies import RequestsCookieJar
from urllib3.exceptions import InsecureRequestWarning, ReadTimeoutError

from ceph_tuner.errors import ClusterNotFound, ClusterTimeout, CommandFailed, PermissionRefused
from ceph_tuner.ports import Clock

BUSY = (429, 502, 503, 504)
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 8.0
LARGEST_ANSWER = 256 * 2**20
_CHUNK = 1 << 16


class _Authorization(AuthBase):
    """The header of that name; none where empty. It is also what keeps `requests` from looking into ~/.netrc."""

    def __init__(self, header: str = "") -> None:
        self._header = header

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._header:
            request.headers["Authorization"] = self._header
        return request


def bearer(token: str) -> str:
    """The header that shows a token; none for none."""
    return f"Bearer {token}" if token else ""


def basic(username: str, password: str) -> str:
    """The header that shows a user's password."""
    return f"Basic {base64.b64encode(f'{username}:{password}'.encode()).decode()}"


class Response(NamedTuple):
    """An answer, all of it."""

    status: int
    content: bytes
    waiting: str = ""
    """The header Retry-After."""

    @property
    def redirects(self) -> bool:
        """Whether it sends us elsewhere."""
        return 300 <= self.status < 400

    @property
    def retry_after(self) -> float:
        """In seconds; 0 where it says nothing, or a date."""
        return float(self.waiting) if self.waiting.isdecimal() and len(self.waiting) < 6 else 0.0


class _NoCookies(RequestsCookieJar):
    def set_cookie(self, cookie: Any, *args: Any, **kwargs: Any) -> None:
        """Forget it."""


class Transport:
    """One server of a cluster, `kind` of which in words (`dashboard`). Used by one thread."""

    def __init__(
        self, name: str, kind: str, where: str, clock: Clock, ca: str = "", verify: bool = True, timeout: float = 30.0
    ) -> None:
        """`name` is the cluster's; `where` is what an address has to be, for the error where nothing is."""
        self.name, self.kind, self.where = name, kind, where
        self.clock, self.timeout = clock, timeout
        self._verify: Union[bool, str] = ca or verify
        if not verify:
            # who wrote `verify: false` knows
            urllib3.disable_warnings(InsecureRequestWarning)
        self.session = requests.Session()
        self.session.cookies = _NoCookies()

    def close(self) -> None:
        """End the connection."""
        self.session.close()

    def call(
        self,
        method: str,
        url: str,
        deadline: float,
        authorization: str = "",
        headers: Optional[Mapping[str, str]] = None,
        body: Optional[Mapping[str, str]] = None,
        parameters: Optional[Mapping[str, str]] = None,
        final: Callable[[Response], bool] = lambda response: False,
    ) -> Response:
        """One call; again while the server is busy, as long as there is time (`deadline`, by the clock).

        `final` tells answers that have the status of a busy server and would be no other the next time.
        Raises ClusterNotFound, ClusterTimeout, PermissionRefused where it cannot be trusted, CommandFailed.
        """
        wait = FIRST_WAIT_S
        while True:
            response = self._once(method, url, deadline, authorization, headers, body, parameters)
            if response.status not in BUSY or final(response):
                return response
            wait_now = min(max(wait, response.retry_after), LONGEST_WAIT_S)
            if self.clock.now() + wait_now >= deadline:
                raise ClusterTimeout(
                    f"cluster {self.name}: its {self.kind} at {host(url)} is busy or stands by "
                    f"({response.status} within {self.timeout:g} s)"
                )
            self.clock.sleep(wait_now)
            wait *= 2

    def _once(
        self,
        method: str,
        url: str,
        deadline: float,
        authorization: str,
        headers: Optional[Mapping[str, str]],
        body: Optional[Mapping[str, str]],
        parameters: Optional[Mapping[str, str]],
    ) -> Response:
        left = max(0.1, deadline - self.clock.now())
        late = f"cluster {self.name}: its {self.kind} at {host(url)} did not answer within {self.timeout:g} s"
        try:
            with self.session.request(
                method,
                url,
                params=parameters,
                json=body,
                headers=headers,
                auth=_Authorization(authorization),
                verify=self._verify,
                timeout=(min(left, 10.0), left),
                allow_redirects=False,
                stream=True,
            ) as answer:
                content = self._content(answer, deadline, late)
        except requests.exceptions.SSLError as error:
            raise PermissionRefused(
                f"cluster {self.name}",
                f"a certificate of {host(url)} that cannot be trusted ({_reason(error)})",
                "`ca` with the file of the one that signed it, or `verify: false`",
            ) from None
        except requests.exceptions.Timeout:
            raise ClusterTimeout(late, "see whether it answers at all, or give it longer (`--within`)") from None
        except OSError as error:
            if isinstance(next(iter(error.args), None), ReadTimeoutError):
                # amid an answer, requests calls it a lost connection
                raise ClusterTimeout(late, "see whether it answers at all, or give it longer (`--within`)") from None
            # requests' own errors are OSErrors too, as is a file of `ca` that is not there
            raise ClusterNotFound(
                f"cluster {self.name}", f"no {self.kind} at {host(url)} ({_reason(error)})", self.where
            ) from None
        return Response(answer.status_code, content, answer.headers.get("Retry-After", ""))

    def _content(self, answer: requests.Response, deadline: float, late: str) -> bytes:
        """The time limit of `requests` is between two bytes; a server that drips would never be late."""
        parts, size = [], 0
        for part in answer.iter_content(_CHUNK):
            parts.append(part)
            size += len(part)
            if size > LARGEST_ANSWER:
                path = (answer.request.path_url or "").split("?")[0]
                raise CommandFailed(f"GET {path}", -errno.EFBIG, f"more than {LARGEST_ANSWER} bytes")
            if self.clock.now() > deadline:
                raise ClusterTimeout(late, "see whether it answers at all, or give it longer (`--within`)")
        return b"".join(parts)


def host(url: str) -> str:
    """`https://HOST:PORT` of an address."""
    return "/".join(url.split("/")[:3])


def _reason(error: BaseException) -> str:
    """The innermost words, which are the ones that say something."""
    inner, deeper = error, [error]
    while deeper:
        inner = deeper[0]
        deeper = [part for part in (getattr(inner, "reason", None), *inner.args) if isinstance(part, Exception)]
    words = getattr(inner, "verify_message", "") or getattr(inner, "strerror", "") or str(inner)
    return " ".join(str(words).split())[:160]
