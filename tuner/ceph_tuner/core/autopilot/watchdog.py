"""The guard of the automatic mode: watches settings on trial, and those kept not long ago, at every sample and window.

At every sample: the rules of `guard.py`, laggy PGs and other people's changes among them. At every closed window: the
hard objectives, and recovery. Whatever breaks them the trial ends, the workload's fault or not: taking settings back
is the safe answer, and whether they did it is for the comparison with the control to say. The control alone would not
do as an excuse, as a canary slows the others down through the replicas that it holds.

A queue estimate on the scale of seconds (Vegas: L (1 - minRTT / RTT)) is left out: the samples are 5 s apart and their
minimum is over thousands of operations of all kinds, so that a gross miss of the objectives themselves, seen in three
samples, is as quick and says what hurts.
"""

from __future__ import annotations

from typing import Dict, Mapping, Optional, Sequence

from ceph_tuner.core.autopilot.demand import LEFT, asked_for
from ceph_tuner.core.autopilot.policy import Policy
from ceph_tuner.core.goals.guard import WAITING, Breach, Guard, GuardLimits, Sight, Streaks
from ceph_tuner.core.goals.judge import Judge, beyond
from ceph_tuner.core.goals.slo import Objective, Slo
from ceph_tuner.core.measure.quantity import quantity
from ceph_tuner.core.measure.sample import clients_wait, finish_s
from ceph_tuner.core.wording import first_of

RULES = {
    "slo": "hard objectives are broken in guard_windows windows in a row, or grossly in guard_patience samples",
    "ops.slow": "more slow operations than before, beyond guard_slow_ops, in guard_patience samples in a row",
    "pgs.inactive": "more inactive PGs than before, in guard_patience samples in a row",
    "pgs.laggy": "more laggy PGs than before, in guard_patience samples in a row",
    "osds.down": "more OSDs down than before",
    "health": "the cluster went to HEALTH_ERR",
    "near-full": "an OSD or a pool became nearly full",
    "recovery": "in guard_windows windows in a row degraded objects became more, or recovery fell below guard_recovery "
    "of its rate before and what is left would take longer than all of it did before",
    "blind": "guard_blind samples in a row are missing",
    "drift": "somebody changed a value that is on trial",
    "manual": "somebody changed another knob of the OSDs that are on trial",
}
"""Every rule by its name, for people."""

NAMED = 5
"""Changes by others that a reason names."""

_DEGRADED, _MENDED = "recovery.objects_left", "recovery.copies_s"
_WORK_LEFT = tuple(sorted({name for names in LEFT.values() for name in names}))


