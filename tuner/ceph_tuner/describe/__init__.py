"""A live cluster as its twin is told of it."""
