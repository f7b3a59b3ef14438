from __future__ import annotations

import copy
import json
import math
import subprocess
import sys

import pytest

from ceph_tuner.core.knobs.releases import MCLOCK_NINE, RELEASES, TENTACLE, release_of
from ceph_tuner.core.knobs.settings import check_settings, fitting_reservations
from ceph_tuner.search.space import CLIENT_LIMIT
from ceph_tuner.search.worker import answer, serve

pytestmark = pytest.mark.slow

SLO = {"name": "some", "objectives": ["client.p95_ms <= 80 ms", "recovery.bytes_s >= 8 MB/s"]}
REQUEST = {
    "version": 1,
    "release": "20.2.4",
    "slo": SLO,
    "in_force": {"osd_mclock_profile": "balanced"},
    "baseline": {"client.p95_ms": 98.0, "recovery.bytes_s": 26e6},
    "told": [
        {"profile": name, "values": {"client.p95_ms": 95.0 + 2 * index, "recovery.bytes_s": 26e6}}
        for index, name in enumerate(TENTACLE.profiles)
    ],
    "seed": 3,
}


SHARES = [name for name in MCLOCK_NINE[:6] if name != CLIENT_LIMIT]


def request(**changes: object) -> dict:
    return {**copy.deepcopy(REQUEST), **changes}


def history(count: int) -> list:
    trials: list = []
    for index in range(count):
        proposal = answer(request(told=REQUEST["told"] + trials))["proposals"][0]
        values = {"client.p95_ms": 97.0 - 2 * index, "recovery.bytes_s": 25e6}
        trials.append({"settings": proposal["settings"], "values": values})
    return trials


def test_as_a_process_it_answers_one_request_with_one_line_of_json() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ceph_tuner.search.worker"], input=json.dumps(REQUEST), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    result = json.loads(line)
    assert result["ok"] is True
    check_settings(result["proposals"][0]["settings"], TENTACLE)
    assert result["searched"] == SHARES


def test_a_proposal_says_what_is_expected_of_it() -> None:
    (proposal,) = answer(REQUEST)["proposals"]
    assert set(proposal["expected"]) == {"client.p95_ms", "recovery.bytes_s"}
    for middle, low, high in proposal["expected"].values():
        assert low < middle < high


@pytest.mark.parametrize("release", ["18.2.7", "20.2.4"])
def test_a_knob_that_is_a_design_by_itself_leaves_the_shares_in_proportion(release: str) -> None:
    """20.2.4's `balanced` reserves 1.05 in sum, which no custom profile may."""
    easy = {"name": "some", "objectives": ["client.p95_ms <= 95 ms", "recovery.bytes_s >= 1 MB/s"]}
    (proposal,) = answer(request(release=release, shards=8, slo=easy, told=[]))["proposals"]
    assert proposal["why"].startswith("recovery in small chunks, nothing else")
    nine = {name: value for name, value in proposal["settings"].items() if name in MCLOCK_NINE}
    assert nine == {name: value for name, value in fitted(release).items() if name in MCLOCK_NINE}


def fitted(release: str) -> dict:
    return dict(fitting_reservations(release_of(release).profiles["balanced"]))


def test_answers_that_were_far_off_make_the_next_one_less_sure() -> None:
    trials = history(6)
    off = [{**trial, "expected": {"client.p95_ms": [20.0, 19.0, 21.0]}} for trial in trials]

    def width(told: list) -> float:
        (proposal,) = answer(request(told=REQUEST["told"] + told))["proposals"]
        _, low, high = proposal["expected"]["client.p95_ms"]
        return math.log(high / low)

    assert width(off) > 1.1 * width(trials)


