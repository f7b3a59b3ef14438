"""What an OSD that is emptied by its CRUSH weight alone moves, by Ceph's own osdmaptool: why a drain goes by upmaps."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Dict, List

import pytest

from ceph_lab.chroot import ensure_chroot, recipe_for

FIRSTN, INDEP = "chooseleaf firstn 0 type host", "set_choose_tries 100\n\tstep chooseleaf indep 0 type host"


class MapTools:
    """osdmaptool and crushtool of a release's tree, which is only read."""

    def __init__(self, release: str, directory: Path) -> None:
        self._tree, self._directory = ensure_chroot(recipe_for(release), {}, lambda line: None), directory

    def run(self, tool: str, *words: str) -> str:
        libraries = self._tree / "usr/lib/x86_64-linux-gnu"
        loader = [str(self._tree / "lib64/ld-linux-x86-64.so.2"), "--library-path", f"{libraries}:{libraries}/ceph"]
        argv = [*loader, str(self._tree / "usr/bin" / tool), *words]
        return subprocess.run(argv, cwd=self._directory, capture_output=True, text=True, timeout=60, check=False).stdout

    def placed(self, *words: str) -> Dict[str, List[int]]:
        lines = self.run("osdmaptool", "om", "--mark-up-in", *words, "--test-map-pgs-dump").splitlines()
        found = [re.match(r"(\d+\.[0-9a-f]+)\s+\[([\d,]+)\]", line) for line in lines]
        return {match[1]: [int(osd) for osd in match[2].split(",")] for match in found if match}


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
    tools.run("crushtool", "-o", "cm", "--build", "--num_osds", str(osds), "host", "straw2", str(on_host), "root",
              "straw2", "0")  # fmt: skip
    tools.run("crushtool", "-d", "cm", "-o", "cm.txt")
    text = (tmp_path / "cm.txt").read_text().split("# rules")[0].replace("chooseleaf_stable 0", "chooseleaf_stable 1")
    rule = f"rule r {{\n\tid 0\n\ttype {kind}\n\tstep take root\n\tstep {choose}\n\tstep emit\n}}\n"
    (tmp_path / "rule.txt").write_text(text + rule)
    tools.run("crushtool", "-c", "rule.txt", "-o", "compiled")
    simple = ["om", "--with-default-pool", "--pg-bits", "6", "--pgp-bits", "6", "--clobber"]
    tools.run("osdmaptool", "--createsimple", str(osds), *simple)
    tools.run("osdmaptool", "om", "--import-crush", "compiled")
    before, after = tools.placed(), tools.placed("--adjust-crush-weight", "0:0")
    own = sum(0 in places for places in before.values())
    assert own > 100
    assert not any(0 in places for places in after.values())
    moved = sum(len(set(after[pgid]) - set(places)) for pgid, places in before.items())
    assert least <= moved / own <= most
