"""A cluster behind the ports."""
