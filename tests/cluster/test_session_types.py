"""What the librados session makes of arguments: numbers where Ceph's own descriptions have numbers."""

from __future__ import annotations

import json
from typing import Any, Dict, Tuple

import pytest

from ceph_tuner.cluster.session_child import _Types

DESCRIPTIONS = {
    "cmd001": {
        "sig": ["osd", "pg-upmap-items", {"name": "pgid", "type": "CephPgid"},
                {"name": "id", "type": "CephOsdName", "n": "N"}],
    },
    "cmd002": {"sig": ["osd", "crush", "reweight", {"name": "name", "type": "CephString"},
                       {"name": "weight", "type": "CephFloat"}]},
    "cmd003": {"sig": ["pg", "dump", {"name": "dumpcontents", "type": "CephChoices", "n": "N"}]},
}  # fmt: skip
"""As 18.2.7 and 20.2.4 describe them."""


def described(kind: str, daemon: str, command: Dict[str, Any], payload: bytes, within: float) -> Tuple[int, bytes, str]:
    return 0, json.dumps(DESCRIPTIONS).encode(), ""


@pytest.mark.parametrize(
    ("prefix", "given", "typed"),
    [
        ("osd pg-upmap-items", {"pgid": "1.0", "id": "3 5"}, {"pgid": "1.0", "id": [3, 5]}),
        ("osd crush reweight", {"name": "osd.3", "weight": "0.5"}, {"name": "osd.3", "weight": 0.5}),
        ("pg dump", {"dumpcontents": "pgs sum"}, {"dumpcontents": ["pgs", "sum"]}),
    ],
)
def test_arguments_have_the_types_of_ceph_s_descriptions(
    prefix: str, given: Dict[str, str], typed: Dict[str, Any]
) -> None:
    assert _Types(described).typed("mon", "", prefix, given, 5.0) == typed
