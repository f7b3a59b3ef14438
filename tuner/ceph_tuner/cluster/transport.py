"""HTTP to one server of a cluster: certificates, a time limit and a size limit over all of an answer, errors in a line.

Nothing is read from ~/.netrc, no cookie is kept, and no redirection is followed: what is sent goes to the address that
was given, and nowhere else.
"""

from __future__ import annotations

import base64
import ctypes
import errno
import socket
import threading
import zlib
from contextlib import suppress
from functools import lru_cache
from typing import Any, Callable, Iterable, Iterator, Mapping, NamedTuple, Optional, Union

import requests
import urllib3
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase
from requests.cookies import RequestsCookieJar
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import HTTPError, InsecureRequestWarning, ReadTimeoutError

from ceph_tuner.core.ceph.ports import Clock
from ceph_tuner.core.errors import ClusterNotFound, ClusterTimeout, CommandFailed, PermissionRefused, TunerError

BUSY = (429, 502, 503, 504)
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 8.0
LARGEST_ANSWER = 32 << 20
"""Bytes, unpacked: the dashboard's page of a whole cluster has some 4.5 KiB for each OSD, so seven thousand of them."""
SMALL_ANSWER = 1 << 19
"""Bytes up to which 32 clusters answer at once. What is larger, and becomes five times as much when it is read, is held
of one cluster at a time: from here on, until its connection is closed."""
LATE = "see whether it answers at all, or give it longer (`--within`)"
_CHUNK = 1 << 16

_M_MMAP_THRESHOLD = -3
"""Of glibc's malloc.h."""

_large = threading.BoundedSemaphore(1)


class _Watched:
    """A call that is ended when time is up: the limits of `requests` are between two bytes of a server."""

    def __init__(self, seconds: float) -> None:
        self.ended = False
        self.connection: Any = None
        self.sock: Optional[socket.socket] = None
        """Of the connection, which forgets it once it has read the headers of an answer that ends with it."""
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def __enter__(self) -> _Watched:
        _thread.call = self
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        _thread.call = None

    def _end(self) -> None:
        self.ended = True
        sock = self.sock or getattr(self.connection, "sock", None)
        if sock is not None:
            with suppress(OSError):
                # not by TLS, which belongs to the thread that reads
                socket.socket.shutdown(sock, socket.SHUT_RDWR)


class _Thread(threading.local):
    call: Optional[_Watched] = None


_thread = _Thread()


class _TracedConnection:
    """A connection that its thread's call knows of."""

    def connect(self) -> None:
        self._tell()
        super().connect()  # type: ignore[misc]
        self._tell()
        if _thread.call is not None and _thread.call.ended:
            raise TimeoutError("connected when time was up")

    def request(self, *args: Any, **kwargs: Any) -> None:
        # one that is used again connects no more
        self._tell()
        super().request(*args, **kwargs)  # type: ignore[misc]

    def _tell(self) -> None:
        if _thread.call is not None:
            _thread.call.connection, _thread.call.sock = self, getattr(self, "sock", None)


class _Connection(_TracedConnection, HTTPConnection):
    pass


class _TlsConnection(_TracedConnection, HTTPSConnection):
    pass


class _PlainPool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


