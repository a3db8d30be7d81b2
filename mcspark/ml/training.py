"""What trains the trees of a job: SynapseML in the cluster, or official LightGBM where that cannot start."""

from __future__ import annotations

import structlog
from pyspark.sql import SparkSession

from mcspark.core.training.training_table import TrainingTable, TreeSettings
from mcspark.engine.errors import SPARK_ERRORS
from mcspark.errors import ConfigurationError
from mcspark.ml import driver_training
from mcspark.ml.trees import SynapseTrainer
from mcspark.runtime.executors import driver_cores
from mcspark.runtime.failures import explained, native_failure
from mcspark.runtime.progress import tell

log = structlog.get_logger(__name__)


class TreeTrainer:
    """Trains ensembles with SynapseML until its native library turns out not to load; then on the driver.

    The library is built for x86-64 with glibc 2.27 or later and needs libgomp. Elsewhere the official
    LightGBM, if it is installed, trains on the cells, which are on the driver anyway: its text has the same
    format, and its trees are the same up to the version of the library. It can also be asked for: where cells
    are few, a Spark job for each ensemble costs more than the ensemble.

    Parameters
    ----------
    spark : SparkSession
        With the SynapseML LightGBM classes, unless the official library was asked for.
    timeout_seconds : float
        Wall-clock limit of one ensemble.
    engine : {'synapseml', 'lightgbm'}
        What to begin with.

    Raises
    ------
    ConfigurationError
        If the official library was asked for and is not installed.
    """

    def __init__(self, spark: SparkSession, timeout_seconds: float = 3600, engine: str = "synapseml") -> None:
        self.spark = spark
        self.timeout_seconds = timeout_seconds
        self.engine = driver_training.synapse()
        """Name and version of what has trained."""
        self._synapse = SynapseTrainer(spark, timeout_seconds)
        self._driver: driver_training.DriverTrainer | None = None
        if engine == "lightgbm":
            self._train_on_driver(driver_training.required("calibrator.engine"))

    def __call__(self, table: TrainingTable, settings: TreeSettings) -> str:
        """LightGBM text of one ensemble, cut at the best tree (see ``core.training_table.Train``).

        Raises
        ------
        TransientError
            If it takes too long, or an executor is lost.
        ConfigurationError
            If the native library does not load, and the official LightGBM is not installed.
        """
        if self._driver is None:
            tell(f"growing at most {settings.max_trees:,} trees")  # it says nothing while it trains
            try:
                return self._synapse(table, settings)
            except SPARK_ERRORS as error:
                reason = native_failure(error)
                if reason is None:
                    raise explained(error) or error from error
                self._fall_back(reason)
        assert self._driver is not None
        return self._driver(table, settings)

    def _fall_back(self, reason: str) -> None:
        engine = driver_training.engine()
        if engine is None:
            raise ConfigurationError(
                f"SynapseML's native LightGBM does not load here ({reason}): it needs x86-64, glibc 2.27 or "
                "later, libgomp, and a java.io.tmpdir from which programs may be started. Mend that, or "
                "install mcspark[sweep] on the driver, which then trains on the cells"
            )
        log.warning("SynapseML does not load: the driver trains on the cells", reason=reason, engine=engine)
        self._train_on_driver(engine)

    def _train_on_driver(self, engine: str) -> None:
        self.engine = f"{engine} on the driver"
        # Nothing else runs there meanwhile.
        self._driver = driver_training.DriverTrainer(driver_cores(), self.timeout_seconds)
