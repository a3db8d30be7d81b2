"""The score as decimal, float, whole number, or text."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest


def store(world, score, kind):
    file = world.root / "scored" / "part-0.parquet"
    table = pq.read_table(file)
    place = table.column_names.index("score")
    pq.write_table(table.set_column(place, "score", pa.array(score, kind)), file)


@pytest.mark.parametrize("kind", [pa.decimal128(10, 3), pa.float64()], ids=str)
def test_equal_numbers_give_equal_scores(world, people, kind):
    exact = [Decimal(i % 1001) / 1000 for i in range(len(people))]
    store(world, exact if pa.types.is_decimal(kind) else [float(x) for x in exact], kind)
    output = world.output(world.ran())
    assert output["score"].dtype == np.float64
    assert np.array_equal(output["score"], [float(x) for x in exact])
    found[str(kind)] = output["calibrated_score"].to_numpy()
    assert all(np.array_equal(scores, output["calibrated_score"]) for scores in found.values())


found: dict[str, np.ndarray] = {}


@pytest.mark.parametrize("kind", [pa.float32(), pa.int32(), pa.int64()], ids=str)
def test_narrow_numbers_are_cast_as_they_are(world, people, kind):
    values = [i % 2 for i in range(len(people))]
    if pa.types.is_floating(kind):
        values = np.linspace(0, 1, len(people), dtype=np.float32)
    store(world, values, kind)
    output = world.output(world.ran())
    assert output["score"].dtype == np.float64
    assert np.array_equal(output["score"], np.asarray(values, dtype=np.float64))


def test_text_is_refused(world, people):
    store(world, [repr(x) for x in people["score"]], pa.string())
    world.refused("score string -> double: not numeric; store it as a number")
