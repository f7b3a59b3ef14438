"""`ceph-tuner boost --predict`: the program asks a twin, and the real module begins the boost, on a twin as cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, List

import pytest
from plugin_on_twin import PluginCommander, plugin_cluster

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.boost.state import OFF, ON
from ceph_tuner.core.goals.trial import Run as TriedRun
from ceph_tuner.core.goals.trial import Trial
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.measure.sample import Measure
from ceph_tuner.fleet import boosts
from ceph_tuner.recommend import recommendation
from ceph_tuner.recommend.boost_offer import NONE_FASTER
from ceph_tuner.recommend.search import WorkOver
from ceph_tuner_cli import cluster_option
from running_program import Run

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick")]

KEEP = ("--keep", "client.p95_ms<=1")
QUICK = ("--trials", "6", "--processes", "1")


class Recovering:
    """A cluster that recovers under a low limit, with the module; the program opens it by any name."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.commander: PluginCommander = cluster.commander  # type: ignore[assignment]
        self.aboard = self.commander.aboard

    @property
    def phase(self) -> str:
        return self.aboard.modes.boosts.driver.state.phase

    def began(self) -> List[str]:
        return [each for each in self.commander.sent if each.startswith("tuner boost recovery")]


@pytest.fixture
def recovering(monkeypatch: pytest.MonkeyPatch) -> Recovering:
    cluster = plugin_cluster(500_000)
    monkeypatch.setattr(cluster_option, "open_cluster", lambda name: cluster)
    return Recovering(cluster)


def test_it_begins_with_what_the_twin_finds_and_gives_all_back(run: Run, recovering: Recovering) -> None:
    before = recovering.cluster.config.dump()
    code, out, err = run("boost", "recovery", "-c", "a", *KEEP, "--predict", *QUICK, "--format", "json")
    document = json.loads(out)
    assert (code, recovering.phase) == (0, ON), err
    # the built-in profile would do it faster, and clients would wait for long
    assert document["settings"][PROFILE] == "custom"
    assert document["twin"]["missed"] == ["client.p95_ms <= 1 ms"]
    offer = document["twin"]["offer"]
    assert document["settings"] == offer["settings"]
    assert offer["in_force"][PROFILE] == "custom"
    # what it predicts is a change of what the module saw just before
    assert offer["before"]["client.p95_ms"] == pytest.approx(document["baseline"]["client.p95_ms"])
    value, low, high = offer["forecast"]["metrics"]["recovery.copies_s"]
    assert low < value < high
    assert value > 1.2 * offer["before"]["recovery.copies_s"]
    assert "predicted by the twin for this boost, and not tried on this cluster: the guard watches it" in out
    recovering.commander.sample(12)
    # the guard sees nothing wrong with it, and the work is as fast as was said, within its own error
    assert recovering.phase == ON
    measured = recovering.aboard.sampler.window(30.0).means  # type: ignore[union-attr]
    assert measured["client.p95_ms"] < 1
    assert offer["before"]["recovery.copies_s"] * 1.2 < measured["recovery.copies_s"] < 2 * high
    assert run("boost", "cancel", "-c", "a")[0] == 0
    assert (recovering.phase, recovering.cluster.config.dump()) == (OFF, before)


