"""Carries out what the state machine decides: remembers first, then acts, and tells it what came of it.

Everything outside is behind a port, so that the same executor works inside the mgr on a real cluster and on the twin.
"""

from __future__ import annotations

import contextlib
import functools
import json
from typing import (
    Any,
    Callable,
    Collection,
    Dict,
    Generic,
    List,
    Mapping,
    Optional,
    Protocol,
    Sequence,
    Tuple,
    TypeVar,
)

from ceph_tuner.core.autopilot.events import (
    Act,
    Answered,
    Ask,
    Keep,
    Kept,
    Learn,
    Note,
    Started,
    TakeBack,
    TakeBackFailed,
    TookBack,
    Write,
    WriteFailed,
    Wrote,
)
from ceph_tuner.core.autopilot.policy import Policy
from ceph_tuner.core.autopilot.state import OFF, AutopilotState
from ceph_tuner.core.autopilot.state_machine import decide
from ceph_tuner.core.bounded import MISREAD, read_json
from ceph_tuner.core.ceph.ports import Clock, Store
from ceph_tuner.core.ceph.stored_document import unknown_in, versioned
from ceph_tuner.core.changes.applier import Applier, Undone
from ceph_tuner.core.changes.journal import APPLIED, UNDONE, Entry
from ceph_tuner.core.changes.lock import Lock
from ceph_tuner.core.errors import Locked, Stopped, TunerError
from ceph_tuner.core.goals.guard import Breach

KEY = "auto/state"


class Working(Protocol):
    """A state machine's state, as far as its executor reads it."""

    @property
    def phase(self) -> str:
        """Where it is."""

    @property
    def changes(self) -> Tuple[int, ...]:
        """Journal numbers of what is on the cluster."""

    @property
    def on_cluster(self) -> bool:
        """Whether something of it may be on the cluster."""

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, for the store."""


S = TypeVar("S", bound=Working)
S_co = TypeVar("S_co", covariant=True)


class Decided(Protocol[S_co]):
    """What a state machine decides: the last act alone has an outcome."""

    @property
    def state(self) -> S_co:
        """The next state."""

    @property
    def acts(self) -> Tuple[Act, ...]:
        """What is to be done, in order."""


class Logbook(Protocol):
    """Keeps what is done and what came of it. What it raises a TunerError for is told again with the next event."""

    def remember(self) -> None:
        """Read what happened before this process began."""

    def note(self, note: Note, at: float) -> None:
        """Put it into the audit trail, then tell whoever watches."""

    def came_of(self, outcome: Any) -> None:
        """Put into the trail what came of the act that was noted last."""

    def learn(self, result: Learn, at: float) -> None:
        """Keep a trial's result for the optimiser."""


class TrialProposer(Protocol):
    """Proposes settings."""

    def start(self, state: Any, policy: Policy) -> None:
        """Begin to; the answer comes to `Executor.handle` later. Raises TunerError where it cannot."""


class TrialGuard(Protocol):
    """Watches over what is on trial."""

    def watch(self, state: Any) -> None:
        """Begin before something is written; end once (`on_cluster` of the state is false) nothing is on trial."""


def nobody() -> Collection[int]:
    """No change is on trial but one's own."""
    return ()


