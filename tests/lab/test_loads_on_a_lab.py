"""Every load on a real cluster of each release, small: it does its work, its counters agree with the OSDs' own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable, Iterator, List, Mapping, Optional, Tuple

import pytest

from ceph_lab import scenarios
from ceph_lab.cluster import Lab
from ceph_lab.loads import Load
from ceph_lab.loads.backfill import BackfillLoad
from ceph_lab.loads.background import BackgroundLoad, wait_for
from ceph_lab.loads.client import ClientLoad
from ceph_lab.loads.client_work import ClientWork
from ceph_lab.loads.image_scrub import ImageScrubLoad
from ceph_lab.loads.layout import PoolLayout
from ceph_lab.loads.pools import LoadPool, remove_pool
from ceph_lab.loads.recovery import RecoveryLoad
from ceph_lab.loads.scrub import ScrubLoad
from ceph_lab.loads.session import LabSession
from ceph_lab.loads.snaptrim import SnaptrimLoad
from ceph_lab.quiet import wait_until_quiet
from ceph_lab.scenarios import Scenario
from ceph_tuner.core.errors import LabFailed
from ceph_tuner.core.measure.sample import Measure

pytestmark = pytest.mark.long_on_reef

SMALL_IMAGE = 64 << 20


@pytest.fixture(scope="module")
def session(any_lab: Lab) -> Iterator[LabSession]:
    with LabSession(any_lab) as opened:
        yield opened
    scenarios.clean(any_lab)


@pytest.fixture(autouse=True)
def without_what_another_test_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Objects that one load left degraded or misplaced are recovered beside the next one, and counted with its own."""
    yield
    if "session" in request.fixturenames:
        opened: LabSession = request.getfixturevalue("session")
        lab: Lab = request.getfixturevalue("any_lab" if "any_lab" in request.fixturenames else "tentacle_lab")
        with lab.in_haste():
            for name in ("recovery", "backfill", "snaptrim"):
                for pool in opened.mon("osd dump")["pools"]:
                    if pool["pool_name"].startswith(f"load-{name}"):
                        remove_pool(opened, pool["pool_name"])
            wait_until_quiet(lab, opened)


def flags(session: LabSession) -> List[str]:
    return sorted(session.mon("osd dump")["flags_set"])


def run(lab: Lab, load: Load, seconds: float) -> Mapping[str, Measure]:
    """One window, with a session of its own to the same load."""
    scenario = Scenario(load.name, lab, [load], LabSession(lab))
    with scenario:
        scenario.prepare()
        scenario.start()
        return scenario.window(seconds)


def recovered(lab: Lab, session: LabSession) -> float:
    return sum(session.osd(osd, "perf dump", logger="osd")["osd"]["recovery_bytes"] for osd in lab.osds)


def test_clients_are_served_at_the_rate_that_they_offer(any_lab: Lab, session: LabSession) -> None:
    load = ClientLoad(any_lab, session, ClientWork(rate=60, read_share=0.5, image_bytes=SMALL_IMAGE))
    measures = run(any_lab, load, 5)
    assert measures["client.iops"].mean == pytest.approx(60, rel=0.3)
    assert 0 < measures["client.p50_ms"].mean <= measures["client.p95_ms"].mean <= measures["client.p99_ms"].mean
    assert measures["client.read_iops"].mean > 0


def test_what_clients_have_read_comes_from_the_drives_again(any_lab: Lab, session: LabSession) -> None:
    load = ClientLoad(any_lab, session, ClientWork(rate=60, read_share=1.0, image_bytes=SMALL_IMAGE))
    run(any_lab, load, 4)
    hit, missed = buffered(any_lab, session)
    run(any_lab, load, 4)
    hit_again, missed_again = buffered(any_lab, session)
    # the same places as before
    assert missed_again - missed > 100 * 4096
    assert hit_again - hit < 0.1 * (missed_again - missed)


def buffered(lab: Lab, session: LabSession) -> Tuple[float, float]:
    """Bytes that were read from BlueStore's cache of data, and past it."""
    counters = [session.osd(osd, "perf dump", logger="bluestore")["bluestore"] for osd in lab.osds]
    hit, missed = (
        sum(value for each in counters for name, value in each.items() if name.endswith(f"buffer_{kind}_bytes"))
        for kind in ("hit", "miss")
    )
    return hit, missed


ERASURE_CODED = PoolLayout(chunks=(2, 1))


@pytest.mark.parametrize("layout", [None, ERASURE_CODED], ids=["replicated", "erasure-coded"])
def test_clients_leave_nothing_to_trim(any_lab: Lab, session: LabSession, layout: Optional[PoolLayout]) -> None:
    load = ClientLoad(any_lab, session, ClientWork(rate=60, image_bytes=SMALL_IMAGE), layout=layout)
    load.prepare()
    pools = {pool["pool_name"]: pool for pool in session.mon("osd dump")["pools"]}
    # a snapshot that was taken, also one that is gone, counts
    assert {pool.name: pools[pool.name]["snap_seq"] for pool in load.pools} == {pool.name: 0 for pool in load.pools}


