"""What the measurement of both queues takes for an order, what it writes, and how it follows a plan."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, List, Mapping, Optional, Tuple

import pytest
import queues_on_lab
from queues_on_lab import BACK, BEST, IN_FORCE, WITH_WPQ, WPQ_KNOBS, Operator, orders, says, table

from ceph_lab.loads import LoadProgress
from ceph_tuner.core.errors import CommandFailed, LabFailed
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.releases import TENTACLE
from ceph_tuner.files import cluster_file, slo_file
from ceph_tuner.recommend.queues import BETTER_MCLOCK, BETTER_WPQ, UNDECIDED
from ceph_tuner.twin.model import MCLOCK, WPQ

DESCRIPTION = """\
schema: 1
release: 20.2.4
osds: 3
osd: {drive: {iops: 325, bandwidth: 9 MB/s}, capacity_iops: 306, bandwidth: 9 MB/s}
pools: [{name: rbd, pgs: 32, size: 3}]
clients: [{pool: rbd, rate: 40, depth: 64}]
background: {recovery: [{pool: rbd, objects: 500, object_size: 1 MiB}]}
"""
CHUNK = "osd_recovery_max_chunk"


def choice(label: str, settings: Mapping[str, Any], **more: Any) -> Dict[str, Any]:
    return {"label": label, "settings": dict(settings), "orders": [], **more}


def row(best: Mapping[str, Any]) -> Dict[str, Any]:
    """A load whose best settings are these; wpq beside them has the same other knobs."""
    kept = {CHUNK: best[CHUNK]} if CHUNK in best else {}
    wpq = choice("wpq", {})
    beside = choice("wpq, other knobs of trial 3", kept) if kept else wpq
    return {
        "load": "client-recovery",
        "pool": "ec:2+1",
        "slo": queues_on_lab.slo_text("client-recovery"),
        "description": DESCRIPTION,
        "in_force": "balanced",
        "comparison": {
            "mclock": [choice("trial 3", best, wpq=beside), choice("balanced", {PROFILE: "balanced"}, wpq=wpq)],
            "wpq": wpq,
        },
    }


FULL = {**TENTACLE.profiles["high_client_ops"], CHUNK: 262144}


@pytest.mark.parametrize("load", queues_on_lab.OBJECTIVES)
def test_the_command_is_asked_for_an_order_in_each_metric_of_the_tables(load: str) -> None:
    slo = slo_file.from_text(queues_on_lab.slo_text(load)).slo
    assert {objective.metric for objective in slo.objectives} == set(queues_on_lab.metrics_of({"load": load}))
    hard = [objective.text for objective in slo.objectives if objective.hard]
    assert len(hard) == len(queues_on_lab.OBJECTIVES[load])


def test_of_a_description_only_the_load_s_own_pool_is_scrubbed() -> None:
    pools = "pools: [{name: load-scrub-ec-2-1, pgs: 16, erasure_code: {k: 2, m: 1}}, {name: rbd, pgs: 32, size: 3}]"
    work = (
        "[{pool: load-scrub-ec-2-1, objects: 4800, object_size: 256 KiB}, {pool: rbd, objects: 9, object_size: 1 MiB}]"
    )
    lines = [line for line in DESCRIPTION.splitlines() if not line.startswith(("pools", "background"))]
    described = "\n".join(["# a guess", *lines, pools, f"background: {{scrub: {work}}}"])
    text = queues_on_lab.known_better(described, "ec:2+1")
    model = cluster_file.from_text(text).model
    assert [(entry.pool, entry.objects) for entry in model.scrub] == [("load-scrub-ec-2-1", 4800)]
    assert (text.splitlines()[0], len(model.pools), len(model.clients)) == ("# a guess", 2, 1)


class Answering:
    """Clients that were answered so many times at each look."""

    def __init__(self, answered: List[float]) -> None:
        self._answered = answered
        self.over = False

    def start(self) -> None:
        """Begin."""

    def observe(self) -> None:
        """Look."""

    def progress(self) -> Dict[str, LoadProgress]:
        return {
            "client": LoadProgress(self._answered.pop(0) if len(self._answered) > 1 else self._answered[0], 0, 0, 0)
        }

    def stop(self) -> None:
        self.over = True


def test_how_long_no_client_was_answered_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(queues_on_lab.time, "monotonic", lambda: now[0])
    clients = Answering([10.0, 20.0, 20.0, 20.0, 20.0, 50.0])
    watch = queues_on_lab.Watch(clients)  # type: ignore[arg-type]
    ended = threading.Event()

    def wait(seconds: float) -> bool:
        now[0] += seconds
        ended.set() if now[0] > 7 else None
        return ended.is_set()

    monkeypatch.setattr(watch, "_over", SimpleNamespace(wait=wait, set=ended.set))
    with watch:
        ended.wait(10)
    assert (watch.longest_s, clients.over) == (3.0, True)


def test_what_is_measured_twice_under_another_name_is_left_out() -> None:
    assert set(queues_on_lab.choices_of(row(FULL))) == {IN_FORCE, BEST, WITH_WPQ, WPQ_KNOBS}
    nine = {name: value for name, value in FULL.items() if name != CHUNK}
    assert set(queues_on_lab.choices_of(row(nine))) == {IN_FORCE, BEST, WITH_WPQ}
    own = row(FULL)
    del own["comparison"]["mclock"][0]
    assert set(queues_on_lab.choices_of(own)) == {IN_FORCE, WITH_WPQ}


def test_under_wpq_neither_a_profile_nor_its_values_are_written() -> None:
    writes = queues_on_lab.writes_of(row(FULL))
    assert writes[IN_FORCE] == writes[WITH_WPQ] == {}
    assert writes[WPQ_KNOBS] == {CHUNK: "262144"}
    assert (writes[BEST][PROFILE], writes[BEST][CHUNK], len(writes[BEST])) == ("custom", "262144", 11)


def test_each_window_is_measured_once_in_turns_and_one_after_the_way_back() -> None:
    own = row(FULL)
    done = [{"kind": "window", **{key: own[key] for key in ("load", "pool")}, "label": IN_FORCE, "window": 1}]
    assert queues_on_lab.missing_of(own, (IN_FORCE, BEST), 2, done) == [(BEST, 1), (IN_FORCE, 2), (BEST, 2)]
    assert queues_on_lab.missing_of(own, (BACK,), 2, done) == [(BACK, 1)]
    assert queues_on_lab.missing_of(own, (IN_FORCE, BEST), 0, done) == []


@pytest.mark.parametrize(
    ("metric", "mclock", "wpq", "better"),
    [
        ("client.p95_ms", [100, 110], [80, 85], BETTER_WPQ),
        ("client.p95_ms", [80, 85], [100, 110], BETTER_MCLOCK),
        ("recovery.bytes_s", [80, 85], [100, 110], BETTER_WPQ),
        ("recovery.bytes_s", [100, 110], [80, 85], BETTER_MCLOCK),
        # one window lies among those of the other queue
        ("client.p95_ms", [100, 130], [80, 101], UNDECIDED),
        # apart, and by next to nothing
        ("client.p95_ms", [100, 101], [95, 96], UNDECIDED),
    ],
)
def test_an_order_is_measured_where_windows_are_apart(
    metric: str, mclock: List[float], wpq: List[float], better: str
) -> None:
    assert queues_on_lab.order_of(metric, mclock, wpq) == better


@pytest.mark.parametrize(
    ("text", "answer", "found"),
    [
        ("65 pgs: 65 active+clean; 1 GiB data", "that all PGs are active+clean", True),
        ("65 pgs: 1 active+clean+scrubbing, 64 active+clean; 1 GiB data", "that all PGs are active+clean", True),
        ("65 pgs: 60 active+clean, 5 peering; 1 GiB data", "that all PGs are active+clean", False),
        ('{"osd_op_queue": "wpq"}', "wpq", True),
        ('{"osd_op_queue": "mclock_scheduler"}', "wpq", False),
    ],
)
def test_a_plan_s_condition_is_read_out_of_the_answer(text: str, answer: str, found: bool) -> None:
    assert says(text, answer) == found


class PlanLab:
    """A lab of two OSDs that takes an OSD's queue from its entry when it starts."""

    def __init__(self) -> None:
        self.osds = [0, 1]
        self.entry: Dict[str, str] = {}
        self.runs = {0: MCLOCK, 1: MCLOCK}
        self.asked: List[str] = []

    def run(self, words: List[str]) -> str:
        self.asked.append(" ".join(words))
        if words[:3] == ["ceph", "config", "set"]:
            self.entry[words[3]] = words[5]
        if words[1] == "tell":
            return json.dumps({words[5]: self.runs[int(words[2].partition(".")[2])]})
        if words[1:] == ["osd", "ok-to-stop", "1"] and self.asked.count("ceph osd ok-to-stop 1") < 2:
            raise CommandFailed("ceph osd ok-to-stop 1", 16, "not ok")
        return "33 pgs: 33 active+clean; 0 B" if words[1] == "pg" else ""

    def stop_osd(self, osd: int) -> None:
        self.asked.append(f"stop {osd}")

    def start_osd(self, osd: int) -> None:
        self.asked.append(f"start {osd}")
        self.runs[osd] = self.entry.get(f"osd.{osd}", self.entry.get("osd", MCLOCK))


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Tuple[PlanLab, Operator, List[Any]]:
    """A lab, who follows plans on it, and what was waited and measured."""
    lab, seen = PlanLab(), []

    def program(*words: str, folder: Optional[Path] = None) -> str:
        assert folder == tmp_path
        if words[0] == "apply":
            lab.entry["osd"] = WPQ
        seen.append(words)
        return "{}"

    monkeypatch.setattr(queues_on_lab.time, "sleep", seen.append)
    monkeypatch.setattr(queues_on_lab, "ceph_tuner", program)
    return lab, Operator(lab, tmp_path, 1 / 16), seen  # type: ignore[arg-type]


