"""A step is done when the OSDs show it, and the operator of a resource has done its part (docs/safe-writes.md)."""

from __future__ import annotations

from functools import partial
from typing import Callable, Dict, List, Mapping, Optional, Sequence, Set

from ceph_tuner.core.ceph.target import covered
from ceph_tuner.core.changes.config_database import Database
from ceph_tuner.core.changes.configuration import Configuration
from ceph_tuner.core.changes.osd_poll import Late, OsdPoll, unhindered
from ceph_tuner.core.changes.plan import ChangePlan, Step
from ceph_tuner.core.changes.resource_steps import InResource
from ceph_tuner.core.changes.shard_rereading import Key
from ceph_tuner.core.knobs.catalogue import KNOBS
from ceph_tuner.core.knobs.settings import same_value


class EffectCheck:
    """Waits until what was written shows. Writes nothing."""

    def __init__(self, config: Configuration, poll: OsdPoll) -> None:
        self._config, self._poll = config, poll

    def await_state(self, step: Step, steps: Sequence[Step], check: Callable[[], None] = unhindered) -> Late:
        """Where a step ends the state that the earlier ones needed: the OSDs that are late to show those."""
        if not step.settled:
            return Late()
        self.settle()
        return self.await_sources({item.key for item in steps[: steps.index(step)]}, check=check)

    def settle(self) -> List[str]:
        """Wait for the operator of a resource; words for what it has not done."""
        words = self._config.settle() if isinstance(self._config, InResource) else ""
        return [words] if words else []

    def await_effect(self, plan: ChangePlan, check: Callable[[], None] = unhindered) -> List[str]:
        """Raise EffectNotSeen unless every covered OSD comes to show what was planned; name those that went down."""

        def wrong(osd: int, options: Mapping[str, str]) -> Optional[str]:
            for name, value in plan.expected.items():
                own = options.get(name, "no such option")
                if not same_value(own, value):
                    return f"osd.{osd} shows {name} = {own}, expected {value}"
            return None

        ask = partial(self._config.effective_on, names=tuple(plan.expected))
        late = self._poll.until_right("the OSDs are asked whether they follow", plan.osds, ask, wrong, True, check)
        late.check()
        up = set(covered(plan.target, self._config.places()))
        return [
            *(f"osd.{osd} went down: it follows when it starts, unchecked" for osd in plan.osds if osd not in up),
            *(f"{words}: unchecked" for words in late.silent),
        ]

    def await_sources(self, keys: Set[Key], last: bool = False, check: Callable[[], None] = unhindered) -> Late:
        """Wait until the OSDs have what the database now says for these keys."""
        entries = Database(self._config.dump())
        places = self._config.places()
        names: Dict[int, Set[str]] = {}
        for who, name in keys:
            if name in KNOBS and KNOBS[name].change == "restart":
                continue
            for osd in covered(who, places):
                names.setdefault(osd, set()).add(name)
        where = {place.osd: place for place in places}

        def wrong(osd: int, sources: Mapping[str, Mapping[str, str]]) -> Optional[str]:
            for name in sorted(names[osd]):
                decides = entries.winner(name, where[osd])
                own = sources.get(name, {}).get("mon")
                if own is None if decides is None else own is not None and same_value(own, decides.value):
                    continue
                expected = "its default" if decides is None else decides.value
                return f"osd.{osd} has {name} = {own or 'its default'} from the monitors, not yet {expected}"
            return None

        words = "the OSDs take over what is written"
        return self._poll.until_right(words, sorted(names), self._config.sources_on, wrong, last, check)