def test_as_a_process_it_tells_errors_as_json_too() -> None:
    done = subprocess.run([sys.executable, "-m", "ceph_tuner.search.worker"], input="{", capture_output=True, text=True)
    assert done.returncode == 2
    assert json.loads(done.stdout)["kind"] == "request"
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"version": 2}, "request.version"),
        ({"release": "pacific"}, "request.release"),
        ({"release": 20}, "request.release"),
        ({"kind": "tape"}, "request.kind"),
        ({"slo": {"objectives": ["client.p95_ms <= 3 parsec"]}}, "request.slo.objectives.0"),
        ({"in_force": {}}, "request.in_force"),
        ({"in_force": {"osd_mclock_profile": "balanced", "osd_max_scrubs": "many"}}, "request.in_force.osd_max_scrubs"),
        ({"told": [{"settings": {"nonsense": 1}, "values": {}}]}, "request.told.0.settings"),
        ({"told": [{"profile": "fast", "values": {}}]}, "request.told.0.profile"),
        ({"told": [{"values": {}}]}, "request.told.0.settings"),
        ({"told": {}}, "request.told"),
        ({"told": [{"profile": "balanced", "expected": {"client.p95_ms": [1.0, 3.0, 2.0]}}]}, "told.0.expected"),
        ({"told": [{"profile": "balanced", "expected": {"client.p95_ms": [1.0]}}]}, "told.0.expected.client.p95_ms"),
        ({"told": [{"profile": "balanced", "expected": {"client.p95_ms": 1.0}}]}, "told.0.expected.client.p95_ms"),
        ({"told": [{"profile": "balanced", "expected": []}]}, "told.0.expected"),
        ({"told": [{"profile": "balanced", "values": {"client.p95_ms": "slow"}}]}, "client.p95_ms"),
        ({"knobs": ["osd_scrub_cost"]}, "does nothing on Tentacle"),
        ({"knobs": "all"}, "request.knobs"),
        ({"seed": -1}, "request.seed"),
        ({"ask": 100}, "request.ask"),
        ({"shards": 0}, "request.shards"),
        ({"shards": 2.5}, "request.shards"),
    ],
)
def test_a_wrong_request_is_answered_with_its_place(changes: dict, words: str) -> None:
    result, code = serve(json.dumps(request(**changes)))
    assert (result["ok"], result["kind"], code) == (False, "request", 2)
    assert words in result["error"]
    assert "\n" not in result["error"]


@pytest.mark.parametrize("text", ["", "null", "[]", '"x"', "[" * 100_000])
def test_what_is_no_request_is_answered_too(text: str) -> None:
    result, code = serve(text)
    assert (result["kind"], code) == ("request", 2)


def test_on_several_shards_the_chunk_of_recovery_is_searched() -> None:
    assert answer(request(shards=8))["searched"] == [*SHARES, "osd_recovery_max_chunk"]


def test_on_hard_disks_the_batch_of_deferred_writes_is_searched() -> None:
    result = answer(request(kind="hdd"))
    assert result["searched"] == [*SHARES, "bluestore_deferred_batch_ops_hdd"]
    check_settings(result["proposals"][0]["settings"], TENTACLE)


def test_the_same_request_gives_the_same_answer_and_another_seed_another_one() -> None:
    # with the chunk as well, so that there is more than one edge to go to
    told = REQUEST["told"] + history(3)
    first = answer(request(told=told, shards=8))
    assert first["verdict"]["state"] == "searching"
    assert answer(request(told=told, shards=8)) == first
    assert answer(request(told=told, shards=8, seed=4))["proposals"] != first["proposals"]


def test_nan_and_infinity_in_what_was_seen_count_as_not_seen() -> None:
    text = json.dumps(request(told=[{"profile": "balanced", "values": {"client.p95_ms": float("nan")}}] * 4))
    assert "NaN" in text
    result, code = serve(text)
    assert code == 0
    json.dumps(result, allow_nan=False)
    assert result["best"]["values"] == {}


def test_values_beyond_the_searched_range_are_told_all_the_same() -> None:
    wild = {**TENTACLE.profiles["balanced"], "osd_mclock_scheduler_client_wgt": 900, "osd_max_scrubs": 10}
    told = [*REQUEST["told"], *history(3), {"settings": wild, "values": {"client.p95_ms": 60.0}}]
    result, code = serve(json.dumps(request(told=told)))
    assert code == 0
    check_settings(result["proposals"][0]["settings"], TENTACLE)


def test_what_failed_is_not_proposed_again_nor_is_anything_like_it() -> None:
    told = list(REQUEST["told"])
    for _ in range(4):
        (proposal,) = answer(request(told=told))["proposals"]
        assert proposal["settings"] not in [entry.get("settings") for entry in told if "failed" in entry]
        told.append({"settings": proposal["settings"], "failed": "an OSD went down"})


