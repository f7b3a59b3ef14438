"""Settings with fewer changes: what was found, with some of its knobs as they are in force.

What a knob does that shows nothing under this load may show under another, and each written value is one more to
explain at night. A search moves its knobs together, so it seldom measures its best with one of them left alone.
"""

from __future__ import annotations

from itertools import chain, combinations
from typing import List, Mapping

from ceph_tuner.core.knobs.releases import Settings, Value
from ceph_tuner.core.knobs.settings import change_cost
from ceph_tuner.search.space import KnobSpace

MOST_MOVED = 12
"""Knobs of which all combinations are looked at: some thousand."""


def simpler_variants(
    space: KnobSpace, settings: Settings, in_force: Mapping[str, Value], built_in: bool
) -> List[Settings]:
    """Give settings of the space without some of their moves, those that take the fewest writes first.

    `built_in`: a built-in profile is in force. A combination that the space does not allow, such as reservations above
    1, is left out; so are all of them where too many knobs are moved.
    """
    start = space.nearest(in_force)
    moved = left_out(space, settings, start)
    if len(moved) > MOST_MOVED:
        return []
    some = chain.from_iterable(combinations(moved, count) for count in range(1, len(moved)))
    variants = [{**settings, **{name: start[name] for name in names}} for names in some]
    allowed = [variant for variant in variants if space.nearest(variant) == variant]
    return sorted(allowed, key=lambda variant: change_cost(variant, start, built_in))


def left_out(space: KnobSpace, settings: Settings, variant: Settings) -> List[str]:
    """Name the knobs by which these settings differ from a variant."""
    return [name for name in space.free if settings[name] != variant[name]]
