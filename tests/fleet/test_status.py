from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Iterator, Mapping, Optional

import pytest

from appliers import applier
from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.cluster.dashboard import Dashboard
from ceph_tuner.cluster.dashboard_api import DashboardApi
from ceph_tuner.core.ceph.ports import ConfigEntry
from ceph_tuner.core.ceph.target import Place
from ceph_tuner.core.changes.journal import APPLYING, Journal
from ceph_tuner.core.changes.lock import Holder, Lock
from ceph_tuner.core.errors import CommandFailed, InputError
from ceph_tuner.core.goals.slo import Slo, parse_objective
from ceph_tuner.core.goals.stored_slo import BASELINE, SLO_KEY
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.releases import TENTACLE
from ceph_tuner.core.measure.history import History
from ceph_tuner.core.measure.sample import Measure, Window
from ceph_tuner.fleet.changes import drifted
from ceph_tuner.fleet.configuration import profile_words, stored_capacities
from ceph_tuner.fleet.status import standing_of, status_of
from fake_dashboard import PAGES, PASSWORD, USER, FakeDashboard, serving
from monitors import ManualClock, Monitors, keep_slo

HEALTH: Mapping[str, Any] = {"status": "HEALTH_OK", "checks": {}}


class Commands:
    """What the fake monitors have no command for."""

    def __init__(self, health: Mapping[str, Any] = HEALTH, disks: bool = False) -> None:
        self._health, self._disks = health, disks

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        version = {"osd": {"ceph version 20.2.4 (x) tentacle (stable)": 3}}
        said = [{"id": 0, "rotational": "1" if self._disks else "0"}]
        return json.dumps({"health": self._health, "versions": version, "osd metadata": said}[prefix])

    def tell(self, daemon: str, prefix: str, arguments: Mapping[str, str]) -> str:
        raise AssertionError(f"{daemon} is asked for {prefix}")


@pytest.fixture
def monitors() -> Monitors:
    return Monitors()


@pytest.fixture
def cluster(monitors: Monitors) -> Cluster:
    return Cluster("paris", Commands(), monitors, monitors.store, TENTACLE, "20.2.4", clock=ManualClock())  # type: ignore[arg-type]


def keep_window(monitors: Monitors, end: float, **values: float) -> None:
    measures = {name.replace("__", "."): Measure(value, 0.0, 12) for name, value in values.items()}
    History(monitors.store).add_window(Window(end - 60, end, measures))


def test_an_untouched_cluster_says_so(cluster: Cluster) -> None:
    found = status_of(cluster)
    assert (found.version, found.versions, found.osds, found.up) == ("20.2.4", ("20.2.4",), 3, 3)
    assert (found.profile, found.profile_certain) == ("balanced", True)
    assert found.objectives is not None
    assert (found.objectives.count, found.drift, found.last_change) == (0, (), None)
    assert not found.missing_hard


def test_objectives_are_held_against_the_newest_window(monitors: Monitors, cluster: Cluster) -> None:
    keep_slo(monitors, "client.p95_ms <= 80 ms", "client.iops >= 100 /s", "recovery.bytes_s >= 1 MB/s")
    keep_window(monitors, 999_700.0, client__p95_ms=10.0)
    keep_window(monitors, 999_990.0, client__p95_ms=99.0, client__iops=300.0)
    found = status_of(cluster).objectives
    assert found is not None
    assert found.met == ("client.iops >= 100 /s",)
    assert found.missed == found.missed_hard == ("client.p95_ms <= 80 ms",)
    assert found.unseen == ("recovery.bytes_s >= 1 MB/s",)
    assert status_of(cluster).missing_hard


def test_a_soft_objective_that_is_missed_is_no_breach(monitors: Monitors, cluster: Cluster) -> None:
    objective = {"objective": "client.p95_ms <= 80 ms", "hard": False}
    monitors.store.set(SLO_KEY, json.dumps({"name": "night", "objectives": [objective]}))
    keep_window(monitors, 999_990.0, client__p95_ms=99.0)
    found = status_of(cluster)
    assert found.objectives is not None
    assert found.objectives.missed == ("client.p95_ms <= 80 ms",)
    assert not found.missing_hard


