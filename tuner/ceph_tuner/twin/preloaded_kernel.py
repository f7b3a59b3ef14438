"""Imported by the process that workers are forked from: what it has loaded, each of them has.

A kernel that is not compiled yet is left to who runs it first: here others would compile it beside this process.
"""

from ceph_tuner.twin.compiled import is_kept
from ceph_tuner.twin.simulation_pool import warm

if is_kept():
    warm()
