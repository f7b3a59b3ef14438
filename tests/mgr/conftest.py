"""Lets the plugin be imported without a ceph-mgr."""

from __future__ import annotations

import mgr_stand_in

assert mgr_stand_in.REGISTRY is not None
