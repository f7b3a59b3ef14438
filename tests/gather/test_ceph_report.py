from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict

import pytest

from ceph_tuner.core.errors import CommandFailed, InputError
from ceph_tuner.doctor import examine
from ceph_tuner.doctor import gather as gather_facts
from ceph_tuner.gather.replay import open_state
from ceph_tuner.twin.replay import replay
from running_program import Run
from whole_cluster import whole_cluster


def report() -> Dict[str, Any]:
    """As `ceph report` prints it (Monitor.cc, "report"), of the twin's cluster."""
    ask = whole_cluster().commander
    osd_map = json.loads(ask.mon("osd dump", {}))
    crush = json.loads(ask.mon("osd crush dump", {}))
    for bucket in crush["buckets"]:
        bucket.setdefault("type_name", "root" if bucket["name"] == "default" else "host")
        for item in bucket["items"]:
            item.setdefault("weight", 65536)
    shadow = {"id": -99, "name": "default~ssd", "type_name": "root", "items": [{"id": 0, "weight": 65536}]}
    osd_map["flags"] = "noscrub,nodeep-scrub,sortbitwise"
    for osd in osd_map["osds"]:
        osd.setdefault("weight", 1)
    osds = [osd["osd"] for osd in osd_map["osds"]]
    version = {"ceph_version": "ceph version 20.2.4 (abc) tentacle (stable)", "rotational": "1"}
    older = {**version, "ceph_version": "ceph version 18.2.7 (abc) reef (stable)"}
    total = {"num_bytes": 10**9, "num_objects": 1000, "num_read": 5, "num_write": 7}
    return {
        "cluster_fingerprint": "x",
        "version": "20.2.4",
        "commit": "abc",
        "timestamp": "2026-11-20T03:04:05.678901+0000",
        "health": {"status": "HEALTH_WARN", "checks": {}},
        "monmap": {},
        "osdmap": osd_map,
        "crushmap": {**crush, "buckets": [*crush["buckets"], shadow]},
        "osd_metadata": [{"id": osd, **(older if osd == 0 else version)} for osd in osds],
        "num_pg": 48,
        "num_pg_by_state": [{"state": "active+clean", "num": 40}, {"state": "active+clean+laggy", "num": 8}],
        "num_pg_by_osd": [{"osd": osd, "num_primary_pg": 9, "num_acting_pg": 30, "num_up_pg": 30} for osd in osds],
        "osd_stats": [{"osd": osd, "kb_used_data": 1000} for osd in osds],
        "pool_stats": [
            {"poolid": row["pool"], "stat_sum": total, "store_stats": {"data_stored": 3 * 10**9}}
            for row in osd_map["pools"]
        ],
    }


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "report.json").write_text(json.dumps(report()))
    return tmp_path / "report.json"


def test_what_a_report_says_is_judged(path: Path) -> None:
    cluster = open_state(path)
    assert (cluster.version, cluster.release.name) == ("18.2.7", "reef")
    facts = gather_facts(cluster.commander, cluster.clock, cluster.release, cluster.version)
    assert {"scrub-flags", "laggy-pgs", "mixed-versions"} <= {finding.check for finding in examine(facts)}
    assert [osd.place.osd for osd in facts.osds] == [0, 1, 2, 3]
    assert {osd.kind for osd in facts.osds} == {"hdd"}
    assert {osd.used_bytes for osd in facts.osds} == {1024_000.0}
    assert {pool.raw_bytes for pool in facts.pools} == {3e9}
    assert set(facts.pg_copies.values()) == {30}
    assert all("default~ssd" not in place.locations.values() for place in facts.places)


def test_what_a_report_does_not_say_is_named_in_few_lines(path: Path) -> None:
    cluster = open_state(path)
    notes = gather_facts(cluster.commander, cluster.clock, cluster.release, cluster.version).notes
    for what in ("the configuration database", "options of osd.0, osd.1, osd.2, osd.3", "the PGs", "the journal"):
        assert [note for note in notes if note.startswith(f"{what}: not seen")], what
    assert len(notes) <= 16


def test_the_time_is_that_of_the_report(path: Path) -> None:
    assert open_state(path).clock.now() == pytest.approx(1_795_143_845.678901)


def test_the_program_takes_it(path: Path, run: Run) -> None:
    code, out, err = run("doctor", "--from", str(path), "--format", "json")
    assert code in (0, 1), err
    document = json.loads(out)
    assert document["as_of"] == pytest.approx(1_795_143_845.678901)
    assert "as of 2026-11-20 03:04:05 UTC" in err
    code, _, err = run("scrub", "plan", "--from", str(path))
    assert (code, "not gathered: `ceph report` does not say it" in " ".join(err.split())) == (2, True)


def test_no_command_gives_an_all_clear_of_what_a_report_does_not_say(path: Path, run: Run) -> None:
    code, out, _ = run("why", "--quiet", "--from", str(path))
    words = " ".join(out.split())
    assert code == 0
    assert words.startswith("Nothing that was seen holds work now. Causes judged: 1 of 19; 18 could not be judged: ")
    assert "Not seen: the PGs, the OSDs' options" in words
    _, out, _ = run("why", "--from", str(path), "--format", "json")
    document = json.loads(out)
    assert len(document["looked_for"]) == len(document["not_judged"]) + 1
    assert {"cause": "no room", "unseen": ["the PGs"]} in document["not_judged"]
    code, out, _ = run("doctor", "--quiet", "--from", str(path))
    # nobody can say that nothing makes tuning pointless
    assert code == 1
    assert " could not be judged: other queue, capacity, " in " ".join(out.split())
    _, out, _ = run("doctor", "--from", str(path), "--format", "json")
    names = {entry["check"] for entry in json.loads(out)["not_judged"]}
    assert {"other queue", "shards", "placement", "leftovers"} <= names
    assert names.isdisjoint({"flags", "laggy PGs", "versions", "metadata servers"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "nothing"),
        ("{}", "JSON of another kind"),
        ("[1]", "JSON of another kind"),
        ('{"osdmap": {}, "crushmap": {}, "health": {}}', "another shape"),
        ("HEALTH_OK", "report.json"),
    ],
)
def test_what_is_no_report_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "report.json").write_text(text)
    with pytest.raises(InputError, match=said):
        open_state(tmp_path / "report.json")


def test_a_part_of_another_shape_is_the_files_fault(tmp_path: Path, run: Run) -> None:
    made = report()
    made["crushmap"]["buckets"] = 7
    (tmp_path / "report.json").write_text(json.dumps(made))
    code, _, err = run("doctor", "--from", str(tmp_path / "report.json"))
    assert (code, "report.json" in err) == (2, True)


def test_no_osd_of_a_report_answers(path: Path) -> None:
    with pytest.raises(CommandFailed, match="`ceph report` does not say it"):
        open_state(path).commander.tell("osd.0", "config show", {})


def test_a_report_of_more_values_than_can_be_held_is_refused(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text("[" + '{"a":1},' * (6 << 20) + "0]")
    with pytest.raises(InputError, match="more values than can be held"):
        open_state(tmp_path / "report.json")


def test_a_file_that_cannot_be_read_to_its_end_is_told() -> None:
    with pytest.raises(InputError, match="/proc/self/mem"):
        open_state("/proc/self/mem")
    with pytest.raises(InputError, match="/proc/self/mem"):
        replay(Path("/proc/self/mem"))
