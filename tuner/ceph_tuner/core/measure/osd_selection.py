"""Which OSDs are asked, where all would be too many: the same ones for the same OSDs."""

from __future__ import annotations

from typing import Dict, Iterable, Tuple


def share_out(groups: Iterable[Iterable[int]], limit: int) -> Tuple[int, ...]:
    """At most `limit` OSDs of the groups, the same number of each; what a small group leaves goes to the larger.

    An OSD of several groups is taken for the smallest of them.
    """
    by_size = sorted((sorted(group) for group in groups), key=len)
    ids: Dict[int, None] = {}
    for place, group in enumerate(by_size):
        share = (limit - len(ids)) // (len(by_size) - place)
        ids.update(dict.fromkeys(spread([osd for osd in group if osd not in ids], share)))
    return tuple(ids)


def spread(osds: Iterable[int], limit: int) -> Tuple[int, ...]:
    """At most `limit` OSDs, evenly over their ids, the same ones for the same OSDs."""
    ids = sorted(osds)
    if len(ids) <= limit:
        return tuple(ids)
    return tuple(ids[place * len(ids) // limit] for place in range(limit))
