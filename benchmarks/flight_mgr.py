"""One ceph-mgr with the plugin in it, on a `World`: real code but for the mgr itself, the clock and the threads.

A mgr can be killed at any write: then it does nothing any more, and whoever waits for an answer in it ends.
"""

from __future__ import annotations

import enum
import errno
import json
import logging
import queue
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple

# Ceph's framework, or a stand-in for it, must be there before the plugin is imported
sys.path.insert(0, str(Path(__file__).parents[1] / "mgr_module"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "mgr"))
from flight_world import WRITES, World
from mgr_stand_in import CommandResult

from ceph_tuner.core.autopilot.events import Answered
from ceph_tuner.core.ceph.ports import Clock, Store
from ceph_tuner.core.changes.lock import Holder, Lock
from ceph_tuner.core.errors import TunerError
from ceph_tuner.core.knobs.releases import release_of
from tuner import compat, health
from tuner.changes import Changes
from tuner.collect import Collector
from tuner.commander import MgrCommander
from tuner.inbox import Inbox
from tuner.inventory import MgrInventory
from tuner.modes import Modes
from tuner.sampler import Sampler
from tuner.service import Service
from tuner.worker import WorkerError
from twin_cluster.mgr import CommandAnswer, TwinMgr

HOST = "flight"
KILLED = -999
FAILS_S = 15.0
WAIT_S = 10.0
"""How long a command waits for its answer."""

LOG = logging.getLogger("flight")


class Killed(BaseException):
    """The mgr's process is gone."""


class Trouble:
    """What becomes of commands at the moment."""

    def __init__(self) -> None:
        self.until = 0.0
        self.kind = ""
        """`refused`, `lost` (not done), `unheard` (done, but the answer is lost), `store` (only writes of the store)"""
        self.blind_until = 0.0
        self.kill_after: Optional[int] = None
        """Writes until the mgr dies."""
        self.kill_when_writing: Optional[int] = None
        """The same, counted from when a trial's next write or return is decided."""
        self.fail_when_writing: Optional[int] = None
        """Writes from then until the store refuses for some seconds."""
        self.fail_after: Optional[int] = None
        self.landed = False
        """Whether the write at which it dies is done."""

    def of(self, prefix: str, now: float) -> str:
        """What becomes of a command."""
        if now >= self.until:
            return ""
        if self.kind == "store":
            return "refused" if prefix in ("config-key set", "config-key rm") else ""
        return self.kind

    def wrote(self, now: float) -> None:
        """Count a write that is about to be done."""
        if self.fail_after is not None:
            self.fail_after -= 1
            if self.fail_after <= 0:
                self.fail_after, self.kind, self.until = None, "store", now + FAILS_S

    def recent(self, now: float, within: float) -> bool:
        """Whether commands fail, or did until a moment ago."""
        return now < self.until + within


