"""The search of Ceph's knobs: their space, priors, objectives as constraints, and the worker process."""
