"""The twin: a model of Ceph's OSDs that predicts what settings would do. Its scheduler is exact."""
