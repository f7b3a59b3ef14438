from __future__ import annotations

from typing import Optional

import pytest

from ceph_tuner.core.measure.quantity import quantity


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [
        ("client.p95_ms", 71.234, "71.2 ms"),
        ("recovery.bytes_s", 9.1e6, "9.1 MB/s"),
        ("recovery.bytes_s", 12.0, "12 B/s"),
        ("client.iops", 250.0, "250 /s"),
        ("scrub.interval_s", 7 * 86400.0, "7 d"),
        ("ops.slow", 0.0, "0"),
        ("recovery.objects_left", 123456.0, "123456"),
        ("client.p95_ms", 2345.6, "2346 ms"),
        ("client.p95_ms", None, "not seen"),
    ],
)
def test_quantities_are_written_as_people_read_them(metric: str, value: Optional[float], text: str) -> None:
    assert quantity(metric, value) == text
