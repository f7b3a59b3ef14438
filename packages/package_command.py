"""The command line of what builds packages of a system: OUTPUT [--wheels FOLDER]."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import List, Optional, Protocol

import python_distributions
from python_distributions import ROOT


class PackageBuilder(Protocol):
    """Builds a system's packages."""

    def __call__(self, sdist: Path, output: Path, seconds: int, wheels: Optional[Path] = None) -> List[Path]:
        """From the source distribution, with that age; the packages' paths."""


def run(build: PackageBuilder, description: str) -> None:
    """Build the packages of this tree, and name them."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("--wheels", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        sdist = python_distributions.build_sdist(ROOT, Path(scratch))
        for path in build(sdist, options.output, python_distributions.epoch(ROOT), options.wheels):
            print(path)
