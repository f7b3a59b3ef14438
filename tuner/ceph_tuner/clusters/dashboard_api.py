"""Calls of the Ceph dashboard's REST API: a token by name and password, retries, a time limit over all of it.

Neither the password nor the token is in any error: what a server says is shown in part, without them. Nothing is read
from ~/.netrc, no cookie is kept (the dashboard takes one in the place of a token), and no redirection is followed, as
a mgr that stands by redirects to wherever it believes the active one to be: the next address is tried instead.
"""

from __future__ import annotations

import errno
import json
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Union

import requests
import urllib3
from requests.auth import AuthBase
from requests.cookies import RequestsCookieJar
from urllib3.exceptions import InsecureRequestWarning, ReadTimeoutError

from ceph_tuner.errors import (
    ClusterNotFound,
    ClusterTimeout,
    CommandFailed,
    PermissionRefused,
    TunerError,
)
from ceph_tuner.ports import Clock

VERSION = "application/vnd.ceph.api.v1.0+json"
BUSY = (429, 502, 503, 504)
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 8.0
LARGEST_ANSWER = 256 * 2**20
_CHUNK = 1 << 16


class StandbyError(Exception):
    """This mgr is not the active one."""


class _Bearer(AuthBase):
    """Also what keeps `requests` from looking into ~/.netrc."""

    def __init__(self, token: str = "") -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._token:
            request.headers["Authorization"] = f"Bearer {self._token}"
        return request


class _NoCookies(RequestsCookieJar):
    def set_cookie(self, cookie: Any, *args: Any, **kwargs: Any) -> None:
        """Forget it."""


class _Response(NamedTuple):
    status: int
    content: bytes
    waiting: str
    """The header Retry-After."""

    @property
    def retry_after(self) -> float:
        """In seconds; 0 where it says nothing, or a date."""
        return float(self.waiting) if self.waiting.isdecimal() and len(self.waiting) < 6 else 0.0