def test_without_a_baseline_it_is_asked_for_first() -> None:
    result = answer(request(baseline=None, told=[]))
    assert {name: result["proposals"][0]["settings"][name] for name in MCLOCK_NINE} == dict(
        TENTACLE.profiles["balanced"]
    )


@pytest.mark.parametrize("share", [0, 1.5, "much", True])
def test_a_share_that_is_none_is_refused(share: object) -> None:
    result, code = serve(json.dumps(request(safe_probability=share)))
    assert (result["kind"], code) == ("request", 2)


def test_several_proposals_are_all_different() -> None:
    proposals = [json.dumps(item["settings"]) for item in answer(request(ask=7))["proposals"]]
    assert len(set(proposals)) == 7


def test_the_best_is_the_best_mean_and_not_the_luckiest_window() -> None:
    steady = {**TENTACLE.profiles["balanced"], "osd_mclock_scheduler_client_wgt": 8}
    lucky = {**TENTACLE.profiles["balanced"], "osd_mclock_scheduler_client_wgt": 9}
    rate = {"recovery.bytes_s": 9e6}
    told = [{"settings": steady, "values": {"client.p95_ms": value, **rate}} for value in (70.0, 72.0)]
    told += [{"settings": lucky, "values": {"client.p95_ms": value, **rate}} for value in (50.0, 120.0)]
    best = answer(request(told=told))["best"]
    assert best["settings"] == steady
    assert best["repeats"] == 2
    assert [verdict["met"] for verdict in best["verdicts"]] == [True, True]


def test_settings_that_failed_once_are_never_the_best() -> None:
    settings = {**TENTACLE.profiles["balanced"], "osd_mclock_scheduler_client_wgt": 8}
    good = {"client.p95_ms": 10.0, "recovery.bytes_s": 90e6}
    told = [{"settings": settings, "values": good}, {"settings": settings, "failed": "inactive PGs", "values": good}]
    assert answer(request(told=told))["best"] is None


@pytest.mark.parametrize("release", [r for r in RELEASES.values() if r.units == "fraction"], ids=str)
def test_it_proposes_for_every_release(release: object) -> None:
    result = answer(request(release=str(release), told=[], slo={"objectives": ["scrub.interval_s <= 7 d"]}))
    check_settings(result["proposals"][0]["settings"], RELEASES[str(release)])


def test_after_four_trials_it_says_which_knobs_matter_and_what_is_in_the_way() -> None:
    assert answer(request(told=[], explain=True))["explanation"] is None
    told = history(2)
    learnt = answer(request(told=REQUEST["told"] + told, explain=True))["explanation"]
    assert set(learnt["importance"]) == {"client.p95_ms", "recovery.bytes_s"}
    assert all(entry["knob"] in MCLOCK_NINE for entries in learnt["importance"].values() for entry in entries)
    # nothing that was told keeps the latency
    assert learnt["in_the_way"] is not None
    assert answer(request(told=REQUEST["told"] + told))["explanation"] is None


def test_profiles_of_other_clusters_are_judged_and_those_of_another_version_left_out() -> None:
    hardware = {"capacity_iops": 800.0, "bandwidth_bytes_s": 60e6, "shards": 1, "device_class": "ssd"}
    profile = {
        "schema": 1,
        "name": "other",
        "release": "tentacle",
        "hardware": {**hardware, "device_class": "hdd", "osds": 3},
        "settings": dict(TENTACLE.profiles["high_client_ops"]),
    }
    given = {"hardware": hardware, "osds": 3, "profiles": [profile, {"schema": 99}]}
    (judged,) = answer(request(elsewhere=given))["elsewhere"]
    assert judged == {"profile": "other", "suggested": False, "reason": "found on hdd, here is ssd"}
    assert answer(request())["elsewhere"] == []
    for wrong in ({**given, "osds": 0}, {**given, "hardware": {"shards": 1}}, {**given, "profiles": None}, []):
        assert serve(json.dumps(request(elsewhere=wrong)))[0]["kind"] == "request"
