"""The commands of a recommendation are typed on a cluster of which only the description is known."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from ceph_tuner.core.goals.slo import parse_slo
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.releases import Settings, nine
from ceph_tuner.recommend import Question
from ceph_tuner.recommend.answer import Instructions, answer
from twins import OSD, small_model

CUSTOM: Settings = {PROFILE: "custom", **nine((0.6, 2, 0), (0.3, 1, 0), (0.1, 1, 0.5))}


def told(settings: Settings, medium: str) -> Instructions:
    model = small_model(osd=replace(OSD, device_class=medium))
    question = Question(model, parse_slo({"name": "day", "objectives": ["client.p95_ms <= 500 ms"]}))
    searched: Any = SimpleNamespace(
        question=question, winner=SimpleNamespace(settings=settings, means={}), choice=SimpleNamespace(better=True)
    )
    return answer(searched)


@pytest.mark.parametrize(("medium", "other"), [("hdd", "ssd"), ("ssd", "hdd")])
@pytest.mark.parametrize("settings", [CUSTOM, {PROFILE: "high_client_ops"}], ids=["custom", "built_in"])
def test_a_bandwidth_that_an_operator_has_set_for_these_drives_is_never_touched(
    settings: Settings, medium: str, other: str
) -> None:
    """To raise it for a moment and remove it again would lose the measured value, and with it all of mClock's costs."""
    instructions = told(settings, medium)
    for commands in (instructions.commands, instructions.undo):
        assert not [command for command in commands if f"sequential_bandwidth_{medium}" in command]
    assert f"ceph config rm osd osd_mclock_max_sequential_bandwidth_{other}" in instructions.undo
    assert instructions.undo.count("sleep 10") >= 1
