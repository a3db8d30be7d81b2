import numpy as np
import pandas as pd
import pytest

from mcspark.ml.scoring import gathered


@pytest.mark.parametrize("rows", [1, 4, 5, 100])
def test_batches_are_put_together_in_order_and_none_is_lost(rows):
    sizes = [3, 1, 4, 1, 5, 0, 2]
    ends = np.cumsum(sizes)
    values = [np.arange(end - size, end) for size, end in zip(sizes, ends, strict=True)]
    batches = [(pd.Series(v * 0.5), pd.Series(v, dtype="int64")) for v in values]
    parts = list(gathered(iter(batches), rows))
    np.testing.assert_array_equal(np.concatenate([part[1] for part in parts]), np.arange(16))
    np.testing.assert_array_equal(np.concatenate([part[0] for part in parts]), np.arange(16) * 0.5)
    assert all(len(part[0]) >= rows for part in parts[:-1])
    assert all(part[1].dtype == np.int64 for part in parts)


def test_no_batch_gives_nothing():
    assert list(gathered(iter([]), 10)) == []
