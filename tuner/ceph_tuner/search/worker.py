"""The optimiser as a process: one JSON request on standard input, one JSON answer on standard output.

    python -m ceph_tuner.search.worker < request.json

ceph-mgr starts it with a time limit; nothing that happens here (a missing library, a wrong request, a crash of
numpy) can harm the mgr. Whatever goes wrong is told as JSON too; the exit code is 0 for an answer, 2 for a request
that cannot be used, 1 for everything else.

Request
    version   1
    release   "tentacle", or a version such as "20.2.4"
    slo       as `Slo.to_dict` gives it
    in_force  the settings in force, reservations and limits as fractions whatever the release: the nine mClock
              values, or osd_mclock_profile with a built-in profile's name; other knobs where they differ from the
              release's default
    baseline  metric -> mean under the settings in force, or null: then these are what is to be measured first
    told      list of what was tried: {"settings": {…} or "profile": NAME, and "values": {metric: mean} or
              "failed": REASON (with the "values" seen until then), and "expected": {metric: [middle, low, high]}
              where an answer had said so of them}
    knobs     names of the knobs to search, or null for those that the objectives are about
    shards    of an OSD, of the one with the fewest where they differ (default 1)
    kind      of the OSDs' drives: "ssd" (the default) or "hdd"
    seed      an integer; the same request gives the same answer
    ask       how many proposals, to be tried side by side (0 to 16, default 1)
    safe_probability, step_limit
              how bold it may be (`optimise.Options`); absent: the defaults
    elsewhere {"hardware": {"capacity_iops", "bandwidth_bytes_s", "shards", "device_class"}, "osds": N,
              "profiles": [as `Profile.to_dict` gives them]}, or null: profiles of other clusters, suggested where
              these are like this one
    explain   true: the answer says what was learnt, which takes some seconds

Answer
    {"version": 1, "ok": true,
     "proposals": [{"settings": {…}, "why": TEXT, "expected": {metric: [middle, low, high]}}, …], fewer or none where
                  no more are safe; the ends are of 95%, and nothing is expected before anything was learnt,
     "verdict": {"state": "searching" | "satisfied" | "nothing safe" | "infeasible" | …, "reason": TEXT},
     "best": {"settings": {…}, "values": {…}, "repeats": N, "loss": X, "verdicts": […]} or null,
     "searched": [knob, …],
     "elsewhere": [{"profile": NAME, "suggested": true | false, "reason": TEXT}, …],
     "explanation": {"importance": {metric: [{"knob": NAME, "share": X}, …]},
                     "in_the_way": {"together": X, "conflicts": [[objective, …], …], "without": {objective: X},
                                    "nearest": [{"objective", "instead", "bound", "share"}, …], …} or null}
                    or null: not asked for, or fewer than four trials}
    {"version": 1, "ok": false, "kind": "request" | "unavailable" | "internal", "error": ONE LINE}
"""

from __future__ import annotations

import json
import sys
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ceph_tuner.core.bounded import DOCUMENT, read_json
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.ranking import candidate
from ceph_tuner.core.knobs.settings import fitting_reservations, settings_key
from ceph_tuner.core.measure.sample import measured_once
from ceph_tuner.search.designs import informed_designs
from ceph_tuner.search.optimiser import Failed
from ceph_tuner.search.request import VERSION, SearchRequest, Told, parse_request
from ceph_tuner.search.space import KnobSpace, space_for

TOLD_MAX = 200
"""A fit takes seconds from here on; the oldest are left out."""


def answer(data: object) -> Dict[str, Any]:
    """Answer a request that was read from JSON. Raises InputError."""
    request = parse_request(data)
    in_force = fitting_reservations(request.in_force)
    space = space_for(request.release, request.slo.work, in_force, request.knobs, request.shards, request.kind)
    best = _best(request.told, Judge(request.slo, request.baseline or {}))
    return {
        "version": VERSION,
        "ok": True,
        **_search_answer(space, request, best),
        "best": best,
        "searched": list(space.free),
    }


