"""Cells, and what they are counted by: levels, bins, groups."""
