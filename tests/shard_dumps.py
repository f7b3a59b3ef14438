"""Dumps of mClock's queues as OSDs give them, and a cluster with a shard of other values than its OSD shows."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, Dict, Mapping, Optional

from ceph_tuner.core.ceph.ports import Commander

# as a 20.2.4 OSD of 8 shards answered under client load, shortened to two of them
_RECORD = (
    "{{ client:{{ class_id: {number} client_id: 0 profile_id: 0 }}, record:{{ ClientRec:: client:{{ class_id: {number} "
    "client_id: 0 profile_id: 0 }} prev_tag:{{ RequestTag:: ready:false r:{r} p:{p} l:{l} }} req_count:0 "
    "top_req:none }} }}"
)


def dump(*shards: str) -> Dict[str, Any]:
    return {
        f"OSD:ShardedOpWQ:{number}": {
            "queue_sizes": {"high_priority_queue": 0, "scheduler": 0},
            "mClockClients": {
                "client_count": 1,
                "clients": f"{{ PriorityQueue::  {text} {{ reservation_top:none }} }}",
            },
        }
        for number, text in enumerate(shards)
    }


def record(r: float, p: float, limit: float = 0.0, number: int = 3) -> str:
    return _RECORD.format(number=number, r=f"{r:.4f}", p=f"{p:.4f}", l=f"{limit:.4f}")


class StaleShard:
    """A commander of a cluster on which shard 0 of osd.1 serves clients with a limit, where its options show none.

    Where its options turn after so many dumps of its queues, they have that limit from then on.
    """

    def __init__(self, commander: Commander, turns_after: Optional[int] = None) -> None:
        self._commander, self._turns_after = commander, turns_after
        self._dumps = 0
        self.readings: Counter[str] = Counter()

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        return self._commander.mon(prefix, arguments, payload)

    def tell(self, daemon: str, prefix: str, arguments: Mapping[str, str]) -> str:
        answer = self._commander.tell(daemon, prefix, arguments)
        if prefix == "config show":
            self.readings[daemon] += 1
            turned = self._turns_after is not None and self._dumps >= self._turns_after
            if daemon == "osd.1" and turned:
                return json.dumps({**json.loads(answer), "osd_mclock_scheduler_client_lim": "0.330000"})
        if (daemon, prefix) == ("osd.1", "dump_op_pq_state"):
            self._dumps += 1
            return json.dumps(dump(record(366_993.7 + self._dumps, 499_418.4 + self._dumps, 366_990.0 + self._dumps)))
        return answer
