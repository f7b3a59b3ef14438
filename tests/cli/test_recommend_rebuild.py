"""The part of a recommendation beyond live knobs: in 80 columns, and for programs."""

from __future__ import annotations

import io
import json
import shlex
from dataclasses import replace
from typing import Any

import pytest
import typer
from rich.console import Console, Group

import documented
from ceph_tuner.recommend import Prediction
from ceph_tuner.recommend.paired_effect import PairedEffect
from ceph_tuner.recommend.rebuild import MOVES_DATA, RESTART, changes
from ceph_tuner.recommend.rebuild_cost import Cost
from ceph_tuner.recommend.rebuild_plan import Plan, Planned
from ceph_tuner.twin.model import MIB, ClientStream, ClusterModel, Device, OsdModel, Pool
from ceph_tuner_cli import recommend_rebuild
from ceph_tuner_cli.main import app

PROGRAM = typer.main.get_command(app)
MODEL = ClusterModel(
    36,
    OsdModel(Device(40_000, 500 * MIB), shards=8, threads_per_shard=2),
    (Pool("a-pool-with-quite-a-long-name", 512),),
    (ClientStream("a-pool-with-quite-a-long-name", rate=5000.0),),
    hosts=12,
)
BEFORE = Prediction("trial 7", {}, ({"client.p95_ms": 8.0}, {"client.p95_ms": 9.0}))
MEANWHILE = replace(BEFORE, label="moving")
EFFECTS = (
    PairedEffect("client.p95_ms", 8.5, 5.1, (0.6, 0.55, 0.65)),
    PairedEffect("client.write_mean_ms", 3.0, 3.01, (1.003, 0.9, 1.1)),
    PairedEffect("recovery.finish_s", 7200.0, 9000.0, (1.25, 1.2, 1.3)),
    PairedEffect("snaptrim.drain_s", 0.0, 0.0, None),
)


def planned(kind: str, cost: Any, worth: bool = True) -> Planned:
    change = changes(MODEL, kind)[-1]
    return Planned(change, MODEL, BEFORE, BEFORE, EFFECTS, (0.9, 0.8), worth, cost)


RESTARTS = Cost(restarts=36, rounds=12, round_s=400.0, log_entries=(300_000,) * 2, log_dups=(0, 0), meanwhile=MEANWHILE)
MOVES = Cost(0.486, 4.4e13, 2.8e8, log_entries=(300_000,) * 2, log_dups=(0, 212_000), meanwhile=MEANWHILE)
PLAN = Plan((planned(RESTART, RESTARTS), planned(MOVES_DATA, MOVES)), (planned(RESTART, None, False),), 11, 92)


def printed(plan: Plan) -> str:
    console = Console(file=io.StringIO(), width=80)
    console.print(Group(*recommend_rebuild.section(plan)))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_plan_fits_80_columns_and_names_gain_and_cost() -> None:
    page = printed(PLAN)
    assert max(len(line) for line in page.splitlines()) <= 80
    words = " ".join(page.split())
    for expected in (
        "1. restart all OSDs, osd_op_num_",
        "client.p95_ms 8.5 ms 5.1 ms -40% (-45% to -35%)",
        "snaptrim.drain_s 0 s 0 s 0 s to 0 s",
        "36 OSDs restarted, one host at a time (12 in all); 12 min, and 80 min where every write",
        "2. move data, a-pool-with-quite-a-long-name: pg_num 512 to",
        "49% of the pool's copies move, 44.0 TB, at 280 MB/s: 43.7 h",
        "Meanwhile: client.p95_ms 8.5 ms",
        "from 0 to 212000 dups",
        "Not worth it: restart all OSDs",
        "no limit of the CPU",
    ):
        assert expected in words, words


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        (replace(MOVES, moved_bytes=None), "`stored` in the description says how long"),
        (replace(MOVES, rate_bytes_s=0.0), "would never arrive"),
        (replace(RESTARTS, round_s=None), "would never be recovered"),
        (replace(RESTARTS, round_s=60.0, meanwhile=None), "(12 in all); 12 min. Memory"),
    ],
)
def test_what_is_not_known_is_said(cost: Cost, words: str) -> None:
    kind = RESTART if cost.rounds else MOVES_DATA
    assert words in " ".join(printed(Plan((planned(kind, cost),), (), 1, 1)).split())


