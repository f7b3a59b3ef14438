"""Lets the tests of the book share the automatic mode's field."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "autopilot"))
