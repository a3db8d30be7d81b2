"""PySpark's daemon with the libraries of mcspark's tasks imported: a worker forked from it starts at once.

Workers of PySpark's own daemon import pandas and pyarrow each for itself, which takes seconds of a short job.
Local sessions use this one; executors that have mcspark installed can, by
``spark.python.daemon.module=mcspark.runtime.daemon``.
"""

from __future__ import annotations

import gc

import pandas as pd  # noqa: F401
import pyarrow as pa  # noqa: F401
import pyspark.sql.pandas.serializers  # noqa: F401

import mcspark.core.cells
import mcspark.runtime.tasks.blocks  # noqa: F401

if __name__ == "__main__":
    from pyspark import daemon

    gc.freeze()  # a worker collects garbage after each task; what is imported is none
    daemon.manager()  # type: ignore[no-untyped-call]