def test_bounds_by_the_baseline_are_held_against_what_the_plugin_keeps_of_it(
    monitors: Monitors, cluster: Cluster
) -> None:
    keep_slo(monitors, "client.p95_ms <= 0.5 * baseline", "recovery.bytes_s >= 1 MB/s")
    keep_window(monitors, cluster.clock.now(), client__p95_ms=60.0, recovery__bytes_s=0.0)
    monitors.store.set(BASELINE, json.dumps({"client.p95_ms": 100.0}))
    found = status_of(cluster).objectives
    assert found is not None
    # and nothing to recover is no missed rate of recovery
    assert (found.missed_hard, found.unseen, found.idle) == (
        ("client.p95_ms <= 0.5 * baseline",),
        (),
        ("recovery.bytes_s >= 1 MB/s",),
    )


def test_the_fleet_s_own_slo_goes_before_the_stored_one_and_windows_from_before_do_not_count(
    monitors: Monitors, cluster: Cluster
) -> None:
    keep_slo(monitors, "client.p95_ms <= 80 ms")
    keep_window(monitors, 999_990.0, client__p95_ms=70.0)
    strict = Slo("strict", (parse_objective("client.p95_ms <= 60 ms"),))
    found, later = status_of(cluster, strict).objectives, standing_of(cluster, strict, 999_980.0).objectives
    assert found is not None
    assert later is not None
    assert found.missed_hard == later.unseen == ("client.p95_ms <= 60 ms",)


def test_an_old_window_says_nothing_about_now(monitors: Monitors, cluster: Cluster) -> None:
    keep_slo(monitors, "client.p95_ms <= 80 ms")
    keep_window(monitors, 990_000.0, client__p95_ms=10.0)
    found = status_of(cluster)
    assert found.objectives is not None
    assert found.objectives.unseen == ("client.p95_ms <= 80 ms",)
    assert any("is the plugin running?" in note for note in found.notes)


def test_the_last_change_and_what_drifted_from_it_are_named(monitors: Monitors, cluster: Cluster) -> None:
    own = applier(monitors)
    own.apply(own.plan("osd", {"osd_max_scrubs": 2}), "fewer")
    own.apply(own.plan("osd", {"osd_max_scrubs": 5, "osd_scrub_chunk_max": 9}), "more")
    found = status_of(cluster)
    assert found.drift == ()
    assert found.last_change is not None
    assert (found.last_change.number, found.last_change.state, found.last_change.why) == (2, "applied", "more")
    monitors.someone_sets("osd", "osd_scrub_chunk_max", None)
    assert status_of(cluster).drift == ("osd osd_scrub_chunk_max: nothing instead of 9",)
    own.undo(everything=True)
    found = status_of(cluster)
    assert found.drift == ()
    assert found.last_change is not None
    assert found.last_change.state == "undone"


def test_a_half_done_change_is_under_way_while_its_owner_holds_the_lock(monitors: Monitors, cluster: Cluster) -> None:
    own = applier(monitors)
    applied = own.apply(own.plan("osd", {"osd_max_scrubs": 2}))
    assert applied is not None
    with Lock(monitors.store, cluster.clock, Holder("bob", "host-b"), heartbeat=False) as lock:
        Journal(monitors.store).write(replace(applied, state=APPLYING, generation=lock.generation))
        assert status_of(cluster).notes == (
            "change 1 is under way (applying), by bob on host-b, since 1970-01-12 13:46:40 UTC",
        )
    assert status_of(cluster).notes == ("change 1 was left half done (applying)",)


def test_a_damaged_journal_and_a_damaged_slo_cost_their_cells_alone(monitors: Monitors, cluster: Cluster) -> None:
    monitors.store.set("journal/00000001", "{}")
    monitors.store.set(SLO_KEY, "none")
    found = status_of(cluster)
    assert (found.drift, found.last_change, found.profile) == (None, None, "balanced")
    assert len(found.notes) == 2


