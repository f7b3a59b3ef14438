"""Every health check of the module, and which of them the automatic mode's state and trail call for.

Ceph mutes a check by its name: `ceph health mute NAME`. A mute is lifted when the check's count rises or the check
goes away (`--sticky` keeps it), so summaries stay the same and the count is that of the things to look at.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Sequence, Union

from ceph_tuner.core.autopilot.audit_log import DRIFT, KEPT, MODE, RESUMED, TAKEN_BACK, AuditRecord
from ceph_tuner.core.autopilot.state import APPROVE, OFF, WAITING, AutopilotState
from ceph_tuner.core.autopilot.transitions import BY_OPERATOR
from ceph_tuner.core.hours import DAY_S
from ceph_tuner.core.moments import utc
from ceph_tuner.core.printable import one_line

LARGEST_DETAIL = 20
"""Lines of detail that are sent to the monitors; the count tells of all."""


class HealthCheck(NamedTuple):
    """One check: what `ceph health` shows, what it means and what to do about it."""

    name: str
    summary: str
    meaning: str
    remedy: str
    severity: str = "warning"


UNKNOWN = "TUNER_HEALTH_UNKNOWN"
"""Raised by the module itself, about itself."""

_ALL = [
    HealthCheck(
        UNKNOWN,
        "ceph-tuner cannot tell a part of its own health",
        "The text of a health check could not be made; the detail has the error. The state behind that check is "
        "unknown. Sampling, the guard and the commands go on.",
        "See the log of the active mgr, and report the error. It goes away when the text can be made.",
    ),
    HealthCheck(
        "TUNER_SAMPLING_FAILED",
        "ceph-tuner cannot sample the cluster",
        "Three samples in a row failed; the detail has the last error. The guard has no data: a trial is taken back, "
        "and no new one begins.",
        "Look whether the monitors answer (`ceph -s`), and read the active mgr's log. It goes away with the next "
        "sample.",
    ),
    HealthCheck(
        "TUNER_WORKER_FAILED",
        "ceph-tuner's optimiser fails",
        "The optimiser is missing, was stopped at `worker_timeout`, died, or gave an answer that cannot be used. Such "
        "an answer is never applied. The settings in force stay, and are still watched.",
        "Run `ceph tuner recommend` to see the error; check `worker_python` on the active mgr's host. It goes away "
        "with the next answer that is usable.",
    ),
    HealthCheck(
        "TUNER_TRIAL_TAKEN_BACK",
        "ceph-tuner took back what it tried",
        "A trial did harm, or showed no gain; its settings are off the cluster again. No new one begins until the "
        "back-off is over.",
        "Nothing has to be done; `ceph tuner history` has the numbers. It goes away with the next settings that "
        "are kept, with an operator's `resume`, `retry` or change of mode, or after a day.",
    ),
    HealthCheck(
        "TUNER_BOOST_ENDED",
        "a boost of ceph-tuner ended before its work was done",
        "The guard ended it, its time was up, or its settings could not be written; the detail has the reason. Its "
        "settings are off the cluster again. An end by the calendar or by an operator is no reason.",
        "See what is left by `ceph -s`, and begin another one where it is wanted, with other bounds. It goes away with "
        "the next boost, or after a day.",
    ),
    HealthCheck(
        "TUNER_BOOK_DAMAGED",
        "ceph-tuner's book of settings cannot be read",
        "What lies at `mgr/tuner/book/pages` is damaged, forged, or of a newer version. It is left alone, and no page "
        "of it is used: what was there before the book is in force.",
        "Install the newer version again where one was downgraded. Else keep it by `ceph config-key get "
        "mgr/tuner/book/pages`, remove it by `ceph config-key rm mgr/tuner/book/pages`, and import a book that was "
        "exported before. It goes away when the book can be read, or with `ceph tuner book off`.",
    ),
    HealthCheck(
        "TUNER_BOOK_STOPPED",
        "ceph-tuner's book of settings switched itself off",
        "Somebody changed or took back a value that a page of the book had set, or several mgrs ended while a switch "
        "was made. The detail has the reason. The book's settings are off the cluster, but for values that others "
        "changed.",
        "Decide who is in charge of the values, then `ceph tuner book on` or `ceph tuner book off`. It goes away with "
        "either.",
    ),
    HealthCheck(
        "TUNER_POLICY_MISSING",
        "ceph-tuner's book waits for a policy that the calendar does not have",
        "The book is on, and a marker of its regimes names a policy that the objectives' calendar does not have: it "
        "was renamed or removed, or there is no calendar. The marker is never on, and no page of its regimes is used.",
        "Give the policy its name again by `ceph tuner slo set -i FILE --yes`, or name another one by `ceph tuner book "
        "bounds -i FILE`. `ceph tuner status` names the pages that wait. It goes away with either, or with `ceph tuner "
        "book off`.",
    ),
    HealthCheck(
        "TUNER_OPTION_WRONG",
        "an option of ceph-tuner's book or boosts makes no sense",
        "Rules in `boost_rules` that cannot be read begin no boost. A `book_…` option that makes no sense, while the "
        "book is on, leaves what held before; a new active mgr then uses no page. The detail names the option.",
        "Correct it by `ceph config set mgr mgr/tuner/OPTION VALUE`: it goes away within a few seconds. A running mgr "
        "does not notice `ceph config rm` of a `book_…` option. To remove one, set its default first.",
    ),
    HealthCheck(
        "TUNER_DRIFT",
        "somebody changed what ceph-tuner had set",
        "Somebody changed a value that the tuner had written. It leaves such values alone, also when it takes its own "
        "back.",
        "Decide who is in charge of the value: leave it, or put it back by `ceph config set`, or take the tuner's "
        "change back by `ceph tuner rollback --yes`. It goes away with the next settings that are kept, with an "
        "operator's `resume`, `retry` or change of mode, or after a day.",
    ),
    HealthCheck(
        "TUNER_SLO_MISSED",
        "a hard objective is missed and ceph-tuner has found nothing better",
        "Hard objectives are missed, and the automatic mode gave up for the present state of the cluster: the "
        "optimiser expects nothing better, or all permitted trials were used up.",
        "`ceph tuner recommend` names the objectives that cannot be met, with the reasons. Ease one, add capacity, or "
        "try again by `ceph tuner auto retry`. The mode starts by itself once load, hardware or release change.",
    ),
    HealthCheck(
        "TUNER_PAUSED",
        "ceph-tuner's automatic mode is paused",
        "The automatic mode makes no forward move until it is resumed. An operator paused it, a trial was "
        "inconclusive, or somebody intervened by hand. The detail has the reason, and the end of the pause.",
        "`ceph tuner auto resume`, when the reason is gone.",
    ),
    HealthCheck(
        "TUNER_APPROVAL_NEEDED",
        "a proposal of ceph-tuner waits for approval",
        "In the `approve` mode every forward move waits for an operator.",
        "`ceph tuner auto explain` shows the proposal; `ceph tuner approve` or `ceph tuner reject` it. It is dropped "
        "by itself when the objectives are met again or the cluster has changed.",
    ),
    HealthCheck(
        "TUNER_CAPACITY_WRONG",
        "an OSD's stored mClock capacity is not believable",
        "`osd_mclock_max_capacity_iops_*` of the OSDs in the detail is far from their measured rates, or from "
        "other OSDs of their kind. All shares of mClock are shares of that number, so every setting has another effect "
        "on these OSDs.",
        "`ceph tuner capacity ls` shows each OSD's; `ceph tuner capacity measure N --yes` benches an idle OSD and "
        "stores the result.",
    ),
    HealthCheck(
        "TUNER_JOURNAL_DAMAGED",
        "an entry of ceph-tuner's journal cannot be read",
        "What lies below `mgr/tuner/journal/` in the detail is damaged, forged, or of a newer version. It is left "
        "alone. All other changes can be taken back; no new one is written while a change may be in force that cannot "
        "be read.",
        "Install the newer version again where one was downgraded. Else note down `ceph config-key get "
        "mgr/tuner/journal/NUMBER`, put back what its `restores` name, and remove the key.",
    ),
    HealthCheck(
        "TUNER_SLO_DAMAGED",
        "the objectives that are stored cannot be read",
        "What `mgr/tuner/slo` holds is damaged, or of a newer version with something in its calendar that this one "
        "does not know. Nobody knows what is wanted: the automatic mode, the book and boosts make no forward move.",
        "Install the newer version again where one was downgraded. Else note down `ceph config-key get "
        "mgr/tuner/slo`, then `ceph tuner slo rm all`, and set the objectives anew.",
    ),
    HealthCheck(
        "TUNER_STOPPED",
        "ceph-tuner stopped to protect the cluster",
        "A trial cannot be taken back, or the journal or the stored state cannot be read. The automatic mode makes no "
        "forward move, and tries to take back with every sample.",
        "Read the detail. `ceph tuner history` shows the changes in force, and `ceph tuner rollback --all` the steps "
        "that would take them back. The section of the change's target in `ceph config dump` shows the present values.",
    ),
]

CHECKS: Dict[str, HealthCheck] = {check.name: check for check in _ALL}
"""Every check by its name, in the order of the documentation."""


def raised(checks: Mapping[str, Union[str, Sequence[str]]]) -> Dict[str, Dict[str, Any]]:
    """What `set_health_checks` takes, of each check's detail: a line, or several. No detail, no check."""
    lines = {name: [detail] if isinstance(detail, str) else list(detail) for name, detail in checks.items()}
    lines = {name: [one_line(str(line)) for line in detail] for name, detail in lines.items()}
    return {
        name: {
            "severity": CHECKS[name].severity,
            "summary": CHECKS[name].summary,
            "count": len(detail),
            "detail": detail[:LARGEST_DETAIL],
        }
        for name, detail in lines.items()
        if detail
    }


