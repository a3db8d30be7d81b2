"""Multicalibrated scores for every group, at population scale, on Spark."""
