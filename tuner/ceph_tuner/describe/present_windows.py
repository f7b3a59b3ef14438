"""Of the last minutes' windows those in which the cluster did what it does now."""

from __future__ import annotations

from typing import List, Optional, Sequence

from ceph_tuner.cluster.config_log import OptionChange
from ceph_tuner.core.changes.forecast_pairs import SETTLED_S
from ceph_tuner.core.measure.sample import Window
from ceph_tuner.core.moments import utc
from ceph_tuner.describe.clients import ALIKE

_WORK = {"recovery.copies_s": "recovery", "backfill.objects_s": "backfill"}


def present_windows(windows: Sequence[Window], notes: List[str]) -> List[Window]:
    """The newest of them, back to where the work was another; `notes` grows by one where any is left out.

    `windows` are in order of time. Bursts stay together: not the rate tells, but how large clients' operations are, and
    whether anything is recovered or backfilled. Scrub and snaptrim come and go from minute to minute.
    """
    for count, window in enumerate(reversed(windows[:-1]), start=1):
        other = _other_work(window, windows[-1])
        if other is not None:
            return _newest(windows, count, other, notes)
    return list(windows)


def settled_windows(
    windows: Sequence[Window], change: Optional[OptionChange], can_sample: bool, notes: List[str]
) -> List[Window]:
    """Those of the settings in force, by the last change of any; `notes` grows by one where any is left out.

    Where none is left and the cluster cannot be sampled, the newest stands for what clients do.
    """
    if change is None:
        return list(windows)
    settled = sum(window.start >= change.at + SETTLED_S for window in windows)
    why = f"{change.option} was changed at {utc(change.at)}"
    if settled == len(windows):
        return list(windows)
    if not settled and not can_sample:
        notes.append(f"what clients do is of before or just after a change: {why}")
        return list(windows[-1:])
    return _newest(windows, settled, why, notes)


def _newest(windows: Sequence[Window], count: int, why: str, notes: List[str]) -> List[Window]:
    """So many of them; `notes` grows by what is left out."""
    left = len(windows) - count
    last = windows[left - 1]
    what = f"{left} window{'s' * (left != 1)} up to {utc(last.end)}"
    notes.append(f"{what} {'are' if left != 1 else 'is'} left out: {why}")
    return list(windows[left:])


def _other_work(before: Window, now: Window) -> Optional[str]:
    """In words, what was done before and is not now, or the other way round."""
    for metric, kind in _WORK.items():
        if metric in before.measures and metric in now.measures:
            was, is_now = (window.means[metric] > 0 for window in (before, now))
            if was != is_now:
                return f"{kind} was under way" if was else f"{kind} was not under way"
    sizes = [_operation_bytes(window) for window in (before, now)]
    if min(sizes) > 0 and max(sizes) > ALIKE * min(sizes):
        was_kib, now_kib = (size / 1024 for size in sizes)
        return f"clients' operations had {was_kib:.3g} KiB in the mean, and have {now_kib:.3g} KiB now"
    return None


def _operation_bytes(window: Window) -> float:
    """The mean size of clients' operations; 0 where there were too few to tell."""
    rate = window.means.get("client.iops", 0.0)
    return window.means.get("client.bytes_s", 0.0) / rate if rate >= 1 else 0.0
