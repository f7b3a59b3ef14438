"""An emulated flash drive as the twin has it."""

from __future__ import annotations

from ceph_lab.drives import Flash
from ceph_tuner.twin.model import Device


def flash_device(drive: Flash) -> Device:
    """In its slow motion."""
    factor = drive.slow_motion
    return Device(
        drive.write_iops / factor, drive.write_bandwidth / factor, drive.read_iops / factor,
        drive.read_bandwidth / factor,
        # a request has its share of the rate first
        latency_s=max(0.0, 1e-6 * drive.write_latency_us - 1 / drive.write_iops) * factor,
        read_latency_s=max(0.0, 1e-6 * drive.read_latency_us - 1 / drive.read_iops) * factor,
        spread=min(1.0, drive.jitter),
    )  # fmt: skip
