"""What the optimiser answers is held to its shape before anything shows it or acts on it."""

from __future__ import annotations

import copy
import json
from typing import Any, Dict

import pytest

from tuner.worker import WorkerError, _answer

SOUND: Dict[str, Any] = {
    "version": 1,
    "ok": True,
    "proposals": [{"settings": {"osd_max_scrubs": 2, "osd_mclock_profile": "custom"}, "why": "a test"}],
    "verdict": {"state": "searching", "reason": "x"},
    "best": {
        "verdicts": [{"objective": "client.p95_ms <= 9 ms", "hard": True, "priority": 1.0, "seen": 5.0, "met": True}]
    },
    "explanation": {
        "importance": {"client.iops": [{"knob": "osd_max_scrubs", "share": 0.6}]},
        "in_the_way": {"conflicts": [["a", "b"]], "nearest": [{"instead": "a"}]},
    },
    "elsewhere": [{"profile": "a", "suggested": True, "reason": "alike"}],
}


def read(answer: Any) -> Any:
    return _answer(0, json.dumps(answer).encode(), b"")


def test_what_is_sound_is_taken_as_it_is() -> None:
    assert read(SOUND) == SOUND
    least = {"version": 1, "ok": True, "proposals": [], "best": None, "explanation": None}
    assert read(least) == least


@pytest.mark.parametrize(
    ("keys", "value", "words"),
    [
        (("proposals",), {}, "its answer.proposals is no list"),
        (("proposals", 0), 5, r"its answer\.proposals\.0 is no mapping"),
        (("proposals", 0, "settings"), [1], r"proposals\.0\.settings is no mapping"),
        (("proposals", 0, "settings", "osd_max_scrubs"), True, r"settings\.osd_max_scrubs is 'True'"),
        (("proposals", 0, "settings", "osd_max_scrubs"), {}, r"settings\.osd_max_scrubs is '\{\}'"),
        (("proposals", 0, "why"), 5, r"proposals\.0\.why is '5'"),
        (("verdict",), "x", "verdict is no mapping"),
        (("verdict", "reason"), [], "verdict.reason"),
        (("best",), {}, "best has no verdicts"),
        (("best", "verdicts", 0, "hard"), 1, "hard is '1'"),
        (("best", "verdicts", 0, "seen"), "x", "seen is 'x'"),
        (("explanation",), {}, "explanation has no importance"),
        (("explanation", "importance", "client.iops"), 5, "client.iops is no list"),
        (("explanation", "importance", "client.iops", 0, "share"), None, "share is 'None'"),
        (("explanation", "in_the_way", "conflicts"), [1], r"conflicts\.0 is no list"),
        (("elsewhere", 0, "suggested"), "yes", "suggested is 'yes'"),
    ],
)
def test_what_has_another_shape_is_nonsense_and_says_where(keys: Any, value: Any, words: str) -> None:
    answer = copy.deepcopy(SOUND)
    place: Any = answer
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    with pytest.raises(WorkerError, match=f"the optimiser answered nonsense: .*{words}"):
        read(answer)
