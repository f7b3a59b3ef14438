"""Mgrs that die at any write, on monitors that fail: what the law tests of boosts and of the book share."""

from __future__ import annotations

from typing import Any, Optional

from flights import Field
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from appliers import TABLES, Killed, kill_at, survive
from ceph_tuner.core.errors import ClusterTimeout, TunerError
from monitors import Monitors, Table


class MortalMgrs(RuleBasedStateMachine):
    """One cluster, one mgr at a time. A machine of this kind makes its own executor, and calls `open` first."""

    def new_executor(self, name: str) -> Any:
        """Its own, of a mgr of that name, not started."""
        raise NotImplementedError

    def about_to_store(self, key: str, value: str) -> None:
        """Looks at what the store gets, before it has it."""
        raise NotImplementedError

    def open(self, field: Field, batch: int) -> None:
        self.field, self.monitors, self.clock = field, field.monitors, field.clock
        self.table: Table = dict(field.monitors.table)
        self.monitors.batch = batch
        self.before = self.monitors.schedulers()
        self.field.store.on_set = self.about_to_store
        self.born, self.troubled = 0, False
        self.executor: Optional[Any] = None
        self.another_mgr()

    def handle(self, event: Any) -> None:
        if self.executor is None:
            return
        try:
            self.executor.handle(event)
        except Killed:
            self.die()
        except TunerError:
            assert self.troubled

    def die(self) -> None:
        survive(self.monitors)
        self.field.alive.clear()
        # who guarded in that process is dead as well
        self.field.recorder.guarded.clear()
        self.executor = None

    @precondition(lambda self: self.executor is None)
    @rule()
    def another_mgr(self) -> None:
        self.born += 1
        new = self.new_executor(f"mgr.{self.born}")
        try:
            new.start()
        except Killed:
            self.die()
        except TunerError:
            assert self.troubled
        else:
            self.executor = new

    @rule(at=st.integers(1, 40), landed=st.booleans())
    def will_be_killed(self, at: int, landed: bool) -> None:
        if not self.troubled:
            kill_at(self.monitors, at, landed)

    @rule()
    def is_killed(self) -> None:
        self.die()

    @precondition(lambda self: not self.troubled)
    @rule(passed=st.integers(0, 20))
    def monitors_fail(self, passed: int) -> None:
        count = iter(range(passed))

        def fail() -> None:
            if next(count, None) is None:
                raise ClusterTimeout("no answer")

        self.troubled = True
        self.monitors.before_write = fail

    @precondition(lambda self: self.troubled)
    @rule()
    def monitors_answer(self) -> None:
        self.troubled = False
        survive(self.monitors)

    def revive(self) -> None:
        """A mgr lives and the monitors answer."""
        self.troubled = False
        survive(self.monitors)
        if self.executor is None:
            self.another_mgr()
        assert self.executor is not None

    def assert_untouched(self) -> None:
        """As at the beginning byte for byte, in each scheduler of each OSD, and nobody guards."""
        assert self.monitors.table == self.table
        assert self.monitors.schedulers() == self.before
        assert self.field.recorder.guarded[-1:] in ([], [False])


def field_on(table: str, osds: int = 4) -> Field:
    """A cluster of its own with one of `appliers.TABLES`."""
    return Field(Monitors(osds=osds, table=dict(TABLES[table])))