def test_a_member_of_a_fleet_begins_with_what_its_own_twin_finds(
    run: Run, recovering: Recovering, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(boosts, "open_member", lambda member, timeout: recovering.cluster)
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text("schema: 1\nclusters:\n  paris: {lab: paris}\n")
    arguments = ("fleet", "boost", "recovery", "--fleet", fleet, *KEEP, "--predict", *QUICK, "--format", "json")
    code, out, err = run(*arguments)
    (document,) = json.loads(out)
    assert (code, recovering.phase, recovering.began()) == (0, OFF, []), err
    promised = document["twin"]["reason"]
    assert promised.startswith("recovery.copies_s ")
    code, out, err = run(*arguments, "--yes")
    (document,) = json.loads(out)
    assert (code, recovering.phase, document["begun"]) == (0, ON, True), err
    offer = document["twin"]["offer"]
    assert document["boost"]["settings"] == offer["settings"]
    assert offer["before"]["client.p95_ms"] == pytest.approx(document["boost"]["baseline"]["client.p95_ms"])
    assert f"paris: the twin: {document['twin']['reason']}" in " ".join(err.split())


def test_a_dry_run_shows_it_and_begins_nothing(run: Run, recovering: Recovering) -> None:
    before = recovering.cluster.config.dump()
    code, out, err = run("boost", "recovery", "-c", "a", *KEEP, "--predict", "--dry-run", *QUICK)
    assert (code, recovering.phase, recovering.began()) == (0, OFF, [])
    assert recovering.cluster.config.dump() == before
    assert "would boost recovery on osd: predicted by the twin for this boost" in " ".join(out.split())
    assert "done after " in out
    words = " ".join(err.split())
    assert "the twin: recovery.copies_s " in words
    # the drive of a described cluster is a guess
    assert "the twin: it is off here, as it says client.p95_ms" in words
    assert "ceph config set osd osd_mclock_scheduler_background_recovery_lim 0." in out


def no_better(recommend: Callable[..., Any]) -> Callable[..., Any]:
    def recommended(*arguments: Any, **named: Any) -> Any:
        found = recommend(*arguments, **named)
        found.searched.choice.__dict__["better"] = False
        return found

    return recommended


def test_where_the_twin_finds_nothing_faster_it_says_so_and_takes_what_it_would_anyway(
    run: Run, recovering: Recovering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recommendation, "recommend", no_better(recommendation.recommend))
    code, out, err = run("boost", "recovery", "-c", "a", *KEEP, "--predict", *QUICK, "--format", "json")
    document, words = json.loads(out), " ".join(err.split())
    assert (code, recovering.phase) == (0, ON)
    assert f"the twin: {NONE_FASTER} " in words
    assert "the twin: what the boost takes instead would miss client.p95_ms <= 1 ms" in words
    assert document["twin"]["offer"] is None
    assert "the share of the work's class under high_recovery_ops" in document["grounds"]
    assert document["forecast"] == {}


def unasked(*arguments: Any, **named: Any) -> Any:
    raise AssertionError("nobody is to be asked")


def test_what_was_measured_goes_before_what_the_twin_predicts(
    run: Run, recovering: Recovering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recommendation, "recommend", unasked)
    measures = {"client.p95_ms": Measure(0.5, 0.1, 8), "recovery.copies_s": Measure(9e6, 1.0, 8)}
    trial = Trial(TriedRun("trial", "trial 1", {"osd_max_scrubs": 5}), 1000.0, 60.0, measures)
    recovering.aboard.service.history().add_trial(trial.to_dict())
    code, out, err = run("boost", "recovery", "-c", "a", *KEEP, "--predict")
    assert (code, recovering.phase) == (0, ON)
    assert "goes before what the twin predicts: it is not asked" in " ".join(err.split())
    assert "trial 1 was the fastest" in " ".join(out.split())


def test_without_anything_to_keep_the_twin_is_not_asked(
    run: Run, recovering: Recovering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recommendation, "recommend", unasked)
    code, _, err = run("boost", "recovery", "-c", "a", "--predict")
    assert (code, recovering.phase) == (0, ON)
    assert "it predicts none of what is to be kept" in " ".join(err.split())


def test_work_that_ends_before_the_twin_can_tell_is_boosted_without_it(
    run: Run, recovering: Recovering, monkeypatch: pytest.MonkeyPatch
) -> None:
    def over(*_: Any, **__: Any) -> Any:
        raise WorkOver("maximise recovery.copies_s", "nothing of it is left", "more of that work")

    monkeypatch.setattr(recommendation, "recommend", over)
    code, out, err = run("boost", "recovery", "-c", "a", *KEEP, "--predict", *QUICK, "--format", "json")
    assert (code, recovering.phase, json.loads(out)["twin"]["offer"]) == (0, ON, None)
    assert "the twin: it has no answer for maximise recovery.copies_s: nothing of it is left" in " ".join(err.split())


@pytest.mark.parametrize("strikes_early", [True, False])
def test_ctrl_c_while_it_searches_begins_no_boost(
    run: Run, recovering: Recovering, monkeypatch: pytest.MonkeyPatch, strikes_early: bool
) -> None:
    recommend = recommendation.recommend

    def interrupted(*arguments: Any, **named: Any) -> Any:
        if strikes_early:
            raise KeyboardInterrupt
        found = recommend(*arguments, **named)
        found.__dict__["interrupted"] = True
        return found

    monkeypatch.setattr(recommendation, "recommend", interrupted)
    before = recovering.cluster.config.dump()
    code, out, _ = run("boost", "recovery", "-c", "a", *KEEP, "--predict", *QUICK)
    assert (code, out, recovering.phase, recovering.began()) == (130, "", OFF, [])
    assert recovering.cluster.config.dump() == before


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("recovery", "--trials", "9"), 2, "--trials: found no --predict beside it"),
        (("recovery", "--processes", "1"), 2, "--processes: found no --predict beside it"),
        # before anything is searched, as the boost would be refused
        (("scrub", "--predict"), 3, "there is nothing to boost"),
        (("recovery", "--predict", "--at-most", "9d"), 2, "1min to 7d"),
        (("recovery", "--predict", "--target", "osd/class:tape"), 2, "no running OSD"),
    ],
)
def test_what_would_be_refused_is_refused_before_the_twin_is_asked(
    run: Run, recovering: Recovering, monkeypatch: pytest.MonkeyPatch, arguments: Any, code: int, words: str
) -> None:
    monkeypatch.setattr(recommendation, "recommend", unasked)
    ended, _, error = run("boost", *arguments, "-c", "a")
    assert (ended, recovering.phase) == (code, OFF)
    assert words in " ".join(error.split())


def test_a_plugin_of_an_earlier_version_is_not_given_what_it_would_drop(
    run: Run, recovering: Recovering, monkeypatch: pytest.MonkeyPatch
) -> None:
    boosts = recovering.aboard.modes.boosts
    foretell = boosts.foretell
    monkeypatch.setattr(
        boosts, "foretell", lambda *each: {name: value for name, value in foretell(*each).items() if name != "in_force"}
    )
    code, _, error = run("boost", "recovery", "-c", "a", *KEEP, "--predict")
    assert (code, recovering.phase) == (2, OFF)
    assert "ceph-tuner mgr install" in " ".join(error.split())
