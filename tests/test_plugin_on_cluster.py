"""The plugin inside the real mgr of both releases: installed, asked, measured, broken, taken out."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from contextlib import closing, suppress
from typing import Any, Dict, Iterator, List

import pytest

from ceph_lab.cluster import Lab
from ceph_tuner.cluster import open_cluster
from ceph_tuner.cluster.plugin import Plugin
from ceph_tuner.cluster.sampler import ClusterSampler, observe
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.errors import CommandFailed, TunerError
from ceph_tuner.shipped.plugin_files import LIBRARY, MODULE
from config_dump import config_dump
from lab_plugin import with_plugin

_FIO = (
    "name=w ioengine=rbd clientname=admin pool=rbd rbdname=plugin rw=randrw rwmixread=25 bs=8k iodepth=8 "
    "rate_iops=20,60 time_based runtime=35"
)

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def loaded(any_lab: Lab) -> Iterator[Lab]:
    """A lab with this tree's plugin loaded; taken out with everything it stored, unless it was there before."""
    with with_plugin(any_lab):
        yield any_lab
        with suppress(TunerError):
            any_lab.run(["ceph", "tuner", "rollback", "--all", "--yes"])


def tuner(lab: Lab, *words: str, payload: Any = None) -> Any:
    """A command's answer as a document."""
    given = ["-i", "-"] if payload is not None else []
    text = None if payload is None else json.dumps(payload)
    return json.loads(lab.run(["ceph", "tuner", *words, *given, "--format", "json"], text))


def fresh_status(lab: Lab) -> Dict[str, Any]:
    """A status with a sample that is younger than the call."""
    deadline = time.monotonic() + 40
    while time.monotonic() < deadline:
        found: Dict[str, Any] = tuner(lab, "status")
        if found["window"] is not None and found["sampling"]["age"] < 10:
            return found
        time.sleep(1)
    raise AssertionError("no sample within 40 s")


def test_the_module_loads_and_ceph_has_no_complaint_about_it(loaded: Lab) -> None:
    found = fresh_status(loaded)
    assert found["capacity"]
    assert found["in_force"]["settings"]["osd_mclock_profile"]
    checks = loaded.json(["ceph", "health", "detail"])["checks"]
    assert not [check for check in checks.values() if MODULE in json.dumps(check)]
    assert LIBRARY not in loaded.run(["ceph", "mgr", "module", "ls"])
    plain = loaded.run(["ceph", "tuner", "status"])
    assert "client " in plain
    assert "profile in force" in plain


def test_a_calendar_is_shown_before_it_is_set_and_its_policy_holds(loaded: Lab) -> None:
    always = {"name": "always", "hours": "mon-sun", "objectives": ["client.p95_ms <= 900 ms"]}
    slo = {"name": "lab", "objectives": ["client.p95_ms <= 1 ms"], "calendar": {"policies": [always]}}
    before = tuner(loaded, "slo", "ls")
    assert [each["policy"] for each in tuner(loaded, "slo", "set", payload=slo)["week"]["spells"]] == ["always"]
    assert tuner(loaded, "slo", "ls") == before
    try:
        assert tuner(loaded, "slo", "set", "--yes", payload=slo)["policy"]["name"] == "always"
        status = fresh_status(loaded)
        assert status["policy"]["name"] == "always"
        assert [verdict["objective"] for verdict in status["slo"]] == ["client.p95_ms <= 900 ms"]
        slo["calendar"]["zone"] = "Europe/Berlin"  # type: ignore[index]
        try:
            told = json.dumps(tuner(loaded, "slo", "set", payload=slo))
        except CommandFailed as refusal:
            told = str(refusal)
        # a mgr's host need not have time zones
        assert '"zone": "Europe/Berlin"' in told or "tzdata" in told
    finally:
        loaded.run(["ceph", "tuner", "slo", "rm", "all"])


