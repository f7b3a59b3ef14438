from __future__ import annotations

from dataclasses import replace
from typing import Any, List

import pytest
from automatic_on_twin import QUICK, OnTwin

from ceph_tuner.core.autopilot.contract import Rollout, Stage
from ceph_tuner.core.autopilot.events import Answered
from ceph_tuner.core.autopilot.state import ASKING, OBSERVING, TRYING
from ceph_tuner.core.changes.lock import LEASE_S
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.measure.metrics import CLASS, Scope
from tuner.automatic import Automatic

NVME, HDD = Scope(CLASS, "nvme"), Scope(CLASS, "hdd")
HOPELESS = "client.p95_ms{{class={}}}<=0.01"


def hybrid(*objectives: str, **options: Any) -> OnTwin:
    """OSDs 0 and 1 are said to be `nvme`, 2 and 3 `hdd`; every pool lies on all of them."""
    aboard = OnTwin(**options)
    for osd in aboard.twin.twin.osds:
        osd.place = replace(osd.place, device_class="nvme" if osd.place.osd < 2 else "hdd")
    for objective in objectives:
        aboard.service.slo_commands.set(objective, False, 1.0, "")
    aboard.sample(3)
    return aboard


def rollout(device_class: str) -> Rollout:
    target, osds = f"osd/class:{device_class}", (0, 1) if device_class == "nvme" else (2, 3)
    return Rollout(target, (Stage((f"osd.{osds[0]}",), osds[:1], osds[1:]), Stage((target,), osds)))


def on_trial(aboard: OnTwin, device_class: str, **settings: Any) -> Automatic:
    """The mode of a class with a proposal of these settings on the cluster."""
    mode = aboard.modes.of(device_class)
    aboard.options["worker_python"] = "/no/such/python"
    if mode.driver.state.mode == "off":
        aboard.during(lambda: aboard.modes.switch("auto", device_class))
    for _ in range(60):
        if mode.driver.state.phase == ASKING:
            break
        aboard.sample()
    mode.driver.inbox.clear()
    mode.driver.inbox.post(
        Answered(aboard.twin.clock.now(), settings or {"osd_max_scrubs": 3}, "a test", rollout(device_class))
    )
    for _ in range(60):
        if mode.driver.state.phase == TRYING:
            return mode
        aboard.sample()
    raise AssertionError(f"{mode.driver.state.phase}, not {TRYING}: {mode.driver.problem}")


def scrubs(aboard: OnTwin) -> List[str]:
    return [entry.who for entry in aboard.twin.config.dump() if entry.name == "osd_max_scrubs"]


# which modes there are


def test_without_scopes_there_is_one_mode_for_the_cluster() -> None:
    aboard = hybrid("client.p95_ms<=80")
    assert [mode.aim.device_class for mode in aboard.modes.all] == [""]
    assert aboard.modes.whole.aim.slo() is not None
    assert aboard.sampler.scopes == {}


def test_each_class_with_objectives_has_a_mode_and_the_clusters_own_has_nothing_to_do() -> None:
    aboard = hybrid("client.p95_ms{class=nvme}<=80", "recovery.bytes_s{class=hdd}>=1 MB/s", "client.p99_ms<=200")
    assert [mode.aim.device_class for mode in aboard.modes.all] == ["", "hdd", "nvme"]
    assert aboard.modes.whole.aim.slo() is None
    wanted = aboard.modes.of("nvme").aim.slo()
    assert wanted is not None
    assert [each.text for each in wanted.objectives] == ["client.p95_ms <= 80 ms"]
    # what no mode keeps is said
    assert any("client.p99_ms <= 200 ms" in note for note in aboard.modes.document()["notes"])


def test_in_a_cluster_of_one_class_its_one_mode_keeps_objectives_of_all_scopes() -> None:
    aboard = OnTwin()
    for objective in ("client.p95_ms{class=ssd}<=80", "client.mean_ms{pool=rbd}<=90", "client.p99_ms<=200"):
        aboard.service.slo_commands.set(objective, False, 1.0, "")
    aboard.sample(3)
    assert [mode.aim.device_class for mode in aboard.modes.all] == [""]
    wanted = aboard.modes.whole.aim.slo()
    assert wanted is not None
    assert len(wanted.objectives) == 3
    window = aboard.modes.whole.aim.window(60.0)
    assert window is not None
    assert window.means["client.p95_ms{class=ssd}"] == pytest.approx(window.means["client.p95_ms"], rel=0.01)


def test_an_objective_of_a_pool_belongs_to_the_classes_that_it_lies_on() -> None:
    aboard = hybrid("client.mean_ms{pool=rbd}<=90")
    assert [mode.aim.device_class for mode in aboard.modes.all] == ["", "hdd", "nvme"]
    assert any("rbd lies on other device classes too" in note for note in aboard.modes.of("hdd").document()["notes"])


