"""Lets the plugin be imported without a ceph-mgr, and what the tests of the automatic mode share."""

from __future__ import annotations

import sys
from pathlib import Path

import mgr_stand_in

assert mgr_stand_in.REGISTRY is not None
sys.path.append(str(Path(__file__).resolve().parents[1] / "autopilot"))
