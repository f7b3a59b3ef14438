"""Reads what `ceph-tuner recommend|tune --format json` printed, as text that nobody vouches for.

Numbers are finite, texts hold nothing that hides or turns round what a reader sees, and every key that the page relies
on is there, before anything else looks at it.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Dict

from ceph_tuner.core.bounded import DOCUMENT, read_file, read_json
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.printable import printable_document
from ceph_tuner.files import schema
from ceph_tuner.files.yaml_document import YamlDocument

STDIN = "-"

EXPECTED = "what `ceph-tuner recommend --format json` or `ceph-tuner tune --format json` prints"

_LAST_YEAR_S = 4102444800.0
"""2100: later times are no times."""


def _object(required: Dict[str, Any], **optional: Any) -> Dict[str, Any]:
    return {"type": "object", "properties": {**required, **optional}, "required": list(required)}


def _each(item: Dict[str, Any], most: int = 10_000) -> Dict[str, Any]:
    return {"type": "array", "items": item, "maxItems": most}


def _or_none(item: Dict[str, Any]) -> Dict[str, Any]:
    return {**item, "type": [item["type"], "null"]}


_TEXT, _YES_NO = {"type": "string"}, {"type": "boolean"}
_LARGEST = 1e18
"""Beyond every rate and time that there is; plots still have room around it."""
_NUMBER = {"type": "number", "minimum": -_LARGEST, "maximum": _LARGEST}
_SHARE = {"type": "number", "minimum": 0, "maximum": _LARGEST}
_ENDS = {"type": "array", "items": _NUMBER, "minItems": 2, "maxItems": 2}
_MEANS = {"type": "object", "additionalProperties": _SHARE}
_VALUES = {"type": "object", "additionalProperties": {"type": ["number", "string", "boolean"]}}
_TEXTS = _each(_TEXT)

_LEARNT = _object(
    {
        "importance": {
            "type": "object",
            "additionalProperties": _object(
                {
                    "deviation": _NUMBER,
                    "knobs": _each(
                        _object(
                            {
                                "name": _TEXT,
                                "first": _NUMBER,
                                "total": _NUMBER,
                                "first_interval": _ENDS,
                                "total_interval": _ENDS,
                            }
                        )
                    ),
                }
            ),
        }
    },
    around=_or_none(_VALUES),
    partial_dependence=_each(
        _object(
            {
                "metric": _TEXT,
                "name": _TEXT,
                "values": _each({"type": ["number", "string", "boolean"]}, 1000),
                "mean": _each(_SHARE, 1000),
                "low": _each(_SHARE, 1000),
                "high": _each(_SHARE, 1000),
            }
        ),
        1000,
    ),
    convergence=_each(
        _object(
            {"number": _NUMBER, "mean": _NUMBER, "low": _NUMBER, "high": _NUMBER, "feasible": _NUMBER},
            safe=_YES_NO,
            failed=_or_none(_TEXT),
            old=_YES_NO,
            best=_or_none(_NUMBER),
        )
    ),
    in_the_way=_or_none(
        _object(
            {
                "together": _NUMBER,
                "conflicts": _each(_TEXTS),
                "without": {"type": "object", "additionalProperties": _NUMBER},
                "nearest": _each(_object({"objective": _TEXT, "bound": _NUMBER, "share": _NUMBER})),
                "settings": _VALUES,
                "probability": _NUMBER,
            }
        )
    ),
)
_COMMON: Dict[str, Any] = {
    "cluster": _TEXT,
    "release": _TEXT,
    "capacity": _each(
        _object(
            {
                "name": _TEXT,
                "reserved": _SHARE,
                "limit": _or_none(_SHARE),
                "asked": _or_none(_SHARE),
                "owed": _SHARE,
                "got": _SHARE,
                "needed": _SHARE,
                "held_by": _TEXT,
            }
        ),
        20,
    ),
    "explanation": _or_none(_LEARNT),
    "elsewhere": _each(_object({"profile": _TEXT, "suggested": _YES_NO, "reason": _TEXT})),
    "commands": _TEXTS,
    "undo": _TEXTS,
}
_CHOICE = {"winner": _TEXT, "better": _YES_NO, "reason": _TEXT}
_VERDICTS = _each(_object({"objective": _TEXT}, hard=_YES_NO, met=_or_none(_YES_NO)))
_TRIAL = _object(
    {
        "kind": _TEXT,
        "label": _TEXT,
        "settings": _VALUES,
        "at": {"type": "number", "minimum": 0, "maximum": _LAST_YEAR_S},
        "seconds": {"type": "number", "minimum": 0, "maximum": 1e9},
        "measures": {
            "type": "object",
            "additionalProperties": {"type": "array", "items": _SHARE, "minItems": 3, "maxItems": 3},
        },
    },
    failed=_or_none(_TEXT),
    notes=_TEXTS,
    why=_TEXT,
)
_STEP = _object({"command": _TEXT}, for_each=_or_none(_TEXT), wait_until=_or_none(_TEXT), note=_or_none(_TEXT))
_PLANNED = _object(
    {
        "change": _TEXT,
        "kind": _TEXT,
        "steps": _each(_STEP),
        "undo": _each(_STEP),
        "effects": _each(
            _object(
                {"metric": _TEXT, "before": _SHARE, "after": _SHARE}, ratio=_or_none(_SHARE), interval=_or_none(_ENDS)
            )
        ),
    }
)

_KNOB = _object(
    {
        "name": _TEXT,
        "put_back": _YES_NO,
        "beside": _TEXTS,
        "without": _each(
            _object({"metric": _TEXT, "without": _SHARE}, ratio=_or_none(_SHARE), interval=_or_none(_ENDS))
        ),
    }
)

RECOMMENDATION: Dict[str, Any] = _object(
    {
        "slo": _object({"objectives": {"type": "array"}}),
        "recommended": _object(_CHOICE, settings=_VALUES, verdicts=_VERDICTS),
        "predictions": {
            **_each(
                _object(
                    {"label": _TEXT, "runs": {"type": "integer", "minimum": 1}, "means": _MEANS, "settings": _VALUES},
                    intervals={"type": "object", "additionalProperties": _or_none(_ENDS)},
                )
            ),
            "minItems": 1,
        },
        **{name: _COMMON[name] for name in ("cluster", "release", "commands", "undo")},
    },
    **{name: _COMMON[name] for name in ("capacity", "explanation", "elsewhere")},
    in_force=_object({"settings": _VALUES}, profile=_or_none(_TEXT)),
    tried=_each(_object({"label": _TEXT, "means": _MEANS})),
    knobs=_each(_KNOB),
    missed=_each(_object({"objective": _TEXT}, without_other_work=_or_none(_SHARE), best_seen=_or_none(_SHARE))),
    evidence=_object({}, simulated=_MEANS),
    searched=_TEXTS,
    confirmed=_YES_NO,
    interrupted=_YES_NO,
    notes=_TEXTS,
    model_error_known_for=_TEXTS,
    beyond_live_knobs=_or_none(_object({"changes": _each(_PLANNED)})),
)
TUNING: Dict[str, Any] = _object(
    {
        "slo": _object({"objectives": {"type": "array"}}),
        "winner": _object(_CHOICE, settings=_VALUES, moves=_VALUES, verdicts=_VERDICTS),
        "baseline": _MEANS,
        "search": _object(
            {"state": _TEXT, "reason": _TEXT},
            at_fault=_TEXTS,
            trust={"type": "object", "additionalProperties": _each(_NUMBER)},
        ),
        "trials": {**_each(_TRIAL), "minItems": 1},
        "written": _YES_NO,
        "cluster": _TEXT,
        "commands": _TEXTS,
    },
    **{name: _COMMON[name] for name in ("capacity", "explanation", "elsewhere", "release", "undo")},
    before=_object({"settings": _VALUES}, profile=_or_none(_TEXT)),
    withdrawn=_TEXT,
    check=_or_none(_TRIAL),
    target=_TEXT,
)


class _AnswerDocument(YamlDocument):
    """A document of one line or of thousands, so that lines say nothing."""

    def place(self, *keys: object) -> str:
        return f"{self.name} {'.'.join(str(key) for key in keys)}".rstrip()


def parse_learnt(data: Any, name: str) -> YamlDocument:
    """Check an answer's `explanation` and `capacity` alone, as a cluster keeps them. Raises InputError."""
    plain = json.dumps({key: data.get(key) for key in ("explanation", "capacity")})
    document = _AnswerDocument(name, printable_document(read_json(plain, name)))
    schema.check(document, _object({name: _COMMON[name] for name in ("explanation", "capacity")}))
    return document


def load(name: str) -> YamlDocument:
    """Read and check a file, or standard input for `-`. Raises InputError with the place and what was expected."""
    return parse(_content(name), "standard input" if name == STDIN else name)


def parse(content: bytes, name: str) -> YamlDocument:
    """Read and check an answer's bytes."""
    if not content.strip():
        raise InputError(name, "nothing", EXPECTED)
    document = _AnswerDocument(name, printable_document(read_json(content, name, DOCUMENT)))
    kind = document.data if isinstance(document.data, dict) else {}
    if "recommended" not in kind and "trials" not in kind:
        raise InputError(name, "JSON of another kind", EXPECTED)
    schema.check(document, RECOMMENDATION if "recommended" in kind else TUNING)
    return document


def _content(name: str) -> bytes:
    return sys.stdin.buffer.read(DOCUMENT + 1) if name == STDIN else read_file(name, EXPECTED)
