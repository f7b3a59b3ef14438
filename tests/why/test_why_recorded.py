"""What real OSDs answered while a cause was made on a lab, kept as `gather` keeps it, still names that cause first.

`benchmarks/why_on_lab.py --states tests/data/why` records them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from made_causes import HEALTHY, MADE

from ceph_tuner.core.why import Cause, WhyFacts, examine, gather
from ceph_tuner.gather.replay import Replay, open_state

RECORDED = sorted((Path(__file__).resolve().parents[1] / "data" / "why").glob("*.tar.zst"))


def facts_of(path: Path) -> WhyFacts:
    cluster = open_state(path)
    return gather(cluster.commander, cluster.clock, 10.0)


def made(path: Path) -> str:
    return path.name.partition("-")[2].partition(".")[0]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name.partition(".")[0])
def test_what_was_made_is_named_first_and_nothing_of_a_healthy_cluster(path: Path) -> None:
    facts = facts_of(path)
    assert facts.notes == ()
    causes = examine(facts)
    if made(path) in HEALTHY:
        assert causes == []
        return
    wanted = MADE[made(path)]
    assert [(cause.name, cause.work) for cause in causes][:1] == [(wanted.name, wanted.work)]
    first: Cause = causes[0]
    assert first.evidence
    assert all(evidence.command.startswith("ceph ") for evidence in first.evidence)
    assert "why" in first.pools


def test_one_client_that_no_answer_reaches_tells_of_all_that_its_osd_leads() -> None:
    # a bench that reads waits for its first object, and has no more than that under way
    (first,) = examine(facts_of(next(path for path in RECORDED if path.name.startswith("reef-strict-queue"))))
    assert (first.name, first.waiting, first.osds) == ("strict-queue", 1.0, (2,))
    assert first.held > 0.4
    assert [one.words for one in first.evidence if "none of them was served" in one.words]


def test_a_pool_without_work_has_no_cause() -> None:
    facts = facts_of(next(path for path in RECORDED if made(path) == "reservation-slots"))
    assert examine(facts.only(pool="rbd")) == []
    assert examine(facts.only(pool="why"))[0].name == "reservation-slots"


def test_settings_that_took_turns_while_a_cluster_was_gathered_make_no_shard_stale() -> None:
    """Options of the file are of one turn of a trial, and the dumps of the queues of another."""
    facts = facts_of(RECORDED[0].parents[1] / "lab" / "nvme.tar.zst")
    assert "stale-shards" not in {cause.name for cause in examine(facts)}
    (note,) = facts.notes
    assert "shards of osd.0, osd.1, osd.2 go by other values than were read: not judged (settings are on trial" in note


def test_options_that_were_read_once_alone_are_held_against_all_shards() -> None:
    """The same file as of an older `gather`, without the journal: no shard served clients by the options."""
    path = RECORDED[0].parents[1] / "lab" / "nvme.tar.zst"
    state = open_state(path).commander.state  # type: ignore[attr-defined]
    without = replace(state, answers=tuple(one for one in state.answers if one.command != "config-key dump"))
    replay = Replay(without)
    facts = gather(replay, replay, 10.0)
    assert "stale-shards" not in {cause.name for cause in examine(facts)}
    assert "their options were read once alone" in facts.notes[0]
