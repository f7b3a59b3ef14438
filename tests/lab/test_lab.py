"""The lab itself, on real clusters."""

from __future__ import annotations

import json
import os
import random
import signal
import struct
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest

from ceph_lab.bringup import up
from ceph_lab.capacity import BENCH
from ceph_lab.chroot import discard_unfinished
from ceph_lab.cluster import Lab
from ceph_lab.mounts import mounted_below
from ceph_lab.places import LabPlaces
from ceph_lab.processes import run
from ceph_lab.status import lab_status
from ceph_lab.teardown import down, remains
from ceph_tuner.core.errors import CommandFailed, InputError
from config_dump import config_dump, osd_config
from slow_drive import DRIVE
from waiting import until

BANDWIDTH = DRIVE.data.sequential_bandwidth
"""Bytes a second."""

PROGRAM = [sys.executable, "-c", "from ceph_tuner_cli.main import main; main()", "lab"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def program(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *arguments], capture_output=True, text=True, env=ENVIRONMENT, check=False, timeout=180
    )


def traces(name: str) -> List[str]:
    """What the machine shows of a lab, found by other means than the lab's own."""
    directory = f"/var/lib/ceph-tuner/labs/{name}"
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    loops = subprocess.run(["losetup", "-a"], capture_output=True, text=True, check=True).stdout.splitlines()
    groups = [str(path) for path in Path("/sys/fs/cgroup").rglob(f"*{name}*")]
    found = [line for line in [*mounts, *loops] if directory in line]
    for process in Path("/proc").glob("[0-9]*"):
        try:
            told = (process / "environ").read_bytes() + (process / "cmdline").read_bytes()
        except OSError:
            continue
        # not ourselves and our like, whose arguments may name the lab
        if directory.encode() in told:
            found.append(str(process))
    return [*found, *groups, *map(str, Path("/var/lib/ceph-tuner/labs").glob(f"*{name}*"))]


@pytest.fixture
def spare_name(needs_lab: None) -> Iterator[str]:
    name = f"test-{os.getpid()}-spare"
    yield name
    down(name, lambda line: None)


def test_both_releases_run_side_by_side(tentacle_lab: Lab, reef_lab: Lab) -> None:
    for lab, release in ((tentacle_lab, "tentacle"), (reef_lab, "reef")):
        # another test may have restarted the mgr, which tells its version once its modules are loaded
        until(partial(all_tell_one_version, lab), 60, partial(versions, lab))
        assert all(release in version for version in versions(lab))
    assert len({lab.run(["ceph", "fsid"]) for lab in (tentacle_lab, reef_lab)}) == 2


def all_tell_one_version(lab: Lab) -> bool:
    return list(versions(lab).values()) == [daemons_of(lab)]


def versions(lab: Lab) -> Dict[str, int]:
    return dict(lab.json(["ceph", "versions"])["overall"])


def test_a_lab_is_healthy_but_for_the_scrub_flags_and_clean(any_lab: Lab) -> None:
    def calm() -> bool:
        status = any_lab.json(["ceph", "status"])
        states = {state["state_name"] for state in status["pgmap"]["pgs_by_state"]}
        # another test may have let an OSD hang, and heartbeats are remembered for a quarter of an hour
        checks = {name for name in status["health"]["checks"] if not name.startswith("OSD_SLOW_PING_TIME")}
        return checks == {"OSDMAP_FLAGS"} and states == {"active+clean"}

    until(calm, 60, lambda: any_lab.run(["ceph", "health", "detail"]))
    assert {"noscrub", "nodeep-scrub"} <= set(any_lab.json(["ceph", "osd", "dump"])["flags_set"])


def test_each_osd_holds_the_capacity_and_is_a_host(any_lab: Lab) -> None:
    tree = any_lab.json(["ceph", "osd", "tree"])["nodes"]
    assert {node["name"]: node["children"] for node in tree if node["type"] == "host"} == {
        "h0": [0],
        "h1": [1],
        "h2": [2],
    }
    for osd in any_lab.osds:
        values = osd_config(any_lab, osd)
        # the queues that operators have
        assert (values["osd_op_num_shards"], values["osd_op_num_shards_ssd"]) == ("0", "8")
        assert float(values["osd_mclock_max_sequential_bandwidth_ssd"]) == BANDWIDTH
        stated = DRIVE.bench_iops[any_lab.release]
        assert float(values["osd_mclock_max_capacity_iops_ssd"]) == any_lab.state.capacity_iops == stated


