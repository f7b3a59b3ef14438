"""An operator takes back what a later switch lies over; and a lock that was lost while a page was watched."""

from __future__ import annotations

import pytest
from books import executor
from test_book_laws import field_of, seen

from ceph_tuner.core.autopilot.events import OperatorCommand
from ceph_tuner.core.book.events import OFF, ON
from ceph_tuner.core.book.state import HOLDING, RESTING


@pytest.mark.parametrize("rollback", ["the newest", "its own"])
def test_a_rollback_of_a_change_that_a_later_switch_lies_over_goes_with_the_book(rollback: str) -> None:
    field = field_of("nothing")
    one = executor(field)
    one.handle(OperatorCommand(field.clock.now(), ON, "alice"))
    for _ in range(2):
        one.handle(seen(one, field, "busy"))
        field.clock.sleep(65.0)
    other, _ = field.hands("the program")
    entry = other.apply(other.plan("osd", {"osd_max_scrubs": 3}))
    assert entry is not None
    for _ in range(2):
        # of an older number than the change beneath it
        one.handle(seen(one, field, "scrub-late"))
        field.clock.sleep(65.0)
    assert (one.state.phase, field.monitors.table) == (HOLDING, {("osd", "osd_max_scrubs"): "6"})
    if rollback == "the newest":
        other.undo()
    else:
        other.undo_entry(entry)
    assert field.monitors.table == {("osd", "osd_max_scrubs"): "6"}
    one.handle(OperatorCommand(field.clock.now(), OFF, "alice"))
    assert field.monitors.table == {}


def test_a_page_whose_lock_was_lost_goes_and_comes_again_under_another() -> None:
    field = field_of("nothing")
    one = executor(field)
    one.handle(OperatorCommand(field.clock.now(), ON, "alice"))
    one.handle(seen(one, field, "scrub-late"))
    for key in [key for key in field.store.values if key.startswith("lock")]:
        del field.store.values[key]
    field.clock.sleep(65.0)
    one.handle(seen(one, field, "scrub-late"))
    assert (one.state.phase, field.monitors.table) == (RESTING, {})
    for _ in range(2):
        field.clock.sleep(65.0)
        one.handle(seen(one, field, "scrub-late"))
    assert one.state.phase == HOLDING
