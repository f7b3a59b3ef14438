"""A trial of a queue as it is measured: what the host did beside its controls, from one stretch to the next."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Dict, List, Mapping, Sequence, Tuple

import numpy as np
import pytest

from ceph_tuner.core.errors import InputError
from ceph_tuner.recommend import queue_stretch
from ceph_tuner.recommend.queue_stretch import AT, Comparison, MeasuredTrial, Stretch, change_beside_controls
from ceph_tuner.recommend.queue_trial import SURE

TRIAL = MeasuredTrial("h1", (2, 3), {"h0": (0, 1), "h2": (4,)})


def test_a_host_s_change_is_held_against_that_of_its_controls() -> None:
    """Both become slower by half, and the host by a tenth more."""
    noise = np.random.default_rng(2).normal(0.0, 0.05, (2, 48, 2))
    before, after = (np.exp(each) * [12.0, 10.0] for each in noise)
    after *= [1.5 * 1.1, 1.5]
    mean, low, high = change_beside_controls(before.tolist(), after.tolist())
    assert 1.0 < low < mean < high < 1.2
    assert low < 1.1 < high
    mean, low, high = change_beside_controls(before.tolist(), (before * 3).tolist())
    assert low < 1.0 == pytest.approx(mean)
    assert change_beside_controls([(2.0, 1.0)] * 2, [(3.0, 1.0)] * 2) == pytest.approx((1.5, 1.5, 1.5))


@pytest.mark.parametrize("deviation", [0.05, 0.3])
def test_the_ends_of_a_change_hold_it_as_often_as_promised(deviation: float) -> None:
    draws = np.exp(np.random.default_rng(3).normal(0.0, deviation, (1000, 2, 8, 2)))
    held = [low <= 1.0 <= high for _, low, high in (change_beside_controls(*draw.tolist()) for draw in draws)]
    assert float(np.mean(held)) == pytest.approx(SURE, abs=0.02)


def test_of_a_single_minute_no_change_is_told() -> None:
    assert change_beside_controls([(1.0, 1.0)], [(2.0, 1.0)] * 5) is None
    assert change_beside_controls([], [(2.0, 1.0)] * 5) is None


def stretch(queue: str, minutes: Sequence[Mapping[int, Tuple[float, float]]]) -> Stretch:
    """Of each minute, each OSD's reads and how long each took, in ms; recovery is a thousandth of the reads in MB."""
    looks: List[Dict[int, Dict[str, float]]] = [
        {osd: {AT: 100.0, "op_r_latency.sum": 50.0, "op_r_latency.count": 10.0, "op_r": 10.0} for osd in range(5)}
    ]
    for number, minute in enumerate(minutes, 1):
        look: Dict[int, Dict[str, float]] = {}
        for osd, (count, ms) in minute.items():
            before = looks[-1].get(osd, looks[0][osd])
            look[osd] = {
                AT: 100.0 + 60 * number,
                "op_r_latency.sum": before["op_r_latency.sum"] + count * ms / 1e3,
                "op_r_latency.count": before["op_r_latency.count"] + count,
                "op_r": before["op_r"] + count,
            }
        looks.append(look)
    return Stretch(queue, tuple(looks))


def rows(*stretches: Stretch) -> List[Dict[str, Comparison]]:
    measured = TRIAL
    for each in stretches:
        measured = measured.with_stretch(each)
    return [{row.metric: row for row in found} for found in measured.comparisons()]


def test_latency_is_that_of_all_operations_of_a_side_and_rates_are_of_one_osd() -> None:
    minute = {0: (600, 1.0), 1: (0, 0.0), 2: (600, 5.0), 3: (1200, 2.0), 4: (600, 3.0)}
    (found,) = rows(stretch("mclock_scheduler", [minute, minute]))
    reads, operations = found["client reads, mean ms"], found["client operations/s"]
    assert (reads.host, reads.controls, reads.change) == (pytest.approx(3.0), pytest.approx(2.0), None)
    assert (operations.host, operations.controls) == (pytest.approx(15.0), pytest.approx(20 / 3))
    # of what did not go on nothing is said
    assert set(found) == {"client reads, mean ms", "client operations/s"}


def test_each_stretch_is_held_against_the_one_before() -> None:
    def level(host_ms: float, controls_ms: float) -> Dict[int, Tuple[float, float]]:
        return {osd: (600, host_ms if osd in TRIAL.osds else controls_ms) for osd in range(5)}

    before, other, back = [level(10, 10)] * 3, [level(30, 20)] * 3, [level(20, 20)] * 3
    found = rows(stretch("mclock_scheduler", before), stretch("wpq", other), stretch("mclock_scheduler", back))
    changes = [each["client reads, mean ms"].change for each in found]
    assert changes[0] is None
    assert [pytest.approx(each) for each in changes[1:] if each is not None] == [(1.5,) * 3, (2 / 3,) * 3]


def test_a_minute_in_which_an_osd_began_anew_or_did_not_answer_does_not_count() -> None:
    whole = dict.fromkeys(range(5), (600, 4.0))
    silent = {osd: own for osd, own in whole.items() if osd != 3}
    measured = stretch("wpq", [whole, silent, whole, whole])
    anew = {osd: {name: value / 1e3 for name, value in counts.items()} for osd, counts in measured.looks[-1].items()}
    looks = (*measured.looks, anew)
    (found,) = rows(Stretch("wpq", looks))
    assert found["client reads, mean ms"].host == pytest.approx(4.0)
    pairs = TRIAL._pairs(Stretch("wpq", looks), "client reads, mean ms")
    assert len(pairs) == 2


def test_the_file_holds_what_was_measured(tmp_path: Path) -> None:
    path = tmp_path / "trial.json"
    assert queue_stretch.read(path) is None
    measured = TRIAL.with_stretch(stretch("wpq", [dict.fromkeys(range(5), (600, 4.0))]))
    queue_stretch.write(path, measured)
    assert queue_stretch.read(path) == measured


@pytest.mark.parametrize("text", ["{", "[]", json.dumps({"host": "h1"}), json.dumps({**TRIAL.to_dict(), "osds": "x"})])
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "trial.json"
    path.write_text(text)
    with pytest.raises(InputError):
        queue_stretch.read(path)
