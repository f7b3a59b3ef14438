"""When a boost may not begin, and what it takes for the rate of before."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict

import pytest
from boosted_mgr import Boosted, boosted, by_rule, recovering

from ceph_tuner.core.boost.kinds import KINDS
from ceph_tuner.core.boost.state import OFF, ON
from ceph_tuner.core.errors import RetryLater
from tuner import render_automatic
from tuner.boosts import Boosts


def flagged(*flags: str) -> Dict[str, Any]:
    return {"severity": "HEALTH_WARN", "summary": {"message": f"{','.join(flags)} flag(s) set", "count": len(flags)}}


def showing(mgr: Boosted, **states: int) -> None:
    """The newest sample shows these states of PGs."""
    sample, coverage = mgr.sampler._samples[-1]
    mgr.sampler._samples[-1] = (replace(sample, pg_states=states), coverage)


def showing_none(mgr: Boosted, *metrics: str) -> None:
    """The newest sample shows none of these."""
    sample, coverage = mgr.sampler._samples[-1]
    mgr.sampler._samples[-1] = (replace(sample, values={**sample.values, **dict.fromkeys(metrics, 0.0)}), coverage)


def test_none_begins_whose_work_a_flag_stops() -> None:
    mgr = boosted(recovering(500_000))
    before = mgr.table()
    mgr.mgr.checks["OSDMAP_FLAGS"] = flagged("noout", "norecover")
    for begin in (mgr.begin, lambda: mgr.modes.boosts.foretell("recovery")):
        with pytest.raises(RetryLater, match="the flag norecover is set, so recovery does not go on"):
            begin()
    assert (mgr.phase, mgr.table()) == (OFF, before)
    mgr.mgr.checks["OSDMAP_FLAGS"] = flagged("noout")
    assert mgr.begin()["phase"] == ON


def test_where_nothing_is_left_of_what_is_counted_once_a_minute_that_is_said() -> None:
    mgr = boosted(recovering(500_000))
    showing_none(mgr, "snaptrim.queue", "recovery.objects_left")
    for kind, says_so in (("snaptrim", True), ("recovery", False)):
        with pytest.raises(RetryLater, match="there is nothing to boost") as refusal:
            mgr.begin(kind)
        assert ("counted once a minute" in refusal.value.next_step) == says_so


def test_a_flag_that_is_set_meanwhile_is_told_in_the_place_of_an_end() -> None:
    mgr = boosted(recovering(500_000))
    document = mgr.begin()
    assert document["done_within_s"] == pytest.approx(document["left"] / document["rate_before"])
    assert document["obstacles"] == []
    mgr.mgr.checks["OSDMAP_FLAGS"] = flagged("norecover")
    document = mgr.modes.boosts.document()
    assert document["done_within_s"] is None
    shown = " ".join(render_automatic.boost(document).split())
    assert "the flag norecover is set" in shown
    assert "done" not in shown


def test_pgs_without_room_are_told_of_before_and_during_it() -> None:
    mgr = boosted(recovering(500_000))
    showing(mgr, **{"active+recovery_toofull+degraded": 43, "active+clean": 5})
    foretold = mgr.modes.boosts.foretell("recovery")
    begun = mgr.begin()
    for document in (foretold, begun):
        assert [line for line in document["words"] if line.startswith("43 PGs in recovery_toofull have no room")]
        assert len(document["obstacles"]) == 1


@pytest.mark.parametrize("check", ["OSD_FULL", "POOL_FULL"])
def test_none_begins_where_no_space_is_left(check: str) -> None:
    mgr = boosted(recovering(500_000))
    mgr.mgr.checks[check] = {"severity": "HEALTH_ERR", "summary": {"message": "1 full osd(s)", "count": 1}}
    with pytest.raises(RetryLater, match=f"{check} is raised"):
        mgr.begin()
    mgr.mgr.checks[check.replace("_FULL", "_BACKFILLFULL")] = mgr.mgr.checks.pop(check)
    assert mgr.begin()["phase"] == ON


def test_under_an_error_no_rule_begins_one_and_an_operator_may() -> None:
    mgr = boosted(recovering(500_000), boost_rules="recovery after 1min at-most 2h")
    mgr.mgr.checks["PG_DAMAGED"] = {"severity": "HEALTH_ERR", "summary": {"message": "1 pg inconsistent", "count": 1}}
    mgr.mgr.status = "HEALTH_ERR"
    by_rule(mgr, 20)
    assert mgr.phase == OFF
    assert "HEALTH_ERR (PG_DAMAGED" in " ".join(mgr.modes.boosts.document()["notes"])
    assert mgr.begin()["phase"] == ON


def test_none_begins_until_the_pgs_of_an_osd_that_returned_have_peered() -> None:
    mgr = boosted(recovering(500_000))
    now = mgr.twin.clock.now()
    mgr.mgr.osd_stat = {"num_osds": 4, "osd_up_since": int(now) - 4, "osd_in_since": int(now) - 900}
    with pytest.raises(RetryLater, match="4 s ago: what is left is known 15 s after"):
        mgr.begin()
    mgr.sample(3)
    showing(mgr, **{"active+clean": 50, "peering": 3, "activating+degraded": 9})
    with pytest.raises(RetryLater, match="12 PGs peer"):
        mgr.begin()
    # on a large cluster some always do
    showing(mgr, **{"active+clean": 50, "peering": 3})
    assert mgr.begin()["phase"] == ON


def rate_before(boosts: Boosts, mgr: Boosted) -> Any:
    sample = mgr.sampler.latest()
    assert sample is not None
    return boosts._rate_before(KINDS["recovery"], sample.values)


def test_the_rate_of_before_is_of_the_time_in_which_the_work_was_done() -> None:
    mgr = boosted(recovering(500_000))
    boosts = mgr.modes.boosts
    steady = rate_before(boosts, mgr)
    assert steady > 0

    def resting(first: int, last: int) -> None:
        """Of the samples of the last minute, from the newest, these show no recovery."""
        for place in range(first, last):
            sample, coverage = mgr.sampler._samples[-1 - place]
            still = {**sample.values, "recovery.copies_s": 0.0}
            mgr.sampler._samples[-1 - place] = (replace(sample, values=still), coverage)
        mgr.sampler._windows = {}

    # it began half a minute ago
    resting(7, 12)
    assert rate_before(boosts, mgr) == pytest.approx(steady, rel=0.1)
    # it began just now
    resting(2, 12)
    assert rate_before(boosts, mgr) is None


def test_what_is_left_that_becomes_less_without_recovery_is_no_rate() -> None:
    mgr = boosted(recovering(500_000))
    for place in range(-14, 0):
        if -place <= len(mgr.sampler._samples):
            sample, coverage = mgr.sampler._samples[place]
            still = {**sample.values, "recovery.copies_s": 0.0}
            mgr.sampler._samples[place] = (replace(sample, values=still), coverage)
    mgr.sampler._windows = {}
    assert rate_before(mgr.modes.boosts, mgr) is None
    document = mgr.modes.boosts.foretell("recovery")
    assert document["done_within_s"] is None
    assert "when it would be done is not known: what is left was not seen becoming less" in document["words"]
