"""PGs are listed pool by pool where they are too many for one answer."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Dict, List, Mapping

import pytest

from ceph_tuner.cluster import pg_rows
from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.bounded import ANSWER
from ceph_tuner.core.errors import RetryLater
from ceph_tuner.moves.map_view import read_map
from ceph_tuner.scrub_plan.cluster_view import read_view
from ceph_tuner.twin.model import Pool
from moving_cluster import moving_cluster
from twins import small_twin


class Noting:
    """Notes what `pg ls` is asked for, and answers without the PGs of a pool that has gone."""

    def __init__(self, cluster: Cluster, gone: str = "") -> None:
        self._commander, self._gone = cluster.commander, gone
        self.asked: List[Dict[str, str]] = []

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        answer = self._commander.mon(prefix, arguments, payload)
        if prefix != "pg ls":
            return answer
        self.asked.append(dict(arguments))
        document: Dict[str, Any] = json.loads(answer)
        rows = [row for row in document["pg_stats"] if row["pgid"].split(".")[0] != self._gone]
        return json.dumps({**document, "pg_stats": rows})

    def tell(self, daemon: str, prefix: str, arguments: Mapping[str, str]) -> str:
        return self._commander.tell(daemon, prefix, arguments)


@pytest.mark.parametrize(("most", "asked"), [(24, [{}]), (23, [{"pool": "1"}, {"pool": "2"}])])
def test_scrubs_are_seen_alike_however_pgs_are_listed(
    monkeypatch: pytest.MonkeyPatch, most: int, asked: List[Dict[str, str]]
) -> None:
    twin = small_twin(pools=(Pool("rbd", 16, 2), Pool("more", 8, 2)))
    whole = read_view(twin)
    monkeypatch.setattr(pg_rows, "AT_ONCE", most)
    noting = Noting(twin)
    assert read_view(replace(twin, commander=noting)) == whole
    assert (noting.asked, len(whole.pgs)) == (asked, 24)


def test_moves_are_seen_alike_however_pgs_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, _ = moving_cluster()
    whole = read_map(cluster)
    monkeypatch.setattr(pg_rows, "AT_ONCE", 7)
    noting = Noting(cluster)
    assert read_map(replace(cluster, commander=noting)) == whole
    assert (noting.asked, len(whole.pgs)) == ([{"pool": "1"}], 8)


def test_a_pool_that_goes_while_pgs_are_listed_is_not_one_that_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    twin = small_twin(pools=(Pool("rbd", 16, 2), Pool("more", 8, 2)))
    monkeypatch.setattr(pg_rows, "AT_ONCE", 1)
    with pytest.raises(RetryLater):
        read_view(replace(twin, commander=Noting(twin, gone="2")))


def test_an_answer_has_room_for_the_pgs_that_are_asked_for_at_once() -> None:
    # a row of `pg ls` with all its fields, and the largest pool that there can be
    assert ANSWER // 65_536 >= 5 * 1024
    assert ANSWER // pg_rows.AT_ONCE >= 8 * 1024
