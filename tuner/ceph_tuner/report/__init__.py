"""One page about a recommendation or a tuning run, for people who were not there: what it knows, drawn and in words.

Findings        what there is to say, wherever it comes from
read_answer()   `ceph-tuner recommend|tune --format json` in, findings out (`answers.py`)
remembered()    a cluster's store in, findings out (`cluster_history.py`)
page()          findings in, one HTML document out (`page.py`): no script, nothing from the network
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Tuple

from ceph_tuner.core.changes.forecast_pairs import ForecastPair
from ceph_tuner.core.goals.judge import Judge, Verdict
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.goals.trial import Trial
from ceph_tuner.core.knobs.releases import Release, Settings
from ceph_tuner.core.measure.sample import Window

if TYPE_CHECKING:
    # they bring scipy and scikit-learn, and most pages of the program use no more than the words of this package
    from ceph_tuner.optimise.posterior_summary import Dependence, Importance, TrialProgress
    from ceph_tuner.recommend.accounts import Account
    from ceph_tuner.search.explanation import InTheWay

RECOMMENDATION, TUNING, HISTORY = "recommendation", "tuning run", "history"


@dataclass(frozen=True)
class MetricEstimate:
    """A metric under some settings: its mean, and the interval that is known of it."""

    mean: float
    interval: Optional[Tuple[float, float]] = None


@dataclass(frozen=True)
class Option:
    """Settings that were predicted or measured, as often as `runs` says."""

    label: str
    seen: Mapping[str, MetricEstimate]
    runs: int
    in_force: bool = False
    built_in: bool = False
    chosen: bool = False

    @property
    def means(self) -> Dict[str, float]:
        """Mean of each metric."""
        return {name: entry.mean for name, entry in self.seen.items()}


@dataclass(frozen=True)
class Mark:
    """Something that changed at a time (seconds since the epoch), to be told beside the curves."""

    at: float
    what: str
    why: str = ""
    who: str = ""
    outcome: str = ""


@dataclass(frozen=True)
class Span:
    """A time (seconds since the epoch) in which something held: a regime, a page of the book, a miss."""

    kind: str
    name: str
    start: float
    end: float


@dataclass(frozen=True)
class Learnt:
    """What a search has learnt (`search/explanation.py`)."""

    matters: Tuple[Importance, ...] = ()
    around: bool = False
    """Whether that is so around the best settings alone."""
    curves: Tuple[Dependence, ...] = ()
    progress: Tuple[TrialProgress, ...] = ()
    in_the_way: Optional[InTheWay] = None


@dataclass(frozen=True)
class Findings:
    """All that the page says. The first of `options` is what is, or was, in force."""

    kind: str
    cluster: str
    headline: str
    slo: Optional[Slo] = None
    release: Optional[Release] = None
    baseline: Mapping[str, float] = field(default_factory=dict)
    """What relative bounds refer to."""
    options: Tuple[Option, ...] = ()
    interval_means: str = ""
    """What the options' intervals are."""
    better: bool = False
    """Whether the chosen option is better than what is in force by more than chance."""
    tried: Tuple[Mapping[str, float], ...] = ()
    """Means of what was tried besides, known less well than the options."""
    before: Settings = field(default_factory=dict)
    after: Settings = field(default_factory=dict)
    trials: Tuple[Trial, ...] = ()
    windows: Tuple[Window, ...] = ()
    hours: Tuple[Window, ...] = ()
    marks: Tuple[Mark, ...] = ()
    spans: Tuple[Span, ...] = ()
    """What held when, beside the marks (`regimes_in_time.py`)."""
    forecasts: Tuple[ForecastPair, ...] = ()
    """What the twin said before writes, beside what was measured after, oldest first."""
    capacity: Tuple[Account, ...] = ()
    learnt: Learnt = field(default_factory=Learnt)
    commands: Tuple[str, ...] = ()
    undo: Tuple[str, ...] = ()
    written: bool = False
    """Whether the commands are carried out already."""
    plans: Tuple[Mapping[str, Any], ...] = ()
    """Changes that take restarts or move data."""
    worths: Tuple[Mapping[str, Any], ...] = ()
    """What each knob that the search moved is worth."""
    notes: Tuple[str, ...] = ()
    evidence: Tuple[str, ...] = ()
    unknown: Tuple[str, ...] = ()
    """What is not known and matters, one sentence each."""

    @property
    def metrics(self) -> List[str]:
        """Those of the objectives, in their order."""
        return list(self.slo.metrics) if self.slo else []

    @property
    def chosen(self) -> Optional[Option]:
        """What is recommended, or won."""
        return next((option for option in self.options if option.chosen), None)

    def verdicts(self, option: Option) -> List[Verdict]:
        """Hold an option against the objectives."""
        return Judge(self.slo, self.baseline).verdicts(option.means)
