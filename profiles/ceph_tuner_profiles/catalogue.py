"""Finds the profiles that come with the program: the built-in ones by `RELEASE/NAME`, tuned ones by `tuned/NAME`."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Dict, List, Optional

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.releases import RELEASES, Release
from ceph_tuner.core.profiles.profile import Profile
from ceph_tuner.files import profile_file

ROOT = Path(__file__).resolve().parent
TUNED = "tuned"
"""The folder of profiles that a tuning run found, with the evidence."""


def names(release: Optional[Release] = None) -> List[str]:
    """Names of every profile, the built-in ones of the oldest release first; or only of one release's built-in ones."""
    return [name for name, path in _paths().items() if release is None or path.parent.name == release.name]


def load(name: str, release: Optional[Release] = None, place: str = "profile") -> Profile:
    """Read one by its name; where the release is known, `balanced` is enough. Raises InputError."""
    paths = _paths()
    full = f"{release.name}/{name}" if release is not None and "/" not in name else name
    if full in paths:
        return profile_file.read(paths[full])
    same = [path for path in paths if path.endswith(f"/{name}")]
    near = same or difflib.get_close_matches(full, paths, n=3, cutoff=0.4) or list(paths)
    raise InputError(place, repr(name), f"a file, or one of {', '.join(near)}")


def every(release: Optional[Release] = None) -> List[Profile]:
    """Read all of them."""
    return [load(name) for name in names(release)]


def tuned() -> List[Profile]:
    """Read those that tuning runs found."""
    return [load(name) for name in names() if name.startswith(f"{TUNED}/")]


def _paths() -> Dict[str, Path]:
    order = [*RELEASES, TUNED]
    paths = [path for path in sorted(ROOT.glob("*/*.yaml")) if path.parent.name in order]
    paths.sort(key=lambda path: order.index(path.parent.name))
    return {f"{path.parent.name}/{path.stem}": path for path in paths}