def test_a_scope_that_the_cluster_has_not_is_said() -> None:
    aboard = hybrid("client.p95_ms{class=tape}<=80")
    assert any("no OSD of the device class tape" in note for note in aboard.modes.document()["notes"])


def test_a_class_without_objectives_has_no_mode() -> None:
    aboard = hybrid("client.p95_ms{class=nvme}<=80")
    with pytest.raises(InputError, match="nvme"):
        aboard.modes.switch("auto", "hdd")


# what each sees


def test_a_mode_sees_its_class_as_a_cluster_of_its_own() -> None:
    aboard = hybrid("client.p95_ms{class=nvme}<=80", "client.p95_ms{class=hdd}<=80")
    whole, nvme, hdd = (aboard.modes.of(name).aim.window(60.0) for name in ("", "nvme", "hdd"))
    assert whole is not None
    assert nvme is not None
    assert hdd is not None
    together = nvme.means["client.iops"] + hdd.means["client.iops"]
    assert together == pytest.approx(whole.means["client.iops"], rel=0.05)
    assert set(aboard.modes.of("nvme").aim.running({0: 1, 1: 1, 2: 1, 3: 1})) == {0, 1}


def test_relative_bounds_of_a_class_refer_to_what_that_class_did() -> None:
    aboard = hybrid("client.p95_ms{class=nvme}<=1.2*baseline", **QUICK)
    aboard.during(lambda: aboard.modes.switch("auto"))
    aboard.sample(12)
    assert set(aboard.service.slos.baseline()) == {"client.p95_ms{class=nvme}"}
    assert set(aboard.modes.of("nvme").aim.part_of(aboard.service.reference())) == {"client.p95_ms"}


def test_one_read_of_the_objectives_serves_all_modes_until_the_next_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    aboard = hybrid("client.p95_ms{class=nvme}<=80", "client.p95_ms{class=hdd}<=80")
    aboard.during(lambda: aboard.modes.switch("auto"))
    aboard.sample(2)
    reads, get = [], aboard.service.store.get
    monkeypatch.setattr(aboard.service.store, "get", lambda key: reads.append(key) or get(key))
    aboard.sample(6)
    assert len(aboard.modes.all) == 3
    assert all(mode.driver.problem == "" for mode in aboard.modes.all)
    assert 0 < reads.count("slo") <= 6


def test_an_objective_that_is_set_is_heeded_at_the_next_sample() -> None:
    aboard = hybrid("client.p95_ms{class=nvme}<=80", "client.p95_ms{class=hdd}<=80")
    aboard.sample()
    aboard.service.slo_commands.set("client.p99_ms{class=nvme}<=90", False, 1.0, "")
    aboard.sample()
    slo = aboard.modes.of("nvme").aim.slo()
    assert slo is not None
    assert [each.metric for each in slo.objectives] == ["client.p95_ms", "client.p99_ms"]
    assert Scope(CLASS, "nvme") in aboard.sampler.scopes


# side by side


def test_one_class_at_a_time_has_something_on_trial_and_the_other_says_so() -> None:
    aboard = hybrid(HOPELESS.format("nvme"), HOPELESS.format("hdd"))
    on_trial(aboard, "nvme")
    assert scrubs(aboard) == ["osd.0"]
    aboard.during(lambda: aboard.modes.switch("auto", "hdd"))
    aboard.sample(3)
    hdd = aboard.modes.of("hdd").driver
    assert hdd.state.phase == OBSERVING
    assert "class nvme has settings on trial" in hdd.document()["waits_for"]


def test_pausing_one_class_takes_its_trial_back_and_leaves_the_other_alone() -> None:
    aboard = hybrid(HOPELESS.format("nvme"), HOPELESS.format("hdd"))
    on_trial(aboard, "nvme")
    aboard.during(lambda: aboard.modes.switch("auto", "hdd"))
    document = aboard.during(lambda: aboard.modes.tell("pause", "lunch", "nvme"))
    assert document["paused"] == "paused lunch"
    assert scrubs(aboard) == []
    assert not aboard.modes.of("hdd").driver.state.paused
    assert "class nvme: paused lunch" in aboard.modes.health()["TUNER_PAUSED"][0]


def test_a_word_without_a_class_is_for_all_of_them() -> None:
    aboard = hybrid(HOPELESS.format("nvme"), HOPELESS.format("hdd"))
    document = aboard.during(lambda: aboard.modes.switch("auto"))
    assert {name: own["mode"] for name, own in document["classes"].items()} == {"nvme": "auto", "hdd": "auto"}
    assert document["mode"] == "off"
    document = aboard.during(lambda: aboard.modes.switch("off"))
    assert {own["mode"] for own in document["classes"].values()} == {"off"}


