"""Regimes inside the mgr: told at each sample, kept across a failover, shown with what they were told by."""

from __future__ import annotations

import json
from typing import Any, Dict, List

import pytest
from automatic_on_twin import OnTwin

from ceph_tuner.core.book.book import StoredBook
from ceph_tuner.core.book.page import TRIAL, VALIDATED, Page
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.measure.timeline import timeline
from ceph_tuner.core.regimes.bounds import BOUNDS_KEY
from tuner import render_automatic, render_book, render_regimes

BUSY = {"name": "writing", "metric": "client.write_iops", "enter": 1, "leave": 0.5, "hold_s": 0}
NEVER = {**BUSY, "enter": 1e9, "leave": 1e8}


def bounds(*markers: Any, dwell_s: float = 0) -> str:
    return json.dumps({"markers": markers, "dwell_s": dwell_s})


def held(aboard: OnTwin) -> Dict[str, str]:
    return {row["scope"]: row["regime"] for row in aboard.modes.regimes.document()["regimes"]}


def kept(aboard: OnTwin) -> List[str]:
    return [entry.name for entry in timeline(aboard.service.history()) if entry.kind == "regime"]


def test_a_regime_is_told_from_the_first_sample_on_and_kept_once() -> None:
    aboard = OnTwin()
    assert aboard.modes.regimes.document()["regimes"] == []
    aboard.sample(3)
    assert list(held(aboard)) == [""]
    assert kept(aboard) == [held(aboard)[""]]
    shown = render_regimes.book(aboard.modes.regimes.document())
    assert f"cluster: {held(aboard)['']} since 20" in shown
    assert "client.iops" in shown
    assert "10% of capacity" in shown


def test_other_bounds_tell_other_regimes_at_the_next_sample() -> None:
    aboard = OnTwin()
    aboard.sample(2)
    aboard.modes.books.set_bounds(bounds(BUSY), False)
    aboard.sample()
    assert held(aboard) == {"": "writing"}
    aboard.modes.books.set_bounds(bounds(NEVER), False)
    aboard.sample()
    assert held(aboard) == {"": "idle"}
    assert kept(aboard)[-2:] == ["writing", "idle"]
    history = {**aboard.service.past(False, 20), "trail": []}
    assert "writing" in render_automatic.history(history)
    aboard.modes.books.set_bounds("", True)
    assert aboard.service.store.get(BOUNDS_KEY) is None


@pytest.mark.parametrize(
    ("text", "default", "message"),
    [("", False, "nothing"), (bounds(BUSY), True, "both"), (bounds(), False, "must be 1 to 12"), ("{", False, "JSON")],
)
def test_bounds_that_make_no_sense_change_nothing(text: str, default: bool, message: str) -> None:
    aboard = OnTwin()
    with pytest.raises(InputError, match=message):
        aboard.modes.books.set_bounds(text, default)
    assert aboard.service.store.get(BOUNDS_KEY) is None


def test_other_bounds_leave_a_record_with_who_and_what_they_were_before() -> None:
    aboard = OnTwin()
    aboard.modes.books.set_bounds(bounds(BUSY), False)
    aboard.modes.books.set_bounds(bounds({**BUSY, "enter": 2}, dwell_s=5), False)
    first, second = aboard.modes.past(10)
    assert (first["what"], first["who"], first["outcome"]) == ("book mode", "an operator", "done")
    assert "without busy: client.iops 0.1 to 0.05 of capacity for 60 s" in first["why"]
    assert "with writing: client.write_iops 1 to 0.5 for 0 s" in first["why"]
    changed = "writing: client.write_iops 2 to 0.5 for 0 s (before: writing: client.write_iops 1 to 0.5 for 0 s)"
    assert second["why"] == f"bounds of regimes: {changed}; dwell_s 5 (before: 0)"
    assert second["detail"]["old"]["markers"][0]["enter"] == 1
    assert second["detail"]["new"]["markers"][0]["enter"] == 2


def test_other_bounds_than_those_that_nobody_could_read_say_so() -> None:
    aboard = OnTwin()
    aboard.service.store.set(BOUNDS_KEY, "{")
    aboard.modes.books.set_bounds("", True)
    (record,) = aboard.modes.past(10)
    assert "as they were; the stored ones could not be read" in record["why"]


