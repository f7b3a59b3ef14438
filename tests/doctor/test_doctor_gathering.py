from __future__ import annotations

import json
from typing import Mapping

from ceph_tuner.doctor import gather
from ceph_tuner.ports import Commander
from twins import DISK, answering, small_twin


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
    plain = gather(twin.commander, twin.release, twin.version)
    assert [pool.deep_scrub_interval for pool in plain.pools] == [0.0] * len(plain.pools)
    edited = gather(Edited(twin.commander, {"deep_scrub_interval": 1_209_600.0}), twin.release, twin.version)
    assert {pool.deep_scrub_interval for pool in edited.pools} == {1_209_600.0}


def test_an_osd_whose_drive_says_nothing_is_of_the_kind_of_its_class() -> None:
    twin = small_twin(osd=DISK)
    said = [{"id": 0}, {"id": 1, "rotational": "0"}, {"id": 2, "rotational": "1"}]
    found = gather(answering(twin, {"osd metadata": said}).commander, twin.release, twin.version)
    assert [osd.kind for osd in found.osds] == ["hdd", "ssd", "hdd", "hdd"]