def test_a_trial_s_plan_is_followed_to_the_letter(followed: Tuple[PlanLab, Operator, List[Any]]) -> None:
    lab, operator, seen = followed
    operator.trial([
        {"kind": "measure", "text": "ceph-tuner compare-queues --host h1 --measure t.json --minutes 48  # as they are"},
        {"kind": "run", "text": "ceph config set osd.1 osd_op_queue wpq"},
        {"kind": "wait", "text": "`ceph osd ok-to-stop 1` says yes"},
        {"kind": "run", "text": "systemctl restart ceph-osd@1  # cephadm: ceph orch daemon restart osd.1"},
        {"kind": "wait", "text": "`ceph tell osd.1 config get osd_op_queue` says wpq"},
        {"kind": "wait", "text": "15 minutes: caches are cold after a restart"},
    ])  # fmt: skip
    assert lab.runs == {0: MCLOCK, 1: WPQ}
    # an OSD that may not be stopped yet is asked about again
    assert lab.asked.index("stop 1") > lab.asked.index("ceph osd ok-to-stop 1") + 1
    measured = "compare-queues --host h1 --measure t.json --minutes 48 --minutes 3 --format json"
    assert seen == [tuple(measured.split()), 1.0, 56.25]
    assert operator.measured == ["{}"]


