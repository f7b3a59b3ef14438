"""What is gathered is what the read commands ask for, and no secret is in it."""

from __future__ import annotations

import io
import json
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

import pytest
import zstandard

from ceph_tuner.cluster.sampler import ClusterSampler, observe
from ceph_tuner.core.bounded import values_in
from ceph_tuner.core.errors import ClusterTimeout, CommandFailed, InputError, PermissionRefused, TunerError
from ceph_tuner.core.goals.stored_slo import SLO_KEY
from ceph_tuner.core.measure.metrics import CLASS, Scope
from ceph_tuner.core.why import gather as look_twice
from ceph_tuner.describe.live_cluster import describe
from ceph_tuner.doctor import examine
from ceph_tuner.doctor import gather as gather_facts
from ceph_tuner.doctor.shards import stale
from ceph_tuner.gather import read_commands, recorder, state_file
from ceph_tuner.gather.read_commands import gather
from ceph_tuner.gather.replay import open_state
from ceph_tuner.gather.state import ClusterState, contents
from ceph_tuner.scrub_plan.cluster_view import read_view
from ceph_tuner.twin.model import MIB, ScrubWork
from shard_dumps import StaleShard
from twins import answering, small_twin
from whole_cluster import ALL_SECRETS, SECRETS, WholeCluster, over, whole_cluster

OSDS = ("osd.0", "osd.1", "osd.2", "osd.3")


def replayed(state: ClusterState, folder: Path) -> Any:
    state_file.write(folder / "state.tar.zst", state)
    return open_state(folder / "state.tar.zst")


