"""Lists and numbers as people are told them."""

from __future__ import annotations

from typing import Iterable


def first_of(items: Iterable[str], most: int, between: str = ", ") -> str:
    """`3.1, 3.7 and 5 more`."""
    texts = list(items)
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return between.join(texts[:most]) + more


def digits(value: float) -> str:
    """Three digits that count, and of large numbers all before the point."""
    return f"{value:.3g}" if abs(value) < 999.5 else f"{value:.0f}"