def test_osds_that_differ_are_counted_and_another_queue_is_named() -> None:
    places = [Place(osd, "ssd", {"host": f"h{osd}"}) for osd in range(3)]
    entries = [ConfigEntry("osd", PROFILE, "custom"), ConfigEntry("osd/host:h1", PROFILE, "high_client_ops")]
    assert profile_words(entries, places, TENTACLE) == "custom 2, high_client_ops 1"
    assert profile_words([ConfigEntry("osd", "osd_op_queue", "wpq")], places, TENTACLE) == "wpq"
    assert profile_words([], [], TENTACLE) == ""


def test_a_capacity_is_that_of_the_drives_kind_whatever_its_class() -> None:
    entries = [ConfigEntry("osd.0", "osd_mclock_max_capacity_iops_hdd", "380")]
    (stored,) = stored_capacities(entries, [Place(0, "archive")], {0: "hdd"})
    assert (stored.kind, stored.iops, stored.source) == ("hdd", 380.0, "osd.0")
    monitors = Monitors(1, table={("osd.0", "osd_mclock_max_capacity_iops_hdd"): "380"})
    monitors.osd[0].place = Place(0, "archive")
    cluster = Cluster("paris", Commands(disks=True), monitors, monitors.store, TENTACLE, "20.2.4", clock=ManualClock())  # type: ignore[arg-type]
    assert status_of(cluster).capacity == ()


@pytest.mark.parametrize("value", ["--force", "", "1\u202e2", "x" * 9999])
def test_a_capacity_that_is_no_number_is_named(value: str) -> None:
    entries = [ConfigEntry("osd.0", "osd_mclock_max_capacity_iops_hdd", value)]
    with pytest.raises(InputError, match=r"osd\.0 osd_mclock_max_capacity_iops_hdd: found .*expected a number"):
        stored_capacities(entries, [Place(0, "archive")], {0: "hdd"})


@pytest.mark.parametrize(
    "health",
    [[], {}, {"checks": 3}, *({"checks": {"TUNER_FAILED": one}} for one in (None, 3, "x", {}, {"summary": 3}))],
)
def test_health_of_another_shape_is_told_as_the_cluster_s_fault(monitors: Monitors, health: Any) -> None:
    cluster = Cluster("paris", Commands(health), monitors, monitors.store, TENTACLE, "20.2.4", clock=ManualClock())  # type: ignore[arg-type]
    with pytest.raises(CommandFailed, match="health"):
        status_of(cluster)


def test_nothing_drifts_without_a_change() -> None:
    assert drifted([ConfigEntry("osd", "osd_max_scrubs", "5")], []) == []


@pytest.fixture
def rest() -> Iterator[Cluster]:
    with serving(FakeDashboard(dict(PAGES))) as fake:
        api = DashboardApi("berlin", [fake.url], USER, lambda: PASSWORD, ManualClock())
        cluster = Cluster.of("berlin", Dashboard(api), TENTACLE, "20.2.4")
        yield cluster
        cluster.close()


def test_by_rest_what_cannot_be_known_is_none_and_the_rest_is_there(rest: Cluster) -> None:
    found = status_of(rest)
    assert (found.osds, found.up, found.versions) == (2, 1, ("20.2.4",))
    assert (found.profile, found.profile_certain) == ("high_client_ops", False)
    nothing: Optional[object] = None
    assert found.objectives is found.drift is found.last_change is nothing
    assert found.warnings == ("TUNER_SLO_MISSED: a hard objective is missed",)
    assert found.missing_hard
    assert any("key-value store" in note for note in found.notes)


def test_by_rest_a_capacity_is_that_of_the_drives_kind_too() -> None:
    pages = json.loads(json.dumps(PAGES))
    pages["/api/health/full"]["osd_map"]["tree"]["nodes"][2]["device_class"] = "archive"
    pages["/api/health/full"]["osd_map"]["osd_metadata"]["0"]["rotational"] = "1"
    pages["/api/cluster_conf"][2]["name"] = "osd_mclock_max_capacity_iops_hdd"
    with serving(FakeDashboard(pages)) as fake:
        api = DashboardApi("berlin", [fake.url], USER, lambda: PASSWORD, ManualClock())
        cluster = Cluster.of("berlin", Dashboard(api), TENTACLE, "20.2.4")
        assert status_of(cluster).capacities_wrong == 0
        cluster.close()