def test_clients_on_an_erasure_coded_pool_are_offered_the_same_again(any_lab: Lab, session: LabSession) -> None:
    # about half of what the drives can do with partial writes of a code
    work = ClientWork(rate=30, read_share=0.5, jobs=2, sequential=True, image_bytes=SMALL_IMAGE)
    load = ClientLoad(any_lab, session, work, layout=ERASURE_CODED)
    first, second = (run(any_lab, load, 4) for _ in range(2))
    # the same arrivals; a few are answered on the other side of the window's borders
    assert first["client.iops"].mean == pytest.approx(second["client.iops"].mean, abs=3)
    assert first["client.read_iops"].mean == pytest.approx(second["client.read_iops"].mean, abs=3)
    assert {name for name in first if name.endswith("mean_ms") and first[name].mean > 0} == {
        "client.mean_ms", "client.read_mean_ms", "client.write_mean_ms"
    }  # fmt: skip


def test_pools_lie_as_the_layout_says(any_lab: Lab, session: LabSession) -> None:
    pool = LoadPool(session, "placed", PoolLayout(2, device_class="ssd", pgs=6), any_lab.osds)
    pool.ensure()
    try:
        homes = {pgid: pool.home(pgid) for pgid in pool.pgids}
        assert {pg["pgid"]: pg["acting"] for pg in pool.pgs()} == homes
        assert len({tuple(home) for home in homes.values()}) == 6
    finally:
        pool.remove()


def test_an_idle_session_finds_the_primaries_that_have_moved(any_lab: Lab, session: LabSession) -> None:
    pool = LoadPool(session, "moved", PoolLayout(chunks=(2, 1), pgs=4), any_lab.osds)
    pool.ensure()
    try:
        # several steps: of one an idle client may still hear
        for step in (1, 2, 3, 4):
            primaries = {}
            for pgid in pool.pgids:
                home = pool.home(pgid)
                moved = home[step % 3 :] + home[: step % 3]
                primaries[pgid] = moved[0]
                any_lab.run(["ceph", "osd", "pg-upmap", pgid, *map(str, moved)])
            wait_for("primaries", lambda: {pg["pgid"]: pg["acting"][0] for pg in pool.pgs()} == primaries, timeout=20)  # noqa: B023
    finally:
        pool.remove()


def test_degraded_objects_are_recovered_as_the_osds_count_them(any_lab: Lab, session: LabSession) -> None:
    before = flags(session)
    load = RecoveryLoad(any_lab, session, objects=160, object_bytes=1 << 19)
    load.prepare()
    assert load._degraded_objects() == 160
    counted = recovered(any_lab, session)
    load.start()
    until = time.monotonic() + 60
    while load.idle_since() is None and time.monotonic() < until:
        time.sleep(0.5)
        load.observe()
    time.sleep(2)
    load.observe()
    result = load.stop()
    assert result.evidence["done_objects"] == 160
    assert result.evidence["done_bytes"] == recovered(any_lab, session) - counted
    assert result.metrics["recovery.bytes_s"].mean > 1e6
    assert flags(session) == before


def until(load: BackgroundLoad, reached: Callable[[], bool], seconds: float = 60) -> None:
    """Observe the load meanwhile."""
    end = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.5)
        load.observe()


def test_misplaced_objects_are_backfilled_and_back_again(any_lab: Lab, session: LabSession) -> None:
    before = flags(session)
    load = BackfillLoad(any_lab, session, objects=120, object_bytes=1 << 19)
    for enough in (20, 100):
        with any_lab.in_haste():
            load.prepare()
        assert load._misplaced_objects() == 120
        load.start()
        until(load, lambda: load.progress().done_objects >= enough)  # noqa: B023 - called in this round alone
        assert load.stop().evidence["done_objects"] >= enough
        assert flags(session) == before


def test_chunks_are_recovered(any_lab: Lab, session: LabSession) -> None:
    load = RecoveryLoad(any_lab, session, objects=80, object_bytes=1 << 19, layout=ERASURE_CODED)
    with any_lab.in_haste():
        load.prepare()
    assert load._degraded_objects() == 80
    load.start()
    until(load, lambda: load.idle_since() is not None)
    time.sleep(2)
    load.observe()
    assert load.stop().evidence["done_objects"] == 80


