from __future__ import annotations

import json
from typing import Mapping

from ceph_tuner.doctor import gather
from ceph_tuner.ports import Commander
from twins import small_twin


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
