"""Which settings a boost takes inside a mgr, by trials and the book, and what a dry run tells of that."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Dict, Tuple

import pytest
from boosted_mgr import Boosted, boosted, forbidding, recovering

from ceph_tuner.core.book.book import PAGES_KEY, StoredBook
from ceph_tuner.core.book.page import TRIAL, TWIN, UNVALIDATED, VALIDATED, Page
from ceph_tuner.core.boost.events import Request
from ceph_tuner.core.boost.kinds import KINDS
from ceph_tuner.core.boost.offer import TwinOffer
from ceph_tuner.core.boost.state import OFF, ON, BoostState
from ceph_tuner.core.changes.journal import Journal
from ceph_tuner.core.errors import InputError, RetryLater, TunerError
from ceph_tuner.core.goals.trial import Run, Trial
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.measure.forecast_record import ForecastInterval, ForecastRecord
from ceph_tuner.core.measure.metrics import CLASS, Scope
from ceph_tuner.core.measure.sample import Measure, Window
from tuner import render_automatic

COPIES, LEFT = "recovery.copies_s", "recovery.objects_left"
PREDICTED = {"state": UNVALIDATED, "origin": TWIN}


def page(number: int, target: str = "osd", regime: str = "recovering", **more: Any) -> Page:
    usual: Dict[str, Any] = {"state": VALIDATED, "origin": TRIAL, "load": {COPIES: 1000.0}, "effects": {COPIES: 9.0}}
    return Page(number, regime, {"osd_max_scrubs": 4 + number}, at=1000.0, target=target, **{**usual, **more})


@pytest.mark.parametrize(
    ("pages", "options", "grounds"),
    [
        ((page(1),), {}, "page 1 of the book, validated for "),
        ((page(1, regime="trimming"),), {}, "no page of the book for this regime"),
        ((page(1, "osd/class:ssd"),), {}, "no page of the book for this regime"),
        ((page(1, **PREDICTED),), {}, "no page of the book for this regime"),
        ((page(1, **PREDICTED),), {"book_unvalidated": "twin"}, "by the twin and not tried on this cluster"),
        ((page(1, **PREDICTED), page(2)), {"book_unvalidated": "twin"}, "page 2 of the book, validated for "),
    ],
)
def test_the_book_s_pages_for_the_regime_and_the_osds_are_taken(
    pages: Tuple[Page, ...], options: Dict[str, Any], grounds: str
) -> None:
    mgr = boosted(recovering(500_000), **options)
    regime = mgr.modes.regimes.state_of()
    assert regime is not None
    for each in pages:
        own = replace(each, regime=regime.name if each.regime == "recovering" else each.regime)
        StoredBook(mgr.service.store).change(lambda book, own=own: book.added(own))  # type: ignore[misc]
    document = mgr.begin(keep="client.p95_ms<=10 s")
    assert grounds in document["grounds"]
    is_known = grounds.startswith("no page")
    assert (PROFILE in document["settings"]) == is_known
    assert (document["settings"] == {"osd_max_scrubs": 4 + pages[-1].number}) != is_known


def test_a_page_that_the_book_leaves_out_and_a_book_that_cannot_be_read_give_no_settings() -> None:
    mgr = boosted(recovering(500_000))
    regime = mgr.modes.regimes.state_of()
    assert regime is not None
    StoredBook(mgr.service.store).change(lambda book: book.added(page(1, regime=regime.name)))
    request, means = Request("recovery", keep=("client.p95_ms <= 10 s",)), {COPIES: 1.0}
    settings, now = mgr.modes.boosts._settings, mgr.twin.clock.now()
    assert "page 1" in settings.choose(request, means, now).grounds
    executor = mgr.modes.books.whole.driver._executor
    executor.state = replace(executor.state, rests={1: now + 60.0})
    assert "no page" in settings.choose(request, means, now).grounds
    executor.state = replace(executor.state, rests={1: now})
    assert "page 1" in settings.choose(request, means, now).grounds
    mgr.service.store.set(PAGES_KEY, "{")
    assert "no page" in settings.choose(request, means, now).grounds


def test_a_regime_that_the_book_would_not_trust_gives_no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    mgr = boosted(recovering(500_000))
    regime = mgr.modes.regimes.state_of()
    assert regime is not None
    StoredBook(mgr.service.store).change(lambda book: book.added(page(1, regime=regime.name)))
    request, means = Request("recovery", keep=("client.p95_ms <= 10 s",)), {COPIES: 1.0}
    settings = mgr.modes.boosts._settings
    for held, after_s, grounds in (
        (regime, 0.0, "page 1"),
        # no sample has come of late, or the first one of this mgr alone
        (regime, 60.0, "no page"),
        (replace(regime, settled=False), 0.0, "no page"),
    ):
        monkeypatch.setattr(mgr.modes.regimes, "state_of", lambda scope="", held=held: held)
        assert grounds in settings.choose(request, means, regime.at + after_s).grounds


def tried(mgr: Boosted, device_class: str, **copies_s: float) -> None:
    """Trials of that class, of all OSDs, and of a class of which there are none, each so fast."""
    classes = {"whole": (5, ""), "own": (6, device_class), "other": (7, "tape")}
    for name, speed in copies_s.items():
        number, of = classes[name]
        run = Run("trial", f"trial {number}", {"osd_max_scrubs": number})
        measures = {"client.p95_ms": Measure(1.0, 0.1, 8), COPIES: Measure(speed, 1.0, 8)}
        mgr.service.history().add_trial(Trial(run, 1000.0, 60.0, measures, device_class=of).to_dict())


def beside_tape(mgr: Boosted, patch: pytest.MonkeyPatch) -> str:
    """Let there be another device class; give the one of the OSDs that run."""
    places = mgr.service.config.places()
    tape = replace(places[0], osd=99, device_class="tape")
    patch.setattr(type(mgr.service.config), "places", lambda config: [*places, tape])
    return str(places[0].device_class)


def test_a_boost_of_the_only_device_class_goes_by_the_trials_and_pages_of_the_whole_cluster_too() -> None:
    mgr = boosted(recovering(500_000))
    device_class = mgr.service.config.places()[0].device_class
    mgr.service.slo_commands.set("client.p95_ms<=10 s", False, 1.0, "")
    mgr.sample(2)
    settings, now = mgr.modes.boosts._settings, mgr.twin.clock.now()
    request, means = Request("recovery", target=f"osd/class:{device_class}"), {COPIES: 1.0}
    tried(mgr, device_class, own=8e6, whole=9e6, other=9e9)
    assert dict(settings.choose(request, means, now).settings) == {"osd_max_scrubs": 5}
    tried(mgr, device_class, own=1e7)
    best = settings.choose(request, means, now)
    assert dict(best.settings) == {"osd_max_scrubs": 6}
    assert "of 3 trials on this cluster that kept the objectives, trial 6" in best.grounds
    regime = mgr.modes.regimes.state_of()
    assert regime is not None
    fastest = page(1, regime=regime.name, effects={COPIES: 1e6})
    StoredBook(mgr.service.store).change(lambda book: book.added(fastest))
    assert "page 1 of the book" in settings.choose(request, means, now).grounds


def test_a_device_class_without_objectives_keeps_those_of_the_whole_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    mgr = boosted(recovering(500_000))
    device_class = beside_tape(mgr, monkeypatch)
    mgr.service.slo_commands.set("client.p95_ms<=10 s", False, 1.0, "")
    mgr.service.slo_commands.set("client.p95_ms{class=tape}<=9 s", False, 1.0, "")
    mgr.service.scopes.awaited = (Scope(CLASS, device_class),)
    mgr.sample(14)
    tried(mgr, device_class, own=9e6, whole=9e9)
    request = Request("recovery", target=f"osd/class:{device_class}")
    choice = mgr.modes.boosts._settings.choose(request, {}, mgr.twin.clock.now())
    assert dict(choice.settings) == {"osd_max_scrubs": 6}
    assert f"of 1 trial of the class {device_class} that kept" in choice.grounds
    # without samples of the class it is not known how fast its work is
    mgr.service.scopes.awaited = ()
    mgr.service.slo_commands.remove("client.p95_ms{class=tape}")
    mgr.sample(14)
    blind = mgr.modes.boosts._settings.choose(request, {COPIES: 1.0}, mgr.twin.clock.now())
    assert PROFILE in blind.settings
    assert "how fast the work is now was not measured" in blind.grounds


def test_a_boost_of_a_device_class_goes_by_the_trials_of_that_class(monkeypatch: pytest.MonkeyPatch) -> None:
    mgr = boosted(recovering(500_000))
    device_class = beside_tape(mgr, monkeypatch)
    tried(mgr, device_class, whole=9e6, own=9e6, other=9e6)
    mgr.service.slo_commands.set(f"client.p95_ms{{class={device_class}}}<=10 s", False, 1.0, "")
    mgr.sample(14)
    settings, now, keep = mgr.modes.boosts._settings, mgr.twin.clock.now(), ("client.p95_ms <= 9 s",)
    of_class = settings.choose(Request("recovery", keep=keep, target=f"osd/class:{device_class}"), {}, now)
    assert dict(of_class.settings) == {"osd_max_scrubs": 6}
    assert f"of 1 trial of the class {device_class} that kept the objectives, trial 6" in of_class.grounds
    mgr.service.slo_commands.remove("all")
    of_all = settings.choose(Request("recovery", keep=keep), {COPIES: 1.0}, now)
    assert dict(of_all.settings) == {"osd_max_scrubs": 5}


def test_late_scrubs_that_were_seen_becoming_fewer_give_a_rate_of_before() -> None:
    mgr = boosted()
    mgr.twin.clock.sleep(900.0)
    boosts, now = mgr.modes.boosts, mgr.twin.clock.now()
    history, late = mgr.service.history(), {"scrub.pgs_late": 10.0}
    assert boosts._rate_before(KINDS["scrub"], late) is None
    for number, left in enumerate((16.0, 14.0, 12.0)):
        end = now - 180.0 + 60.0 * number
        history.add_window(Window(end - 60.0, end, {"scrub.pgs_late": Measure(left, 0.0, 12)}))
    assert boosts._rate_before(KINDS["scrub"], late) == pytest.approx(6.0 / 180.0)
    # what became less during another boost says nothing
    boosts.driver._executor.state = BoostState(last={"ended": now - 30.0})
    assert boosts._rate_before(KINDS["scrub"], late) is None


def test_a_dry_run_tells_all_and_writes_nothing() -> None:
    mgr = boosted(recovering(500_000))
    mgr.service.slos.replace(forbidding(mgr, 3600.0, 7200.0, "scrub"))
    before, stored = mgr.table(), {key: mgr.service.store.get(key) for key in mgr.service.store.keys("")}
    document = mgr.modes.boosts.foretell("recovery", keep="client.mean_ms<=9 s", at_most="2h")
    assert (mgr.phase, mgr.trail(), mgr.table()) == (OFF, [], before)
    assert {key: mgr.service.store.get(key) for key in mgr.service.store.keys("")} == stored
    assert (document["dry_run"], document["left"]) == (True, document["request"] and mgr.sampler.latest().values[LEFT])  # type: ignore[union-attr]
    assert document["done_within_s"] == pytest.approx(document["left"] / document["rate_before"])
    shown = " ".join(render_automatic.boost(document).split())
    for words in (
        "a dry run: nothing is written",
        "would boost recovery on osd: the share of the work's class under high_recovery_ops beside the custom ones of "
        "the others, as no trial",
        "degraded object copies are left done within",
        "would end once no degraded object copies are left",
        "at the latest, in 2 h",
        "would end when one of these is missed: client.mean_ms <= 9000 ms; client.p95_ms <= 10000 ms",
        "would end by the guard: slow operations",
        "as the policy quiet begins",
        "ceph config set osd osd_max_backfills 4",
    ):
        assert words in shown
    # what it says is what comes about
    assert mgr.begin(at_most="2h")["settings"] == document["settings"]


def test_a_dry_run_is_refused_as_the_boost_would_be() -> None:
    mgr = boosted(recovering(500_000))
    with pytest.raises(TunerError, match="no running OSD"):
        mgr.modes.boosts.foretell("recovery", who="osd/class:tape")
    with pytest.raises(RetryLater, match="no PGs past their deep-scrub date are left"):
        mgr.modes.boosts.foretell("scrub")
    with pytest.raises(InputError, match="--until"):
        mgr.modes.boosts.foretell("recovery", until="midnight")
    with pytest.raises(InputError, match="found 'tea'"):
        mgr.modes.boosts.foretell("tea")
    mgr.begin()
    with pytest.raises(InputError, match="a boost of recovery is on already"):
        mgr.modes.boosts.foretell("recovery")


def offered(mgr: Boosted, settings: Dict[str, Any], copies: float = 900.0, p95_ms: float = 15.0) -> str:
    metrics = {
        COPIES: ForecastInterval(copies, 0.9 * copies, 1.2 * copies),
        "client.p95_ms": ForecastInterval(p95_ms, 1.0, 99.0),
    }
    forecast = ForecastRecord(mgr.twin.clock.now(), "small", 0.9, metrics)
    return json.dumps(TwinOffer("recovery", "osd", settings, {COPIES: 300.0}, forecast).to_dict())


def test_what_the_twin_offers_is_written_under_the_guard_and_kept_with_what_it_predicts() -> None:
    mgr = boosted(recovering(500_000))
    before, keep = mgr.table(), "client.p95_ms<=10 s"
    text = offered(mgr, {"osd_max_scrubs": 7})
    foretold = mgr.modes.boosts.foretell("recovery", keep=keep, offer=text)
    assert (foretold["basis"], foretold["settings"], mgr.table()) == ("predicted", {"osd_max_scrubs": 7}, before)
    assert foretold["objectives"] == [{"objective": "client.p95_ms <= 10000 ms", "hard": True, "priority": 1.0}]
    assert mgr.modes.boosts.foretell("recovery", keep=keep)["basis"] == "known"
    # it was asked under other settings, say a page that the book has replaced since
    elsewhere = json.dumps({**json.loads(text), "in_force": {**foretold["in_force"], "osd_max_backfills": 7}})
    assert mgr.modes.boosts.foretell("recovery", keep=keep, offer=elsewhere)["basis"] == "known"
    text = json.dumps({**json.loads(text), "in_force": foretold["in_force"]})
    document = mgr.begin(keep=keep, offer=text)
    assert (document["phase"], document["settings"]) == (ON, {"osd_max_scrubs": 7})
    assert "predicted by the twin for this boost" in document["grounds"]
    assert "recovery.copies_s 300 /s to 900 /s (810–1080), done after " in " ".join(document["words"])
    entry = Journal(mgr.service.store).entries()[-1]
    assert (entry.trial, ForecastRecord.from_dict(entry.forecast)) == (
        True,
        TwinOffer.from_dict(json.loads(text)).forecast,
    )
    # it is in the store for the next active mgr too
    assert BoostState.from_dict(mgr.modes.boosts.driver.state.to_dict()).forecast == entry.forecast
    mgr.during(lambda: mgr.modes.boosts.cancel("enough"))
    assert mgr.table() == before


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"osd_max_scrubs": -1}, "the twin's offer, osd_max_scrubs"),
        ({"osd_op_queue": "wpq"}, "the twin's offer, osd_op_queue"),
        ({"osd_max_backfills": 9}, "osd_mclock_override_recovery_settings"),
    ],
)
def test_an_offer_that_the_cluster_does_not_take_begins_no_boost(settings: Dict[str, Any], words: str) -> None:
    mgr = boosted(recovering(500_000))
    before = mgr.table()
    for ask in (mgr.modes.boosts.foretell, mgr.modes.boosts.begin):
        with pytest.raises(InputError) as refused:
            ask("recovery", keep="client.p95_ms<=10 s", offer=offered(mgr, settings))
        assert words in str(refused.value)
    assert (mgr.phase, mgr.trail(), mgr.table()) == (OFF, [], before)


def test_an_offer_that_misses_what_is_to_be_kept_now_gives_way_to_what_is_known() -> None:
    mgr = boosted(recovering(500_000))
    text = offered(mgr, {"osd_max_scrubs": 7}, p95_ms=60_000.0)
    document = mgr.modes.boosts.foretell("recovery", keep="client.p95_ms<=10 s", offer=text)
    assert (document["basis"], PROFILE in document["settings"]) == ("known", True)
    assert "what the twin offers is not taken: it would miss client.p95_ms <= 10000 ms" in document["grounds"]
