"""Ceph behind ports: commands, the configuration database, the store; clocks, processes and interpreters."""
