"""What we say of each knob, held against an OSD and the monitors of every release that a lab can have."""

from __future__ import annotations

import errno
import json
import re
import time
from functools import partial
from typing import Any, Callable, Dict, Iterator, List, Optional

import pytest

from ceph_lab.cluster import Lab
from ceph_tuner.cluster import Cluster, open_cluster
from ceph_tuner.core.errors import CommandFailed, InputError
from ceph_tuner.core.knobs.catalogue import KNOBS, MCLOCK_NINE, PROFILE, Knob, knob
from ceph_tuner.core.knobs.cost import item_cost, scrub_item_bytes
from ceph_tuner.core.knobs.releases import BUILT_IN_PROFILES, Value, parse_version
from ceph_tuner.core.knobs.settings import settings_in_force
from ceph_tuner.core.profiles.in_force import hardware_of, profile_in_force
from config_dump import bring_back

OVERRIDE = "osd_mclock_override_recovery_settings"
NOBODY = "osd.4242"
"""No such OSD: its section of the configuration database reaches nobody."""

TYPES = {
    "int": {"int", "uint"},
    "size": {"size"},
    "float": {"float"},
    "fraction": {"float"},
    "bool": {"bool"},
    "categorical": {"str"},
}


@pytest.fixture(scope="module")
def cluster(any_lab: Lab) -> Iterator[Cluster]:
    opened = open_cluster(any_lab.name)
    yield opened
    opened.close()


def is_option(entry: Knob, cluster: Cluster) -> bool:
    """Whether the release has it as an option: some came with a point release, and a pool's properties are none."""
    return entry.scope != "pool" and entry.exists(cluster.release, parse_version(cluster.version))


@pytest.fixture(scope="module")
def helps(cluster: Cluster) -> Dict[str, Dict[str, Any]]:
    found = {}
    for name, entry in KNOBS.items():
        if is_option(entry, cluster):
            found[name] = json.loads(cluster.commander.mon("config help", {"key": name}))
    return found


@pytest.fixture
def clean(cluster: Cluster) -> Iterator[None]:
    before = cluster.config.dump()
    yield
    bring_back(cluster.config, before)


ASK_AGAIN_S = 10.0


def until(condition: Callable[[], bool], seconds: float = 60.0, ask: Optional[Callable[[], None]] = None) -> bool:
    """Whether it comes true. What `ask` does is done first, and again from time to time: a busy OSD may drop it."""
    end, next_ask = time.monotonic() + seconds, 0.0
    while True:
        if ask is not None and time.monotonic() >= next_ask:
            ask()
            next_ask = time.monotonic() + ASK_AGAIN_S
        if condition():
            return True
        if time.monotonic() > end:
            return False
        time.sleep(0.2)


def test_every_knob_exists_with_our_type_default_and_choices(cluster: Cluster, helps: Dict[str, Any]) -> None:
    wrong: List[str] = []
    version = parse_version(cluster.version)
    for name, ceph in helps.items():
        entry = knob(name)
        if ceph["type"] not in TYPES[entry.kind]:
            wrong.append(f"{name} is of type {ceph['type']}, not {entry.kind}")
        default = entry.read(str(ceph["daemon_default"] or ceph["default"]).lower())
        ours = entry.default(cluster.release, version)
        # the default of trims at once says 2, and `daemon_default` is not used by it
        if default != ours and entry.read(str(ceph["default"]).lower()) != ours:
            wrong.append(f"{name} defaults to {default}, not {ours}")
        if entry.choices and set(ceph["enum_values"]) != set(entry.choices):
            wrong.append(f"{name} is one of {ceph['enum_values']}, not {entry.choices}")
    assert wrong == []


def test_our_ranges_lie_within_ceph_s(cluster: Cluster, helps: Dict[str, Any]) -> None:
    for name, ceph in helps.items():
        low, high = knob(name).bounds(cluster.release)
        if ceph["min"] != "":
            assert low >= float(ceph["min"]), name
        if ceph["max"] != "":
            assert high <= float(ceph["max"]), name


