"""A profile onto many clusters: one as the canary, then wave after wave; back at the first breach.

On each cluster the change is a trial for as long as its wave is watched, under that cluster's lock: a rollout that is
killed is taken back there by whoever comes next. What was kept stands in the journal under the rollout's label, so
that the same command goes on where it stopped.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Callable, Dict, List, Optional, Protocol, Sequence, Tuple

from ceph_tuner.core.ceph.ports import Clock
from ceph_tuner.core.ceph.uninterrupted import uninterrupted
from ceph_tuner.core.changes.applier import Undone
from ceph_tuner.core.errors import InputError, TunerError
from ceph_tuner.core.measure.history import MINUTE
from ceph_tuner.fleet.status import Standing

TRIES, AGAIN_S = 4, 5.0
"""How often a cluster is asked to take its trial back, and seconds between: one that is busy may answer late."""


class Site(Protocol):
    """One cluster of a rollout."""

    @property
    def name(self) -> str:
        """The member's name in fleet.yaml."""

    def done(self) -> bool:
        """Whether an earlier run of this rollout kept its change here."""

    def look(self, since: float = 0.0) -> Standing:
        """How it stands, by windows that began after `since` (seconds since the epoch). Raises TunerError."""

    def bring(self) -> Sequence[Undone]:
        """Put the profile on trial, after what a run before left there. Raises TunerError; then nothing is changed."""

    def keep(self) -> None:
        """Make the trial permanent. Raises TunerError."""

    def take_back(self) -> Optional[Sequence[Undone]]:
        """End the trial, if there is one, also where `bring` raised. None where it never began.

        Raises TunerError; called again then, it goes on from there.
        """


@dataclass(frozen=True)
class RolloutOutcome:
    """What became of each cluster, by name."""

    kept: Tuple[str, ...] = ()
    before: Tuple[str, ...] = ()
    """Kept by an earlier run."""
    taken_back: Tuple[str, ...] = ()
    stuck: Tuple[str, ...] = ()
    """Where taking it back failed, with the reason."""
    left: Tuple[str, ...] = ()
    """Not touched."""
    breach: str = ""
    """What stopped it."""
    remarks: Tuple[str, ...] = ()
    """What was taken back and is not as before: somebody changed it meanwhile, or OSDs do not show it."""
    interrupted: bool = False


def waves_of(names: Sequence[str], canary: str, size: int) -> List[Tuple[str, ...]]:
    """The canary alone, then the others in their order, `size` at a time. Raises InputError."""
    if canary not in names:
        raise InputError("--canary", repr(canary), f"one of {', '.join(names)}")
    others = [name for name in names if name != canary]
    return [(canary,), *(tuple(others[start : start + size]) for start in range(0, len(others), size))]


def roll_out(
    waves: Sequence[Sequence[Site]],
    clock: Clock,
    watch_s: float,
    every_s: float,
    report: Callable[[str], None],
    blind: bool = False,
    alarm: Optional[Callable[[str], None]] = None,
) -> RolloutOutcome:
    """Wave by wave: look, bring, watch for `watch_s`, keep. `blind`: also where objectives are not seen.

    `alarm` is told what is not as it was before (else `report`). Ctrl-C takes back what is not kept, and stops.
    """
    voice = _Voice(report, alarm or report)
    done_names: List[str] = []
    before: List[str] = []
    for index, wave in enumerate(waves):
        on_trial: List[Site] = []
        later_sites = [site.name for later in waves[index + 1 :] for site in later]
        breach, interrupted = "", False
        try:
            for site in wave:
                if site.done():
                    before.append(site.name)
                    continue
                breach = _breach(site, blind)
                if breach:
                    break
                report(f"{site.name}: on trial")
                # whatever strikes while it is brought may have left it there
                on_trial.append(site)
                voice.recovered(site, site.bring())
            breach = breach or _breach_on_trial(on_trial, clock, watch_s, every_s, blind)
            if not breach:
                while on_trial:
                    on_trial[0].keep()
                    done_names.append(on_trial.pop(0).name)
                    report(f"{done_names[-1]}: kept")
                continue
        except TunerError as error:
            breach = str(error)
        except KeyboardInterrupt:
            breach, interrupted = "interrupted", True
        except BaseException:
            _take_back(on_trial, clock, voice)
            raise
        second_interrupt, back, stuck = _take_back(on_trial, clock, voice)
        names_with_outcome = {*back, *stuck, *done_names, *before}
        return RolloutOutcome(
            tuple(done_names),
            tuple(before),
            tuple(site.name for site in on_trial if site.name in back),
            tuple(f"{name}: {reason}" for name, reason in stuck.items()),
            (*(site.name for site in wave if site.name not in names_with_outcome), *later_sites),
            breach,
            tuple(voice.remarks),
            interrupted or second_interrupt,
        )
    return RolloutOutcome(tuple(done_names), tuple(before), remarks=tuple(voice.remarks))


