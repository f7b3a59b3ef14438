"""Where hostile input comes in: each surface makes inputs of its own, hands them over and looks at what comes of it.

A surface is called with a random generator and gives how many inputs it made. Errors of the tree are what is expected;
whatever else is raised is a finding.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import random
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

from campaign import UNASKED
from loaded_module import KEYS, READ, SLO, Loaded
from mutation import Mutation
from ruamel.yaml import YAML

from ceph_lab import drive_file, pools_file, windows_file
from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.cluster.dashboard import Dashboard
from ceph_tuner.cluster.dashboard_api import DashboardApi
from ceph_tuner.cluster.prometheus import Prometheus, Span
from ceph_tuner.cluster.transport import Response
from ceph_tuner.core import why
from ceph_tuner.core.autopilot.audit_log import AuditRecord
from ceph_tuner.core.autopilot.policy import Policy
from ceph_tuner.core.autopilot.state import AutopilotState
from ceph_tuner.core.boost.offer import TwinOffer, parse_offer
from ceph_tuner.core.bounded import read_json
from ceph_tuner.core.ceph.commands import osd_versions
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.ceph.target import Target
from ceph_tuner.core.changes.journal import UNDONE, Entry, Journal
from ceph_tuner.core.changes.lock import Claim, Generation
from ceph_tuner.core.errors import TunerError
from ceph_tuner.core.goals.slo import parse_objective
from ceph_tuner.core.knobs.releases import REEF, TENTACLE, parse_version, release_of
from ceph_tuner.core.measure.forecast_record import ForecastInterval, ForecastRecord
from ceph_tuner.core.printable import printable
from ceph_tuner.core.profiles.profile import Profile
from ceph_tuner.files import cluster_file, fit_file, profile_file, slo_file
from ceph_tuner.fleet import fleet_file, portable_file, status
from ceph_tuner.fleet.portable import sealed
from ceph_tuner.report import answer_file, answers
from ceph_tuner.report.page import page
from ceph_tuner.workers import plain
from ceph_tuner_cli import main as program
from fake_dashboard import PAGES
from monitors import ManualClock
from tuner import changes, health, service, worker
from tuner.inbox import Inbox
from tuner.proposer import Proposer

Surface = Callable[[random.Random], int]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FLEET = """\
schema: 1
clusters:
  paris:
    ceph: {conf: /etc/ceph/paris.conf, keyring: /etc/ceph/paris.keyring, name: client.tuner}
    labels: {site: eu}
    slo: paris-slo.yaml
  berlin:
    dashboard: {url: "https://berlin:8443", username: tuner, password: {env: BERLIN_PASSWORD}}
    prometheus: {url: "https://metrics:9090", selector: {cluster: berlin}, token: {file: /etc/tuner/token}}
"""


TRUSTED = {"exported": "2026-11-21T19:00:00Z", "digest": "0" * 64}


DRIVE = """\
schema: 1
name: mine
data: {kind: flash, read_iops: 500000, write_iops: 80000, read_bandwidth: 3 GB/s, write_bandwidth: 2 GB/s,
  read_latency_us: 90, write_latency_us: 25, slow_motion: 40}
database: {kind: disk, rpm: 7200, average_seek_ms: 8, track_seek_ms: 1, bandwidth: 200 MB/s}
bench_iops: {tentacle: 1000}
"""
POOLS = """\
schema: 1
pools:
- {name: volumes, layout: "replicated:3", device_class: ssd, pgs: 64}
- {name: archive, layout: "ec:4+2"}
"""


class _Patient(ManualClock):
    """A claim that seems to be out of date is watched for a lease: nobody waits for it here."""

    def __init__(self) -> None:
        super().__init__(time.time())


class _Errors(logging.Handler):
    """What is logged as an error has a traceback behind it."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: List[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


ERRORS = _Errors()


def _module() -> Loaded:
    from automatic_on_twin import OnTwin

    changes.SystemClock = _Patient  # type: ignore[misc]
    aboard = OnTwin()
    aboard.service.slos.replace(SLO)
    aboard.sample(2)
    module = Loaded(aboard)
    if ERRORS not in module.log.handlers:
        module.log.addHandler(ERRORS)
    return module


