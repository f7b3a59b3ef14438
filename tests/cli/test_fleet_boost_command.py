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
from ceph_tuner.core.boost.choice import KNOWN, MEASURED
from ceph_tuner.core.boost.offer import TwinOffer
from ceph_tuner.core.errors import ClusterNotFound, ClusterTimeout, CommandFailed, InputError, PermissionRefused
from ceph_tuner.core.knobs.releases import TENTACLE
from ceph_tuner.core.measure.forecast_record import ForecastInterval, ForecastRecord
from ceph_tuner.fleet import boosts
from ceph_tuner.fleet.contract import Member
from ceph_tuner.twin.described_cluster import DescribedCluster
from ceph_tuner_cli import fleet_boost_predict
from ceph_tuner_cli.boost_predict import NOT_ASKED, TwinAnswer, UsualBoost
from monitors import ManualClock, Monitors
from running_program import Run
from twins import small_model

NOTHING_TO_BOOST = "there is nothing to boost: no degraded object copies are left"


class Plugin:
    """A commander: the plugin of one cluster."""

    def __init__(self) -> None:
        self.kind = ""
        self.more: Dict[str, Any] = {}
        self.asked: List[Tuple[str, Dict[str, str]]] = []
        self.payload = ""
        """Of the newest boost."""
        self.foretold: Dict[str, Any] = {
            "basis": KNOWN, "objectives": ["client.p95_ms <= 20 ms"], "settings": {}, "in_force": {}, "baseline": {},
        }  # fmt: skip
        self.error: Optional[Exception] = None
        self.blocks: Optional[threading.Event] = None
        self.has_mgr = True

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        if prefix == "mgr stat":
            return json.dumps({"available": self.has_mgr, "active_name": "x" if self.has_mgr else ""})
        word = prefix.removeprefix("tuner boost ")
        self.asked.append((word, dict(arguments)))
        if word == "status":
            return json.dumps(self.document())
        if self.blocks is not None:
            self.blocks.wait(10.0)
        if self.error is not None:
            raise self.error
        if word == "foretell":
            return json.dumps(self.foretold)
        self.kind, self.payload = "" if word == "cancel" else word, payload
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


OFFER = TwinOffer(
    "recovery",
    "osd",
    {"osd_max_backfills": 3},
    {"recovery.copies_s": 50.0},
    ForecastRecord(7.0, "paris", 0.9, {"recovery.copies_s": ForecastInterval(80.0, 70.0, 90.0)}),
)
OFFERED = TwinAnswer("recovery.copies_s 50 to 80 /s", OFFER)


class Twins:
    """Those of all clusters: what they say is told by name."""

    def __init__(self, plugins: Dict[str, Plugin]) -> None:
        self.answers: Dict[str, Any] = dict.fromkeys(plugins, OFFERED)
        """An error is raised."""
        self.undescribed: Dict[str, Exception] = {}
        self.began_before: Dict[str, List[str]] = {}
        """Cluster whose twin was asked -> those that had a boost by then."""
        self._plugins = plugins

    def described(self, member: Member, target: str, also: Any, within_s: float) -> Tuple[DescribedCluster, float]:
        if member.name in self.undescribed:
            raise self.undescribed[member.name]
        return DescribedCluster(member.name, small_model(), target=target, notes=("its drive is a guess",)), 7.0

    def answer(self, usual: UsualBoost, description: DescribedCluster, *_: Any) -> Optional[TwinAnswer]:
        name = description.name
        self.began_before[name] = [other for other, plugin in self._plugins.items() if plugin.kind]
        answer = self.answers[name]
        if isinstance(answer, BaseException):
            raise answer
        return answer  # type: ignore[no-any-return]


@pytest.fixture
def twins(plugins: Dict[str, Plugin], monkeypatch: pytest.MonkeyPatch) -> Twins:
    twins = Twins(plugins)
    monkeypatch.setattr(boosts, "described", twins.described)
    monkeypatch.setattr(fleet_boost_predict, "answer_of_twin", twins.answer)
    return twins


