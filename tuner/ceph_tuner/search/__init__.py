"""Searching the knobs."""
