"""A job in small: session, perhaps a LightGBM fit, a log line, one summary line, an exit code."""

from __future__ import annotations

import argparse
import json
import sys

import structlog

from mcspark.errors import McsparkError
from mcspark.runtime.process.logs import configure_logs
from mcspark.runtime.session import finish, spark_session
from mcspark.runtime.tasks.executors import executors, slots
from mcspark.runtime.tasks.preflight import check_executors, check_lightgbm


def fit(spark):
    """Train a few trees on as many tasks as there are slots; return the rows scored."""
    from pyspark.ml.linalg import Vectors
    from synapse.ml.lightgbm import LightGBMRegressor

    rows = [(Vectors.dense([float(i), 1.0]), float(i % 7)) for i in range(200)]
    frame = spark.createDataFrame(rows, ["features", "label"]).repartition(2).cache()
    frame.count()
    estimator = LightGBMRegressor(numIterations=5, numTasks=min(2, slots(spark)), minDataInLeaf=1)
    return estimator.fit(frame).transform(frame).count()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lightgbm", action="store_true")
    parser.add_argument("--preflight", action="store_true")
    parser.add_argument("--exit-code", type=int, default=0)
    options = parser.parse_args()
    configure_logs("json", run_id="probe")
    spark, code, summary = None, options.exit_code, {}
    try:
        spark = spark_session("probe", engine="synapseml" if options.lightgbm else None)
        if options.preflight:
            check_executors(spark)
            if options.lightgbm:
                check_lightgbm(spark)
        summary["rows"] = fit(spark) if options.lightgbm else spark.range(200).count()
        summary["slots"] = slots(spark)
        summary["executors"] = len(executors(spark))
        summary["conf"] = dict(spark.sparkContext.getConf().getAll())
        structlog.get_logger().info("a log line", url="s3a://me:hunter2@bucket/x")
    except McsparkError as error:
        code = error.exit_code
        summary["error"] = str(error)
    print("noise from a library", file=sys.stderr)
    print(json.dumps({"exit_code": code, **summary}))
    finish(spark, code)


if __name__ == "__main__":
    main()
