"""ceph-mgr plugin: samples the cluster's work and tunes mClock to service-level objectives."""

# flake8: noqa
from .module import Module as Module
