"""What is measured: metrics by name, counters read and turned into samples, windows, the past."""
