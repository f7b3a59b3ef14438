"""The twin: a model of Ceph's OSDs that predicts what settings would do. So far its scheduler, which is exact."""
