"""What every implementation of the ports keeps to. A subclass gives the fixture; the twin's and the mgr's can join."""

from __future__ import annotations

import json
from typing import Any, Tuple

import pytest

from ceph_tuner.core.ceph.commands import CommandConfig
from ceph_tuner.core.ceph.ports import Commander, ConfigEntry, Store
from ceph_tuner.core.ceph.tell_each import tell_each
from ceph_tuner.core.errors import ClusterTimeout, CommandFailed
from ceph_tuner.core.measure.osd_documents import osd_latency, osd_values
from ceph_tuner.core.measure.sample import READ, WRITE

NAME = "osd_scrub_chunk_max"
COUNTERS = {"op_r", "op_w", "op_rw", "op_r_out_bytes", "op_w_in_bytes", "op_w_latency.sum", "op_w_latency.count"}
COUNTERS |= {"recovery_ops", "recovery_bytes"}


class CommanderContract:
    @pytest.fixture
    def commander(self) -> Commander:
        raise NotImplementedError

    def test_a_monitor_answers_in_json(self, commander: Commander) -> None:
        assert "fsid" in json.loads(commander.mon("status", {}))

    def test_an_osd_answers_in_json(self, commander: Commander) -> None:
        assert json.loads(commander.tell("osd.0", "config show", {}))["name"] == "osd.0"

    def test_many_osds_answer_and_one_that_is_not_there_fails_itself_alone(self, commander: Commander) -> None:
        answers = dict(tell_each(commander, ["osd.0", "osd.77", "osd.1", "osd.2"], "config show", {}, within=10.0))
        assert isinstance(answers.pop("osd.77"), (CommandFailed, ClusterTimeout))
        assert {osd: json.loads(str(told))["name"] for osd, told in answers.items()} == {
            osd: osd for osd in ("osd.0", "osd.1", "osd.2")
        }

    def test_arguments_go_in_their_order_and_numbers_as_numbers(self, commander: Commander) -> None:
        commander.mon("osd pool create", {"pool": "contract", "pg_num": "1"})
        try:
            answer = commander.mon("osd pool get", {"pool": "contract", "var": "pg_num"})
            assert json.loads(answer)["pg_num"] == 1
        finally:
            arguments = {"pool": "contract", "pool2": "contract", "yes_i_really_really_mean_it": "true"}
            if "Cli" in type(commander).__name__:
                arguments["yes_i_really_really_mean_it"] = "--yes-i-really-really-mean-it"
            commander.mon("osd pool rm", arguments)

    @pytest.mark.parametrize("payload", ['{"a": "ä"}', "\nline\n\n", " ", "x" * 65536])
    def test_a_payload_arrives_and_comes_back_as_it_is(self, commander: Commander, payload: str) -> None:
        key = {"key": "mgr/tuner/contract"}
        commander.mon("config-key set", key, payload=payload)
        assert commander.mon("config-key get", key) == payload
        commander.mon("config-key rm", key)

    @pytest.mark.parametrize(
        ("prefix", "arguments", "code"),
        [
            ("config set", {"who": "osd", "name": NAME, "value": "many"}, -22),
            ("config set", {"who": "osd", "name": "osd_no_such_option", "value": "1"}, -22),
            ("config-key get", {"key": "mgr/tuner/absent"}, -2),
            ("no such command", {}, -22),
        ],
    )
    def test_a_refusal_carries_the_errno_and_one_line(
        self, commander: Commander, prefix: str, arguments: Any, code: int
    ) -> None:
        with pytest.raises(CommandFailed) as refusal:
            commander.mon(prefix, arguments)
        assert refusal.value.code == code
        assert "\n" not in str(refusal.value)
        assert prefix in refusal.value.command

    def test_an_osd_counts_what_sampling_reads(self, commander: Commander) -> None:
        section = json.loads(commander.tell("osd.0", "perf dump", {}))["osd"]
        found = osd_values(section)
        assert set(found) >= COUNTERS
        assert found["op_w"] == int(found["op_w"]) >= 0

    def test_an_osds_latencies_come_in_ceph_s_buckets(self, commander: Commander) -> None:
        found = osd_latency(json.loads(commander.tell("osd.0", "perf histogram dump", {})))
        assert set(found) == {READ, WRITE}
        for histogram in found.values():
            assert histogram.upper_ms[:3] == (0.1, 0.2, 0.4)
            assert len(histogram.counts) == 31

    def test_masks_are_kept_with_the_location_first(self, commander: Commander) -> None:
        config = CommandConfig(commander)
        before = config.dump()
        config.set("osd/class:ssd/host:nowhere", NAME, "7")
        assert ConfigEntry("osd/host:nowhere/class:ssd", NAME, "7") in config.dump()
        config.remove("osd/host:nowhere/class:ssd", NAME)
        assert config.dump() == before

    def test_an_osd_that_is_not_there_is_a_refusal(self, commander: Commander) -> None:
        with pytest.raises(CommandFailed):
            commander.tell("osd.999", "config show", {})


