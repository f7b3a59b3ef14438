"""Trees are removed only when nothing is mounted below them.

The lab's mounts live in a mount namespace of their own and vanish with its last process; what is done here is
the second lock on the door.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import List

from ceph_tuner.core.errors import LabFailed

MOUNTINFO = Path("/proc/self/mountinfo")


def mounted_below(tree: Path, mountinfo: Path = MOUNTINFO) -> List[Path]:
    """Mount points at or below a path, the deepest first."""
    mounts = []
    tree = tree.resolve()
    for line in mountinfo.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
        # the fifth field, with blanks and the like written in octal (proc(5))
        point = Path(re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), line.split()[4]))
        if point == tree or tree in point.parents:
            mounts.append(point)
    return sorted(mounts, key=lambda point: len(point.parts), reverse=True)


def remove_tree(tree: Path) -> None:
    """Remove a directory of ours with all it holds; what is mounted below is unmounted first, or nothing is removed."""
    if not tree.exists():
        return
    for point in mounted_below(tree):
        subprocess.run(["umount", str(point)], check=False, stderr=subprocess.DEVNULL)
    still = mounted_below(tree)
    if still:
        raise LabFailed(
            f"{tree}: not removed, because something is mounted at {', '.join(map(str, still))}",
            "unmount that, then `ceph-tuner lab down` again",
        )
    shutil.rmtree(tree)
