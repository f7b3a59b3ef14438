"""What an automatic mode is for, and what it sees: the whole cluster, or one device class as a cluster of its own."""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple

from ceph_tuner.core.autopilot.learning import absolute_where_relative
from ceph_tuner.core.ceph.target import Place
from ceph_tuner.core.changes.writer import for_class, key_for_class
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.measure.metrics import CLASS, Scope
from ceph_tuner.core.measure.sample import Sample, Window, within

from .sampler import Sampler
from .scopes_watched import ScopesWatched
from .slos import SloBook

OF_THE_MGR = ".mgr"
"""A pool of Ceph's own, which no client waits for."""
STATE, TRAIL = "auto/state", "audit/"


class Aim:
    """`phase_windows.Eyes` and more. Without a device class it is for all that no class's own mode is for."""

    def __init__(
        self,
        sampler: Sampler,
        scopes: ScopesWatched,
        slos: SloBook,
        target: Callable[[], str],
        who: str,
        device_class: str = "",
    ) -> None:
        """`target` gives the OSDs that are tuned where that is not a class; `who` is the plugin."""
        self._sampler, self._scopes, self._slos, self._target = sampler, scopes, slos, target
        self.device_class = device_class
        self._scope = Scope(CLASS, device_class) if device_class else None
        self.who = for_class(who, device_class)
        self.state_key = key_for_class(STATE, device_class)
        self.trail_prefix = f"{TRAIL}{device_class}/" if device_class else TRAIL

    @property
    def scope(self) -> str:
        """What its regime is called by; empty for the whole cluster."""
        return str(self._scope) if self._scope is not None else ""

    @property
    def stands_aside(self) -> bool:
        """Whether it has nothing to do, as device classes have their own."""
        return self._scope is None and bool(self._scopes.classes())

    @property
    def target(self) -> str:
        """The section whose OSDs are tuned."""
        return f"osd/class:{self.device_class}" if self.device_class else self._target()

    def slo(self) -> Optional[Slo]:
        """What is wanted; None where nothing is, or where device classes have modes of their own."""
        slo = self._slos.current()
        if slo is None or self.stands_aside:
            return None
        return slo if self._scope is None else slo.of_class(self.device_class, self._pools())

    def absolute_slo(self, reference: Callable[[], Mapping[str, float]]) -> Optional[Slo]:
        """The same, with relative bounds as numbers: `reference` reads what they refer to, of this part."""
        return absolute_where_relative(self.slo(), reference)

    def policy(self) -> Tuple[str, Optional[float]]:
        """The policy of the calendar that holds, and when another one takes over; empty without a calendar."""
        return self._slos.policy()

    def refer(self, slo: Slo, means: Mapping[str, float]) -> None:
        """Keep for good what the relative bounds of an SLO refer to, where it is seen for the first time."""
        self._slos.refer(slo, means, self._scope)

    def part_of(self, means: Mapping[str, float]) -> Dict[str, float]:
        """Of the cluster's means those of this part of it."""
        return dict(means) if self._scope is None else within(means, self._scope, self._pools())

    def concerns(self, check: Mapping[str, Any]) -> bool:
        """Whether a health check is about OSDs, PGs or pools of this part; one that does not say is."""
        layout = self._scopes.layout
        return self._scope is None or layout is None or layout.concerns(self._scope, check)

    def tunes(self, place: Place) -> bool:
        """Whether an OSD is one of those that the mode is for."""
        return not self.device_class or place.device_class == self.device_class

    def running(self, born: Mapping[int, int]) -> Mapping[int, int]:
        """Of the running OSDs, those that it is for."""
        return {osd: born[osd] for osd in self._scopes.among(born, self.device_class)}

    def notes(self) -> Tuple[str, ...]:
        """What an operator should know of how the objectives fit the cluster."""
        layout = self._scopes.layout
        if layout is None:
            return ()
        if self._scope is not None:
            pools = layout.spanning(self.device_class)
            return tuple(
                f"the pool {name} lies on other device classes too: its clients wait for the slowest, its work counts "
                "with each class, and settings of one class alone do not decide how it does"
                for name in pools
                if name != OF_THE_MGR
            )
        slo = self._slos.current()
        whole = [each.text for each in slo.objectives if each.scope is None] if slo and self._scopes.classes() else []
        without_mode = f"no mode keeps {'; '.join(whole)}: classes have their own, so give it a scope" if whole else ""
        return tuple(filter(None, (*self._scopes.missing(), without_mode)))

    def latest(self) -> Optional[Sample]:
        """The newest sample; None where it shows nothing of this part."""
        sample = self._sampler.latest()
        return sample if sample is None or self._scope is None else sample.of(self._scope, self._pools())

    def window(self, seconds: float) -> Optional[Window]:
        """The samples of the last `seconds` as one window."""
        return self._of(self._sampler.window(seconds))

    def between(self, start: float, end: float) -> Optional[Window]:
        """The samples of that stretch of time as one window; None where there are none."""
        return self._of(self._sampler.between(start, end))

    def watch(self, groups: Mapping[str, Sequence[int]]) -> None:
        """Watch these groups of OSDs side by side from now on."""
        self._sampler.groups.watch(groups, self.device_class)

    def group_between(self, name: str, start: float, end: float) -> Dict[str, float]:
        """Means of a group's OSDs in that stretch of time; empty where too few of them were seen."""
        return self._sampler.group_between(name, start, end, self.device_class)

    @property
    def scrubs_since(self) -> Optional[float]:
        """When the oldest scrub under way began; None where none is known to be."""
        return self._sampler.scrubs_since(self._scope)

    def _of(self, window: Optional[Window]) -> Optional[Window]:
        return window if window is None or self._scope is None else window.of(self._scope, self._pools())

    def _pools(self) -> Tuple[str, ...]:
        layout = self._scopes.layout
        return layout.pools_of(self.device_class) if layout is not None else ()
