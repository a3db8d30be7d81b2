"""mcspark beside Meta's mcgrad, on one table: error, loss and time of both.

``python tests/peers/compare_mcgrad.py [--config FILE] [--set KEY=VALUE …] [--levels 20]``

Both see the same rows, split and attributes (the categories that the groups are made of). The errors are
measured on the test rows alone, by the same code for both, against the label. Without a configuration it
takes the synthetic population of the default run. mcgrad runs in an environment of its own, made on demand.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import functions as F

from mcspark.acs import default_run
from mcspark.config import Config, load_config
from mcspark.core.cells.cells import Cells
from mcspark.core.cells.levels import ScoreBins, base_levels
from mcspark.core.metrics.metrics import measure
from mcspark.ml.cells.groups import with_categories
from mcspark.ml.cells.signatures import category_name, with_signature, word_names
from mcspark.ml.multicalibrator import MulticalibratorModel
from mcspark.pipelines.calibrate import calibrate, engine
from mcspark.pipelines.run import Run, new_run_id
from mcspark.runtime.process.logs import configure_logs
from mcspark.runtime.session import spark_session

HERE = Path(__file__).parent
FIGURES = ("mc_error", "noise_floor", "worst_group_smece", "loss")


def main() -> None:
    options = _options()
    if options.config:
        config = load_config(options.config, options.set)
    else:
        config = default_run.configuration(options.set)
    spark = spark_session("mcspark beside mcgrad", engine=engine(config))
    if not options.config:
        default_run.prepare(spark, config)
    run = Run("calibrate", new_run_id("calibrate"), config, spark)
    configure_logs(run_id=run.run_id)
    start = time.monotonic()
    calibrate(run)
    ours = {"cells": run.seconds["cells"], "fit": run.seconds["fit"], "whole job": time.monotonic() - start}
    model = MulticalibratorModel.load(config.model.path)
    rows = _labelled(spark, config, model)
    spark.stop()
    test = rows[rows.split == "test"].reset_index(drop=True)
    scores, theirs = mcgrad(rows)
    figures = {
        "as it came": _figures(test, test.score, model, options.levels, {}),
        "mcspark": _figures(test, test.calibrated_score, model, options.levels, ours),
        "mcgrad": _figures(test, scores, model, options.levels, theirs),
    }
    print(f"{len(rows)} labelled rows, {len(test)} of them test rows, m = {options.levels}")
    print(f"{'':12}{'MC error':>10}{'floor':>10}{'smECE':>10}{'loss':>10}  seconds")
    for name, found in figures.items():
        took = ", ".join(f"{what} {s:.1f}" for what, s in found["seconds"].items())
        print(f"{name:12}" + "".join(f"{found[key]:10.5f}" for key in FIGURES) + f"  {took}")
    print(json.dumps(figures))


def _figures(
    test: pd.DataFrame, score: pd.Series, model: MulticalibratorModel, levels: int, seconds: dict[str, float]
) -> dict[str, Any]:
    """What the score of the test rows is worth."""
    base = base_levels([levels, 100])
    cells = Cells.from_rows(
        np.clip(np.asarray(score, dtype=np.float64), 0, 1),
        test.label.to_numpy(),
        model.fitted.membership(test[word_names(model.fitted)].to_numpy(np.int64)),
        bins=ScoreBins(base, (2,) * base),
        weight=test.weight.to_numpy(),
        groups=model.fitted.names,
    )
    metrics = measure(cells, [levels], draws=100, seed=1, min_rows=1)
    numbers = (
        metrics.by_level[levels].mc_error, metrics.floors[levels].expected, metrics.smooth.worst, metrics.loss
    )  # fmt: skip
    return {**dict(zip(FIGURES, numbers, strict=True)), "seconds": seconds}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--config")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--levels", type=int, default=20)
    return parser.parse_args()


def _labelled(spark, config: Config, model: MulticalibratorModel) -> pd.DataFrame:
    """The labelled rows: both scores, label, weight, split, categories, signature."""
    rows = spark.read.parquet(config.output.path).where(F.col(config.scored.label).isNotNull())
    for table in config.attributes:
        rows = rows.join(spark.read.parquet(table.path), list(config.scored.key), "left")
    families = model.fitted.families
    rows = with_signature(with_categories(rows, families), model.fitted)
    names = {category_name(i): f"family_{f.column}" for i, f in enumerate(families)}
    weight = F.col(config.scored.weight) if config.scored.weight else F.lit(1.0)
    return rows.select(
        F.col(config.scored.score).alias("score"), F.col(config.scored.label).alias("label"),
        weight.alias("weight"), "split", "calibrated_score",
        *[F.col(c).cast("string").alias(name) for c, name in names.items()], *word_names(model.fitted),
    ).toPandas()  # fmt: skip


def mcgrad(rows: pd.DataFrame) -> tuple[np.ndarray, dict[str, float]]:
    """mcgrad's scores of the test rows, and what they took; for the columns see ``mcgrad_scores.py``."""
    # Spark's and this environment's settings are none of mcgrad's business.
    others = ("PYTHON", "PYSPARK", "SPARK", "VIRTUAL_ENV", "UV_PROJECT")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(others)}
    uv = [sys.executable, "-m", "uv"] if find_spec("uv") else ["uv"]
    script = [*uv, "run", "-q", "--locked", "--project", str(HERE), "python", str(HERE / "mcgrad_scores.py")]
    with tempfile.TemporaryDirectory() as folder:
        table, output = f"{folder}/table.parquet", f"{folder}/scores.parquet"
        rows.to_parquet(table)
        done = subprocess.run(
            [*script, table, output], env=environment, check=True, stdout=subprocess.PIPE, text=True
        )
        return pd.read_parquet(output)["score"].to_numpy(), json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
