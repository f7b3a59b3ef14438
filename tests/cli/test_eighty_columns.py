"""Tables fit 80 columns, and lose nothing by it."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from datetime import timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Dict, Iterator, List, Tuple

import pytest
from rich.console import Console, Group, RenderableType

import ceph_tuner_cli
from ceph_tuner.core.book.page import Page
from ceph_tuner.core.changes.forecast_pairs import ForecastPair
from ceph_tuner.core.changes.journal import Entry
from ceph_tuner.core.changes.plan import Step
from ceph_tuner.core.goals.front import Front
from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.slo import Slo, parse_slo
from ceph_tuner.core.knobs.catalogue import MCLOCK_NINE
from ceph_tuner.core.knobs.cost import Hardware
from ceph_tuner.core.knobs.releases import RELEASES, TENTACLE
from ceph_tuner.core.measure.forecast_record import ForecastInterval, ForecastRecord
from ceph_tuner.core.measure.sample import Measure
from ceph_tuner.core.profiles.in_force import InForce
from ceph_tuner.core.profiles.profile import Profile
from ceph_tuner.fleet.books import Taken
from ceph_tuner.fleet.boosts import MemberBoost
from ceph_tuner.fleet.changes import NewestChange
from ceph_tuner.fleet.difference import Difference
from ceph_tuner.fleet.member_answers import MemberAnswer
from ceph_tuner.fleet.status import Standing, Status
from ceph_tuner.recommend import IN_FORCE, Prediction
from ceph_tuner.recommend.knob_worth import KnobWorth
from ceph_tuner.recommend.paired_effect import PairedEffect
from ceph_tuner.recommend.queue_stretch import AT, COUNTED, MeasuredTrial, Stretch
from ceph_tuner.recommend.queue_trial import QueueTrial
from ceph_tuner.recommend.queues import QueueOrder
from ceph_tuner.scrub_plan import HOURS, MEASURED, RateRange
from ceph_tuner_cli import (
    explain_page,
    fleet,
    fleet_book,
    fleet_boost,
    fleet_foresight,
    fleet_history,
    fleet_profiles,
    fleet_recommend_page,
    fleet_rollout,
    history,
    lab,
    lab_load_run,
    lock,
    mgr,
    moves_page,
    queues_page,
    recommend_page,
    recommend_rebuild,
    render,
    scrub_page,
    slo,
    slo_week,
    tune_page,
    twin_fit,
    twin_predict,
    twin_validate,
)
from ceph_tuner_cli.apply import forecast_table
from ceph_tuner_cli.cluster_option import step_table
from ceph_tuner_cli.front_page import front_table
from ceph_tuner_cli.knob_worth_page import knob_worths
from running_program import Run

ROOT = Path(__file__).resolve().parent.parent.parent
TRACES = sorted(str(path) for path in (ROOT / "tests/data/dmclock").glob("*.gz"))
HOST = "storage-node-with-a-name-of-40-characters"
CLUSTER = "a-cluster-of-the-second-site-in-the-north"
COMMANDS: List[Tuple[str, ...]] = [
    ("knobs",),
    *(("profile", "ls", "--release", name) for name in RELEASES),
    ("profile", "ls"),
    ("profile", "show", "tentacle/balanced"),
    ("profile", "show", "tuned/lab-recovery"),
    ("profile", "diff", "reef/high_client_ops", "tentacle/high_recovery_ops"),
    ("example",),
    ("slo", "metrics"),
    ("slo", "check", *(str(path) for path in sorted((ROOT / "examples").glob("slo-*.yaml")))),
    ("slo", "week", str(ROOT / "examples" / "slo-calendar.yaml"), "--begin", "2027-12-20", "--days", "14"),
    ("lab", "load", "ls"),
    ("twin", "replay", *TRACES[:2]),
]


def rows_of(text: str) -> List[str]:
    """Without commands that are to be copied, and without paths."""
    return [line for line in text.splitlines() if not line.startswith(("ceph config set", "/"))]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_what_needs_no_cluster_fits_and_keeps_every_word(
    words: Tuple[str, ...], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = {}
    for width in (80, 400):
        monkeypatch.setattr(render.console, "_width", width)
        code, shown[width], err = run(*words)
        assert code == 0, err
    assert max(map(len, rows_of(shown[80]))) <= 80
    assert set(shown[400].split()) <= set(shown[80].split())
    assert set(VALUE.findall(shown[400])) <= set(VALUE.findall(shown[80]))
    assert "…" not in shown[80]


@pytest.mark.parametrize("release", RELEASES)
def test_knobs_of_a_release_leave_out_the_range_alone_and_say_so(
    release: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render.console, "_width", 80)
    _, out, _ = run("knobs", "--release", release)
    assert max(map(len, out.splitlines())) <= 80
    assert "on a wider terminal also: range" in out


VALUE = re.compile(r"\d[\d.,]* (?:[kMG]?i?B(?:/s)?|IOPS|ms|s|min|h|d)\b|[<>]= \d\S*")


def at(width: int, page: RenderableType) -> str:
    console = Console(width=width, highlight=False)
    with console.capture() as captured:
        console.print(page)
    return captured.get()


def drawn(page: RenderableType) -> str:
    """At 80 columns; no word and no value of what a wide terminal shows is missing or broken."""
    narrow, wide = at(80, page), at(1000, page)
    assert max(map(len, narrow.splitlines())) <= 80
    assert set(wide.split()) <= set(narrow.split())
    assert set(VALUE.findall(wide)) <= set(VALUE.findall(narrow))
    assert "\ufffd" not in narrow
    assert "…" not in narrow
    return narrow


def test_steps_of_a_host_with_a_long_name() -> None:
    name = "osd_mclock_scheduler_background_best_effort_res"
    text = drawn(step_table([Step(f"osd/host:{HOST}", name, None, "0.123456"), Step("osd.1234", name, "0.1", None)]))
    assert HOST in text
    assert "osd.1234" in text


def entry(**changed: Any) -> Entry:
    steps = (Step(f"osd/host:{HOST}", "osd_max_scrubs", None, "1"),)
    who, where = f"ceph-tuner apply by root on {HOST}", f"osd/host:{HOST}"
    made = Entry(1234, "applied", 1.7e9, 1.7e9, who, "fewer scrubs", "tentacle", where, steps, ())
    return replace(made, **changed)


def test_a_history_of_long_names_and_reasons() -> None:
    noted = entry(number=1235, note="not applied: osd.1234 shows osd_max_scrubs = 3, expected 1, 30 s after it was set")
    text = drawn(history._table([entry(), noted]))
    assert "1235" in text


def test_a_fleet_with_long_names() -> None:
    member: Any = SimpleNamespace(name=CLUSTER)
    change = NewestChange(1234, 1.7e9, "applied", "osd", "root", "why", False)
    profile = "balanced 2, custom 1, high_recovery_ops 4"
    standing = Standing(4321, 4320, None, ("a",) * 123, change, warnings=(), notes=())
    found = Status(
        **vars(standing),
        release="tentacle",
        version="20.2.4",
        versions=("20.2.4", "18.2.7"),
        profile=profile,
        profile_certain=False,
        capacities_wrong=1234,
        capacity=(),
    )
    answers = [MemberAnswer(member, found), MemberAnswer(SimpleNamespace(name="b"), None, f"no {HOST}", "failed")]  # type: ignore[arg-type]
    text = drawn(fleet._table(answers))
    assert CLUSTER in text
    assert "4320/4321" in text


def test_labs_and_their_loads() -> None:
    options = {
        "groups": "3xnvme,3xhdd",
        "storage": "ram",
        "iops": 1234567,
        "bandwidth": 1 << 40,
        "device_size": 1 << 40,
        "shards": 0,
        "osds": 6,
        "drives": {},
    }
    found = {"name": CLUSTER, "release": "tentacle", "phase": "running", "health": "HEALTH_WARN", "options": options}
    assert CLUSTER in drawn(lab._many([found, {**found, "name": "b"}]))
    daemons = [{"name": f"osd.{osd}", "pid": 1234567, "device": "/dev/loop123"} for osd in range(3)]
    drawn(lab._one({**found, "directory": f"/var/lib/{CLUSTER}", "daemons": daemons}))
    measured = {"mean": 123456.7, "deviation": 1234.5}
    metrics = {"client.write_bytes_s": measured, "recovery.objects_left": measured}
    window = {"metrics": metrics, "remarks": ["recovery ran out of work after 12 s of 30 s " * 3]}
    assert "recovery.objects_left" in drawn(lab_load_run._table([window] * 9))


def test_what_the_plugin_says_of_itself() -> None:
    path = f"/usr/share/ceph/mgr/{HOST}"
    drawn(mgr._table({"path": path, "build": "0.1.0-12345678", "running": None, "modules": [HOST, "dashboard"] * 4}))


SLO = parse_slo(
    {
        "objectives": [
            {"objective": "client.write_p99_ms <= 0.95 * baseline", "hard": False},
            "recovery.finish_s <= 12 h",
            "client.bytes_s >= 1234.5 MB/s",
        ]
    }
)
SEEN = {"client.write_p99_ms": 1234.5, "recovery.finish_s": 123456.0, "client.bytes_s": 1.2345e9}
SEEN.update({"client.p95_ms": 1234.5, "client.iops": 123456.0})
LESS = {metric: 0.9 * value for metric, value in SEEN.items()}
NINE = dict.fromkeys(MCLOCK_NINE, 0.123456)
NOW = InForce(Profile.make("in-force", TENTACLE, TENTACLE.profiles["balanced"]), (), "", Hardware(935.0, 6.3e7, 1), 3)


def prediction(label: str, **settings: Any) -> Prediction:
    return Prediction(label, settings, (SEEN, LESS))


SHORT = parse_slo({"objectives": ["client.p95_ms <= 1200 ms", "client.iops >= 0.9 * baseline"]})


def recommended(*labels: str, winner: str, slo: Slo = SLO) -> Any:
    """In force first."""
    of_label = {label: prediction(label, **NINE) for label in (*labels, winner)}
    return SimpleNamespace(
        before=of_label[labels[0]],
        built_in=[of_label[label] for label in labels if label != IN_FORCE],
        closest=of_label[winner],
        winner=of_label[winner],
        choice=SimpleNamespace(better=True),
        judge=Judge(slo, SEEN),
        question=SimpleNamespace(slo=slo, model=SimpleNamespace(release=TENTACLE), before={}, profile_in_force=None),
    )


def boosted() -> List[Any]:
    document = {
        "phase": "starting", "request": {"kind": "recovery"}, "left": 123456789.0, "finish": {"expected": 2e9},
        "ends_at": 2e9,
    }  # fmt: skip
    name = SimpleNamespace(name=CLUSTER)
    return [MemberAnswer(name, MemberBoost(document)), MemberAnswer(name, None, "", "interrupted")]  # type: ignore[arg-type]


def books_shown() -> List[Any]:
    switching = {"on": True, "phase": "holding", "page": 123}
    regimes = [{"scope": "", "regime": "busy+recovering+backfilling+scrub-late"}]
    document = {"switching": switching, "regimes": regimes, "pages": []}
    return [MemberAnswer(SimpleNamespace(name=CLUSTER), document)]  # type: ignore[arg-type]


def pages_offered() -> List[Any]:
    page = Page(1, "busy+recovering+backfilling+scrub-late", {"osd_max_scrubs": 1}, "validated", "trial", 1.0)
    return [MemberAnswer(SimpleNamespace(name=CLUSTER), Taken((page, page), ("no",), (3,)))]  # type: ignore[arg-type]


def week_predicted() -> Dict[str, Any]:
    objective = {"objective": "client.write_p99_ms <= 1234.5 ms", "seen": 1234.5, "met": False}
    searched = {"in_force": [objective] * 2, "verdicts": [objective] * 2, "better": True}
    idle = {"in_force": [], "verdicts": [], "better": False, "reason": "clients do nothing"}
    predicted = {"base": searched, "nights-and-weekends-of-the-year": searched, "holidays-of-the-whole-year": idle}
    return {"cluster": CLUSTER, "predicted": predicted}


def week_by_hour() -> Dict[str, Any]:
    verdict = {"objective": "client.write_p99_ms <= 1234.5 ms", "seen": 1234.5, "met": False, "margin": -0.1}
    verdicts = {"in_force": [verdict], "recommended": [verdict]}
    hour = {"hour": 23, "policy": "nights-and-weekends-of-the-year", "client_iops": 12345.0, "verdicts": verdicts}
    idle = {**hour, "client_iops": 0.00123, "verdicts": {}, "reason": "clients do nothing"}
    missed = {"start": 1767225600.0, "policy": "nights-and-weekends-of-the-year", "objectives": [verdict] * 2}
    return {"zone": "UTC", "hours": [{**hour, "reason": None}, idle], "past": {"windows": 168, "missed": [missed]}}


def foreseen() -> Any:
    before, after = Judge(SLO, SEEN).verdicts(SEEN), Judge(SLO, SEEN).verdicts(LESS)
    return SimpleNamespace(
        name=CLUSTER, verdicts=list(zip(before, after)), before=prediction("balanced"), after=prediction("custom")
    )


def advised() -> Any:
    metric = {"mean": 1234.5, "interval": [1200.0, 1300.0], "met": False}
    objective = {"objective": "client.write_p99_ms <= 0.95 * baseline", "in_force": metric, "recommended": metric}
    return SimpleNamespace(name=CLUSTER, settings="high_recovery_ops", objectives=[objective] * 2, problem="")


def tuned() -> Any:
    choice = SimpleNamespace(
        in_force=SimpleNamespace(means=SEEN), verdicts=Judge(SLO, SEEN).verdicts(LESS), better=True, bounds=SEEN
    )
    best = SimpleNamespace(label="high_recovery_ops", means=LESS)
    check = SimpleNamespace(failed=None, means=LESS)
    return SimpleNamespace(
        slo=SLO,
        judge=Judge(SLO, SEEN),
        choice=choice,
        best_built_in=best,
        check=check,
        moves={**NINE, "osd_max_scrubs": 10},
    )


def past() -> Any:
    class Course(SimpleNamespace):
        def quantile(self, _: float) -> float:
            return 1.2e9

        def busiest_hour(self) -> float:
            return 1.7e9

    courses = {
        metric: Course(metric=metric, values=[1.0, 1.23456e9], gaps=0.123)
        for metric in ("client.write_bytes_s", "snaptrim.objects_s")
    }
    member: Any = SimpleNamespace(name=CLUSTER)
    return MemberAnswer(member, SimpleNamespace(courses=courses))  # type: ignore[arg-type]


def account(name: str) -> Any:
    held = "the strict queue: reservations of the other classes take 60% of the OSD"
    return SimpleNamespace(
        name=name, reserved=0.6, limit=0.9, needed=1.234, owed=0.55, got=0.5, held_by=held, starved=False
    )


def importance(metric: str) -> Any:
    knobs = ("osd_mclock_scheduler_background_best_effort_lim", "osd_pg_max_concurrent_snap_trims")
    return SimpleNamespace(
        metric=metric, deviation=0.4, influences=[SimpleNamespace(name=name, total=0.45) for name in knobs]
    )


PROGRESS = SimpleNamespace(number=12, mean=-0.123, low=-1.234, high=0.456, feasible=0.95, best=None, old=True)
FORECAST = SimpleNamespace(metric="recovery.bytes_s", value=1.23456e9, low=1.1e9, high=1.3e9, guessed=True)
EFFECT = SimpleNamespace(metric="client.write_bytes_s", before=1.2345e9, after=1.3345e9, ratio=(1.08, 0.95, 1.2))
FITTED = SimpleNamespace(
    name="flash, random writes of 4 KiB", value=12345.6, unit="IOPS", described=10000.0, interval=(11000.0, 13000.0),
    verdict="more than is described, by far more than chance",
)  # fmt: skip
LEFT = SimpleNamespace(
    windows=123, median_error=0.123, chi_square=4.0, deviation=0.2, worst_error=0.5,
    worst="high_recovery_ops, client-recovery",
)  # fmt: skip
FIT: Any = SimpleNamespace(
    parameters=[FITTED], discrepancy=SimpleNamespace(metrics={"client.write_p99_ms": LEFT, "recovery.bytes_s": LEFT})
)
CLAIM = {"state": "not renewed", "who": f"ceph-tuner tune by root on {HOST}", "host": HOST, "since": 1.7e9}
DIFFERENCE = Difference(MCLOCK_NINE[-1], (("0.123456", (CLUSTER, "b", "c")), ("0.9", (f"{CLUSTER}-2",))))
FIVE = (IN_FORCE, "balanced", "high_client_ops", "high_recovery_ops")


def validated() -> Any:
    figure = SimpleNamespace(table="reef, 3 OSDs on NVMe", case="high_recovery_ops", metric="recovery", value=12345.6)
    ordering = SimpleNamespace(table="reef", metric="client.p95_ms", falling=("high_client_ops", "wpq"))
    found = SimpleNamespace(figure=figure, predicted=12000.0, deviation=345.6, error=-0.028)
    check = SimpleNamespace(ordering=ordering, predicted=(12345.6, 1.5), holds=False, contradicted=False)
    return SimpleNamespace(comparisons=[found] * 2, checks=[check])


def without_verdict(monkeypatch: pytest.MonkeyPatch) -> RenderableType:
    monkeypatch.setattr(twin_validate, "_verdict", lambda _: "")
    return twin_validate._page(validated())


SAID = ForecastRecord(1.7e9, f"twin of {CLUSTER}", 0.9, {name: ForecastInterval(1234.5, 1.1e3, 1.3e3) for name in SEEN})


def worths() -> List[KnobWorth]:
    ratios = ((44.61, 42.84, 44.39), (0.5, 0.49, 0.51), (1.0, 0.999, 1.001))
    names = ("client.write_p99_ms", "recovery.finish_s", "snaptrim.drain_s")
    without = tuple(PairedEffect(name, 1234.5, 1111.0, ratio) for name, ratio in zip(names, ratios))
    weight = "osd_mclock_scheduler_background_best_effort_wgt"
    kept = [
        KnobWorth(name, 0.05, 0.0, without, (weight,)) for name in (MCLOCK_NINE[6], "osd_pg_max_concurrent_snap_trims")
    ]
    return [*kept, KnobWorth(weight, 2, 64, without, put_back=True)]


def pair(metric: str) -> ForecastPair:
    return ForecastPair(1.7e9, "change 1234", metric, 0.9, ForecastInterval(1234.5, 1.1e3, 1.3e3), 1234.5)


def queues() -> Any:
    orders = [
        QueueOrder(metric, 1234.5, 1111.0, ratio, {"recovery": "osd_recovery_sleep_degraded_hybrid 0.025 s"})
        for metric, ratio in (("client.write_p99_ms", (0.9, 0.7, 1.1)), ("recovery.finish_s", None))
    ]
    entries = [
        SimpleNamespace(mclock=prediction(label, **NINE), wpq=prediction(f"wpq, {label}'s knobs"), orders=orders)
        for label in FIVE[1:]
    ]
    return SimpleNamespace(
        searched=recommended(*FIVE[1:], winner="high_client_ops"),
        wpq=prediction("wpq"),
        against=entries,
        best=entries[0],
    )


def trial_on_a_host() -> QueueTrial:
    hosts = {f"{HOST}-{number}": tuple(range(8)) for number in range(3)}
    return QueueTrial(HOST, tuple(range(8)), "mclock_scheduler", "wpq", hosts, (), (), 12, 0.1, True, ())


def measured_on_a_host() -> MeasuredTrial:
    hosts = {f"{HOST}-{number}": tuple(range(8 * number, 8 * number + 8)) for number in (1, 2)}

    def look(minute: int) -> Dict[int, Dict[str, float]]:
        return {
            osd: {AT: 60.0 * minute, **dict.fromkeys(COUNTED, 1000000.0 * minute * (osd + 1 + minute % 2))}
            for osd in range(24)
        }

    looks = tuple(look(minute) for minute in range(5))
    stretches = tuple(Stretch(queue, looks) for queue in ("mclock_scheduler", "wpq"))
    return MeasuredTrial(HOST, tuple(range(8)), hosts, stretches)


def scrubs() -> Any:
    rate = RateRange(1.23456e9, 1.1e9, 1.3e9, MEASURED, 123)
    scrub = SimpleNamespace(pgid="1234.fff", pool=CLUSTER, due_at=1.7e9, start=1.7e9, late_s=123456.0)
    obstacle = SimpleNamespace(words="nodeep-scrub is set for the pool", until=1.7e9, pgs=["1234.fff"] * 9)
    hour = SimpleNamespace(start=1.7e9, seconds=3600.0, share_bytes=1e12, planned_bytes=9e11, source=rate.source)
    schedule = SimpleNamespace(scrubs=[scrub] * 40, hours=[hour] * 3)
    policies = {"clients-first": tuple(range(8, 20)), "no-bound-for-clients-at-night-32c": (20, 21, 22)}
    rates = SimpleNamespace(by_policy={policy: [rate] * HOURS for policy in policies})
    return SimpleNamespace(rates=rates, hours_by_policy=policies, schedule=schedule, obstacles=[obstacle])


MOVE = {
    "name": f"drain {HOST}", "state": "under way", "began": 1.7e9, "balancer": True, "autoscale": ["rbd", "volumes"],
    "undo": ["ceph osd rm-pg-upmap-items 1.0"] * 1200,
}  # fmt: skip

TABLES: Dict[str, Callable[[], RenderableType]] = {
    "apply.forecast_table": lambda: forecast_table(SAID, {"client.bytes_s": Measure(1.2e9, 1.0, 3)}),
    "history._forecasts": lambda: history._forecasts([pair(name) for name in SEEN])[0],
    "queues_page._both": lambda: queues_page._both(queues()),
    "queues_page._orders": lambda: queues_page._orders(queues()),
    "queues_page.measured_page": lambda: Group(*queues_page.measured_page(measured_on_a_host())),
    "queues_page.trial_page": lambda: Group(*queues_page.trial_page(trial_on_a_host())),
    "scrub_page._hours": lambda: scrub_page._hours(scrubs()),
    "scrub_page._obstacles": lambda: scrub_page._obstacles(scrubs()),
    "scrub_page._rates": lambda: scrub_page._rates(scrubs(), timezone.utc),
    "scrub_page._scrubs": lambda: scrub_page._scrubs(scrubs(), False),
    "moves_page.records_page": lambda: moves_page.records_page([MOVE]),
    "cluster_option.step_table": lambda: step_table([Step(f"osd/host:{HOST}", MCLOCK_NINE[-1], None, "0.123456")]),
    "explain_page._matters": lambda: explain_page._matters([importance("client.write_p99_ms")], "over the space"),
    "explain_page._progress": lambda: explain_page._progress(SimpleNamespace(progress=[PROGRESS] * 3))[1],  # type: ignore[arg-type]
    "explain_page.capacity": lambda: explain_page.capacity([account("background_best_effort"), account("client")])[1],
    "fleet_foresight._table": lambda: fleet_foresight._table([foreseen()]),
    "fleet_history._table": lambda: fleet_history._table([past()]),
    "fleet_profiles._table": lambda: fleet_profiles._table([DIFFERENCE]),
    "fleet_recommend_page.page": lambda: fleet_recommend_page.page([advised()]),
    "fleet_rollout._result": lambda: fleet_rollout._result(
        SimpleNamespace(kept=[CLUSTER] * 3, before=["b"], taken_back=(), stuck=[CLUSTER], left=())  # type: ignore[arg-type]
    ),
    "fleet_rollout._waves": lambda: fleet_rollout._waves([[CLUSTER], [f"{CLUSTER}-{number}" for number in range(9)]]),
    "history._table": lambda: history._table([entry(), entry(number=1235)]),
    "knob_worth_page.knob_worths": lambda: Group(*knob_worths(worths())),
    "lock._table": lambda: lock._table([{**CLAIM, "renewed_until": 1.8e9}]),
    "front_page.front_table": lambda: Group(
        *front_table(
            Front("client.write_p99_ms", "recovery.finish_s", tuple(prediction(f"trial {at}") for at in range(12))),
            lambda entry, metric: entry.interval(metric) or (),
            "3 seeds each",
        )
    ),
    "recommend_page._objectives": lambda: recommend_page._objectives(recommended(*FIVE, winner="trial 123")),
    "recommend_page._settings": lambda: recommend_page._settings(recommended(IN_FORCE, winner="trial 123")),
    "recommend_rebuild._effects": lambda: recommend_rebuild._effects(SimpleNamespace(effects=[EFFECT])),  # type: ignore[arg-type]
    "slo._table": lambda: slo._table(SLO, Judge(SLO, SEEN).verdicts_at_work(SEEN)),
    "slo_week._predictions": lambda: Group(*slo_week._predictions(week_predicted())),
    "fleet_book._books": lambda: fleet_book._books(books_shown()),
    "fleet_book._offered": lambda: fleet_book._offered(pages_offered(), False),
    "fleet_boost._table": lambda: fleet_boost._table(boosted()),
    "slo_week._by_hour": lambda: Group(*slo_week._by_hour(week_by_hour())),
    "slo_week._missed": lambda: Group(*slo_week._missed(week_by_hour()["past"], timezone.utc)),
    "tune_page._accounting": lambda: tune_page._accounting(tuned(), TENTACLE, NOW)[1],
    "tune_page._objectives": lambda: tune_page._objectives(tuned()),
    "tune_page._settings": lambda: tune_page._settings(tuned(), TENTACLE, NOW),
    "twin_fit.page": lambda: twin_fit.page(FIT),
    "twin_predict._table": lambda: twin_predict._table([FORECAST, FORECAST]),  # type: ignore[list-item]
}
IN_OTHER_TESTS = {
    "fleet._table", "lab._many", "lab._one", "lab_load_run._table", "mgr._table", "twin_validate._page",
}  # fmt: skip
BY_COMMANDS = {
    "example._table", "gather._table", "knobs._table", "lab_load.table", "profile.table", "profile_page.page",
    "slo.table", "slo_week._pages", "twin._table",
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_a_table_keeps_its_words_and_its_values_whole(name: str) -> None:
    drawn(TABLES[name]())


def test_what_was_published_beside_what_is_predicted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "high_recovery_ops" in drawn(without_verdict(monkeypatch))


def functions_that_begin_a_table(tree: ast.AST, function: str = "") -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "columns":
            yield function
        yield from functions_that_begin_a_table(node, node.name if isinstance(node, ast.FunctionDef) else function)


def test_every_table_of_the_program_is_rendered_here() -> None:
    modules = {
        path.stem: ast.parse(path.read_text("utf-8")) for path in Path(ceph_tuner_cli.__file__).parent.glob("*.py")
    }
    begun = {f"{stem}.{name}" for stem, tree in modules.items() for name in functions_that_begin_a_table(tree)}
    assert begun == {*TABLES, *IN_OTHER_TESTS, *BY_COMMANDS}


def test_four_profiles_stand_side_by_side_under_their_names() -> None:
    text = drawn(recommend_page._objectives(recommended(*FIVE[1:], winner="trial 123", slo=SHORT)))
    heading = text.splitlines()[:2]
    assert [" ".join(line.split()) for line in heading] == [
        "balanced recommended",
        "objective (in force) high_client_ops high_recovery_ops (trial 123)",
    ]


def test_five_settings_stand_side_by_side_under_letters() -> None:
    text = drawn(recommend_page._objectives(recommended(*FIVE, winner="trial 123", slo=SHORT)))
    assert text.splitlines()[:5] == [
        "a: in force", "b: balanced", "c: high_client_ops", "d: high_recovery_ops", "e: recommended (trial 123)",
    ]  # fmt: skip
    assert text.splitlines()[5].split() == ["objective", "a", "b", "c", "d", "e"]


def test_two_profiles_with_long_names_stand_side_by_side(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render.console, "_width", 80)
    _, out, _ = run("profile", "diff", "reef/high_client_ops", "tentacle/high_recovery_ops")
    assert out.splitlines()[2].split() == ["knob", "a", "b"]
    assert out.splitlines()[3].split() == ["osd_mclock_scheduler_client_res", "0.6", "0.3"]
