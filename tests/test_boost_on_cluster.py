"""Boosts on real clusters of both releases, OSDs with eight shards: an OSD's data is rebuilt, mgrs die, clients suffer.

The configuration is byte for byte as before after each, and every shard schedules by it.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import contextmanager, suppress
from typing import Any, Callable, Dict, Iterator, List, Set, Tuple

import pytest

import waiting
from ceph_lab.bringup import up
from ceph_lab.cluster import Lab
from ceph_lab.loads.small_writes import small_writes
from ceph_lab.teardown import down
from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.cluster.plugin import OPTION_PREFIX
from ceph_tuner.core.ceph.ports import ConfigEntry
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.errors import TunerError
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.releases import nine
from ceph_tuner.core.measure.queue_dump import served_meanwhile
from config_dump import osd_entries
from lab_plugin import with_plugin
from running_program import Run

pytestmark = [pytest.mark.cluster, pytest.mark.long]

SETTLED_S = 15.0
"""As the plugin waits for PGs to peer (`boost_lookout.py`)."""
SHARDS, PGS, OBJECTS, AWAY = 8, 256, 400, 2
QUICK = {"sample_interval": 1, "auto_window": 5, "auto_settle": 2}
HELD = ("norecover", "nobackfill", "norebalance")


class BoostLab:
    """A lab with the plugin, whose recovery is held until a test lets it go."""

    def __init__(self, lab: Lab, cluster: Cluster) -> None:
        self.lab, self.cluster = lab, cluster

    def tuner(self, *words: str) -> Any:
        """A command's answer as a document."""
        return json.loads(self.lab.run(["ceph", "tuner", *words, "--format", "json"]))

    def boost(self) -> Dict[str, Any]:
        """Its state; empty while no mgr answers."""
        with suppress(TunerError, ValueError):
            return dict(self.tuner("boost", "status"))
        return {}

    def config(self) -> List[ConfigEntry]:
        return osd_entries(self.cluster.config)

    def until(self, holds: Callable[[], bool], seconds: float) -> None:
        waiting.until(holds, seconds, lambda: json.dumps(self.boost(), indent=1), pause=1)

    def degraded(self) -> float:
        with suppress(TunerError, ValueError):
            return float(self.tuner("sample")["values"].get("recovery.objects_left", 0.0))
        return 0.0

    def is_clean(self) -> bool:
        """Whether the OSD that came back has its data again: without it nothing is degraded when it goes."""
        # of an OSD without PGs there is no list, and just after it came back it is of a few
        rows = self.lab.json(["ceph", "pg", "ls-by-osd", str(AWAY)]).get("pg_stats", [])
        return len(rows) > PGS / 3 and all(row["state"].startswith("active+clean") for row in rows)

    @contextmanager
    def losing_an_osd(self) -> Iterator[None]:
        """Its data is to be rebuilt elsewhere; nothing begins with that."""
        self.hold()
        self.lab.stop_osd(AWAY)
        self.lab.run(["ceph", "osd", "down", f"osd.{AWAY}"])
        self.lab.run(["ceph", "osd", "out", f"osd.{AWAY}"])
        try:
            self.until(lambda: self.degraded() > OBJECTS / 4, 120)
            # none begins before the PGs have peered
            time.sleep(SETTLED_S + 2)
            yield
        finally:
            for flag in HELD:
                self.lab.run(["ceph", "osd", "unset", flag])
            self.lab.start_osd(AWAY)
            self.lab.run(["ceph", "osd", "in", f"osd.{AWAY}"])

    def begin(self, *words: str) -> Any:
        """Begin a boost: the work may go on at that moment, as none is begun whose work a flag stops."""
        # on one connection: on a busy machine the work is over before three `ceph` and the boost have been started
        self.lab.mon_commands([{"prefix": "osd unset", "key": flag} for flag in reversed(HELD)])
        return self.tuner("boost", *words)

    def hold(self) -> None:
        for flag in HELD:
            self.lab.run(["ceph", "osd", "set", flag])

    def clocks(self) -> Set[Tuple[bool, bool]]:
        """Of every shard of every OSD that is up, under client load: whether by a reservation, whether by a limit."""
        places = [place.osd for place in self.cluster.config.places() if place.up]
        with small_writes(self.lab, 16, depth=128):
            looks = served_meanwhile(self.cluster.commander, places, SystemClock(), 10.0)
        items = [(osd, item) for osd in places for item in looks[osd]]
        clients = [(osd, item) for osd, item in items if item.service_class == "client"]
        assert {(osd, item.shard) for osd, item in clients} == {
            (osd, shard) for osd in places for shard in range(SHARDS)
        }
        return {(item.by_reservation, item.by_limit) for _, item in clients}


@pytest.fixture(scope="module", params=["tentacle", "reef"])
def boosted(request: pytest.FixtureRequest, needs_lab: None) -> Iterator[BoostLab]:
    name = f"test-{os.getpid()}-boost-{request.param}"
    # so many PGs that each shard of each OSD leads some, from the first moment on: a split takes minutes
    pool = {"name": "rbd", "layout": "replicated:2", "pgs": PGS}
    options = {"release": request.param, "mgrs": 2, "shards": SHARDS, "threads": 1, "pools": [pool]}
    try:
        lab = up(name, options, lambda line: None)
        # else PGs that lost an OSD are inactive, and one more of them ends a boost
        lab.run(["ceph", "osd", "pool", "set", "rbd", "min_size", "1"])
        with with_plugin(lab) as cluster:
            for option, value in QUICK.items():
                lab.run(["ceph", "config", "set", "mgr", OPTION_PREFIX + option, str(value)])
            # three copies cannot be where two OSDs are: an object of the mgr would be left for ever
            boost_lab = BoostLab(lab, cluster)
            boost_lab.until(lambda: ".mgr" in lab.run(["ceph", "osd", "pool", "ls"]).split(), 60)
            lab.run(["ceph", "osd", "pool", "set", ".mgr", "size", "2"])
            lab.run(["ceph", "osd", "pool", "set", ".mgr", "min_size", "1"])
            objects = ["--max-objects", str(OBJECTS), "--no-cleanup"]
            lab.run(["rados", "-p", "rbd", "bench", "120", "write", "-b", "1048576", *objects], timeout=200)
            yield boost_lab
    finally:
        down(name, lambda line: None)


