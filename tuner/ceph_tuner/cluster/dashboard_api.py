"""Calls of the Ceph dashboard's REST API: a token by name and password, retries, a time limit over all of it.

Neither the password nor the token is in any error: what a server says is shown in part, without them. A cookie would
be taken in the place of a token, and a mgr that stands by redirects to wherever it believes the active one to be:
neither is followed (transport.py), the next address is tried instead. So it is where a mgr that stands by is told to
answer with an error (`standby_behaviour`), and where a proxy answers in its place; neither speaks JSON.
"""

from __future__ import annotations

import errno
from typing import Any, Callable, Dict, List, Optional, Sequence

from ceph_tuner.cluster.transport import Response, Transport, bearer, host
from ceph_tuner.core.bounded import SERVER_ITEMS_PER_MIB, read_json
from ceph_tuner.core.ceph.ports import Clock
from ceph_tuner.core.errors import (
    ClusterNotFound,
    ClusterTimeout,
    CommandFailed,
    Malformed,
    PermissionRefused,
    TunerError,
)

VERSION = "application/vnd.ceph.api.v1.0+json"


class StandbyError(Exception):
    """This mgr is not the active one."""


class NoJsonError(CommandFailed):
    """What answers there is no dashboard's API: a mgr that stands by says so in HTML, a proxy as it likes."""


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
        self._clock, self._timeout, self._token = clock, timeout, ""
        self._transport = Transport(name, "dashboard", "the active mgr's address", clock, ca, verify, timeout)

    def get(self, path: str) -> Any:
        """The answer to `GET /api/PATH`. Raises ClusterNotFound, ClusterTimeout, PermissionRefused, CommandFailed."""
        deadline = self._clock.monotonic() + self._timeout
        refusals: List[str] = []
        last: Optional[TunerError] = None
        for attempt, url in enumerate(list(self._urls)):
            now = self._clock.monotonic()
            # one that is silent leaves time for the others
            share = now + (deadline - now) / (len(self._urls) - attempt)
            try:
                answer = self._with_token(url, path, share)
            except StandbyError as standby:
                refusals.append(str(standby))
            except NoJsonError as error:
                # a standby checks no password; and of one that is late or gone there is more to say
                last = last or error
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
        self._transport.close()

    def _with_token(self, url: str, path: str, deadline: float) -> Any:
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
        # of what stands there nothing is shown: it may be what was sent
        document = self._json(response, "POST /api/auth", silent=True)
        if response.status in (400, 401, 403):
            raise PermissionRefused(
                f"cluster {self.name}",
                f"a dashboard that refuses {self._username}'s password",
                "the right one, and an account that is enabled (`ceph dashboard ac-user-show`)",
            )
        if response.status >= 400:
            raise CommandFailed("POST /api/auth", -errno.EIO, f"answered {response.status}")
        token = document.get("token") if isinstance(document, dict) else None
        if not isinstance(token, str) or not token.isascii() or not token.isprintable():
            raise CommandFailed("POST /api/auth", -errno.EIO, "answered without a token")
        if document.get("pwdUpdateRequired"):
            raise PermissionRefused(
                f"cluster {self.name}", f"a password of {self._username} that must be changed first", "a lasting one"
            )
        return token

    def _call(self, method: str, url: str, deadline: float, body: Optional[Dict[str, str]] = None) -> Response:
        token = "" if body else bearer(self._token)
        response = self._transport.call(method, url, deadline, token, {"Accept": VERSION}, body)
        if response.redirects:
            raise StandbyError(f"{host(url)} redirects elsewhere: its mgr stands by")
        return response

    def _document(self, response: Response, command: str) -> Any:
        document = self._json(response, command)
        if response.status == 403:
            raise PermissionRefused(
                f"cluster {self.name} {command}",
                f"a role of {self._username} that does not allow it",
                "a role that reads `config-opt` and `osd`",
            )
        if response.status >= 400:
            detail = self._clean(str(document.get("detail") or "")) if isinstance(document, dict) else ""
            raise CommandFailed(command, -errno.EIO, f"answered {response.status} {detail[:200]}")
        return document

    def _json(self, response: Response, command: str, silent: bool = False) -> Any:
        content = response.content
        try:
            return read_json(content, command, max(len(content), 1 << 20), items=SERVER_ITEMS_PER_MIB)
        except Malformed:
            excerpt = "something" if silent else repr(self._clean(content[:60].decode(errors="replace")))
            words = f"answered {response.status} with {excerpt} instead of JSON"
            raise NoJsonError(command, -errno.EIO, words) from None

    def _clean(self, text: str) -> str:
        """One line without the token."""
        return " ".join((text.replace(self._token, "…") if self._token else text).split())
