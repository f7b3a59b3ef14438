"""A described cluster that the twin is quick to run."""

from __future__ import annotations

CLUSTER = """\
schema: 1
name: small
release: tentacle
osds: 4
osd:
  drive: {iops: 80 kIOPS, bandwidth: 1 GB/s, latency: 30 us}
  throttle: 256 KiB
pools:
  - {name: rbd, pgs: 64, size: 3}
clients:
  - {pool: rbd, rate: 4 kIOPS, depth: 256, block: 4 KiB}
background:
  recovery:
    - {pool: rbd, objects: 400 k, object_size: 4 MiB}
"""
