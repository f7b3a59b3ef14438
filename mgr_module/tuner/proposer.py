"""Has the optimiser propose settings for the automatic mode, and checks what it answers before anybody acts on it."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping

from ceph_tuner.autopilot.events import Answered
from ceph_tuner.autopilot.groups import rollout
from ceph_tuner.autopilot.learning import absolute
from ceph_tuner.autopilot.policy import Policy
from ceph_tuner.autopilot.state import State
from ceph_tuner.errors import InputError, TunerError
from ceph_tuner.knobs import PROFILE
from ceph_tuner.profile import Profile
from ceph_tuner.target import Target

from .service import Service
from .worker import WorkerError

LONGEST_WORDS = 1000
"""Characters of the optimiser's words that are kept: the state that has them must fit into one value of the store."""


class Proposer:
    """Asks once; an error becomes an answer that says so, never an exception."""

    def __init__(self, service: Service, target: Callable[[], str], now: Callable[[], float]) -> None:
        self._service, self._target, self._now = service, target, now

    def ask(self, state: State, policy: Policy) -> Answered:
        """Give the next proposal for the cluster as `state.baseline` shows it. Takes as long as the worker may."""
        try:
            return self._ask(state, policy)
        except (TunerError, WorkerError) as error:
            words = str(error)
        except Exception as error:
            # whatever it is: nothing else ends the wait for an answer
            words = f"the optimiser could not be asked, or its answer is not usable ({type(error).__name__}: {error})"
        return Answered(self._now(), refused=words[:LONGEST_WORDS])

    def _ask(self, state: State, policy: Policy) -> Answered:
        slo = self._service.slos.read()
        if slo is None:
            return Answered(self._now(), why="no SLO is set: `ceph tuner slo set 'client.p95_ms<=80'`")
        reference = {**state.baseline, **self._service.reference()}
        answer = self._service.ask_for(absolute(slo, reference), state.baseline, state.begun, state.proposals)
        proposals: List[Mapping[str, Any]] = answer["proposals"]
        if not proposals:
            verdict = answer.get("verdict") or {}
            return Answered(self._now(), why=f"{verdict.get('state')}: {verdict.get('reason')}"[:LONGEST_WORDS])
        return self._checked(proposals[0], policy)

    def _checked(self, proposal: Mapping[str, Any], policy: Policy) -> Answered:
        target = self._target()
        settings = self._translated(proposal["settings"], target)
        if not settings:
            raise InputError("the optimiser's answer", "a proposal without settings", "at least one")
        device_class = Target.parse(target).device_class
        places = self._service.config.places()
        planned = rollout(places, device_class, target, policy, self._service.replicas())
        # planning refuses what the release ignores, what is out of range, and what something else would outrank
        for section in (planned.stages[0].targets[0], planned.target):
            self._service.changes().commands(section, settings)
        return Answered(self._now(), settings, str(proposal.get("why", ""))[:LONGEST_WORDS], planned)

    def _translated(self, settings: Mapping[str, Any], target: str) -> Dict[str, Any]:
        """The worker's fractions in the running release's units."""
        own = {name: value for name, value in settings.items() if name != PROFILE}
        profile = Profile.make("proposed", self._service.release(), own)
        return dict(self._service.changes().translated(profile, target).settings)