def _of_a_trial() -> Dict[str, str]:
    """What the automatic mode stores during a trial, for the whole cluster and as a device class's mode does."""
    from automatic_on_twin import OnTwin

    stored = OnTwin().on_trial().service.store.items("")
    own = {key: text for key, text in stored.items() if key.startswith(("auto/", "audit/", "history/", "slo"))}
    record = next(text for key, text in own.items() if key.startswith("audit/"))
    return {**own, "auto/state/ssd": own["auto/state"], "audit/ssd/000000": record, "trust/0": json.dumps(TRUSTED)}


def _check_shown(text: str) -> None:
    assert all(one.isprintable() or one in "\n\u00a0\u2003\u3000" for one in text), repr(text)[:300]
    text.encode()


def _check_command(module: Loaded, command: str, **arguments: Any) -> int:
    code, out, words = module.run(command, **arguments)
    assert "internal error" not in words, "\n".join([command, str(arguments), words, *ERRORS.lines[-1:]])
    _check_shown(out + words)
    return int(code)


class Store:
    """The plugin while it runs on a twin, with anything in its store."""

    EACH = 8
    """Keys that are others in one turn."""

    def __init__(self) -> None:
        self.module = _module()
        code, _, words = self.module.run("profile_apply", name="high_client_ops", yes=True)
        assert code == 0, words
        self.store, self.config = self.module.aboard.service.store, self.module.aboard.service.config
        self.kept = self.store.items("")
        self.sound = {**KEYS, **_of_a_trial(), **self.kept}

    def __call__(self, randomness: random.Random) -> int:
        """Some keys, samples, commands, and what was applied is taken back."""
        change = Mutation(randomness)
        names = randomness.sample(sorted(self.sound), min(self.EACH, len(self.sound)))
        try:
            for name in names:
                # what no monitor stores is none
                value = change.text(self.sound[name]).encode(errors="replace").decode()
                self.store.set(self._name(name, randomness), value)
            before = self.config.dump()
            # what says that it is a trial without an owner, or half done, is taken back as such
            asks = any(entry.trial or entry.unfinished for entry in Journal(self.store).entries())
            ERRORS.lines.clear()
            self.module.aboard.sample(1)
            for switching in (self.module.aboard.modes.boosts, *self.module.aboard.modes.books.all):
                switching.driver.attempt()
            if randomness.random() < 0.1:
                from automatic_on_twin import OnTwin

                # one that becomes the active mgr now
                fresh = Loaded(OnTwin(self.module.aboard.twin))
                fresh.aboard.sample(1)
                for switching in (fresh.aboard.modes.boosts, *fresh.aboard.modes.books.all):
                    switching.driver.attempt()
                _check_command(fresh, "status")
            for command in randomness.sample(sorted(READ), 3):
                _check_command(self.module, command)
            assert asks or self.config.dump() == before, UNASKED
            if randomness.random() < 0.3:
                code = _check_command(self.module, "rollback", yes=True)
                # whoever writes a lock that stands, or destroys the record itself, may stop it
                if not any(name.startswith(("lock", "journal/00000001")) for name in names):
                    left = [entry.number for entry in Journal(self.store).entries() if entry.state != UNDONE]
                    assert (code, left) == (0, []), (code, left)
            assert not ERRORS.lines, ERRORS.lines[0]
            assert health.UNKNOWN not in self.module.health_checks
        finally:
            for name in self.store.keys(""):
                self.store.remove(name)
            for name, text in self.kept.items():
                self.store.set(name, text)
            self.config.set("osd", "osd_mclock_profile", "high_client_ops")
        return len(names)

    @staticmethod
    def _name(name: str, randomness: random.Random) -> str:
        folder, slash, _ = name.rpartition("/")
        other = randomness.choice(["README", "-1", "00000000", "99999999", "0" * 40, "\x1b[2J", "x y", "é", "a" * 200])
        return f"{folder}/{other}" if slash and randomness.random() < 0.1 else name


