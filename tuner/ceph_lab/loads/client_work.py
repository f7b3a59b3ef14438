"""What clients do, as told to fio or to `open_loop.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Optional

from ceph_tuner.core.errors import LoadFailed

IMAGE = "clients"
OPEN_LOOP_DEPTH = 256
"""Enough that 250 IOPS may wait for a second each before an arrival has to wait for a free place."""

LIBRBD, FIO = "librbd", "fio"
ENGINES = (LIBRBD, FIO)


@dataclass(frozen=True)
class ClientWork:
    """What the clients do. `rate` is operations per second of all jobs together; None: closed loop."""

    rate: Optional[float] = 250.0
    depth: Optional[int] = None
    block_bytes: int = 4096
    read_share: float = 0.0
    jobs: int = 1
    image_bytes: int = 1 << 30
    object_bytes: int = 4 << 20
    """Of the image: the size of its objects, a power of two."""
    sequential: bool = False
    engine: Optional[str] = None
    seed: int = 1

    def __post_init__(self) -> None:
        if self.rate is not None and not self.rate >= 1:
            raise LoadFailed(f"client rate must be at least 1 per second, got {self.rate:g}", "give another value")
        if not 0 <= self.read_share <= 1:
            raise LoadFailed(
                f"the share of reads must be within 0 and 1, got {self.read_share:g}", "give another value"
            )
        if self.jobs < 1 or self.depth_in_force < 1:
            raise LoadFailed(
                f"jobs and queue depth must be at least 1, got {self.jobs} and {self.depth}", "give another value"
            )
        if not 512 <= self.block_bytes <= self.image_bytes:
            raise LoadFailed(
                f"the block size must be within 512 and the image's size, got {self.block_bytes}", "give another value"
            )
        # what `rbd create` takes
        if not 4096 <= self.object_bytes <= 32 << 20 or self.object_bytes & (self.object_bytes - 1):
            raise LoadFailed(
                f"the image's objects must have 4096 bytes to 32 MiB, a power of two, got {self.object_bytes}",
                "give another value",
            )
        if self.engine_in_force not in ENGINES:
            raise LoadFailed(f"engine must be one of {', '.join(ENGINES)}, got {self.engine}", "give another value")
        if self.engine_in_force == LIBRBD and self.rate is None:
            raise LoadFailed(f"the engine {LIBRBD} offers a rate, got a closed loop", f"take --engine {FIO}")

    @property
    def objects(self) -> int:
        """Of the image."""
        return -(-self.image_bytes // self.object_bytes)

    @property
    def engine_in_force(self) -> str:
        """Unless stated, fio for closed loops alone."""
        return self.engine or (LIBRBD if self.rate else FIO)

    @property
    def depth_in_force(self) -> int:
        """Queue depth of a job."""
        return self.depth if self.depth is not None else (OPEN_LOOP_DEPTH if self.rate else 16)

    def plan(self, pool: str) -> Dict[str, Any]:
        """What `open_loop.py` is told."""
        return {
            "pool": pool,
            "image": IMAGE,
            "image_bytes": self.image_bytes,
            "rate": self.rate,
            "depth": self.depth_in_force * self.jobs,
            "block_bytes": self.block_bytes,
            "read_share": self.read_share,
            "jobs": self.jobs,
            "sequential": self.sequential,
            "seed": self.seed,
        }

    def arguments(self, pool: str) -> List[str]:
        """Command line of fio."""
        kind = "" if self.sequential else "rand"
        pattern = {0.0: f"{kind}write", 1.0: f"{kind}read"}.get(self.read_share, f"{kind}rw")
        options = [
            *fio_engine(pool),
            "--name=client",
            f"--rw={pattern}",
            f"--bs={self.block_bytes}",
            f"--iodepth={self.depth_in_force}",
            f"--numjobs={self.jobs}",
            "--group_reporting",
            "--randrepeat=0",
            "--norandommap",
            "--time_based",
            "--runtime=100d",
            "--lat_percentiles=1",
            "--clat_percentiles=0",
            "--output-format=json+",
            "--status-interval=1",
            "--eta=never",
        ]
        if pattern.endswith("rw"):
            options.append(f"--rwmixread={round(100 * self.read_share)}")
        if self.rate is not None:
            # with a mix, fio takes one rate for reads and one for writes
            reads = max(1, round(self.rate * self.read_share / self.jobs))
            writes = max(1, round(self.rate * (1 - self.read_share) / self.jobs))
            both = f"{reads},{writes}" if pattern.endswith("rw") else f"{max(1, round(self.rate / self.jobs))}"
            options += [f"--rate_iops={both}", "--rate_process=poisson"]
        return options


def fio_engine(pool: str) -> List[str]:
    """Arguments with which fio finds the image."""
    return ["--ioengine=rbd", "--clientname=admin", f"--pool={pool}", f"--rbdname={IMAGE}", "--invalidate=0"]
