"""One tuner at a time on a cluster, by claims in the cluster's own key-value store.

The store has no compare-and-swap. It has single keys whose writes are committed before they are answered, and whose
reads see every answered write. That is enough for flags, as in Dekker's algorithm: everybody first writes a claim of
its own, and only then reads all claims. Of two that overlap, the one that read later saw the other's claim, so they
never both go on. Who sees another live claim withdraws its own.

A claim is a lease: it is renewed while it is held. Nobody's clock decides that another's lease is over: whoever wants
the lock watches a claim that seems to be out of date, for a whole lease by its own monotonic clock, and removes one
that did not change meanwhile. So clocks may differ and jump, and a claim that says it stands for a year does not.
Who does nothing but watch (`Lock.watch`) needs no date: what it saw unchanged for a lease is dead.

Who gets in counts the lock's generation up, under a key that names its claim, before it writes anything. A holder that
was asleep past its lease finds another generation there, or another's claim: `check()` before every write looks.
"""

from __future__ import annotations

import contextlib
import json
import random
import threading
from collections import deque
from dataclasses import asdict, dataclass, replace
from typing import Callable, Deque, Dict, List, Mapping, Optional, Tuple

from ceph_tuner.core.bounded import MISREAD, read_json
from ceph_tuner.core.ceph.ports import Clock, Store, contents
from ceph_tuner.core.ceph.stored_document import versioned
from ceph_tuner.core.errors import ClusterTimeout, Locked, TunerError
from ceph_tuner.core.moments import utc

PREFIX = "lock/"
GENERATION = "lock-generation"
"""Key of how many have held the lock, and by which claim the last of them."""
_BOTH = "lock"
"""What both keys begin with: one command looks at them all."""

LEASE_S = 30.0
"""How long a claim stands without being renewed. It is renewed three times as often."""
_USABLE = 5 / 6
"""Share of its lease in which a holder begins something: what it sent is on its way when the lease ends."""
WATCH_S = 1.0
"""How often a claim that seems to be out of date is looked at."""
SKEW_S = 30.0
"""What clocks may differ by before a claim that is held is watched, instead of believed."""


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
    generation: int = 0
    """Of the lock, where this claim's owner is the last that got in; stored under a key of its own."""

    @property
    def words(self) -> str:
        """Who it is, where, and since when."""
        where = f" on {self.holder.host}" if self.holder.host else ""
        return f"{self.holder.name}{where}, since {utc(self.since)}"

    def to_text(self) -> str:
        """As it is stored."""
        document = asdict(self)
        del document["generation"]
        return json.dumps(versioned(document), sort_keys=True)

    @staticmethod
    def from_text(key: str, text: str) -> Optional[Claim]:
        """None for what is no claim: somebody else's key must not stop every tuner for ever."""
        try:
            document = read_json(text, key)
            holder = Holder(**{name: str(document["holder"][name]) for name in ("name", "host", "process")})
            return Claim(key, holder, float(document["since"]), float(document["expires"]), bool(document["held"]))
        except MISREAD:
            return None


@dataclass(frozen=True)
class Generation:
    """How many have held the lock, and which claim the last of them had."""

    number: int = 0
    claim: str = ""
    """Its key without the prefix."""

    def to_text(self) -> str:
        """As it is stored."""
        return json.dumps(versioned(asdict(self)), sort_keys=True)

    @staticmethod
    def from_text(text: Optional[str]) -> Generation:
        """Nobody's, for what is none: it must not stop every tuner for ever."""
        try:
            document = read_json(text or "", GENERATION)
            number, claim = document["number"], document["claim"]
        except MISREAD:
            return Generation()
        sound = type(number) is int and 0 <= number <= _MOST and isinstance(claim, str)
        return Generation(number, claim) if sound else Generation()

    def next(self, claim: str = "") -> Generation:
        """The one after it."""
        return Generation(self.number + 1 if self.number < _MOST else 1, claim)


