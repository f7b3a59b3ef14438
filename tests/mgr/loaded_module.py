"""The plugin's own module on a twin, and what its store has below each key when nobody has touched it."""

from __future__ import annotations

import json
import logging
import threading
from typing import Any, Tuple

from automatic_on_twin import OnTwin, RunningMgr

import tuner
from ceph_tuner.core.autopilot.audit_log import BOOST_ENDED, TAKEN_BACK, AuditRecord
from ceph_tuner.core.book.page import TWIN, UNVALIDATED, Page
from ceph_tuner.core.book.state import BookState
from ceph_tuner.core.boost.state import BoostState
from ceph_tuner.core.printable import PrintableLog
from tuner.jobs import Jobs

READ = {
    "status": {},
    "sample": {},
    "history": {},
    "slo_ls": {},
    "profile_ls": {},
    "profile_export": {},
    "auto_explain": {},
    "capacity_ls": {},
    "book_show": {},
    "boost_status": {},
}
SLO = {
    "name": "a",
    "objectives": ["client.p95_ms <= 80 ms"],
    "calendar": {
        "zone": "Europe/Berlin",
        "policies": [
            {"name": "always", "hours": "mon-sun", "objectives": []},
            {"name": "once", "hours": "2026-12-24..2026-12-26 08:00-20:00", "objectives": ["client.p95_ms <= 70 ms"]},
        ],
    },
}


class Loaded(RunningMgr, tuner.Module):  # type: ignore[misc]
    """The module itself, with the parts of one on a twin."""

    def __init__(self, aboard: OnTwin) -> None:
        RunningMgr.__init__(self, aboard.twin)
        self.aboard = aboard
        self.log = logging.getLogger("tuner_on_twin")
        if not self.log.filters:
            self.log.addFilter(PrintableLog())
        self._stop, self._jobs, self._checks = threading.Event(), Jobs(), {}
        self._sampler, self._service, self._modes = aboard.sampler, aboard.service, aboard.modes
        self._collector = aboard.collector
        self._reporting, self._modes_thread = threading.Lock(), None

    def get_module_option(self, name: str, default: Any) -> Any:
        return self.aboard.options.get(name, default)

    def run(self, command: str, **arguments: Any) -> Tuple[int, str, str]:
        found: Tuple[int, str, str] = getattr(self, f"_{command}")(**arguments)
        return found


def record(at: float, what: str = TAKEN_BACK, why: str = "harm") -> str:
    return json.dumps(AuditRecord(1, at, "x", what, why, {"rule": "slo"}).to_dict())


NUMBERS = ["1e300", "-1e300", "9" * 400, "1e999", "NaN", "-Infinity", "0", "-1", "1e-320", "18446744073709551616"]
GARBAGE = [
    "hello",
    "",
    "[" * 30_000,
    '{"a":' * 8_000,
    "[" * 900 + "]" * 900,
    "[]",
    "{}",
    "null",
    "1",
    '"x"',
    '{"\\ud800": 1}',
    "\x00",
    *NUMBERS,
    *(f"[{number}]" for number in NUMBERS),
]
KEYS = {
    "slo": json.dumps(SLO),
    "slo/baseline": '{"client.p95_ms": 50.0}',
    "journal/README": "x",
    "journal/00000007": "x",
    "auto/state": "{}",
    "audit/000000": record(1.0),
    "boost/state": json.dumps(BoostState(last={"kind": "scrub", "rule": "slo", "why": "x", "ended": 1.0}).to_dict()),
    "audit/=boost/000000": record(1.0, BOOST_ENDED),
    "history/minute/000": '{"serial": 0, "entries": ['
    '{"start": 1.0, "end": 61.0, "measures": {"client.iops": [1, 0, 1]}}]}',
    "history/hour/000": '{"serial": 0, "entries": []}',
    "history/trial/000": '{"serial": 0, "entries": [{"at": 1.0, "name": "x", "settings": {"osd_max_scrubs": 1}}]}',
    "history/learnt/000": '{"serial": 0, "entries": [{}]}',
    "history/outcome/000": '{"serial": 0, "entries": [{"version": 1, "change": 7, "at": 0, "measures": {}}]}',
    "history/timeline/000": '{"serial": 0, "entries": [{"at": 1.0, "kind": "regime", "scope": "", "name": "idle", '
    '"evidence": {"client.iops": 1}}]}',
    "book/regimes": '{"markers": [{"name": "busy", "metric": "client.iops", "enter": 5, "leave": 1}]}',
    "book/pages": json.dumps(
        {"newest": 2, "pages": [Page(2, "busy", {"osd_max_scrubs": 1}, UNVALIDATED, TWIN, 1.0).to_dict()]}
    ),
    "book/state": json.dumps(BookState().to_dict()),
    "profile/x": '{"schema": 1, "name": "x"}',
    "lock/0000000000000000": '{"holder": {"name": "x", "host": "", "process": ""}, "since": 0, "expires": 0, '
    '"held": true}',
    "lock-generation": '{"number": 1, "claim": "x"}',
}