def benched(lab: Lab, osd: int, *words: str) -> Dict[str, float]:
    found: Dict[str, float] = json.loads(
        lab.run(["ceph", "tell", f"osd.{osd}", *(words or BENCH), "--format", "json"], timeout=180)
    )
    return found


def test_the_drive_decides_what_an_osd_does(any_lab: Lab) -> None:
    # a busy machine takes away; nothing adds
    stated = DRIVE.bench_iops[any_lab.release]
    assert 0.4 * stated < benched(any_lab, 0)["iops"] < 1.1 * stated
    large = benched(any_lab, 0, "bench", "157286400", "4194304")["bytes_per_sec"]
    assert 0.5 * BANDWIDTH < large < 1.1 * BANDWIDTH


def test_in_haste_the_drive_takes_no_time_and_a_time_again_afterwards(tentacle_lab: Lab) -> None:
    words = ("bench", "104857600", "4194304")
    with tentacle_lab.in_haste():
        quick = benched(tentacle_lab, 0, *words)["bytes_per_sec"]
    assert quick > 1.5 * BANDWIDTH
    assert benched(tentacle_lab, 0, *words)["bytes_per_sec"] < 1.1 * BANDWIDTH


def test_an_osd_starts_in_haste_and_no_other_one_is(tentacle_lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def hurried() -> List[str]:
        files = sorted((tentacle_lab.places.shared / "drives").glob("haste*"))
        return [file.name for file in files if struct.unpack("=d", file.read_bytes())[0] > time.monotonic()]

    def start(*arguments: Any, **named: Any) -> str:
        if named.get("title", [""])[0] == "ceph-osd":
            until(hurried)
            seen.extend(hurried())
        return run(*arguments, **named)

    seen: List[str] = []
    monkeypatch.setattr("ceph_lab.cluster.run", start)
    tentacle_lab.stop_osd(1)
    tentacle_lab.start_osd(1)
    tentacle_lab.wait_osd(1, up=True)
    assert seen == ["haste.osd.1"]
    assert not hurried()


def test_a_masked_option_reaches_the_osd_of_that_host_alone(any_lab: Lab) -> None:
    before = config_dump(any_lab)
    any_lab.run(["ceph", "config", "set", "osd/host:h1", "osd_max_scrubs", "7"])
    try:
        shown = [lambda osd=osd: any_lab.run(["ceph", "config", "show", f"osd.{osd}", "osd_max_scrubs"]).strip()
                 for osd in any_lab.osds]  # fmt: skip
        until(lambda: shown[1]() == "7")
        assert "7" not in (shown[0](), shown[2]())
    finally:
        any_lab.run(["ceph", "config", "rm", "osd/host:h1", "osd_max_scrubs"])
    assert config_dump(any_lab) == before


def test_an_osd_stops_and_starts_again_on_its_drive(any_lab: Lab) -> None:
    any_lab.run(["ceph", "osd", "set", "noout"])
    try:
        any_lab.stop_osd(2)
        assert any_lab.daemon_pid("osd.2") is None
        any_lab.stop_osd(2)
        any_lab.start_osd(2)
        pid = any_lab.daemon_pid("osd.2")
        any_lab.start_osd(2)
        assert pid is not None
        assert any_lab.daemon_pid("osd.2") == pid
        assert "/lab/drives/drive.so" in Path(f"/proc/{pid}/maps").read_text()
    finally:
        any_lab.run(["ceph", "osd", "unset", "noout"])
    with pytest.raises(InputError, match=r"no osd.3, expected osd.0 to osd.2"):
        any_lab.stop_osd(3)


def test_a_daemon_that_died_is_shown_and_started_by_a_second_up(tentacle_lab: Lab) -> None:
    pid = tentacle_lab.daemon_pid("osd.1")
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    until(lambda: tentacle_lab.daemon_pid("osd.1") is None)
    daemons = {each["name"]: each["pid"] for each in lab_status(tentacle_lab.name)["daemons"]}
    assert [name for name, running in daemons.items() if running is None] == ["osd.1"]
    said: List[str] = []
    assert up(tentacle_lab.name, {}, said.append) == tentacle_lab
    assert said == [f"lab {tentacle_lab.name} is up already: starting osd.1 again"]
    assert tentacle_lab.daemon_pid("osd.1") not in (None, pid)


def test_a_second_up_with_other_options_is_refused(tentacle_lab: Lab) -> None:
    again = program("up", "--name", tentacle_lab.name, "--osds", "3")
    assert again.returncode == 0, again.stderr
    assert "is up already" in again.stderr
    for words, seen in (
        (["--osds", "4"], "found it running with osds 3, expected osds 4"),
        (["--drive", "hdd"], "found it running with drive slow-nvme, expected drive hdd"),
        (["--iops", "900"], "drive slow-nvme, expected iops 900, drive throttle"),
        (["--shards", "2"], "found it running with shards 0, expected shards 2"),
    ):
        other = program("up", "--name", tentacle_lab.name, *words)
        assert (other.returncode, seen in other.stderr) == (2, True), other.stderr


def test_a_command_s_exit_code_and_streams_are_the_lab_s_answer(any_lab: Lab) -> None:
    ran = program("exec", "--name", any_lab.name, "--", "sh", "-c", "ceph fsid; echo words >&2; exit 3")
    assert (ran.returncode, ran.stdout.strip()) == (3, any_lab.state.fsid)
    assert ran.stderr.strip() == "words"
    with pytest.raises(CommandFailed, match="failed with 3: words"):
        any_lab.run(["sh", "-c", "echo words >&2; exit 3"])


def test_a_signal_reaches_the_command_in_the_lab(any_lab: Lab) -> None:
    with subprocess.Popen(any_lab.argv(["sleep", "300"])) as process:
        until(lambda: Path(f"/proc/{process.pid}/comm").read_text() == "sleep\n")
        process.terminate()
        assert process.wait(5) == -signal.SIGTERM


def test_files_of_the_lab_are_found_from_the_host_and_the_chroot_stays_as_built(any_lab: Lab) -> None:
    assert any_lab.host_path(any_lab.conf).read_text().startswith("[global]")
    any_lab.run(["sh", "-c", "echo mine >/root/note; echo ours >/lab/note"])
    assert any_lab.host_path("/root/note").read_text() == "mine\n"
    assert any_lab.host_path("/lab/note").read_text() == "ours\n"
    assert not (Path(any_lab.state.chroot) / "root/note").exists()
    assert not (Path(any_lab.state.chroot) / "lab/note").exists()
    # nothing of the lab is mounted where the host can see it, but the memory that devices and monitors lie in
    in_memory = [any_lab.places.devices, any_lab.places.monitors] if any_lab.state.options.storage == "ram" else []
    assert set(mounted_below(any_lab.places.directory)) == set(in_memory)


def test_a_module_put_into_the_lab_is_loaded_by_the_mgr(any_lab: Lab) -> None:
    module = any_lab.mgr_modules / "probe"
    module.mkdir()
    text = "from mgr_module import MgrModule\n\n\nclass Module(MgrModule):\n    pass\n"
    (module / "module.py").write_text(text)
    (module / "__init__.py").write_text("from .module import Module\n")
    try:
        restart_mgr(any_lab)

        def enabled() -> bool:
            try:
                any_lab.run(["ceph", "mgr", "module", "enable", "probe"])
            except CommandFailed:
                # the mgr has not told the monitors of its modules yet
                return False
            return True

        until(enabled, 60)
        any_lab.run(["ceph", "mgr", "module", "disable", "probe"])
    finally:
        for file in module.glob("*.py"):
            file.unlink()
        subprocess.run(["rm", "-r", str(module)], check=True)
        restart_mgr(any_lab)


def daemons_of(lab: Lab) -> int:
    """One monitor, and as many mgrs and OSDs as it was asked for."""
    return 1 + len(lab.mgrs) + len(lab.osds)


def restart_mgr(lab: Lab) -> None:
    for mgr in lab.mgrs:
        lab.stop_daemon(f"mgr.{mgr}")
    for mgr in lab.mgrs:
        lab.start_daemon(f"mgr.{mgr}")
    until(lambda: bool(lab.json(["ceph", "mgr", "stat"])["available"]), 60)


def test_status_tells_programs_and_people(tentacle_lab: Lab) -> None:
    told = json.loads(program("status", "--name", tentacle_lab.name, "--format", "json").stdout)
    assert (told["phase"], told["release"], told["options"]["groups"]) == ("up", "tentacle", "3xslow-nvme")
    assert all(daemon["pid"] for daemon in told["daemons"])
    every = json.loads(program("status", "--format", "json").stdout)
    assert told["name"] in [lab["name"] for lab in every]
    assert tentacle_lab.name in program("status").stdout
    missing = program("status", "--name", "no-such-lab")
    assert (missing.returncode, missing.stderr.count("\n")) == (2, 1)


@pytest.mark.parametrize(
    "moment", [moment if moment in (1, 4) else pytest.param(moment, marks=pytest.mark.long) for moment in range(6)]
)
def test_a_killed_up_is_cleared_away_by_down(spare_name: str, moment: int, tentacle_lab: Lab) -> None:
    # an up takes about 15 s on two cores; the seed makes a failure repeat
    seconds = random.Random(moment).uniform(0, 2.5) + 2.5 * moment
    release = ("tentacle", "reef")[moment % 2]
    with subprocess.Popen(
        [*PROGRAM, "up", "--name", spare_name, "--release", release],
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        time.sleep(seconds)
        process.kill()
    result = program("down", "--name", spare_name)
    assert result.returncode == 0, f"killed after {seconds:.1f} s: {result.stderr}"
    assert traces(spare_name) == [], f"killed after {seconds:.1f} s"
    # the neighbour was not touched
    assert len(tentacle_lab.daemons()) == daemons_of(tentacle_lab)


def test_a_killed_build_of_a_chroot_is_cleared_away_by_down(spare_name: str, tmp_path: Path) -> None:
    environment = {**ENVIRONMENT, "XDG_CACHE_HOME": str(tmp_path)}
    chroots = tmp_path / "ceph-tuner/chroots"
    with subprocess.Popen(
        [*PROGRAM, "up", "--name", spare_name], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        until(lambda: bool(list(chroots.glob(".*.unfinished/*"))))
        process.kill()
    subprocess.run([*PROGRAM, "down", "--name", spare_name], env=environment, check=True, capture_output=True)
    assert traces(spare_name) == []
    assert str(tmp_path) not in Path("/proc/self/mountinfo").read_text()
    assert [path.suffix for path in chroots.iterdir()] == [".log"]


def test_an_interrupted_up_leaves_nothing(spare_name: str, tentacle_lab: Lab) -> None:
    with subprocess.Popen(
        [*PROGRAM, "up", "--name", spare_name], env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        until(lambda: "osd.1" in " ".join(traces_of_images(spare_name)))
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        _, words = process.communicate(timeout=60)
    assert process.returncode == 130, words.decode()
    assert b"Traceback" not in words
    assert traces(spare_name) == []


def traces_of_images(name: str) -> List[str]:
    return [path.name for path in LabPlaces(name).devices.glob("*.img")]


def test_after_a_crash_up_starts_anew(spare_name: str, tentacle_lab: Lab) -> None:
    process = subprocess.Popen(
        [*PROGRAM, "up", "--name", spare_name], env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    with process:
        until(lambda: bool(traces_of_images(spare_name)))
        process.kill()
    said: List[str] = []
    lab = up(spare_name, {"osds": 1, "mgrs": 2}, said.append)
    assert said[0] == f"lab {spare_name} was left behind by a crash or a reboot: starting anew"
    assert list(lab.daemons()) != []
    assert {"mgr.x", "mgr.y", "osd.0", "mon.a"} == set(lab.daemons())
    assert down(spare_name, said.append)
    assert traces(spare_name) == []
    assert remains(LabPlaces(spare_name)) == []
    assert not down(spare_name, said.append)


def test_taking_down_what_is_not_there_says_so(needs_lab: None) -> None:
    result = program("down", "--name", "no-such-lab")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == "there is no lab no-such-lab: nothing to take down\n"


def test_finished_chroots_are_no_unfinished_ones(any_lab: Lab) -> None:
    said: List[Any] = []
    discard_unfinished(said.append)
    assert said == []
    assert Path(any_lab.state.chroot).is_dir()


@pytest.mark.long
def test_the_kernel_s_throttle_is_still_a_drive(spare_name: str) -> None:
    words = ["--drive", "throttle", "--osds", "1", "--iops", "300", "--bandwidth", "20MiB"]
    brought = program("up", "--name", spare_name, *words)
    assert brought.returncode == 0, brought.stderr
    lab = Lab.open(spare_name)
    pid = lab.daemon_pid("osd.0")
    assert f"ceph-tuner.{spare_name}.osd.0" in Path(f"/proc/{pid}/cgroup").read_text()
    assert "/lab/drives/drive.so" not in Path(f"/proc/{pid}/maps").read_text()
    assert benched(lab, 0)["iops"] < 330
    large = benched(lab, 0, "bench", "104857600", "4194304")["bytes_per_sec"]
    assert large < 1.25 * (20 << 20)
    assert osd_config(lab, 0)["osd_op_num_shards"] == "1"


@pytest.mark.long
def test_two_device_classes_have_their_options_their_pools_and_their_speed(spare_name: str) -> None:
    brought = program("up", "--name", spare_name, "--osds", "1xnvme,1xhybrid:archive", "--size", "1", "--shards", "4")
    assert brought.returncode == 0, brought.stderr
    lab = Lab.open(spare_name)
    assert lab.classes == {"ssd": [0], "archive": [1]}
    tree = {node["id"]: node for node in lab.json(["ceph", "osd", "tree"])["nodes"]}
    assert [tree[osd]["device_class"] for osd in (0, 1)] == ["ssd", "archive"]
    facts = [lab.json(["ceph", "osd", "metadata", str(osd)]) for osd in (0, 1)]
    assert [fact["rotational"] for fact in facts] == ["0", "1"]
    # data on the disk, RocksDB and its log on flash
    assert (facts[1]["bluefs_dedicated_db"], facts[1]["bluefs_db_rotational"]) == ("1", "0")
    ssd, hdd = (osd_config(lab, osd) for osd in (0, 1))
    assert [values["osd_op_num_shards"] for values in (ssd, hdd)] == ["4", "4"]
    assert float(ssd["osd_mclock_max_capacity_iops_ssd"]) == lab.state.capacities["nvme"]
    assert float(hdd["osd_mclock_max_capacity_iops_hdd"]) == lab.state.capacities["hybrid"]
    pools = {pool["pool_name"]: pool for pool in lab.json(["ceph", "osd", "pool", "ls", "detail"])}
    assert {"rbd-ssd", "rbd-archive"} <= set(pools)
    placed = {
        name: {tuple(pg["acting"]) for pg in lab.json(["ceph", "pg", "ls-by-pool", name])["pg_stats"]}
        for name in ("rbd-ssd", "rbd-archive")
    }
    assert placed == {"rbd-ssd": {(0,)}, "rbd-archive": {(1,)}}
    # what else runs on the machine takes from the quicker drive first: each by its best
    flash, disk = (max(benched(lab, osd)["iops"] for _ in range(3)) for osd in (0, 1))
    assert disk < 0.75 * flash


@pytest.mark.long
def test_one_of_three_monitors_can_be_made_slow(spare_name: str) -> None:
    brought = program("up", "--name", spare_name, "--osds", "1", "--mons", "3", "--storage", "disk")
    assert brought.returncode == 0, brought.stderr
    lab = Lab.open(spare_name)
    assert sorted(lab.json(["ceph", "quorum_status"])["quorum_names"]) == ["a", "b", "c"]
    slowed = program("slow", "c", "--seconds", "0.5", "--name", spare_name)
    assert slowed.returncode == 0, slowed.stderr

    def seconds(*words: str) -> float:
        began = time.monotonic()
        lab.run(["ceph", *words], timeout=120)
        return time.monotonic() - began

    # it is the leader through whom every change goes
    leader = lab.json(["ceph", "quorum_status"])["quorum_leader_name"]
    program("slow", "c", "--seconds", "0", "--name", spare_name)
    program("slow", leader, "--seconds", "0.5", "--name", spare_name)
    seconds_slow = min(seconds("config", "set", "osd", "osd_max_scrubs", value) for value in ("2", "3", "4"))
    assert seconds_slow > 0.5
    program("slow", leader, "--seconds", "0", "--name", spare_name)
    time.sleep(2)
    quick = min(seconds("config", "set", "osd", "osd_max_scrubs", value) for value in ("5", "6", "7"))
    assert quick < seconds_slow
    refused = program("slow", "d", "--seconds", "1", "--name", spare_name)
    assert (refused.returncode, "expected one of a, b, c" in refused.stderr) == (2, True)