ALL = ("paris", "rome", "milan")


def test_each_boost_begins_with_its_own_twins_offer_before_the_next_twin_is_asked(
    run: Run, plugins: Dict[str, Plugin], twins: Twins, fleet: List[str]
) -> None:
    code, out, err = run("fleet", "boost", "recovery", *ALL, *fleet, "--predict", "--yes", "--format", "json")
    assert code == 0
    assert twins.began_before == {"paris": [], "rome": ["paris"], "milan": ["paris", "rome"]}
    assert [plugin.words()[-1] for plugin in plugins.values()] == ["recovery"] * 3
    assert [json.loads(plugin.payload) for plugin in plugins.values()] == [OFFER.to_dict()] * 3
    documents = json.loads(out)
    assert [each["cluster"] for each in documents] == list(ALL)
    assert [(each["begun"], each["twin"]["reason"]) for each in documents] == [(True, OFFERED.reason)] * 3
    told = " ".join(err.split())
    assert "rome: asking its twin (2 of 3)" in told
    assert "rome: described by itself, with 1 guesses" in told
    assert f"rome: the twin: {OFFERED.reason}" in told


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (TwinAnswer("it finds nothing faster", missed=("client.p95_ms <= 20 ms",)), "it finds nothing faster"),
        (
            InputError("--target", "osd, of several device classes", "osd/class:ssd"),
            "it has no answer: --target: found",
        ),
        (ZeroDivisionError("a mistake of ours"), "it has no answer: answered what cannot be read (ZeroDivisionError"),
    ],
)
def test_one_whose_twin_offers_nothing_boosts_with_what_it_would_take_anyway(
    run: Run, plugins: Dict[str, Plugin], twins: Twins, fleet: List[str], answer: Any, words: str
) -> None:
    twins.answers["rome"] = answer
    code, out, err = run("fleet", "boost", "recovery", *ALL, *fleet, "--predict", "--yes")
    assert (code, rows(out)["rome"].split()[0]) == (0, "recovery,")
    assert f"rome: the twin: {words}" in " ".join(err.split())
    assert (plugins["rome"].words()[-1], plugins["rome"].payload) == ("recovery", "")
    assert plugins["milan"].payload


@pytest.mark.parametrize(
    "fault",
    [
        ClusterTimeout("cluster rome: no answer within 30 s"),
        PermissionRefused("cluster rome", "no capability", "osd r"),
    ],
)
def test_so_does_one_that_cannot_be_described(
    run: Run, plugins: Dict[str, Plugin], twins: Twins, fleet: List[str], fault: Exception
) -> None:
    twins.undescribed["rome"] = fault
    code, _, err = run("fleet", "boost", "recovery", "rome", *fleet, "--predict", "--yes")
    assert (code, plugins["rome"].kind, plugins["rome"].payload) == (0, "recovery", "")
    assert "rome: the twin: it cannot be asked: " in " ".join(err.split())
    assert twins.began_before == {}


def test_so_does_one_where_something_measured_fits(
    run: Run, plugins: Dict[str, Plugin], twins: Twins, fleet: List[str]
) -> None:
    plugins["rome"].foretold["basis"] = MEASURED
    code, _, err = run("fleet", "boost", "recovery", "rome", *fleet, "--predict", "--yes")
    assert (code, plugins["rome"].kind, twins.began_before) == (0, "recovery", {})
    assert f"rome: the twin: {NOT_ASKED}" in " ".join(err.split())


def test_no_twin_is_asked_of_one_that_would_not_begin(
    run: Run, plugins: Dict[str, Plugin], twins: Twins, fleet: List[str]
) -> None:
    plugins["paris"].kind = "recovery"
    plugins["rome"].error = CommandFailed("ceph tuner boost foretell", -errno.EAGAIN, NOTHING_TO_BOOST)
    del plugins["milan"].foretold["in_force"]
    code, out, err = run("fleet", "boost", "recovery", *fleet, "--predict", "--yes")
    assert (code, twins.began_before) == (1, {})
    cells = [rows(out)[name].split()[0] for name in ("paris", "rome", "milan", "oslo")]
    assert cells == ["recovery,", "declined", "declined", "down"]
    told = " ".join(err.split())
    assert f"rome: {NOTHING_TO_BOOST}" in told
    assert "milan: --predict: found a plugin of an earlier version" in told
    assert [plugins[name].words()[-1] for name in ALL] == ["status", "foretell", "foretell"]