class TrialExecutor(Generic[S]):
    """Carries out the acts of one state machine, and has its state. Called by one thread only."""

    def __init__(
        self,
        initial: S,
        read_state: Callable[[Mapping[str, Any]], S],
        decide_next: Callable[[S, Any, Policy], Decided[S]],
        store: Store,
        hands: Callable[[], Tuple[Applier, Lock]],
        logbook: Logbook,
        optimiser: Optional[TrialProposer],
        guards: Sequence[TrialGuard],
        clock: Clock,
        policy: Callable[[], Policy],
        key: str,
        elsewhere: Callable[[], Collection[int]] = nobody,
    ) -> None:
        """`hands` makes an applier with the lock that it writes under, anew for each trial.

        `key` is where the state lies in the store. `elsewhere`: changes that others in this process have on trial.
        """
        self._initial, self._read_state, self._decide = initial, read_state, decide_next
        self._store, self._new_hands, self._clock = store, hands, clock
        self._logbook, self._optimiser, self._guards = logbook, optimiser, guards
        self._policy, self._key, self._elsewhere = policy, key, elsewhere
        self.state = initial
        self._stored = ""
        self._beside: Dict[str, Any] = {}
        """What another version stored beside the state."""
        self._hands: Optional[Tuple[Applier, Lock]] = None
        self._guarded = False
        self._untold: List[Callable[[], None]] = []
        self._end_write: Optional[Breach] = None

    def start(self) -> None:
        """Read the state and take back what a mgr that is gone left. Raises TunerError; call it again then."""
        self._logbook.remember()
        self.state, damage = self._read()
        applier, lock = self._new_hands()
        others = self._elsewhere()
        ours = [entry for entry in applier.leftover() if entry.number not in others and self._is_ours(entry)]
        undone: Sequence[Undone] = ()
        problem = ""
        if ours:
            with lock:
                try:
                    undone = applier.recover()
                except Locked:
                    raise
                except TunerError as error:
                    problem = f"what another mgr left cannot be taken back: {error}"
        kept_number = self._permanent_change(applier.history())
        if damage:
            self._remember(self.state)
            self._do(Note("stopped", f"{damage}: switched off"))
        taken_back = tuple(undo.entry.number for undo in undone)
        if taken_back or problem or kept_number is not None or self.state.phase != self._initial.phase:
            drift = tuple(str(item) for undo in undone for item in undo.drift)
            self.handle(Started(self._clock.now(), taken_back, kept_number, problem, drift))

    def end_write(self, breach: Breach) -> None:
        """End what `handle` writes just now, and take back what it did. Any thread may call it."""
        self._end_write = breach

    def _check(self) -> None:
        if self._end_write is not None:
            raise Stopped(f"{self._end_write.reason} (while it was written)", "")

    def handle(self, event: Any) -> None:
        """Take an event: decide, carry that out, and go on with what came of it."""
        self._end_write = None
        self._tell()
        outcome: Any = event
        while outcome is not None:
            decision = self._decide(self.state, outcome, self._policy())
            outcome = self._carry_out(decision)
        if not self.state.on_cluster:
            self._let_go()

    def _carry_out(self, decision: Decided[S]) -> Any:
        """Remember the state, then act; give what came of the act that has an outcome."""
        try:
            self._remember(decision.state)
        except TunerError:
            if not any(isinstance(act, TakeBack) for act in decision.acts):
                raise
            # taking back waits for nothing: the journal has what is on trial, and the next look remembers
            self.state = decision.state
        outcome: Any = None
        for act in decision.acts:
            outcome = self._do(act)
        if outcome is not None:
            self._tell(functools.partial(self._logbook.came_of, outcome))
        return outcome

    def _do(self, act: Act) -> Any:
        now = self._clock.now()
        if isinstance(act, Note):
            self._tell(functools.partial(self._logbook.note, act, now))
        elif isinstance(act, Learn):
            self._tell(functools.partial(self._logbook.learn, act, now))
        elif isinstance(act, Ask) and self._optimiser is not None:
            try:
                self._optimiser.start(self.state, self._policy())
            except TunerError as error:
                return Answered(now, refused=f"the optimiser cannot be asked: {error}")
        elif isinstance(act, Write):
            return self._write(act)
        elif isinstance(act, TakeBack):
            return self._take_back(act)
        elif isinstance(act, Keep):
            return self._keep(act)
        return None

    def _tell(self, call: Optional[Callable[[], None]] = None) -> None:
        """Tell the logbook, in order. An audit trail that cannot be written delays no taking back."""
        self._untold += [call] if call is not None else []
        with contextlib.suppress(TunerError):
            while self._untold:
                self._untold[0]()
                del self._untold[0]

    def _write(self, act: Write) -> Any:
        numbers: List[int] = []
        if self._untold:
            return WriteFailed(self._clock.now(), "the audit trail cannot be written: nothing is tried without it")
        try:
            applier = self._take_hold()
        except TunerError as error:
            return WriteFailed(self._clock.now(), str(error), busy=isinstance(error, Locked), untouched=True)
        try:
            for target in act.targets:
                _, entry = applier.plan_and_apply(target, act.settings, act.why, True, self._check, act.forecast)
                if entry is not None:
                    numbers.append(entry.number)
            self._undo(applier, act.replaces)
            if act.replaces:
                # entries of somebody else that the narrower ones had outranked decide again: this refuses them
                for target in act.targets:
                    applier.plan(target, act.settings)
        except TunerError as error:
            rule = self._end_write.rule if self._end_write is not None else ""
            return WriteFailed(self._clock.now(), str(error), tuple(numbers), isinstance(error, Locked), rule)
        return Wrote(self._clock.now(), tuple(numbers))

    def _take_back(self, act: TakeBack) -> Any:
        had_lock = self._hands is not None
        try:
            try:
                drift = self._return(act.numbers)
            except Locked:
                # a lock that was lost is no reason to wait for the next look: with a new one we are told who has it
                self._let_go()
                if not had_lock:
                    raise
                drift = self._return(act.numbers)
        except TunerError as error:
            return TakeBackFailed(self._clock.now(), str(error), isinstance(error, Locked))
        return TookBack(self._clock.now(), drift)

    def _return(self, numbers: Sequence[int]) -> Tuple[str, ...]:
        """Take back these changes and every trial; give what was left because others had changed it."""
        applier = self._take_hold()
        # what a failed write or a lost lock left half done comes first
        drift = tuple(str(item) for undo in applier.recover() for item in undo.drift)
        # a write that failed after its last step, or whose number could not be remembered, is in force as well
        trials = [entry.number for entry in applier.history() if entry.trial and entry.state == APPLIED]
        return drift + self._undo(applier, sorted({*numbers, *trials}))

    def _keep(self, act: Keep) -> Any:
        try:
            applier = self._take_hold()
            applier.keep(_entry(applier, act.number))
        except TunerError as error:
            return WriteFailed(self._clock.now(), str(error))
        return Kept(self._clock.now(), act.number)

    def _undo(self, applier: Applier, numbers: Sequence[int]) -> Tuple[str, ...]:
        """Take changes back, newest first; give what was left because others had changed it."""
        drift: List[str] = []
        entries = {entry.number: entry for entry in applier.history()}
        for number in sorted(numbers, reverse=True):
            # the journal forgets only what was taken back: by whoever had the lock while ours was lost
            if number in entries and entries[number].state != UNDONE:
                drift += map(str, applier.undo_entry(entries[number]).drift)
        return tuple(drift)

    def _take_hold(self) -> Applier:
        """Hold the lock for as long as something is on trial: nobody else takes it for a dead one's."""
        if self._hands is None:
            applier, lock = self._new_hands()
            lock.__enter__()
            self._hands = applier, lock
        if not self._guarded:
            self._guarded = True
            self._tell_guards()
        return self._hands[0]

    def _let_go(self) -> None:
        if self._hands is not None:
            (_, lock), self._hands = self._hands, None
            with contextlib.suppress(TunerError):
                # a claim that cannot be withdrawn now ends by itself
                lock.__exit__()
        if self._guarded and not self.state.on_cluster:
            self._guarded = False
            self._tell_guards()

    def _tell_guards(self) -> None:
        for guard in self._guards:
            guard.watch(self.state)

    def _remember(self, state: S) -> None:
        text = json.dumps(versioned(state.to_dict(), self._beside), sort_keys=True)
        if text != self._stored:
            self._store.set(self._key, text)
            self._stored = text
        self.state = state

    def _read(self) -> Tuple[S, str]:
        """Give the stored state, and what is wrong with it."""
        text = self._store.get(self._key)
        if text is None:
            return self._initial, ""
        try:
            document = read_json(text, self._key)
            state = self._read_state(document)
        except MISREAD as error:
            return self._initial, f"the stored state ({self._key}) cannot be read ({error})"
        self._stored, self._beside = text, unknown_in(document, state.to_dict())
        return state, ""

    def _is_ours(self, entry: Entry) -> bool:
        return self.state.on_cluster

    def _permanent_change(self, entries: Sequence[Entry]) -> Optional[int]:
        """Number of a change that was made permanent just before the mgr died."""
        last = self.state.changes[-1:]
        numbers = [entry.number for entry in entries if entry.number in last and entry.state == APPLIED]
        return numbers[0] if numbers and not any(entry.trial for entry in entries if entry.number in last) else None


class Executor(TrialExecutor[AutopilotState]):
    """Of an automatic mode."""

    def __init__(
        self,
        store: Store,
        hands: Callable[[], Tuple[Applier, Lock]],
        logbook: Logbook,
        optimiser: TrialProposer,
        guards: Sequence[TrialGuard],
        clock: Clock,
        policy: Callable[[], Policy],
        who: str,
        key: str = KEY,
        elsewhere: Callable[[], Collection[int]] = nobody,
    ) -> None:
        """As `TrialExecutor`; `who` is this mgr's plugin, whose leftovers are the mode's whatever the state says."""
        self._who = who
        super().__init__(
            AutopilotState(),
            AutopilotState.from_dict,
            decide,
            store,
            hands,
            logbook,
            optimiser,
            guards,
            clock,
            policy,
            key,
            elsewhere,
        )

    def _is_ours(self, entry: Entry) -> bool:
        return super()._is_ours(entry) or self.state.mode != OFF or entry.who.startswith(self._who)


def _entry(applier: Applier, number: int) -> Entry:
    entries = [entry for entry in applier.history() if entry.number == number]
    if not entries:
        raise TunerError(f"change {number} is no longer in the journal")
    return entries[0]
