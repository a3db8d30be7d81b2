"""Spark ML: groups, cells, calibrators, evaluators. Reads like pyspark.ml; knows no path."""
