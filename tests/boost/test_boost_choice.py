from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, Optional

import pytest

from ceph_tuner.core.boost.choice import HIGH_RECOVERY, LOOKED_AT, RAISED, BookPage, choose, known
from ceph_tuner.core.boost.goals import goals_of, parse_keep
from ceph_tuner.core.boost.kinds import KINDS
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.slo import Slo, parse_objective
from ceph_tuner.core.goals.trial import Run, Trial
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.releases import MCLOCK_NINE, RELEASES, nine
from ceph_tuner.core.measure.sample import Measure

TENTACLE, VERSION = RELEASES["tentacle"], (20, 2, 4)
KEPT = Slo("kept", (parse_objective("client.p95_ms<=20"),))
OVERRIDE = "osd_mclock_override_recovery_settings"


def trial(number: int, p95: float, copies: float, failed: Optional[str] = None, **settings: Any) -> Trial:
    measures = {"client.p95_ms": Measure(p95, 0.1, 8), "recovery.copies_s": Measure(copies, 1.0, 8)}
    run = Run("trial", f"trial {number}", settings or {"osd_max_scrubs": number})
    return Trial(run, 1_700_000_000.0 + number, 60.0, measures, failed)


SLOW = {"recovery.copies_s": 5.0, "recovery.bytes_s": 1e3, "snaptrim.objects_s": 0.0}
"""How fast the work is now."""


def chosen(kind: str = "recovery", trials: Any = (), kept: Optional[Slo] = KEPT, **in_force: Any) -> Dict[str, Any]:
    return dict(choose(KINDS[kind], trials, kept, in_force, TENTACLE, VERSION, SLOW).settings)


def test_the_fastest_trial_that_kept_the_objectives_is_taken() -> None:
    trials = [trial(1, 15.0, 20.0), trial(2, 19.0, 60.0), trial(3, 25.0, 90.0), trial(4, 12.0, 80.0, "the guard")]
    assert chosen(trials=trials) == {"osd_max_scrubs": 2}


@pytest.mark.parametrize(
    "unfit",
    [
        trial(1, 25.0, 90.0),
        trial(2, 15.0, 90.0, "slow operations"),
        trial(3, 15.0, 90.0, osd_max_scrubs=-1),
        trial(4, 15.0, 90.0, osd_scrub_cost=50),
    ],
)
def test_what_did_not_keep_them_or_is_not_for_this_release_is_not(unfit: Trial) -> None:
    assert chosen(trials=[unfit])[PROFILE] == HIGH_RECOVERY


def test_a_trial_that_saw_none_of_this_work_says_nothing_about_it() -> None:
    assert chosen("snaptrim", [trial(1, 15.0, 60.0)])[PROFILE] == HIGH_RECOVERY


def test_without_objectives_the_boldest_known_settings_are_taken() -> None:
    wanted = {PROFILE: HIGH_RECOVERY, OVERRIDE: True, "osd_max_backfills": 4}
    assert chosen(trials=[trial(1, 15.0, 20.0)], kept=None) == wanted


def test_what_is_in_force_and_higher_values_stay() -> None:
    assert chosen(**{PROFILE: HIGH_RECOVERY, "osd_max_backfills": 1}) == {OVERRIDE: True, "osd_max_backfills": 4}
    assert chosen("scrub", osd_max_scrubs=8, osd_scrub_load_threshold=10.0) == {PROFILE: HIGH_RECOVERY}
    with pytest.raises(InputError, match="as fast"):
        chosen(**{PROFILE: HIGH_RECOVERY, "osd_max_backfills": 9})


def shares_of(kind: str, *in_force: Any, release: Any = TENTACLE) -> Any:
    now = {PROFILE: "custom", **nine(*in_force)}
    settings = known(KINDS[kind], now, release, release.newest)
    shares = [settings.get(name) for name in MCLOCK_NINE]
    return settings.get(PROFILE), shares[:3], shares[3:6], shares[6:]


def test_beside_custom_shares_the_works_class_alone_is_raised_and_what_limits_others_stays() -> None:
    held = [(0.47, 1, 0.0), (0.2, 1, 0.5), (0.03, 2, 0.16)]
    assert shares_of("recovery", *held) == ("custom", [0.3, 1, 0.0], [0.7, 2, 0.0], [0.0, 2, 0.16])
    assert shares_of("scrub", *held) == ("custom", [0.47, 1, 0.0], [0.2, 1, 0.5], [0.05, 2, 0])
    for kind in KINDS:
        _, *shares = shares_of(kind, (0.9, 4, 0.95), (0.05, 1, 0.1), (0.05, 1, 0.05))
        assert sum(each[0] for each in shares) <= 1.0