def test_a_live_knob_can_be_changed_at_run_time_and_a_restart_one_cannot(helps: Dict[str, Any]) -> None:
    wrong = [name for name, ceph in helps.items() if ceph["can_update_at_runtime"] != (knob(name).change == "live")]
    assert wrong == []


def test_an_osd_has_every_knob(cluster: Cluster) -> None:
    options = cluster.config.effective(0)
    wrong = [name for name, entry in KNOBS.items() if is_option(entry, cluster) != (name in options)]
    assert wrong == []
    for name, entry in KNOBS.items():
        if name in options:
            entry.read(options[name])


def test_an_osd_shows_the_queue_that_it_runs_whatever_the_database_says(cluster: Cluster, clean: None) -> None:
    """So a plan may wait for an OSD to say that it runs another queue."""
    cluster.config.set("osd.0", "osd_op_queue", "wpq")
    cluster.config.set("osd.0", "osd_max_scrubs", "7")
    # what is set later shows
    assert until(lambda: cluster.config.effective(0)["osd_max_scrubs"] == "7")
    assert cluster.config.effective(0)["osd_op_queue"] == "mclock_scheduler"


def test_every_sleep_is_forced_to_0(cluster: Cluster) -> None:
    options = cluster.config.effective(0)
    for name, entry in KNOBS.items():
        if entry.work == "sleeps" and name in options:
            assert float(options[name]) == 0, name


@pytest.mark.parametrize("profile", [*BUILT_IN_PROFILES, "balanced"])
def test_a_built_in_profile_has_our_nine_values(cluster: Cluster, clean: None, profile: str) -> None:
    cluster.config.set("osd.0", PROFILE, profile)
    expected = {PROFILE: profile, **cluster.release.profiles[profile]}
    assert until(lambda: settings_in_force(cluster.config.effective(0)) == expected), settings_in_force(
        cluster.config.effective(0)
    )
    found = profile_in_force("x", cluster.config.effective(0), cluster.release, cluster.version).profile
    assert found.settings.items() >= cluster.release.profiles[profile].items()


VALUES: Dict[str, Value] = {
    "osd_mclock_scheduler_client_res": 0.5,
    "osd_mclock_scheduler_client_wgt": 7,
    "osd_mclock_scheduler_client_lim": 0.0,
    "osd_mclock_scheduler_background_recovery_res": 0.123456789,
    "osd_mclock_scheduler_background_best_effort_res": 1e-7,
    "osd_scrub_load_threshold": 12.5,
    "osd_deep_scrub_interval": 604800,
    "osd_mclock_max_capacity_iops_ssd": 934.87654321,
    "osd_mclock_max_sequential_bandwidth_ssd": 62914560,
    "bluestore_throttle_bytes": 262144,
    OVERRIDE: True,
    "osd_op_queue": "wpq",
    "osd_max_scrubs": 5,
}


def test_values_are_kept_as_we_format_and_round_them(cluster: Cluster, clean: None) -> None:
    for name, value in VALUES.items():
        cluster.config.set(NOBODY, name, str(value).lower())
    kept = {entry.name: entry.value for entry in cluster.config.dump() if entry.who == NOBODY}
    assert kept == {name: knob(name).format(value) for name, value in VALUES.items()}
    assert {name: knob(name).parse(text) for name, text in kept.items()} == {
        name: knob(name).check(value) for name, value in VALUES.items()
    }


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("bluestore_throttle_bytes", "256K"),
        ("bluestore_throttle_bytes", "256Ki"),
        ("bluestore_throttle_bytes", "1MB"),
        ("bluestore_throttle_bytes", "64k"),
        ("bluestore_throttle_bytes", "1.5M"),
        (OVERRIDE, "TRUE"),
        (OVERRIDE, "yes"),
        ("osd_mclock_scheduler_client_res", ".3"),
        ("osd_mclock_scheduler_client_res", "1.1"),
        ("osd_mclock_scheduler_client_res", "-0.1"),
        ("osd_mclock_scheduler_client_wgt", "-1"),
        ("osd_max_scrubs", "2.5"),
        ("osd_pg_max_concurrent_snap_trims", "0"),
        ("osd_mclock_profile", "fast"),
    ],
)
def test_we_read_a_text_as_the_monitors_do(cluster: Cluster, clean: None, name: str, text: str) -> None:
    try:
        ours = knob(name).format(knob(name).parse(text))
    except InputError:
        ours = ""
    try:
        cluster.config.set(NOBODY, name, text)
    except CommandFailed:
        assert ours == ""
    else:
        assert [entry.value for entry in cluster.config.dump() if entry.who == NOBODY] == [ours]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("osd_mclock_scheduler_client_wgt", "0"),
        ("osd_mclock_scheduler_client_lim", "nan"),
        ("osd_max_scrubs", "-5"),
        ("osd_max_scrubs", "10K"),
    ],
)
def test_the_monitors_take_what_we_refuse(cluster: Cluster, clean: None, name: str, text: str) -> None:
    """If this fails, Ceph has become stricter: then a comment in knob.py is out of date."""
    cluster.config.set(NOBODY, name, text)
    assert any(entry.who == NOBODY for entry in cluster.config.dump())


