"""A real, throwaway Ceph cluster on throttled devices."""