class Plugin:
    """The plugin's commands with arguments and files of anybody."""

    def __init__(self) -> None:
        self.module = _module()
        self.store, self.config = self.module.aboard.service.store, self.module.aboard.service.config
        self.kept = self.store.items("")
        self.profile = json.dumps(Profile("x", TENTACLE, {"osd_max_scrubs": 2}).to_dict())

    def __call__(self, randomness: random.Random) -> int:
        """One command; none of them says --yes."""
        change = Mutation(randomness)
        objective = change.text("client.p95_ms <= 80 ms")
        name = change.text("high_client_ops")
        commands: Sequence[Any] = (
            ("slo_set", {"objective": objective, "priority": randomness.choice([1.0, float("nan"), -1.0, 1e300])}),
            ("slo_set", {"inbuf": change.text(json.dumps(SLO))}),
            ("slo_rm", {"metric": change.text("client.p95_ms")}),
            ("profile_show", {"name": name}),
            ("profile_export", {"name": name}),
            ("profile_apply", {"name": name}),
            ("profile_import", {"name": randomness.choice(["", name]), "inbuf": change.text(self.profile)}),
            ("history", {"limit": randomness.choice([0, -1, 1, 2**63, -(2**63)]), "hours": True}),
            ("capacity_measure", {"osd": randomness.choice([-1, 99, 2**40])}),
            ("auto_on", {"mode": change.text("dry-run") + "x"}),
            (randomness.choice(sorted(READ)), {"format": change.text("json")}),
        )
        command, arguments = randomness.choice(commands)
        before = self.config.dump()
        try:
            assert _check_command(self.module, command, **arguments) <= 0
            assert self.config.dump() == before, UNASKED
        finally:
            for key in self.store.keys(""):
                if self.kept.get(key) != self.store.get(key):
                    self.store.remove(key)
            for key, text in self.kept.items():
                self.store.set(key, text)
        return 1


class Texts:
    """Short texts that are parsed in the mgr: objectives, targets, records, JSON of any kind."""

    EACH = 100

    def __init__(self) -> None:
        entry = Entry(7, "applied", 1.0, 2.0, "x", "y", "tentacle", "osd", (), ())
        record = AuditRecord(1, 1.0, "x", "taken-back", "harm", {"rule": "slo"})
        forecast = ForecastRecord(1.0, "x", 0.9, {"recovery.copies_s": ForecastInterval(9.0, 8.0, 10.0)})
        offer = TwinOffer("recovery", "osd", {"osd_max_scrubs": 2}, {"recovery.copies_s": 5.0}, forecast)
        self.readers: Sequence[Any] = (
            ("client.p95_ms <= 1.2 * baseline", parse_objective),
            ("recovery.bytes_s >= 10 MB/s", parse_objective),
            ("osd/class:ssd/host:h0", Target.parse),
            ("18.2.7", lambda text: parse_version(text, "x")),
            (entry.to_text(), lambda text: Entry.from_text("journal/00000007", text)),
            (KEYS["lock/0000000000000000"], lambda text: Claim.from_text("lock/0", text)),
            (KEYS["lock-generation"], Generation.from_text),
            (json.dumps(offer.to_dict()), lambda text: parse_offer(text, "recovery", "osd", 1.0)),
            (json.dumps(record.to_dict()), lambda text: read_json(text, "x")),
            (json.dumps({"a": [1, {"b": 0.5}]}), lambda text: read_json(text, "x", constants=True)),
        )

    def __call__(self, randomness: random.Random) -> int:
        """A hundred of them."""
        change = Mutation(randomness)
        for _ in range(self.EACH):
            sound, read = randomness.choice(self.readers)
            with suppress(TunerError):
                read(change.text(sound))
        return self.EACH


