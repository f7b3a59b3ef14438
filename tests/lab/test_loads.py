from __future__ import annotations

import json
import time
from typing import Any, Dict, List, Optional

import pytest
from host_lab import HostLab

from ceph_lab.loads.client import ClientLoad
from ceph_lab.loads.client_work import ClientWork
from ceph_lab.loads.pools import Flags
from ceph_lab.loads.scrub import OVERDUE_S, TURN_S, ScrubLoad
from ceph_lab.loads.session import LabSession
from ceph_tuner.core.errors import ClusterTimeout, CommandFailed, LabFailed
from ceph_tuner.core.measure.sample import Measure

FIO = """
import json, signal, sys, time
began, count = time.time(), 0
def show(*_):
    bins = {"2000000": count} if count else {}
    entry = {"N": count, "mean": 2e6 if count else 0.0, "bins": bins}
    nothing = {"lat_ns": {"N": 0, "mean": 0.0}}
    job = {"read": nothing, "write": {"lat_ns": entry}}
    print(json.dumps({"timestamp_ms": time.time() * 1000, "jobs": [job]}, indent=2), flush=True)
def end(*_):
    print("fio: terminating on signal 2")
    show()
    sys.exit(128)
signal.signal(signal.SIGINT, end)
while True:
    time.sleep(0.25)
    count = int(100 * (time.time() - began))
    show()
"""


class Answers(LabSession):
    """A session whose answers come from a dictionary, and which remembers what was asked."""

    def __init__(self, answers: Dict[str, Any]) -> None:
        super().__init__(HostLab(""))
        self.answers = answers
        self.asked: List[str] = []

    def ask(self, request: Dict[str, Any], timeout: Optional[float] = None) -> Any:
        command = request.get("command", {})
        words = " ".join(str(value) for key, value in command.items() if key != "format")
        self.asked.append(f"{request['do']} {words}".strip())
        found = self.answers.get(command.get("prefix", request["do"]), "{}")
        if isinstance(found, Exception):
            raise found
        return found(request) if callable(found) else found


ECHO = "import sys\nfor line in sys.stdin:\n    print('{\"result\": 7}', flush=True)\n"


def test_a_session_asks_again_and_again_over_one_process() -> None:
    with LabSession(HostLab(ECHO)) as session:
        assert [session.ask({"do": "x"}) for _ in range(3)] == [7, 7, 7]


def test_a_refused_command_carries_the_clusters_words() -> None:
    program = 'import sys\nsys.stdin.readline()\nprint(\'{"error": "no such pool", "code": -2, "command": "df"}\')'
    with (
        LabSession(HostLab(program)) as session,
        pytest.raises(CommandFailed, match="`df` failed with -2: no such pool"),
    ):
        session.ask({"do": "mon"})


def test_an_agent_that_dies_is_named_with_its_last_words() -> None:
    with (
        LabSession(HostLab("raise SystemExit('no module named rados')")) as session,
        pytest.raises(LabFailed, match="no module named rados"),
    ):
        session.ask({"do": "mon"})


@pytest.mark.slow
def test_an_agent_that_hangs_is_given_up_and_its_late_answer_not_taken_for_the_next() -> None:
    slow = (
        "import sys, time\nsys.stdin.readline()\ntime.sleep(0.6)\nprint('{\"result\": 1}', flush=True)\ntime.sleep(9)"
    )
    with LabSession(HostLab(slow), timeout=0.3) as session:
        with pytest.raises(ClusterTimeout, match=r"within 0 s"):
            session.ask({"do": "first"})
        session._lab.program = ECHO  # type: ignore[attr-defined]
        time.sleep(0.5)
        assert session.ask({"do": "second"}, timeout=5) == 7


def test_flags_that_were_set_before_stay_set_and_ours_go() -> None:
    flags = ["noout"]

    def change(request: Dict[str, Any]) -> str:
        command = request["command"]
        (flags.append if command["prefix"] == "osd set" else flags.remove)(command["key"])
        return ""

    def dump(_: Dict[str, Any]) -> str:
        return json.dumps({"flags_set": flags})

    held = Flags(Answers({"osd dump": dump, "osd set": change, "osd unset": change}))
    held.set("noout")
    held.set("norecover")
    assert flags == ["noout", "norecover"]
    held.clear("noout")
    held.restore()
    assert flags == ["noout"]


def test_the_client_load_measures_what_fio_prints_and_ends_with_it() -> None:
    lab = HostLab(FIO)
    load = ClientLoad(lab, LabSession(lab), ClientWork(rate=100, engine="fio"))
    load.start()
    time.sleep(1.2)
    start = time.time()
    time.sleep(1.5)
    load.observe()
    measures = load.measure(start, time.time())
    assert measures["client.iops"].mean == pytest.approx(100, rel=0.1)
    assert measures["client.p95_ms"].mean == pytest.approx(2.0)
    assert "client.read_mean_ms" not in measures
    result = load.stop()
    assert result.evidence["last"]["write"]["count"] > 200
    assert load.stop().metrics == {}