def unpacked(content: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompressobj().decompress(content)


def test_no_secret_is_in_the_file_wherever_the_cluster_has_it() -> None:
    cluster = whole_cluster()
    live = [cluster.commander.mon(prefix, {"key": "mgr/"}) for prefix in ("config dump", "config-key dump", "health")]
    live += [cluster.commander.mon(prefix, {}) for prefix in ("status", "osd dump", "osd metadata", "log last")]
    live += [cluster.commander.tell("osd.0", "config show", {})]
    together = "".join(live)
    for secret in ALL_SECRETS:
        assert secret in together, f"{secret} is not asked for, so that its absence says nothing"
    content = unpacked(state_file.packed(gather(cluster))).decode()
    for secret in (*ALL_SECRETS, "SERIAL-hunter2", "10.9.9.9", "/etc/ceph/keyring", "hunter2"):
        assert secret not in content, secret
    # that they are set is told
    for name in SECRETS:
        assert f'"{name}","value":"(left out)"' in content


def test_only_the_tuners_own_part_of_the_store_is_in_the_file() -> None:
    cluster = whole_cluster()
    cluster.store.set(SLO_KEY, '{"name": "night"}')
    content = unpacked(state_file.packed(gather(cluster))).decode()
    assert "mgr/tuner/slo" in content
    assert "night" in content
    assert "mgr/dashboard/crt" not in content


def test_only_commands_that_read_are_sent_and_nothing_is_written() -> None:
    cluster = whole_cluster()
    before = cluster.commander.mon("config dump", {})
    gather(cluster)
    commander = cluster.commander
    assert isinstance(commander, WholeCluster)
    words = {prefix for _, prefix in commander.asked}
    assert not [prefix for prefix in words if prefix.split()[-1] in ("set", "rm", "create", "apply", "on", "off")]
    assert commander.mon("config dump", {}) == before


def test_a_recorder_passes_on_nothing_but_what_is_kept() -> None:
    twin = small_twin()
    commander = recorder.Recorder(twin.commander, twin.clock)
    for prefix, arguments in (("config set", {"who": "osd", "name": "osd_max_scrubs", "value": "2"}), ("auth ls", {})):
        with pytest.raises(CommandFailed, match="not among what is gathered"):
            commander.mon(prefix, arguments)
    for key in ("mgr/dashboard/", "rgw_keystone_admin_password"):
        with pytest.raises(CommandFailed, match="not among what is gathered"):
            commander.mon("config get", {"who": "client.rgw", "key": key})
    with pytest.raises(CommandFailed, match="not among what is gathered"):
        commander.tell("osd.0", "config set", {})
    assert commander.answers == []


def test_the_doctor_says_of_the_file_what_it_says_of_the_cluster(tmp_path: Path) -> None:
    cluster = whole_cluster()
    cluster.config.set("osd", "osd_scrub_cost", "1048576")
    cluster.config.set("osd.1", "osd_max_scrubs", "1")
    cluster.clock.sleep(5)
    then = replayed(gather(cluster), tmp_path)
    live, later = (gather_facts(each.commander, each.clock, each.release, each.version) for each in (cluster, then))
    assert [finding.to_dict() for finding in examine(later)] == [finding.to_dict() for finding in examine(live)]
    assert {"ignored-knobs", "leftovers"} <= {finding.check for finding in examine(later)}
    assert later.notes == live.notes == ()


@pytest.mark.parametrize(("turns_after", "judged"), [(None, True), (6, False)])
def test_options_behind_a_shard_that_seems_stale_are_in_the_file_before_and_after_its_queues(
    turns_after: Optional[int], judged: bool, tmp_path: Path
) -> None:
    cluster = whole_cluster()
    live = over(cluster, StaleShard(cluster.commander, turns_after))
    state = gather(live)
    readings = {name: [one for one in state.answers if one.shown == f"ceph tell {name} config show"] for name in OSDS}
    assert {name: len(own) for name, own in readings.items() if name != "osd.1"} == {"osd.0": 1, "osd.2": 1, "osd.3": 1}
    dumps = [one.at for one in state.answers if one.shown == "ceph tell osd.1 dump_op_pq_state" and one.look == 2]
    assert readings["osd.1"][0].at <= min(dumps)
    assert readings["osd.1"][-1].at >= max(dumps)
    then = replayed(state, tmp_path)
    facts = look_twice(then.commander, then.clock, 10.0)
    assert bool(facts.osds[1].served) is judged
    assert bool(facts.notes) is not judged
    then = open_state(tmp_path / "state.tar.zst")
    # the doctor goes by the first of the two looks: the options turn after it
    assert stale(gather_facts(then.commander, then.clock, then.release, then.version))


def test_the_samples_of_the_file_are_those_of_the_load_at_that_time(tmp_path: Path) -> None:
    cluster = whole_cluster(scrub=(ScrubWork("rbd", 9000, MIB),))
    then = replayed(gather(cluster, interval_s=15.0), tmp_path)
    sampler = ClusterSampler(then.commander, then.clock, (Scope(CLASS, "ssd"),))
    window, samples = observe(sampler, then.clock, 10.0)
    (sample,) = samples
    assert sample.seconds == pytest.approx(15.0, rel=0.01)
    assert sample.values["client.iops"] == pytest.approx(300, rel=0.2)
    assert sample.values["scrub.objects_s"] > 0
    assert window is not None
    by_class = sample.of(Scope(CLASS, "ssd"))
    assert by_class.values["client.iops"] == pytest.approx(sample.values["client.iops"], rel=0.01)


def test_clocks_stand_at_the_time_of_the_file(tmp_path: Path) -> None:
    cluster = whole_cluster()
    began = cluster.clock.now()
    state = gather(cluster)
    ended = cluster.clock.now()
    cluster.clock.sleep(120)
    then = replayed(state, tmp_path)
    assert began <= then.clock.now() <= ended
    then.clock.sleep(3600)
    assert began < then.clock.now() <= ended


def test_a_cluster_is_described_by_its_file_as_it_was_live(tmp_path: Path) -> None:
    cluster = whole_cluster()
    cluster.config.set("osd", "osd_max_scrubs", "2")
    cluster.clock.sleep(5)
    then = replayed(gather(cluster), tmp_path)
    live, later = describe(cluster), describe(then)
    assert later.settings == live.settings == {"osd_max_scrubs": 2}
    assert replace(later.model, clients=()) == replace(live.model, clients=())
    rates = [sum(stream.rate or 0 for stream in each.model.clients) for each in (live, later)]
    assert rates[1] == pytest.approx(rates[0], rel=0.1)


def test_what_was_not_gathered_is_named_with_what_to_do(tmp_path: Path) -> None:
    then = replayed(gather(whole_cluster()), tmp_path)
    with pytest.raises(CommandFailed, match="`ceph osd perf` failed with -61: not gathered") as missing:
        then.commander.mon("osd perf", {})
    assert "gather the state again" in missing.value.advised
    with pytest.raises(CommandFailed, match=r"`ceph tell osd.77 config show`.*4 of 4 OSDs were asked"):
        then.commander.tell("osd.77", "config show", {})
    with pytest.raises(InputError, match="which writes"):
        then.config.set("osd", "osd_max_scrubs", "2")
    with pytest.raises(InputError, match="which writes"):
        then.store.set("a", "b")


def test_the_store_of_the_file_answers_key_by_key(tmp_path: Path) -> None:
    cluster = whole_cluster()
    for key, value in {"profile/a": "1", "profile/b": "2", "slo": "3"}.items():
        cluster.store.set(key, value)
    store = replayed(gather(cluster), tmp_path).store
    assert (store.get("slo"), store.get("absent")) == ("3", None)
    assert store.keys("profile/") == ["profile/a", "profile/b"]


class Faulty(WholeCluster):
    """An OSD hangs, another refuses, and so does a command."""

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        if prefix == "osd df":
            raise CommandFailed("ceph osd df", -95, "not supported")
        return super().mon(prefix, arguments, payload)

    def tell(self, daemon: str, prefix: str, arguments: Mapping[str, str]) -> str:
        if daemon == "osd.2":
            raise ClusterTimeout(f"`ceph tell osd.2 {prefix}` did not answer in time")
        return super().tell(daemon, prefix, arguments)


def test_what_does_not_answer_is_kept_as_such_and_told_by_the_file_as_live(tmp_path: Path) -> None:
    twin = small_twin()
    cluster = over(twin, Faulty(twin.commander))
    state = gather(cluster)
    assert state.asked == (0, 1, 3)
    assert [note for note in state.notes if "3 of 4 OSDs said" in note]
    assert [note for note in state.notes if note.startswith("`ceph osd df`: no answer (not supported)")]
    then = replayed(state, tmp_path)
    live, later = (
        gather_facts(each.commander, each.clock, each.release, each.version).notes for each in (cluster, then)
    )
    assert [note.partition(":")[0] for note in later] == [note.partition(":")[0] for note in live]
    with pytest.raises(ClusterTimeout, match=r"osd\.2 config show"):
        then.commander.tell("osd.2", "config show", {})


@pytest.mark.parametrize(
    "error",
    [
        CommandFailed("ceph osd df", -5, "no login with password=hunter2"),
        ClusterTimeout("no way: token: hunter2"),
        PermissionRefused("ceph osd df", "secret=hunter2 is refused", "another"),
    ],
)
def test_words_of_a_fault_are_kept_without_secrets(error: TunerError) -> None:
    class Talkative(WholeCluster):
        def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
            if prefix == "osd df":
                raise error
            return super().mon(prefix, arguments, payload)

    twin = small_twin()
    state = gather(over(twin, Talkative(twin.commander)))
    assert [note for note in state.notes if note.startswith("`ceph osd df`")]
    assert "hunter2" not in "".join(state.notes)
    assert b"hunter2" not in unpacked(state_file.packed(state))


def test_answers_beyond_the_bound_are_left_out_and_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(recorder, "UNPACKED_MOST", 60_000)
    state = gather(whole_cluster())
    assert sum(content.nbytes for content in contents(state).values()) <= 60_000
    assert [note for note in state.notes if "is left out: " in note]
    assert replayed(state, tmp_path).release.name == "tentacle"


def test_an_answer_of_more_values_than_are_read_again_is_left_out_and_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(recorder, "VALUES_MOST", 200)
    state = gather(whole_cluster())
    assert all(values_in(answer.text) <= 200 for answer in state.answers)
    assert [note for note in state.notes if "values, of which an answer may have 200" in note]


THOUSAND = 1000


class Thousand:
    """1000 OSDs that answer as much as real ones: 130 KB of options, 100 KB of counters, 100 KB of histograms."""

    def __init__(self) -> None:
        self._options = {f"osd_option_{number}_of_a_usual_length": f"{number}.000000" for number in range(1000)}
        self._options.update({f"rgw_option_{number}_of_a_usual_length": "x" * 40 for number in range(1000)})
        self._options["osd_op_queue"] = "mclock_scheduler"
        self._twin = WholeCluster(small_twin().commander)
        self._answers: Dict[Tuple[str, str], str] = {}
        self.shown: List[str] = []

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        documents: Dict[str, Callable[[], Any]] = {
            "osd tree": lambda: {"nodes": [self._node(osd) for osd in range(THOUSAND)]},
            "osd metadata": lambda: [
                {"id": osd, "rotational": "1", "hostname": f"h{osd // 20}", "mounts": "x" * 3000}
                for osd in range(THOUSAND)
            ],
            "osd df": lambda: {
                "nodes": [{**self._node(osd), "kb_used_data": osd, "pgs": 60} for osd in range(THOUSAND)]
            },
            "osd dump": lambda: {
                "osds": [
                    {"osd": osd, "up": 1, "in": 1, "up_from": 1, "public_addrs": "x" * 400} for osd in range(THOUSAND)
                ],
                "pools": [{"pool": 1, "pool_name": "rbd", "pg_num": 16384, "size": 3, "type": 1}],
                "flags": "sortbitwise",
            },
            "status": lambda: {
                "pgmap": {"num_pgs": 16384, "pgs_by_state": [{"state_name": "active+clean", "count": 16384}]}
            },
            "pg ls": lambda: {"pg_ready": True, "pg_stats": [self._pg(number) for number in range(16384)]},
            "config dump": lambda: [
                {"section": f"osd.{osd}", "mask": "", "name": "osd_mclock_max_capacity_iops_hdd", "value": f"{osd}.5"}
                for osd in range(THOUSAND)
            ],
        }
        if prefix not in documents:
            return self._twin.mon(prefix, arguments, payload)
        return self._said(("mon", prefix), lambda: json.dumps(documents[prefix]()))

    def tell(self, daemon: str, prefix: str, arguments: Mapping[str, str]) -> str:
        number = int(daemon.partition(".")[2])
        if prefix == "config show":
            self.shown.append(daemon)
            return json.dumps({"name": daemon, **self._options})
        if prefix == "config diff":
            return json.dumps({"diff": {name: {"file": "1"} for name in list(self._options)[:100]}})
        if prefix == "dump_op_pq_state":
            return json.dumps({"op_queue shard 0": "x" * 5000})
        if prefix == "perf dump":
            return self._said((daemon, prefix), lambda: json.dumps({"osd": self._counters(number)}))
        return self._said((daemon, prefix), lambda: self._histograms(number))

    def _said(self, command: Tuple[str, str], say: Callable[[], str]) -> str:
        """The same each time that it is asked for."""
        if command not in self._answers:
            self._answers[command] = say()
        return self._answers[command]

    def _counters(self, number: int) -> Dict[str, Any]:
        return {f"counter_{one}": {"avgcount": number * one, "sum": number * one / 7} for one in range(1500)}

    def _histograms(self, number: int) -> str:
        values = [[(row * column * number) % 97 for column in range(32)] for row in range(32)]
        names = ("op_r_latency_out_bytes_histogram", "op_w_latency_in_bytes_histogram", "a", "b", "c", "d")
        return json.dumps({"osd": {name: {"axes": [], "values": values} for name in names}}, indent=4)

    def _node(self, osd: int) -> Dict[str, Any]:
        return {
            "id": osd, "name": f"osd.{osd}", "type": "osd", "status": "up", "device_class": "hdd" if osd % 3 else "ssd",
            "crush_weight": 1.0, "reweight": 1.0,
        }  # fmt: skip

    def _pg(self, number: int) -> Dict[str, Any]:
        stamp = "2026-01-01T00:00:00.000000+0000"
        sums = {f"num_counter_{one}": number * one for one in range(36)}
        return {
            "pgid": f"1.{number:x}", "state": "active+clean", "acting": [number % 1000, 1, 2],
            "up": [number % 1000, 1, 2], "stat_sum": {"num_bytes": number, "num_objects": 9, **sums},
            "last_scrub_stamp": stamp, "last_deep_scrub_stamp": stamp, "blocked_by": [], "history": "x" * 1500,
        }  # fmt: skip


@pytest.mark.slow
def test_a_thousand_osds_fit_and_a_sample_of_them_is_asked(tmp_path: Path) -> None:
    cluster = over(small_twin(), Thousand())
    state = gather(cluster)
    assert 64 <= len(state.asked) <= 64 + 16
    assert [note for note in state.notes if "1000 OSDs are not sampled" in note]
    unpacked_bytes = sum(content.nbytes for content in contents(state).values())
    size = state_file.write(tmp_path / "state.tar.zst", state)
    assert unpacked_bytes < recorder.UNPACKED_MOST / 2, unpacked_bytes
    assert size < state_file.PACKED_MOST / 4, size
    then = open_state(tmp_path / "state.tar.zst")
    facts = gather_facts(then.commander, then.clock, then.release, then.version)
    assert (len(facts.osds), len(facts.looked_at), len(facts.pgs)) == (1000, 64, 16384)
    view = read_view(then)
    assert (len(view.pgs), len(view.hosts)) == (16384, 1000)
    assert view.notes == ("64 of 1000 OSDs were asked for their options, evenly over their ids",)


def test_of_more_pgs_than_are_listed_that_is_said_when_they_are_gathered_and_when_they_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(read_commands, "OSDS_MAX", 2)
    twin = small_twin()
    status = json.loads(twin.commander.mon("status", {}))
    status["pgmap"]["num_pgs"] = 30_000
    state = gather(answering(twin, {"status": status}))
    assert [note for note in state.notes if note.startswith("the PGs are not listed (at most 20000): `scrub plan`")]
    with pytest.raises(CommandFailed, match="a file lists up to 20000 PGs") as missing:
        read_view(replayed(state, tmp_path))
    assert "ask the cluster itself (`--cluster`)" in missing.value.advised


def test_the_members_are_named_so_that_they_can_be_looked_at() -> None:
    with tarfile.open(fileobj=io.BytesIO(unpacked(state_file.packed(gather(whole_cluster()))))) as archive:
        names = archive.getnames()
    assert names[0] == "ceph-tuner-state/manifest.json"
    assert [name for name in names if name.endswith("-osd.0-config-show-look0.json")]