def breach_of(standing: Standing, blind: bool = False, on_trial: bool = False) -> str:
    """Say why a cluster must not be touched, or what was brought there must go; nothing where all is well.

    `on_trial`: with the settings on trial, where work that comes to its end is no fault of theirs.
    """
    if standing.up < standing.osds:
        # before what is missed: clients wait while placement groups go without it, whatever the settings
        return f"{standing.osds - standing.up} of its {standing.osds} OSDs are down"
    if standing.missing_hard:
        misses = standing.objectives.missed_hard if standing.objectives is not None else ()
        return f"a hard objective is missed ({', '.join(misses) or 'its plugin says so'})"
    if standing.drift:
        return f"somebody changed it meanwhile ({standing.drift[0]})"
    if blind:
        return ""
    objectives = standing.objectives
    if objectives is None or not (objectives.count or objectives.idle):
        return "no objective is set that it could be watched by"
    if not objectives.count and not on_trial:
        return f"nothing is to be watched now, as there is no such work ({objectives.idle[0]})"
    if objectives.unseen:
        return f"an objective is not seen ({objectives.unseen[0]})"
    return ""


def _breach(site: Site, blind: bool) -> str:
    reason = breach_of(site.look(), blind)
    return f"{site.name}: {reason}" if reason else ""


def _breach_on_trial(on_trial: Sequence[Site], clock: Clock, watch_s: float, every_s: float, blind: bool) -> str:
    began, end = clock.now(), clock.monotonic() + watch_s
    # in less time the plugin may not finish a window, and what was seen before has to do
    anew = watch_s >= 2 * MINUTE
    since = began if anew else 0.0
    while on_trial:
        remaining_s = end - clock.monotonic()
        if remaining_s > 0:
            clock.sleep(min(every_s, remaining_s))
        for site in on_trial:
            # what the trial does may be seen later, but at the end it must have been
            reason = breach_of(site.look(since), blind or (anew and remaining_s > 0), on_trial=True)
            if reason:
                return f"{site.name}: {reason}"
        if remaining_s <= 0:
            break
    return ""


class _Voice:
    """Tells what becomes of clusters, and remembers what is not as it was."""

    def __init__(self, report: Callable[[str], None], alarm: Callable[[str], None]) -> None:
        self._report, self._alarm = report, alarm
        self.remarks: List[str] = []

    def recovered(self, site: Site, undone: Sequence[Undone]) -> None:
        for each in undone:
            self._report(f"{site.name}: change {each.entry.number} was left behind and is taken back")
            self._remark(site, each)

    def taken_back(self, site: Site, undone: Sequence[Undone]) -> None:
        self._report(f"{site.name}: taken back")
        for each in undone:
            self._remark(site, each)

    def stuck(self, site: Site, reason: str) -> None:
        self._alarm(f"{site.name}: not taken back: {reason}")

    def _remark(self, site: Site, undone: Undone) -> None:
        for line in undone.remarks:
            self.remarks.append(f"{site.name}: {line}")
            self._alarm(self.remarks[-1])


def _take_back(on_trial: Sequence[Site], clock: Clock, voice: _Voice) -> Tuple[bool, List[str], Dict[str, str]]:
    """The last one first; one that fails does not keep the others from it, and is tried again after them.

    Whether an interrupt came meanwhile (nothing is skipped for it), who is as before, and by name the reasons of those
    that failed each time.
    """
    back: List[str] = []
    stuck: Dict[str, str] = {}
    with suppress(KeyboardInterrupt):
        with uninterrupted():
            sites = list(reversed(on_trial))
            try:
                for again in range(TRIES):
                    if again and sites:
                        clock.sleep(AGAIN_S)
                    sites = [site for site in sites if not _try_back(site, back, stuck, voice)]
            finally:
                for site in sites:
                    voice.stuck(site, stuck[site.name])
        return False, back, stuck
    return True, back, stuck


def _try_back(site: Site, back: List[str], stuck: Dict[str, str], voice: _Voice) -> bool:
    try:
        undone = site.take_back()
    except Exception as error:
        stuck[site.name] = str(error) or type(error).__name__
        return False
    stuck.pop(site.name, None)
    if undone is not None:
        back.append(site.name)
        voice.taken_back(site, undone)
    return True
