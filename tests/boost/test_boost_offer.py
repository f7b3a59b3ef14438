"""What the twin offers a boost: how it is read, and what a boost makes of it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Dict, Optional, Tuple

import pytest

from ceph_tuner.core.boost.choice import KNOWN, MEASURED, PREDICTED, BookPage, BoostChoice, choose
from ceph_tuner.core.boost.kinds import KINDS
from ceph_tuner.core.boost.offer import MOST_BYTES, TwinOffer, parse_offer
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.slo import Slo, parse_objective
from ceph_tuner.core.goals.trial import Run, Trial
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.releases import RELEASES
from ceph_tuner.core.measure.forecast_record import ForecastInterval, ForecastRecord
from ceph_tuner.core.measure.sample import Measure

AT = 1_700_000_000.0
SPEED, LEFT, P95 = "recovery.copies_s", "recovery.objects_left", "client.p95_ms"
KEPT = Slo("kept", (parse_objective("client.p95_ms<=20"),))
TENTACLE = RELEASES["tentacle"]


def offer(copies: float = 90.0, p95: float = 15.0, before: float = 30.0, **more: Any) -> TwinOffer:
    metrics = {
        SPEED: ForecastInterval(copies, copies * 0.9, copies * 1.2),
        P95: ForecastInterval(p95, p95 * 0.8, p95 * 1.1),
    }
    given = {"kind": "recovery", "target": "osd", "settings": {"osd_max_scrubs": 7}, "before": {SPEED: before}, **more}
    return TwinOffer(forecast=ForecastRecord(AT, "small", 0.9, metrics), **given)


def read(text: str, kind: str = "recovery", target: str = "osd", now: float = AT) -> TwinOffer:
    return parse_offer(text, kind, target, now)


def with_(**fields: Any) -> str:
    return json.dumps({**offer().to_dict(), **fields})


def test_it_is_read_as_it_was_written() -> None:
    given = offer(in_force={PROFILE: "balanced", "osd_scrub_load_threshold": 0.5})
    assert read(json.dumps(given.to_dict())) == given
    without = {name: value for name, value in given.to_dict().items() if name != "in_force"}
    assert read(json.dumps(without)) == offer()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tea", "the twin's offer"),
        ("[]", "the twin's offer"),
        ("{}", "the twin's offer: found 'forecast'"),
        (with_(version=2), "a newer version"),
        (with_(settings={}), "at least one"),
        (with_(settings={"osd_tea": 1}), "settings must be knobs"),
        (with_(settings=5), "the twin's offer"),
        (with_(before={"tea": 1.0}), "before must be metrics"),
        (with_(before={SPEED: "nan"}), "finite"),
        (with_(in_force=5), "the twin's offer"),
        (with_(forecast={"at": AT}), "no metrics"),
        (with_(kind="scrub"), "the twin's offer, kind: found 'scrub', expected recovery"),
        (with_(target="osd.3"), "the twin's offer, target: found 'osd.3', expected osd"),
        (" " * MOST_BYTES + with_(), "more than"),
    ],
)
def test_what_is_none_or_one_for_something_else_is_refused(text: str, words: str) -> None:
    with pytest.raises(InputError) as refused:
        read(text)
    assert words in str(refused.value)


@pytest.mark.parametrize("after_s", [-3700.0, 3700.0])
def test_what_was_predicted_long_ago_is_refused(after_s: float) -> None:
    with pytest.raises(InputError, match="at most an hour from now"):
        read(with_(), now=AT + after_s)


def test_what_the_journal_has_no_room_for_is_dropped() -> None:
    forecast = {**offer().forecast.to_dict(), "model": "x" * 20_000, "beside": ["y"] * 1000}
    assert len(json.dumps(read(with_(forecast=forecast)).to_dict())) < 1000


def test_it_says_what_it_does_to_the_work_and_when_that_is_done() -> None:
    kind = KINDS["recovery"]
    words = "recovery.copies_s 30 /s to 90 /s (81–108)"
    assert offer().promise(kind, None) == words
    assert offer().promise(kind, 54_000.0) == f"{words}, done after 10 min (8.33 min to 11.1 min)"


def chosen(
    given: Optional[TwinOffer], kept: Optional[Slo] = KEPT, trials: Tuple[Trial, ...] = (), **in_force: Any
) -> BoostChoice:
    now = {SPEED: 5.0, LEFT: 54_000.0}
    page = BookPage(3, "recovering", {"osd_max_scrubs": 3}, AT, False, "the twin", {SPEED: 95.0}, {SPEED: 30.0})
    return choose(KINDS["recovery"], trials, kept, in_force, TENTACLE, (20, 2, 4), now, [page], offer=given)


def test_it_goes_before_pages_that_nobody_tried_and_behind_what_was_measured() -> None:
    without = chosen(None)
    assert (dict(without.settings), without.basis, dict(without.forecast)) == ({"osd_max_scrubs": 3}, PREDICTED, {})
    choice = chosen(offer())
    assert (dict(choice.settings), choice.basis) == ({"osd_max_scrubs": 7}, PREDICTED)
    assert choice.forecast == offer().forecast.to_dict()
    assert choice.grounds == (
        "predicted by the twin for this boost, and not tried on this cluster: the guard watches it "
        "(2023-11-14 22:13 UTC; recovery.copies_s 30 /s to 90 /s (81–108), done after 10 min (8.33 min to 11.1 min))"
    )
    measures = {P95: Measure(15.0, 0.1, 8), SPEED: Measure(6.0, 1.0, 8)}
    trial = Trial(Run("trial", "trial 1", {"osd_max_scrubs": 1}), AT, 60.0, measures)
    measured = chosen(offer(), trials=(trial,))
    assert (dict(measured.settings), measured.basis, dict(measured.forecast)) == ({"osd_max_scrubs": 1}, MEASURED, {})


@pytest.mark.parametrize(
    ("given", "in_force", "why"),
    [
        (offer(p95=21.0), {}, "it would miss client.p95_ms <= 20 ms"),
        (offer(before=90.0), {}, "it is no faster than what is in force"),
        (offer(before=0.0, kind="recovery"), {"osd_max_scrubs": 7}, "it is in force, or not for this release"),
        (offer(settings={"osd_scrub_cost": 50}), {}, "it is in force, or not for this release"),
        (
            offer(in_force={PROFILE: "balanced", "osd_max_backfills": 1}),
            {PROFILE: "balanced", "osd_max_backfills": 3},
            "other settings are in force than when it was asked",
        ),
    ],
)
def test_what_is_not_taken_of_it_is_said_beside_what_is(given: TwinOffer, in_force: Dict[str, Any], why: str) -> None:
    choice = chosen(given, **in_force)
    assert dict(choice.settings) == {"osd_max_scrubs": 3}
    assert choice.grounds.endswith(f"; what the twin offers is not taken: {why}")
    assert dict(choice.forecast) == {}


def test_where_nothing_is_to_be_kept_the_boldest_settings_are_taken_whatever_it_offers() -> None:
    choice = chosen(offer(), kept=None)
    assert (PROFILE in choice.settings, choice.basis) == (True, KNOWN)
    assert choice.grounds.endswith("; what the twin offers is not taken: nothing is to be kept")


def test_an_interval_that_begins_at_nothing_has_no_end() -> None:
    given = offer()
    stalled = replace(given.forecast, metrics={SPEED: ForecastInterval(90.0, 0.0, 100.0)})
    assert "done" not in replace(given, forecast=stalled).promise(KINDS["recovery"], 54_000.0)
