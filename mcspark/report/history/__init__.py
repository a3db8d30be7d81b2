"""All runs of an output on one page: what was measured, what has changed, and what is out of the ordinary."""
