"""The past of a cluster, kept inside it and bounded: windows minute by minute and hour by hour, and trials.

Entries lie in blocks, so that reading them back takes a handful of commands, and no value outgrows what the monitors
take (64 KiB). The oldest block is overwritten first.
"""

from __future__ import annotations

import json
import math
from typing import Any, Dict, List, Mapping, Optional, Sequence

from ceph_tuner.core.bounded import MISREAD, read_json
from ceph_tuner.core.ceph.ports import Store, contents
from ceph_tuner.core.measure.sample import Measure, Window

LARGEST_VALUE = 60_000
"""Characters per value; the monitors' limit is 65536 bytes (json escapes all else than ASCII)."""

MINUTE, HOUR = 60.0, 3600.0
RECENT_S = 600.0
"""Of windows older than this nothing is said of the present: the cluster may be another one by now."""

AHEAD_S = MINUTE
"""A window that ends later than that after now is of a clock that was ahead: clocks of hosts differ by less."""


class Ring:
    """The newest entries under a prefix, at most `blocks` x `per_block` of them."""

    def __init__(self, store: Store, prefix: str, blocks: int, per_block: int) -> None:
        if blocks < 2 or per_block < 1:
            raise ValueError(f"blocks must be >= 2 and per_block >= 1, got {blocks} and {per_block}")
        self._store, self._prefix, self._blocks, self._per_block = store, prefix, blocks, per_block

    def append(self, entry: Mapping[str, Any]) -> None:
        """Add an entry; ValueError when it alone is too large for one value."""
        if len(json.dumps(entry)) > LARGEST_VALUE - 100:
            raise ValueError(f"an entry of {self._prefix} must be < {LARGEST_VALUE - 100} characters")
        blocks = self._read_blocks()
        newest: Dict[str, Any] = blocks[-1] if blocks else {"serial": 0, "entries": []}
        larger: Dict[str, Any] = {"serial": newest["serial"], "entries": [*newest["entries"], entry]}
        if len(larger["entries"]) > self._per_block or len(json.dumps(larger)) > LARGEST_VALUE:
            larger = {"serial": newest["serial"] + 1, "entries": [entry]}
        key = f"{self._prefix}{larger['serial'] % self._blocks:03d}"
        self._store.set(key, json.dumps(larger, separators=(",", ":")))

    def read(self) -> List[Dict[str, Any]]:
        """All entries, oldest first."""
        return [entry for block in self._read_blocks() for entry in block["entries"]]

    def _read_blocks(self) -> List[Dict[str, Any]]:
        read = (_block(text) for text in contents(self._store, self._prefix).values())
        blocks = [block for block in read if block is not None]
        return sorted(blocks, key=lambda block: int(block["serial"]))


class History:
    """Windows and trials in a store. Bounded: `minutes` and `hours` of windows, `trials` records."""

    def __init__(self, store: Store, minutes: int = 120, hours: int = 168, trials: int = 200) -> None:
        self._minutes = Ring(store, "history/minute/", max(2, math.ceil(minutes / 10)), 10)
        self._hours = Ring(store, "history/hour/", max(2, math.ceil(hours / 24)), 24)
        self._trials = Ring(store, "history/trial/", max(2, math.ceil(trials / 10)), 10)
        self._learnt = Ring(store, "history/learnt/", 2, 1)
        self._outcomes = Ring(store, "history/outcome/", 10, 10)
        self._timeline = Ring(store, "history/timeline/", 10, 30)

    def add_window(self, window: Window) -> None:
        """Keep a window of about a minute; when it is the first of another hour, the last hour is kept as one, too."""
        # windows of a clock that was ahead do not keep the hours from being kept until that moment
        before = [minute for minute in self.windows(window.end) if minute.end <= window.end]
        self._minutes.append(window.to_dict())
        if before and before[-1].end // HOUR < window.end // HOUR:
            hour = before[-1].end // HOUR
            last_hour = merged([minute for minute in before if minute.end // HOUR == hour])
            if last_hour is not None:
                self._hours.append(last_hour.to_dict())

    def windows(self, now: float, since: float = 0.0) -> List[Window]:
        """Windows of a minute that end after `since`, oldest first; by `now` none of a clock that was ahead."""
        return _windows(self._minutes.read(), now, since)

    def newest(self, now: float) -> Optional[Window]:
        """The last minute, where it is recent enough to say something of the present."""
        recent = self.windows(now, now - RECENT_S)
        return recent[-1] if recent else None

    def hours(self, now: float, since: float = 0.0) -> List[Window]:
        """The same of an hour."""
        return _windows(self._hours.read(), now, since)

    def add_trial(self, record: Mapping[str, Any]) -> None:
        """Keep what a trial tried and what came of it; any plain document, by custom with `at`."""
        self._trials.append(record)

    def trials(self) -> List[Dict[str, Any]]:
        """Records of trials, oldest first."""
        return self._trials.read()

    def add_outcome(self, record: Mapping[str, Any]) -> None:
        """Keep what was measured after a change (`forecast_pairs.outcome_record`), of the last hundred."""
        self._outcomes.append(record)

    def outcomes(self) -> List[Dict[str, Any]]:
        """Records of what was measured after changes, oldest first."""
        return self._outcomes.read()

    def add_change(self, record: Mapping[str, Any]) -> None:
        """Keep what holds from a moment on (`measure/timeline.py`), of the last three hundred changes."""
        self._timeline.append(record)

    def timeline(self) -> List[Dict[str, Any]]:
        """Records of what held from when on, oldest first."""
        return self._timeline.read()

    def add_learnt(self, record: Mapping[str, Any]) -> None:
        """Keep what a tuning run had learnt at its end, of the last two runs. ValueError where it is too large."""
        self._learnt.append(record)

    def learnt(self) -> List[Dict[str, Any]]:
        """What the last runs had learnt, oldest first."""
        return self._learnt.read()


def merged(windows: Sequence[Window]) -> Optional[Window]:
    """Several windows as one; None when there are none.

    Percentiles become means of percentiles, as the histograms are gone: fit for a trend, not for judging an objective.
    """
    if not windows:
        return None
    measures = {}
    for name in sorted({name for window in windows for name in window.measures}):
        parts = [window.measures[name] for window in windows if name in window.measures]
        count = sum(part.count for part in parts)
        mean = math.fsum(part.mean * part.count for part in parts) / count
        mean = min(max(mean, min(part.mean for part in parts)), max(part.mean for part in parts))
        squares = math.fsum(
            (part.count - 1) * part.deviation**2 + part.count * (part.mean - mean) ** 2 for part in parts
        )
        measures[name] = Measure(mean, math.sqrt(squares / (count - 1)) if count > 1 else 0.0, count)
    return Window(min(window.start for window in windows), max(window.end for window in windows), measures)


def _windows(entries: Sequence[Mapping[str, Any]], now: float, since: float) -> List[Window]:
    windows = []
    for entry in entries:
        try:
            window = Window.from_dict(entry)
        except MISREAD:
            # written by another version, or cut short: the past is not worth an error
            continue
        if since < window.end <= now + AHEAD_S:
            windows.append(window)
    return sorted(windows, key=lambda window: window.end)


def _block(text: Optional[str]) -> Optional[Dict[str, Any]]:
    try:
        block = read_json(text or "", "history/")
        if isinstance(block["serial"], int) and isinstance(block["entries"], list):
            return {"serial": block["serial"], "entries": block["entries"]}
    except MISREAD:
        pass
    return None
