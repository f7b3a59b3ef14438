"""What an OSD that is emptied by its CRUSH weight alone moves, by Ceph's own osdmaptool: why a drain goes by upmaps."""

from __future__ import annotations

from pathlib import Path

import pytest

from map_tools import FIRSTN, INDEP, MapTools


@pytest.mark.parametrize("release", ["tentacle", "reef"])
@pytest.mark.parametrize(
    ("osds", "on_host", "kind", "choose", "least", "most"),
    [
        (4, 1, "replicated", FIRSTN, 1.0, 1.0),
        (12, 3, "replicated", FIRSTN, 1.5, 2.5),
        (40, 4, "replicated", FIRSTN, 1.5, 2.5),
        (12, 3, "erasure", INDEP, 1.5, 2.5),
    ],
)
def test_a_weight_of_0_moves_more_than_the_osd_has_where_hosts_have_several(
    needs_lab: None,
    tmp_path: Path,
    release: str,
    osds: int,
    on_host: int,
    kind: str,
    choose: str,
    least: float,
    most: float,
) -> None:
    tools = MapTools(release, tmp_path)
    tools.make(osds, on_host, kind, choose)
    before, after = tools.placed(), tools.placed("--adjust-crush-weight", "0:0")
    own = sum(0 in places for places in before.values())
    assert own > 100
    assert not any(0 in places for places in after.values())
    moved = sum(len(set(after[pgid]) - set(places)) for pgid, places in before.items())
    assert least <= moved / own <= most
