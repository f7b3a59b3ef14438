"""Ceph's options that matter here, release by release: what each does, its range, what a change costs."""
