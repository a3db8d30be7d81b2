from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import SparkSession

from mcspark.acs.population import population_arrays
from mcspark.acs.synthetic import synthetic_population, write_synthetic

KEY = ["SERIALNO", "SPORDER"]


@pytest.mark.parametrize("kind", ["binary", "real"])
def test_spark_and_numpy_make_the_same_people(spark: SparkSession, kind: str) -> None:
    expected = pd.DataFrame(population_arrays(3_000, seed=9, kind=kind))
    made = synthetic_population(spark, 3_000, seed=9, label_kind=kind).toPandas()
    pd.testing.assert_frame_equal(made, expected[list(made.columns)], rtol=0, atol=1e-12)
    assert set(made.columns) == set(expected.columns)


def test_the_people_do_not_depend_on_the_partitioning(spark: SparkSession) -> None:
    here = synthetic_population(spark, 500).repartition(5).toPandas()
    expected = pd.DataFrame(population_arrays(500, seed=7))
    here = here.sort_values(KEY, ignore_index=True)
    pd.testing.assert_frame_equal(here, expected[list(here.columns)], rtol=0, atol=1e-12)


def test_the_tables_written_look_like_prepared_ones(spark: SparkSession, tmp_path: Path) -> None:
    paths = write_synthetic(spark, str(tmp_path / "data"), rows=5_000, seed=1)
    scored = pd.read_parquet(paths["scored"]).set_index(KEY).sort_index()
    attributes = pd.read_parquet(paths["attributes"]).set_index(KEY).sort_index()
    assert paths == {name: str(tmp_path / "data" / name) for name in ("scored", "attributes")}
    assert list(scored.columns) == ["score", "label", "PWGTP"]
    assert "truth" not in attributes.columns
    assert scored.index.is_unique
    assert scored.index.equals(attributes.index)
    assert scored["label"].isna().mean() == pytest.approx(0.1, abs=0.02)
    known = scored["label"].dropna()
    everyone = pd.DataFrame(population_arrays(5_000, seed=1)).set_index(KEY)
    np.testing.assert_array_equal(known, everyone.loc[known.index, "label"])