def test_the_whole_change_goes_from_osd_to_osd(followed: Tuple[PlanLab, Operator, List[Any]]) -> None:
    lab, operator, _ = followed
    until = (
        "`ceph tell osd.ID config get osd_op_queue` says wpq for each of its OSDs, and `ceph pg stat` says that all PGs"
    )
    operator.rebuild([
        {"command": "ceph-tuner apply --set osd_op_queue=wpq --yes", "for_each": "", "wait_until": ""},
        {"command": "systemctl restart ceph-osd@ID", "for_each": "OSD", "wait_until": f"{until} are active+clean"},
    ])  # fmt: skip
    assert lab.runs == {0: WPQ, 1: WPQ}
    assert lab.asked[:4] == ["stop 0", "start 0", "ceph tell osd.0 config get osd_op_queue", "ceph pg stat"]


def test_what_nobody_could_follow_is_an_error(
    followed: Tuple[PlanLab, Operator, List[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, operator, _ = followed
    with pytest.raises(LabFailed, match="cannot run"):
        operator.run("shutdown now")
    with pytest.raises(LabFailed, match="nobody can follow"):
        operator.wait("until all is well")
    monkeypatch.setattr(queues_on_lab, "WAIT_S", -1.0)
    with pytest.raises(LabFailed, match="does not say wpq"):
        operator.wait("`ceph tell osd.0 config get osd_op_queue` says wpq")


def window(label: str, p95: float, rate: float, orders_said: Any = ()) -> Dict[str, Any]:
    measured = {"client.p95_ms": p95, "recovery.bytes_s": rate}
    return {
        "kind": "window",
        "load": "client-recovery",
        "pool": "ec:2+1",
        "label": label,
        "window": 1,
        "measured": measured,
        "orders": list(orders_said),
        "predicted": {
            twin: {metric: [value, value / 1.2, value * 1.2] for metric, value in measured.items()}
            for twin in (queues_on_lab.DESCRIBED, queues_on_lab.TOLD)
        },
    }


def order(metric: str, ratio: float, better: str) -> Dict[str, Any]:
    return {"metric": metric, "ratio": ratio, "interval": [ratio / 1.01, ratio * 1.01], "better": better}


LINES = [
    window(IN_FORCE, 100, 8e6, [order("client.p95_ms", 1.0, UNDECIDED), order("recovery.bytes_s", 0.8, BETTER_MCLOCK)]),
    window(BEST, 60, 6e6, [order("client.p95_ms", 1.5, BETTER_MCLOCK), order("recovery.bytes_s", 1.2, BETTER_WPQ)]),
    window(WITH_WPQ, 150, 8e6),
    window(WPQ_KNOBS, 90, 4e6),
]


def test_each_order_is_held_against_wpq_with_the_same_knobs() -> None:
    found = {
        (each["beside"], each["order"]["metric"]): (round(each["ratio"], 2), each["better"]) for each in orders(LINES)
    }
    assert found == {
        (IN_FORCE, "client.p95_ms"): (1.5, BETTER_MCLOCK),
        (IN_FORCE, "recovery.bytes_s"): (1.0, UNDECIDED),
        (BEST, "client.p95_ms"): (1.5, BETTER_MCLOCK),
        (BEST, "recovery.bytes_s"): (0.67, BETTER_MCLOCK),
    }
    without_knobs = orders(LINES[:3])
    assert [round(each["ratio"], 2) for each in without_knobs if each["beside"] == BEST] == [2.5, 1.33]


def test_the_page_counts_what_was_foreseen() -> None:
    text = table(LINES)
    assert (
        "Told as measured: 1 of 4 orders. Of 3 that name a queue 1 were measured so, 1 the other way round, "
        "and 1 alike. 1 differences were not foreseen."
    ) in text
    assert (
        "| client-recovery | ec:2+1 | best | client.p95_ms | +50% (+49% to +52%) | mClock | +50% | mClock | yes |"
        in text
    )


def switched(to: str, before: str, after: str) -> Dict[str, Any]:
    queues = {"osd.0": to, "osd.1": to}
    return {"kind": "switch", "to": to, "seconds": 60.0, "queues": queues, "dump_before": before, "dump_after": after}


def test_the_page_says_whether_the_database_is_to_the_byte_what_it_was() -> None:
    there = switched(WPQ, "[]", "[1]")
    assert "is to the byte what it was" in table([*LINES, there, switched(MCLOCK, "[1]", "[]")])
    assert "is **not** what it was" in table([*LINES, there, switched(MCLOCK, "[1]", "[ ]")])


def test_the_page_shows_each_stretch_of_a_trial() -> None:
    def metric(change: Any) -> Dict[str, Any]:
        return {"metric": "client reads, mean ms", "host": 12.0, "controls": 10.0, "change": change}

    line = {
        **switched(MCLOCK, "[]", "[]"),
        "kind": "trial",
        "host": "h1",
        "date": "2026-01-02",
        "clients_waited_s": 3.2,
        "stretches": [
            {"queue": MCLOCK, "minutes": 3, "metrics": [metric(None)]},
            {"queue": WPQ, "minutes": 3, "metrics": [metric([1.2, 1.1, 1.3])]},
        ],
    }
    text = table([*LINES, line])
    assert "| 1 | 3 | mclock_scheduler | client reads, mean ms | 12 | 10 |  |" in text
    assert "| 2 | 3 | wpq | client reads, mean ms | 12 | 10 | +20% (+10% to +30%) |" in text
    assert (
        "At no time was no client answered for more than 5 s. Afterwards `ceph config dump` is to the byte what it was"
        in text
    )
