"""What becomes of other clusters' profiles, and what it costs where they are unlike."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, List, Mapping, Optional

import numpy as np
import pytest

from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.slo import parse_slo
from ceph_tuner.core.knobs.cost import Hardware
from ceph_tuner.core.knobs.releases import MCLOCK_NINE, QUINCY_EARLY, REEF, TENTACLE, Release, Settings, nine
from ceph_tuner.core.measure.sample import Measure
from ceph_tuner.core.profiles.profile import Profile
from ceph_tuner.optimise import Options
from ceph_tuner.search.knob_search import KnobSearch
from ceph_tuner.search.optimiser import Failed, SettingsProposal
from ceph_tuner.search.shares_prior import SharesPrior
from ceph_tuner.search.space import KnobSpace, space_for
from ceph_tuner.search.transfer import NEAR, Elsewhere, Here, Judged, corrected, judged

HARDWARE = Hardware(800.0, 60e6, 1, "ssd")
SLO = parse_slo({"objectives": ["client.p95_ms <= 62 ms", "recovery.bytes_s >= 8 MB/s"]})
BALANCED = dict(TENTACLE.profiles["balanced"])
SPACE = space_for(TENTACLE, SLO.work, BALANCED, MCLOCK_NINE)
LIMITED = nine((0.6, 32, 0.0), (0.1, 1, 0.4), (0.05, 1, 0.3))
BASELINE = {
    "client.p95_ms": 98.0,
    "recovery.bytes_s": 26e6,
    "client.iops": 250.0,
    "client.bytes_s": 1e6,
    "client.write_iops": 250.0,
}
HERE = Here(TENTACLE, HARDWARE, 3, SLO.work)


def evidence(**changes: float) -> Dict[str, Any]:
    measured = {**BASELINE, "client.p95_ms": 60.0, "recovery.bytes_s": 12e6, **changes}
    return {"measured": measured, "best_built_in": {"profile": "balanced", "measured": dict(BASELINE)}}


def profile(release: Release = TENTACLE, settings: Settings = LIMITED, **changes: Any) -> Profile:
    given: Dict[str, Any] = {
        "hardware": HARDWARE,
        "osds": 6,
        "slos": (SLO.to_dict(),),
        "evidence": (
            evidence(**{name: 2 * BASELINE[name] for name in ("client.iops", "client.bytes_s", "client.write_iops")}),
        ),
    }
    return Profile.make("other", release, settings, **{**given, **changes})


def judge(
    entry: Profile, baseline: Mapping[str, float] = BASELINE, here: Here = HERE, space: KnobSpace = SPACE
) -> Judged:
    return judged(entry, here, baseline, space)


def test_a_like_profile_is_suggested_as_the_space_has_it() -> None:
    found = judge(profile())
    assert found.settings == SPACE.nearest(LIMITED)
    assert found.text == "other is suggested: alike in hardware, work and load"


def test_what_other_work_was_given_there_is_not_taken_over_and_no_reason_to_refuse() -> None:
    space = space_for(TENTACLE, SLO.work, BALANCED)
    found = judge(profile(), space=space)
    assert found.settings is not None
    assert found.settings["osd_mclock_scheduler_client_wgt"] == 32
    assert found.settings["osd_mclock_scheduler_background_best_effort_lim"] == 0.9


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"hardware": None}, "does not say on which hardware"),
        ({"hardware": replace(HARDWARE, device_class="hdd")}, "found on hdd, here is ssd"),
        ({"hardware": replace(HARDWARE, capacity_iops=2000.0)}, "an OSD had 2000 IOPS there, and 800 here"),
        ({"hardware": replace(HARDWARE, bandwidth_bytes_s=200e6)}, "had 200 MB/s there, and 60"),
        ({"hardware": replace(HARDWARE, shards=5)}, "had 5 shards there, and 1 here"),
        ({"slos": ()}, "for which work"),
        ({"slos": (parse_slo({"objectives": ["scrub.bytes_s >= 1 MB/s"]}).to_dict(),)}, "found for scrub"),
        ({"osds": 30}, "of the capacity there"),
        ({"evidence": (evidence(**{"client.bytes_s": 100e6}),), "osds": 3}, "KiB there"),
        ({"evidence": (evidence(**{"client.write_iops": 10.0}),), "osds": 3}, "were reads there"),
        ({"evidence": ()}, "does not say what its clients did"),
    ],
)  # fmt: skip
def test_an_unlike_profile_is_refused_with_the_reason(changes: Dict[str, Any], reason: str) -> None:
    found = judge(profile(**changes))
    assert found.settings is None
    assert reason in found.text
    assert found.to_dict()["suggested"] is False


def test_a_profile_of_another_release_is_translated() -> None:
    early = Here(QUINCY_EARLY, HARDWARE, 3, SLO.work)
    space = space_for(QUINCY_EARLY, SLO.work, QUINCY_EARLY.profiles["balanced"])
    found = judge(profile(), here=early, space=space)
    assert found.settings is not None, found.reason
    assert found.settings["osd_mclock_scheduler_background_recovery_lim"] == pytest.approx(0.4, abs=0.02)
    own = judge(Profile.make("balanced", REEF, REEF.profiles["balanced"], built_in=True, **origin()))
    assert own.settings == SPACE.nearest(REEF.profiles["balanced"])


def origin() -> Dict[str, Any]:
    known = profile()
    return {"hardware": known.hardware, "osds": known.osds, "slos": known.slos, "evidence": known.evidence}


def test_knobs_that_are_not_searched_here_refuse_a_profile() -> None:
    found = judge(profile(settings={**LIMITED, "osd_max_scrubs": 1}))
    assert found.settings is None
    assert "osd_max_scrubs, which is not searched here" in found.reason


def test_what_was_measured_elsewhere_is_predicted_there_and_fades_away_from_it() -> None:
    base = SharesPrior(SPACE, [o.metric for o in SLO.objectives], SLO.work)
    (prior,) = corrected([base], [judge(profile())], SPACE, TENTACLE)
    ends = np.array([SPACE.encode(BALANCED), SPACE.encode(LIMITED)])
    said, before = prior.predict(ends), base.predict(ends)
    assert said["client.p95_ms"][1] / before["client.p95_ms"][0] == pytest.approx(60.0 / 98.0, rel=1e-6)
    assert said["recovery.bytes_s"][1] / before["recovery.bytes_s"][0] == pytest.approx(12 / 26, rel=1e-6)
    far = np.array([np.where(ends[1] > 0.5, 0.0, 1.0)])
    assert prior.predict(far)["client.p95_ms"] == pytest.approx(base.predict(far)["client.p95_ms"], rel=1e-3)
    assert np.sqrt(np.mean((far[0] - ends[1]) ** 2)) / 3 > NEAR


def test_without_a_model_the_effect_alone_is_believed_and_across_queues_it_is_not() -> None:
    (prior,) = corrected([], [judge(profile())], SPACE, TENTACLE)
    assert prior.predict(np.array([SPACE.encode(LIMITED)]))["client.p95_ms"] == pytest.approx([60.0 / 98.0])
    assert (
        corrected([], [judge(profile(evidence=({**evidence(), "best_built_in": {}},), osds=3))], SPACE, TENTACLE) == []
    )
    early = Profile.make("early", QUINCY_EARLY, LIMITED, **origin())
    suggested = Judged(early, SPACE.nearest(LIMITED), "alike")
    assert corrected([], [suggested], SPACE, TENTACLE) == []


def cluster(settings: Mapping[str, Any]) -> Dict[str, float]:
    """A cluster that is a formula: clients suffer by what recovery may take, and by a weight that is too low."""
    limit = float(settings["osd_mclock_scheduler_background_recovery_lim"]) or 1.0
    weight = float(settings["osd_mclock_scheduler_client_wgt"])
    return {**BASELINE, "client.p95_ms": 40 + 58 * limit - 2 * np.log(weight), "recovery.bytes_s": 26e6 * limit}


def trials_until_met(*profiles: Profile) -> List[SettingsProposal]:
    elsewhere = Elsewhere(profiles, HERE, SPACE) if profiles else None
    options = Options(first_step=0.03, violation_budget=2)
    search = KnobSearch(SPACE, SLO, SPACE.nearest(BALANCED), 1, options, elsewhere=elsewhere)
    asked = []
    settings: Optional[Settings] = SPACE.nearest(BALANCED)
    while settings is not None and len(asked) < 12:
        seen = cluster(settings)
        search.tell(settings, {name: Measure(value, 0.01 * value, 20) for name, value in seen.items()})
        if not Judge(SLO).rank(seen)[0]:
            break
        proposal = search.ask()
        settings = None if proposal is None else proposal.settings
        asked += [] if proposal is None else [proposal]
    return asked


def test_a_like_profile_shortens_the_search() -> None:
    truth = cluster(LIMITED)
    measured = {
        **evidence()["measured"],
        "client.p95_ms": truth["client.p95_ms"],
        "recovery.bytes_s": truth["recovery.bytes_s"],
    }
    known = profile(evidence=({**evidence(), "measured": measured},), osds=3)
    alone, helped = trials_until_met(), trials_until_met(known)
    assert len(helped) <= len(alone) / 2


def test_an_unlike_profile_costs_nothing() -> None:
    unlike = profile(hardware=replace(HARDWARE, device_class="hdd"))
    assert trials_until_met(unlike) == trials_until_met()


def test_a_profile_that_was_wrong_about_its_effect_loses_its_weight() -> None:
    # elsewhere clients gained by what makes them suffer here
    harmful = nine((0.3, 1, 0.0), (0.5, 1, 0.0), (0.05, 1, 0.0))
    wrong = profile(settings=harmful, evidence=(evidence(**{"recovery.bytes_s": 26e6}),), osds=3)
    alone, misled = trials_until_met(), trials_until_met(wrong)
    assert len(misled) <= len(alone) + 2


def test_where_nothing_is_at_risk_what_served_elsewhere_is_tried_first_in_place_of_the_last_of_the_opening() -> None:
    opening = [SettingsProposal(SPACE.decode([share] * SPACE.size), "drawn") for share in (0.2, 0.4, 0.6)]
    elsewhere = Elsewhere([profile(), profile(hardware=None)], HERE, SPACE)
    search = KnobSearch(SPACE, SLO, SPACE.nearest(BALANCED), 1, opening=opening, elsewhere=elsewhere)
    search.tell(SPACE.nearest(BALANCED), {name: Measure(value, 0.0, 1) for name, value in BASELINE.items()})
    assert [entry.settings is not None for entry in elsewhere.judged] == [True, False]
    given = search.ask_many(3)
    assert given == [SettingsProposal(SPACE.nearest(LIMITED), "profile other"), *opening[:2]]
    assert not isinstance(given[0], Failed)
