from __future__ import annotations

import re
from typing import Any, List, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.autopilot.capacity import BELIEVED, DEFAULTS, RULES, Stored, findings, reason_not_to_bench, summary
from ceph_tuner.core.goals.guard import Sight

OK = Sight(0.0, "HEALTH_OK")


def flash(osd: int, iops: float = 30_000.0, **known: Any) -> Stored:
    return Stored(osd, "ssd", iops, **{"source": f"osd.{osd}", **known})


def rules(*stored: Stored) -> List[str]:
    return [f"{finding.osd} {finding.rule}" for finding in findings(stored)]


def test_the_defaults_are_ceph_s_and_lie_within_what_it_believes() -> None:
    assert DEFAULTS == {"ssd": 21500.0, "hdd": 315.0}
    assert all(low < DEFAULTS[kind] < high for kind, (low, high) in BELIEVED.items())


def test_what_was_measured_and_fits_is_believed() -> None:
    assert rules(*(flash(osd, 30_000.0 + 500 * osd, served=20_000.0, bench=31_000.0) for osd in range(6))) == []


def test_a_default_was_never_measured_wherever_it_stands() -> None:
    (finding,) = findings([Stored(3, "hdd", 315.0, "default")])
    assert (finding.rule, finding.better) == ("unmeasured", None)
    assert finding.words == (
        "osd.3 has Ceph's default for hdd, 315 IOPS: its bench at boot was skipped, or not within 50 to 500"
    )
    (finding,) = findings([flash(4, 21_500.0, source="osd/class:ssd", bench=22_000.0)])
    assert "set at osd/class:ssd" in finding.words
    assert finding.better == 22_000.0


def test_an_osd_that_served_more_than_it_can_has_too_low_a_capacity() -> None:
    assert rules(flash(0, 1000.0, served=1101.0)) == ["0 served"]
    assert rules(flash(0, 1000.0, served=1099.0)) == []


def test_an_osd_far_from_its_measured_peers_is_named_and_the_peers_are_not() -> None:
    peers = [flash(osd, 30_000.0) for osd in range(4)]
    assert rules(*peers, flash(4, 14_000.0)) == ["4 peers"]
    assert rules(*peers, flash(4, 61_000.0)) == ["4 peers"]
    assert rules(*peers, flash(4, 16_000.0)) == []
    # another class is no peer, and neither are OSDs that were never measured, nor too few
    assert rules(*peers, flash(4, 14_000.0, device_class="nvme")) == []
    unmeasured = [flash(osd, 21_500.0, source="default") for osd in range(10, 20)]
    assert rules(*peers[:2], flash(4, 5_000.0), *unmeasured) == [f"{osd} unmeasured" for osd in range(10, 20)]


def test_a_fresh_bench_that_differs_says_what_to_set() -> None:
    (finding,) = findings([flash(0, 30_000.0, bench=20_000.0)])
    assert (finding.rule, finding.better) == ("bench", 20_000.0)
    (finding,) = findings([flash(0, 30_000.0, bench=120_000.0, source="file")])
    assert "(file of the OSD itself, which outranks the monitors)" in finding.words
    assert "Ceph itself would not believe (1000 to 80000): measure with fio" in finding.words


def test_a_summary_names_the_first_osds_of_each_rule() -> None:
    found = findings([*(Stored(osd, "ssd", 21_500.0, "default") for osd in range(7)), flash(7, 1000.0, served=9000.0)])
    assert summary(found) == [
        "reckons with Ceph's default capacity: osd.0, osd.1, osd.2, osd.3, osd.4 and 2 more",
        "served more than its capacity says: osd.7",
    ]
    assert {finding.rule for finding in found} <= set(RULES)


@pytest.mark.parametrize(("kind", "iops"), [("nvme", 1.0), ("ssd", 0.0)])
def test_a_capacity_that_makes_no_sense_is_refused(kind: str, iops: float) -> None:
    with pytest.raises(ValueError, match="="):
        Stored(0, kind, iops, "default")


@given(st.floats(1, 1e6), st.lists(st.floats(0.8, 1.2), min_size=1, max_size=20))
def test_alike_osds_never_accuse_each_other(typical: float, spread: List[float]) -> None:
    found = findings(flash(osd, typical * factor) for osd, factor in enumerate(spread))
    assert not [finding for finding in found if finding.rule == "peers"]


@given(st.permutations(list(range(6))))
def test_the_order_of_the_osds_does_not_matter(order: List[int]) -> None:
    stored = [flash(osd, 1000.0 * (osd + 1) ** 2, served=5000.0) for osd in range(6)]
    assert findings(stored[place] for place in order) == findings(stored)


def refusal(**other: Any) -> Optional[str]:
    given = {"entry": flash(2), "on_request": True, "canary": (0, 1), "iops": 5.0, "work": (), "sight": OK, **other}
    return reason_not_to_bench(**given)


def test_an_idle_osd_and_one_of_the_canary_may_be_measured_when_asked() -> None:
    assert refusal() is None
    assert refusal(canary=(2,), iops=900.0, work=("scrub",)) is None
    assert refusal(canary=(2,), iops=None) is None


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"on_request": False}, "nobody asked"),
        ({"iops": None}, "not known what osd.2 serves"),
        ({"iops": 21.0}, r"osd.2 serves 21 operations/s \(idle: up to 20\)"),
        ({"work": ("recovery", "scrub")}, "recovery and scrub under way"),
        ({"sight": Sight(0.0, "HEALTH_WARN", {"osds.down": 1.0})}, "not steady: 1 OSDs down"),
        ({"sight": Sight(0.0, "HEALTH_WARN", {"recovery.objects_left": 7.0})}, "7 objects are degraded"),
        ({"on_trial": True}, "on trial"),
        ({"benches": (5,)}, "osd.5 is being measured"),
    ],
)
def test_why_an_osd_must_not_be_measured(other: dict, words: str) -> None:
    assert re.search(words, refusal(**other) or "")
