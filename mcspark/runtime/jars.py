"""The SynapseML LightGBM jars: which ones, and how a session gets them."""

from __future__ import annotations

from pyspark.sql import SparkSession

COORDINATE = "com.microsoft.azure:synapseml-lightgbm_2.12:1.1.3"
# Four of the 24 resolved artefacts are needed; patterns name the others.
EXCLUDED = (
    "org.*:*",
    "commons-*:*",
    "com.beust:*",
    "com.chuusai:*",
    "com.fasterxml.*:*",
    "com.jcraft:*",
    "com.linkedin.*:*",
)


def add_lightgbm(spark: SparkSession) -> None:
    """Add the LightGBM jars to the driver and to every executor of the session."""
    spark.sql(f'ADD JAR "ivy://{COORDINATE}?exclude={",".join(EXCLUDED)}"')
