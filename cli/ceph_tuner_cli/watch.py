"""`ceph-tuner watch`: a live view of rates, objectives, queues and the trial under way."""

from __future__ import annotations

from collections import deque
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, ContextManager, Deque, Dict, List, Optional, Tuple, TypeVar, Union

import typer
from rich.console import RenderableType
from rich.live import Live

from ceph_tuner.cluster import Cluster
from ceph_tuner.cluster.sampler import ClusterSampler
from ceph_tuner.core.boost.executor import BY
from ceph_tuner.core.ceph.commands import parsed
from ceph_tuner.core.changes.journal import Entry, Journal
from ceph_tuner.core.errors import ClusterTimeout, CommandFailed, InputError, PermissionRefused, RetryLater, TunerError
from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.goals.slo_calendar import SloCalendar
from ceph_tuner.core.goals.stored_slo import stored_calendar, stored_judge
from ceph_tuner.core.measure.metrics import Scope
from ceph_tuner.core.measure.sample import Sample, window_of
from ceph_tuner.core.moments import utc
from ceph_tuner.files import slo_file
from ceph_tuner_cli.boost import STATUS
from ceph_tuner_cli.cluster_option import AnyClusterOption
from ceph_tuner_cli.from_option import FromOption, cluster_or_state
from ceph_tuner_cli.prefix_option import open_cluster
from ceph_tuner_cli.render import Format, FormatOption, console, emit, say, working
from ceph_tuner_cli.watch_page import WIDTH, Moment, page

LONGEST_S = 50.0
"""Between two looks, which take time as well: counters more than 60 s apart are not compared (`counters.Meter`)."""
PATIENCE_S = 60.0
"""With the first look: a mgr that fails over says nothing for up to 35 s. A command under way comes to its end."""
MANY_LINES = 200
AGAIN_S = 2.0

T = TypeVar("T")
Wanted = Union[Slo, SloCalendar]


def watch(
    cluster: Optional[str] = AnyClusterOption,
    state: Optional[Path] = FromOption,
    slo: Optional[Path] = typer.Option(None, "--slo", help="An SLO file; by default the objectives in the cluster."),
    interval: float = typer.Option(5.0, "--interval", "-n", min=1, max=LONGEST_S, help="Seconds between two looks."),
    window: float = typer.Option(30.0, "--window", min=1, max=3600, help="Seconds that the means are of."),
    once: bool = typer.Option(False, "--once", help="Look once and end; for scripts, with --format."),
    form: Format = FormatOption,
) -> int:
    """Show rates against objectives, queues, the trial under way, and when recovery, scrub and snaptrim are done."""
    given_slo = _by_the_clock(slo) if slo else None
    if state is not None and not once:
        raise InputError("--from", "no --once", "one look: a file has two samples, and no more")
    with cluster_or_state(cluster, state, lambda name: open_cluster(name)) as connection:
        if once or form is not Format.table:
            # a file is as it is, however long one waits
            take = _first_look if state is None else ClusterView
            view = take(connection, given_slo, window)
            with working(f"{connection.name}: looking for {interval:g} s"):
                connection.clock.sleep(interval)
                moment = view.look()
            if not moment.seconds and state is not None:
                raise InputError(str(state), "; ".join(["no two samples", *moment.notes]), "a state gathered anew")
            if not moment.seconds:
                problem = "; ".join([f"{connection.name} gave no sample within {interval:g} s", *moment.notes])
                raise RetryLater(problem, "try again with a longer --interval")
            emit(moment.to_dict(), form, lambda: _whole(moment))
            return 0
        # Ctrl-C is how one leaves it
        with suppress(KeyboardInterrupt):
            _follow(_first_look(connection, given_slo, window), connection, interval)
    return 0


def _by_the_clock(path: Path) -> Wanted:
    """The objectives of a file, by its calendar where it has one."""
    entry = slo_file.read(path)
    return entry.calendar or entry.slo


def _first_look(connection: Cluster, slo: Optional[Wanted], window: float) -> ClusterView:
    """Wait for a cluster that cannot be looked at just now, as in a failover of its mgr. Raises TunerError."""
    end, words = connection.clock.monotonic() + PATIENCE_S, ""
    with working(f"{connection.name}: first look") as tell:
        while True:
            view = _view_or_fault(connection, slo, window)
            if isinstance(view, ClusterView):
                return view
            remaining_s = end - connection.clock.monotonic()
            if remaining_s <= 0:
                break
            tell(f"{connection.name}: waiting until it can be looked at")
            if str(view) != words:
                words = str(view)
                say(
                    [
                        f"{connection.name} cannot be looked at yet: {words}; "
                        f"waiting for {remaining_s:.0f} s more at most"
                    ]
                )
            connection.clock.sleep(min(AGAIN_S, remaining_s))
    if isinstance(view, CommandFailed):
        # it answers, and refuses
        raise view
    raise RetryLater(
        f"{connection.name} could not be looked at for {PATIENCE_S:g} s: {view}",
        "see by `ceph -s` whether the monitors answer and a mgr is active, then try again",
    ) from view


def _view_or_fault(connection: Cluster, slo: Optional[Wanted], window: float) -> Union[ClusterView, TunerError]:
    try:
        return ClusterView(connection, slo, window)
    except (RetryLater, CommandFailed) as fault:
        return fault