def test_a_cost_that_could_not_be_simulated_is_said_to_be_unknown() -> None:
    assert "Cost: not known" in printed(Plan((planned(RESTART, None),), (), 1, 1))


def test_nothing_worth_it_is_said_in_one_line_with_the_best() -> None:
    page = printed(Plan((), (planned(RESTART, None, False),), 8, 40))
    assert "nothing that needs a restart or moves data is worth it" in page
    assert recommend_rebuild.commands(Plan((), (), 0, 0), "osd") == []


def test_the_commands_come_in_order_with_what_to_wait_for() -> None:
    lines = recommend_rebuild.commands(PLAN, "osd")
    text = "\n".join(lines)
    assert text.index("ceph osd set noout") < text.index("for one host after the other:")
    assert text.index("for one host after the other:") < text.index("    systemctl restart ceph-osd.target")
    assert "# wait until `ceph pg stat` says that all PGs are active+clean" in text
    assert text.count("To take it back") == 2


def test_pgs_are_moved_in_steps_there_and_back() -> None:
    lines = recommend_rebuild.commands(PLAN, "osd")
    name = MODEL.pools[0].name
    (there, back) = [line.strip() for line in lines if "ceph-tuner pgs step" in line]
    assert there == f"ceph-tuner pgs step {name} 2048 --cluster ceph --pause-autoscaler"
    assert back == f"ceph-tuner pgs step {name} 512 --cluster ceph --pause-autoscaler"
    notes = [line for line in lines if "# it shows its plan, and moves with --yes" in line]
    assert len(notes) == 2
    assert f"`ceph osd pool set {name} pg_num_min 2048` keeps" in notes[0]
    assert f"`ceph osd pool set {name} pg_num_max 512` keeps" in notes[1]
    assert not [line for line in lines if line.strip().startswith("ceph osd pool set")]
    for command in (there, back):
        documented.parse(PROGRAM, shlex.split(command)[1:])


def test_a_number_that_is_no_power_of_two_is_no_way_back() -> None:
    odd = replace(MODEL, pools=(replace(MODEL.pools[0], pgs=500),))
    entry = Planned(changes(odd, MOVES_DATA)[-1], odd, BEFORE, BEFORE, EFFECTS, (0.9, 0.8), True, MOVES)
    lines = recommend_rebuild.commands(Plan((entry,), (), 1, 1), "osd")
    assert [line for line in lines if "pgs step" in line]
    assert "It has no way back in steps: the number before is no power of two." in lines
    assert recommend_rebuild.document(Plan((entry,), (), 1, 1), "osd")["changes"][0]["undo"] == []  # type: ignore[index]


def test_programs_get_all_of_it() -> None:
    document = json.loads(json.dumps(recommend_rebuild.document(PLAN, "osd")))
    restart, moves = document["changes"]
    assert (restart["kind"], moves["kind"], moves["pool"]) == (RESTART, MOVES_DATA, MODEL.pools[0].name)
    assert moves["cost"]["seconds"] == pytest.approx(4.4e13 / 2.8e8)
    assert restart["cost"]["seconds"] == 4800
    assert moves["effects"][0] == {
        "metric": "client.p95_ms",
        "before": 8.5,
        "after": 5.1,
        "ratio": 0.6,
        "interval": [0.55, 0.65],
    }
    assert moves["steps"][-1]["command"].startswith("ceph-tuner pgs step")
    assert " 512 " in moves["undo"][-1]["command"]
    assert "--yes" in moves["steps"][-1]["note"]
    assert document["not_worth_it"][0]["cost"] is None
    assert document["tried"] == 11
    assert recommend_rebuild.document(None, "osd") is None