class Json:
    """Files and results of JSON."""

    EACH = 10

    def __init__(self) -> None:
        from test_windows_file import DOCUMENT

        from ceph_tuner.fleet.advice import Advice

        advice = Advice({"recommended": {"better": True}}, Profile("x", REEF, {"osd_max_scrubs": 2}))
        self.windows, self.result = json.dumps(DOCUMENT), plain.to_text(advice)

    def __call__(self, randomness: random.Random) -> int:
        """Windows, and results of a worker elsewhere."""
        change = Mutation(randomness)
        for _ in range(self.EACH):
            with suppress(TunerError):
                windows_file.from_text(change.text(self.windows))
            # nothing is trusted there but that it makes values: `DaskWorkers` takes whatever is raised for no answer
            with suppress(TunerError, ValueError, TypeError, KeyError, AttributeError):
                plain.from_text(change.text(self.result))
        return 2 * self.EACH


class Gathered:
    """Files of `gather` whose answers somebody has changed, and what `ceph report` printed."""

    EACH = 2

    def __init__(self) -> None:
        from test_ceph_report import report

        from ceph_tuner.gather.read_commands import gather
        from whole_cluster import whole_cluster

        self.state, self.report = gather(whole_cluster()), json.dumps(report())
        self.path = Path(tempfile.mkdtemp(prefix="gathered-")) / "state"

    def __call__(self, randomness: random.Random) -> int:
        """What the doctor and a look make of them."""
        from ceph_tuner.gather import state_file

        change = Mutation(randomness)
        for _ in range(self.EACH):
            answers = list(self.state.answers)
            at = randomness.randrange(len(answers))
            text = change.text(answers[at].text).encode(errors="replace").decode()
            answers[at] = replace(answers[at], text=text)
            self._look(state_file.packed(replace(self.state, answers=tuple(answers))))
            self._look(change.text(self.report).encode(errors="replace"))
        return 2 * self.EACH

    def _look(self, content: bytes) -> None:
        from ceph_tuner.cluster.sampler import ClusterSampler
        from ceph_tuner.doctor import examine
        from ceph_tuner.doctor import gather as gather_facts
        from ceph_tuner.gather.replay import open_state, reading

        self.path.write_bytes(content)
        with suppress(TunerError):
            with reading(self.path):
                cluster = open_state(self.path)
                for finding in examine(gather_facts(cluster.commander, cluster.release, cluster.version)):
                    _check_shown(printable(str(finding.to_dict())))
            with reading(self.path):
                cluster = open_state(self.path)
                for cause in why.examine(why.gather(cluster.commander, cluster.clock, 10.0)):
                    _check_shown(printable(str(cause.to_dict())))
            with reading(self.path):
                cluster = open_state(self.path)
            with reading(self.path):
                sampler = ClusterSampler(cluster.commander, cluster.clock)
                sampler.sample()
                cluster.clock.sleep(1)
                sampler.sample()


class Yaml:
    """Files of YAML."""

    def __init__(self) -> None:
        from test_fit_file import some_fit

        self._folder = tempfile.TemporaryDirectory(prefix="fuzz-")
        made = Profile("tuned", REEF, {"osd_max_scrubs": 2}, slos=(SLO,))
        origin = {"cluster": "a", "exported": "2026-11-21T19:00:00Z"}
        self.readers: List[Any] = [
            *((path.read_text(), cluster_file.from_text) for path in sorted(EXAMPLES.glob("cluster-*.yaml"))),
            *((path.read_text(), slo_file.from_text) for path in sorted(EXAMPLES.glob("slo-*.yaml"))),
            (FLEET, fleet_file.from_text),
            (profile_file.to_text(made), lambda text: profile_file.from_text(text, "x.yaml")),
            (
                _yaml(sealed(made, origin)),
                lambda text: portable_file.from_text(text, "x.yaml"),
            ),
            (fit_file.to_text(some_fit()), fit_file.from_text),
            (DRIVE, self._on_disk(drive_file.read)),
            (POOLS, self._on_disk(pools_file.read)),
        ]

    def _on_disk(self, read: Callable[[Path], Any]) -> Callable[[str], Any]:
        path = Path(self._folder.name) / "x.yaml"

        def from_text(text: str) -> Any:
            path.write_text(text, encoding="utf-8", errors="replace")
            return read(path)

        return from_text

    def __call__(self, randomness: random.Random) -> int:
        """One of them."""
        sound, read = randomness.choice(self.readers)
        with suppress(TunerError):
            read(Mutation(randomness).text(sound))
        return 1