def of_state(state: AutopilotState, misses: Sequence[str]) -> Dict[str, List[str]]:
    """Checks that the automatic mode's state calls for; `misses`: hard objectives that are missed for a while."""
    checks: Dict[str, List[str]] = {}
    if state.problem:
        # whatever the mode: something may still be on the cluster
        checks["TUNER_STOPPED"] = [state.problem]
    if state.mode == OFF:
        return checks
    if state.paused:
        until = "until it is resumed" if state.paused_until is None else f"until {utc(state.paused_until)}"
        checks["TUNER_PAUSED"] = [f"{state.paused}; {until}"]
    if state.mode == APPROVE and state.phase == WAITING and state.proposed is not None:
        proposed = state.proposed
        checks["TUNER_APPROVAL_NEEDED"] = [f"proposal {proposed.number} since {utc(state.since)}: {proposed.why}"]
    if state.gave_up and misses:
        checks["TUNER_SLO_MISSED"] = [*misses, f"gave up: {state.gave_up}"]
    return checks


def of_trail(records: Sequence[AuditRecord], now: float) -> Dict[str, List[str]]:
    """Checks about what happened in the last day, unless a success or an operator's word came after it."""
    checks: Dict[str, List[str]] = {}
    for record in records:
        if record.what in (KEPT, RESUMED, MODE):
            checks.clear()
        elif abs(now - record.at) < DAY_S and not record.refers:
            line = f"#{record.number}, {utc(record.at)}: {record.why}"
            if record.what == TAKEN_BACK and record.detail.get("rule") != BY_OPERATOR:
                # the newest alone: it is what the back-off is for
                checks["TUNER_TRIAL_TAKEN_BACK"] = [line]
            elif record.what == DRIFT:
                checks.setdefault("TUNER_DRIFT", []).append(line)
    return checks
