"""How long a controller waits between two watches and between two passes, whatever the API server does."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List

import pytest
from api_in_memory import Paced, Use
from at_api_server import LATENCY
from plugin_on_twin import plugin_cluster

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.controller.controller import FIRST_WAIT_S, LONGEST_WAIT_S, WATCH_S
from ceph_tuner.controller.kinds import SLO
from ceph_tuner.controller.leadership import PREFIX, controllers_lock
from ceph_tuner.core.ceph.commands import CommandStore
from ceph_tuner.core.changes.lock import break_lock
from ceph_tuner.core.errors import ClusterTimeout
from ceph_tuner.rook.kubernetes_api import ApiAnswer
from monitors import ManualClock

EVER_LONGER = [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]
RESYNC_S = 20.0
Watched = Callable[[], Iterator[Dict[str, Any]]]


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return plugin_cluster()


@pytest.fixture
def paced(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Paced:
    return Paced(cluster, monkeypatch, RESYNC_S)


def between_watches(paced: Paced, waits: int, *watches: Watched) -> List[float]:
    """Waits between watches that end like this, one after another, and the last one again and again."""
    left = list(watches)
    paced.api.watched = lambda _: (left.pop(0) if len(left) > 1 else left[0])()
    paced.stop.rule = lambda: paced.stop.set() if len(paced.stop.waits) == waits else None
    paced.controller._watch(SLO)
    return paced.stop.waits


def between_passes(paced: Paced, waits: int, before_pass: Callable[[], None] = lambda: None) -> List[float]:
    """Seconds between the beginnings of passes."""
    begun: List[float] = []

    def asked(use: Use) -> None:
        if (use.verb, use.resource) == ("list", SLO.plural):
            begun.append(paced.clock.time)
            before_pass()

    paced.api.before = asked
    paced.lead(waits)
    return [later - earlier for earlier, later in zip(begun, begun[1:])]


def ends(clock: ManualClock, after_s: float) -> Watched:
    def watch() -> Iterator[Dict[str, Any]]:
        clock.time += after_s
        return iter(())

    return watch


def breaks(clock: ManualClock, after_s: float) -> Watched:
    def watch() -> Iterator[Dict[str, Any]]:
        clock.time += after_s
        raise ClusterTimeout("broken")

    return watch


def is_gone(clock: ManualClock) -> Watched:
    return lambda: iter([{"type": "ERROR", "object": {"kind": "Status", "code": 410}}])


@pytest.mark.parametrize(
    "watch",
    [lambda clock: ends(clock, 0), lambda clock: breaks(clock, 0), is_gone],
    ids=["it ends", "it breaks off", "what it asks for is gone"],
)
def test_watches_that_end_at_once_follow_each_other_after_ever_longer_waits(
    paced: Paced, watch: Callable[[ManualClock], Watched]
) -> None:
    assert between_watches(paced, len(EVER_LONGER), watch(paced.clock)) == EVER_LONGER


def test_a_kind_that_cannot_be_watched_is_asked_for_after_ever_longer_waits(paced: Paced) -> None:
    paced.api.refused["cephslos"] = ApiAnswer(404, {"message": "the server could not find the requested resource"})
    assert between_watches(paced, len(EVER_LONGER), ends(paced.clock, 0)) == EVER_LONGER


def test_watches_of_their_full_length_follow_each_other_at_once(paced: Paced) -> None:
    brief, whole = ends(paced.clock, 0), ends(paced.clock, WATCH_S)
    # that they work again is known after the first of them
    assert between_watches(paced, 3, brief, brief, whole, whole, whole, brief) == [0.5, 1.0, 0.5]
    assert [use.verb for use in paced.api.uses].count("watch") == 6


def test_a_watch_that_breaks_off_after_its_work_begins_anew_soon(paced: Paced) -> None:
    assert between_watches(paced, 5, breaks(paced.clock, LONGEST_WAIT_S + 1)) == [FIRST_WAIT_S] * 5


def test_passes_that_fail_follow_each_other_after_ever_longer_waits(paced: Paced) -> None:
    paced.api.refused["cephslos"] = ApiAnswer(500, {"message": "etcdserver: request timed out"})
    between = between_passes(paced, 400)
    assert between[: len(EVER_LONGER)] == [FIRST_WAIT_S + wait_s for wait_s in EVER_LONGER]
    assert max(between) == FIRST_WAIT_S + LONGEST_WAIT_S


def test_a_pass_that_holds_ends_the_long_waits(paced: Paced) -> None:
    answers = [500, 500, 500, 0, 500, 500]

    def next_answer() -> None:
        status = answers.pop(0) if answers else 0
        paced.api.refused = {"cephslos": ApiAnswer(status, {})} if status else {}

    between = between_passes(paced, 400, next_answer)
    assert between[:6] == [FIRST_WAIT_S + wait_s for wait_s in (0.5, 1.0, 2.0, RESYNC_S, 0.5, 1.0)]


def test_without_a_change_a_pass_comes_after_the_time_of_the_settings(paced: Paced) -> None:
    assert set(between_passes(paced, 400)) == {FIRST_WAIT_S + RESYNC_S}


@pytest.mark.parametrize("status", [200, 500])
def test_whoever_changes_resources_all_the_time_does_not_keep_the_cluster_busy(paced: Paced, status: int) -> None:
    if status != 200:
        paced.api.refused["cephslos"] = ApiAnswer(status, {})
    assert set(between_passes(paced, 50, paced.controller._changed)) == {FIRST_WAIT_S}


def test_a_resource_that_is_never_as_it_was_read_does_not_either(paced: Paced) -> None:
    paced.api.create(SLO, "main", LATENCY)
    begun: List[float] = []

    def meanwhile(use: Use) -> None:
        if use.verb == "patch":
            begun.append(paced.clock.time)
            paced.api.change(SLO, "main", LATENCY)

    paced.api.before = meanwhile
    paced.lead(50)
    assert {later - earlier for earlier, later in zip(begun, begun[1:])} == {FIRST_WAIT_S}
    assert paced.api.reason(SLO, "main") == ""


def test_who_is_kept_out_of_the_cluster_attempts_to_enter_after_longer_waits(paced: Paced, cluster: Cluster) -> None:
    with controllers_lock(cluster, "another"):
        paced.lead(waits=6)
    assert paced.stop.waits == [2.0, 4.0, 8.0, 8.0, 8.0, 8.0]
    assert (paced.controller.vitals.terms, len(paced.said)) == (0, 1)
    del paced.stop.waits[:]

    def shut_out(use: Use) -> None:
        if (use.verb, use.resource) == ("list", "cephslos"):
            # there is something to write, and it may not
            paced.api.change(SLO, "main", {"objectives": [f"client.p95_ms <= {len(paced.api.uses)} ms"]})
            break_lock(CommandStore(cluster.commander, PREFIX))

    # who led enters again soon
    paced.api.create(SLO, "main", LATENCY)
    paced.api.before = shut_out
    paced.lead(waits=3)
    assert paced.stop.waits == [2.0, 2.0, 2.0]
    assert paced.controller.vitals.terms == 3
