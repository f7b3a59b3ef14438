"""Has the optimiser propose settings for the automatic mode, and checks what it answers before anybody acts on it."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Sequence, Set, Tuple

from ceph_tuner.core.autopilot.events import Answered
from ceph_tuner.core.autopilot.groups import rollout
from ceph_tuner.core.autopilot.learning import absolute
from ceph_tuner.core.autopilot.policy import Policy
from ceph_tuner.core.autopilot.state import AutopilotState
from ceph_tuner.core.ceph.target import Place, Target
from ceph_tuner.core.errors import InputError, RetryLater, TunerError
from ceph_tuner.core.knobs.catalogue import MCLOCK_NINE, PROFILE
from ceph_tuner.core.measure.forecast_record import SEARCH_LEVEL, SEARCH_MODEL, ForecastRecord
from ceph_tuner.core.measure.osd_selection import spread

from . import threads
from .aim import Aim
from .inbox import Inbox
from .service import Service

LONGEST_WORDS = 1000
"""Characters of the optimiser's words that are kept: the state that has them must fit into one value of the store."""


MCLOCK = "mclock_scheduler"
ASKED = 16
UNLIKE = 2.0
"""Factor between capacities above which values in IOPS do not suit both."""


class Proposer:
    """Asks once; an error becomes an answer that says so, never an exception."""

    def __init__(self, service: Service, aim: Aim, inbox: Inbox, now: Callable[[], float]) -> None:
        self._service, self._aim, self._inbox, self._now = service, aim, inbox, now

    def start(self, state: AutopilotState, policy: Policy) -> None:
        """Ask in a thread of its own, as the guard goes on meanwhile; the answer goes to the inbox.

        Raises RetryLater where there is no thread to be had.
        """
        ask = lambda: self._inbox.post(self.ask(state, policy))  # noqa: E731
        try:
            threads.begin("tuner-asking", ask)
        except RuntimeError as error:
            raise RetryLater(f"no thread to ask in: {error}") from error

    def ask(self, state: AutopilotState, policy: Policy) -> Answered:
        """Give the next proposal for the cluster as `state.baseline` shows it. Takes as long as the worker may."""
        try:
            return self._ask(state, policy)
        except TunerError as error:
            words = str(error)
        except Exception as error:
            # whatever it is: nothing else ends the wait for an answer
            words = f"the optimiser could not be asked, or its answer is not usable ({type(error).__name__}: {error})"
        return Answered(self._now(), refused=words[:LONGEST_WORDS])

    def _ask(self, state: AutopilotState, policy: Policy) -> Answered:
        slo = self._aim.slo()
        if slo is None:
            return Answered(self._now(), why="no SLO is set: `ceph tuner slo set 'client.p95_ms<=80'`")
        objectives = absolute(slo, {**state.baseline, **self._aim.part_of(self._service.reference())})
        answer = self._service.ask_for(objectives, state.baseline, state.begun, state.proposals, self._aim)
        proposals: List[Mapping[str, Any]] = answer["proposals"]
        if not proposals:
            verdict = answer.get("verdict") or {}
            return Answered(self._now(), why=f"{verdict.get('state')}: {verdict.get('reason')}"[:LONGEST_WORDS])
        return self._answer_of(proposals[0], policy)

    def _answer_of(self, proposal: Mapping[str, Any], policy: Policy) -> Answered:
        target = self._aim.target
        settings = self._service.in_release_units(proposal["settings"], target)
        unmoved = {name: settings.pop(name) for name in _idle(proposal) & settings.keys()}
        if not settings:
            raise InputError("the optimiser's answer", "a proposal without settings", "at least one")
        device_class = Target.parse(target).device_class
        places = self._service.config.places()
        self._refuse_unlike(target, places)
        rollout_plan = rollout(places, device_class, target, policy, self._service.replicas())
        # planning refuses what the release ignores, what is out of range, and what something else would outrank
        changes = self._service.changes()
        for section in (rollout_plan.stages[0].targets[0], rollout_plan.target):
            changes.commands(section, settings)
        why, forecast = str(proposal.get("why", ""))[:LONGEST_WORDS], _forecast(proposal.get("expected"), self._now())
        return Answered(self._now(), settings, why, rollout_plan, forecast=forecast, unmoved=unmoved)

    def _refuse_unlike(self, target: str, places: Sequence[Place]) -> None:
        """Raise InputError where one set of values does not suit all OSDs of the target."""
        section = Target.parse(target)
        places_up = [place for place in places if place.up and section.covers(place)]
        classes = sorted({place.device_class or "none" for place in places_up})
        if len(classes) > 1:
            coverage = f"`{target}`, which covers OSDs of the classes {' and '.join(classes)}"
            raise InputError(
                "auto_target", coverage, f"one class, such as osd/class:{classes[-1]}: only like is compared"
            )
        osds = spread([place.osd for place in places_up], ASKED)
        queue = self._service.config.effective(osds[0]).get("osd_op_queue", MCLOCK) if osds else MCLOCK
        if queue != MCLOCK:
            raise InputError(
                f"osd_op_queue of osd.{osds[0]}", queue, f"{MCLOCK}: under another queue nothing of it acts"
            )
        if self._service.release().units != "fraction":
            iops = [capacity.iops for capacity in self._service.capacities(osds)] or [0.0]
            if not 0 < max(iops) <= UNLIKE * min(iops):
                coverage = f"`{target}`, whose OSDs have capacities of {min(iops):g} to {max(iops):g} IOPS"
                raise InputError(
                    "auto_target", coverage, "OSDs of about one capacity: this release takes IOPS, not shares"
                )


def _idle(proposal: Mapping[str, Any]) -> Set[str]:
    """Names of what is in force already; the profile goes with the nine."""
    idle = set(proposal["settings"]) - set(proposal["moves"])
    return idle | {PROFILE} if idle & set(MCLOCK_NINE) else idle - {PROFILE}


def _forecast(expected: Any, at: float) -> Dict[str, Any]:
    """What is kept of what the search expects; nothing where it expects nothing, or says it in another form."""
    metrics = expected if isinstance(expected, dict) else {}
    ends = {name: [middle, max(0.0, low), high] for name, (middle, low, high) in _triples(metrics)}
    document = {"version": 1, "at": at, "model": SEARCH_MODEL, "level": SEARCH_LEVEL, "metrics": ends}
    record = ForecastRecord.from_dict(document)
    return {} if record is None else record.to_dict()


def _triples(metrics: Mapping[str, Any]) -> List[Tuple[str, List[float]]]:
    """Metrics with three numbers each; all else is left out."""
    return [
        (str(name), [float(value) for value in values])
        for name, values in metrics.items()
        if isinstance(values, list) and len(values) == 3 and all(type(value) in (int, float) for value in values)
    ]