def test_shares_that_are_as_high_already_are_no_boost() -> None:
    high = (0.3, 1, 0.0), (0.7, 2, 0.0), (0.0, 2, 0.16)
    assert shares_of("recovery", *high)[0] is None
    assert shares_of("scrub", *high)[0] == "custom"


def test_shares_in_other_units_or_that_were_not_read_are_left_for_the_profile() -> None:
    early = RELEASES["quincy-early"]
    assert early.units == "iops"
    assert shares_of("recovery", (500, 1, 0), (100, 1, 0), (50, 1, 0), release=early)[0] == HIGH_RECOVERY
    assert chosen(**{PROFILE: "custom"})[PROFILE] == HIGH_RECOVERY


def test_wpq_has_no_profile() -> None:
    assert chosen(osd_op_queue="wpq") == {OVERRIDE: True, "osd_max_backfills": 4}
    assert chosen("snaptrim", osd_op_queue="wpq").keys() == {"osd_max_trimming_pgs", "osd_pg_max_concurrent_snap_trims"}


@pytest.mark.parametrize("name", ["quincy", "reef", "squid", "tentacle"])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_each_release_takes_them(kind: str, name: str) -> None:
    releases = [release for key, release in RELEASES.items() if key.startswith(name)]
    assert releases
    for release in releases:
        settings = known(KINDS[kind], {}, release, release.newest)
        assert settings[PROFILE] == HIGH_RECOVERY


def test_all_that_is_decided_upon_is_looked_at() -> None:
    assert {PROFILE, "osd_op_queue", *(name for knobs in RAISED.values() for name, _ in knobs)} <= set(LOOKED_AT)


def test_objectives_for_the_boost_stand_in_the_place_of_the_slos() -> None:
    slo = Slo("slo", (parse_objective("client.p95_ms<=80"), parse_objective("client.mean_ms<=9")))
    both = goals_of(("client.p95_ms<=20",), slo)
    assert both is not None
    assert [each.text for each in both.objectives] == ["client.p95_ms <= 20 ms", "client.mean_ms <= 9 ms"]
    assert goals_of((), None) is None


