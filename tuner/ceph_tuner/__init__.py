"""ceph-tuner: states, searches and safely writes the mClock settings of Ceph clusters."""

__version__ = "0.2.0"
