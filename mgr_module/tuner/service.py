"""What the commands do, as documents; `module.py` parses and registers them, `render.py` prints them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Protocol, Sequence, Tuple, Union

from ceph_tuner import __version__
from ceph_tuner.core.autopilot.learning import absolute, absolute_where_relative
from ceph_tuner.core.ceph.commands import CommandConfig, CommandStore, osd_versions, parsed
from ceph_tuner.core.ceph.ports import Clock
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.ceph.target import Target
from ceph_tuner.core.changes.forecast_pairs import awaited_scopes
from ceph_tuner.core.changes.journal import Journal
from ceph_tuner.core.errors import InputError, RetryLater
from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.goals.trial import Trial
from ceph_tuner.core.knobs.catalogue import KNOBS, MCLOCK_NINE, PROFILE
from ceph_tuner.core.knobs.releases import Release, Settings, parse_version, release_of
from ceph_tuner.core.knobs.settings import fitting_reservations, moves_alone, settings_in_force
from ceph_tuner.core.measure.history import History
from ceph_tuner.core.measure.osd_selection import spread
from ceph_tuner.core.measure.sample import Window, at_work
from ceph_tuner.core.measure.scopes import Members
from ceph_tuner.core.measure.timeline import timeline
from ceph_tuner.core.profiles.in_force import hardware_of, kind_of_all, searched_from
from ceph_tuner.core.profiles.profile import Profile
from ceph_tuner.core.why import diagnose
from ceph_tuner.core.why import gather as gather_facts

from .aim import Aim
from .capacity import Capacity, read_capacities
from .changes import Changes
from .commander import MgrCommander
from .profiles import ProfileShelf
from .sampler import Sampler
from .scopes_watched import ScopesWatched
from .slo_commands import SloCommands
from .slos import SloBook
from .worker import ask_worker
from .worker_trials import worker_trials

EVERY_OSD = "osd"
ASKED_OSDS = 16
"""OSDs asked for their capacity and settings by a command."""

WHY_OSDS = 16
"""OSDs that are asked to tell why work waits: who reads an answer here holds the mgr up."""
WHY_SECONDS = (2.0, 600.0)

_BUILD_FILE = Path(__file__).with_name("build.txt")
BUILD = _BUILD_FILE.read_text().strip() if _BUILD_FILE.is_file() else __version__
"""What is loaded, as `ceph-tuner mgr install` named it. Read once: the files may be replaced under a running mgr."""

STATUS_WINDOW_S = 60.0
BASELINE_WINDOW_S = 600.0


class Inventory(Protocol):
    """What the service wants to know of the OSDs."""

    def running(self) -> Sequence[int]:
        """Sorted ids of the running OSDs."""

    def kind(self, osd: int) -> str:
        """`ssd` or `hdd`."""

    def pgs(self) -> List[Mapping[str, Any]]:
        """All PGs, each with what `pg ls` says of it."""

    def default_capacity(self, kind: str) -> float:
        """Capacity that Ceph takes where nobody says more."""


class Service:
    """Ties the parts together. `option` reads a module option."""

    def __init__(
        self,
        commander: MgrCommander,
        sampler: Sampler,
        inventory: Inventory,
        option: Callable[[str], Any],
        who: str = "the plugin",
        date: Callable[[], float] = time.time,
        clock: Optional[Clock] = None,
    ) -> None:
        self.clock = clock or SystemClock()
        self.commander, self.sampler, self.inventory, self.option = commander, sampler, inventory, option
        self.who = who
        self.config = CommandConfig(commander)
        self.store = CommandStore(commander)
        self.slos = SloBook(self.store, date=date)
        self.slo_commands = SloCommands(self.slos, self.store, date)
        self.scopes = ScopesWatched(commander)
        self._worker_failure: Optional[str] = None
        self._set_aside: List[str] = []

    def history(self) -> History:
        """The past, with the bounds that the options give."""
        option = self.option
        return History(self.store, option("history_minutes"), option("history_hours"), option("history_trials"))

    def status(self) -> Dict[str, Any]:
        """How the cluster does, what is wanted of it, what is in force, what was tried last."""
        sample, window = self.sampler.latest(), self.sampler.window(STATUS_WINDOW_S)
        capacities = self.capacities()
        last = self._trials(None)[-1:]
        return {
            "version": __version__,
            "build": BUILD,
            "release": self.release_version(),
            "sampling": {
                "interval": self.option("sample_interval"),
                "age": None if sample is None else round(time.time() - sample.at, 1),
                "tick_ms": round(self.sampler.tick_s * 1000.0, 1),
            },
            "window": None if window is None else window.to_dict(),
            "newest": {} if sample is None else dict(sample.values),
            "pg_states": {} if sample is None else dict(sample.pg_states),
            "notes": [*(() if sample is None else sample.notes), *self.slo_commands.notes()],
            "slo": self.verdicts(window),
            "policy": self.slo_commands.policy_in_force(),
            "in_force": self.shown_by_osds(),
            "capacity": [capacity.to_dict() for capacity in capacities],
            "last_trial": last[0].to_dict() if last else None,
        }

    def sample(self) -> Dict[str, Any]:
        """The newest sample."""
        sample = self.sampler.latest()
        if sample is None:
            raise RetryLater("no sample yet: rates need two readings, one each sample_interval")
        return sample.to_dict()

    def verdicts(self, window: Optional[Window]) -> List[Dict[str, Any]]:
        """The SLO held against what is seen now."""
        slo = self.slos.read()
        if slo is None:
            return []
        judge = Judge(slo, self.reference())
        return [verdict.to_dict() for verdict in judge.verdicts_at_work(_means(window))]

    def shown_by_osds(self) -> Dict[str, Any]:
        """Profile and nine values that OSDs say they have, and whether those asked agree."""
        return _agreement(self._options_of_some())

    def values_in_force(self, names: Sequence[str], target: str = EVERY_OSD) -> Dict[str, Any]:
        """These knobs' values, as far as OSDs of a target tell: of the first that answers."""
        options = next(iter(self._options_of_some(target).values()), {})
        return dict(settings_in_force(options, tuple(names)))

    def trials(self, device_class: str = "") -> List[Trial]:
        """Trials on a device class, or without one on the cluster as a whole, oldest first."""
        return self._trials(device_class)

    def running(self, device_class: str = "") -> List[int]:
        """Sorted ids of the running OSDs, of all or of a class."""
        return self.scopes.among(self.inventory.running(), device_class)

    def _options_of_some(self, target: str = EVERY_OSD) -> Dict[int, Dict[str, str]]:
        """Options of some OSDs of a target, of those that answer in time."""
        running = self.running()
        if target != EVERY_OSD:
            section = Target.parse(target)
            covered = {place.osd for place in self.config.places() if section.covers(place)}
            running = [osd for osd in running if osd in covered]
        osds = spread(running, 3)
        questions: List[Tuple[str, str, Mapping[str, str]]] = [(f"osd.{osd}", "config show", {}) for osd in osds]
        answers = self.commander.tell_many(questions, 2.0)
        return {int(daemon[len("osd.") :]): parsed(text, "config show") for (daemon, _), text in answers.items()}

    def _shards(self, options_of: Mapping[int, Mapping[str, str]]) -> int:
        """Shards of an OSD; of the one with the fewest of these, 1 where there is none."""
        hardware_of_each = (hardware_of(options, kind=self.inventory.kind(osd)) for osd, options in options_of.items())
        return min((hardware.shards for hardware in hardware_of_each), default=1)

    def capacities(self, osds: Optional[Sequence[int]] = None, device_class: str = "") -> List[Capacity]:
        """Capacity in force and its source, for these OSDs, or for some of all or of a class."""
        ids = spread(self.running(device_class), ASKED_OSDS) if osds is None else osds
        kinds = {osd: self.inventory.kind(osd) for osd in ids}
        defaults = {kind: self.inventory.default_capacity(kind) for kind in ("ssd", "hdd")}
        return read_capacities(self.commander, kinds, self.config.dump(), defaults)

    def capacity_iops(self, members: Optional[Members] = None) -> float:
        """What the OSDs of a scope, or all that run, can do together; 0 where that is not known."""
        osds = [osd for osd in self.running() if members is None or osd in members.osds]
        capacities = self.capacities(spread(osds, ASKED_OSDS))
        return len(osds) * sum(each.iops for each in capacities) / len(capacities) if capacities else 0.0

    def changes(self) -> Changes:
        """Writes, for one command."""
        version = self.release_version()
        return Changes(self.commander, self.store, release_of(version), version, self.who)

    def shelf(self) -> ProfileShelf:
        """Profiles that are at hand."""
        return ProfileShelf(self.store, self.release())

    def profile_list(self) -> List[Dict[str, Any]]:
        """Every profile at hand, and whether it is the one in force."""
        shelf, in_force = self.shelf(), self.shown_by_osds()["settings"]
        rows = []
        for name in shelf.names():
            profile = shelf.get(name)
            nine = {key: in_force.get(key) for key in MCLOCK_NINE}
            same = all(profile.settings.get(key) == nine[key] for key in MCLOCK_NINE)
            if in_force.get(PROFILE) != "custom":
                same = profile.built_in and in_force.get(PROFILE) == name
            rows.append({**profile.to_dict(), "in_force": same})
        return rows

    def profile_show(self, name: str) -> Dict[str, Any]:
        """One profile; with `in force` for a name, what the OSDs have."""
        return self.shelf().get(name).to_dict()

    def profile_export(self, name: str) -> Dict[str, Any]:
        """A profile to take elsewhere: one at hand, or without a name what is in force."""
        if name:
            return self.profile_show(name)
        return self.changes().in_force("osd", "exported").to_dict()

    def profile_import(self, text: str, name: str) -> Dict[str, Any]:
        """Keep a profile; one that cannot be translated to this release is refused."""
        changes, shelf = self.changes(), self.shelf()
        profile = shelf.checked(text, name or None)
        notes = list(changes.translated(profile, "osd").notes)
        shelf.put(profile)
        return {**profile.to_dict(), "notes": notes}

    def profile_apply(self, name: str, target: str, really: bool) -> Dict[str, Any]:
        """Bring a profile onto a target, or say what that would do."""
        return self.changes().apply(self.shelf().get(name), target, really)

    def past(self, hours: bool, limit: int) -> Dict[str, Any]:
        """Windows and trials, the newest last."""
        history, now = self.history(), self.clock.now()
        windows = history.hours(now) if hours else history.windows(now)
        return {
            "windows": [window.to_dict() for window in windows[-limit:]],
            "trials": [trial.to_dict() for trial in self._trials(None)[-limit:]],
            "changes": self.changes().journal(history)[-limit:],
            "timeline": [entry.to_dict() for entry in timeline(history)[-limit:]],
        }

    def keep_outcomes(self) -> None:
        """Keep what the minutes show of changes about which a twin had been asked."""
        self.changes().keep_outcomes(self.history())

    def aim(self, device_class: str = "") -> Aim:
        """What an automatic mode is for: that of a class, or without one that of the cluster as a whole."""
        target = lambda: str(self.option("auto_target"))  # noqa: E731
        return Aim(self.sampler, self.scopes, self.slos, target, self.who, device_class)

    def recommend(self, aim: Optional[Aim] = None) -> Dict[str, Any]:
        """What the optimiser would try next, and what is known about it. Takes as long as the worker may.

        Without an aim it is about the cluster as a whole.
        """
        aim = aim or self.aim()
        slo = aim.slo()
        if slo is None:
            raise self._no_slo(aim)
        trials, window = self._trials(aim.device_class), aim.window(BASELINE_WINDOW_S)
        now, judge = at_work(_means(window)), Judge(slo, aim.part_of(self.reference()))
        baseline = aim.part_of(self.baseline() or {}) or now or None
        options_of = self._options_of_some(aim.target)
        in_force = _agreement(options_of)["settings"]
        # relative bounds refer to what `status` holds them against
        objectives = absolute(slo, judge.reference)
        answer = self._ask(objectives, options_of, baseline, trials, len(trials), explain=True)
        proposal = answer["proposals"][0] if answer["proposals"] else None
        return {
            "proposal": proposal,
            "commands": self._commands(proposal["moves"], aim.target) if proposal else [],
            "verdict": answer.get("verdict"),
            "best": answer.get("best"),
            "explanation": answer.get("explanation"),
            "elsewhere": answer.get("elsewhere", []),
            "slo": [verdict.to_dict() for verdict in judge.verdicts(now)],
            "in_force": in_force,
            "trials": len(trials),
            "capacity": self._accounting(in_force, now, aim.device_class),
        }

    def _no_slo(self, aim: Aim) -> InputError:
        classes = self.scopes.classes()
        if classes and not aim.device_class:
            return InputError("recommend", "objectives by device class", f"--device-class {' or '.join(classes)}")
        what = f"{{class={aim.device_class}}}" if aim.device_class else ""
        return InputError("recommend", "no SLO", f"one first: ceph tuner slo set 'client.p95_ms{what}<=80'")

    def ask_for(self, slo: Slo, baseline: Mapping[str, float], start: float, seed: int, aim: Aim) -> Dict[str, Any]:
        """Have the optimiser propose for the cluster as it is since `start`: older trials were under another load."""
        trials = [trial for trial in self._trials(aim.device_class) if trial.at >= start]
        return self._ask(slo, self._options_of_some(aim.target), baseline, trials, seed)

    def _ask(
        self,
        slo: Slo,
        options_of: Mapping[int, Mapping[str, str]],
        baseline: Optional[Mapping[str, float]],
        trials: List[Trial],
        seed: int,
        explain: bool = False,
    ) -> Dict[str, Any]:
        """Give the worker's answer, where each proposal has its `moves` as well: what of it is to be written.

        Raises WorkerError, which a health check then shows.
        """
        version = self.release_version()
        release, kinds = release_of(version), {osd: self.inventory.kind(osd) for osd in options_of}
        # of the first, where they do not agree
        in_force: Settings = next(
            (searched_from(options, release, kinds[osd]) for osd, options in options_of.items()), {}
        )
        request = {
            "version": 1,
            "release": version,
            "slo": slo.to_dict(),
            "in_force": in_force,
            "baseline": baseline,
            "told": worker_trials(trials),
            "knobs": None,
            "shards": self._shards(options_of),
            "kind": kind_of_all(kinds.values()),
            "seed": seed,
            "ask": 1,
            "elsewhere": self.shelf().elsewhere(lambda: self.changes().in_force("osd", "here")),
            "explain": explain,
        }
        try:
            memory = int(self.option("worker_memory")) << 20
            answer = ask_worker(request, self.option("worker_python"), float(self.option("worker_timeout")), memory)
        except Exception as error:
            self._worker_failure = str(error)
            raise
        self._worker_failure = None
        for proposal in answer["proposals"]:
            proposal["moves"] = _moves(proposal["settings"], in_force, options_of, release)
        return answer

    def look_at_journal(self) -> None:
        """See what of it cannot be read, and of which device classes it awaits an outcome. Raises TunerError."""
        contents = Journal(self.store).read()
        self._set_aside = [str(item) for item in contents.set_aside]
        self.scopes.awaited = awaited_scopes(contents.entries, self.clock.now())

    def health(self) -> Dict[str, Union[str, List[str]]]:
        """Health check -> its message, or several."""
        checks: Dict[str, Union[str, List[str]]] = {**self.sampler.health()}
        if self._worker_failure:
            checks["TUNER_WORKER_FAILED"] = self._worker_failure
        if self._set_aside:
            checks["TUNER_JOURNAL_DAMAGED"] = self._set_aside
        damage = self.slos.damage()
        if damage:
            checks["TUNER_SLO_DAMAGED"] = damage
        return checks

    def replicas(self) -> int:
        """OSDs of a PG in the pool where they are most; 1 where there is no pool."""
        pools = parsed(self.commander.mon("osd pool ls", {"detail": "detail"}), "osd pool ls")
        return max((int(pool["size"]) for pool in pools), default=1)

    def release_version(self) -> str:
        """The oldest version among the OSDs: only its knobs work everywhere."""
        return min(osd_versions(self.commander), key=parse_version)

    def release(self) -> Release:
        """The release's era."""
        return release_of(self.release_version())

    def _trials(self, device_class: Optional[str] = "") -> List[Trial]:
        """Those of the whole cluster, or of a class; None: all."""
        read = (Trial.remembered(record) for record in self.history().trials())
        return [each for each in read if each is not None and device_class in (None, each.device_class)]

    def reference(self) -> Dict[str, float]:
        """What relative bounds refer to: the first that was seen, or a tuning run's baseline."""
        return {**(self.baseline() or {}), **self.slos.baseline()}

    def absolute_slo(self) -> Optional[Slo]:
        """The objectives that hold now, with relative bounds as numbers; None where none are set. Raises TunerError."""
        return absolute_where_relative(self.slos.current(), self.reference)

    def baseline(self) -> Optional[Dict[str, float]]:
        """What the last tuning run measured under the settings that were in force."""
        baselines = [trial.means for trial in self._trials() if trial.run.kind == "baseline" and trial.failed is None]
        return baselines[-1] if baselines else None

    def in_release_units(self, settings: Mapping[str, Any], target: str) -> Settings:
        """The worker's fractions in the running release's units, with the profile that they take."""
        profile = Profile.make("proposed", self.release(), {k: v for k, v in settings.items() if k != PROFILE})
        return dict(self.changes().translated(profile, target).settings)

    def why(self, pool: str, device_class: str, seconds: float) -> Dict[str, Any]:
        """What holds work now, by two looks at few OSDs. Takes the seconds between them and some more."""
        least, most = WHY_SECONDS
        if not least <= seconds <= most:
            raise InputError("seconds", f"{seconds:g}", f"{least:g} to {most:g}")
        facts = gather_facts(
            self.commander,
            self.clock,
            seconds,
            osds_most=WHY_OSDS,
            pgs_most=self.option("pg_detail_limit"),
            list_pgs=self.inventory.pgs,
        )
        return diagnose(facts, pool, device_class).to_dict()

    def _commands(self, settings: Mapping[str, Any], target: str) -> List[str]:
        """What an operator would type."""
        return self.changes().commands(target, self.in_release_units(settings, target))

    def _accounting(self, in_force: Mapping[str, Any], now: Mapping[str, float], device_class: str) -> Dict[str, Any]:
        """What the capacity is promised to, in IOPS of the whole cluster or class."""
        osds, capacities = self.running(device_class), self.capacities(None, device_class)
        total = sum(capacity.iops for capacity in capacities) * (len(osds) / len(capacities)) if capacities else 0.0
        release = self.release()
        profile = release.profiles.get(str(in_force.get(PROFILE)), {})
        values = {name: in_force.get(name, profile.get(name)) for name in MCLOCK_NINE}
        classes = {}
        for name in ("client", "background_recovery", "background_best_effort"):
            reservation = float(values[f"osd_mclock_scheduler_{name}_res"] or 0)
            limit = float(values[f"osd_mclock_scheduler_{name}_lim"] or 0)
            classes[name] = {"guaranteed_iops": reservation * total, "limit_iops": limit * total if limit else None}
        sources = sorted({capacity.source for capacity in capacities})
        return {"total_iops": total, "sources": sources, "classes": classes, "client_iops": now.get("client.iops")}


def _moves(
    settings: Settings, in_force: Settings, options_of: Mapping[int, Mapping[str, str]], release: Release
) -> Settings:
    """What of proposed settings is to be written: all of them where the OSDs do not agree on what is in force."""
    names = {PROFILE, *MCLOCK_NINE, *settings}
    alike = len({tuple(map(options.get, names)) for options in options_of.values()}) == 1
    if not alike or not names <= KNOBS.keys():
        return settings
    return moves_alone(settings, fitting_reservations(in_force), release) or settings


def _agreement(options_of: Mapping[int, Mapping[str, str]]) -> Dict[str, Any]:
    """What is in force by the options of some OSDs, and whether they agree; of the first where they do not."""
    settings = [settings_in_force(options) for options in options_of.values()]
    if not settings:
        return {"settings": {}, "osds": [], "agree": True}
    names = [f"osd.{osd}" for osd in options_of]
    return {"settings": settings[0], "osds": names, "agree": all(other == settings[0] for other in settings)}


def _means(window: Optional[Window]) -> Dict[str, float]:
    return window.means if window else {}