class _Result(CommandResult):
    """A command that was sent: `lost` ones let the time pass."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world, self.lost = world, False
        self.ev = _Waiting(self)

    def complete(self, code: int, output: str, message: str) -> None:
        self.lost = code == -errno.ETIMEDOUT
        super().complete(code, output, message)

    def wait(self) -> Tuple[int, str, str]:
        answer = super().wait()
        if answer[0] == KILLED:
            raise Killed
        return answer

    def time_passes(self) -> None:
        self._world.advance(WAIT_S)


class _Waiting(threading.Event):
    def __init__(self, result: _Result) -> None:
        super().__init__()
        self._result = result

    def wait(self, timeout: Optional[float] = None) -> bool:
        super().wait()
        if self._result.lost:
            self._result.time_passes()
        return not self._result.lost


class FlightMgr(TwinMgr):
    """`MgrModule`, as far as the plugin uses it."""

    class ClusterLogPrio(enum.Enum):
        """As Ceph's."""

        INFO = 1
        WARN = 2

    def __init__(self, world: World, trouble: Trouble, name: str) -> None:
        super().__init__(world)  # type: ignore[arg-type]
        self._world, self._trouble, self._name = world, trouble, name
        self.dead = False
        self.log = LOG
        self.lines = 0

    def get(self, data_name: str) -> Any:
        self._live()
        if data_name == "health":
            return {"json": self._world.mon("health", {})}
        if data_name == "pg_summary" and self._world.now() < self._trouble.blind_until:
            raise RuntimeError("the mgr knows of no PGs")
        return super().get(data_name)

    def get_mgr_id(self) -> str:
        return self._name

    def get_daemon_health_metrics(self) -> Any:
        return super().get_daemon_health_metrics()

    def cluster_log(self, channel: str, priority: Any, message: str) -> None:
        self._live()
        self.lines += 1

    def remote(self, module_name: str, method_name: str, *args: Any, **kwargs: Any) -> None:
        self._live()

    def send_command(
        self, result: CommandAnswer, svc_type: str, svc_id: str, command: str, tag: str, inbuf: Optional[str] = None
    ) -> None:
        trouble, prefix = self._trouble, str(json.loads(command)["prefix"])
        if not self.dead and svc_type == "mon" and prefix in WRITES:
            self.dead = self._dies()
            if self.dead and trouble.landed:
                super().send_command(_Result(self._world), svc_type, svc_id, command, tag, inbuf)
        if self.dead:
            result.complete(KILLED, "", "")
            return
        if svc_type == "mon" and prefix in WRITES:
            trouble.wrote(self._world.now())
        becomes = trouble.of(prefix, self._world.now()) if svc_type == "mon" else ""
        if becomes == "refused":
            result.complete(-errno.EIO, "", "the monitor fails")
        elif becomes == "lost":
            result.complete(-errno.ETIMEDOUT, "", "")
        elif becomes == "unheard":
            super().send_command(_Result(self._world), svc_type, svc_id, command, tag, inbuf)
            result.complete(-errno.ETIMEDOUT, "", "")
        else:
            super().send_command(result, svc_type, svc_id, command, tag, inbuf)

    def _dies(self) -> bool:
        if self._trouble.kill_after is None:
            return False
        self._trouble.kill_after -= 1
        if self._trouble.kill_after > 0:
            return False
        self._trouble.kill_after = None
        return True

    def _live(self) -> None:
        if self.dead:
            raise Killed


class MgrClock:
    """The mgr's host's clock, which somebody may set."""

    def __init__(self, world: World) -> None:
        self._world = world

    def now(self) -> float:
        return self._world.now() + self._world.offset

    def monotonic(self) -> float:
        return self._world.now()

    def sleep(self, seconds: float) -> None:
        self._world.advance(seconds)


class _Service(Service):
    """Its changes go by the world's clock."""

    clock: Clock
    new_lock: Callable[[Store, Clock, str], Lock]

    def changes(self) -> Changes:
        version = self.release_version()
        release = release_of(version)
        return Changes(self.commander, self.store, release, version, self.who, self.clock, self.new_lock)


class _AtOnce(queue.Queue[Callable[[], None]]):
    """The courier's: commands are sent by whoever gives them."""

    def put(self, item: Callable[[], None], block: bool = True, timeout: Optional[float] = None) -> None:
        item()


class _Turning(threading.Event):
    """An operator's command waits here for its turn: it comes at once."""

    def __init__(self, turn: Callable[[], None]) -> None:
        super().__init__()
        self._turn = turn

    def wait(self, timeout: Optional[float] = None) -> bool:
        for _ in range(3):
            if not self.is_set():
                self._turn()
        return self.is_set()


