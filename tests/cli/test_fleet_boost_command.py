"""`ceph-tuner fleet boost`: a row for each cluster, whatever the others do."""

from __future__ import annotations

import errno
import json
import threading
import time
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple

import pytest

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.errors import ClusterNotFound, ClusterTimeout, CommandFailed, PermissionRefused
from ceph_tuner.core.knobs.releases import TENTACLE
from ceph_tuner.fleet import boosts
from ceph_tuner.fleet.contract import Member
from monitors import ManualClock, Monitors
from running_program import Run

NOTHING_TO_BOOST = "there is nothing to boost: no degraded object copies are left"


class Plugin:
    """A commander: the plugin of one cluster."""

    def __init__(self) -> None:
        self.kind = ""
        self.more: Dict[str, Any] = {}
        self.asked: List[Tuple[str, Dict[str, str]]] = []
        self.error: Optional[Exception] = None
        self.blocks: Optional[threading.Event] = None
        self.has_mgr = True

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        if prefix == "mgr stat":
            return json.dumps({"available": self.has_mgr, "active_name": "x" if self.has_mgr else ""})
        word = prefix.removeprefix("tuner boost ")
        self.asked.append((word, dict(arguments)))
        if word != "status":
            if self.blocks is not None:
                self.blocks.wait(10.0)
            if self.error is not None:
                raise self.error
            self.kind = "" if word == "cancel" else word
        return json.dumps(self.document())

    def document(self) -> Dict[str, Any]:
        request = {"kind": self.kind} if self.kind else None
        now = time.time()
        return {
            "phase": "on" if self.kind else "off",
            "request": request,
            "left": 1200.0 if self.kind else None,
            "finish": {"expected": now + 600.0} if self.kind else None,
            "ends_at": now + 7200.0 if self.kind else None,
            "notes": [],
            **self.more,
        }

    def words(self) -> List[str]:
        return [word for word, _ in self.asked]


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> Dict[str, Plugin]:
    found = {"paris": Plugin(), "rome": Plugin(), "milan": Plugin()}

    def opening(member: Member, timeout: float) -> Cluster:
        if member.name not in found:
            raise ClusterNotFound(f"cluster {member.name}", "no monitor", "one that answers")
        monitors, commander = Monitors(), found[member.name]
        return Cluster(member.name, commander, monitors, monitors.store, TENTACLE, "20.2.4", clock=ManualClock())  # type: ignore[arg-type]

    monkeypatch.setattr(boosts, "open_member", opening)
    return found


@pytest.fixture
def fleet(tmp_path: Path) -> List[str]:
    path = tmp_path / "fleet.yaml"
    names = ("paris", "rome", "milan", "oslo")
    clusters = "".join(f"  {name}: {{lab: {name}, labels: {{at: {name[0]}}}}}\n" for name in names)
    path.write_text(f"schema: 1\nclusters:\n{clusters}")
    return ["--fleet", str(path)]


def rows(out: str) -> Dict[str, str]:
    return {line.split()[0]: " ".join(line.split()[1:]) for line in out.splitlines()}


def test_without_yes_it_only_shows_what_is_boosted(run: Run, plugins: Dict[str, Plugin], fleet: List[str]) -> None:
    plugins["rome"].kind = "scrub"
    code, out, err = run("fleet", "boost", "recovery", "paris", "rome", *fleet)
    assert code == 0
    assert rows(out)["paris"] == "none - - -"
    assert rows(out)["rome"] == "scrub, on 1200 10 min 120 min"
    assert "nothing is changed: add --yes to boost recovery on paris" in " ".join(err.split())
    assert [plugin.words() for plugin in plugins.values()] == [["status"], ["status"], []]


def test_each_begins_its_own_and_is_told_by_name(run: Run, plugins: Dict[str, Plugin], fleet: List[str]) -> None:
    plugins["rome"].error = CommandFailed("ceph tuner boost recovery", -errno.EAGAIN, NOTHING_TO_BOOST)
    keep = ("--keep", "client.p95_ms<=20", "--keep", "ops.slow<=0")
    code, out, err = run("fleet", "boost", "recovery", *fleet, "--at-most", "2h", *keep, "--yes")
    assert code == 1
    assert [rows(out)[name].split()[0] for name in ("paris", "rome", "milan", "oslo")] == [
        "recovery,",
        "declined",
        "recovery,",
        "down",
    ]
    told = " ".join(err.split())
    assert f"rome: {NOTHING_TO_BOOST}" in told
    assert "oslo: found no monitor" in told
    expected = {"until": "clean", "at_most": "2h", "who": "osd", "keep": "client.p95_ms<=20;ops.slow<=0"}
    word, arguments = plugins["paris"].asked[-1]
    # the order is that of the plugin's declaration
    assert (word, list(arguments.items())) == ("recovery", list(expected.items()))


def test_the_same_again_goes_on_where_it_is_not_on(run: Run, plugins: Dict[str, Plugin], fleet: List[str]) -> None:
    plugins["paris"].kind = "scrub"
    code, out, _ = run("fleet", "boost", "scrub", "-l", "at=p", *fleet, "--yes", "--format", "json")
    assert code == 0
    assert plugins["paris"].words() == ["status"]
    (document,) = json.loads(out)
    assert (document["answer"], document["begun"], document["boost"]["phase"]) == ("ok", False, "on")
    code, out, _ = run("fleet", "boost", "scrub", "rome", *fleet, "--yes", "--format", "json")
    (document,) = json.loads(out)
    assert (code, document["begun"], document["boost"]["request"]["kind"]) == (0, True, "scrub")