def test_pages_that_name_no_regime_of_the_bounds_are_said_until_they_are_struck() -> None:
    aboard = OnTwin()
    for regime in ("writing", "busy+recovering", "recovering+busy", "idle"):
        own = Page(1, regime, {"osd_max_scrubs": 1}, VALIDATED, TRIAL, 1000.0)
        StoredBook(aboard.service.store).change(lambda book, own=own: book.added(own))  # type: ignore[misc]
    aboard.sample()
    named = "pages that name no regime of these bounds are never used:"
    assert f"{named} 1, 3 (recovering+busy, writing). Strike them" in aboard.modes.books.document()["notes"]
    document = aboard.modes.books.set_bounds(bounds(BUSY), False)
    assert f"{named} 2, 3 (busy+recovering, recovering+busy). Strike them" in document["notes"]
    assert "never used: 2, 3" in " ".join(render_book.book(document).split())
    for number in (2, 3):
        aboard.modes.books.strike(number)
    assert not any(named in note for note in aboard.modes.books.document()["notes"])


def test_a_new_mgr_tells_no_regime_before_it_has_read_the_bounds() -> None:
    aboard = OnTwin()
    aboard.service.store.set(BOUNDS_KEY, bounds(BUSY))
    own = Page(1, "writing", {"osd_max_scrubs": 1}, VALIDATED, TRIAL, 1000.0)
    StoredBook(aboard.service.store).change(lambda book: book.added(own))
    for _ in range(3):
        # the monitors are slow: what reads the bounds has not had its turn
        aboard.twin.clock.sleep(5.0)
        aboard.sampler.tick()
        aboard.modes.sampled()
    assert held(aboard) == {}
    assert not any("pages that name no regime" in note for note in aboard.modes.books.document()["notes"])
    # a command of an operator waits for no turn
    assert aboard.modes.regimes.named("writing") == "writing"
    aboard.modes.keep_regimes()
    aboard.sample()
    assert held(aboard) == {"": "writing"}
    assert kept(aboard) == ["writing"]


def test_stored_bounds_that_nobody_can_read_are_said_and_replaced_by_the_default() -> None:
    aboard = OnTwin()
    aboard.service.store.set(BOUNDS_KEY, '{"markers": 5}')
    aboard.sample(2)
    document = aboard.modes.regimes.document()
    assert "the stored regimes.markers" in document["problem"]
    assert len(document["bounds"]["markers"]) == 5
    assert "note: the stored regimes" in render_regimes.book(document)


def test_the_next_mgr_writes_nothing_twice_and_goes_on_with_the_stored_bounds() -> None:
    aboard = OnTwin()
    aboard.modes.books.set_bounds(bounds(BUSY), False)
    aboard.sample(3)
    before = kept(aboard)
    following = OnTwin(aboard.twin)
    following.sample(3)
    assert held(following) == {"": "writing"}
    assert kept(following)[len(before) :] in ([], ["writing"])
    assert following.modes.regimes.document()["bounds"]["markers"][0]["name"] == "writing"


def test_the_policy_of_a_calendar_is_in_the_history_as_well() -> None:
    aboard = OnTwin()
    odd = {"name": "always", "hours": "mon-sun", "objectives": ["client.p95_ms <= 9"]}
    calendar = {"objectives": ["client.p95_ms <= 20"], "calendar": {"policies": [odd]}}
    aboard.sample(2)
    assert [entry.kind for entry in timeline(aboard.service.history())] == ["regime"]
    aboard.service.slo_commands.set("", False, 1.0, json.dumps(calendar), True)
    aboard.sample(2)
    aboard.service.slo_commands.remove("all")
    aboard.sample(2)
    policies = [entry.name for entry in timeline(aboard.service.history()) if entry.kind == "policy"]
    assert policies == ["always", "none"]


def test_a_scope_of_an_objective_has_a_regime_of_its_own() -> None:
    aboard = OnTwin()
    (name,) = {place.device_class for place in aboard.service.config.places() if place.device_class}
    aboard.service.slo_commands.set(f"client.p95_ms{{class={name}}}<=20", False, 1.0, "")
    aboard.sample(3)
    assert set(held(aboard)) == {"", f"class={name}"}


def test_regimes_are_kept_while_nobody_can_read_the_objectives() -> None:
    aboard = OnTwin()
    aboard.service.store.set("slo", "{")
    aboard.sample(3)
    assert kept(aboard) == [held(aboard)[""]]


def test_the_guard_has_its_turn_whatever_becomes_of_regimes(monkeypatch: pytest.MonkeyPatch) -> None:
    aboard = OnTwin()

    def broken(*_: Any) -> None:
        raise RuntimeError("a regime that cannot be told")

    monkeypatch.setattr(aboard.modes.regimes, "sampled", broken)
    monkeypatch.setattr(aboard.driver, "_sampled", False)
    with pytest.raises(RuntimeError):
        aboard.modes.sampled()
    assert aboard.driver._sampled
