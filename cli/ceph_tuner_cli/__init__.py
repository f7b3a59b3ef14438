"""The `ceph-tuner` program: one file per command group, one place that renders."""