class DashboardApi:
    """One cluster's dashboard. Used by one thread."""

    def __init__(
        self,
        name: str,
        urls: Sequence[str],
        username: str,
        password: Callable[[], str],
        clock: Clock,
        ca: str = "",
        verify: bool = True,
        timeout: float = 30.0,
    ) -> None:
        """`name` is the cluster's in errors; the password is fetched when a token is needed, and not kept."""
        self.name = name
        self._urls, self._username, self._password = list(urls), username, password
        self._clock, self._timeout = clock, timeout
        self._verify: Union[bool, str] = ca or verify
        self._token = ""
        if not verify:
            # who wrote `verify: false` knows
            urllib3.disable_warnings(InsecureRequestWarning)
        self._session = requests.Session()
        self._session.cookies = _NoCookies()

    def get(self, path: str) -> Any:
        """The answer to `GET /api/PATH`. Raises ClusterNotFound, ClusterTimeout, PermissionRefused, CommandFailed."""
        deadline = self._clock.now() + self._timeout
        refusals: List[str] = []
        last: Optional[TunerError] = None
        for tried, url in enumerate(list(self._urls)):
            now = self._clock.now()
            # one that is silent leaves time for the others
            share = now + (deadline - now) / (len(self._urls) - tried)
            try:
                answer = self._authorised(url, path, share)
            except StandbyError as standby:
                refusals.append(str(standby))
            except (ClusterNotFound, ClusterTimeout) as error:
                last = error
            else:
                # the next call begins with the one that answered
                self._urls.remove(url)
                self._urls.insert(0, url)
                return answer
        if last is not None:
            raise last
        raise ClusterNotFound(
            f"cluster {self.name}", "; ".join(refusals), "the address of the active mgr's dashboard, or of each mgr's"
        )

    def close(self) -> None:
        """End the connection."""
        self._session.close()

    def _authorised(self, url: str, path: str, deadline: float) -> Any:
        for renewal in (False, True):
            if not self._token:
                self._token = self._log_in(url, deadline)
            response = self._call("GET", f"{url}/api/{path}", deadline)
            if response.status != 401:
                return self._document(response, f"GET /api/{path}")
            self._token = ""
            if renewal:
                break
        raise PermissionRefused(
            f"cluster {self.name}", "a dashboard that takes none of its own tokens", "clocks that agree, or its log"
        )

    def _log_in(self, url: str, deadline: float) -> str:
        # never tried twice: after some failures the dashboard locks the account
        credentials = {"username": self._username, "password": self._password()}
        response = self._call("POST", f"{url}/api/auth", deadline, credentials)
        if response.status in (400, 401, 403):
            raise PermissionRefused(
                f"cluster {self.name}",
                f"a dashboard that refuses {self._username}'s password",
                "the right one, and an account that is enabled (`ceph dashboard ac-user-show`)",
            )
        # of what stands there nothing is shown: it may be what was sent
        found = self._document(response, "POST /api/auth", silent=True)
        token = found.get("token") if isinstance(found, dict) else None
        if not isinstance(token, str) or not token.isascii() or not token.isprintable():
            raise CommandFailed("POST /api/auth", -errno.EIO, "answered without a token")
        if found.get("pwdUpdateRequired"):
            raise PermissionRefused(
                f"cluster {self.name}", f"a password of {self._username} that must be changed first", "a lasting one"
            )
        return token

    def _call(self, method: str, url: str, deadline: float, body: Optional[Dict[str, str]] = None) -> _Response:
        """One call; again while the server is busy, as long as there is time."""
        wait = FIRST_WAIT_S
        while True:
            response = self._once(method, url, deadline, body)
            if response.status not in BUSY:
                return response
            wait_now = min(max(wait, response.retry_after), LONGEST_WAIT_S)
            if self._clock.now() + wait_now >= deadline:
                raise ClusterTimeout(
                    f"cluster {self.name}: its dashboard at {_host(url)} is busy or stands by "
                    f"({response.status} within {self._timeout:g} s)"
                )
            self._clock.sleep(wait_now)
            wait *= 2

    def _once(self, method: str, url: str, deadline: float, body: Optional[Dict[str, str]]) -> _Response:
        left = max(0.1, deadline - self._clock.now())
        late = f"cluster {self.name}: its dashboard at {_host(url)} did not answer within {self._timeout:g} s"
        try:
            with self._session.request(
                method,
                url,
                json=body,
                headers={"Accept": VERSION},
                auth=_Bearer("" if body else self._token),
                verify=self._verify,
                timeout=(min(left, 10.0), left),
                allow_redirects=False,
                stream=True,
            ) as answer:
                content = self._content(answer, deadline, late)
        except requests.exceptions.SSLError as error:
            raise PermissionRefused(
                f"cluster {self.name}",
                f"a certificate of {_host(url)} that cannot be trusted ({_reason(error)})",
                "`ca` with the file of the one that signed it, or `verify: false`",
            ) from None
        except requests.exceptions.Timeout:
            raise ClusterTimeout(late) from None
        except OSError as error:
            if isinstance(next(iter(error.args), None), ReadTimeoutError):
                # amid an answer, requests calls it a lost connection
                raise ClusterTimeout(late) from None
            # requests' own errors are OSErrors too, as is a file of `ca` that is not there
            raise ClusterNotFound(
                f"cluster {self.name}", f"no dashboard at {_host(url)} ({_reason(error)})", "the active mgr's address"
            ) from None
        if 300 <= answer.status_code < 400:
            raise StandbyError(f"{_host(url)} redirects elsewhere: its mgr stands by")
        return _Response(answer.status_code, content, answer.headers.get("Retry-After", ""))

    def _content(self, answer: requests.Response, deadline: float, late: str) -> bytes:
        """The time limit of `requests` is between two bytes; a server that drips would never be late."""
        parts, size = [], 0
        for part in answer.iter_content(_CHUNK):
            parts.append(part)
            size += len(part)
            if size > LARGEST_ANSWER:
                raise CommandFailed(f"GET {answer.request.path_url}", -errno.EFBIG, f"more than {LARGEST_ANSWER} bytes")
            if self._clock.now() > deadline:
                raise ClusterTimeout(late)
        return b"".join(parts)

    def _document(self, response: _Response, command: str, silent: bool = False) -> Any:
        text = response.content.decode(errors="replace")
        if response.status == 403:
            raise PermissionRefused(
                f"cluster {self.name} {command}",
                f"a role of {self._username} that does not allow it",
                "a role that reads `config-opt` and `osd`",
            )
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            shown = "something" if silent else repr(self._clean(text[:60]))
            words = f"answered {response.status} with {shown} instead of JSON"
            raise CommandFailed(command, -errno.EIO, words) from None
        if response.status >= 400:
            detail = self._clean(str(found.get("detail") or "")) if isinstance(found, dict) and not silent else ""
            raise CommandFailed(command, -errno.EIO, f"answered {response.status} {detail[:200]}")
        return found

    def _clean(self, text: str) -> str:
        """One line without the token."""
        return " ".join((text.replace(self._token, "…") if self._token else text).split())


def _host(url: str) -> str:
    return "/".join(url.split("/")[:3])


def _reason(error: BaseException) -> str:
    """The innermost words, which are the ones that say something."""
    inner, deeper = error, [error]
    while deeper:
        inner = deeper[0]
        deeper = [part for part in (getattr(inner, "reason", None), *inner.args) if isinstance(part, Exception)]
    words = getattr(inner, "verify_message", "") or getattr(inner, "strerror", "") or str(inner)
    return " ".join(str(words).split())[:160]
