"""The words of the automatic mode: a rollout and its stages, what is compared, and what was found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Iterable, Mapping, Optional, Tuple

BETTER, WORSE, ALIKE, UNKNOWN = "better", "worse", "alike", "unknown"
"""Verdicts on an effect. `unknown`: not enough was seen to tell."""


@dataclass(frozen=True)
class Stage:
    """Part of a rollout: the sections that get the settings now, and who can be compared with whom afterwards."""

    targets: Tuple[str, ...]
    """Sections with masks (`osd/host:h0`, `osd.3`), each one change of the journal."""
    osds: Tuple[int, ...]
    """All OSDs that have the settings then, earlier stages included."""
    control: Tuple[int, ...] = ()
    """OSDs of the same kind that keep the old ones; empty where none do."""

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, for the store."""
        return {"targets": list(self.targets), "osds": _bits(self.osds), "control": _bits(self.control)}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Stage:
        """Inverse of `to_dict`. Raises KeyError, TypeError or ValueError for what is none."""
        return cls(
            tuple(str(target) for target in document["targets"]),
            _places(document["osds"]),
            _places(document["control"]),
        )


def _bits(osds: Iterable[int]) -> str:
    """Ids as the bits of a hexadecimal number: a value of the store holds 64 KiB, and a cluster 10 000 OSDs."""
    return f"{sum(1 << osd for osd in set(osds)):x}"


def _places(bits: str) -> Tuple[int, ...]:
    number = int(bits, 16)
    return tuple(place for place in range(number.bit_length()) if number >> place & 1)


@dataclass(frozen=True)
class Rollout:
    """How settings come onto a cluster: the canary first, then wider, then `target` as a whole."""

    target: str
    """The section that holds the settings in the end; what the stages wrote is taken back then."""
    stages: Tuple[Stage, ...]
    """The first is the canary, the last covers every OSD of the target."""
    alternating: bool = False
    """Whether old and new settings take turns on all OSDs, as there is no control."""
    why: str = ""
    """How the canary was chosen, in words."""

    def __post_init__(self) -> None:
        if not self.stages or (self.alternating and len(self.stages) > 1):
            raise ValueError(f"a rollout has at least one stage, an alternating one just one (={len(self.stages)})")

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, for the store."""
        stages = [stage.to_dict() for stage in self.stages]
        return {"target": self.target, "stages": stages, "alternating": self.alternating, "why": self.why}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Rollout:
        """Inverse of `to_dict`. Raises KeyError, TypeError or ValueError for what is none."""
        stages = tuple(Stage.from_dict(entry) for entry in document["stages"])
        return cls(str(document["target"]), stages, bool(document["alternating"]), str(document["why"]))


@dataclass(frozen=True)
class Pair:
    """Two windows to compare: OSDs with the settings, and OSDs (or a time) without.

    Latencies in ms, rates per OSD and second; names as in `metrics.METRICS`. What was not seen is absent.
    """

    at: float
    """When the window ended."""
    during: bool
    """False: before the settings were written, when both sides had the same."""
    tried: Mapping[str, float]
    control: Mapping[str, float]


@dataclass(frozen=True)
class Turn:
    """What all OSDs did while old or new settings had their turn; means as in `Pair`."""

    at: float
    """When its last window ended."""
    tried: bool
    """Whether it was that of the new settings."""
    means: Mapping[str, float]


@dataclass(frozen=True)
class Effect:
    """What settings did to a metric, as a share: -0.2 is 20% less. The interval may be looked at at any time."""

    metric: str
    change: Optional[float]
    """None where it was not seen."""
    low: float
    high: float
    windows: int
    verdict: str

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form; unbounded ends of the interval are None."""
        ends = [None if abs(end) == float("inf") else end for end in (self.low, self.high)]
        return {
            "metric": self.metric,
            "change": self.change,
            "low": ends[0],
            "high": ends[1],
            "windows": self.windows,
            "verdict": self.verdict,
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Effect:
        """Inverse of `to_dict`. Raises KeyError, TypeError or ValueError for what is none."""
        low, high = document["low"], document["high"]
        return cls(
            str(document["metric"]),
            None if document["change"] is None else float(document["change"]),
            float("-inf") if low is None else float(low),
            float("inf") if high is None else float(high),
            int(document["windows"]),
            str(document["verdict"]),
        )