def test_without_yes_the_twins_are_asked_and_nothing_begins(
    run: Run, plugins: Dict[str, Plugin], twins: Twins, fleet: List[str]
) -> None:
    plugins["rome"].error = CommandFailed("ceph tuner boost foretell", -errno.EAGAIN, NOTHING_TO_BOOST)
    code, out, err = run("fleet", "boost", "recovery", *ALL, *fleet, "--predict")
    assert (code, [plugin.words()[-1] for plugin in plugins.values()]) == (1, ["foretell"] * 3)
    assert (rows(out)["paris"], rows(out)["rome"]) == ("none - - -", "declined - - -")
    told = " ".join(err.split())
    assert f"paris: the twin: {OFFERED.reason}" in told
    assert "nothing is changed: add --yes to boost recovery on paris, milan" in told


def test_ctrl_c_while_a_twin_is_asked_leaves_what_was_begun_and_begins_no_more(
    run: Run, plugins: Dict[str, Plugin], twins: Twins, fleet: List[str]
) -> None:
    # as the search says that it was interrupted
    twins.answers["rome"] = None
    code, out, err = run("fleet", "boost", "recovery", *ALL, *fleet, "--predict", "--yes")
    assert code == 130
    assert [rows(out)[name] for name in ("rome", "milan")] == ["not asked - - -"] * 2
    assert rows(out)["paris"].startswith("recovery, on")
    assert "may have begun" not in err
    assert [plugin.kind for plugin in plugins.values()] == ["recovery", "", ""]


def test_ctrl_c_while_a_boost_begins_says_that_it_may_be_on(
    run: Run, plugins: Dict[str, Plugin], twins: Twins, fleet: List[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import ceph_tuner_cli.fleet as shown

    ask_all = shown.ask_all

    def interrupted_as_rome_begins(members: Any, ask: Any, within_s: float) -> Any:
        for answer in list(ask_all(members, ask, within_s)):
            if plugins["rome"].kind:
                raise KeyboardInterrupt
            yield answer

    monkeypatch.setattr(shown, "ask_all", interrupted_as_rome_begins)
    code, out, err = run("fleet", "boost", "recovery", *ALL, *fleet, "--predict", "--yes")
    assert (code, rows(out)["rome"], rows(out)["milan"]) == (130, "interrupted - - -", "not asked - - -")
    assert "it may have begun on rome: see `ceph-tuner fleet boost status`" in " ".join(err.split())
    assert twins.began_before.keys() == {"paris", "rome"}


def test_one_that_is_late_before_its_boost_has_not_begun_it(
    run: Run, plugins: Dict[str, Plugin], twins: Twins, fleet: List[str]
) -> None:
    blocks = plugins["rome"].blocks = threading.Event()
    try:
        code, out, err = run(
            "fleet", "boost", "recovery", "rome", "milan", *fleet, "--within", "1", "--predict", "--yes"
        )
    finally:
        blocks.set()
    assert (code, rows(out)["rome"]) == (1, "late - - -")
    assert "may have begun" not in err
    assert (plugins["milan"].kind, twins.began_before) == ("recovery", {"milan": []})


@pytest.mark.parametrize("option", ["--trials", "--processes"])
def test_options_of_the_twin_are_refused_where_it_is_not_asked(
    run: Run, plugins: Dict[str, Plugin], fleet: List[str], option: str
) -> None:
    code, _, err = run("fleet", "boost", "recovery", *fleet, option, "1", "--yes")
    assert code == 2
    assert f"{option}: found no --predict beside it" in " ".join(err.split())
    assert all(plugin.asked == [] for plugin in plugins.values())
