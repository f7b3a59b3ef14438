"""A short part of the campaign of hostile input (tests/fuzz): the same inputs in every run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

CAMPAIGN = Path(__file__).resolve().parent / "fuzz" / "campaign.py"


def test_hostile_input_for_some_seconds_finds_nothing() -> None:
    # the plugin's package is found as ceph-mgr finds it
    environment = {**os.environ, "PYTHONPATH": str(CAMPAIGN.parents[2] / "mgr_module")}
    command = [sys.executable, str(CAMPAIGN), "--turns", "25", "--seed", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-5000:] + done.stdout[-500:]
    assert ", 0 findings, " in done.stdout