class MgrProcess:
    """The active mgr, from its start to its end."""

    def __init__(
        self,
        world: World,
        trouble: Trouble,
        number: int,
        alive: Callable[[str], bool],
        option: Callable[[str], Any],
    ) -> None:
        """`alive` tells of a process's number whether it runs."""
        self.number, self._world, self._trouble = number, world, trouble
        self._alive, self._option = alive, option
        self.mgr = FlightMgr(world, trouble, f"m{number}")
        self._commander = MgrCommander(self.mgr, lambda: _Result(world), WAIT_S)
        self._commander._courier._start = lambda: None  # type: ignore[method-assign]
        self._commander._courier._waiting = _AtOnce()
        self.clock = MgrClock(world)
        self._locks: List[Lock] = []
        self.service: _Service
        collector = Collector(self.mgr, self._commander, compat.counters(self.mgr))
        self.sampler = Sampler(collector, lambda: self.service.history(), self.clock.now, world.now)
        self.service = _Service(
            self._commander,
            self.sampler,
            MgrInventory(self.mgr),
            option,
            f"ceph tuner in mgr.m{number}",
            self.clock.now,
        )
        self.service.clock, self.service.new_lock = self.clock, self._new_lock
        self.modes = Modes(
            self.mgr,
            self.service,
            self.sampler,
            lambda: collector.born,
            lambda osd: compat.latest_counter(self.mgr, osd, "osd.op_w"),
            option,
            self.clock,
            self._new_lock,
        )
        self.driver = self.modes.whole.driver
        self.driver.inbox.post = self._post  # type: ignore[method-assign]
        self.book = self.modes.books.whole.driver
        self.boost = self.modes.boosts.driver
        for driver in (self.boost, self.book):
            driver.inbox.post = partial(self._post_to, driver.inbox)  # type: ignore[method-assign]
        self._held: List[Tuple[float, Answered]] = []
        self.answer_after = 0.0
        """Seconds that the optimiser's next answers take."""
        self.checks: Dict[str, Any] = {}

    def tick(self) -> None:
        """As the module's `serve` and the driver's thread do it. Raises Killed."""
        for lock in self._locks:
            # its own thread would
            self._quietly(lock.renew)
        self._quietly(self.sampler.tick)
        self._quietly(self.modes.look)
        self._quietly(self.modes.sampled)
        self._quietly(self.modes.keep_regimes)
        due = [answer for at, answer in self._held if at <= self._world.now()]
        self._held = [entry for entry in self._held if entry[0] > self._world.now()]
        for answer in due:
            self._post(answer)
        self.turn()
        self._quietly(self.modes.boosts.by_rule)
        self.checks = health.raised({**self.service.health(), **self.modes.health()})

    def turn(self) -> None:
        """One turn of the driver, and what it began beside itself."""
        self.driver.attempt()
        self.boost.attempt()
        self.book.attempt()
        for thread in threading.enumerate():
            if thread.name == "tuner-asking":
                thread.join()
        self.mgr._live()

    def command(self, work: Callable[[], Any]) -> Any:
        """An operator's command: what it gives, or its refusal. Raises Killed."""
        try:
            return work()
        except (TunerError, WorkerError) as error:
            return error

    def end(self) -> None:
        """What the kernel does when a process dies."""
        self.mgr.dead = True

    def _post(self, event: Any) -> threading.Event:
        if isinstance(event, Answered) and self.answer_after > 0:
            self._held.append((self._world.now() + self.answer_after, event))
            self.answer_after = 0.0
            return _Turning(self.turn)
        return self._post_to(self.driver.inbox, event)

    def _post_to(self, inbox: Inbox, event: Any) -> threading.Event:
        done = _Turning(self.turn)
        inbox.append((event, done))
        return done

    def _new_lock(self, store: Store, clock: Clock, who: str) -> Lock:
        holder = Holder(who, HOST, str(self.number))
        lock = Lock(
            store, clock, holder, lambda holder: holder.host != HOST or self._alive(holder.process), heartbeat=False
        )
        self._locks = [known for known in self._locks if known._depth > 0] + [lock]
        return lock

    def _quietly(self, work: Callable[[], Any]) -> None:
        try:
            work()
        except Exception as error:
            LOG.info("%s", error)
