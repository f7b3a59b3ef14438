"""The most keys that the plugin has in the cluster's store, by kind: what comes before a key's last part."""

from __future__ import annotations

from typing import Dict

from ceph_tuner.core.autopilot.audit_log import BLOCKS
from ceph_tuner.core.changes.journal import KEEP

MOST_KEYS: Dict[str, int] = {
    "journal": KEEP + 2,
    "audit": BLOCKS,
    "audit/=book": BLOCKS,
    "audit/=boost": BLOCKS,
    "guardian": 1,
    "history/minute": 12,
    "history/hour": 7,
    "history/trial": 20,
    "history/outcome": 10,
    "history/timeline": 11,
    "lock-generation": 1,
    "lock": 4,
    "auto": 1,
    "slo": 1,
    "book": 3,
    "boost": 1,
}