def test_clients_that_get_less_than_they_offer_are_reported() -> None:
    lab = HostLab(FIO)
    load = ClientLoad(lab, LabSession(lab), ClientWork(rate=500, engine="fio"))
    load.start()
    start = time.time() + 1
    time.sleep(2.5)
    measures = load.measure(start, time.time())
    load.stop()
    assert "offered 500 IOPS and were served" in load.remarks(measures, 1.5)[0]
    unmeasured = ClientLoad(lab, LabSession(lab), ClientWork(rate=500, engine="fio"))
    assert unmeasured.remarks({"client.iops": Measure(490, 0, 1)}, 1.5) == ()


def test_a_fio_that_is_missing_fails_with_its_message() -> None:
    lab = HostLab("import sys; sys.exit('fio: not found')")
    load = ClientLoad(lab, LabSession(lab), ClientWork(engine="fio"))
    load.start()
    assert load._process is not None
    assert load._process._process is not None
    load._process._process.wait(timeout=30)
    with pytest.raises(LabFailed, match="fio ended with 1: fio: not found"):
        load.observe()


def test_a_mix_has_a_rate_for_reads_and_one_for_writes_and_jobs_share_it() -> None:
    arguments = ClientWork(rate=400, read_share=0.75, jobs=2).arguments("p")
    assert "--rate_iops=150,50" in arguments
    assert "--rwmixread=75" in arguments
    assert "--rate_process=poisson" in arguments


def test_a_closed_loop_has_no_rate() -> None:
    arguments = ClientWork(rate=None, depth=64, read_share=1.0).arguments("p")
    assert "--rw=randread" in arguments
    assert "--iodepth=64" in arguments
    assert not [argument for argument in arguments if "rate" in argument]


WRONG: List[Dict[str, Any]] = [
    {"rate": 0.0},
    {"read_share": 1.5},
    {"jobs": 0},
    {"depth": 0},
    {"block_bytes": 100},
    {"engine": "dd"},
    {"engine": "librbd", "rate": None},
]


@pytest.mark.parametrize("wrong", WRONG)
def test_client_work_that_makes_no_sense_is_refused(wrong: Dict[str, Any]) -> None:
    with pytest.raises(LabFailed, match="got"):
        ClientWork(**wrong)


def scrub_answer(stamp: str, scrubbed: int, active: bool, objects: int = 75) -> Dict[str, Any]:
    stats = {"last_deep_scrub_stamp": stamp, "objects_scrubbed": scrubbed, "stat_sum": {"num_objects": objects}}
    return {"pgid": "1.0", "state": "active", "acting": [0], "stats": stats, "scrubber": {"active": active}}


SCRUB_POOL = {"pool_name": "load-scrub-replicated-3", "pool": 1, "size": 3, "pg_num": 1}


def test_scrub_counts_running_pgs_whole_ones_and_never_an_old_count() -> None:
    answers: Dict[str, Any] = {
        "osd dump": json.dumps({"flags_set": [], "pools": [SCRUB_POOL]}),
        "schedule-deep-scrub": '{"stamp": "forged"}',
    }
    session = Answers(answers)
    load = ScrubLoad(HostLab(""), session, objects=75, object_bytes=100, pgs=1)
    seen = []
    answers["pgs"] = [scrub_answer("before", 75, False)]
    load.start()
    for answer in (
        scrub_answer("forged", 75, True),  # begun; the count is still the last scrub's
        scrub_answer("forged", 15, True),
        scrub_answer("forged", 60, True),
        scrub_answer("today", 75, False),  # done, and scheduled again
        scrub_answer("forged", 75, True),
        scrub_answer("forged", 30, True),
    ):
        answers["pgs"] = [answer]
        load.observe()
        seen.append(load.progress().done_objects)
    assert seen == [0, 15, 60, 75, 75, 105]
    assert [words for words in session.asked if "schedule-deep-scrub" in words] == [
        # each time behind those that are in line already
        f"pg schedule-deep-scrub {age} 1.0"
        for age in (OVERDUE_S, OVERDUE_S - TURN_S)
    ]
    # without the counters of Tentacle: whole objects on every replica
    assert load.progress().done_bytes == 105 * 100 * 3


def test_reefs_name_of_the_command_is_tried_as_well() -> None:
    answers: Dict[str, Any] = {
        "osd dump": json.dumps({"flags_set": [], "pools": [SCRUB_POOL]}),
        "schedule-deep-scrub": CommandFailed("schedule-deep-scrub", -22, "unknown"),
        "deep_scrub": '{"stamp": "forged"}',
        "pgs": [scrub_answer("before", 0, False)],
    }
    session = Answers(answers)
    ScrubLoad(HostLab(""), session, pgs=1).start()
    assert f"pg deep_scrub {OVERDUE_S} 1.0" in session.asked
