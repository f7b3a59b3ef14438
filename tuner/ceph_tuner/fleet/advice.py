"""One cluster's search as a piece of work that can be done anywhere: what it is told, and what it brings back."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Tuple

from ceph_tuner import __version__
from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.knobs.releases import Release
from ceph_tuner.core.profiles.profile import Profile
from ceph_tuner.recommend import Prediction, Question, SearchEffort
from ceph_tuner.recommend.document import document
from ceph_tuner.recommend.recommendation import recommend
from ceph_tuner.workers import Tell

_LASTING = ("release", "version", "osds", "hosts", "osd")
"""Of a model, what is no work; of pools, `_pgs`."""
_PASSING = ("evidence", "description")
"""Of a profile, what tells of one moment's load."""


@dataclass(frozen=True)
class SearchTask:
    """What a search is told."""

    name: str
    """The cluster's."""
    question: Question
    effort: SearchEffort
    elsewhere: Tuple[Profile, ...] = ()
    """Profiles of like clusters, to try first."""
    explain: bool = True
    """Whether the answer has what the search has learnt: some seconds more."""
    seen: bool = False
    """The description is of what the cluster did when it was looked at."""
    looked_at: FrozenSet[str] = frozenset()
    """Clusters of `elsewhere` of which that is so."""

    @property
    def digest(self) -> str:
        """Of all that the answer depends on: the same digest, the same answer.

        Where the cluster was looked at, of what does not change from one look to the next: its parts, its settings and
        what is wanted. An answer is then good for a while. The same holds for profiles of clusters that were looked at.
        """
        plain = _plain(self)
        del plain["looked_at"]
        if self.seen:
            model = plain["question"]["model"]
            plain["question"]["model"] = {**{part: model[part] for part in _LASTING}, "pgs": _pgs(self.question)}
        for other in plain["elsewhere"]:
            if other.get("workload") in self.looked_at:
                other.update(dict.fromkeys(_PASSING))
        text = json.dumps([__version__, plain], sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Advice:
    """What it brings back."""

    document: Mapping[str, Any]
    """What `ceph-tuner recommend --format json` would print."""
    profile: Optional[Profile] = None
    """What is recommended; None where nothing is better than what is in force."""


def advise(task: SearchTask, tell: Tell) -> Advice:
    """Search, in this process alone. Raises InputError for objectives that the twin has nothing to say about."""
    listener = _Listener(task.question, tell)
    answer = recommend(task.question, task.effort, listener, 1, task.elsewhere, explain=task.explain)
    return Advice(document(answer, task.name), answer.profile(task.name))


class _Listener:
    """`recommend.SearchListener` that tells it to whoever has asked for the search."""

    def __init__(self, question: Question, tell: Tell) -> None:
        self._judge, self._tell = Judge(question.slo), tell
        self._best = ""

    def phase(self, text: str, done: int, total: int) -> None:
        """Pass on how far it is."""
        self._tell({"text": text, "done": done, "total": total, "best": self._best})

    def best(self, prediction: Prediction) -> None:
        """Remember how many objectives the best so far keeps."""
        means = prediction.means
        # the first is what is in force
        if not self._judge.reference:
            self._judge = replace(self._judge, reference=means)
        hard, misses = sum(each.hard for each in self._judge.objectives), len(self._judge.missed_hard(means))
        self._best = f"{prediction.label}: {hard - misses} of {hard} met" if hard else prediction.label


def _pgs(question: Question) -> List[List[int]]:
    """Placement groups of each kind of pool: which ones are told of as one depends on what they do at the time."""
    counts: Counter[Tuple[int, int]] = Counter()
    for pool in question.model.pools:
        counts[pool.size, pool.k] += pool.pgs
    return [[*kind, count] for kind, count in sorted(counts.items())]


def _plain(value: Any) -> Any:
    """Values as JSON has them, whatever order and objects they were made of."""
    if isinstance(value, Release):
        return value.name
    if isinstance(value, Profile):
        return value.to_dict()
    if is_dataclass(value):
        mapping: Dict[str, Any] = {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
        return mapping
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items: List[Any] = [_plain(item) for item in value]
        return items
    return value