def _yaml(document: Any) -> str:
    stream = io.StringIO()
    YAML(typ="safe", pure=True).dump(document, stream)
    return stream.getvalue()


class Answers:
    """What `recommend` and `tune` printed, as `report` draws it."""

    def __init__(self) -> None:
        import example_answers

        self.sound = [json.dumps(example_answers.recommendation()), json.dumps(example_answers.tuning())]

    def __call__(self, randomness: random.Random) -> int:
        """One page."""
        content = Mutation(randomness).content(randomness.choice(self.sound))
        with suppress(TunerError):
            found = answers.findings_of(answer_file.parse(content, "answer.json"))
            drawn = page(found, 1.8e9, "answer.json")
            assert "<script" not in drawn.lower()
            assert not set(drawn) & {"\x1b", "\x00", "\u202e"}
        return 1


class Worker:
    """What the optimiser answers the plugin."""

    SOUND: Mapping[str, Any] = {
        "version": 1,
        "ok": True,
        "proposals": [{"settings": {**TENTACLE.profiles["balanced"], "osd_max_scrubs": 2}, "why": "a test"}],
        "verdict": {"state": "searching", "reason": "x"},
        "best": {"settings": {"osd_max_scrubs": 2}, "values": {"client.p95_ms": 5.0}},
        "explanation": {
            "importance": {"client.p95_ms": [{"knob": "osd_max_scrubs", "share": 0.6}]},
            "in_the_way": None,
        },
        "elsewhere": [{"profile": "a", "suggested": True, "reason": "alike"}],
    }

    def __init__(self) -> None:
        self.module = _module()
        self.sound = json.dumps(self.SOUND)
        self.answer = b""
        service.ask_worker = lambda *_: worker._answer(0, self.answer, b"\x1b[2Jlast words")  # type: ignore[assignment]
        aboard = self.module.aboard
        self.proposer = Proposer(aboard.service, aboard.service.aim(), Inbox(), aboard.twin.clock.now)

    def __call__(self, randomness: random.Random) -> int:
        """To `recommend`, and to the automatic mode."""
        self.answer = Mutation(randomness).content(self.sound)
        before = self.module.aboard.service.config.dump()
        self.module._jobs.__init__()  # type: ignore[misc]
        _check_command(self.module, "recommend")
        asdict(self.proposer.ask(AutopilotState("auto", "asking", baseline={"client.p95_ms": 90.0}), Policy()))
        assert self.module.aboard.service.config.dump() == before, UNASKED
        return 1


class Rest:
    """What a dashboard and a Prometheus server answer."""

    SERIES: Mapping[str, Any] = {
        "status": "success",
        "data": {
            "resultType": "matrix",
            "result": [{"metric": {"osd": "1"}, "values": [[1000, "1.5"], [1060, "2"]]}],
        },
        "warnings": ["w"],
    }

    def __init__(self) -> None:
        self.clock = SystemClock()
        self.pages = {path: json.dumps(document) for path, document in PAGES.items()}
        self.token = json.dumps({"token": "t", "pwdUpdateRequired": False})

    def __call__(self, randomness: random.Random) -> int:
        """All that is asked of one cluster."""
        change, asked = Mutation(randomness), [0]

        def call(method: str, url: str, *_: Any, **__: Any) -> Response:
            asked[0] += 1
            path = "/api" + url.split("/api", 1)[1]
            sound = self.token if path == "/api/auth" else self.pages.get(path, json.dumps(self.SERIES))
            wrong = randomness.random() < (0.05 if path == "/api/auth" else 0.7)
            return Response(randomness.choice((200,) * 9 + (500,)), change.content(sound) if wrong else sound.encode())

        api = DashboardApi("berlin", ["https://x"], "u", lambda: "secret", self.clock)
        api._transport.call = call  # type: ignore[method-assign]
        with suppress(TunerError):
            dashboard = Dashboard(api)
            version = min(osd_versions(dashboard), key=parse_version)
            status.status_of(Cluster.of("berlin", dashboard, release_of(version), version))
        with suppress(TunerError):
            Dashboard(api).stated()
        server = Prometheus("berlin", "https://x", self.clock)
        server._transport.call = call  # type: ignore[method-assign]
        with suppress(TunerError):
            server.query("up", 1000.0)
        with suppress(TunerError):
            server.query_range("up", Span.of(1000.0, 1060.0, 60.0))
        with suppress(TunerError):
            server.samples("up", 1060.0, 60.0)
        return asked[0]


