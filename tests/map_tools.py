"""Ceph's own osdmaptool and crushtool on a map of their making: where CRUSH and the balancer put PGs."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Dict, List

from ceph_lab.chroot import ensure_chroot, recipe_for

FIRSTN, INDEP = "chooseleaf firstn 0 type host", "set_choose_tries 100\n\tstep chooseleaf indep 0 type host"


class MapTools:
    """Those of a release's tree, which is only read."""

    def __init__(self, release: str, directory: Path) -> None:
        self._tree, self._directory = ensure_chroot(recipe_for(release), {}, lambda line: None), directory

    def run(self, tool: str, *words: str) -> str:
        libraries = self._tree / "usr/lib/x86_64-linux-gnu"
        loader = [str(self._tree / "lib64/ld-linux-x86-64.so.2"), "--library-path", f"{libraries}:{libraries}/ceph"]
        argv = [*loader, str(self._tree / "usr/bin" / tool), *words]
        return subprocess.run(argv, cwd=self._directory, capture_output=True, text=True, timeout=60, check=False).stdout

    def make(self, osds: int, on_host: int, kind: str = "replicated", choose: str = FIRSTN, bits: int = 6) -> None:
        """A map of one pool of three copies, with 2 ** bits PGs for each OSD."""
        self.run("crushtool", "-o", "cm", "--build", "--num_osds", str(osds), "host", "straw2", str(on_host), "root",
                 "straw2", "0")  # fmt: skip
        self.run("crushtool", "-d", "cm", "-o", "cm.txt")
        text = (self._directory / "cm.txt").read_text().split("# rules")[0]
        text = text.replace("chooseleaf_stable 0", "chooseleaf_stable 1")
        rule = f"rule r {{\n\tid 0\n\ttype {kind}\n\tstep take root\n\tstep {choose}\n\tstep emit\n}}\n"
        (self._directory / "rule.txt").write_text(text + rule)
        self.run("crushtool", "-c", "rule.txt", "-o", "compiled")
        simple = ["om", "--with-default-pool", "--pg-bits", str(bits), "--pgp-bits", str(bits), "--clobber"]
        self.run("osdmaptool", "--createsimple", str(osds), *simple)
        self.run("osdmaptool", "om", "--import-crush", "compiled")

    def balance(self, max_deviation: int) -> None:
        """Even the PGs out, as the balancer does in mode upmap."""
        self.run("osdmaptool", "om", "--mark-up-in", "--upmap", "upmaps", "--upmap-deviation", str(max_deviation),
                 "--upmap-max", "100000", "--save")  # fmt: skip

    def placed(self, *words: str) -> Dict[str, List[int]]:
        """PG -> its OSDs."""
        lines = self.run("osdmaptool", "om", "--mark-up-in", *words, "--test-map-pgs-dump").splitlines()
        found = [re.match(r"(\d+\.[0-9a-f]+)\s+\[([\d,]+)\]", line) for line in lines]
        return {match[1]: [int(osd) for osd in match[2].split(",")] for match in found if match}
