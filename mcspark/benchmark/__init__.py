"""The benchmark: what the jobs cost beside reading, joining and writing the same rows."""