_MOST = 1 << 53

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
        self.at_work: Callable[[], bool] = lambda: True
        """The heartbeat rests while this is false: whoever hangs must not keep the lock."""
        self._seen: Dict[str, Tuple[str, float]] = {}
        """Claims of others, and since when each is as it is, by the monotonic clock."""
        self._claim: Optional[Claim] = None
        self._renewed = 0.0
        """When the renewal was begun that the lease counts from, by the monotonic clock."""
        self._lapsed = False
        """Whether a renewal came too late: somebody else may have got in before it."""
        self._generation = Generation()
        self._depth = 0
        self._writing = threading.RLock()
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

    @property
    def generation(self) -> int:
        """Which holder of the lock this is, counted from the first on; 0 before it was held."""
        return self._generation.number

    def check(self) -> None:
        """Raise Locked if the lock is no longer held: its lease ended, and another tuner may be at work."""
        with self._writing:
            if self._claim is not None and self._age() > LEASE_S / 3:
                self._extend()
            if not self._is_ours(contents(self._store, _BOTH)) or self._age() >= LEASE_S * _USABLE:
                # a claim that was removed and came back with a late renewal must be in nobody's way
                with contextlib.suppress(TunerError):
                    self._withdraw()
                raise Locked(
                    "the tuner's lock was lost (it had not been renewed in time): nothing more is written",
                    "run it again: what was begun is taken back first",
                )

    def renew(self) -> None:
        """Extend the claim; a claim that is gone stays gone."""
        with self._writing:
            if self._claim is not None and self._is_ours(contents(self._store, _BOTH), settle=False):
                self._extend()

    def watch(self) -> List[Claim]:
        """Look at the claims of others, and give those that may live: no dead process's, and renewed within a lease.

        Reads only. A claim is known to be dead at the earliest a lease after it was looked at first.
        """
        now, texts = self._clock.monotonic(), contents(self._store, PREFIX)
        self._seen = {
            key: self._seen[key] if self._seen.get(key, ("",))[0] == text else (text, now)
            for key, text in texts.items()
            if self._claim is None or key != self._claim.key
        }
        claims = {key: Claim.from_text(key, text) for key, (text, _) in self._seen.items()}
        return [
            claim
            for key, claim in claims.items()
            if claim is not None and self._alive(claim.holder) and not self._is_silent(key, texts[key])
        ]

    def _is_silent(self, key: str, text: str) -> bool:
        """Whether a claim was seen as it is for a whole lease."""
        seen, since = self._seen.get(key, ("", 0.0))
        return seen == text and self._clock.monotonic() - since > LEASE_S

    def others(self) -> List[Claim]:
        """Live claims of others. Dead ones are removed; one that seems to be out of date is watched for a lease."""
        suspects: Dict[str, Tuple[str, float]] = {}
        while True:
            live, silent = [], False
            for key, text in contents(self._store, PREFIX).items():
                claim = Claim.from_text(key, text)
                if self._claim is not None and key == self._claim.key:
                    continue
                given_up = (self._holder.identity, key) in _given_up
                if given_up or claim is None or not self._alive(claim.holder) or self._is_silent(key, text):
                    self._store.remove(key)
                elif 0 <= claim.expires - self._clock.now() <= LEASE_S + SKEW_S:
                    live.append(claim)
                else:
                    last_text, since = suspects.setdefault(key, (text, self._clock.monotonic()))
                    if last_text != text:
                        live.append(claim)
                    elif self._clock.monotonic() - since > LEASE_S:
                        self._store.remove(key)
                    else:
                        silent = True
            if live or not silent:
                return live
            self._clock.sleep(WATCH_S)
            if self._claim is not None and self._age() > LEASE_S / 3:
                self._extend()

    def _acquire(self, attempts: int = 3) -> None:
        for attempt in range(1, attempts + 1):
            try:
                self._claim_it()
                others = self.others() or self._enter_alone()
                if not others:
                    self._start_heartbeat()
                    return
            except BaseException:
                # a write that failed may arrive nevertheless, and is withdrawn as well
                self._withdraw()
                raise
            self._withdraw()
            # two that only wanted it may both withdraw: try again after different times; a holder is not waited for
            if attempt == attempts or any(claim.held for claim in others):
                raise Locked(f"another tuner is at work on this cluster: {others[0].words}")
            self._clock.sleep(self._random.uniform(0.05, 0.5))

    def _claim_it(self) -> None:
        now = self._clock.now()
        self._renewed, self._lapsed = self._clock.monotonic(), False
        key = f"{PREFIX}{self._random.getrandbits(64):016x}"
        self._write(Claim(key, self._holder, now, now + LEASE_S))

    def _enter_alone(self) -> List[Claim]:
        """Say that it is held, and look again: whoever is there nevertheless is in the way."""
        self._extend(held=True)
        texts = contents(self._store, _BOTH)
        # one who is not in yet sees ours, and withdraws
        others = [claim for claim in self._others_of(texts) if claim.held]
        if not others:
            generation = Generation.from_text(texts.get(GENERATION)).next(self._require().key[len(PREFIX) :])
            self._store.set(GENERATION, generation.to_text())
            self._generation = generation
            if self._lapsed or self._age() >= LEASE_S * _USABLE:
                raise ClusterTimeout(f"the monitors take longer than the lock's lease of {LEASE_S:g} s to store it")
        return others

    def _others_of(self, texts: Mapping[str, str]) -> List[Claim]:
        own = self._require().key
        claims = [Claim.from_text(key, text) for key, text in texts.items() if key.startswith(PREFIX) and key != own]
        return [claim for claim in claims if claim is not None]

    def _is_ours(self, texts: Mapping[str, str], settle: bool = True) -> bool:
        """Whether the claim is there, and nobody got in after it; `settle`: settle what a late renewal leaves open."""
        claim = self._claim
        if claim is None or claim.key not in texts or Generation.from_text(texts.get(GENERATION)) != self._generation:
            return False
        if settle and self._lapsed:
            # as when the lock was taken: our renewed claim was written before we looked, so who came later sees it
            self._lapsed = bool(self._others_of(texts))
            return not self._lapsed
        return True

    def _age(self) -> float:
        """Seconds since the renewal that the lease counts from was begun."""
        return self._clock.monotonic() - self._renewed

    def _extend(self, held: Optional[bool] = None) -> None:
        claim, began = self._require(), self._clock.monotonic()
        self._write(replace(claim, expires=self._clock.now() + LEASE_S, held=claim.held if held is None else held))
        # one that arrived after the lease's end may have brought back a claim that was removed
        self._lapsed = self._lapsed or self._age() >= LEASE_S * _USABLE
        self._renewed = began

    def _start_heartbeat(self) -> None:
        if not self._heartbeat:
            return
        self._released = threading.Event()
        threading.Thread(target=self._beat, args=(self._released,), daemon=True, name="lock").start()

    def _beat(self, release: threading.Event) -> None:
        while not release.wait(LEASE_S / 3):
            if not self.at_work():
                continue
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


def claims(store: Store) -> List[Claim]:
    """Every claim that can be read, with the lock's generation. Reads only."""
    texts = contents(store, _BOTH)
    last = Generation.from_text(texts.get(GENERATION))
    read = [Claim.from_text(key, text) for key, text in texts.items() if key.startswith(PREFIX)]
    return [
        replace(claim, generation=last.number if claim.key == PREFIX + last.claim else 0)
        for claim in read
        if claim is not None
    ]


def break_lock(store: Store) -> List[Claim]:
    """Remove every claim; whoever holds the lock notices before its next write. Gives the claims that could be read."""
    removals = claims(store)
    # the generation first: who is inside must not write once somebody else may get in
    store.set(GENERATION, Generation.from_text(store.get(GENERATION)).next().to_text())
    for key in store.keys(PREFIX):
        store.remove(key)
    return removals
