"""The part of a page of results that a benchmark writes by itself, and how a value stands there."""

from __future__ import annotations

from pathlib import Path

_BEGIN, _END = "<!-- measured -->", "<!-- end of measured -->"


def shown(metric: str, value: float) -> str:
    """Rates of bytes in MB/s, all else in the metric's own unit."""
    return f"{value / 1e6:.1f} MB/s" if metric.endswith("bytes_s") else f"{value:.3g}"


def measured(path: Path) -> str:
    """Give what is between the marks of a page."""
    return path.read_text(encoding="utf-8").partition(_BEGIN)[2].partition(_END)[0].strip("\n")


def put(text: str, path: Path) -> None:
    """Replace what is between the marks of a page."""
    before, _, rest = path.read_text().partition(_BEGIN)
    _, _, after = rest.partition(_END)
    path.write_text(f"{before}{_BEGIN}\n{text}\n{_END}{after}")
