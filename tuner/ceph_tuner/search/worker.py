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
              "failed": REASON (with the "values" seen until then)}
    knobs     names of the knobs to search, or null for those that the objectives are about
    seed      an integer; the same request gives the same answer
    ask       how many proposals, to be tried side by side (0 to 16, default 1)
    safe_probability, step_limit
              how bold it may be (`bayesian.Options`); absent: the defaults
    elsewhere {"hardware": {"capacity_iops", "bandwidth_bytes_s", "shards", "device_class"}, "osds": N,
              "profiles": [as `Profile.to_dict` gives them]}, or null: profiles of other clusters, suggested where
              these are like this one
    explain   true: the answer says what was learnt, which takes some seconds

Answer
    {"version": 1, "ok": true,
     "proposals": [{"settings": {…}, "why": TEXT}, …], fewer or none where no more are safe,
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
import math
import sys
from contextlib import suppress
from typing import Any, Dict, List, Mapping, Optional, Tuple, cast

from ceph_tuner.cost import Hardware
from ceph_tuner.errors import InputError
from ceph_tuner.knobs import KNOBS, MCLOCK_NINE, PROFILE
from ceph_tuner.profile import Profile
from ceph_tuner.releases import Release, Settings, release_of
from ceph_tuner.sample import Measure
from ceph_tuner.search.designs import informed_designs
from ceph_tuner.search.optimiser import Failed, Result
from ceph_tuner.search.space import Space, space_for
from ceph_tuner.slo import Slo, evaluate, parse_slo
from ceph_tuner.winner import candidate, rank

VERSION = 1
ASK_MAX = 16
TOLD_MAX = 200
"""A fit takes seconds from here on; the oldest are left out."""

Told = Tuple[Settings, Result]


def answer(request: object) -> Dict[str, Any]:
    """Answer a request that was read from JSON. Raises InputError."""
    document = _mapping(request, "request")
    if document.get("version") != VERSION:
        raise InputError("request.version", repr(document.get("version")), str(VERSION))
    release = release_of(_text(document, "release"), "request.release")
    slo = parse_slo(document.get("slo"), place=_placer("request.slo"))
    in_force = _in_force(document.get("in_force"), release)
    baseline = _values(document.get("baseline"), "request.baseline") if document.get("baseline") is not None else None
    told = _told(document.get("told", []), release)
    knobs = document.get("knobs")
    if knobs is not None and not (isinstance(knobs, list) and all(isinstance(name, str) for name in knobs)):
        raise InputError("request.knobs", repr(knobs), "a list of names, or null")
    space = space_for(release, slo.work, in_force, knobs)
    best = _best(told, slo, baseline)
    return {
        "version": VERSION,
        "ok": True,
        **_searched(space, slo, release, in_force, baseline, told, best, document),
        "best": best,
        "searched": list(space.free),
    }


def _searched(
    space: Space,
    slo: Slo,
    release: Release,
    in_force: Settings,
    baseline: Optional[Mapping[str, float]],
    told: List[Told],
    best: Optional[Mapping[str, Any]],
    document: Mapping[str, Any],
) -> Dict[str, Any]:
    """Give proposals, the search's verdict, and what it has learnt."""
    # numpy and scikit-optimize come with it: a request that is wrong is answered without
    from ceph_tuner.bayesian.contract import Options
    from ceph_tuner.search.explaining import explained
    from ceph_tuner.search.knob_search import KnobSearch
    from ceph_tuner.search.shares_prior import SharesPrior
    from ceph_tuner.search.transfer import Elsewhere, Here

    try:
        options = Options(
            safe_probability=_share(document, "safe_probability", 0.95), step_limit=_share(document, "step_limit", 1.0)
        )
    except ValueError as error:
        raise InputError("request", str(error), "another share") from error
    suggestions = informed_designs(space, slo.work)
    prior = SharesPrior(space, [objective.metric for objective in slo.objectives], slo.work)
    others = _elsewhere(document.get("elsewhere"))
    transfer = None
    if others is not None:
        profiles, hardware, osds = others
        transfer = Elsewhere(profiles, Here(release, hardware, osds, slo.work), space)
    search = KnobSearch(space, slo, in_force, _seed(document), options, [prior], suggestions, elsewhere=transfer)
    if baseline is not None:
        search.tell(in_force, {name: Measure(value, 0.0, 1) for name, value in baseline.items()})
        for settings, result in told[-TOLD_MAX:]:
            search.tell(settings, result)
    found = [{"settings": proposal.settings, "why": proposal.why} for proposal in search.ask_many(_count(document))]
    verdict = search.verdict()
    missed = best is None or any(entry["hard"] and not entry["met"] for entry in best["verdicts"])
    learnt = explained(search, slo, missed) if document.get("explain") else None
    return {
        "proposals": found,
        "verdict": {"state": verdict.state, "reason": verdict.reason},
        "elsewhere": [entry.to_dict() for entry in transfer.judged] if transfer is not None else [],
        "explanation": None if learnt is None else learnt.brief(),
    }


def _best(told: List[Told], slo: Slo, baseline: Optional[Mapping[str, float]]) -> Optional[Dict[str, Any]]:
    """Give the best settings by the mean over their repeats; settings that failed once are out."""
    groups: Dict[str, List[Told]] = {}
    for settings, result in told:
        groups.setdefault(json.dumps(settings, sort_keys=True), []).append((settings, result))
    found = []
    for key, group in sorted(groups.items()):
        results = [result for _, result in group if not isinstance(result, Failed)]
        if len(results) == len(group):
            entry = candidate(key, [{name: measure.mean for name, measure in result.items()} for result in results])
            found.append((rank(evaluate(slo, entry.means, baseline)), key, entry, group[0][0]))
    if not found:
        return None
    (_, value), _, entry, settings = min(found, key=lambda item: item[:2])
    verdicts = [verdict.to_dict() for verdict in evaluate(slo, entry.means, baseline)]
    return {
        "settings": settings,
        "values": dict(entry.means),
        "repeats": entry.repeats,
        "loss": value,
        "verdicts": verdicts,
    }


def _elsewhere(data: object) -> Optional[Tuple[List[Profile], Hardware, int]]:
    """Profiles of other clusters, and the hardware here. One that another version wrote is left out."""
    if data is None:
        return None
    given = _mapping(data, "request.elsewhere")
    offered, about, osds = given.get("profiles"), given.get("hardware"), given.get("osds")
    if not isinstance(offered, list):
        raise InputError("request.elsewhere.profiles", repr(offered)[:60], "a list")
    if isinstance(osds, bool) or not isinstance(osds, int) or osds < 1:
        raise InputError("request.elsewhere.osds", repr(osds), "a whole number, 1 or more")
    try:
        hardware = Hardware(**_mapping(about, "request.elsewhere.hardware"))
    except (TypeError, ValueError) as error:
        raise InputError("request.elsewhere.hardware", str(error), "what mClock believes of an OSD") from error
    profiles = []
    for document in offered:
        with suppress(InputError):
            profiles.append(Profile.from_dict(document))
    return profiles, hardware, osds


def _in_force(data: object, release: Release) -> Settings:
    settings = _settings(data, "request.in_force")
    profile = settings.get(PROFILE)
    if isinstance(profile, str) and profile in release.profiles:
        settings.update(release.profiles[profile])
    missing = [name for name in MCLOCK_NINE if name not in settings]
    if missing:
        raise InputError("request.in_force", f"no {missing[0]}", "the nine mClock values, or a built-in profile")
    return settings


def _told(data: object, release: Release) -> List[Told]:
    if not isinstance(data, list):
        raise InputError("request.told", repr(data)[:60], "a list")
    told = []
    for index, item in enumerate(data):
        place = f"request.told.{index}"
        entry = _mapping(item, place)
        profile = entry.get("profile")
        if profile is not None and profile not in release.profiles:
            raise InputError(f"{place}.profile", repr(profile), "one of " + ", ".join(release.profiles))
        settings = _settings(entry.get("settings", {} if profile else None), f"{place}.settings")
        if profile:
            settings.update(release.profiles[str(profile)])
        values = _values(entry.get("values", {}), f"{place}.values")
        if entry.get("failed") is not None:
            told.append((settings, cast(Result, Failed(str(entry["failed"]), values))))
        else:
            told.append((settings, {name: Measure(value, 0.0, 1) for name, value in values.items()}))
    return told


def _settings(data: object, place: str) -> Settings:
    settings: Settings = {}
    for name, value in _mapping(data, place).items():
        if name not in KNOBS:
            raise InputError(place, repr(name), "a known knob")
        if not isinstance(value, (bool, int, float, str)) or (isinstance(value, float) and not math.isfinite(value)):
            raise InputError(f"{place}.{name}", repr(value), "a value")
        numeric = not KNOBS[name].choices and KNOBS[name].kind != "bool"
        if numeric and (isinstance(value, (bool, str)) or value < 0):
            raise InputError(f"{place}.{name}", repr(value), "a number, at least 0")
        settings[name] = value
    return settings


def _values(data: object, place: str) -> Dict[str, float]:
    values = {}
    for name, value in _mapping(data, place).items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise InputError(f"{place}.{name}", repr(value), "a number")
        # Python's JSON reads NaN and Infinity: a value that is no number was not seen
        if math.isfinite(value):
            values[name] = float(value)
    return values


def _mapping(data: object, place: str) -> Mapping[str, Any]:
    if not isinstance(data, dict):
        raise InputError(place, "nothing" if data is None else repr(data)[:60], "an object")
    return data


def _text(document: Mapping[str, Any], key: str) -> str:
    value = document.get(key)
    if not isinstance(value, str):
        raise InputError(f"request.{key}", repr(value), "a text")
    return value


def _seed(document: Mapping[str, Any]) -> int:
    seed = document.get("seed", 0)
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise InputError("request.seed", repr(seed), "a whole number from 0 to 2**63 - 1")
    return seed


def _share(document: Mapping[str, Any], key: str, default: float) -> float:
    value = document.get(key, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 1:
        raise InputError(f"request.{key}", repr(value), "a number above 0 and at most 1")
    return float(value)


def _count(document: Mapping[str, Any]) -> int:
    count = document.get("ask", 1)
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= ASK_MAX:
        raise InputError("request.ask", repr(count), f"0 to {ASK_MAX}")
    return count


def _placer(stem: str) -> Any:
    return lambda *keys: ".".join([stem, *map(str, keys)])


def _failure(kind: str, error: BaseException) -> Dict[str, Any]:
    words = " ".join(str(error).split()) or type(error).__name__
    text = words if kind == "request" else f"{type(error).__name__}: {words}"
    return {"version": VERSION, "ok": False, "kind": kind, "error": text}


def serve(text: str) -> Tuple[Dict[str, Any], int]:
    """Answer a request's text; give the exit code beside it. Raises nothing."""
    try:
        return answer(json.loads(text)), 0
    except (json.JSONDecodeError, RecursionError) as error:
        return _failure("request", InputError("request", f"no JSON ({error})", "a JSON object")), 2
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