def test_a_rollback_takes_back_the_trial_of_whichever_class() -> None:
    aboard = hybrid(HOPELESS.format("nvme"), HOPELESS.format("hdd"))
    trial = on_trial(aboard, "hdd").driver.state.changes
    done = aboard.during(lambda: aboard.modes.rollback(True, None, False))
    assert [row["change"] for row in done["undone"]] == list(reversed(trial))
    assert scrubs(aboard) == []


def test_the_trial_of_one_class_is_not_ended_by_what_the_other_does() -> None:
    """The whole cluster's objectives would be broken, and its condition another one."""
    aboard = hybrid(HOPELESS.format("nvme"), HOPELESS.format("hdd"))
    mode = on_trial(aboard, "nvme")
    aboard.twin.config.set("osd/class:hdd", "osd_mclock_max_capacity_iops_hdd", "90")
    aboard.sample(8)
    assert mode.driver.state.on_cluster


def test_each_has_a_state_and_a_trail_of_its_own_and_history_shows_all() -> None:
    aboard = hybrid(HOPELESS.format("nvme"), HOPELESS.format("hdd"))
    on_trial(aboard, "nvme")
    on = aboard.modes.of("nvme")
    assert {"auto/state/nvme"} <= set(aboard.service.store.keys("auto/"))
    assert "auto/state" not in aboard.service.store.keys("auto/")
    assert aboard.modes.of("hdd").trail.newest() == []
    assert [row["number"] for row in aboard.modes.past(50)] == [record.number for record in on.trail.newest()]


# when the mgr dies


def test_a_new_mgr_takes_the_trial_of_a_class_back_and_goes_on() -> None:
    aboard = hybrid(HOPELESS.format("nvme"))
    on_trial(aboard, "nvme")
    # the claim of a mgr that is gone ends by itself; here both are one process
    aboard.twin.clock.sleep(LEASE_S + 1.0)
    after = OnTwin(aboard.twin, worker_python="/no/such/python")
    after.sample(3)
    assert scrubs(after) == []
    state = after.modes.of("nvme").driver.state
    assert (state.mode, state.on_cluster) == ("auto", False)


def test_a_mode_that_begins_while_another_has_a_trial_leaves_that_alone() -> None:
    aboard = hybrid(HOPELESS.format("nvme"))
    mode = on_trial(aboard, "nvme")
    aboard.service.slo_commands.set(HOPELESS.format("hdd"), False, 1.0, "")
    aboard.sample(3)
    assert [each.aim.device_class for each in aboard.modes.all] == ["", "nvme", "hdd"]
    assert mode.driver.state.on_cluster
    assert scrubs(aboard) == ["osd.0"]


# what is shown


def test_recommend_asks_for_the_class_where_there_are_several() -> None:
    aboard = hybrid("client.p95_ms{class=nvme}<=80", "client.p95_ms{class=hdd}<=80")
    with pytest.raises(InputError, match="--device-class hdd or nvme"):
        aboard.service.recommend()


def test_what_is_exported_says_which_class_it_is_about() -> None:
    from tuner.exposition import exposition

    aboard = hybrid("client.p95_ms{class=nvme}<=80")
    aboard.during(lambda: aboard.modes.switch("auto"))
    aboard.sample(4)
    text = exposition(aboard.modes._metrics())
    assert 'ceph_tuner_mode{mode="auto",device_class="nvme"} 1.0' in text
    assert 'ceph_tuner_mode{mode="auto"} 0.0' in text
    assert 'ceph_tuner_slo_bound{metric="client.p95_ms",kind="hard",device_class="nvme"} 0.08' in text
    assert 'ceph_tuner_operations_per_second{class="client",device_class="nvme"}' in text


@pytest.mark.parametrize(("osd", "ends"), [(2, False), (0, True)])
@pytest.mark.parametrize("severity", ["HEALTH_WARN", "HEALTH_ERR"])
def test_an_osd_that_fills_up_ends_trials_on_its_own_class_alone(osd: int, ends: bool, severity: str) -> None:
    aboard = hybrid(HOPELESS.format("nvme"))
    mode = on_trial(aboard, "nvme")
    name, words = ("OSD_FULL", "full") if severity == "HEALTH_ERR" else ("OSD_NEARFULL", "near full")
    detail = [{"message": f"osd.{osd} is {words}"}]
    aboard.mgr.status = severity
    aboard.mgr.checks = {name: {"severity": severity, "summary": {"count": 1}, "detail": detail, "muted": False}}
    aboard.sample(2)
    assert (mode.driver.state.phase != TRYING) is ends
    assert (scrubs(aboard) == []) is ends
