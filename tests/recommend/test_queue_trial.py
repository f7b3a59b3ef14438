"""A trial of the other queue on one host: which OSDs, what beside them, how long, and the way back."""

from __future__ import annotations

import math
import random
from typing import Any, Dict, List, Optional

import numpy as np
import pytest
from scipy.stats import ttest_ind

from ceph_tuner.core.ceph.ports import ConfigEntry
from ceph_tuner.core.ceph.target import Place
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.releases import TENTACLE
from ceph_tuner.core.measure.sample import Measure, Window
from ceph_tuner.recommend.queue_trial import (
    EFFECT,
    LEAST_MINUTES,
    MEASURE,
    MEASURED_METRIC,
    POWER,
    RUN,
    SURE,
    WAIT,
    QueueTrial,
    minutes_for,
    noout_hosts,
    plan_queue_trial,
)
from ceph_tuner.twin.model import MCLOCK, WPQ

PLACES = [Place(osd, "ssd" if osd < 9 else "hdd", {"host": f"h{osd // 3}"}) for osd in range(12)]


def trial(host: str = "h1", **given: Any) -> QueueTrial:
    known: Dict[str, Any] = {
        "entries": [],
        "places": PLACES,
        "queues": dict.fromkeys(range(12), MCLOCK),
        "windows": (),
        "sources": {},
        **given,
    }
    return plan_queue_trial(
        host,
        known["entries"],
        known["places"],
        known["queues"],
        TENTACLE,
        (20, 2, 4),
        known["sources"],
        known["windows"],
        known.get("noout", ()),
    )


def commands(found: QueueTrial, back: bool = False) -> List[str]:
    return [step.text for step in (found.way_back if back else found.way) if step.kind == RUN]


def test_each_osd_of_the_host_gets_an_entry_of_its_own_and_a_restart() -> None:
    found = trial()
    assert found.osds == (3, 4, 5)
    assert commands(found) == [
        *(f"ceph config set osd.{osd} osd_op_queue wpq" for osd in (3, 4, 5)),
        "ceph osd set-group noout h1",
        *(f"systemctl restart ceph-osd@{osd}  # cephadm: ceph orch daemon restart osd.{osd}" for osd in (3, 4, 5)),
        "ceph osd unset-group noout h1",
    ]


def test_the_way_back_leaves_the_database_as_it_was_and_restarts_once_more() -> None:
    found = trial()
    assert sorted(commands(found, back=True)[:3]) == [f"ceph config rm osd.{osd} osd_op_queue" for osd in (3, 4, 5)]
    assert commands(found, back=True)[3:] == commands(found)[3:]


def test_nothing_is_measured_before_each_osd_says_that_it_runs_the_queue() -> None:
    found = trial()
    for steps, queue in ((found.way, WPQ), (found.way_back, MCLOCK)):
        kinds = [step.text for step in steps]
        for osd in (3, 4, 5):
            restart = next(at for at, text in enumerate(kinds) if text.startswith(f"systemctl restart ceph-osd@{osd} "))
            assert steps[restart + 1].kind == WAIT
            assert steps[restart + 1].text == f"`ceph tell osd.{osd} config get osd_op_queue` says {queue}"


def test_scrubs_and_a_backlog_of_other_work_hold_no_step_up() -> None:
    """Else a cluster that scrubs or recovers, which is why one compares queues, would never come to the next OSD."""
    waits = [step.text for step in trial().way if step.kind == WAIT and "pg stat" in step.text]
    assert waits
    assert all("scrubbing or not, or as many as before" in text for text in waits)


def test_a_flag_that_is_there_already_is_neither_set_nor_taken_away() -> None:
    assert [text for text in commands(trial()) if "noout" in text]
    flagged = trial(noout=("h0", "h1"))
    assert not [text for text in commands(flagged) + commands(flagged, back=True) if "noout" in text]


