"""A page: settings for one regime, with what is known of them there."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any, Dict, Mapping

from ceph_tuner.core.ceph.target import Target
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.core.measure.timeline import POLICY_NAME

VALIDATED, UNVALIDATED, STRUCK = "validated", "unvalidated", "struck"
STATES = (VALIDATED, UNVALIDATED, STRUCK)
TRIAL, TWIN, IMPORT = "trial", "twin", "import"
ORIGINS = (TRIAL, TWIN, IMPORT)
MOST_SETTINGS = 40
LONGEST_TEXT = 600
MOST_METRICS = 40
MOST_LEFT_OUT = 21
"""Policies: as many as a calendar has, and the base."""
LONGEST_MISS = 200
"""Characters of why a page is left out under a policy: a book has little room."""

_REGIME = re.compile(r"[a-z][a-z0-9-]{0,23}(\+[a-z][a-z0-9-]{0,23}){0,11}")


@dataclass(frozen=True)
class Page:
    """Settings for a regime. Times are seconds since the epoch."""

    number: int
    """Unique in its book."""
    regime: str
    settings: Settings
    state: str
    origin: str
    """What the evidence is: a trial on this cluster, the twin's prediction, or what came along with an import."""
    at: float
    """When it was validated, predicted or imported."""
    target: str = "osd"
    load: Mapping[str, float] = field(default_factory=dict, hash=False)
    """What the cluster did just before the trial, by metric."""
    effects: Mapping[str, float] = field(default_factory=dict, hash=False)
    """By metric what the settings did to it, as a share: -0.2 is 20% less."""
    verdict: str = ""
    reason: str = ""
    """Why it was struck; empty where it was not."""
    pin: bool = False
    """Whether an operator wants this page in its regime, whatever others there are."""
    policy: str = ""
    """Of the calendar, whose objectives the evidence is about; empty where nobody knows."""
    left_out: Mapping[str, str] = field(default_factory=dict, hash=False)
    """By policy under which it broke a hard objective, why: it is not used while that policy holds."""

    def __post_init__(self) -> None:
        """Raise ValueError for what is no page."""
        if self.number < 1 or not math.isfinite(self.at):
            raise ValueError(f"number (={self.number}) must be at least 1, and at (={self.at}) finite")
        if not _REGIME.fullmatch(self.regime):
            raise ValueError(f"regime (={self.regime[:60]!r}) must be names of markers with + between them")
        if self.state not in STATES or self.origin not in ORIGINS:
            raise ValueError(
                f"state (={self.state!r}) must be one of {', '.join(STATES)}, "
                f"origin (={self.origin!r}) of {', '.join(ORIGINS)}"
            )
        if (self.state == STRUCK) != bool(self.reason):
            raise ValueError(f"reason (={self.reason!r}) must be there exactly where a page is struck")
        if self.pin and self.state == STRUCK:
            raise ValueError("a page that is struck cannot be pinned")
        if not 0 < len(self.settings) <= MOST_SETTINGS:
            raise ValueError(f"settings must be 1 to {MOST_SETTINGS} (={len(self.settings)})")
        if max(len(self.load), len(self.effects)) > MOST_METRICS:
            raise ValueError(f"load and effects have at most {MOST_METRICS} metrics")
        if max(len(self.verdict), len(self.reason)) > LONGEST_TEXT:
            raise ValueError(f"verdict and reason have at most {LONGEST_TEXT} characters")
        policies = [*([self.policy] if self.policy else []), *self.left_out]
        if not all(POLICY_NAME.fullmatch(name) for name in policies) or len(self.left_out) > MOST_LEFT_OUT:
            raise ValueError(f"policy and left_out (={policies!r:.60}) must be policies, at most {MOST_LEFT_OUT}")
        if any(len(why) > LONGEST_MISS for why in self.left_out.values()):
            raise ValueError(f"why a page is left out has at most {LONGEST_MISS} characters")
        try:
            Target.parse(self.target)
        except InputError as error:
            raise ValueError(str(error)) from error

    @property
    def means(self) -> Dict[str, float]:
        """What the cluster did under it, or would: metrics of which load and effect are known."""
        return {name: self.load[name] * (1.0 + share) for name, share in self.effects.items() if name in self.load}

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, for the store, for files and for programs."""
        document = {name: getattr(self, name) for name in self.__dataclass_fields__}
        document.update(settings=dict(self.settings), load=dict(self.load), effects=dict(self.effects))
        document.update(left_out=dict(self.left_out))
        return document

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Page:
        """Inverse of `to_dict`. Raises KeyError, TypeError or ValueError for what is none."""
        texts = {
            name: document.get(name, default)
            for name, default in (("target", "osd"), ("verdict", ""), ("reason", ""), ("policy", ""))
        }
        texts.update((name, document[name]) for name in ("regime", "state", "origin"))
        if not all(isinstance(text, str) for text in texts.values()):
            raise TypeError("a text is of another type")
        number, pin = document["number"], document.get("pin", False)
        if type(number) is not int or type(pin) is not bool:
            raise TypeError(f"number (={number!r}) must be whole, and pin (={pin!r}) true or false")
        left_out = dict(document.get("left_out", {}))
        if not all(isinstance(text, str) for item in left_out.items() for text in item):
            raise TypeError("left_out has texts by policy")
        load, effects = (_numbers(document.get(name, {})) for name in ("load", "effects"))
        return cls(
            number,
            settings=_settings(document["settings"]),
            at=_number(document["at"]),
            load=load,
            effects=effects,
            pin=pin,
            left_out=left_out,
            **texts,
        )


def same_settings(one: Page, target: str, settings: Mapping[str, Any]) -> bool:
    """Whether a page has these settings, for the same OSDs."""
    return one.target == target and dict(one.settings) == dict(settings)


def _settings(stored: Any) -> Dict[str, Any]:
    values = dict(stored)
    if len(values) <= MOST_SETTINGS and all(
        isinstance(name, str) and isinstance(value, (str, int, float, bool)) and len(str(value)) <= LONGEST_TEXT
        for name, value in values.items()
    ):
        return values
    raise TypeError("settings are names with numbers, texts, true or false")


def _numbers(stored: Any) -> Dict[str, float]:
    return {str(name)[:100]: _number(value) for name, value in dict(stored).items()}


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"a number is {value!r:.40}")
    return float(value)