def test_a_recovery_limit_is_dropped_unless_it_is_opened(cluster: Cluster, clean: None) -> None:
    def in_database() -> bool:
        return any(entry.name == "osd_max_backfills" for entry in cluster.config.dump())

    def in_force() -> str:
        return cluster.config.effective(0)["osd_max_backfills"]

    cluster.config.set("osd", "osd_max_backfills", "3")
    assert until(lambda: not in_database()), "the OSDs did not remove it"
    assert until(lambda: in_force() == "1")
    cluster.config.set("osd", OVERRIDE, "true")
    assert until(lambda: cluster.config.effective(0)[OVERRIDE] == "true")
    cluster.config.set("osd", "osd_max_backfills", "3")
    assert until(lambda: in_force() == "3")
    assert in_database()


def test_capacity_and_shards_are_those_that_mclock_says_it_uses(cluster: Cluster, any_lab: Lab) -> None:
    hardware = hardware_of(cluster.config.effective(0), _device_class(cluster))
    log = any_lab.host_path("/lab/log/osd.0.log").read_text(errors="replace")
    stated = [line for line in log.splitlines() if "osd_bandwidth_cost_per_io:" in line]
    assert stated, "the OSD's log does not say what it uses"
    words = stated[-1].split()
    cost = float(words[words.index("osd_bandwidth_cost_per_io:") + 1])
    per_shard = float(words[words.index("osd_bandwidth_capacity_per_shard") + 1])
    assert hardware.cost_per_io == pytest.approx(cost, rel=1e-3)
    assert hardware.shard_bytes_s == pytest.approx(per_shard, rel=1e-3)


@pytest.fixture
def costs_logged(cluster: Cluster, any_lab: Lab, clean: None) -> Iterator[Callable[[], str]]:
    """Make the OSDs log what each item costs; gives a function that reads the logs since."""
    paths = [any_lab.host_path(f"/lab/log/osd.{osd}.log") for osd in any_lab.osds]
    before = [path.stat().st_size for path in paths]

    def logging() -> List[bool]:
        return [cluster.config.effective(osd)["debug_mclock"] == "20/20" for osd in any_lab.osds]

    def since() -> str:
        texts = []
        for path, start in zip(paths, before):
            with path.open("rb") as log:
                log.seek(start)
                texts.append(log.read().decode(errors="replace"))
        return "".join(texts)

    cluster.config.set("osd", "debug_mclock", "20/20")
    assert until(lambda: all(logging()))
    yield since
    cluster.config.remove("osd", "debug_mclock")
    # or the next test takes this one's level for its own, and it falls while that test is under way
    assert until(lambda: not any(logging()))


def put(lab: Lab, name: str, size: int, pool: str = "rbd") -> None:
    lab.run(["sh", "-c", f"head -c {size} /dev/zero | rados -p {pool} put {name} -"])


def get(lab: Lab, name: str) -> None:
    lab.run(["rados", "-p", "rbd", "get", name, "/dev/null"])


