"""What is wanted, and how far a measurement is from it: objectives, trials, the guard, which settings are better."""
