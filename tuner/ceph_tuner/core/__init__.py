"""What runs inside ceph-mgr, and in every other program of ours: the standard library alone, from Python 3.9 on."""