def test_all_are_ended_and_who_has_none_is_left_alone(run: Run, plugins: Dict[str, Plugin], fleet: List[str]) -> None:
    plugins["paris"].kind = "recovery"
    code, out, _ = run("fleet", "boost", "cancel", "paris", "rome", *fleet, "--why", "enough")
    assert code == 0
    assert plugins["paris"].asked[-1] == ("cancel", {"why": "enough"})
    assert plugins["rome"].words() == ["status"]
    assert rows(out)["paris"] == rows(out)["rome"] == "none - - -"


def test_the_status_of_one_that_does_not_answer_ends_with_1(
    run: Run, plugins: Dict[str, Plugin], fleet: List[str]
) -> None:
    code, out, _ = run("fleet", "boost", "status", *fleet, "--format", "json")
    assert code == 1
    documents = {each["cluster"]: each for each in json.loads(out)}
    assert (documents["oslo"]["answer"], documents["oslo"]["boost"]) == ("failed", None)
    assert (documents["milan"]["answer"], documents["milan"]["boost"]["phase"]) == ("ok", "off")


def test_before_its_first_windows_it_is_done_within_what_boost_status_says(
    run: Run, plugins: Dict[str, Plugin], fleet: List[str]
) -> None:
    for plugin in plugins.values():
        plugin.kind = "recovery"
    plugins["paris"].more = {"finish": None, "done_within_s": 82.7}
    plugins["rome"].more = {"finish": {"expected": None}}
    plugins["milan"].more = {"finish": None, "done_within_s": None, "obstacles": ["the flag norecover is set"]}
    _, out, said = run("fleet", "boost", "status", *fleet, "paris", "rome", "milan")
    assert "within 82.7 s" in rows(out)["paris"]
    assert "no end" in rows(out)["rome"]
    assert "?" in rows(out)["milan"]
    assert "milan: the flag norecover is set" in said


def test_one_without_an_active_mgr_is_not_waited_for(run: Run, plugins: Dict[str, Plugin], fleet: List[str]) -> None:
    plugins["rome"].has_mgr = False
    code, out, err = run("fleet", "boost", "recovery", "paris", "rome", *fleet, "--yes")
    assert (code, rows(out)["rome"]) == (1, "declined - - -")
    assert rows(out)["paris"].startswith("recovery, on")
    assert "rome: no mgr is active" in " ".join(err.split())
    assert plugins["rome"].asked == []


def test_one_that_is_late_may_have_begun_all_the_same(run: Run, plugins: Dict[str, Plugin], fleet: List[str]) -> None:
    blocks = plugins["rome"].blocks = threading.Event()
    try:
        code, out, err = run("fleet", "boost", "recovery", "paris", "rome", *fleet, "--within", "1", "--yes")
    finally:
        blocks.set()
    assert code == 1
    assert rows(out)["paris"].startswith("recovery, on")
    assert rows(out)["rome"] == "late - - -"
    assert "it may have begun on rome: see `ceph-tuner fleet boost status`" in " ".join(err.split())


def test_what_was_done_before_ctrl_c_is_told(
    run: Run, plugins: Dict[str, Plugin], fleet: List[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import ceph_tuner_cli.fleet as shown

    ask_all = shown.ask_all

    def interrupted_after_the_first(members: Any, ask: Any, within_s: float) -> Any:
        answers = ask_all(members[:1], ask, within_s)
        yield next(answers)
        # the second was asked, the third was not
        ask(members[1])
        raise KeyboardInterrupt

    monkeypatch.setattr(shown, "ask_all", interrupted_after_the_first)
    code, out, err = run("fleet", "boost", "recovery", "paris", "rome", "milan", *fleet, "--yes")
    assert code == 130
    assert rows(out)["paris"].startswith("recovery, on")
    assert rows(out)["rome"] == "interrupted - - -"
    assert rows(out)["milan"] == "not asked - - -"
    assert "it may have begun on rome: see" in " ".join(err.split())
    assert plugins["milan"].asked == []


@pytest.mark.parametrize(
    ("error", "cell"),
    [
        (ClusterTimeout("cluster rome: no answer within 30 s"), "late"),
        (PermissionRefused("cluster rome", "no capability", "mgr 'allow module tuner rw'"), "refused"),
        (ClusterNotFound("cluster rome", "no monitor", "one that answers"), "down"),
        (CommandFailed("ceph tuner boost recovery", -errno.EIO, "the boost ended at once"), "declined"),
    ],
)
def test_a_way_that_fails_is_told_apart_from_a_plugin_that_declines(
    run: Run, plugins: Dict[str, Plugin], fleet: List[str], error: Exception, cell: str
) -> None:
    plugins["rome"].error = error
    code, out, _ = run("fleet", "boost", "recovery", "rome", *fleet, "--yes")
    assert (code, rows(out)["rome"]) == (1, f"{cell} - - -")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--until", "noon"), "--until: found noon, expected clean"),
        (("--at-most", "9d"), "--at-most"),
        (("--keep", "client.p95_ms{class=ssd}<=20"), "whole cluster"),
        (("--keep", "nonsense"), "--keep"),
        (("--target", "rack"), "rack"),
        ([option for _ in range(11) for option in ("--keep", "ops.slow<=0")], "11 objectives"),
    ],
)
def test_what_makes_no_sense_is_refused_before_any_is_asked(
    run: Run, plugins: Dict[str, Plugin], fleet: List[str], arguments: List[str], words: str
) -> None:
    code, _, err = run("fleet", "boost", "recovery", *fleet, *arguments, "--yes")
    assert code == 2
    assert words in " ".join(err.split())
    assert all(plugin.asked == [] for plugin in plugins.values())
