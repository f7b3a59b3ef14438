from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, Sequence

import pytest
from patients import DAY, OSDS, healthy, osd_facts

from ceph_tuner.core.why import examine as causes_of
from ceph_tuner.core.why import gather as look_twice
from ceph_tuner.doctor import Finding, examine, gather
from ceph_tuner.doctor.facts import Facts, PgFacts, PoolFacts
from ceph_tuner.doctor.finding import by_cost
from ceph_tuner.doctor.late_scrubs import late_scrubs
from ceph_tuner.gather.replay import open_state

NOON = 1_795_521_600.0 - 1_795_521_600.0 % DAY + DAY / 2
RECORDED = Path(__file__).resolve().parents[1] / "data"


def backlog(late: int = 63, options: Dict[str, str] = {}, running: Sequence[int] = (), **given: Any) -> Facts:  # noqa: B006 - never changed
    """252 PGs of a week's interval: the first ones late by a week, the others scrubbed yesterday, 7 h each."""
    rows = [
        replace(
            pg,
            pgid=f"1.{at:x}",
            deep_late=at < late,
            deep_scrubbed_at=NOON - (14 if at < late else 1) * DAY,
            states=frozenset(("active", "clean", *(("scrubbing", "deep") if at in running else ()))),
        )
        for at, pg in enumerate(healthy().pgs)
    ]
    osds = tuple(osd_facts(osd, options) for osd in range(OSDS))
    return healthy(**{"at": NOON, "osds": osds, "pgs": tuple(rows), **given})


def found(facts: Facts) -> Finding:
    (finding,) = late_scrubs(facts)
    return finding


def timed(facts: Facts, hours: float) -> Facts:
    """The same, where each PG's last deep scrub took so long, one after the other."""
    rows = [
        replace(pg, deep_scrub_s=hours * 3600, deep_scrubbed_at=pg.deep_scrubbed_at - hours * 3600 * at)
        for at, pg in enumerate(facts.pgs)
    ]
    return replace(facts, pgs=tuple(rows))


def test_a_cluster_in_time_has_no_such_finding() -> None:
    assert late_scrubs(backlog(0)) == []


def test_the_pace_is_the_measured_one_where_the_plugin_keeps_windows() -> None:
    facts = timed(backlog(63, {"osd_max_scrubs": "1"}, running=(0, 42, 84, 126, 168, 210)), 6.6)
    finding = found(replace(facts, scrub_round_s=9 * DAY))
    assert finding.title == "63 PGs are late; at this pace a round takes 9 d; held by osd_max_scrubs"
    assert "all data takes 9 d at the rate of the last minute" in finding.evidence
    scrubbed = open_state(RECORDED / "lab" / "nvme-scrub.tar.zst")
    facts = gather(scrubbed.commander, scrubbed.clock, scrubbed.release, scrubbed.version)
    assert found(facts).title == "32 PGs are late; at this pace a round takes 2.27 min; held by osd_max_scrubs"


def test_late_pgs_behind_osds_without_a_slot_are_held_by_osd_max_scrubs() -> None:
    # PGs of each of the six places are scrubbed, so that no OSD has a slot left
    finding = found(timed(backlog(63, {"osd_max_scrubs": "1"}, running=(0, 42, 84, 126, 168, 210)), 6.6))
    # every OSD has 84 copies, 6.6 h each, one at a time
    assert finding.title == "63 PGs are late; at this pace a round takes 23.1 d; held by osd_max_scrubs"
    assert finding.share == 63 / 252
    assert finding.commands == ("ceph config set osd osd_max_scrubs 2",)
    assert (
        "63 of 252 PGs: 63 wait for a deep scrub, 0 for a shallow one; 2 under way: 1.0, 1.1, 1.2 and 60 more"
        in (finding.evidence[0])
    )
    assert finding.evidence[1] == "osd_max_scrubs is 1, and OSDs have none left; 61 late PGs wait for that"


def test_without_a_known_time_the_pace_is_that_of_what_was_scrubbed_of_late() -> None:
    finding = found(backlog(189))
    # a quarter of the PGs within a week
    assert finding.title == "189 PGs are late; at this pace a round takes 28 d; nothing that shows holds them"
    assert "63 of 252 PGs of rbd were deep-scrubbed within their interval" in finding.evidence
    assert "how long a round takes is not known" in found(backlog(252)).title


def test_an_interval_of_the_pool_s_own_counts_for_the_pace() -> None:
    pool = replace(healthy().pools[0], deep_scrub_interval=2 * DAY)
    assert "a round takes 8 d;" in found(backlog(189, pools=(pool,))).title


def test_a_flag_holds_whatever_has_a_slot_and_no_round_ends() -> None:
    flagged = found(backlog(flags=("nodeep-scrub",)))
    assert flagged.title == "63 PGs are late; no deep scrub begins; held by the flag nodeep-scrub"
    assert flagged.commands == ("ceph osd unset nodeep-scrub",)
    pool = replace(healthy().pools[0], name="a pool", flags=("nodeep-scrub",))
    assert found(backlog(pools=(pool,))).commands == ("ceph osd pool set 'a pool' nodeep-scrub 0",)
    # one for shallow scrubs holds no deep one
    assert "the flag" not in found(backlog(flags=("noscrub",))).title
    shallow = tuple(replace(pg, deep_late=False, scrub_late=pg.deep_late) for pg in backlog().pgs)
    assert found(backlog(flags=("noscrub",), pgs=shallow)).commands == ("ceph osd unset noscrub",)


