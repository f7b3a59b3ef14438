"""Profiles: named settings and where they come from, onto another release, and out of what is in force."""
