"""A profile onto many clusters: one as the canary, then wave after wave; back at the first breach.

On each cluster the change is a trial for as long as its wave is watched, under that cluster's lock: a rollout that is
killed is taken back there by whoever comes next. What was kept stands in the journal under the rollout's label, so
that the same command goes on where it stopped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, List, Optional, Protocol, Sequence, Tuple

from ceph_tuner.errors import InputError, TunerError
from ceph_tuner.fleet.status import Status
from ceph_tuner.ports import Clock


class Site(Protocol):
    """One cluster of a rollout."""

    @property
    def name(self) -> str:
        """Of the member."""

    def done(self) -> bool:
        """Whether an earlier run of this rollout kept its change here."""

    def look(self) -> Status:
        """How it stands. Raises TunerError."""

    def bring(self) -> None:
        """Put the profile on trial. Raises TunerError; then nothing is changed."""

    def keep(self) -> None:
        """Make the trial permanent. Raises TunerError."""

    def take_back(self) -> None:
        """End the trial. Raises TunerError."""


@dataclass(frozen=True)
class Outcome:
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
) -> Outcome:
    """Wave by wave: look, bring, watch for `watch_s`, keep. `blind`: also where objectives are not seen."""
    kept: List[str] = []
    before: List[str] = []
    for index, wave in enumerate(waves):
        on_trial: List[Site] = []
        left = [site.name for later in waves[index + 1 :] for site in later]
        breach = ""
        try:
            for site in wave:
                if site.done():
                    before.append(site.name)
                    continue
                breach = _breach(site, blind)
                if breach:
                    break
                report(f"{site.name}: on trial")
                site.bring()
                on_trial.append(site)
            breach = breach or _watched(on_trial, clock, watch_s, every_s, blind)
            if not breach:
                while on_trial:
                    on_trial[0].keep()
                    kept.append(on_trial.pop(0).name)
                    report(f"{kept[-1]}: kept")
                continue
        except TunerError as error:
            breach = str(error)
        except BaseException:
            # Ctrl-C: what is not kept goes
            _take_back(on_trial, report)
            raise
        trials = [site.name for site in on_trial]
        stuck = _take_back(on_trial, report)
        failed = {entry.split(":")[0] for entry in stuck}
        touched = {*trials, *kept, *before}
        return Outcome(
            tuple(kept),
            tuple(before),
            tuple(name for name in trials if name not in failed),
            tuple(stuck),
            (*(site.name for site in wave if site.name not in touched), *left),
            breach,
        )
    return Outcome(tuple(kept), tuple(before))


def breach_of(status: Status, blind: bool = False) -> str:
    """Say why a cluster must not be touched, or what was brought there must go; nothing where all is well."""
    if status.missing_hard:
        missed = status.objectives.missed_hard if status.objectives is not None else ()
        return f"a hard objective is missed ({', '.join(missed) or 'its plugin says so'})"
    if status.drift:
        return f"somebody changed it meanwhile ({status.drift[0]})"
    if status.up < status.osds:
        return f"{status.osds - status.up} of its {status.osds} OSDs are down"
    if blind:
        return ""
    if status.objectives is None or not status.objectives.count:
        return "no objective is set that it could be watched by"
    if status.objectives.unseen:
        return f"an objective is not seen ({status.objectives.unseen[0]})"
    return ""


def _breach(site: Site, blind: bool) -> str:
    reason = breach_of(site.look(), blind)
    return f"{site.name}: {reason}" if reason else ""


def _watched(on_trial: Sequence[Site], clock: Clock, watch_s: float, every_s: float, blind: bool) -> str:
    end = clock.now() + watch_s
    while on_trial:
        left = end - clock.now()
        if left > 0:
            clock.sleep(min(every_s, left))
        for site in on_trial:
            breach = _breach(site, blind)
            if breach:
                return breach
        if left <= 0:
            break
    return ""


def _take_back(on_trial: Sequence[Site], report: Callable[[str], None]) -> List[str]:
    """The last one first; one that fails does not keep the others from it."""
    stuck = []
    for site in reversed(on_trial):
        reason: Optional[str] = None
        try:
            site.take_back()
        except TunerError as error:
            reason = str(error)
            stuck.append(f"{site.name}: {reason}")
        report(f"{site.name}: {'taken back' if reason is None else f'not taken back: {reason}'}")
    return stuck
