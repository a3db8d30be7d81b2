"""The fitted calibrator: trees as small tables, one after the other."""
