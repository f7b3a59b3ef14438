"""The module that ceph-mgr loads: options, the sampling loop, and commands of three lines each.

Annotations must be evaluated here (no `from __future__ import annotations`): Ceph reads the commands' types from them.
"""

import contextlib
import errno
import json
import threading
import time
from dataclasses import fields
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

from ceph_tuner.core.errors import InputError, RetryLater, TunerError
from ceph_tuner.core.printable import PrintableLog, printable, printable_document

from . import (
    compat,
    health,
    render,
    render_automatic,
    render_book,
    render_recommendation,
    render_why,
    threads,
)
from .collect import Collector, TickLimits
from .commander import MgrCommander
from .compat import framework, read_command, write_command
from .inventory import MgrInventory
from .jobs import Jobs
from .modes import Modes
from .options import DEFAULTS, OPTIONS
from .sampler import Sampler, exempt_what_is_loaded
from .service import Service
from .worker import end_worker

LEAST_PAUSE_S = 0.5
"""Between two samples, however long one takes."""

JOIN_S = 5.0
"""How long a mgr that shuts down waits for the module's threads: one may wait for an answer that never comes."""


def _option(row: Any) -> Any:
    bounds = {name: value for name, value in (("min", row.low), ("max", row.high)) if value is not None}
    return framework.Option(name=row.name, type=row.type, default=row.default, desc=row.meaning, runtime=True, **bounds)


