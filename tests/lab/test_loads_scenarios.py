from __future__ import annotations

import time
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import pytest
from host_lab import HostLab

from ceph_lab import quiet, scenarios
from ceph_lab.loads import LoadProgress, LoadResult
from ceph_lab.loads.backfill import BackfillLoad
from ceph_lab.loads.layout import PoolLayout
from ceph_lab.loads.recovery import RecoveryLoad
from ceph_lab.loads.session import LabSession
from ceph_lab.loads.snaptrim import SnaptrimLoad
from ceph_lab.quiet import LabLook, Quiet, busy
from ceph_lab.scenarios import Scenario
from ceph_tuner.core.errors import ClusterTimeout, InputError, LabFailed, NotQuiet, TunerError
from ceph_tuner.core.measure.metrics import METRICS
from ceph_tuner.core.measure.sample import Measure


class Noted:
    """A load that only writes down what is asked of it."""

    def __init__(
        self, name: str, log: List[str], metric: str = "client.iops", idle: Optional[float] = None, fails: str = ""
    ) -> None:
        self.name, self.log, self.metrics = name, log, (metric,)
        self.idle, self.fails = idle, fails
        self.pools = ()
        self.measured: Tuple[float, float] = (0, 0)

    def _note(self, what: str) -> None:
        self.log.append(f"{what} {self.name}")
        if what == self.fails:
            raise LabFailed(f"{self.name} cannot {what}")

    def stores(self) -> Mapping[int, float]:
        return {}

    def hold(self) -> None:
        self._note("hold")

    def prepare(self) -> None:
        self._note("prepare")

    def lasts_s(self) -> Optional[float]:
        return None

    def start(self) -> None:
        self._note("start")

    def observe(self) -> None: ...

    def progress(self) -> LoadProgress:
        return LoadProgress(1, 1, 1, 1)

    def idle_since(self) -> Optional[float]:
        return self.idle

    def measure(self, start: float, end: float) -> Dict[str, Measure]:
        self.measured = (start, end)
        return {self.metrics[0]: Measure(3.0, 1.0, 2)}

    def remarks(self, measures: Mapping[str, Measure], seconds: float) -> Tuple[str, ...]:
        return (f"{self.name} remarks on {seconds:.0f} s",)

    def stop(self) -> LoadResult:
        self._note("stop")
        return LoadResult(self.name, {}, {}, (f"{self.name} has a note",))

    def cleanup(self) -> None:
        self._note("cleanup")


def made(*loads: Noted) -> Scenario:
    lab = HostLab("")
    return Scenario("test", lab, list(loads), LabSession(lab))


@pytest.fixture
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenarios, "wait_until_quiet", lambda *_, **__: Quiet(0.0, ()))
    monkeypatch.setattr(scenarios, "make_room", lambda *_: False)
    monkeypatch.setattr(scenarios, "compact", lambda *_: set())
    monkeypatch.setattr(scenarios, "send_deferred_in_turn", lambda *_: None)


@pytest.mark.usefixtures("_quiet")
def test_a_run_starts_everything_measures_and_stops_everything() -> None:
    log: List[str] = []
    scenario = made(Noted("client", log), Noted("recovery", log, "recovery.bytes_s"))
    scenario.prepare()
    assert scenario.run(0.2, settle=0) == {
        "client.iops": Measure(3.0, 1.0, 2),
        "recovery.bytes_s": Measure(3.0, 1.0, 2),
    }
    assert log == [f"{what} {load}" for what in ("hold", "prepare", "start", "stop") for load in ("client", "recovery")]
    assert scenario.remarks()[-2:] == ("client has a note", "recovery has a note")


def test_when_one_load_cannot_start_the_others_are_stopped() -> None:
    log: List[str] = []
    with pytest.raises(LabFailed, match="recovery cannot start"):
        made(Noted("client", log), Noted("recovery", log, fails="start")).run(1)
    assert log[-2:] == ["stop client", "stop recovery"]


class Asked(LabSession):
    """Two OSDs on disks and one on flash, of which one disk is down; the commands to OSDs are written down."""

    def __init__(self) -> None:
        super().__init__(HostLab(""))
        self.told: List[Tuple[int, str, Any]] = []
        self.down = {3}

    def mon(self, prefix: str, **arguments: Any) -> Any:
        if prefix == "osd dump":
            return {"osds": [{"osd": osd, "up": int(osd not in self.down)} for osd in range(4)]}
        return {"rotational": str(int(arguments["id"] != 2))}

    def osd(self, osd: int, prefix: str, **arguments: Any) -> Any:
        if prefix == "config get":
            return {arguments["var"]: "3.000000"}
        self.told.append((osd, prefix, arguments.get("val")))
        return {}


