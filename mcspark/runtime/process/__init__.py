"""The process itself: its log, its standard streams, its time limits, and what its failures mean."""
