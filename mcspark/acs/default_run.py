"""The run that needs no configuration: a synthetic population, made here, calibrated, and reported on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import SparkSession

from mcspark.acs.columns import GROUPS
from mcspark.acs.synthetic import write_synthetic
from mcspark.config import Config, load_config
from mcspark.runtime.files.files import Files

FOLDER = "mcspark-run/synthetic"

_CONFIGURATION: dict[str, Any] = {
    "scored.path": f"{FOLDER}/scored",
    "scored.key": "[SERIALNO, SPORDER]",
    "attributes": f"[{{path: {FOLDER}/attributes, key: [SERIALNO, SPORDER]}}]",
    "groups.codebook": "acs",
    "groups.columns": GROUPS,
    "calibrator.link": "logit",
    "output.path": f"{FOLDER}/calibrated",
    "model.path": f"{FOLDER}/model",
    "report.path": f"{FOLDER}/report.html",
}


def configuration(overrides: Sequence[str] = ()) -> Config:
    """The configuration of the default run, with the user's ``--set`` on top."""
    defaults = [f"{key}={value}" for key, value in _CONFIGURATION.items()]
    return load_config(None, [*defaults, *overrides])


def prepare(spark: SparkSession, config: Config) -> None:
    """Make the population, unless it is there already."""
    del config
    files = Files(spark, FOLDER)
    if not files.exists(f"{FOLDER}/attributes/_SUCCESS"):
        write_synthetic(spark, files.qualify(FOLDER))