def _regime(lab: Lab, wanted: str) -> Dict[str, Any]:
    """What is told of the whole cluster, once it is of that regime."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found: Dict[str, Any] = tuner(lab, "book", "show")
        (whole,) = [row for row in found["regimes"] if not row["scope"]] or [{"regime": ""}]
        if whole["regime"] == wanted:
            return found
        time.sleep(2)
    raise AssertionError(f"not {wanted}: {found}")


@pytest.mark.long_on_reef
def test_a_regime_begins_and_ends_with_the_work_and_is_in_the_history(loaded: Lab) -> None:
    fresh_status(loaded)
    marker = {"name": "writing", "metric": "client.write_iops", "enter": 5, "leave": 1, "hold_s": 5}
    tuner(loaded, "book", "bounds", payload={"markers": [marker], "dwell_s": 5})
    try:
        _regime(loaded, "idle")
        bench = ["rados", "bench", "-p", "rbd", "25", "write", "-b", "4096", "-t", "4"]
        with subprocess.Popen(loaded.argv(bench), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
            found = _regime(loaded, "writing")
        (whole,) = [row for row in found["regimes"] if not row["scope"]]
        assert whole["evidence"]["client.write_iops"] >= 5
        _regime(loaded, "idle")
        time.sleep(6)
        held = [row["name"] for row in tuner(loaded, "history")["timeline"] if row["kind"] == "regime"]
        assert held[-3:] == ["idle", "writing", "idle"]
        assert "writing" in loaded.run(["ceph", "tuner", "book", "show"])
    finally:
        loaded.run(["ceph", "tuner", "book", "bounds", "--default"])


@pytest.mark.long_on_reef
def test_client_rates_and_latencies_agree_with_what_fio_measures(loaded: Lab) -> None:
    loaded.run(["rbd", "create", "--size", "256M", "rbd/plugin"])
    try:
        command = ["fio", "--output-format=json", *(f"--{word}" for word in _FIO.split())]
        with subprocess.Popen(loaded.argv(command), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as fio:
            time.sleep(12)
            from_outside = _observe(loaded, 15)
            inside = tuner(loaded, "sample")["values"]
            measured = json.loads(fio.communicate()[0] or b"{}")["jobs"][0]
    finally:
        loaded.run(["rbd", "rm", "rbd/plugin"])
    for kind in ("read", "write"):
        rate, latency = measured[kind]["iops"], measured[kind]["clat_ns"]["mean"] / 1e6
        assert from_outside[f"client.{kind}_iops"] == pytest.approx(rate, rel=0.1)
        assert from_outside[f"client.{kind}_bytes_s"] == pytest.approx(rate * 8192, rel=0.15)
        # the OSD cannot see the client's own share
        assert from_outside[f"client.{kind}_mean_ms"] < latency * 1.3 + 0.5
        # a single sample of five seconds
        assert inside[f"client.{kind}_iops"] == pytest.approx(rate, rel=0.25)
    assert from_outside["client.p50_ms"] <= from_outside["client.p95_ms"] <= from_outside["client.p99_ms"]
    # one bucket is a factor of two
    true_p95 = measured["write"]["clat_ns"]["percentile"]["95.000000"] / 1e6
    assert from_outside["client.write_p95_ms"] < 2.2 * true_p95 + 1


@pytest.mark.long_on_reef
@pytest.mark.parametrize("lacking", [pytest.param(1, marks=pytest.mark.long), 2])
def test_what_recovery_is_seen_to_do_is_what_there_was_to_recover(loaded: Lab, lacking: int) -> None:
    """Objects that lack one copy, or two of their three: OSDs count objects, what is left counts copies."""
    osds = loaded.osds[-lacking:]
    loaded.run(["ceph", "osd", "set", "noout"])
    loaded.run(["ceph", "osd", "pool", "set", "rbd", "min_size", "1"])
    try:
        for osd in osds:
            loaded.stop_osd(osd)
            loaded.wait_osd(osd, up=False)
        loaded.run(
            [
                "rados",
                "-p",
                "rbd",
                "bench",
                "30",
                "write",
                "-b",
                "256K",
                "-t",
                "8",
                "--no-cleanup",
                "--max-objects",
                "300",
            ]
        )
        loaded.run(["ceph", "osd", "set", "norecover"])
        for osd in osds:
            loaded.start_osd(osd)
            loaded.wait_osd(osd, up=True)
        _wait(lambda: _sample(loaded).get("recovery.objects_left", 0) > 0)
        with closing(open_cluster(loaded.name)) as cluster:
            sampler = ClusterSampler(cluster.commander, SystemClock())
            # with less than its 15 s behind it, a decrease counts for as much as the whole time that is known
            found = 0.0
            for _ in range(9):
                held = sampler.sample()
                found += held.values.get("recovery.copies_s", 0.0) * held.seconds if held is not None else 0.0
                time.sleep(2)
            # what the OSDs brought along is no recovery; an object of Ceph's own may be written to meanwhile
            assert found < 10
            assert _sample(loaded)["recovery.copies_s"] < 1
            left = _sample(loaded)["recovery.objects_left"]
            sampler.sample()
            loaded.run(["ceph", "osd", "unset", "norecover"])
            done, copies, size, remaining = 0.0, 0.0, 0.0, left
            deadline, finished = time.monotonic() + 60, 0.0
            # a decrease is seen for the 15 s and more of its trend
            while (remaining > 0 or time.monotonic() < finished + 20) and time.monotonic() < deadline + 20:
                time.sleep(2)
                sample = sampler.sample()
                assert sample is not None
                done += sample.values.get("recovery.objects_s", 0.0) * sample.seconds
                copies += sample.values.get("recovery.copies_s", 0.0) * sample.seconds
                size += sample.values.get("recovery.bytes_s", 0.0) * sample.seconds
                remaining = sample.values["recovery.objects_left"]
                finished = finished or (time.monotonic() if remaining == 0 else 0.0)
        assert remaining == 0
        assert left == pytest.approx(300 * lacking, rel=0.05)
        assert done == pytest.approx(left / lacking, rel=0.15)
        assert copies == pytest.approx(left, rel=0.15)
        assert size == pytest.approx(left * 262144, rel=0.15)
        _wait(lambda: _sample(loaded)["recovery.objects_left"] == 0)
        seen = fresh_status(loaded)["window"]
        inside = seen["measures"]["recovery.objects_s"][0] * (seen["end"] - seen["start"])
        assert inside == pytest.approx(left / lacking, rel=0.35)
    finally:
        for flag in ("norecover", "noout"):
            loaded.run(["ceph", "osd", "unset", flag])
        for osd in osds:
            with suppress(TunerError):
                loaded.start_osd(osd)
                loaded.wait_osd(osd, up=True)
        loaded.run(["ceph", "osd", "pool", "set", "rbd", "min_size", "2"])
        loaded.run(["rados", "-p", "rbd", "cleanup"])


def test_objectives_are_set_listed_judged_and_removed(loaded: Lab) -> None:
    assert [row["objective"] for row in tuner(loaded, "slo", "set", "client.p95_ms<=80")["objectives"]] == [
        "client.p95_ms <= 80 ms"
    ]
    tuner(loaded, "slo", "set", "recovery.bytes_s>=10MB/s", "--soft", "--priority", "2")
    assert [row["hard"] for row in tuner(loaded, "slo", "ls")["objectives"]] == [True, False]
    assert [row["objective"] for row in fresh_status(loaded)["slo"]] == [
        "client.p95_ms <= 80 ms",
        "recovery.bytes_s >= 10 MB/s",
    ]
    with pytest.raises(CommandFailed, match="less of it is better"):
        tuner(loaded, "slo", "set", "client.p95_ms>=80")
    with pytest.raises(CommandFailed, match="expected a metric with an objective"):
        tuner(loaded, "slo", "rm", "client.iops")
    document = {"name": "night", "objectives": ["scrub.bytes_s >= 5 MB/s"]}
    assert tuner(loaded, "slo", "set", payload=document)["name"] == "night"
    assert tuner(loaded, "slo", "rm", "all") is None


def test_a_profile_is_shown_before_it_is_written_and_taken_back_without_a_trace(loaded: Lab) -> None:
    before = config_dump(loaded)
    shown = tuner(loaded, "profile", "apply", "high_client_ops")
    assert not shown["applied"]
    assert config_dump(loaded) == before
    assert tuner(loaded, "profile", "apply", "high_client_ops", "--yes")["applied"]
    assert fresh_status(loaded)["in_force"]["settings"]["osd_mclock_profile"] == "high_client_ops"
    assert tuner(loaded, "history")["changes"][-1]["state"] == "applied"
    assert tuner(loaded, "rollback")["would"]
    assert config_dump(loaded) != before
    assert tuner(loaded, "rollback", "--yes")["undone"]
    assert config_dump(loaded) == before


def test_a_profile_is_exported_and_imported_and_nonsense_is_refused(loaded: Lab) -> None:
    exported = tuner(loaded, "profile", "export")
    exported.update(name="taken", built_in=False)
    exported["settings"]["osd_mclock_scheduler_client_res"] = 0.4
    assert tuner(loaded, "profile", "import", payload=exported)["name"] == "taken"
    assert "taken" in [row["name"] for row in tuner(loaded, "profile", "ls")]
    assert tuner(loaded, "profile", "show", "taken")["settings"]["osd_mclock_scheduler_client_res"] == 0.4
    exported["settings"]["osd_mclock_scheduler_client_res"] = 4
    with pytest.raises(CommandFailed, match="osd_mclock_scheduler_client_res"):
        tuner(loaded, "profile", "import", payload=exported)


def test_why_sees_all_that_it_judges_by_from_inside_a_mgr(loaded: Lab) -> None:
    found = tuner(loaded, "why", "--seconds", "3")
    assert (found["asked"], found["not_judged"]) == (list(loaded.osds), [])
    assert len(found["looked_for"]) == 19
    plain = loaded.run(["ceph", "tuner", "why", "--pool", "rbd", "--seconds", "3"])
    assert "holds work now" in plain


def test_reading_needs_read_capability_only_and_writing_needs_more(loaded: Lab) -> None:
    loaded.run(
        ["ceph", "auth", "get-or-create", "client.reader", "mon", "allow r", "mgr", "allow r", "-o", "/lab/reader"]
    )
    try:
        reader = ["ceph", "-n", "client.reader", "-k", "/lab/reader", "tuner"]
        for words in (["status"], ["sample"], ["slo", "ls"], ["history"], ["profile", "ls"], ["profile", "export"]):
            assert loaded.run([*reader, *words])
        for words in (["slo", "rm", "all"], ["rollback", "--yes"], ["profile", "apply", "balanced", "--yes"]):
            with pytest.raises(TunerError, match=r"(?i)access denied|capabilit"):
                loaded.run([*reader, *words])
    finally:
        loaded.run(["ceph", "auth", "rm", "client.reader"])


@pytest.mark.long_on_reef
@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("worker_python", "/no/such/python", "cannot be started"),
        ("worker_python", "/bin/false", "no answer"),
        ("worker_python", "/lab/hang", "worker_timeout"),
    ],
)
def test_a_broken_worker_costs_a_message_and_a_health_check_never_the_mgr(
    loaded: Lab, option: str, value: str, words: str
) -> None:
    hang = loaded.host_path("/lab/hang")
    hang.write_text("#!/bin/sh\nsleep 100\n")
    hang.chmod(0o755)
    tuner(loaded, "slo", "set", "client.p95_ms<=80")
    gid = loaded.json(["ceph", "mgr", "dump"])["active_gid"]
    try:
        for name, text in ((option, value), ("worker_timeout", "2")):
            loaded.run(["ceph", "config", "set", "mgr", f"mgr/tuner/{name}", text])
        time.sleep(1)
        with pytest.raises(TunerError, match=words):
            tuner(loaded, "recommend")
        _wait(lambda: "TUNER_WORKER_FAILED" in loaded.json(["ceph", "health"])["checks"], 20)
        assert loaded.json(["ceph", "mgr", "dump"])["active_gid"] == gid
        assert fresh_status(loaded)
    finally:
        for name, default in ((option, "python3"), ("worker_timeout", "60")):
            # a running mgr does not notice the removal alone
            loaded.run(["ceph", "config", "set", "mgr", f"mgr/tuner/{name}", default])
            loaded.run(["ceph", "config", "rm", "mgr", f"mgr/tuner/{name}"])
        tuner(loaded, "slo", "rm", "all")
        hang.unlink()


def test_a_working_worker_gives_a_proposal_and_its_commands(loaded: Lab) -> None:
    tuner(loaded, "slo", "set", "client.p95_ms<=80")
    try:
        found = _ask_until_done(loaded)
    finally:
        tuner(loaded, "slo", "rm", "all")
    assert found["proposal"]["settings"]["osd_mclock_scheduler_client_wgt"] >= 1
    written = [command.split()[4] for command in found["commands"]]
    # what the database has already is not written again
    assert set() < set(written) <= {*found["proposal"]["moves"], "osd_mclock_profile"}
    # a profile comes first: the nine act under a custom one alone
    assert "osd_mclock_profile" not in written[1:]
    assert found["capacity"]["total_iops"] > 0
    _wait(lambda: "TUNER_WORKER_FAILED" not in loaded.json(["ceph", "health"])["checks"], 20)


def test_objectives_and_windows_survive_a_new_mgr(loaded: Lab) -> None:
    tuner(loaded, "slo", "set", "client.p99_ms<=200")
    _wait(lambda: bool(tuner(loaded, "history")["windows"]), 90)
    before = tuner(loaded, "history")["windows"][-1]
    gid = loaded.json(["ceph", "mgr", "dump"])["active_gid"]
    loaded.run(["ceph", "mgr", "fail"])
    _wait(lambda: loaded.json(["ceph", "mgr", "dump"])["active_gid"] not in (gid, 0), 60)
    _wait(lambda: _answers(loaded), 60)
    assert tuner(loaded, "slo", "ls")["objectives"][0]["objective"] == "client.p99_ms <= 200 ms"
    assert before in tuner(loaded, "history", "100")["windows"]
    assert fresh_status(loaded)
    tuner(loaded, "slo", "rm", "all")


@pytest.mark.parametrize("any_lab", ["tentacle"], indirect=True)  # the one that has two mgrs
def test_a_standby_mgr_takes_over_with_objectives_windows_and_the_journal(loaded: Lab) -> None:
    tuner(loaded, "slo", "set", "client.p99_ms<=300")
    tuner(loaded, "profile", "apply", "high_client_ops", "--yes")
    _wait(lambda: bool(tuner(loaded, "history")["windows"]), 90)
    window = tuner(loaded, "history")["windows"][-1]
    changed = config_dump(loaded)
    active = loaded.json(["ceph", "mgr", "dump"])["active_name"]
    pid = loaded.daemon_pid(f"mgr.{active}")
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    try:
        _wait(lambda: loaded.json(["ceph", "mgr", "dump"])["active_name"] not in ("", active), 90)
        _wait(lambda: _answers(loaded), 60)
        assert tuner(loaded, "slo", "ls")["objectives"][0]["objective"] == "client.p99_ms <= 300 ms"
        assert window in tuner(loaded, "history", "100")["windows"]
        assert config_dump(loaded) == changed
        # the change that the first mgr made is taken back by the second
        tuner(loaded, "rollback", "--yes")
        assert "osd_mclock_profile" not in config_dump(loaded)[0]
    finally:
        loaded.start_daemon(f"mgr.{active}")
        tuner(loaded, "slo", "rm", "all")


def test_commands_in_quick_succession_do_not_kill_the_mgr(loaded: Lab) -> None:
    """Reef's mgr died of a command whose thread ended while another thread still used its state."""
    gid = loaded.json(["ceph", "mgr", "dump"])["active_gid"]
    program = (
        "import json,rados,time\n"
        "c=rados.Rados(conffile=''); c.conf_read_file(); c.connect(timeout=10); end=time.time()+8; n=0\n"
        "while time.time()<end:\n"
        "    for p in ('status','slo ls','profile ls','history','profile export'):\n"
        "        r=c.mgr_command(json.dumps({'prefix':'tuner '+p}),b'',timeout=20); assert r[0]==0,r; n+=1\n"
        "print(n)"
    )
    assert int(loaded.run(["python3", "-c", program])) > 30
    assert loaded.json(["ceph", "mgr", "dump"])["active_gid"] == gid


