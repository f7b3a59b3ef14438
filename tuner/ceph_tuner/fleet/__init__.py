"""Many clusters: which there are and how each is reached, all of them asked at once, profiles that travel between them."""
