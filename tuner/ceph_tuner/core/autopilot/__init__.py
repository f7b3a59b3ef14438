"""The automatic mode as decisions over values: no I/O, no clock, no threads. The plugin carries out what is decided.

Standard library only and Python 3.9, as it runs inside ceph-mgr.
"""