def test_an_osds_data_is_rebuilt_and_every_shard_is_as_before(boosted: BoostLab) -> None:
    before = boosted.config()
    assert boosted.clocks() == {(True, False)}
    with boosted.losing_an_osd():
        with pytest.raises(TunerError, match="norecover"):
            boosted.tuner("boost", "recovery")
        document = boosted.begin("recovery", "--until", "clean", "--at-most", "10min")
        assert document["phase"] in ("starting", "on")
        boosted.until(lambda: boosted.boost().get("phase") == "on", 30)
        assert ConfigEntry("osd", PROFILE, "high_recovery_ops") in boosted.config()
        boosted.until(lambda: boosted.boost().get("phase") == "off", 400)
        last = boosted.boost()["last"]
        assert (last["rule"], last["left"]) == ("clean", 0.0), last
        print(f"{boosted.lab.release}: {last['left_before']:.0f} copies, {last['seconds']:.0f} s in all")  # noqa: T201
        assert boosted.config() == before
        assert boosted.clocks() == {(True, False)}
    trail = [record["what"] for record in boosted.tuner("history")["trail"] if not record["refers"]]
    assert trail[-2:] == ["boost", "boost ended"]


def test_another_mgr_goes_on_with_it_and_cancel_gives_all_back(boosted: BoostLab) -> None:
    boosted.until(boosted.is_clean, 400)
    before = boosted.config()
    with boosted.losing_an_osd():
        boosted.begin("recovery", "--at-most", "10min")
        boosted.hold()
        boosted.until(lambda: boosted.boost().get("phase") == "on", 30)
        begun = boosted.boost()["begun"]
        boosted.lab.run(["ceph", "mgr", "fail"])
        boosted.until(lambda: boosted.boost().get("resumed") == 1 and boosted.boost().get("phase") == "on", 120)
        assert boosted.boost()["begun"] == begun
        assert ConfigEntry("osd", PROFILE, "high_recovery_ops") in boosted.config()
        boosted.tuner("boost", "cancel", "a test")
        boosted.until(lambda: boosted.boost().get("phase") == "off", 60)
        assert boosted.config() == before
        assert boosted.clocks() == {(True, False)}


def test_the_guard_ends_it_when_clients_wait_too_long(boosted: BoostLab) -> None:
    boosted.until(boosted.is_clean, 400)
    before = boosted.config()
    with boosted.losing_an_osd():
        # no client is there, so nothing is missed yet
        boosted.until(lambda: "client.p95_ms" not in boosted.tuner("sample")["values"], 60)
        time.sleep(60)
        boosted.begin("backfill", "--at-most", "10min", "--keep", "client.p95_ms<=0.01")
        boosted.hold()
        with small_writes(boosted.lab, 60, depth=16, settle_s=0.0):
            boosted.until(lambda: boosted.boost().get("phase") == "off", 90)
        last = boosted.boost()["last"]
        assert last["rule"] == "slo", last
        assert boosted.config() == before
        assert boosted.clocks() == {(True, False)}
    checks = json.loads(boosted.lab.run(["ceph", "health", "detail", "--format", "json"]))["checks"]
    assert "TUNER_BOOST_ENDED" in checks


@pytest.mark.usefixtures("quick")
def test_the_twin_is_asked_of_a_real_cluster_and_all_is_given_back(boosted: BoostLab, run: Run) -> None:
    boosted.until(boosted.is_clean, 400)
    at_first, limits = boosted.config(), nine((0.5, 2, 0.0), (0.02, 1, 0.02), (0.02, 1, 0.02))
    for name, value in {PROFILE: "custom", **limits}.items():
        boosted.cluster.config.set("osd", name, str(value))
    before = boosted.config()
    arguments = ("boost", "recovery", "-c", boosted.lab.name, "--keep", "client.p95_ms<=20 s", "--format", "json")
    try:
        with boosted.losing_an_osd(), small_writes(boosted.lab, depth=4):
            boosted.until(lambda: "client.p95_ms" in boosted.tuner("sample")["values"], 60)
            boosted.lab.mon_commands([{"prefix": "osd unset", "key": flag} for flag in reversed(HELD)])
            code, out, error = run(*arguments, "--predict", "--trials", "6")
            print(out, error)  # noqa: T201
            document = json.loads(out)
            assert code == 0
            offer = document["twin"]["offer"]
            if offer is not None:
                assert document["settings"] == offer["settings"]
                assert "predicted by the twin for this boost" in document["grounds"]
            boosted.until(lambda: boosted.boost().get("phase") == "on", 30)
            written = {entry.name for entry in boosted.config()}
            assert written >= set(document["settings"])
            boosted.tuner("boost", "cancel", "a test")
            boosted.until(lambda: boosted.boost().get("phase") == "off", 60)
            assert boosted.config() == before
    finally:
        for name in (PROFILE, *limits):
            boosted.cluster.config.remove("osd", name)
    assert boosted.config() == at_first