def test_the_plugin_is_taken_out_without_a_trace(loaded: Lab) -> None:
    loaded.run(["ceph", "config", "set", "mgr", "mgr/tuner/sample_interval", "3"])
    tuner(loaded, "slo", "set", "client.p95_ms<=80")
    with closing(open_cluster(loaded.name)) as cluster:
        plugin = Plugin(cluster, SystemClock())
        plugin.uninstall(purge=True)
        assert "mgr/tuner" not in config_dump(loaded)[0]
        assert cluster.store.keys("") == []
        assert not (loaded.mgr_modules / MODULE).exists()
        assert not (loaded.mgr_modules / LIBRARY).exists()
        _wait(lambda: plugin.status().running is None, 60)
        assert MODULE not in loaded.json(["ceph", "mgr", "dump"])["modules"]
        plugin.install()
        assert plugin.status().running == plugin.status().ours


def _observe(lab: Lab, seconds: float) -> Dict[str, float]:
    with closing(open_cluster(lab.name)) as cluster:
        window, _ = observe(ClusterSampler(cluster.commander, SystemClock()), SystemClock(), seconds)
    assert window is not None
    return {name: measure.mean for name, measure in window.measures.items()}


def _sample(lab: Lab) -> Dict[str, float]:
    try:
        values: Dict[str, float] = tuner(lab, "sample")["values"]
    except TunerError:
        return {}
    return values


def _ask_until_done(lab: Lab) -> Any:
    """The recommendation; a slow worker's is there when asked again."""
    found, deadline = _recommendations(lab), time.monotonic() + 75
    while not found:
        assert time.monotonic() < deadline, "no recommendation in time"
        found = _recommendations(lab)
    return found[0]


def _recommendations(lab: Lab) -> List[Any]:
    try:
        return [tuner(lab, "recommend")]
    except TunerError as error:
        if "at work" not in str(error):
            raise
        return []


def _answers(lab: Lab) -> bool:
    try:
        tuner(lab, "slo", "ls")
    except TunerError:
        return False
    return True


def _wait(condition: Any, seconds: float = 40.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not come about in time"
        time.sleep(1)
