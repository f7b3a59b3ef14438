"""A note on what hosts would have to receive under what is recommended: the twin knows no limit of the network."""

from __future__ import annotations

from typing import Tuple

from ceph_tuner.core.wording import digits
from ceph_tuner.recommend.search import SearchedSettings

NARROW_BYTES_S = 1.25e9
"""What 10 Gbit/s carry; a network that is wider than what the note tells bears it."""


def busy_network(search_result: SearchedSettings) -> Tuple[str, ...]:
    """Say how much each host receives of recovered copies and of what clients write, where that is much.

    More than that passes in truth: the copies of a write, and the shards that an erasure code is rebuilt from.
    """
    model, means = search_result.question.model, search_result.winner.means
    moved = means.get("recovery.bytes_s", 0.0) + means.get("client.write_bytes_s", 0.0)
    each = moved / (model.hosts or model.osds)
    if each <= NARROW_BYTES_S:
        return ()
    under = "these settings" if search_result.choice.better else "what is in force"
    return (
        f"each host would receive {digits(each / 1e9)} GB/s ({digits(8.0 * each / 1e9)} Gbit/s) or more under {under}, "
        "and the twin knows no limit of the network: on a narrower one the work takes longer",
    )
