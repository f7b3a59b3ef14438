"""Processes of this machine: how one begins as a worker, and a pool for short calls. Knows nothing of what they do."""