def test_clones_are_trimmed_after_start_and_not_before(any_lab: Lab, session: LabSession) -> None:
    before = flags(session)
    load = SnaptrimLoad(any_lab, session, objects=400, object_bytes=1 << 14)
    load.prepare()
    clones = load._clones()
    assert clones >= 360
    time.sleep(2)
    assert load._clones() == clones
    load.start()
    until = time.monotonic() + 60
    while load.idle_since() is None and time.monotonic() < until:
        time.sleep(0.5)
        load.observe()
    assert load.stop().evidence["done_objects"] > 0.9 * clones
    assert flags(session) == before


def test_periodic_scrubs_obey_osd_max_scrubs_and_end_with_the_load(any_lab: Lab, session: LabSession) -> None:
    before = flags(session)
    session.mon("config set", who="osd", name="osd_max_scrubs", value="1")
    load = ScrubLoad(any_lab, session, objects=320, object_bytes=1 << 19, pgs=16)
    try:
        load.prepare()
        load.start()
        at_once = []
        for _ in range(40):
            time.sleep(0.5)
            load.observe()
            if load.progress().done_objects > 40:
                break
            at_once.append(sum(bool(pg["scrubber"].get("active")) for pg in load.pool.pgs()))
        result = load.stop()
    finally:
        session.mon("config rm", who="osd", name="osd_max_scrubs")
    # one that scrubs and one that waits for its replicas, on each of three OSDs; requested ones are all 16 at once
    assert 1 <= max(at_once) <= 6
    assert result.evidence["done_objects"] > 0
    assert not any(pg["scrubber"].get("active") for pg in load.pool.pgs())
    assert flags(session) == before
    time.sleep(3)
    assert not any(pg["scrubber"].get("active") for pg in load.pool.pgs()), "a date was left in the past"


def preempted(lab: Lab, session: LabSession) -> float:
    """How often a write has stopped a chunk of a deep scrub of replicas."""
    counted = [session.osd(osd, "counter dump")["osd_scrub_dp_repl"] for osd in lab.osds]
    return sum(float(each["counters"]["preemptions"]) for own in counted for each in own)


def test_clients_preempt_the_scrub_of_what_they_write_and_no_other(tentacle_lab: Lab) -> None:
    with LabSession(tentacle_lab) as session:
        work = ClientWork(rate=100, image_bytes=SMALL_IMAGE, object_bytes=64 << 10)
        times = []
        for own in (False, True):
            clients = ClientLoad(tentacle_lab, session, work)
            apart = ScrubLoad(tentacle_lab, session, objects=1024, object_bytes=64 << 10, pgs=32)
            before = preempted(tentacle_lab, session)
            loads: List[Load] = [clients, ImageScrubLoad(clients) if own else apart]
            with Scenario("client-scrub", tentacle_lab, loads, LabSession(tentacle_lab)) as scenario:
                scenario.prepare()
                scenario.start()
                assert scenario.window(8)["scrub.objects_s"].mean > 0
            times.append(preempted(tentacle_lab, session) - before)
        assert times[0] == 0
        assert times[1] > 5


def test_a_scenario_that_lacks_work_says_so(tentacle_lab: Lab) -> None:
    with LabSession(tentacle_lab) as session:
        load = SnaptrimLoad(tentacle_lab, session, objects=64, object_bytes=1 << 12)
        with pytest.raises(LabFailed, match="ran out of work"):
            run(tentacle_lab, load, 8)


def test_ctrl_c_stops_the_load_and_clears_its_flags(tentacle_lab: Lab) -> None:
    with LabSession(tentacle_lab) as asked:
        before = flags(asked)
        command = ["lab", "load", "client", "--name", tentacle_lab.name, "--image", "64MiB", "--seconds", "600"]
        process = subprocess.Popen(
            [sys.executable, "-c", "from ceph_tuner_cli.main import main; main()", *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        # the pool and its image are made by programs that are gone a moment later
        until = time.monotonic() + 120
        while not clients_at_work(tentacle_lab) and time.monotonic() < until and process.poll() is None:
            time.sleep(0.2)
        assert clients_at_work(tentacle_lab)
        time.sleep(2)
        os.kill(process.pid, signal.SIGINT)
        output, errors = process.communicate(timeout=60)
        assert (process.returncode, output) == (130, "")
        assert "stopping the load" in errors
        assert "Traceback" not in errors
        assert not clients_of(tentacle_lab)
        assert flags(asked) == before


def clients_of(lab: Lab, pattern: str = "load-client-replicated-3") -> List[str]:
    """Processes that prepare clients' work on that lab, or do it."""
    found = subprocess.run(["pgrep", "-f", pattern], capture_output=True, text=True)
    pids = [pid for pid in found.stdout.split() if pid.isdigit()]
    return [pid for pid in pids if str(lab.places.directory) in environment(pid)]


def clients_at_work(lab: Lab) -> List[str]:
    """Those that do it: the lab's own client, by the plan in its arguments."""
    return clients_of(lab, '"pool": "load-client-replicated-3"')


def environment(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/environ").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