def test_a_client_operation_costs_what_we_say(cluster: Cluster, any_lab: Lab, costs_logged: Callable[[], str]) -> None:
    def logged(text: str) -> bool:
        return text in costs_logged()

    hardware = hardware_of(cluster.config.effective(0), _device_class(cluster))
    for size in (4096, 3 * 2**20):
        expected = f"item_cost: {size} scaled_cost: {item_cost(size, hardware, cluster.release)}"
        assert until(partial(logged, expected), ask=partial(put, any_lab, "knob-cost", size)), expected
    # a read counts nothing, whatever its size
    nothing = f"item_cost: 0 scaled_cost: {item_cost(0, hardware, cluster.release)}"
    assert until(lambda: nothing in costs_logged(), ask=lambda: get(any_lab, "knob-cost")), nothing
    any_lab.run(["rados", "-p", "rbd", "rm", "knob-cost"])


@pytest.fixture
def one_group(any_lab: Lab) -> Iterator[str]:
    """A pool of one PG with three objects: one chunk, whatever other tests left in other pools."""
    name = "knob-scrub"
    any_lab.run(["ceph", "osd", "pool", "create", name, "1", "1", "--autoscale-mode=off"])
    try:
        for number in range(3):
            put(any_lab, f"object-{number}", 300_000, name)
        yield name
    finally:
        any_lab.run(["ceph", "osd", "pool", "delete", name, name, "--yes-i-really-really-mean-it"])


@pytest.mark.parametrize("deep", [True, False])
def test_a_scrub_chunk_costs_what_we_say(
    cluster: Cluster, any_lab: Lab, one_group: str, costs_logged: Callable[[], str], deep: bool
) -> None:
    group = any_lab.json(["ceph", "osd", "map", one_group, "object-0"])["pgid"]

    def query() -> Any:
        return any_lab.json(["ceph", "pg", group, "query"])

    def stats() -> Any:
        return query()["info"]["stats"]["stat_sum"]

    def scrub() -> None:
        # a scrub that is asked for while another one is under way may be dropped at its end
        assert until(lambda: "scrubbing" not in query()["state"], 120)
        try:
            any_lab.run(["ceph", "pg", "deep-scrub" if deep else "scrub", group])
        except CommandFailed as refused:
            # the mgr that is to pass it on may have lost its connection to that OSD for a moment; it is asked again
            if refused.code != errno.EAGAIN:
                raise

    def costs() -> List[int]:
        return [int(cost) for cost in re.findall(r"item_cost: (\d+)", costs_logged())]

    assert until(lambda: stats()["num_objects"] == 3), stats()
    hardware = hardware_of(cluster.config.effective(0), _device_class(cluster))
    expected = scrub_item_bytes(3, 300_000, deep, {}, hardware, cluster.release)
    seen = until(lambda: any(abs(cost - expected) <= 1 for cost in costs()), 120, ask=scrub)
    assert seen, f"{expected}, seen: {', '.join(map(str, sorted(set(costs()))))}"


@pytest.mark.usefixtures("clean")
def test_a_value_that_is_set_before_custom_does_not_come_into_force(cluster: Cluster) -> None:
    limit = "osd_mclock_scheduler_background_recovery_lim"

    def shown() -> float:
        return float(cluster.config.effective(0)[limit])

    cluster.config.set("osd", limit, "0.125")
    cluster.config.set("osd", "osd_mclock_profile", "custom")
    assert until(lambda: cluster.config.effective(0)["osd_mclock_profile"] == "custom")
    time.sleep(5)
    assert shown() != 0.125
    # the same name again, once `custom` is in force
    cluster.config.set("osd", limit, "0.25")
    assert until(lambda: shown() == 0.25)


def test_the_nine_are_all_that_custom_needs(cluster: Cluster) -> None:
    assert set(MCLOCK_NINE) <= set(cluster.config.effective(0))


def _device_class(cluster: Cluster) -> str:
    return {place.osd: place.device_class for place in cluster.config.places()}[0]