def test_the_flag_is_the_cluster_s_or_the_host_s() -> None:
    hosts = ("h0", "h1")
    assert noout_hosts({"flags": "sortbitwise,noout"}, hosts) == hosts
    assert noout_hosts({"flags": "sortbitwise", "crush_node_flags": {"h1": ["noout"], "h0": ["noup"]}}, hosts) == (
        "h1",
    )
    assert noout_hosts({"flags": "sortbitwise,nooutside"}, hosts) == ()


def test_an_entry_of_the_osd_is_put_back_as_it_was() -> None:
    entries = [ConfigEntry("osd", "osd_op_queue", "wpq"), ConfigEntry("osd.4", "osd_op_queue", "wpq")]
    found = trial(
        entries=entries, queues={**dict.fromkeys(range(12), MCLOCK), 3: WPQ, 4: WPQ, 5: WPQ, 0: WPQ, 1: WPQ, 2: WPQ}
    )
    assert (found.before, found.tried) == (WPQ, MCLOCK)
    assert "ceph config set osd.4 osd_op_queue wpq" in commands(found, back=True)
    # hosts under the other queue are no control
    assert list(found.controls) == ["h0"]


def test_controls_have_the_same_device_classes() -> None:
    assert dict(trial().controls) == {"h0": (0, 1, 2), "h2": (6, 7, 8)}
    with pytest.raises(InputError, match="no host with OSDs of the same classes"):
        trial("h3")


def test_without_a_name_the_smallest_host_with_a_control_is_taken() -> None:
    assert trial("", places=[place for place in PLACES if place.osd != 8]).host == "h2"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"host": "h9"}, "a host with running OSDs: h0, h1, h2, h3"),
        ({"queues": {**dict.fromkeys(range(12), MCLOCK), 4: WPQ}}, "mclock_scheduler and wpq"),
        ({"queues": {}}, "no known queue"),
        ({"places": [place for place in PLACES if place.osd < 3], "host": ""}, "no two hosts"),
        ({"entries": [ConfigEntry("osd/host:h1", "osd_op_queue", MCLOCK)]}, "osd/host:h1"),
        ({"sources": {4: {"osd_op_queue": {"file": MCLOCK}}}}, "ceph.conf"),
    ],
)
def test_what_cannot_be_tried_is_refused(given: Dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        trial(**given)


def test_it_is_measured_before_under_the_other_queue_and_after_the_way_back() -> None:
    found = trial()
    assert found.way[0].kind == found.way[-1].kind == found.way_back[-1].kind == MEASURE
    steps = (found.way[0], found.way[-1], found.way_back[-1])
    commands = {step.text.partition("  #")[0] for step in steps}
    # the same file, so that each stretch stands beside the one before
    assert commands == {
        f"ceph-tuner compare-queues --cluster ceph --host h1 --measure queue-trial-h1.json --minutes {found.minutes}"
    }


def minutes(deviation: Optional[float]) -> List[Window]:
    """An hour of minutes, each one this far from the one before."""
    chance, value, found = random.Random(1), 10.0, []
    for number in range(61 if deviation is not None else 0):
        found.append(Window(60.0 * number, 60.0 * (number + 1), {MEASURED_METRIC: Measure(value, 0.0, 12)}))
        value *= math.exp(chance.gauss(0.0, deviation or 0.0))
    return found


def test_the_noise_is_the_cluster_s_own_where_it_keeps_its_past() -> None:
    assert trial(windows=minutes(0.3)).deviation == pytest.approx(0.3, rel=0.3)
    assert trial(windows=minutes(0.3)).measured
    assert not trial().measured


@pytest.mark.parametrize("deviation", [0.2, 0.3, 0.5])
def test_so_many_minutes_find_the_effect_as_often_as_promised(deviation: float) -> None:
    count = minutes_for(EFFECT, deviation)
    assert count > LEAST_MINUTES
    before, after = np.random.default_rng(1).normal(0.0, deviation, (2, 4000, count))
    share = float(np.mean(ttest_ind(after + math.log1p(EFFECT), before, axis=1).pvalue < 1 - SURE))
    assert share == pytest.approx(POWER, abs=0.02)


def test_a_quiet_cluster_is_measured_long_enough_all_the_same() -> None:
    assert minutes_for(EFFECT, 0.01) == LEAST_MINUTES