def test_a_stamp_in_the_future_holds_a_scrub_and_counts_for_no_round() -> None:
    facts = backlog(63)
    ahead = [replace(pg, deep_scrubbed_at=NOON + 400 * DAY) if pg.deep_late else pg for pg in facts.pgs]
    finding = found(replace(facts, pgs=tuple(ahead)))
    assert finding.title == found(facts).title.replace("nothing that shows holds them", "held by a stamp in the future")
    assert finding.commands == ("ceph pg deep-scrub PGID",)
    words = "the last deep scrub is in the future by a clock that was ahead, and Ceph begins none before"
    assert f"{words}; 63 late PGs wait for that" in finding.evidence


def test_hours_and_recovery_hold_scrubs_too() -> None:
    night = {"osd_scrub_begin_hour": "22", "osd_scrub_end_hour": "6"}
    finding = found(backlog(options=night))
    assert finding.title.endswith("held by the permitted hours")
    assert finding.commands == (
        "ceph config rm osd osd_scrub_begin_hour",
        "ceph config rm osd osd_scrub_end_hour",
    )
    facts = backlog(options={"osd_scrub_during_recovery": "false"})
    recovering = PgFacts(1, tuple(range(OSDS)), pgid="1.fff", states=frozenset(("active", "recovering")))
    finding = found(replace(facts, pgs=(*facts.pgs, recovering)))
    assert finding.title.endswith("held by recovery")
    assert finding.commands == ("ceph config set osd osd_scrub_during_recovery true",)


def test_where_nothing_shows_the_load_of_hosts_is_named() -> None:
    finding = found(backlog(options={"osd_scrub_load_threshold": "0.500000"}))
    assert "a host with more load for each CPU than osd_scrub_load_threshold (0.5) begins none" in finding.evidence[1]
    assert finding.commands == ("ceph config set osd osd_scrub_load_threshold LOAD",)


def test_pgs_of_osds_that_were_not_asked_are_not_judged() -> None:
    facts = backlog(252)
    unasked = tuple(replace(osd, options={}) if osd.place.osd != 3 else osd for osd in facts.osds)
    finding = found(replace(facts, osds=unasked))
    assert "nothing that shows holds them" in finding.title
    assert "168 late PGs wait on OSDs that were not asked" in finding.evidence
    (row,) = facts.pgs[:1]
    assert found(replace(facts, osds=unasked, pgs=(row,))).title.endswith("what holds them was not seen")
    running = replace(row, states=frozenset(("active", "clean", "scrubbing")))
    assert found(replace(facts, pgs=(running,))).title.endswith("all of them are scrubbed now")


def test_what_holds_most_is_named_first_and_each_pg_counts_once() -> None:
    pools = (*healthy().pools, PoolFacts(2, "quiet", 8, 2, flags=("nodeep-scrub",)))
    facts = backlog(63, {"osd_max_scrubs": "0"}, pools=pools)
    rows = tuple(replace(pg, pool=2) if at < 9 else pg for at, pg in enumerate(facts.pgs))
    finding = found(replace(facts, pgs=rows))
    assert finding.title.endswith("held by osd_max_scrubs")
    assert [words.rpartition("; ")[2] for words in finding.evidence[1:3]] == [
        "54 late PGs wait for that",
        "9 late PGs wait for that",
    ]


def test_it_comes_by_its_share_among_the_others() -> None:
    finding = found(backlog())
    larger, smaller = replace(finding, share=0.9, check="x"), replace(finding, share=0.1, check="y")
    assert [one.check for one in by_cost([smaller, finding, larger])] == ["x", "late-scrubs", "y"]


@pytest.mark.parametrize("name", ["tentacle-scrub-slots", "reef-scrub-slots", "tentacle-flag-nodeep-scrub"])
def test_the_doctor_and_why_say_the_same_of_what_real_osds_answered(name: str) -> None:
    """Files without the answers of health and of the configuration database."""
    paths = RECORDED / "why" / f"{name}.tar.zst"
    cluster = open_state(paths)
    facts = gather(cluster.commander, cluster.clock, cluster.release, cluster.version)
    (finding,) = (finding for finding in examine(facts) if finding.check == "late-scrubs")
    later = open_state(paths)
    cause = causes_of(look_twice(later.commander, later.clock, 10.0))[0]
    assert cause.work == "scrub"
    assert cause.commands[0] in finding.commands
    holds = "osd_max_scrubs" if cause.name == "scrub-slots" else "the flag nodeep-scrub"
    assert finding.title.endswith(f"held by {holds}")
    assert any(f"{cause.waiting:.0f} late PGs wait for that" in words for words in finding.evidence)
