"""What is measured of a score, and how much of it may be chance."""
