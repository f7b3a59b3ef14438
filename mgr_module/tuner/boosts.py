"""The cluster's boost put together inside the mgr, and what the commands want of it."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ceph_tuner.core.autopilot.audit_log import Audit
from ceph_tuner.core.autopilot.executor import TrialExecutor
from ceph_tuner.core.book.state import RETURNING
from ceph_tuner.core.boost.choice import BoostChoice
from ceph_tuner.core.boost.events import AT_MOST_S, Begin, Request
from ceph_tuner.core.boost.executor import BY, BoostExecutor
from ceph_tuner.core.boost.explanation import foretell
from ceph_tuner.core.boost.goals import goals_of, parse_keep
from ceph_tuner.core.boost.kinds import KINDS, Kind
from ceph_tuner.core.boost.progress import fall
from ceph_tuner.core.boost.rules import OPTION, Rule, RuleWatch, parse_rules
from ceph_tuner.core.boost.state import ENDING, OFF
from ceph_tuner.core.boost.state_machine import AS_WANTED, refusal
from ceph_tuner.core.ceph.ports import Clock
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.changes.guardian import unguarded
from ceph_tuner.core.changes.lock_owner import claim_at_work
from ceph_tuner.core.errors import CommandFailed, InputError, Locked, RetryLater, Stopped, TunerError
from ceph_tuner.core.hours import DAY_S
from ceph_tuner.core.measure.sample import at_work, is_fresh
from ceph_tuner.core.moments import duration_s, utc

from .announce import Announcer
from .automatic import OPERATOR, new_hands, on_trial_elsewhere
from .boost_driver import BoostDriver
from .boost_log import TRAIL, BoostLog
from .boost_lookout import BoostLookout
from .boost_settings import BoostSettings
from .changes import NewLock, own_lock
from .inbox import Inbox
from .lookout import BOOK, BOOST
from .options import PolicyOptions
from .pulse import Pulse
from .regime_watch import RegimeWatch
from .service import STATUS_WINDOW_S, Service

UNTIL = "clean"
SEEN_BEFORE_S = 3600.0
"""How far back it is looked whether the work became less."""


class Boosts:
    """Composition, and the commands."""

    def __init__(
        self,
        mgr: Any,
        service: Service,
        executors: Dict[str, TrialExecutor[Any]],
        regimes: RegimeWatch,
        clock: Optional[Clock] = None,
        new_lock: NewLock = own_lock,
    ) -> None:
        """`mgr` is the module; `executors` has those of the automatic modes, the boost's is added."""
        clock = clock or SystemClock()
        self._service, self._executors, self._now = service, executors, clock.now
        options = PolicyOptions(service.option)
        aim = service.aim()
        who = f"{service.who}{BY}"
        pulse = Pulse()
        self._lookout = BoostLookout(mgr, service, aim, options.read, clock.now, clock.monotonic)
        self._settings = BoostSettings(service, executors, regimes, self._lookout.overdue_s)
        self._aim = aim
        logbook = self._logbook = BoostLog(
            Audit(service.store, TRAIL), Announcer(mgr, mgr.log), service.history, who, mgr.log, self._share
        )
        executor = executors[BOOST] = BoostExecutor(
            service.store,
            partial(new_hands, service, clock, new_lock, pulse, who, who),
            logbook,
            (self._lookout,),
            clock,
            options.read,
            partial(on_trial_elsewhere, executors, BOOST),
        )
        self.driver = BoostDriver(executor, self._lookout, logbook, pulse, Inbox(), options.read, mgr.log, clock.now)
        self.driver.lookout = self._lookout
        self._rules: Optional[RuleWatch] = None
        """None: before the state was read."""
        self._last: Mapping[str, Any] = {}
        """What came of the last boost that the rules know of."""
        self._rule_problem = self._rules_problem = ""
        """Why a rule began none, and why no rule can: they cannot be read."""
        self._refusals: Dict[str, str] = {}
        """Work -> why its rule began no boost, until none of it is left."""

    def begin(
        self,
        kind: str,
        until: str = UNTIL,
        at_most: str = "",
        keep: str = "",
        who: str = "osd",
        by: str = OPERATOR,
        offer: str = "",
    ) -> Dict[str, Any]:
        """Begin a boost. Raises InputError for what makes no sense, RetryLater where now is not the moment.

        `offer`: what the twin offers, as JSON.
        """
        return self._begin(kind, _at_most_s(until, at_most), keep, who, by, offer)

    def foretell(
        self, kind: str, until: str = UNTIL, at_most: str = "", keep: str = "", who: str = "osd", offer: str = ""
    ) -> Dict[str, Any]:
        """Only say what a boost would do. Raises as `begin`.

        A command of its own: Ceph drops an option that the plugin does not know, and an older one would begin.
        """
        return self._foretold(*self._prepared(kind, _at_most_s(until, at_most), keep, who, OPERATOR, offer))

    def _begin(self, kind: str, at_most_s: float, keep: str, who: str, by: str, offer: str = "") -> Dict[str, Any]:
        event, _ = self._prepared(kind, at_most_s, keep, who, by, offer)
        self.driver.begin(event)
        return self.document()

    def _prepared(
        self, kind: str, at_most_s: float, keep: str, who: str, by: str, offer: str
    ) -> Tuple[Begin, BoostChoice]:
        """All that a boost begins with; nothing is written. Raises as `begin`."""
        request = Request(kind, at_most_s, target=who, by=by)
        self.driver.refuse(refusal(self.driver.state, kind))
        self._refuse_by_calendar(kind)
        self._refuse_trial()
        self._refuse_tuner()
        means = self._means(request)
        self._refuse_now(kind)
        objectives = parse_keep(keep, means)
        request = Request(kind, request.at_most_s, tuple(each.text for each in objectives), who, by)
        offered = self._settings.offered(offer, request, self._now()) if offer else None
        choice = self._settings.choose(request, means, self._now(), offered)
        rate = self._rate_before(KINDS[kind], means)
        event = Begin(self._now(), request, choice.settings, choice.grounds, means, rate, choice.forecast)
        return event, choice

    def _foretold(self, event: Begin, choice: BoostChoice) -> Dict[str, Any]:
        """What a boost would do, and what would let it go. Raises InputError where it cannot be written."""
        request, kind = event.request, KINDS[event.request.kind]
        goals = goals_of(request.keep, self._service.absolute_slo())
        ends_at = event.at + request.at_most_s
        forbidden = self._forbidden_before(ends_at, kind.name)
        remainder, ahead = kind.left_in(event.baseline), self._lookout.obstacles(kind.name)
        return {
            "dry_run": True,
            "request": request.to_dict(),
            "settings": dict(event.settings),
            "grounds": event.grounds,
            "basis": choice.basis,
            "in_force": dict(choice.in_force),
            "forecast": dict(event.forecast),
            "baseline": dict(event.baseline),
            "objectives": [each.to_dict() for each in goals.objectives] if goals else [],
            "commands": self._service.changes().commands(request.target, dict(event.settings)),
            "left": remainder,
            "rate_before": event.rate_before,
            "done_within_s": remainder / event.rate_before if remainder and event.rate_before else None,
            "ends_at": ends_at,
            "words": foretell(event, [each.text for each in goals.objectives] if goals else [], forbidden, ahead),
            "obstacles": ahead.words,
            "notes": [],
        }

    def by_rule(self) -> None:
        """Begin what a rule of the options wants; called every few seconds. Raises what the cluster does."""
        sample = self._aim.latest()
        if sample is None or not self.driver.started:
            return
        state = self.driver.state
        watch = self._rules
        if watch is None:
            watch = RuleWatch.after_boosts((*self._logbook.outcomes(), state.last))
        elif state.last != self._last:
            # it may have begun and ended since the last call
            watch = watch.ended(state.last)
        self._last = state.last
        self._rules = watch.after(sample.at, sample.values)
        self._refusals = {kind: why for kind, why in self._refusals.items() if kind in self._rules.spent}
        if state.phase != OFF:
            # how it ends says whether a rule may begin another: that is known before its settings are taken back
            return
        try:
            rules = parse_rules(str(self._service.option(OPTION)))
        except InputError as error:
            words = f"no boost begins by itself: {error}" if self._rules_are_stored() else ""
            self._rule_problem = self._rules_problem = words
            return
        rule, silent = self._rules.due(rules, sample.at), self._rules.silent(rules, sample.at)
        self._rule_problem = self._rules_problem = ""
        if (rule is None and not silent) or not self._rules_are_stored():
            return
        if rule is not None:
            self._follow(rule, self._rules)
            return
        kind = silent[0].kind
        spent = f"the rule of {kind} begins no other boost until none of this work is left"
        self._rule_problem = self._refusals.get(kind, spent)

    def _rules_are_stored(self) -> bool:
        """Whether the option is set: a mgr is not told that one was removed, and shows it until it ends."""
        return any(entry.name == f"mgr/tuner/{OPTION}" for entry in self._service.config.dump())

    def _follow(self, rule: Rule, watch: RuleWatch) -> None:
        """Begin what a rule wants. Whatever comes of it, the same work has no second boost."""
        try:
            self._refuse_rule()
            self._begin(rule.kind, rule.at_most_s, rule.keep, "osd", rule.by)
        except RetryLater as error:
            self._rule_problem = f"the rule of {rule.kind} waits: {error}"
            return
        except CommandFailed:
            # before it was begun: what it ends with is in its state
            raise
        except InputError as error:
            # it would be refused for ever
            self._rule_problem = f"the rule of {rule.kind} began no boost: {error}"
        except Stopped as error:
            self._rule_problem = f"the rule of {rule.kind}: {error}"
        self._refusals = {**self._refusals, rule.kind: self._rule_problem} if self._rule_problem else self._refusals
        self._rules = watch.fired(rule.kind)

    def cancel(self, why: str = "") -> Dict[str, Any]:
        """End the boost, and take its settings back. Raises InputError where there is none."""
        self.driver.cancel(OPERATOR, why)
        return self.document()

    def give_way(self, what: str) -> List[int]:
        """Take the boost back for an operator's own work on the settings; give its changes. Raises Stopped."""
        changes = list(self.driver.state.changes)
        if self.driver.state.phase == OFF:
            return []
        with contextlib.suppress(InputError):
            # it may have ended by itself meanwhile
            self.driver.cancel(OPERATOR, what)
        if self.driver.state.on_cluster:
            raise Stopped(self.driver.state.problem or "the boost is not taken back yet", "try again")
        return changes

    def document(self) -> Dict[str, Any]:
        """What it does, what is left, when it will be done."""
        is_on = self.driver.state.phase != OFF
        open_trial = unguarded(self._service.store, self._now()) if is_on else ""
        notes = [note for note in (open_trial, self._policy_ahead(), self._rule_problem) if note]
        return {**self.driver.document(), "notes": notes}

    def health(self) -> Dict[str, List[str]]:
        """Health checks of the boost that is on, and of one that nobody wanted to end, for a day."""
        state, checks = self.driver.state, {}
        if state.phase == OFF:
            last, end = state.last, float(state.last.get("ended") or 0.0)
            if last and last.get("rule") not in AS_WANTED and abs(self._now() - end) < DAY_S:
                checks["TUNER_BOOST_ENDED"] = [f"boost of {last.get('kind')}, {utc(end)}: {last.get('why')}"]
            if self._rules_problem:
                checks["TUNER_OPTION_WRONG"] = [self._rules_problem]
            return checks
        stuck = state.problem if state.phase == ENDING else ""
        problems = [problem for problem in (stuck, self.driver.problem) if problem]
        return {"TUNER_STOPPED": [f"boost: {problem}" for problem in problems]} if problems else {}

    def exported(self) -> Mapping[str, Any]:
        """What of it goes to Prometheus."""
        document = self.driver.document()
        request, finish = document["request"], document["finish"]
        return {
            "kind": request["kind"] if request else "",
            "left_s": max(document["ends_at"] - self._now(), 0.0) if request else None,
            "finish_s": max(finish["expected"] - self._now(), 0.0) if finish and finish["expected"] else None,
        }

    def _refuse_by_calendar(self, kind: str) -> None:
        refusal = self._service.slos.boost_refusal(kind)
        if refusal:
            raise RetryLater(refusal, "`ceph tuner slo ls` shows the calendar; else try again then")

    def _forbidden_before(self, at: float, kind: str) -> str:
        """Which policy of the calendar lets a boost run no more before then, in words; empty where none does."""
        policy, begins = self._service.slos.boost_forbidden_at(kind)
        return f"ends at {utc(begins)}, as the policy {policy} begins" if begins and begins < at else ""

    def _policy_ahead(self) -> str:
        """Which policy of the calendar will end the boost that is on, in words."""
        state = self.driver.state
        with contextlib.suppress(TunerError):
            # a status is told also while the objectives cannot be read
            return self._forbidden_before(state.ends_at, state.request.kind) if state.request else ""
        return ""

    def _refuse_now(self, kind: str) -> None:
        """Where the work cannot go on, where the guard would end the boost, and where nobody knows what is left."""
        refusal = self._lookout.refusal(kind)
        if refusal:
            raise RetryLater(refusal, "try again once that is over")

    def _refuse_rule(self) -> None:
        error = self._lookout.error()
        if error:
            raise RetryLater(error, "")

    def _refuse_trial(self) -> None:
        for name, executor in list(self._executors.items()):
            if name.startswith(BOOK) and executor.state.phase == RETURNING:
                why = executor.state.problem
                raise RetryLater(f"the book's settings are not taken back yet{f': {why}' if why else ''}", "try again")
            if name.startswith(BOOK) and executor.state.on_cluster:
                raise RetryLater(
                    "the guard watches a switch of the book, and a boost waits for nobody",
                    "`ceph tuner book off` takes the page back at once; else try again when it holds",
                )
            if name != BOOST and executor.state.on_cluster:
                numbers = ", ".join(map(str, executor.state.changes)) or "being written"
                raise RetryLater(
                    f"the automatic mode has settings on trial (changes {numbers}), and a boost waits for nobody",
                    "`ceph tuner auto pause` takes them back at once; else try again when the trial is over",
                )

    def _refuse_tuner(self) -> None:
        """Before anything is noted: a look alone, as the lock itself is asked when the settings are written."""
        if self.driver.state.phase != OFF:
            # the claim is the boost's own
            return
        claim = claim_at_work(self._service.store, self._now())
        if claim is not None:
            raise Locked(f"another tuner is at work on this cluster: {claim.words}")

    def _means(self, request: Request) -> Dict[str, float]:
        """The last minute, with what is left now. Raises RetryLater where there is nothing to boost, or no sample."""
        kind, sample, window = KINDS[request.kind], self._aim.latest(), self._aim.window(STATUS_WINDOW_S)
        fresh = sample is not None and is_fresh(sample.at, self._now(), self._lookout.overdue_s())
        remainder = kind.left_in(sample.values) if sample is not None and fresh else None
        if sample is None or window is None or remainder is None:
            raise RetryLater(f"it is not known yet how many {kind.what} there are: no sample has told")
        if remainder == 0:
            remedy = (
                "see `ceph -s`" if kind.mended else "PGs are counted once a minute: what has just come is known then"
            )
            raise RetryLater(f"there is nothing to boost: no {kind.what} are left", remedy)
        return {**at_work(window.means), **{name: sample.values[name] for name in kind.left}}

    def _rate_before(self, kind: Kind, means: Mapping[str, float]) -> Optional[float]:
        """What becomes less in a second: by its rates while at work, else as it was seen to since the last boost.

        What is left falls for other reasons as well, so where there are rates these alone tell.
        """
        if kind.mended:
            return self._rate_at_work(kind)
        remainder, now = kind.left_in(means), self._now()
        if remainder is None:
            return None
        since = max(float(self.driver.state.last.get("ended") or 0.0), now - SEEN_BEFORE_S)
        windows = [window for window in self._service.history().windows(now, since) if since <= window.start]
        seen = [(window.end, kind.left_in(window.means)) for window in windows if window.end < now]
        return fall([*((at, left) for at, left in seen if left is not None), (now, remainder)])

    def _rate_at_work(self, kind: Kind) -> Optional[float]:
        """Of the last minute, since the work began in it; None where it began just now, or is at work no more."""
        newest = self._aim.latest()
        if newest is None:
            return None
        quarter_s = STATUS_WINDOW_S / 4
        edges = [newest.at - STATUS_WINDOW_S + quarter_s * number for number in range(5)]
        quarters = [(start, self._aim.between(start, end)) for start, end in zip(edges, edges[1:])]
        rates = [(start, kind.rate_in(window.means)) for start, window in quarters if window is not None]
        if not rates or rates[-1][1] is None:
            return None
        begun = next(number for number, (_, rate) in enumerate(rates) if rate is not None)
        # it began within that quarter, unless that is the first one
        rates = rates[begun + 1 :] if begun else rates
        window = self._aim.between(rates[0][0], newest.at) if rates else None
        return kind.rate_in(window.means) if window is not None else None

    def _share(self) -> float:
        """How much of the work is done."""
        state = self.driver.state
        kind = KINDS[state.request.kind] if state.request is not None else None
        before = kind.left_in(state.baseline) if kind is not None else None
        remainder = kind.left_in(self._lookout.means) if kind is not None else None
        return 1.0 - min(remainder / before, 1.0) if before and remainder is not None else 0.0


def _at_most_s(until: str, at_most: str) -> float:
    """How long a boost may last, as a command says it. Raises InputError."""
    if until != UNTIL:
        raise InputError("--until", until, UNTIL)
    return duration_s(at_most, "--at-most") if at_most else AT_MOST_S