class Watchdog:
    """Watches what one proposal brought onto the cluster. Feed it every sample and every window."""

    def __init__(
        self,
        slo: Optional[Slo],
        baseline: Mapping[str, float],
        before: Sight,
        policy: Policy,
    ) -> None:
        """`baseline`: means before the trial; `before`: the last sight then."""
        self._baseline, self._policy = dict(baseline), policy
        self._streaks = Streaks()
        # what no window before the trial saw is held against the sight then
        self._guard = Guard(Judge(slo, {**before.values, **baseline}), before, _limits(policy), self._streaks)
        self._held = Judge(slo, baseline).must_hold(policy.guard_tolerance)
        for objective in slo.objectives if slo is not None else ():
            bound = objective.bound.resolve(None)
            if objective.hard and objective.metric.startswith("client.") and bound is not None:
                # clients that were away before the trial are to be kept well when they come back
                self._held.setdefault(objective, bound)
        self._left: Dict[str, float] = {}
        self._degraded: Optional[float] = None

    def look(
        self,
        sight: Optional[Sight],
        drift: Sequence[str] = (),
        manual: Sequence[str] = (),
        in_force: bool = True,
    ) -> Optional[Breach]:
        """Take a sample (None: there was none) and what others changed (`interventions`), in words.

        Not `in_force`: the old settings have their turn, and what clients get then is no fault of the new ones.
        """
        if sight is not None:
            self._left.update({name: sight.values[name] for name in _WORK_LEFT if name in sight.values})
            values = self._asked_for(sight.values)
            if not in_force:
                values = {name: value for name, value in values.items() if not name.startswith("client.")}
            sight = Sight(sight.at, sight.health, values, sight.words, sight.checks)
        breach = self._guard.watch(sight)
        if drift:
            return Breach("drift", f"somebody changed what is on trial: {first_of(drift, NAMED, '; ')}")
        if manual:
            return Breach("manual", f"somebody changed other knobs of these OSDs: {first_of(manual, NAMED, '; ')}")
        return breach

    def close(self, window_means: Mapping[str, float], in_force: bool = True) -> Optional[Breach]:
        """Take a window that was closed, by the means of its metrics; `in_force` as for `look`."""
        objectives = self._objectives(window_means) if in_force else None
        recovery = self._recovery(window_means)
        return objectives or recovery

    def _objectives(self, means: Mapping[str, float]) -> Optional[Breach]:
        violations = beyond(self._held, self._asked_for(means), clients_wait(means, self._baseline))
        if not violations and not self._keeps(means):
            # the streak stays as it is
            return None
        windows = self._streaks.count("slo", bool(violations))
        if windows < self._policy.guard_windows:
            return None
        words = "; ".join(self._words(objective, means.get(objective.metric)) for objective in violations)
        return Breach("slo", f"{words}: broken for {windows} windows in a row")

    def _keeps(self, means: Mapping[str, float]) -> bool:
        """Whether a window that broke nothing shows that something is kept, and nothing of the clients is missing."""
        gaps = [
            objective
            for objective in self._held
            if objective.metric not in means
            and objective.metric.startswith("client.")
            and objective.metric in self._baseline
        ]
        return not gaps and any(objective.metric in means for objective in self._held)

    def _words(self, objective: Objective, value: Optional[float]) -> str:
        bound, own = self._held[objective], objective.bound.resolve(self._baseline.get(objective.metric))
        if value is None:
            return f"{objective.metric} is not seen, as {WAITING}"
        before = self._baseline.get(objective.metric, bound)
        seen, wanted, earlier = (quantity(objective.metric, each) for each in (value, bound, before))
        words = f"{objective.metric} at {seen}, must be {objective.comparison} {wanted}"
        borne = f"{earlier} before the trial, and {self._policy.guard_tolerance:.0%} worse is borne"
        return words if bound == own else f"{words} ({objective.text} was missed already: {borne})"

    def _recovery(self, means: Mapping[str, float]) -> Optional[Breach]:
        """Whether degraded objects stay so: nothing but recovery stands between them and the next failure."""
        copies = means.get(_DEGRADED)
        if copies is None:
            return None
        last, self._degraded = self._degraded, copies
        left_before, rate_before = self._baseline.get(_DEGRADED, 0.0), self._baseline.get(_MENDED)
        # where nothing was mended before, the settings are not what keeps it from being mended now
        comparable = copies > 0 and (left_before == 0 or bool(rate_before))
        grows = self._streaks.count(
            "recovery grows", comparable and last is not None and copies > max(last, left_before)
        )
        rate, slow = means.get(_MENDED), False
        if comparable and left_before > 0 and rate is not None and rate_before:
            # the last PGs recover at a lower rate, having fewer OSDs to do it: what is left must also take long
            longer = finish_s(copies, rate) > finish_s(left_before, rate_before)
            slow = longer and rate < self._policy.guard_recovery * rate_before
        slow_windows = self._streaks.count("recovery slow", slow) if rate is not None else 0
        if grows >= self._policy.guard_windows:
            return Breach(
                "recovery",
                f"{copies:.6g} degraded object copies, {left_before:.6g} before the trial, and more of them in each of "
                f"{grows} windows in a row",
            )
        if slow_windows >= self._policy.guard_windows:
            return Breach(
                "recovery",
                f"recovery at {rate:.4g} copies/s, below {self._policy.guard_recovery:.0%} of the {rate_before:.4g} "
                f"before the trial for {slow_windows} windows in a row, with {copies:.6g} copies left",
            )
        return None

    def _asked_for(self, values: Mapping[str, float]) -> Dict[str, float]:
        return asked_for(values, self._baseline, self._policy.guard_tolerance, self._left)


def _limits(policy: Policy) -> GuardLimits:
    return GuardLimits(
        gross=policy.guard_gross,
        worse_than_baseline=policy.guard_gross,
        patience=policy.guard_patience,
        patience_pgs=policy.guard_patience,
        patience_clients=policy.guard_patience,
        patience_laggy=policy.guard_patience,
        blind=policy.guard_blind,
        slow_ops=float(policy.guard_slow_ops),
    )
