"""Lists and numbers as people are told them."""

from __future__ import annotations

from typing import Iterable, Tuple


def first_of(items: Iterable[str], most: int, between: str = ", ") -> str:
    """`3.1, 3.7 and 5 more`."""
    texts = list(items)
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return between.join(texts[:most]) + more


def digits(value: float) -> str:
    """Three digits that count, and of large numbers all before the point."""
    return f"{value:.3g}" if abs(value) < 999.5 else f"{value:.0f}"


def rounded(value: float) -> float:
    """To the four digits that a measurement has, at most."""
    return float(f"{value:.4g}")


def named(osds: Iterable[int], most: int = 5) -> str:
    """`osd.1, osd.2 and 7 more`."""
    return first_of((f"osd.{osd}" for osd in sorted(osds)), most)


def some(lines: Iterable[str], most: int = 6) -> Tuple[str, ...]:
    """The first lines, and how many there are besides."""
    texts = list(lines)
    return (*texts[:most], *([f"and {len(texts) - most} more"] if len(texts) > most else []))
