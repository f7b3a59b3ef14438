"""One tuner at a time on a cluster, by claims in the cluster's own key-value store.

The store has no compare-and-swap. It has single keys whose writes are committed before they are answered, and whose
reads see every answered write. That is enough for flags, as in Dekker's algorithm: everybody first writes a claim of
its own, and only then reads all claims. Of two that overlap, the one that read later saw the other's claim, so they
never both go on. Who sees another live claim withdraws its own.

A claim carries an expiry and is renewed while it is held; the claim of a process that died is removed by the next.
A holder that was asleep past its expiry may have lost its claim: `check()` before every write notices that.
"""

from __future__ import annotations

import contextlib
import json
import random
import threading
from collections import deque
from dataclasses import asdict, dataclass, replace
from typing import Callable, Deque, List, Optional, Tuple

from ceph_tuner.errors import Locked, TunerError
from ceph_tuner.moments import utc
from ceph_tuner.ports import Clock, Store

PREFIX = "lock/"
LEASE_S = 30.0
"""How long a claim stands without being renewed. It is renewed three times as often."""


@dataclass(frozen=True)
class Holder:
    """Who wants to write, in words for the operator, and which process that is."""

    name: str
    host: str = ""
    process: str = ""
    """Identifies a process on that host; empty where it cannot be told."""

    @property
    def identity(self) -> Tuple[str, ...]:
        """The process, which may hold locks under several names; the name where it cannot be told."""
        return (self.host, self.process) if self.process else (self.name,)


@dataclass(frozen=True)
class Claim:
    """One tuner's flag."""

    key: str
    holder: Holder
    since: float
    expires: float
    held: bool = False
    """Whether its owner has seen that it is alone."""

    @property
    def words(self) -> str:
        """Who it is, where, and since when."""
        where = f" on {self.holder.host}" if self.holder.host else ""
        return f"{self.holder.name}{where}, since {utc(self.since)}"

    def to_text(self) -> str:
        """As it is stored."""
        return json.dumps(asdict(self), sort_keys=True)

    @staticmethod
    def from_text(key: str, text: str) -> Optional[Claim]:
        """None for what is no claim: somebody else's key must not stop every tuner for ever."""
        try:
            stored = json.loads(text)
            holder = Holder(**{name: str(stored["holder"][name]) for name in ("name", "host", "process")})
            return Claim(key, holder, float(stored["since"]), float(stored["expires"]), bool(stored["held"]))
        except (ValueError, KeyError, TypeError):
            return None


_given_up: Deque[Tuple[Tuple[str, ...], str]] = deque(maxlen=100)
"""Claims that this process withdrew. One that could not be removed, or came late, is nobody's."""


def _alive(_: Holder) -> bool:
    return True


class Lock:
    """A context manager: entered with the claim written and nobody else's there. May be entered again inside."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        holder: Holder,
        alive: Callable[[Holder], bool] = _alive,
        randomness: Optional[random.Random] = None,
        heartbeat: bool = True,
    ) -> None:
        """`alive` may tell that a holder is surely dead; `heartbeat` renews from a thread while the lock is held."""
        self._store, self._clock, self._holder, self._alive = store, clock, holder, alive
        # unique among processes, so it must not come from a seed
        self._random = randomness or random.SystemRandom()
        self._heartbeat = heartbeat
        self._claim: Optional[Claim] = None
        self._depth = 0
        self._writing = threading.Lock()
        self._released = threading.Event()

    def __enter__(self) -> Lock:
        if self._depth == 0:
            self._acquire()
        self._depth += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._release()

    def check(self) -> None:
        """Raise Locked if the claim is no longer there: it expired, and another tuner may be at work."""
        claim = self._claim
        if claim is None or self._store.get(claim.key) is None:
            raise Locked(
                "the tuner's lock was lost (it had not been renewed in time): nothing more is written",
                "run it again: what was begun is taken back first",
            )
        if self._clock.now() > claim.expires - LEASE_S * 2 / 3:
            self.renew()

    def renew(self) -> None:
        """Extend the claim; a claim that is gone stays gone."""
        with self._writing:
            claim = self._claim
            if claim is not None and self._store.get(claim.key) is not None:
                self._write(replace(claim, expires=self._clock.now() + LEASE_S))

    def others(self) -> List[Claim]:
        """Live claims of others. Dead ones are removed."""
        found = []
        for key in self._store.keys(PREFIX):
            text = self._store.get(key)
            if text is None or (self._claim is not None and key == self._claim.key):
                continue
            claim = Claim.from_text(key, text)
            given_up = (self._holder.identity, key) in _given_up
            if given_up or claim is None or claim.expires < self._clock.now() or not self._alive(claim.holder):
                self._store.remove(key)
            else:
                found.append(claim)
        return found

    def _acquire(self, attempts: int = 3) -> None:
        for attempt in range(1, attempts + 1):
            now = self._clock.now()
            key = f"{PREFIX}{self._random.getrandbits(64):016x}"
            try:
                # one that failed may arrive nevertheless, and is withdrawn as well
                self._write(Claim(key, self._holder, now, now + LEASE_S))
                others = self.others()
                if not others:
                    self._write(replace(self._require(), held=True))
                    self._start_heartbeat()
                    return
            except BaseException:
                self._withdraw()
                raise
            self._withdraw()
            # two that only wanted it may both withdraw: try again after different times; a holder is not waited for
            if attempt == attempts or any(claim.held for claim in others):
                raise Locked(f"another tuner is at work on this cluster: {others[0].words}")
            self._clock.sleep(self._random.uniform(0.05, 0.5))

    def _start_heartbeat(self) -> None:
        if not self._heartbeat:
            return
        self._released = threading.Event()
        threading.Thread(target=self._beat, args=(self._released,), daemon=True, name="lock").start()

    def _beat(self, released: threading.Event) -> None:
        while not released.wait(LEASE_S / 3):
            # a failure is met again by the next beat, or by the next check(), which stops the writing
            with contextlib.suppress(TunerError):
                self.renew()

    def _release(self) -> None:
        self._released.set()
        with self._writing:
            self._withdraw()

    def _withdraw(self) -> None:
        if self._claim is not None:
            claim, self._claim = self._claim, None
            _given_up.append((self._holder.identity, claim.key))
            self._store.remove(claim.key)

    def _write(self, claim: Claim) -> None:
        # remembered first: a write that times out may still arrive, and must then be withdrawn
        self._claim = claim
        self._store.set(claim.key, claim.to_text())

    def _require(self) -> Claim:
        if self._claim is None:
            raise Locked("the tuner's lock is not held")
        return self._claim
