from __future__ import annotations

import struct
from pathlib import Path
from typing import Dict, Union

import pytest

from ceph_tuner.doctor import examine_host, read_host
from ceph_tuner.doctor.facts import HostFacts

CPU = "sys/devices/system/cpu"
TREE: Dict[str, Union[str, bytes]] = {
    f"{CPU}/cpu0/cpuidle/state0/name": "POLL\n",
    f"{CPU}/cpu0/cpuidle/state0/latency": "0\n",
    f"{CPU}/cpu0/cpuidle/state0/disable": "0\n",
    f"{CPU}/cpu0/cpuidle/state1/name": "C6\n",
    f"{CPU}/cpu0/cpuidle/state1/latency": "133\n",
    f"{CPU}/cpu0/cpuidle/state1/disable": "1\n",
    f"{CPU}/cpu0/cpufreq/scaling_governor": "performance\n",
    f"{CPU}/cpu1/cpufreq/scaling_governor": "powersave\n",
    f"{CPU}/cpu1/cpufreq/energy_performance_preference": "performance\n",
    "sys/kernel/iommu_groups/0/type": "identity\n",
    "dev/cpu_dma_latency": struct.pack("<i", 2_000_000_000),
    "proc/7/comm": "ceph-osd\n",
    "proc/7/maps": "7f00-7f01 r-xp 00000000 08:01 1 /usr/lib/x86_64-linux-gnu/libtcmalloc.so.4.5.16\n",
    "proc/7/environ": "HOME=/\0TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES=134217728\0",
    "proc/8/comm": "bash\n",
    "proc/8/maps": "7f00-7f01 r-xp 00000000 08:01 1 /usr/lib/libc.so.6\n",
}


def host(root: Path, changes: Dict[str, Union[str, bytes]]) -> HostFacts:
    for name, text in {**TREE, **changes}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_host(root)


def test_a_host_set_up_for_osds_has_no_finding(tmp_path: Path) -> None:
    facts = host(tmp_path, {})
    assert facts.cpus == 2
    assert facts.allocators == {7: "tcmalloc"}
    assert examine_host(facts) == []


@pytest.mark.parametrize(
    ("changes", "check", "said"),
    [
        ({f"{CPU}/cpu0/cpuidle/state1/disable": "0\n"}, "c-states", "C6: 133 µs"),
        ({f"{CPU}/cpu0/cpufreq/scaling_governor": "powersave\n"}, "cpu-governor", "1 CPUs: governor powersave"),
        (
            {f"{CPU}/cpu1/cpufreq/energy_performance_preference": "balance_performance\n"},
            "cpu-governor",
            "powersave/balance_performance",
        ),
        ({"sys/kernel/iommu_groups/1/type": "DMA-FQ\n"}, "iommu", "1 groups of devices are of type DMA-FQ"),
        ({"proc/7/maps": "7f00-7f01 r-xp 0 08:01 1 /usr/lib/libc.so.6\n"}, "allocator", "process 7: libc"),
        ({"proc/7/environ": "HOME=/\0"}, "thread-cache", "process 7: not set"),
        (
            {"proc/7/environ": "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES=33554432\0"},
            "thread-cache",
            "process 7: 33554432",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_fault_of_a_host_is_found(tmp_path: Path, changes: Dict[str, str], check: str, said: str) -> None:
    (found,) = examine_host(host(tmp_path, changes))
    assert found.check == check
    assert said in found.evidence[0]


def test_a_deep_state_that_somebody_holds_off_is_no_finding(tmp_path: Path) -> None:
    changes = {f"{CPU}/cpu0/cpuidle/state1/disable": "0\n", "dev/cpu_dma_latency": struct.pack("<i", 1)}
    assert examine_host(host(tmp_path, changes)) == []


def test_a_host_without_osds_and_an_empty_tree_say_so(tmp_path: Path) -> None:
    facts = read_host(tmp_path)
    assert examine_host(facts) == []
    assert facts.notes == ("no OSD runs on this host: its allocator was not looked at",)


def test_this_machine_can_be_read() -> None:
    facts = read_host()
    assert facts.cpus >= 1
    assert all(share is None or 0 <= share <= 1 for share in (found.share for found in examine_host(facts)))