def test_what_is_to_be_kept_is_read_with_bounds_as_numbers() -> None:
    means = {"client.p95_ms": 10.0}
    assert [each.text for each in parse_keep("client.p95_ms <= 1.5 * baseline; ", means)] == ["client.p95_ms <= 15 ms"]
    assert parse_keep("", means) == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("client.p95_ms<=9", "is 10 ms now"),
        ("client.p99_ms<=2*baseline", "no client.p99_ms is seen"),
        ("client.p95_ms<=20; client.p95_ms<=30", "two hard objectives"),
        ("client.p95_ms{class=ssd}<=20", "whole cluster"),
        ("tea<=9", "--keep"),
        # nothing would guard it
        ("scrub.bytes_s>=1 MB/s", "no scrub.bytes_s is seen"),
        (";".join(["client.p95_ms<=20"] * 11), "at most 10"),
    ],
)
def test_what_cannot_be_kept_is_refused(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        parse_keep(text, {"client.p95_ms": 10.0})


def test_a_trial_that_was_slower_than_the_work_is_now_is_no_boost() -> None:
    now = {"recovery.copies_s": 50.0}
    slower, faster = trial(1, 15.0, 20.0), trial(2, 15.0, 60.0)
    kind = KINDS["recovery"]
    assert dict(choose(kind, [slower, faster], KEPT, {}, TENTACLE, VERSION, now).settings) == {"osd_max_scrubs": 2}
    assert PROFILE in choose(kind, [slower], KEPT, {}, TENTACLE, VERSION, now).settings


def test_trials_are_compared_by_one_metric() -> None:
    by_bytes = replace(
        trial(1, 15.0, 0.0), measures={"client.p95_ms": Measure(15.0, 0.1, 8), "recovery.bytes_s": Measure(3e6, 1.0, 8)}
    )
    assert chosen(trials=[by_bytes, trial(2, 15.0, 60.0)]) == {"osd_max_scrubs": 2}
    assert chosen(trials=[by_bytes]) == {"osd_max_scrubs": 1}


SPEED = "recovery.copies_s"


def page(number: int, copies: float, validated: bool = True, before: float = 10.0, **means: float) -> BookPage:
    settings = {"osd_max_scrubs": number}
    origin = "a trial" if validated else "the twin"
    return BookPage(number, "recovering", settings, 1e9, validated, origin, {SPEED: copies, **means}, {SPEED: before})


def grounds(
    *pages: BookPage, trials: Any = (), now: Optional[float] = 5.0, kept: Optional[Slo] = KEPT, **in_force: Any
) -> str:
    means = {} if now is None else {SPEED: now}
    choice = choose(KINDS["recovery"], trials, kept, in_force, TENTACLE, VERSION, means, pages)
    return f"{dict(choice.settings)}: {choice.grounds}"


def test_the_fastest_of_trials_and_validated_pages_is_taken_and_the_grounds_say_which() -> None:
    both = grounds(page(3, 60.0), page(4, 90.0), trials=[trial(1, 15.0, 70.0)])
    assert both.startswith("{'osd_max_scrubs': 4}: of 1 trial on this cluster and 2 validated pages of the book")
    assert "page 4 of the book, validated for recovering, was the fastest" in both
    assert grounds(page(3, 60.0), trials=[trial(1, 15.0, 70.0)]).startswith("{'osd_max_scrubs': 1}: of 1 trial")


def test_a_page_that_breaks_what_is_to_be_kept_or_is_no_faster_or_is_in_force_is_not() -> None:
    breaking = page(3, 60.0, **{"client.p95_ms": 25.0})
    # a page knows few metrics: what it does not know is for the guard
    keeping = page(4, 50.0, **{"client.mean_ms": 25.0})
    assert grounds(breaking, keeping).startswith("{'osd_max_scrubs': 4}")
    assert HIGH_RECOVERY in grounds(page(3, 60.0), now=60.0)
    assert HIGH_RECOVERY in grounds(page(3, 60.0), osd_max_scrubs=3)
    assert HIGH_RECOVERY in grounds(page(3, 60.0), kept=None)
    assert HIGH_RECOVERY in grounds(page(3, 60.0)._replace(settings={"osd_scrub_cost": 50}))


def test_what_nobody_has_tried_here_comes_behind_what_was_and_says_so() -> None:
    predicted = page(5, 500.0, validated=False)
    assert grounds(predicted, page(3, 60.0)).startswith("{'osd_max_scrubs': 3}")
    told = grounds(predicted, page(3, 4.0))
    assert told.startswith("{'osd_max_scrubs': 5}: page 5 of the book for recovering, by the twin and not tried")
    assert "the guard watches it" in told
    # what it promises is held against what was predicted without it
    assert HIGH_RECOVERY in grounds(page(5, 500.0, validated=False, before=500.0))
    assert grounds(page(5, 50.0, validated=False), now=900.0).startswith("{'osd_max_scrubs': 5}")


def test_without_trials_and_pages_the_grounds_say_so() -> None:
    assert "no trial on this cluster and no page of the book for this regime" in grounds()


def test_trials_that_are_in_force_already_are_no_boost() -> None:
    assert HIGH_RECOVERY in grounds(trials=[trial(1, 15.0, 70.0)], osd_max_scrubs=1)


def test_nothing_that_was_tried_is_faster_than_work_whose_speed_was_not_measured_and_the_grounds_say_so() -> None:
    unmeasured = "how fast the work is now was not measured"
    told = grounds(page(3, 60.0), trials=[trial(1, 15.0, 70.0)], now=None)
    assert HIGH_RECOVERY in told
    assert unmeasured in told
    of_page = grounds(page(5, 500.0, validated=False), trials=[trial(1, 15.0, 70.0)], now=None)
    assert of_page.startswith("{'osd_max_scrubs': 5}: page 5 of the book for recovering, by the twin and not tried")
    assert unmeasured in of_page
    # work that stands still is measured
    assert grounds(trials=[trial(1, 15.0, 70.0)], now=0.0).startswith("{'osd_max_scrubs': 1}")
    # nothing was tried that it could be compared with
    assert unmeasured not in grounds(now=None)