class Controller:
    """Custom resources that somebody edited: what they state, and what the controller has noted on them."""

    EACH = 10
    NOTED: Mapping[str, Any] = {
        "CephSLO": {"holds": {"slo": {"before": None, "value": {"name": "main"}, "is_confirmed": True}}},
        "CephTuningMode": {
            "holds": {
                "mode/": {"before": "off", "value": "dry-run", "earlier": ["auto"], "generation": 1},
                "option/auto_window": {"before": None, "value": "30", "is_confirmed": True, "generation": 1},
            }
        },
        "CephBoost": {
            "boost": {
                "generation": 1,
                "last_start": 1.0,
                "start": 0.0,
                "request": {"kind": "recovery", "at_most_s": 3600.0, "target": "osd"},
            }
        },
    }
    SPEC: Mapping[str, Any] = {
        "CephSLO": {"objectives": ["client.p95_ms <= 80 ms"], "goal": {"maximize": "recovery.bytes_s"}},
        "CephTuningMode": {"mode": "dry-run", "policy": {"auto_window": 30}},
        "CephBoost": {"kind": "recovery", "atMost": "1h", "keep": ["client.p95_ms <= 80 ms"]},
    }

    def __init__(self) -> None:
        import test_convergence

        from ceph_tuner.controller.kinds import ALL

        self.convergence, self.kinds = test_convergence, ALL
        self.cluster = test_convergence.with_objectives()

    def __call__(self, randomness: random.Random) -> int:
        """One pass over each."""
        for _ in range(self.EACH):
            self._pass(randomness.choice(self.kinds), randomness)
        return self.EACH

    def _pass(self, kind: Any, randomness: random.Random) -> None:
        from ceph_tuner.controller.boosts import BoostTurn
        from ceph_tuner.controller.kinds import BOOST, FINALIZER, RECORD, SLO
        from ceph_tuner.controller.resource import Resource
        from ceph_tuner.core.bounded import MISREAD

        change, convergence = Mutation(randomness), self.convergence
        spec, noted = self.SPEC[kind.name], json.dumps(self.NOTED[kind.name])
        if randomness.random() < 0.5:
            with suppress(ValueError):
                spec = json.loads(change.tree(spec))
        metadata = {
            **dict.fromkeys(("namespace", "name", "uid"), "main"),
            "resourceVersion": "1",
            "generation": randomness.choice((1, 2)),
            "finalizers": randomness.choice(([], [FINALIZER])),
            "deletionTimestamp": randomness.choice((None, "x")),
            "annotations": {RECORD: change.text(noted) if randomness.random() < 0.7 else noted},
        }
        try:
            resource = Resource.from_document(kind, {"metadata": metadata, "spec": spec})
        except MISREAD:
            return
        shelf = convergence.Shelf(resource)
        commander = self.cluster.commander
        if kind is BOOST:
            turn = BoostTurn(commander, shelf, shelf)
        else:
            turn = (convergence.slos if kind is SLO else convergence.modes)(self.cluster, shelf)
        with suppress(TunerError):
            turn.turn(shelf.all())
        for report in shelf.reports.values():
            _check_shown(printable(report.ready.message))


