"""What has to hold all along a flight of the automatic mode. What does not is a line in `violations`."""

from __future__ import annotations

import json
from collections import Counter, deque
from typing import Any, Deque, Dict, List, Mapping, Optional, Set, Tuple

from configuration_laws import Key, breaches
from flight_mgr import MgrProcess, Trouble
from flight_world import World
from standing_laws import BookLaw, BoostLaw
from store_keys import MOST_KEYS

from ceph_tuner.core.autopilot.audit_log import ACTS, APPLY, BLOCKS, FAILOVER, PER_BLOCK, PREFIX
from ceph_tuner.core.autopilot.permits import outside_hours
from ceph_tuner.core.autopilot.policy import Policy
from ceph_tuner.core.autopilot.state import APPROVE, AUTO, HOLDING, RETURNING, TRYING, WRITING
from ceph_tuner.core.book.book import PAGES_KEY, parse_book
from ceph_tuner.core.book.page import Page
from ceph_tuner.core.boost.executor import BY as BY_BOOST
from ceph_tuner.core.boost.executor import KEY as BOOST_KEY
from ceph_tuner.core.boost.state import BoostState
from ceph_tuner.core.ceph.commands import STORE_PREFIX
from ceph_tuner.core.changes.journal import APPLIED, APPLYING, UNDOING, Entry
from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.slo_calendar import SloCalendar, parse_slo_calendar

P95 = "client.p95_ms"
DAY_S = 86400.0
WINDOW_S = 30.0
REACTION_WINDOWS = 2
"""Beside `guard_windows`: what is left out while queues drain, and that windows do not begin with the trouble."""
CLEARLY = 2.0
"""How far clients are beyond the bound before a window counts: the guard goes by the OSDs' histograms, whose buckets
double, and clients wait for the network and in their own queues beside."""
WHO = "ceph tuner in mgr."
LARGEST_VALUE = 65536
OTHER_TRAILS = ("audit/=book/", "audit/=boost/")
NAMED_S = 600.0
"""How long after a regime what its page names may be in force: mgrs are away, and commands fail."""