def test_disks_count_the_time_of_their_deferred_writes_anew_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session, waits = Asked(), []  # type: Asked, List[float]
    monkeypatch.setattr(quiet.time, "sleep", waits.append)
    lab = HostLab("")
    monkeypatch.setattr(HostLab, "osds", [0, 1, 2, 3])
    quiet.send_deferred_in_turn(lab, session)
    assert session.told == [
        (0, "config set", ["0.05"]),
        (1, "config set", ["0.05"]),
        (0, "config unset", None),
        (1, "config unset", None),
    ]
    assert waits == [1.5, 1.5]


def test_rocksdb_of_a_disk_is_compacted_once_and_that_on_flash_before_every_window(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class OneLogOnFlash(Asked):
        def mon(self, prefix: str, **arguments: Any) -> Any:
            log = {"bluefs_dedicated_db": "1", "bluefs_db_rotational": "0"} if arguments.get("id") == 1 else {}
            return {**super().mon(prefix, **arguments), **log}

    session = OneLogOnFlash()
    monkeypatch.setattr(HostLab, "osds", [0, 1, 2, 3])
    monkeypatch.setattr(scenarios, "make_room", lambda *_: False)
    monkeypatch.setattr(scenarios, "wait_until_quiet", lambda *_, **__: Quiet(0.0, ()))
    with Scenario("test", HostLab(""), [], session) as scenario:
        scenario.prepare()
        assert [(osd, prefix) for osd, prefix, _ in session.told] == [(osd, "compact") for osd in range(3)]
        scenario.prepare()
        assert [(osd, prefix) for osd, prefix, _ in session.told[3:]] == [(1, "compact"), (2, "compact")]
        # one that was down at the first window is a disk as the others are
        session.down = set()
        scenario.prepare()
    assert [(osd, prefix) for osd, prefix, _ in session.told[5:]] == [(osd, "compact") for osd in (1, 2, 3)]


def test_an_interrupt_meanwhile_leaves_no_disk_in_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    session = Asked()
    monkeypatch.setattr(quiet.time, "sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        quiet.send_deferred_in_turn(HostLab(""), session)
    assert session.told[2:] == [(1, "config unset", None), (0, "config unset", None)]


def test_an_osd_that_does_not_answer_leaves_no_other_one_in_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    class FirstDies(Asked):
        def osd(self, osd: int, prefix: str, **arguments: Any) -> Any:
            answer = super().osd(osd, prefix, **arguments)
            if (osd, prefix) == (0, "config unset"):
                raise ClusterTimeout("osd.0")
            return answer

    session = FirstDies()
    monkeypatch.setattr(quiet.time, "sleep", lambda _: None)
    with pytest.raises(ClusterTimeout):
        quiet.send_deferred_in_turn(HostLab(""), session)
    assert (1, "config unset", None) in session.told


@pytest.mark.usefixtures("_quiet")
def test_when_one_load_cannot_stop_the_others_are_stopped_all_the_same() -> None:
    log: List[str] = []
    scenario = made(Noted("client", log, fails="stop"), Noted("recovery", log))
    scenario.start()
    with pytest.raises(LabFailed, match="client cannot stop"):
        scenario.stop()
    assert log[-1] == "stop recovery"


@pytest.mark.usefixtures("_quiet")
def test_what_prepare_set_is_taken_back_though_nothing_was_started() -> None:
    log: List[str] = []
    with made(Noted("recovery", log)) as scenario:
        scenario.prepare()
        scenario.prepare()
    assert log.count("stop recovery") == 1


def test_a_window_ends_for_all_loads_when_the_work_runs_out() -> None:
    now = time.time()
    client = Noted("client", [])
    scenario = made(client, Noted("recovery", [], "recovery.bytes_s", idle=now - 4))
    scenario.measure(now - 10, now)
    assert client.measured == (now - 10, now - 4)
    assert scenario.remarks()[0] == "recovery ran out of work after 6 s of 10 s"


def test_work_that_ran_out_early_is_no_measurement() -> None:
    now = time.time()
    with pytest.raises(LabFailed, match="ran out of work after 1 s of 10 s; give it more objects"):
        made(Noted("recovery", [], idle=now - 9)).measure(now - 10, now)


def test_the_rates_of_recovery_and_backfill_add_up() -> None:
    both = made(Noted("recovery", [], "recovery.bytes_s"), Noted("backfill", [], "recovery.bytes_s"))
    assert both.measure(0, 10)["recovery.bytes_s"].mean == 6.0


class Drives:
    """OSDs 0 to 2 with flash drives of 60 MiB/s and 900 IOPS; those from 3 on turn, with 20 MiB/s and 100 IOPS."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lab = HostLab("")
        self.lab.osds = [0, 1, 2, 3, 4, 5]
        self.lab.classes = {"ssd": [0, 1, 2], "hdd": [3, 4, 5]}
        self.backfills = 1
        monkeypatch.setattr(LabSession, "mon", lambda _, prefix, **given: self.answer(prefix, **given))
        monkeypatch.setattr(LabSession, "osd", lambda _, osd, prefix, **given: self.told(prefix, **given))

    def told(self, prefix: str, **given: Any) -> Any:
        assert (prefix, given) == ("config get", {"var": "osd_max_backfills"})
        return {"osd_max_backfills": str(self.backfills)}

    def answer(self, prefix: str, **given: Any) -> Any:
        if prefix == "osd metadata":
            return {"rotational": "1" if given["id"] >= 3 else "0"}
        assert prefix == "config get"
        values = {
            "osd_mclock_max_sequential_bandwidth_ssd": 60 << 20,
            "osd_mclock_max_capacity_iops_ssd": 900,
            "osd_mclock_max_sequential_bandwidth_hdd": 20 << 20,
            "osd_mclock_max_capacity_iops_hdd": 100,
        }
        return f"{values[given['key']]}\n"


@pytest.mark.parametrize(
    ("options", "objects"),
    [
        # 1/60 s for a MiB and 1/900 s for its place
        ({"device_class": "ssd"}, 1688),
        ({"device_class": "hdd"}, 500),
        # the OSD that misses objects keeps half of each
        ({"device_class": "ssd", "pool": "ec:2+1"}, 3177),
        # on both, the slower one decides
        ({}, 500),
        # small objects are bound by the drive's operations: 100 a second
        ({"device_class": "hdd", "object_bytes": 4096}, 2943),
    ],
)
def test_recovery_has_work_for_the_seconds_at_the_full_speed_of_its_drives(
    options: Dict[str, Any], objects: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = scenarios.scenario("client-recovery", Drives(monkeypatch).lab, seconds=30.0, **options)
    load = scenario.loads[-1]
    assert isinstance(load, RecoveryLoad)
    assert load.objects == objects
    assert load.osd == (2 if options.get("device_class") == "ssd" else 5)
    assert scenario.shortfalls(29.9) == ()
    assert "recovery may run out of work" in scenario.shortfalls(40)[0]


@pytest.mark.parametrize(("backfills", "drives"), [(1, 1), (2, 2), (10, 3)])
def test_backfill_has_work_for_the_pgs_that_osd_max_backfills_in_force_lets_move(
    backfills: int, drives: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Drives(monkeypatch)
    machine.backfills = backfills
    scenario = scenarios.scenario("client-backfill", machine.lab, seconds=30.0, objects=1, device_class="ssd")
    load = scenario.loads[-1]
    assert isinstance(load, BackfillLoad)
    assert load.objects == pytest.approx(1688 * drives, abs=2)
    assert scenario.shortfalls(29.9) == ()
    # what was enough for one PG at a time is not for several
    few = BackfillLoad(machine.lab, LabSession(machine.lab), 1688, layout=load.pool.layout)
    assert few.lasts_s() == pytest.approx(30.0 / drives, rel=0.01)


def test_many_degraded_objects_are_spread_over_more_pgs(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Drives(monkeypatch).lab
    few, many = (RecoveryLoad(lab, LabSession(lab), objects, layout=PoolLayout(2)) for objects in (640, 2000))
    assert (few.pool.pg_count, many.pool.pg_count) == (32, 128)
    with pytest.raises(LabFailed, match="use larger objects"):
        RecoveryLoad(lab, LabSession(lab), 20_000)


@pytest.mark.parametrize(("name", "least"), [("client-snaptrim", 30 * 0.8 * 900), ("a1", 30 * 0.8 * 900)])
def test_trimming_has_clones_for_the_seconds(name: str, least: float, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = scenarios.scenario(name, Drives(monkeypatch).lab, seconds=30.0, device_class="ssd")
    load = scenario.loads[-1]
    assert isinstance(load, SnaptrimLoad)
    assert load.clones == pytest.approx(least, rel=0.01)
    # of few objects, so that they need little space
    assert load.objects == 2424


def test_every_load_of_a_scenario_has_the_layout_that_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = scenarios.scenario("mixed", Drives(monkeypatch).lab, pool="ec:2+1", device_class="hdd")
    assert [vars(load)["pool"].name for load in scenario.loads] == [
        f"load-{name}-ec-2-1-hdd" for name in ("client", "scrub", "snaptrim", "recovery")
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"device_class": "nvme"}, "no OSD of class nvme .it has hdd, ssd"),
        ({"pool": "ec:4+2", "device_class": "ssd"}, "ec:4.2 needs at least 6 OSDs of class ssd, the lab 'host' has 3"),
        ({"pool": "ec:1+1"}, "at least 2 data chunks"),
        ({"pool": "raid5"}, "scenario option pool: found 'raid5', expected replicated:N or ec:K.M"),
        ({"pool": "replicated:0"}, "scenario option pool: found 0 replicas"),
        ({"pattern": "zigzag"}, "random or sequential"),
    ],
)
def test_a_layout_that_the_lab_cannot_have_is_refused_before_anything_is_made(
    options: Dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TunerError, match=words):
        scenarios.scenario("client", Drives(monkeypatch).lab, **options)


@pytest.mark.parametrize(("osds", "size"), [(3, 2), (8, 3), (4, 3)])
def test_each_osd_leads_one_pg_of_backfill_and_takes_one_in(osds: int, size: int) -> None:
    """With six PGs on three OSDs it was chance whether two or three went at a time, and so what a window measured."""
    lab = HostLab("")
    lab.osds = list(range(osds))
    load = BackfillLoad(lab, LabSession(lab), layout=PoolLayout(size))
    homes = {f"1.{pg}": load.pool.home(f"1.{pg}") for pg in range(load.pool.pg_count)}
    assert sorted(home[0] for home in homes.values()) == list(range(osds))
    away = {pgid: load._other(pgid, home) for pgid, home in homes.items()}
    for there, back in ((homes, away), (away, homes)):
        assert [there[pgid][:-1] for pgid in homes] == [back[pgid][:-1] for pgid in homes]
        assert sorted(back[pgid][-1] for pgid in homes) == list(range(osds))
        assert not any(back[pgid][-1] in there[pgid] for pgid in homes)
    assert all(load._other(pgid, away[pgid]) == homes[pgid] for pgid in homes)


def test_backfill_needs_an_osd_to_move_to_or_chunks_to_trade(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Drives(monkeypatch).lab
    with pytest.raises(LabFailed, match="backfill of replicated:3 needs at least 4 OSDs, one to move to"):
        scenarios.scenario("client-backfill", lab, pool="replicated:3", device_class="ssd")
    assert scenarios.scenario("client-backfill", lab, pool="ec:2+1", device_class="ssd").loads


@pytest.mark.parametrize("name", scenarios.NAMES)
def test_every_scenario_can_be_made_and_names_known_metrics(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = scenarios.scenario(name, Drives(monkeypatch).lab)
    assert {"client.p95_ms"} < set(scenario.metrics) <= set(METRICS)
    assert scenario.loads[0].name == "client"


def test_an_unknown_scenario_or_option_is_the_users_error() -> None:
    with pytest.raises(InputError, match="one of client, client-recovery"):
        scenarios.scenario("nope", HostLab(""))
    with pytest.raises(InputError, match="found the option speed, expected some of rate"):
        scenarios.scenario("client", HostLab(""), speed=1)
    with pytest.raises(InputError, match="option rate: found 'fast', expected a number"):
        scenarios.scenario("client", HostLab(""), rate="fast")
    with pytest.raises(InputError, match="option rate: found -1, expected more than 0"):
        scenarios.scenario("client", HostLab(""), rate=-1)


CALM = ["active+clean"] * 3


def look(
    at: float, states: Sequence[str] = CALM, used: float = 1e9, deleting: int = 0, silent: int = 0, osds: int = 2
) -> LabLook:
    return LabLook(at, states, used, deleting, silent, osds)


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (look(1), []),
        (look(1, ["active+clean", "active+clean+scrubbing+deep"]), ["1 PGs scrubbing"]),
        (look(1, ["active+clean+snaptrim_wait"]), ["1 PGs waiting to trim snapshots"]),
        (look(1, ["active+recovering+degraded"]), ["1 PGs recovering"]),
        (look(1, ["peering"]), ["1 PGs peering", "1 PGs not active"]),
        (look(1, silent=2), ["2 PGs not active"]),
        (look(1, deleting=4), ["4 PGs being deleted"]),
        (look(1, used=0.99e9), ["objects being deleted (10.0 MB/s freed)"]),
        (look(1, used=1e9 - 1000), []),
    ],
)
def test_what_goes_on_in_a_lab_is_named(now: LabLook, words: List[str]) -> None:
    assert list(busy(look(0), now, []).values()) == words


def test_pgs_that_a_flag_holds_back_are_quiet() -> None:
    held = look(1, ["active+recovery_wait+undersized+degraded", "active+clean"])
    assert busy(look(0), held, ["norecover"]) == {}
    assert busy(look(0), held, ["nobackfill"]) != {}


def waiting(monkeypatch: pytest.MonkeyPatch, looks: Sequence[LabLook], timeout: float) -> Quiet:
    following = iter(looks)
    monkeypatch.setattr(quiet, "look", lambda *_: next(following))
    monkeypatch.setattr(quiet, "_flags", lambda _: [])
    lab = HostLab("")
    return quiet.wait_until_quiet(lab, LabSession(lab), timeout, now=lambda: 0.0, sleep=lambda _: None)


def test_waiting_ends_when_nothing_has_happened_for_a_while_and_says_what_did(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = [look(0), look(1, deleting=3), look(2), look(3, deleting=1), look(4), look(5), look(6), look(7)]
    found = waiting(monkeypatch, looks, 60)
    assert found == Quiet(5.0, ("3 PGs being deleted",))
    assert str(found) == "the lab was quiet after 5 s; before that: 3 PGs being deleted"


def test_a_lab_that_never_is_quiet_is_given_up_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotQuiet, match="not quiet after 6 s: 2 PGs being deleted"):
        waiting(monkeypatch, [look(float(at), deleting=2) for at in range(20)], 5)


def test_what_is_deleted_slowly_is_waited_for_as_long_as_it_gets_less(monkeypatch: pytest.MonkeyPatch) -> None:
    falling = [look(4.0 * at, deleting=9 - at, used=100e6 - at) for at in range(9)]
    found = waiting(monkeypatch, [*falling, *(look(40.0 + at) for at in range(9))], 5)
    assert found.seen == ("8 PGs being deleted",)
    assert found.waited_s > 32.0
    # an OSD that comes up with copies of its own to delete has begun anew
    comes_up = [look(0, used=1e6), *(look(4.0 * at, used=9e6 - at, deleting=3, osds=3) for at in range(1, 5))]
    assert waiting(monkeypatch, [*comes_up, *(look(20.0 + at, osds=3) for at in range(9))], 5).waited_s > 16.0
    # bytes that come and go are no progress
    with pytest.raises(NotQuiet, match="not quiet after 6 s"):
        waiting(monkeypatch, [look(2.0 * at, deleting=2, used=100e6 + at % 2) for at in range(9)], 5)


@pytest.mark.parametrize("layout", [PoolLayout(3), PoolLayout(2, pgs=6), PoolLayout(chunks=(2, 1)), PoolLayout(1)])
@pytest.mark.parametrize("osds", [[0, 1, 2], [3, 4, 5, 9], list(range(8))])
def test_every_osd_has_its_share_of_pgs_and_of_primaries(layout: PoolLayout, osds: List[int]) -> None:
    placed = [layout.placement(osds, pg) for pg in range(layout.pgs)]
    assert all(len(set(pg)) == layout.size and set(pg) <= set(osds) for pg in placed)
    for share, members in ((1, [pg[:1] for pg in placed]), (layout.size, placed)):
        counts = [sum(osd in pg for pg in members) for osd in osds]
        assert max(counts) - min(counts) <= share


def test_the_osd_that_recovers_has_a_copy_of_every_object() -> None:
    lab = HostLab("")
    copies = RecoveryLoad(lab, LabSession(lab), 100, 1000).stores()
    assert copies == {2: 100_000, 0: 50_000, 1: 50_000}
    coded = RecoveryLoad(lab, LabSession(lab), 100, 1000, layout=PoolLayout(chunks=(2, 1))).stores()
    assert coded == dict.fromkeys((0, 1, 2), 50_000)
