"""Whose a place is: one run at a time, what it may replace, and what a run that died has left."""
