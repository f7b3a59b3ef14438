"""Files that come along and are no Python of this program: the plugin's sources, the examples.

In a checkout they are where they are written; an installation has them below its prefix (`data_files` of setup.py).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Dict, List

import ceph_tuner
from ceph_tuner.core.errors import InputError

_KINDS = ("cluster-", "slo-")
_CHECKOUT = Path(ceph_tuner.__file__).resolve().parent.parent.parent


def shipped(checkout: str, installed: str, file: str) -> Path:
    """The folder that has a file of that name. InputError where this program came without it."""
    places = (_CHECKOUT / checkout, *(prefix / "share" / "ceph-tuner" / installed for prefix in _prefixes()))
    folder = next((place for place in places if (place / file).is_file()), None)
    if folder is None:
        raise InputError(file, f"not in {' or '.join(map(str, places))}", "a whole installation of ceph-tuner")
    return folder


def _prefixes() -> List[Path]:
    """Where pip puts data: beside lib/pythonX.Y/site-packages, also of a user or of /usr/local; within a --target."""
    packages = Path(ceph_tuner.__file__).resolve().parent.parent
    return list(dict.fromkeys([*list(packages.parents)[2:3], packages, Path(sys.prefix)]))


def examples() -> Dict[str, Dict[str, Path]]:
    """The files of each example by their names: the description of a cluster before its objectives."""
    folder = shipped("examples", "examples", "cluster-nvme-node.yaml")
    by_name: Dict[str, Dict[str, Path]] = {}
    for path in sorted(folder.glob("*.yaml")):
        kind = next((each for each in _KINDS if path.name.startswith(each)), "")
        by_name.setdefault(path.stem[len(kind) :], {})[path.name] = path
    return dict(sorted(by_name.items()))
