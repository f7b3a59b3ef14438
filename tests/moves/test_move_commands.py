"""Commands as people are to type them."""

from __future__ import annotations

import shlex

import pytest

from ceph_tuner.moves import command_text
from ceph_tuner.moves.placement import upmap_command
from ceph_tuner.moves.switches import autoscaler_fights
from ceph_tuner.scrub_plan import ScrubRules, ScrubView
from ceph_tuner.scrub_plan.obstacles import obstacles

HOSTILE = "a pool; rm -rf $HOME"


def test_a_name_with_blanks_or_signs_of_the_shell_is_one_word() -> None:
    text = command_text(("osd pool set", {"pool": HOSTILE, "var": "pg_num", "val": "8"}))
    assert shlex.split(text) == ["ceph", "osd", "pool", "set", HOSTILE, "pg_num", "8"]


def test_pairs_of_an_entry_are_words_of_their_own() -> None:
    assert command_text(upmap_command("1.0", ((1, 2), (3, 4)))) == "ceph osd pg-upmap-items 1.0 1 2 3 4"


@pytest.mark.parametrize("pool", [HOSTILE, "plain"])
def test_what_takes_an_obstacle_away_is_quoted(pool: str) -> None:
    view = ScrubView(0.0, (), ScrubRules(pool_flags={pool: frozenset(("nodeep-scrub",))}))
    (command,) = [each.command for each in obstacles(view) if each.command]
    assert shlex.split(command) == ["ceph", "osd", "pool", "set", pool, "nodeep-scrub", "0"]
    assert shlex.quote(pool) in str(autoscaler_fights((pool,)))
