"""Many clusters: which there are, how each is reached, all asked at once, and profiles that travel between them."""