def _search_answer(space: KnobSpace, request: SearchRequest, best: Optional[Mapping[str, Any]]) -> Dict[str, Any]:
    """Give proposals, the search's verdict, and what it has learnt."""
    # numpy and scikit-optimize come with it: a request that is wrong is answered without
    from ceph_tuner.optimise.contract import Options
    from ceph_tuner.search.explanation import explained
    from ceph_tuner.search.knob_search import KnobSearch
    from ceph_tuner.search.shares_prior import SharesPrior
    from ceph_tuner.search.transfer import Elsewhere, Here

    slo = request.slo
    try:
        options = Options(safe_probability=request.safe_probability, step_limit=request.step_limit)
    except ValueError as error:
        raise InputError("request", str(error), "another share") from error
    suggestions = informed_designs(space, slo.work)
    prior = SharesPrior(space, list(slo.metrics), slo.work)
    transfer = None
    if request.elsewhere is not None:
        profiles, hardware, osds = request.elsewhere
        transfer = Elsewhere(profiles, Here(request.release, hardware, osds, slo.work), space)
    # without a baseline it is asked for, with exactly what is in force
    start = request.in_force if request.baseline is None else fitting_reservations(request.in_force)
    search = KnobSearch(space, slo, start, request.seed, options, [prior], suggestions, elsewhere=transfer)
    if request.baseline is not None:
        search.tell(start, measured_once(request.baseline))
        for settings, result, expected in request.told[-TOLD_MAX:]:
            search.tell(fitting_reservations(settings), result, expected=expected)
    proposals = [
        {"settings": proposal.settings, "why": proposal.why, "expected": proposal.expected}
        for proposal in search.ask_many(request.ask)
    ]
    verdict = search.verdict()
    misses = best is None or any(entry["hard"] and not entry["met"] for entry in best["verdicts"])
    learnt = explained(search, slo, misses) if request.explain else None
    return {
        "proposals": proposals,
        "verdict": {"state": verdict.state, "reason": verdict.reason},
        "elsewhere": [entry.to_dict() for entry in transfer.judged] if transfer is not None else [],
        "explanation": None if learnt is None else learnt.brief(),
    }


def _best(trials: List[Told], judge: Judge) -> Optional[Dict[str, Any]]:
    """Give the best settings by the mean over their repeats; settings that failed once are out."""
    groups: Dict[str, List[Told]] = {}
    for told in trials:
        groups.setdefault(settings_key(told.settings), []).append(told)
    candidates = []
    for key, group in sorted(groups.items()):
        results = [told.result for told in group if not isinstance(told.result, Failed)]
        if len(results) == len(group):
            entry = candidate(key, [{name: measure.mean for name, measure in result.items()} for result in results])
            candidates.append((judge.rank(entry.means), key, entry, group[0].settings))
    if not candidates:
        return None
    (_, value), _, entry, settings = min(candidates, key=lambda item: item[:2])
    return {
        "settings": settings,
        "values": dict(entry.means),
        "repeats": entry.repeats,
        "loss": value,
        "verdicts": [verdict.to_dict() for verdict in judge.verdicts(entry.means)],
    }


def _failure(kind: str, error: BaseException) -> Dict[str, Any]:
    words = " ".join(str(error).split()) or type(error).__name__
    text = words if kind == "request" else f"{type(error).__name__}: {words}"
    return {"version": VERSION, "ok": False, "kind": kind, "error": text}


def serve(text: str) -> Tuple[Dict[str, Any], int]:
    """Answer a request's text; give the exit code beside it. Raises nothing."""
    try:
        return answer(read_json(text, "request", DOCUMENT, constants=True)), 0
    except InputError as error:
        return _failure("request", error), 2
    except ImportError as error:
        return _failure("unavailable", error), 1
    except Exception as error:
        return _failure("internal", error), 1


def main() -> None:
    """Read the request, write the answer."""
    result, code = serve(sys.stdin.read())
    # ensure_ascii: the reader's locale does not matter; allow_nan: a NaN that got this far is our fault, and told so
    try:
        text = json.dumps(result, allow_nan=False)
    except ValueError as error:
        text, code = json.dumps(_failure("internal", error)), 1
    sys.stdout.write(text + "\n")
    sys.exit(code)


if __name__ == "__main__":
    main()