class ConfigurationContract:
    @pytest.fixture
    def config(self) -> Any:
        raise NotImplementedError

    def test_what_is_set_is_in_the_dump_until_it_is_removed(self, config: Any) -> None:
        before = config.dump()
        host = config.places()[0].locations["host"]
        for who in ("osd", "osd.0", "osd/class:ssd", f"osd/host:{host}"):
            config.set(who, NAME, "7")
            assert ConfigEntry(who, NAME, "7") in config.dump()
        for who in ("osd", "osd.0", "osd/class:ssd", f"osd/host:{host}"):
            config.remove(who, NAME)
        assert config.dump() == before

    def test_removing_what_is_not_there_is_no_error(self, config: Any) -> None:
        before = config.dump()
        config.remove("osd/host:nowhere", NAME)
        assert config.dump() == before

    def test_a_value_that_is_none_is_refused_and_changes_nothing(self, config: Any) -> None:
        before = config.dump()
        with pytest.raises(CommandFailed):
            config.set("osd", NAME, "many")
        assert config.dump() == before

    def test_a_fraction_is_kept_with_six_decimals(self, config: Any) -> None:
        # of a host that is not there: no OSD sees it, so none removes it
        entry: Tuple[str, str] = ("osd/host:nowhere", "osd_mclock_scheduler_client_lim")
        config.set(*entry, "0.3333333333")
        assert ConfigEntry(*entry, "0.333333") in config.dump()
        config.set(*entry, "0.333333")
        assert ConfigEntry(*entry, "0.333333") in config.dump()
        config.remove(*entry)

    def test_places_and_masks_agree(self, config: Any) -> None:
        places = config.places()
        first = places[0]
        assert config.osds("osd") == sorted(place.osd for place in places)
        assert first.osd in config.osds(f"osd/host:{first.locations['host']}")
        assert first.osd in config.osds(f"osd/class:{first.device_class}")
        assert config.osds(f"osd.{first.osd}") == [first.osd]
        assert config.osds("osd/host:nowhere") == config.osds("mon") == []

    def test_an_osd_shows_the_finest_entry_and_where_it_comes_from(self, config: Any, eventually: Any) -> None:
        place = config.places()[0]
        host = f"osd/host:{place.locations['host']}"
        values = {"osd": "7", f"osd/class:{place.device_class}": "8", host: "9", f"osd.{place.osd}": "10"}
        default = config.effective(place.osd)[NAME]
        assert "mon" not in config.sources(place.osd).get(NAME, {})
        # with nothing else in its section before it, the OSD's own entry would be outranked by the mask
        config.set(f"osd.{place.osd}", "osd_deep_scrub_stride", "1048576")
        for who, value in values.items():
            config.set(who, NAME, value)
            eventually(lambda value=value: config.effective(place.osd)[NAME] == value)
            assert config.sources(place.osd)[NAME]["mon"] == value
        for who in values:
            config.remove(who, NAME)
        config.remove(f"osd.{place.osd}", "osd_deep_scrub_stride")
        eventually(lambda: config.effective(place.osd)[NAME] == default)
        assert "mon" not in config.sources(place.osd).get(NAME, {})


class StoreContract:
    @pytest.fixture
    def store(self) -> Store:
        raise NotImplementedError

    def test_what_is_absent_is_none(self, store: Store) -> None:
        assert store.get("contract/absent") is None

    @pytest.mark.parametrize("value", ["1", '{"a": [1, "ä"]}', "two\nlines\n", pytest.param("y" * 60_000, id="large")])
    def test_a_value_comes_back_as_it_was_set(self, store: Store, value: str) -> None:
        store.set("contract/a", "before")
        store.set("contract/a", value)
        assert store.get("contract/a") == value
        store.remove("contract/a")
        assert store.get("contract/a") is None

    def test_removing_what_is_not_there_is_no_error(self, store: Store) -> None:
        store.remove("contract/absent")

    def test_keys_are_sorted_and_begin_with_the_prefix(self, store: Store) -> None:
        for key in ("contract/b/2", "contract/b/10", "contract/a", "contractual"):
            store.set(key, "x")
        assert store.keys("contract/b/") == ["contract/b/10", "contract/b/2"]
        assert store.keys("contract/") == ["contract/a", "contract/b/10", "contract/b/2"]
        for key in ("contract/b/2", "contract/b/10", "contract/a", "contractual"):
            store.remove(key)
        assert store.keys("contract") == []