class Program:
    """Command lines of the program that need no cluster."""

    AS_PROCESS = 0.02
    """Share of them that a process of its own is given, as a shell would; the others are quicker inside of this one."""

    def __init__(self) -> None:
        self._kept = tempfile.TemporaryDirectory(prefix="fuzz-")
        self.folder = Path(self._kept.name)
        self.sound = {
            "slo": (EXAMPLES / "slo-nvme-node.yaml").read_text(),
            "profile": profile_file.to_text(Profile("tuned", REEF, {"osd_max_scrubs": 2})),
            "fleet": FLEET,
            "trace": '{"kind":"config","classes":[{"class":0,"reservation":1,"weight":1,"limit":0}]}\n'
            '{"kind":"add","t":1,"id":1,"class":0,"cost":1}\n{"kind":"pull","t":2,"id":1,"class":0,"phase":"r"}\n',
        }

    def __call__(self, randomness: random.Random) -> int:
        """One command line."""
        change = Mutation(randomness)

        def file(kind: str) -> str:
            path = self.folder / f"{kind}.yaml"
            path.write_bytes(change.content(self.sound[kind]))
            return str(path)

        text = change.text(randomness.choice(["tentacle", "balanced", "18.2.7", "paris", "json", "osd_max_scrubs"]))
        lines: Sequence[Callable[[], List[str]]] = (
            lambda: ["slo", "check", file("slo")],
            lambda: ["slo", "metrics", "--format", text],
            lambda: ["profile", "show", randomness.choice([file("profile"), f"./{text}", text])],
            lambda: ["profile", "check", file("profile")],
            lambda: ["profile", "diff", file("profile"), "tentacle/balanced"],
            lambda: ["profile", "ls", "--release", text],
            lambda: ["knobs", text],
            lambda: ["fleet", "export", "nobody", "--fleet", file("fleet"), "--output", "/nonexistent/x"],
            lambda: ["fleet", "diff", f"no-{text}", "--fleet", file("fleet")],
            lambda: ["fleet", "import", file("profile"), "--fleet", file("fleet")],
            lambda: ["twin", "replay", file("trace")],
            lambda: ["history", "--cluster", f"/nonexistent/{text}.conf"],
            lambda: ["apply", file("profile"), "--cluster", "/nonexistent/x.conf"],
            lambda: ["report", file("slo"), "--output", "/nonexistent/x.html"],
            lambda: [text, text],
        )
        argv = [*randomness.choice(lines)(), *randomness.choice(([], [], ["--format", "json"], ["--quiet"], [text]))]
        # what no process can be given
        argv = [word.replace("\x00", "").encode(errors="replace").decode() for word in argv]
        code, shown = (self._process if randomness.random() < self.AS_PROCESS else self._inside)(argv)
        assert code in (0, 1, 2, 3, 4), (argv, code, shown[-1000:])
        _check_shown(shown)
        extra = {path.stem for path in self.folder.iterdir()} - set(self.sound)
        assert not extra, (argv, extra)
        return 1

    @staticmethod
    def _process(argv: Sequence[str]) -> Tuple[Any, str]:
        command = [sys.executable, "-c", "from ceph_tuner_cli.main import main; main()", *argv]
        done = subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout.decode() + done.stderr.decode()

    @staticmethod
    def _inside(argv: Sequence[str]) -> Tuple[Any, str]:
        out, errors, before = io.StringIO(), io.StringIO(), sys.argv
        sys.argv = ["ceph-tuner", *argv]
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
                try:
                    code: Any = program._run()
                except SystemExit as ended:
                    code = ended.code or 0
        finally:
            sys.argv = before
        return code, out.getvalue() + errors.getvalue()


SURFACES: Dict[str, Callable[[], Surface]] = {
    "store": Store,
    "plugin": Plugin,
    "texts": Texts,
    "json": Json,
    "gathered": Gathered,
    "yaml": Yaml,
    "answers": Answers,
    "worker": Worker,
    "rest": Rest,
    "controller": Controller,
    "program": Program,
}
