from __future__ import annotations

import json
import threading
import time
from collections import Counter
from datetime import datetime, timezone
from typing import Collection, Iterable, Iterator, Mapping, Tuple

import pytest

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.ceph.ports import Commander, Told
from ceph_tuner.core.ceph.tell_each import AT_ONCE, by_threads
from ceph_tuner.core.errors import ClusterTimeout, CommandFailed
from ceph_tuner.core.measure.pg_documents import pg_rows
from ceph_tuner.doctor import gather
from ceph_tuner.doctor.late_scrubs import late_scrubs
from twins import DISK, answering, small_twin
from whole_cluster import whole_cluster


class Edited:
    """A cluster whose pools have options of their own."""

    def __init__(self, commander: Commander, options: Mapping[str, float]) -> None:
        self._commander, self._options = commander, options

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        answer = self._commander.mon(prefix, arguments, payload)
        if prefix != "osd dump":
            return answer
        document = json.loads(answer)
        for pool in document["pools"]:
            pool.setdefault("options", {}).update(self._options)
        return json.dumps(document)

    def tell(self, daemon: str, prefix: str, arguments: Mapping[str, str]) -> str:
        return self._commander.tell(daemon, prefix, arguments)


def test_a_pool_s_own_deep_scrub_interval_is_read() -> None:
    twin = small_twin()
    plain = gather(twin.commander, twin.clock, twin.release, twin.version)
    assert [pool.deep_scrub_interval for pool in plain.pools] == [0.0] * len(plain.pools)
    commander = Edited(twin.commander, {"deep_scrub_interval": 1_209_600.0})
    edited = gather(commander, twin.clock, twin.release, twin.version)
    assert {pool.deep_scrub_interval for pool in edited.pools} == {1_209_600.0}


def test_an_osd_whose_drive_says_nothing_is_of_the_kind_of_its_class() -> None:
    twin = small_twin(osd=DISK)
    said = [{"id": 0}, {"id": 1, "rotational": "0"}, {"id": 2, "rotational": "1"}]
    found = gather(answering(twin, {"osd metadata": said}).commander, twin.clock, twin.release, twin.version)
    assert [osd.kind for osd in found.osds] == ["hdd", "ssd", "hdd", "hdd"]


class ManyAtATime:
    """Of some OSDs one hangs for the time that each is given, and one refuses; all others answer after a moment."""

    def __init__(self, commander: Commander, hangs: int = -1, refuses: int = -1) -> None:
        self._commander, self._hangs, self._refuses = commander, f"osd.{hangs}", f"osd.{refuses}"
        self._lock = threading.Lock()
        self.under_way, self.most = 0, 0
        self.questions: Counter[str] = Counter()
        self.limits = set()

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        return self._commander.mon(prefix, arguments, payload)

    def tell(self, daemon: str, prefix: str, arguments: Mapping[str, str]) -> str:
        raise AssertionError(f"{daemon} is asked by itself")

    def tell_each(
        self,
        daemons: Iterable[str],
        prefix: str,
        arguments: Mapping[str, str],
        within: float,
        keep: Collection[str] = (),
    ) -> Iterator[Tuple[str, Told]]:
        self.limits.add(within)
        return by_threads(lambda daemon: self._answer(daemon, prefix), daemons, AT_ONCE)

    def _answer(self, daemon: str, prefix: str) -> str:
        with self._lock:
            self.questions[daemon] += 1
            self.under_way += 1
            self.most = max(self.most, self.under_way)
        try:
            time.sleep(0.01)
            if daemon == self._hangs:
                raise ClusterTimeout(f"`ceph tell {daemon} {prefix}` did not answer")
            if daemon == self._refuses and prefix == "perf dump":
                raise CommandFailed(prefix, -22, "no")
            with self._lock:
                return self._commander.tell(daemon, prefix, {})
        finally:
            with self._lock:
                self.under_way -= 1


def test_osds_are_asked_many_at_a_time() -> None:
    twin = small_twin()
    commander = ManyAtATime(twin.commander)
    facts = gather(commander, twin.clock, twin.release, twin.version)
    assert commander.most > 1
    assert set(commander.questions.values()) == {5}
    assert facts.osds == gather(twin.commander, twin.clock, twin.release, twin.version).osds
    assert all(osd.options for osd in facts.osds)


def test_an_osd_that_hangs_is_waited_for_once_and_named() -> None:
    twin = small_twin()
    commander = ManyAtATime(twin.commander, hangs=2)
    facts = gather(commander, twin.clock, twin.release, twin.version)
    assert commander.questions["osd.2"] == 1
    assert max(commander.limits) <= 10
    assert [note for note in facts.notes if "osd.2" in note and "did not answer" in note]
    assert [osd.place.osd for osd in facts.looked_at] == [0, 1, 3]


def test_what_one_osd_refuses_is_a_note_and_fails_no_other() -> None:
    twin = small_twin()
    facts = gather(ManyAtATime(twin.commander, refuses=1), twin.clock, twin.release, twin.version)
    assert [osd.place.osd for osd in facts.looked_at] == [0, 2, 3]
    assert [note for note in facts.notes if note.startswith("counters of osd.1: not seen")]


def test_an_answer_that_nobody_can_read_is_a_note() -> None:
    class Nonsense(ManyAtATime):
        def _answer(self, daemon: str, prefix: str) -> str:
            return "[7" if daemon == "osd.3" else super()._answer(daemon, prefix)

    twin = small_twin()
    facts = gather(Nonsense(twin.commander), twin.clock, twin.release, twin.version)
    assert [osd.place.osd for osd in facts.looked_at] == [0, 1, 2]
    assert [note for note in facts.notes if "of osd.3: not seen" in note]


class LongAgo:
    """A cluster whose PGs were deep-scrubbed so many days ago; its OSDs may keep their options to themselves."""

    def __init__(self, cluster: Cluster, days: float, silent: bool) -> None:
        self._commander, self._silent = cluster.commander, silent
        moment = datetime.fromtimestamp(cluster.clock.now() - days * 86_400, timezone.utc)
        self._stamp = moment.strftime("%Y-%m-%dT%H:%M:%S.%f+0000")

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        answer = self._commander.mon(prefix, arguments, payload)
        if prefix != "pg ls":
            return answer
        rows = pg_rows(json.loads(answer))
        return json.dumps([{**row, "last_deep_scrub_stamp": self._stamp} for row in rows])

    def tell(self, daemon: str, prefix: str, arguments: Mapping[str, str]) -> str:
        if self._silent:
            raise CommandFailed(prefix, -13, "no")
        return self._commander.tell(daemon, prefix, arguments)


@pytest.mark.parametrize("silent", [False, True])
@pytest.mark.parametrize(("days", "late"), [(8.0, False), (30.0, False), (31.0, True)])
def test_pgs_are_late_by_the_interval_in_force_whether_osds_or_the_monitors_tell_it(
    silent: bool, days: float, late: bool
) -> None:
    cluster = whole_cluster()
    cluster.config.set("osd", "osd_deep_scrub_interval", str(28 * 86_400))
    cluster.clock.sleep(5)
    facts = gather(LongAgo(cluster, days, silent), cluster.clock, cluster.release, cluster.version)
    assert {pg.deep_late for pg in facts.pgs} == {late}
    assert [finding.title.endswith("what holds them was not seen") for finding in late_scrubs(facts)] == [silent] * late
