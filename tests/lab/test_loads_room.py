"""Room for what loads write, on OSDs that are nothing but counters."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Dict, List, Sequence

import pytest

from ceph_lab.loads.layout import PoolLayout
from ceph_lab.loads.pools import LoadPool
from ceph_lab.loads.room import check_room, make_room
from ceph_tuner.core.errors import LoadFailed

GB = 1e9


class Osds:
    """`Session` of a cluster whose OSDs have 10 GB each."""

    def __init__(self, used: Dict[int, float], pools: List[str], states: Sequence[str] = ()) -> None:
        self.used, self.names, self.removed = used, pools, []
        self.states = states or ["active+clean"] * len(pools)

    def osd(self, osd: int, prefix: str, **_: Any) -> Any:
        assert prefix == "perf dump"
        return {"osd": {"stat_bytes": 10 * GB, "stat_bytes_used": self.used[osd]}}

    def mon(self, prefix: str, **arguments: Any) -> Any:
        if prefix == "osd dump":
            return {"pools": [{"pool": number, "pool_name": name} for number, name in enumerate(self.names)]}
        if prefix == "osd crush rule ls":
            return []
        if prefix == "osd pool delete":
            self.removed.append(arguments["pool"])
        return None

    def mgr(self, prefix: str, **_: Any) -> Any:
        assert prefix == "pg dump"
        return {"pg_stats": [{"pgid": f"{pool}.0", "state": state} for pool, state in enumerate(self.states)]}


def load(name: str, stores: Dict[int, float], there: float = 0.0) -> Any:
    pool = SimpleNamespace(name=f"load-{name}", raw_bytes=lambda: there)
    return SimpleNamespace(name=name, pools=(pool,), stores=lambda: stores)


def test_pools_of_other_loads_go_where_room_is_short_and_nothing_else_does() -> None:
    session, told = Osds({0: 5 * GB, 1: 7 * GB}, ["rbd", "load-scrub", "load-client"]), []
    client = load("client", {0: 2 * GB, 1: 2 * GB})
    make_room(session, [client], told.append)  # type: ignore[arg-type]
    assert session.removed == ["load-scrub"]
    assert "load-scrub" in told[0]


@pytest.mark.parametrize(
    ("used", "there"),
    [({0: 5 * GB, 1: 6.4 * GB}, 0.0), ({0: 7 * GB, 1: 8.4 * GB}, 4 * GB), ({0: 9 * GB, 1: 9 * GB}, 3.98 * GB)],
    ids=["it fits", "it is there already", "nearly all of it is there"],
)
def test_what_fits_takes_nothing_from_others(used: Dict[int, float], there: float) -> None:
    session = Osds(used, ["load-scrub", "load-client"])
    loads = [load("client", {0: 2 * GB, 1: 2 * GB}, there)]
    make_room(session, loads, lambda line: None)  # type: ignore[arg-type]
    check_room(session, loads)  # type: ignore[arg-type]
    assert session.removed == []


def test_pools_of_other_loads_that_have_work_left_go_where_there_is_room() -> None:
    names = ["rbd", "load-scrub", "load-snaptrim", "load-backfill", "load-client"]
    states = ["active+remapped", "active+clean+scrubbing+deep", "active+clean+snaptrim_wait",
              "active+remapped+backfilling", "active+undersized+degraded"]  # fmt: skip
    session, told = Osds({0: GB, 1: GB}, names, states), []
    assert not make_room(session, [load("client", {0: GB, 1: GB})], told.append)  # type: ignore[arg-type]
    assert session.removed == ["load-snaptrim", "load-backfill"]
    assert told == ["it would go on working: what other loads left there is removed (load-snaptrim, load-backfill)"]


def test_loads_that_do_not_fit_by_themselves_are_refused_before_anything_is_written() -> None:
    session = Osds({0: 1 * GB, 1: 1 * GB}, [])
    loads = [load("client", {0: 2 * GB, 1: 2 * GB}), load("recovery", {0: 3 * GB, 1: 6 * GB})]
    with pytest.raises(LoadFailed, match=r"would write 8.0 GB to osd.1, which has 7.5 GB up to 85%"):
        check_room(session, loads)  # type: ignore[arg-type]


def test_a_pool_spreads_what_it_stores_over_its_osds() -> None:
    replicated = LoadPool(None, "x", PoolLayout(replicas=2), [0, 1, 2, 3])  # type: ignore[arg-type]
    coded = LoadPool(None, "x", PoolLayout(chunks=(2, 1)), [0, 1, 2])  # type: ignore[arg-type]
    assert replicated.spread(8.0) == {0: 4.0, 1: 4.0, 2: 4.0, 3: 4.0}
    assert coded.spread(8.0) == {0: 4.0, 1: 4.0, 2: 4.0}
