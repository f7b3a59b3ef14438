"""A recommendation says what its hosts would have to receive: the twin knows no limit of the network."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Dict, Tuple

import pytest

from ceph_tuner.core.goals.slo import parse_slo
from ceph_tuner.recommend import Question
from ceph_tuner.recommend.busy_network import busy_network
from twins import small_model

SLO = parse_slo({"name": "day", "objectives": ["recovery.finish_s <= 1 h"]})


def notes(means: Dict[str, float], hosts: int, better: bool = True) -> Tuple[str, ...]:
    searched: Any = SimpleNamespace(
        question=Question(small_model(hosts=hosts), SLO),
        winner=SimpleNamespace(means=means),
        choice=SimpleNamespace(better=better),
    )
    return busy_network(searched)


def test_what_ten_gigabit_cannot_carry_is_told() -> None:
    means = {"recovery.bytes_s": 7e9, "client.write_bytes_s": 1e9, "client.read_bytes_s": 50e9}
    assert notes(means, 4) == (
        "each host would receive 2 GB/s (16 Gbit/s) or more under these settings, and the twin knows no limit of the "
        "network: on a narrower one the work takes longer",
    )
    # each of the four OSDs is a failure domain
    assert notes(means, 0) == notes(means, 4)
    assert "under what is in force" in notes(means, 4, better=False)[0]


@pytest.mark.parametrize("means", [{}, {"recovery.bytes_s": 4.9e9}, {"client.iops": 1e9}])
def test_less_is_not_worth_a_word(means: Dict[str, float]) -> None:
    assert notes(means, 4) == ()
