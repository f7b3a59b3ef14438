"""The parts of a page of results that benchmarks write by themselves, and how a value stands there."""

from __future__ import annotations

from pathlib import Path
from typing import Tuple


def shown(metric: str, value: float) -> str:
    """Rates of bytes in MB/s, all else in the metric's own unit."""
    return f"{value / 1e6:.1f} MB/s" if metric.endswith("bytes_s") else f"{value:.3g}"


def measured(path: Path, part: str = "measured") -> str:
    """Give what is between the marks of a page's part."""
    begin, end = _marks(part)
    return path.read_text(encoding="utf-8").partition(begin)[2].partition(end)[0].strip("\n")


def put(text: str, path: Path, part: str = "measured") -> None:
    """Replace what is between the marks of a page's part."""
    begin, end = _marks(part)
    before, _, rest = path.read_text().partition(begin)
    _, _, after = rest.partition(end)
    path.write_text(f"{before}{begin}\n{text}\n{end}{after}")


def _marks(part: str) -> Tuple[str, str]:
    return f"<!-- {part} -->", f"<!-- end of {part} -->"
