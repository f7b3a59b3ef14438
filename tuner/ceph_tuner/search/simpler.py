"""Settings with fewer changes: what was found, with some of its knobs as they are in force.

What a knob does that shows nothing under this load may show under another, and each written value is one more to
explain at night. A search moves its knobs together, so it seldom measures its best with one of them left alone.
"""

from __future__ import annotations

from itertools import chain, combinations
from typing import List, Mapping

from ceph_tuner.core.knobs.releases import MCLOCK_NINE, Settings, Value
from ceph_tuner.core.knobs.settings import change_cost, same_value
from ceph_tuner.search.space import KnobSpace

MOST_MOVED = 12
"""Knobs of which all combinations are looked at: some thousand."""


def simpler_variants(
    space: KnobSpace, settings: Settings, in_force: Mapping[str, Value], built_in: bool
) -> List[Settings]:
    """Give settings of the space without some of their moves, those that take the fewest writes first.

    `built_in`: a built-in profile is in force, which stays where none of the nine is moved. A combination that the
    space does not allow, such as reservations above 1, is left out, and so are all where too many knobs are moved.
    """
    start = space.nearest(in_force)
    moved = [name for name in space.free if not same_value(str(settings[name]), str(start[name]))]
    if len(moved) > MOST_MOVED:
        return []
    some = chain.from_iterable(combinations(moved, count) for count in range(1, len(moved)))
    variants = [{**settings, **{name: start[name] for name in names}} for names in some]
    variants = [_moves_alone(space, variant, start) for variant in variants if space.nearest(variant) == variant]
    return sorted(variants, key=lambda variant: change_cost(variant, start, built_in))


def left_out(space: KnobSpace, settings: Settings, variant: Settings) -> List[str]:
    """Name the knobs that these settings move, and the variant does not."""
    whole = space.nearest(variant)
    return [name for name in space.free if settings[name] != whole[name]]


def _moves_alone(space: KnobSpace, variant: Settings, start: Settings) -> Settings:
    """Without what is as in force already; the nine are written together or not at all."""
    nine = {name: value for name, value in variant.items() if name in MCLOCK_NINE}
    counts = {name: variant[name] for name in space.counts if variant[name] != start[name]}
    return {
        **(space.always if counts else {}),
        **(nine if any(value != start[name] for name, value in nine.items()) else {}),
        **counts,
    }
