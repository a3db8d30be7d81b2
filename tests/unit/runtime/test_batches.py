import numpy as np
import pytest

from mcspark.runtime.tasks.batches import gathered


@pytest.mark.parametrize("rows", [1, 4, 5, 100])
def test_batches_are_put_together_in_order_and_none_is_lost(rows):
    ends = np.cumsum([3, 1, 4, 1, 5, 0, 2])
    batches = np.split(np.arange(16), ends[:-1])
    parts = [np.concatenate(some) for some in gathered(iter(batches), rows, len)]
    np.testing.assert_array_equal(np.concatenate(parts), np.arange(16))
    assert all(len(part) >= rows for part in parts[:-1])
    assert len(parts[0]) < rows + 5


def test_no_batch_gives_nothing():
    assert list(gathered(iter([]), 10, len)) == []
    assert list(gathered(iter([[], []]), 10, len)) == []
