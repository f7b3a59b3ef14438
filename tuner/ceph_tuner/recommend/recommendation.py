"""Question in, recommendation out: the search, what it missed and learnt, and a plan beyond live knobs."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import Callable, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.core.profiles.profile import Profile
from ceph_tuner.processes.process_pool import ProcessPool
from ceph_tuner.recommend import Prediction, Question, SearchEffort, SearchListener
from ceph_tuner.recommend.accounts import Account, accounts
from ceph_tuner.recommend.answer import Instructions, answer, profile
from ceph_tuner.recommend.knob_worth import KnobWorth, weighed
from ceph_tuner.recommend.lasting import does_not_last, judged_by_long_runs
from ceph_tuner.recommend.limits import Missed, missed_objectives
from ceph_tuner.recommend.rebuild_plan import Plan, plan_rebuild
from ceph_tuner.recommend.search import SearchedSettings, search
from ceph_tuner.search.explanation import Explained, explained
from ceph_tuner.search.transfer import Elsewhere
from ceph_tuner.twin.knobs_in_force import completed
from ceph_tuner.twin.simulation_pool import simulation_pool


@dataclass(frozen=True)
class Recommendation:
    """What to write on a described cluster, and the grounds for it."""

    searched: SearchedSettings
    instructions: Instructions
    accounts: Tuple[Account, ...]
    """What each class of mClock gets under the recommended settings."""
    missed: Tuple[Missed, ...] = ()
    """Objectives that they miss, and why."""
    explanation: Optional[Explained] = None
    """What the search has learnt; None where that was not asked for, or it has tried too little."""
    plan: Optional[Plan] = None
    """Restarts and moves of data that are worth it; None where nobody looked."""
    worths: Tuple[KnobWorth, ...] = ()
    """What each knob is worth that the search's winner moves; empty where nothing was weighed."""
    interrupted: bool = False
    """Whether it is less than was asked for."""

    @property
    def better(self) -> bool:
        """Whether it is better than what is in force by more than chance."""
        return self.searched.choice.better

    @property
    def keeps_hard(self) -> bool:
        """Whether every hard objective is predicted to hold."""
        return self.searched.judge.keeps_hard(self.searched.winner.means)

    @property
    def elsewhere(self) -> Optional[Elsewhere]:
        """What served other clusters, as the search judged it; None where it was offered nothing."""
        return self.searched.learnt.elsewhere if self.searched.learnt is not None else None

    def profile(self, name: str) -> Optional[Profile]:
        """Make a profile for the cluster of that name; None where nothing is better than what is in force."""
        return profile(self.searched, name) if self.better else None


def recommend(
    question: Question,
    effort: SearchEffort,
    listener: SearchListener,
    processes: Optional[int] = None,
    profiles_elsewhere: Sequence[Profile] = (),
    explain: bool = True,
    curves: bool = True,
    stored_bytes: Optional[Mapping[str, float]] = None,
    interruptible: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Recommendation:
    """Search settings on the twin, in `processes` (None: one for each core), and work out what there is to say of them.

    `profiles_elsewhere` are of other clusters: tried first where these are alike. `explain`: with what the search has
    learnt, `curves` of single knobs included. `stored_bytes`: by pool, for a plan beyond live knobs; None: without one.
    An interrupt, which strikes inside of `interruptible`, ends it early with what is known; before anything is known it
    is raised. Raises InputError for objectives that the twin has nothing to say about, and for knobs that cannot be
    searched.
    """
    misses: List[Missed] = []
    worths: Tuple[KnobWorth, ...] = ()
    explanation, plan, interrupted = None, None, True
    # a process takes a second to begin
    with simulation_pool(processes) as pool:
        with interruptible():
            search_result = search(question, effort, listener, pool, profiles_elsewhere=profiles_elsewhere)
        # not again what takes long, where somebody does not want to wait
        with suppress(KeyboardInterrupt), interruptible():
            if not search_result.interrupted:
                search_result, worths = _lasting(search_result, listener, pool)
                if stored_bytes is not None and search_result.confirmed:
                    plan = plan_rebuild(search_result, stored_bytes, listener, pool)
                listener.phase("looking into what is missed", search_result.runs, search_result.runs)
                misses = missed_objectives(search_result, pool)
                if explain and search_result.learnt is not None:
                    listener.phase("working out what was learnt", search_result.runs, search_result.runs)
                    unmet = not search_result.judge.keeps_hard(search_result.winner.means)
                    explanation = explained(search_result.learnt, question.slo, unmet, curves=curves)
                interrupted = False
    instructions, classes = answer(search_result), tuple(accounts_of(search_result))
    return Recommendation(search_result, instructions, classes, tuple(misses), explanation, plan, worths, interrupted)


def _lasting(
    search_result: SearchedSettings, listener: SearchListener, pool: ProcessPool
) -> Tuple[SearchedSettings, Tuple[KnobWorth, ...]]:
    """The best that is so in the long run too, without the knobs that are worth nothing, and what the others are."""
    declined: List[Prediction] = []
    while True:
        weighed_result, worths = weighed(search_result, listener, pool)
        listener.phase("the winner in the long run", weighed_result.runs, weighed_result.runs)
        decline = does_not_last(weighed_result, pool)
        if decline is None:
            break
        if decline.long is not None:
            declined.append(weighed_result.winner)
        # those that are left are judged as they were found
        search_result = search_result.without_winner(decline.words)
    if declined and not weighed_result.choice.better:
        weighed_result = judged_by_long_runs(weighed_result, declined, pool)
    return weighed_result, worths


def accounts_of(search_result: SearchedSettings) -> List[Account]:
    """What each class of mClock gets under the recommended settings."""
    model, winner = search_result.question.model, search_result.winner
    return accounts(search_result.judge, model, completed(winner.settings, model.release), winner.means)