class Module(framework.MgrModule):  # type: ignore[misc]
    """ceph-tuner inside the mgr."""

    CLICommand = compat.REGISTRY
    MODULE_OPTIONS = [_option(row) for row in OPTIONS]  # noqa: RUF012
    NOTIFY_TYPES: Any = [framework.NotifyType.osd_map]  # noqa: RUF012

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._stop = threading.Event()
        self._modes_thread: Optional[threading.Thread] = None
        self.log.addFilter(PrintableLog())
        self._jobs = Jobs()
        self._checks: Dict[str, Any] = {}
        self._reporting = threading.Lock()
        commander = MgrCommander(self, framework.CommandResult)
        self._collector = collector = Collector(self, commander, compat.counters(self), self._limits)
        self._sampler = Sampler(collector, lambda: self._service.history(), after_ten_minutes=self._keep_outcomes)
        self._service = Service(
            commander,
            self._sampler,
            MgrInventory(self, lambda: collector.born),
            self._get_option,
            f"ceph tuner in mgr.{self.get_mgr_id()}",
        )
        self._modes = Modes(
            self,
            self._service,
            self._sampler,
            lambda: collector.born,
            lambda osd: compat.latest_counter(self, osd, "osd.op_w"),
            self._get_option,
        )

    def serve(self) -> None:
        """Sample until told to stop. An error costs one sample: nothing that is raised may end this."""
        exempt_what_is_loaded()
        # from here on it is told of each map
        self._collector.map_changed()
        while not self._stop.is_set():
            with self._surviving("the automatic mode cannot be started"):
                if self._modes_thread is None or not self._modes_thread.is_alive():
                    thread = threading.Thread(target=self._modes.run, args=(self._stop,), daemon=True)
                    thread.name = "tuner-modes"
                    thread.start()
                    self._modes_thread = thread
            with self._surviving("sampling failed"):
                self._sampler.tick()
            with self._surviving("nothing could be told of this sample"):
                self._modes.sampled()
            self._report_health()
            pause = LEAST_PAUSE_S
            with self._surviving("the sampling interval cannot be read"):
                rest = float(self._get_option("sample_interval")) - self._sampler.tick_s
                pause = min(max(pause, rest), threading.TIMEOUT_MAX)
            self._stop.wait(pause)

    def notify(self, notify_type: Any, notify_id: str) -> None:
        """Ceph calls it as a map, or whatever else is in NOTIFY_TYPES, is new."""
        if notify_type == framework.NotifyType.osd_map:
            self._collector.map_changed()

    def shutdown(self) -> None:
        """Stop sampling, and wait for the module's threads; a trial is left to whoever comes next."""
        self._stop.set()
        end = time.monotonic() + JOIN_S
        with self._surviving("the automatic modes cannot be ended"):
            self._modes.close(end)
        if self._modes_thread is not None:
            self._modes_thread.join(max(0.0, end - time.monotonic()))
        with self._surviving("the optimiser cannot be ended"):
            end_worker()
        threads.join(end)
        with self._surviving("a query of the OSDs cannot be ended"):
            self._collector.end()
        self._service.commander.close(end)

    @read_command("tuner status")
    def _status(self, format: Optional[str] = "plain") -> Tuple[int, str, str]:  # noqa: A002
        """Show rates, objectives, the profile in force and the last trial."""
        return self._answer(self._service.status, render.status, format)

    @read_command("tuner sample")
    def _sample(self, format: Optional[str] = "plain") -> Tuple[int, str, str]:  # noqa: A002
        """Show the newest sample."""
        return self._answer(self._service.sample, lambda document: render.values(document["values"]), format)

    @read_command("tuner history")
    def _history(
        self,
        limit: int = 20,
        hours: Optional[bool] = False,
        format: Optional[str] = "plain",  # noqa: A002
    ) -> Tuple[int, str, str]:
        """Show windows of a minute (or of an hour), trials, changes, and who did what and why, the newest last."""
        past = lambda: {**self._service.past(bool(hours), limit), "trail": self._modes.past(limit)}  # noqa: E731
        return self._answer(past, render_automatic.history, format)

    @read_command("tuner slo ls")
    def _slo_ls(self, format: Optional[str] = "plain") -> Tuple[int, str, str]:  # noqa: A002
        """List the service-level objectives."""
        return self._answer(self._service.slo_commands.document, render.slo, format)

    @write_command("tuner slo set")
    def _slo_set(
        self,
        objective: str = "",
        hard: Optional[bool] = None,
        soft: Optional[bool] = None,
        priority: float = 1.0,
        yes: Optional[bool] = False,
        format: Optional[str] = "plain",  # noqa: A002
        inbuf: str = "",
    ) -> Tuple[int, str, str]:
        """Set an objective such as 'client.p95_ms<=80', hard unless --soft, or a whole SLO by -i FILE; --yes: with a calendar."""  # noqa: E501
        set_slo = lambda: self._service.slo_commands.set(  # noqa: E731
            objective, _is_soft(hard, soft), priority, inbuf, bool(yes)
        )
        return self._answer(set_slo, render.slo, format)

    @write_command("tuner slo rm")
    def _slo_rm(self, metric: str, format: Optional[str] = "plain") -> Tuple[int, str, str]:  # noqa: A002
        """Remove the objectives of a metric, or all of them."""
        return self._answer(lambda: self._service.slo_commands.remove(metric), render.slo, format)

    @read_command("tuner profile ls")
    def _profile_ls(self, format: Optional[str] = "plain") -> Tuple[int, str, str]:  # noqa: A002
        """List the profiles at hand."""
        return self._answer(self._service.profile_list, render.profiles, format)

    @read_command("tuner profile show")
    def _profile_show(self, name: str, format: Optional[str] = "plain") -> Tuple[int, str, str]:  # noqa: A002
        """Show a profile."""
        return self._answer(lambda: self._service.profile_show(name), render.profile, format)

    @read_command("tuner profile export")
    def _profile_export(self, name: str = "", format: Optional[str] = "plain") -> Tuple[int, str, str]:  # noqa: A002
        """Print a profile as JSON (which is YAML, too); without a name, what is in force."""
        return self._answer(lambda: self._service.profile_export(name), render.document, format)

    @write_command("tuner profile import")
    def _profile_import(
        self,
        name: str = "",
        format: Optional[str] = "plain",  # noqa: A002
        inbuf: str = "",
    ) -> Tuple[int, str, str]:
        """Keep a profile in the cluster, by -i FILE (JSON), under its own name or another one."""
        return self._answer(lambda: self._service.profile_import(inbuf, name), render.imported, format)

    @write_command("tuner profile apply")
    def _profile_apply(
        self,
        name: str,
        # not `target`: the ceph program puts a `target` of its own into every command
        who: str = "osd",
        yes: Optional[bool] = False,
        format: Optional[str] = "plain",  # noqa: A002
    ) -> Tuple[int, str, str]:
        """Show what a profile would change for WHO (osd, osd/class:ssd, osd/host:h, osd.3); with --yes, change it."""
        apply = lambda: self._modes.by_hand(  # noqa: E731
            bool(yes), f"profile {name} applied", lambda: self._service.profile_apply(name, who, bool(yes))
        )
        return self._answer(lambda: self._jobs.run(f"profile apply {name} {who} {yes}", apply), render.plan, format)

    @write_command("tuner rollback")
    def _rollback(
        self,
        to: int = -1,
        all: Optional[bool] = False,  # noqa: A002
        yes: Optional[bool] = False,
        format: Optional[str] = "plain",  # noqa: A002
    ) -> Tuple[int, str, str]:
        """Show how the newest change (all after number TO, or --all) would be taken back; with --yes, do it."""
        after = None if to < 0 else to
        rollback = lambda: self._modes.rollback(bool(yes), after, bool(all))  # noqa: E731
        return self._answer(lambda: self._jobs.run(f"rollback {to} {all} {yes}", rollback), render.rollback, format)

    @read_command("tuner recommend")
    def _recommend(
        self,
        device_class: str = "",
        format: Optional[str] = "plain",  # noqa: A002
    ) -> Tuple[int, str, str]:
        """Ask the optimiser what to try next, on the cluster or on a DEVICE_CLASS; changes nothing."""
        ask = lambda: self._service.recommend(self._modes.aim(device_class))  # noqa: E731
        recommend = lambda: self._jobs.run(f"tuner recommend {device_class}".rstrip(), ask)  # noqa: E731
        return self._answer(recommend, render_recommendation.recommendation, format)

    @read_command("tuner why")
    def _why(
        self,
        pool: str = "",
        device_class: str = "",
        seconds: float = 10.0,
        format: Optional[str] = "plain",  # noqa: A002
    ) -> Tuple[int, str, str]:
        """Say which work waits now and what holds it, in all or of a POOL or DEVICE_CLASS, by looks SECONDS apart."""
        look = lambda: self._service.why(pool, device_class, seconds)  # noqa: E731
        given = (("pool", pool), ("device-class", device_class), ("seconds", f"{seconds:g}"))
        name = " ".join(("tuner why", *(f"--{option} {value}" for option, value in given if value)))
        return self._answer(lambda: self._jobs.run(name, look), render_why.causes, format)

    @write_command("tuner auto on")
    def _auto_on(
        self,
        mode: str = "auto",
        device_class: str = "",
        format: Optional[str] = "plain",  # noqa: A002
    ) -> Tuple[int, str, str]:
        """Keep the objectives by itself; MODE approve: each trial waits for approval; dry-run: only reports."""
        return self._answer(lambda: self._modes.switch(mode, device_class), render_automatic.modes, format)

    @write_command("tuner auto off")
    def _auto_off(
        self,
        device_class: str = "",
        format: Optional[str] = "plain",  # noqa: A002
    ) -> Tuple[int, str, str]:
        """Stop, and take back what is on trial; what was kept stays."""
        return self._answer(lambda: self._modes.switch("off", device_class), render_automatic.modes, format)

    @write_command("tuner auto pause")
    def _auto_pause(
        self,
        why: str = "",
        device_class: str = "",
        format: Optional[str] = "plain",  # noqa: A002
    ) -> Tuple[int, str, str]:
        """Take back what is on trial, and make no move until `resume`."""
        return self._answer(lambda: self._modes.tell("pause", why, device_class), render_automatic.modes, format)

    @write_command("tuner auto resume")
    def _auto_resume(
        self,
        device_class: str = "",
        format: Optional[str] = "plain",  # noqa: A002
    ) -> Tuple[int, str, str]:
        """Go on after a pause."""
        return self._answer(
            lambda: self._modes.tell("resume", device_class=device_class), render_automatic.modes, format
        )

    @write_command("tuner auto retry")
    def _auto_retry(
        self,
        device_class: str = "",
        format: Optional[str] = "plain",  # noqa: A002
    ) -> Tuple[int, str, str]:
        """Forget what failed so far, and try again."""
        return self._answer(
            lambda: self._modes.tell("retry", device_class=device_class), render_automatic.modes, format
        )

    @read_command("tuner auto explain")
    def _auto_explain(
        self,
        device_class: str = "",
        format: Optional[str] = "plain",  # noqa: A002
    ) -> Tuple[int, str, str]:
        """Say what the automatic mode is doing and why, and what it waits for; that of a DEVICE_CLASS, or all."""
        return self._answer(lambda: self._modes.document(device_class), render_automatic.modes, format)

    @write_command("tuner approve")
    def _approve(
        self,
        why: str = "",
        device_class: str = "",
        format: Optional[str] = "plain",  # noqa: A002
    ) -> Tuple[int, str, str]:
        """Approve the proposal that waits."""
        return self._answer(lambda: self._modes.tell("accept", why, device_class), render_automatic.modes, format)

    @write_command("tuner reject")
    def _reject(
        self,
        why: str = "",
        device_class: str = "",
        format: Optional[str] = "plain",  # noqa: A002
    ) -> Tuple[int, str, str]:
        """Reject the proposal that waits; another one comes after a pause."""
        return self._answer(lambda: self._modes.tell("reject", why, device_class), render_automatic.modes, format)

    @read_command("tuner book show")
    def _book_show(self, format: Optional[str] = "plain") -> Tuple[int, str, str]:  # noqa: A002
        """Say which regime holds since when and by what, the pages of the book, which is in force, and the bounds."""
        return self._answer(self._modes.books.document, render_book.book, format)

    @write_command("tuner book on")
    def _book_on(
        self,
        device_class: str = "",
        format: Optional[str] = "plain",  # noqa: A002
    ) -> Tuple[int, str, str]:
        """Switch to the page of each regime as it begins; without one, to what was there before the book."""
        return self._answer(lambda: self._modes.switch_book("on", "", device_class), render_book.book, format)

    @write_command("tuner book off")
    def _book_off(
        self,
        why: str = "",
        device_class: str = "",
        format: Optional[str] = "plain",  # noqa: A002
    ) -> Tuple[int, str, str]:
        """Stop switching, and take the book's settings back."""
        return self._answer(lambda: self._modes.switch_book("off", why, device_class), render_book.book, format)

    @write_command("tuner book pin")
    def _book_pin(self, page: int, format: Optional[str] = "plain") -> Tuple[int, str, str]:  # noqa: A002
        """Have this page hold in its regime, whatever others there are."""
        return self._answer(lambda: self._modes.books.pin(page), render_book.book, format)

    @write_command("tuner book unpin")
    def _book_unpin(self, page: int, format: Optional[str] = "plain") -> Tuple[int, str, str]:  # noqa: A002
        """Have a page that is pinned be as any other."""
        return self._answer(lambda: self._modes.books.unpin(page), render_book.book, format)

    @write_command("tuner book strike")
    def _book_strike(
        self,
        page: int,
        why: str = "",
        format: Optional[str] = "plain",  # noqa: A002
    ) -> Tuple[int, str, str]:
        """Have a page never be used again."""
        return self._answer(lambda: self._modes.books.strike(page, why), render_book.book, format)

    @write_command("tuner book restore")
    def _book_restore(
        self,
        page: int,
        why: str = "",
        format: Optional[str] = "plain",  # noqa: A002
    ) -> Tuple[int, str, str]:
        """Have a page that is struck be unvalidated again, and end what it is left out for under policies."""
        return self._answer(lambda: self._modes.books.restore(page, why), render_book.book, format)

    @write_command("tuner book copy")
    def _book_copy(self, page: int, regime: str, format: Optional[str] = "plain") -> Tuple[int, str, str]:  # noqa: A002
        """Have the settings of a page for another regime too; they are unvalidated there until a trial under it."""
        return self._answer(lambda: self._modes.books.copy(page, regime), render_book.book, format)

    @read_command("tuner book export")
    def _book_export(self, format: Optional[str] = "plain") -> Tuple[int, str, str]:  # noqa: A002
        """Print all pages as JSON, for `import` on another cluster."""
        return self._answer(self._modes.books.export, render.document, format)

    @write_command("tuner book import")
    def _book_import(
        self,
        format: Optional[str] = "plain",  # noqa: A002
        inbuf: str = "",
    ) -> Tuple[int, str, str]:
        """Take the pages of -i FILE (JSON); they are unvalidated here until a trial under their regime."""
        return self._answer(lambda: self._modes.books.take(inbuf), render_book.book, format)

    @write_command("tuner book bounds")
    def _book_bounds(
        self,
        default: Optional[bool] = False,
        format: Optional[str] = "plain",  # noqa: A002
        inbuf: str = "",
    ) -> Tuple[int, str, str]:
        """Take the bounds by which regimes are told from -i FILE (JSON), or the default ones."""
        return self._answer(lambda: self._modes.books.set_bounds(inbuf, bool(default)), render_book.book, format)

    @read_command("tuner capacity ls")
    def _capacity_ls(self, format: Optional[str] = "plain") -> Tuple[int, str, str]:  # noqa: A002
        """Show the capacity that mClock reckons with on each OSD, and whether it is believable."""
        return self._answer(self._modes.capacity.report, render_automatic.capacity_report, format)

    @write_command("tuner capacity measure")
    def _capacity_measure(
        self,
        osd: int,
        yes: Optional[bool] = False,
        format: Optional[str] = "plain",  # noqa: A002
    ) -> Tuple[int, str, str]:
        """Bench one OSD, which has to be idle or under trial; with --yes, store what was measured for it."""
        measure = lambda: self._modes.measure(osd, bool(yes))  # noqa: E731
        return self._answer(
            lambda: self._jobs.run(f"capacity measure {osd} {yes}", measure), render_automatic.capacity_measured, format
        )

    @write_command("tuner capacity measure-class")
    def _capacity_measure_class(
        self,
        device_class: str,
        yes: Optional[bool] = False,
        format: Optional[str] = "plain",  # noqa: A002
    ) -> Tuple[int, str, str]:
        """Bench some idle OSDs of a class, and show the plan to roll their capacity out; with --yes, store it."""
        measure = lambda: self._modes.measure_class(device_class, bool(yes))  # noqa: E731
        return self._answer(
            lambda: self._jobs.run(f"capacity measure-class {device_class} {yes}", measure),
            render_automatic.class_measured,
            format,
        )

    @write_command("tuner boost recovery")
    def _boost_recovery(
        self,
        until: str = "clean",
        at_most: str = "6h",
        who: str = "osd",
        keep: str = "",
        format: Optional[str] = "plain",  # noqa: A002
        inbuf: str = "",
    ) -> Tuple[int, str, str]:
        """Recover degraded objects sooner, until none are left, AT_MOST is over, or KEEP is missed."""
        return self._boost("recovery", until, at_most, keep, who, inbuf, format)

    @write_command("tuner boost backfill")
    def _boost_backfill(
        self,
        until: str = "clean",
        at_most: str = "6h",
        who: str = "osd",
        keep: str = "",
        format: Optional[str] = "plain",  # noqa: A002
        inbuf: str = "",
    ) -> Tuple[int, str, str]:
        """Move degraded and misplaced objects sooner, until none are left, AT_MOST is over, or KEEP is missed."""
        return self._boost("backfill", until, at_most, keep, who, inbuf, format)

    @write_command("tuner boost scrub")
    def _boost_scrub(
        self,
        until: str = "clean",
        at_most: str = "6h",
        who: str = "osd",
        keep: str = "",
        format: Optional[str] = "plain",  # noqa: A002
        inbuf: str = "",
    ) -> Tuple[int, str, str]:
        """Scrub PGs past their deep-scrub date sooner, until none are left, AT_MOST is over, or KEEP is missed."""
        return self._boost("scrub", until, at_most, keep, who, inbuf, format)

    @write_command("tuner boost snaptrim")
    def _boost_snaptrim(
        self,
        until: str = "clean",
        at_most: str = "6h",
        who: str = "osd",
        keep: str = "",
        format: Optional[str] = "plain",  # noqa: A002
        inbuf: str = "",
    ) -> Tuple[int, str, str]:
        """Empty the snaptrim queue sooner, until it is empty, AT_MOST is over, or KEEP is missed."""
        return self._boost("snaptrim", until, at_most, keep, who, inbuf, format)

    @read_command("tuner boost foretell")
    def _boost_foretell(
        self,
        kind: str,
        until: str = "clean",
        at_most: str = "6h",
        who: str = "osd",
        keep: str = "",
        format: Optional[str] = "plain",  # noqa: A002
        inbuf: str = "",
    ) -> Tuple[int, str, str]:
        """Say what a boost of KIND (recovery, backfill, scrub, snaptrim) would do, and what would end it. Writes nothing."""  # noqa: E501
        foretell = lambda: self._modes.boosts.foretell(kind, until, at_most, keep, who, inbuf)  # noqa: E731
        return self._answer(foretell, render_automatic.boost, format)

    @read_command("tuner boost status")
    def _boost_status(self, format: Optional[str] = "plain") -> Tuple[int, str, str]:  # noqa: A002
        """Say what is boosted, what is left, when it will be done, and what ends it."""
        return self._answer(self._modes.boosts.document, render_automatic.boost, format)

    @write_command("tuner boost cancel")
    def _boost_cancel(
        self,
        why: str = "",
        format: Optional[str] = "plain",  # noqa: A002
    ) -> Tuple[int, str, str]:
        """End the boost, and take its settings back."""
        return self._answer(lambda: self._modes.boosts.cancel(why), render_automatic.boost, format)

    def _boost(
        self, kind: str, until: str, at_most: str, keep: str, who: str, offer: str, form: Optional[str]
    ) -> Tuple[int, str, str]:
        begin = lambda: self._modes.boosts.begin(kind, until, at_most, keep, who, offer=offer)  # noqa: E731
        return self._answer(begin, render_automatic.boost, form)

    def _answer(
        self, work: Callable[[], Any], renderer: Callable[[Any], str], form: Optional[str]
    ) -> Tuple[int, str, str]:
        """Errno, output and one line for the operator."""
        try:
            document = work()
            if form in (None, "", "plain"):
                return 0, printable(renderer(printable_document(document)), lines=True), ""
            if form not in ("json", "json-pretty"):
                raise InputError("--format", str(form), "plain, json or json-pretty")
            return 0, json.dumps(document, indent=2 if form == "json-pretty" else None), ""
        except InputError as error:
            return -errno.EINVAL, "", printable(str(error))
        except RetryLater as error:
            return -errno.EAGAIN, "", printable(error.advised)
        except TunerError as error:
            return -errno.EIO, "", printable(error.advised)
        except Exception as error:
            with self._surviving("command failed"):
                raise error
            return (
                -errno.EIO,
                "",
                printable(f"internal error ({type(error).__name__}: {error}); the mgr's log has more"),
            )
        finally:
            self._report_health()

    def _keep_outcomes(self) -> None:
        """Keep what was measured after changes; a sample is not lost for it."""
        with self._surviving("what was measured after a change cannot be kept"):
            self._service.keep_outcomes()

    def _report_health(self) -> None:
        """Tell what is wrong; what of it cannot be told is told as such. Raises nothing."""
        # the sampling thread and each command tell of it: what is older must not be told last
        with self._reporting:
            self._tell_health()

    def _tell_health(self) -> None:
        fresh_checks: Dict[str, Any] = {}
        unknown: List[str] = []
        parts: Dict[str, Callable[[], Mapping[str, Any]]] = {
            "sampling and the optimiser": self._service.health,
            "the automatic mode": self._modes.health,
        }
        for part, tell in parts.items():
            with self._surviving(f"the health of {part} cannot be told", unknown):
                fresh_checks.update(health.raised(tell()))
        with self._surviving("health cannot be told"):
            checks = {**fresh_checks, **health.raised({health.UNKNOWN: unknown})}
            if checks != self._checks:
                self.set_health_checks(checks)
                self._checks = checks

    @contextlib.contextmanager
    def _surviving(self, what: str, problems: Optional[List[str]] = None) -> Iterator[None]:
        """Log whatever is raised, also by logging itself, and go on; `problems` takes a line of it."""
        try:
            yield
        except Exception as error:
            with contextlib.suppress(Exception):
                if problems is not None:
                    problems.append(f"{what} ({type(error).__name__}: {error})"[:1000])
                self.log.exception(what)

    def _get_option(self, name: str) -> Any:
        return self.get_module_option(name, DEFAULTS[name])

    def _limits(self) -> TickLimits:
        return TickLimits(*(int(self._get_option(item.name)) for item in fields(TickLimits)))


def _is_soft(hard: Optional[bool], soft: Optional[bool]) -> bool:
    if hard and soft:
        raise InputError("slo set", "both --hard and --soft", "one of them")
    return bool(soft)