class Laws:
    """Watches every write, and looks at the cluster after every tick."""

    def __init__(self, world: World, trouble: Trouble, policy: Policy, interval: float) -> None:
        self._world, self._trouble, self._policy, self._interval = world, trouble, policy, interval
        world.watchers.append(self.watch)
        self.violations: List[str] = []
        self.counts: Counter[str] = Counter()
        self.others = world.table()
        """What the database would hold without any change of the journal."""
        self._others_since: Dict[Key, int] = {}
        self._dirty = True
        self._unfinished_acts: Dict[int, str] = {}
        self._apply_open = False
        self._records = 0
        self._moves: Deque[float] = deque()
        self._returning: Optional[float] = None
        self._beyond = 0
        self._policy_held: Optional[str] = None
        self.longest_beyond = 0
        self._next_window = world.now() + WINDOW_S
        self._reported: Set[str] = set()
        self._of_book = BookLaw(world.now(), NAMED_S, NAMED_S, self.counts)
        self._of_boost = BoostLaw(world.now(), 2 * interval, self.counts)
        self.mgr_now = world.now

    def broken(self, law: str, words: str) -> None:
        """Note that a law does not hold; once for the same words."""
        if f"{law}: {words}" not in self._reported and len(self.violations) < 50:
            self._reported.add(f"{law}: {words}")
            hours = (self._world.now() - self._world.begun) / 3600.0
            self.violations.append(f"{hours:.4f} h, {law}: {words}")

    # what others write

    def by_hand(self, who: str, name: str, value: Optional[str]) -> None:
        """An operator writes to the configuration database."""
        before = self._world.table()
        if value is None:
            self._world.mon("config rm", {"who": who, "name": name}, watched=False)
        else:
            self._world.mon("config set", {"who": who, "name": name, "value": value}, watched=False)
        after = self._world.table()
        newest = max([entry.number for entry in self.entries()], default=0)
        for key in {*before, *after}:
            if before.get(key) != after.get(key):
                self._others_since[key] = newest
                self.others.pop(key, None)
                if key in after:
                    self.others[key] = after[key]
        self._dirty = True

    def entries(self) -> List[Entry]:
        """The journal, oldest first."""
        stored = self._world.cluster.store.items("journal/")
        return [Entry.from_text(key, text) for key, text in sorted(stored.items())]

    # every write of the tuner

    def watch(self, prefix: str, arguments: Mapping[str, str], payload: str, done: bool) -> None:
        """A write, before and after it."""
        self._dirty = True
        if done:
            return
        if prefix in ("config set", "config rm"):
            self.counts["writes of settings"] += 1
            self._has_an_inverse((arguments["who"], arguments["name"]))
        elif prefix == "config-key set":
            key = arguments["key"][len(STORE_PREFIX) :]
            if len(payload.encode()) > LARGEST_VALUE:
                self.broken("store", f"{key} has {len(payload.encode())} bytes")
            kind = key.partition("/")[0]
            if kind == "journal":
                self._journal(key, payload)
            elif kind == "audit" and not key.startswith(OTHER_TRAILS):
                self._audit(key, payload)
            elif kind == "auto":
                returning = json.loads(payload)["phase"] == RETURNING
                self._returning = (self._returning or self._world.now()) if returning else None

    def _has_an_inverse(self, key: Key) -> None:
        for entry in self.entries():
            if entry.state in (APPLYING, UNDOING) and key in {restore.key for restore in entry.restores}:
                return
        self.broken("inverse", f"{key[0]} {key[1]} is written, and no unfinished entry of the journal has it")

    def _journal(self, key: str, payload: str) -> None:
        entry = Entry.from_text(key, payload)
        known = self._world.cluster.store.get(key)
        if entry.replaceable:
            self.counts["switches of the book"] += entry.state == APPLYING
            return
        if entry.who.endswith(BY_BOOST):
            self._boosts(entry, known is None)
            return
        if entry.state == UNDOING and self._returning is not None:
            late = self._world.now() - self._returning
            if late > self._interval and not self._trouble.recent(self._world.now(), 60.0):
                self.broken("rollback", f"began {late:.1f} s after it was decided")
            self._returning = None
        if known is not None or not entry.trial or not entry.who.startswith(WHO):
            return
        self.counts["changes written"] += 1
        state = json.loads(self._world.cluster.store.get("auto/state") or "{}")
        turn = state.get("turns", 0) > 0 and not state.get("passed")
        if state.get("phase") != WRITING or state.get("mode") not in (AUTO, APPROVE):
            self.broken("forward", f"{state.get('mode')}, {state.get('phase')}: change {entry.number}")
        if state.get("paused") or state.get("then"):
            self.broken("forward", f"although it is paused: change {entry.number}")
        if not self._apply_open and not turn:
            self.broken("audit", f"change {entry.number} has no record before it")
        reason = outside_hours(self.mgr_now(), self._policy)
        if reason:
            self.broken("hours", f"change {entry.number}: {reason}")
        recent = [at for at in state.get("moves", ()) if abs(self.mgr_now() - at) < DAY_S]
        if len(recent) > self._policy.changes_per_day:
            self.broken("budget", f"{len(recent)} changes in 24 h")

    def _boosts(self, entry: Entry, new: bool) -> None:
        """A boost's change is begun by one that the store knows of, within its time."""
        if not new:
            return
        self.counts["boosts written"] += 1
        state = self._boost()
        if not state.writing:
            self.broken("boost", f"change {entry.number} while {state.phase}")
        if state.time_is_up(self.mgr_now()):
            self.broken("boost", f"change {entry.number} after the boost's time")

    def _boost(self) -> BoostState:
        text = self._world.cluster.store.get(BOOST_KEY)
        return BoostState.from_dict(json.loads(text)) if text else BoostState()

    def _audit(self, key: str, payload: str) -> None:
        before = self._world.cluster.store.get(key)
        lines = payload.split("\n")
        known = [] if before is None else before.split("\n")
        if lines[: len(known)] != known:
            self.broken("audit", f"{key} was rewritten")
        for text in lines[len(known) :]:
            record = json.loads(text)
            number = int(record["number"])
            if self._records and number not in (self._records + 1, self._records):
                self.broken("audit", f"record {number} follows {self._records}")
            self._records = number
            self._take(record)

    def _take(self, record: Mapping[str, Any]) -> None:
        what, refers = str(record["what"]), int(record["refers"])
        if refers:
            self._unfinished_acts.pop(refers, None)
        else:
            self.counts[f"trail: {what}"] += 1
        if what in ACTS and not refers:
            self._apply_open = what == APPLY
            for number, words in self._unfinished_acts.items():
                self.broken("audit", f"record {number} ({words}) has no outcome, and {what} follows")
            self._unfinished_acts = {int(record["number"]): what}
        if what == "taken back" and not refers:
            self.counts[f"taken back: {record['detail'].get('rule') or record['why']}"] += 1
        if what == FAILOVER and not refers and self._unfinished_acts:
            number, words = next(iter(self._unfinished_acts.items()))
            self.broken("audit", f"record {number} ({words}) has no outcome, and the failover's does not refer to it")
            self._unfinished_acts = {}

    # after every tick

    def look(self, process: Optional[MgrProcess], started: bool) -> None:
        """Look at everything."""
        if self._dirty:
            self._dirty = False
            self._table(process, started)
        self._book(process if started else None)
        self._boost_ends(process if started else None)
        self._clients(process if started else None)

    def _table(self, process: Optional[MgrProcess], started: bool) -> None:
        table, entries = self._world.table(), self.entries()
        unfinished = [entry for entry in entries if entry.state in (APPLYING, UNDOING)]
        for law, words in breaches(table, entries, self.others, self._others_since):
            self.broken(law, words)
        if process is None or not started:
            return
        state = process.driver.state
        if state.on_cluster:
            return
        others = [entry for entry in entries if entry.replaceable or entry.who.endswith(BY_BOOST)]
        own = [entry for entry in entries if entry.who.startswith(WHO) and entry not in others]
        left = [entry.number for entry in own if entry.trial and entry.state == APPLIED]
        left += [entry.number for entry in unfinished if entry.trial and entry not in others]
        if left and not self._trouble.recent(self._world.now(), 60.0):
            self.broken("left behind", f"changes {left} while {state.phase}")

    def _book(self, process: Optional[MgrProcess]) -> None:
        held = process.modes.regimes.state_of() if process is not None else None
        regime = held.name if held is not None else ""
        for law, words in self._of_book.breaches(
            self._world.now(), regime, self._excused(process), self.entries(), self._pages, self._world.table
        ):
            self.broken(law, words)

    def _boost_ends(self, process: Optional[MgrProcess]) -> None:
        mgr_now = process.clock.now() if process is not None else self.mgr_now()
        for law, words in self._of_boost.breaches(
            self._world.now(), mgr_now, self._excused(process), self.entries(), self._boost
        ):
            self.broken(law, words)

    def _excused(self, process: Optional[MgrProcess]) -> bool:
        """Whether no mgr can do what it wants."""
        return process is None or self._trouble.recent(self._world.now(), 60.0)

    def _pages(self) -> List[Page]:
        text = self._world.cluster.store.get(PAGES_KEY)
        return list(parse_book(json.loads(text), "the book").pages) if text else []

    def _clients(self, process: Optional[MgrProcess]) -> None:
        """Hard objectives are not broken for longer than the guard's windows and its reaction."""
        if self._world.now() < self._next_window:
            return
        self._next_window = self._world.now() + WINDOW_S
        seen = self._world.clients_p95_ms()
        state = process.driver.state if process is not None else None
        calendar = self._calendar()
        policy = None if calendar is None else calendar.policy_at(self.mgr_now())
        if policy != self._policy_held:
            # the guard's windows never span two policies
            self._policy_held, self._beyond = policy, 0
            self.counts["turns of the calendar"] += 1
        if seen is not None:
            self.counts["windows of clients"] += 1
        if state is None or state.phase not in (TRYING, HOLDING) or self._trouble.recent(self._world.now(), 60.0):
            self._beyond = 0
            return
        if seen is None or calendar is None:
            return
        held = Judge(calendar.at(self.mgr_now()), state.baseline).must_hold(self._policy.guard_tolerance)
        bounds = [bound for objective, bound in held.items() if objective.metric == P95]
        beyond = bool(bounds) and seen > CLEARLY * min(bounds)
        self.counts["windows on trial"] += 1
        self.counts["windows on trial beyond the bound"] += beyond
        self._beyond = self._beyond + 1 if beyond else 0
        self.longest_beyond = max(self.longest_beyond, self._beyond)
        if self._beyond > self._policy.guard_windows + REACTION_WINDOWS:
            self.broken("hard objective", f"clients at {seen:.1f} ms, {min(bounds):.1f} is borne")

    def _calendar(self) -> Optional[SloCalendar]:
        text = self._world.cluster.store.get("slo")
        return parse_slo_calendar(json.loads(text)) if text else None

    # now and then, and at the end

    def size(self) -> Dict[str, Tuple[int, int]]:
        """Keys and bytes of the store by kind; bounds are held."""
        found: Dict[str, Tuple[int, int]] = {}
        for key, text in self._world.stored().items():
            kind = key.rpartition("/")[0] or key
            keys, size = found.get(kind, (0, 0))
            found[kind] = keys + 1, size + len(text.encode())
        for kind, (keys, _) in found.items():
            if keys > MOST_KEYS.get(kind, 0):
                self.broken("store", f"{keys} keys below {kind}, {MOST_KEYS.get(kind, 0)} are the most")
        return found

    def end(self) -> None:
        """Everything is back or kept, and told."""
        for number, words in self._unfinished_acts.items():
            self.broken("audit", f"record {number} ({words}) has no outcome")
        if self._records > PER_BLOCK * BLOCKS:
            kept = len([key for key in self._world.stored() if key.startswith(PREFIX)])
            self.counts["blocks of the trail"] = kept
