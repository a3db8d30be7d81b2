"""The arithmetic: NumPy only, no Spark, no paths."""