class _Adapter(HTTPAdapter):
    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Pools of connections that can be ended."""
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = {"http": _PlainPool, "https": _TlsPool}


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
        """A token is all that a server gets from us: its cookies are dropped."""


class Transport:
    """One server of a cluster, `kind` of which in words (`dashboard`). Used by one thread."""

    def __init__(
        self, name: str, kind: str, where: str, clock: Clock, ca: str = "", verify: bool = True, timeout: float = 30.0
    ) -> None:
        """`name` is the cluster's; `where` is what an address has to be, for the error where nothing is."""
        self.name, self.kind, self.where = name, kind, where
        self.clock, self.timeout = clock, timeout
        self._verify: Union[bool, str] = ca or verify
        self._has_large = False
        if not verify:
            # who wrote `verify: false` knows
            urllib3.disable_warnings(InsecureRequestWarning)
        self.session = requests.Session()
        self.session.cookies = _NoCookies()
        # nobody packs otherwise than is unpacked here
        self.session.headers["Accept-Encoding"] = "gzip"
        for scheme in ("https://", "http://"):
            self.session.mount(scheme, _Adapter())

    def close(self) -> None:
        """End the connection, and let others have large answers."""
        self.session.close()
        if self._has_large:
            self._has_large = False
            _large.release()

    def __del__(self) -> None:
        with suppress(Exception):
            self.close()

    def call(
        self,
        method: str,
        url: str,
        deadline: float,
        authorization: str = "",
        headers: Optional[Mapping[str, str]] = None,
        body: Optional[Mapping[str, Any]] = None,
        parameters: Optional[Mapping[str, str]] = None,
        final: Callable[[Response], bool] = lambda response: False,
    ) -> Response:
        """One call; again while the server is busy, as long as there is time (`deadline`, by the monotonic clock).

        `final` tells answers that have the status of a busy server and would be no other the next time.
        Raises ClusterNotFound, ClusterTimeout, PermissionRefused where it cannot be trusted, CommandFailed.
        """
        wait = FIRST_WAIT_S
        while True:
            response = self._once(method, url, deadline, authorization, headers, body, parameters)
            if response.status not in BUSY or final(response):
                return response
            wait_now = min(max(wait, response.retry_after), LONGEST_WAIT_S)
            if self.clock.monotonic() + wait_now >= deadline:
                raise ClusterTimeout(
                    f"cluster {self.name}: its {self.kind} at {host(url)} is busy or stands by "
                    f"({response.status} within {self.timeout:g} s)"
                )
            self.clock.sleep(wait_now)
            wait *= 2

    def stream(
        self,
        url: str,
        authorization: str,
        headers: Mapping[str, str],
        parameters: Mapping[str, str],
        idle_s: float,
    ) -> requests.Response:
        """Begin an answer that is read as it comes: a context manager; two bytes of it are `idle_s` apart at most.

        Its length is the caller's to bound. Raises what `requests` does.
        """
        return self.session.request(
            "GET",
            url,
            params=parameters,
            headers={**headers, "Accept-Encoding": "identity"},
            auth=_Authorization(authorization),
            verify=self._verify,
            timeout=(10.0, idle_s),
            allow_redirects=False,
            stream=True,
        )

    def _once(
        self,
        method: str,
        url: str,
        deadline: float,
        authorization: str,
        headers: Optional[Mapping[str, str]],
        body: Optional[Mapping[str, Any]],
        parameters: Optional[Mapping[str, str]],
    ) -> Response:
        remaining_s = max(0.1, deadline - self.clock.monotonic())
        late = f"cluster {self.name}: its {self.kind} at {host(url)} did not answer within {self.timeout:g} s"
        watch = _Watched(remaining_s)
        try:
            with (
                watch,
                self.session.request(
                    method,
                    url,
                    params=parameters,
                    json=body,
                    headers=headers,
                    auth=_Authorization(authorization),
                    verify=self._verify,
                    timeout=(min(remaining_s, 10.0), remaining_s),
                    allow_redirects=False,
                    stream=True,
                ) as answer,
            ):
                content = self._content(answer, deadline, late)
        except (OSError, HTTPError) as error:
            raise self._failure(error, url, watch.ended, late) from None
        if watch.ended:
            # what was cut off may look whole
            raise ClusterTimeout(late, LATE)
        return Response(answer.status_code, content, answer.headers.get("Retry-After", ""))

    def _failure(self, error: Exception, url: str, is_late: bool, late: str) -> TunerError:
        """What an error of `requests` or urllib3 says to an operator."""
        amid = isinstance(next(iter(error.args), None), ReadTimeoutError)
        # a connection that was ended when time was up may look like anything
        if is_late or amid or isinstance(error, (requests.exceptions.Timeout, ReadTimeoutError)):
            return ClusterTimeout(late, LATE)
        if isinstance(error, requests.exceptions.SSLError):
            return PermissionRefused(
                f"cluster {self.name}",
                f"a certificate of {host(url)} that cannot be trusted ({_reason(error)})",
                "`ca` with the file of the one that signed it, or `verify: false`",
            )
        # requests' own errors are OSErrors too, as is a file of `ca` that is not there
        return ClusterNotFound(f"cluster {self.name}", f"no {self.kind} at {host(url)} ({_reason(error)})", self.where)

    def _content(self, answer: requests.Response, deadline: float, late: str) -> bytes:
        """What the answer holds, unpacked here: what a server packs may be a thousand times as large."""
        path = (answer.request.path_url or "").split("?")[0]
        encoding = answer.headers.get("Content-Encoding", "identity").strip().lower() or "identity"
        if encoding not in ("identity", "gzip"):
            raise CommandFailed(f"GET {path}", -errno.EPROTO, f"answered in {encoding[:40]!r}, which was not asked for")
        decompressor = zlib.decompressobj(16 + zlib.MAX_WBITS) if encoding == "gzip" else None
        content = bytearray()
        for part in _pieces(answer.raw.stream(_CHUNK, decode_content=False), decompressor, path):
            content += part
            if len(content) > LARGEST_ANSWER:
                raise CommandFailed(f"GET {path}", -errno.EFBIG, f"more than {LARGEST_ANSWER} bytes")
            if self.clock.monotonic() > deadline:
                raise ClusterTimeout(late, LATE)
            if len(content) > SMALL_ANSWER and not self._has_large:
                self._has_large = _large.acquire(timeout=max(0.0, deadline - self.clock.monotonic()))
                _give_back_what_is_large()
                if not self._has_large:
                    raise ClusterTimeout(f"{late}: other clusters' large answers were before it", LATE)
        # a standby mgr's dashboard says gzip of an answer that has no content
        if content and decompressor is not None and not decompressor.eof:
            raise CommandFailed(f"GET {path}", -errno.EPROTO, "answered in gzip that is cut short")
        return bytes(content)


@lru_cache(maxsize=1)
def _give_back_what_is_large() -> None:
    """Have glibc return blocks of 128 KiB and more to the kernel as they are freed, which it does until it sees many.

    Else each of 32 threads keeps tens of megabytes for its next answer. Another C library has no such function.
    """
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, 128 << 10)


def _pieces(parts: Iterable[bytes], decompressor: Any, path: str) -> Iterator[bytes]:
    """What comes in, unpacked, a little at a time: 64 KiB may be 64 MiB."""
    try:
        for part in parts:
            if decompressor is None:
                yield part
                continue
            while part or decompressor.unconsumed_tail:
                piece = decompressor.decompress(part or decompressor.unconsumed_tail, _CHUNK)
                part = b""
                yield piece
    except zlib.error as error:
        raise CommandFailed(f"GET {path}", -errno.EPROTO, f"answered what is no gzip ({error})") from None


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