def _follow(view: ClusterView, connection: Cluster, interval: float) -> None:
    """Look again and again: on a terminal in place, elsewhere one page after the other."""
    place: ContextManager[Optional[Live]] = nullcontext()
    if console.is_terminal:
        place = Live(_on(view.moment), console=console, screen=True, auto_refresh=False)
    with place as live:
        while True:
            connection.clock.sleep(interval)
            moment = view.look()
            if live is None:
                console.print(_whole(moment), width=max(WIDTH, console.width))
                console.print()
            else:
                live.update(_on(moment), refresh=True)


def _whole(moment: Moment) -> RenderableType:
    """The page with all that it has to say, however long."""
    return page(moment, MANY_LINES, max(WIDTH, console.width))


def _on(moment: Moment) -> RenderableType:
    """The page on this terminal."""
    return page(moment, console.height, max(WIDTH, console.width))


class ClusterView:
    """Looks at a cluster, and keeps what the page needs."""

    def __init__(self, connection: Cluster, slo: Optional[Wanted], window: float) -> None:
        """Take the first look, which has nothing to compare with."""
        self._opened, self._slo, self._window = connection, slo, window
        self._refused: List[str] = []
        none: Tuple[Scope, ...] = ()
        scopes = self._or_note("objectives", self._scopes, none)
        self._sampler = ClusterSampler(connection.commander, connection.clock, scopes)
        self._samples: Deque[Sample] = deque()
        self._seen_at: Optional[float] = None
        self.moment = Moment(connection.name, connection.version, connection.clock.now())
        self._sampler.sample()

    def look(self) -> Moment:
        """Look now; what does not answer becomes a note, and the page keeps what was seen in the window before."""
        self._refused.clear()
        self.moment = replace(self.moment, at=self._opened.clock.now(), notes=())
        while self._samples and self._samples[0].at < self.moment.at - self._window:
            self._samples.popleft()
        try:
            sample = self._sampler.sample()
            if sample is not None:
                while self._samples and self._samples[-1].at >= sample.at:
                    # of a clock that was ahead
                    self._samples.pop()
                self._samples.append(sample)
            wanted = self._or_note("objectives", self._wanted, None)
            slo = self._now_of(wanted)
            self.moment = replace(
                self.moment,
                judge=self._or_note("objectives", lambda: self._judge(slo), Judge(slo)),
                policy=self._policy(wanted),
                trial=self._or_note("the automatic mode", self._automatic, None),
                boost=self._or_note("the boost", self._boost, None),
                on_trial=self._or_note("the journal", self._on_trial, ()),
            )
        except (RetryLater, CommandFailed, PermissionRefused) as fault:
            self.moment = replace(self.moment, notes=(str(fault),))
        return self._window_moment()

    def _or_note(self, what: str, ask: Callable[[], T], otherwise: T) -> T:
        """What the key's capabilities allow to see; what they do not is a note of this look."""
        try:
            return ask()
        except PermissionRefused as refusal:
            self._refused.append(f"{what}: not seen ({refusal})")
            return otherwise

    def _window_moment(self) -> Moment:
        window, notes = window_of(list(self._samples)), (*self.moment.notes, *self._refused)
        if window is not None:
            newest, seconds = self._samples[-1], sum(sample.seconds for sample in self._samples)
            self._seen_at = newest.at
            self.moment = replace(self.moment, means=window.means, newest=dict(newest.values), seconds=seconds)
            self.moment = replace(self.moment, notes=(*notes, *newest.notes))
        else:
            last = () if self._seen_at is None else (f"last seen at {utc(self._seen_at)}",)
            self.moment = replace(self.moment, means={}, newest={}, seconds=0.0, notes=(*notes, *last))
        return self.moment

    def _wanted(self) -> Optional[Wanted]:
        """The objectives that were given, else those of the cluster; None where nobody can read these."""
        if self._slo is not None:
            return self._slo
        try:
            return stored_calendar(self._opened.store)
        except PermissionRefused:
            raise
        except InputError:
            return None

    def _now_of(self, wanted: Optional[Wanted]) -> Optional[Slo]:
        """Those that hold now."""
        return wanted.at(self._opened.clock.now()) if isinstance(wanted, SloCalendar) else wanted

    def _policy(self, wanted: Optional[Wanted]) -> Optional[Dict[str, Any]]:
        """The policy that holds now, and until when; None without a calendar."""
        if not isinstance(wanted, SloCalendar) or not wanted.policies:
            return None
        now = self._opened.clock.now()
        return {"name": wanted.policy_at(now), "until": wanted.ends(now)}

    def _scopes(self) -> Tuple[Scope, ...]:
        """Scopes that objectives have at any time."""
        wanted = self._wanted()
        return wanted.scopes if wanted is not None else ()

    def _judge(self, slo: Optional[Slo]) -> Judge:
        return Judge(None) if slo is None else stored_judge(self._opened.store, slo)

    def _on_trial(self) -> Tuple[Entry, ...]:
        return tuple(Journal(self._opened.store).read().trials)

    def _automatic(self) -> Optional[Dict[str, Any]]:
        """What the plugin says of itself; None where it is not loaded."""
        return self._plugin_answer("tuner auto explain")

    def _boost(self) -> Optional[Dict[str, Any]]:
        """What it says of a boost; None where none can be on."""
        return self._plugin_answer(STATUS) if any(entry.who.endswith(BY) for entry in self._on_trial()) else None

    def _plugin_answer(self, command: str) -> Optional[Dict[str, Any]]:
        try:
            answer = parsed(self._opened.commander.mon(command, {}), command)
        except (ClusterTimeout, CommandFailed, ValueError):
            return None
        return answer if isinstance(answer, dict) else None
