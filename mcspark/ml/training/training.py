"""What trains trees on cells: SynapseML in the cluster, or the official LightGBM on the driver."""

from __future__ import annotations

import structlog
from pyspark.sql import SparkSession

from mcspark.core.training.training_table import Train, TrainingTable, TreeSettings
from mcspark.engine.errors import SPARK_ERRORS
from mcspark.errors import ConfigurationError
from mcspark.ml.training import driver_training
from mcspark.ml.training.trees import SynapseTrainer, synapse
from mcspark.runtime import jars
from mcspark.runtime.process.failures import explained, native_failure
from mcspark.runtime.process.progress import tell
from mcspark.runtime.tasks.executors import driver_cores

log = structlog.get_logger(__name__)


class TreeTrainer:
    """Trains ensembles with SynapseML where the session has it and it loads, or else on the driver.

    SynapseML's native library is for x86-64 with glibc 2.27 or later and needs libgomp, its jars are for
    some versions of Spark. Elsewhere the official LightGBM trains on the cells, which are on the driver
    anyway: its text has the same format, and its trees are the same up to the version of the library. It can
    also be asked for: where cells are few, a Spark job for each ensemble costs more than the ensemble.

    Parameters
    ----------
    spark : SparkSession
        With SynapseML's classes, if it is to train.
    timeout_seconds : float
        Wall-clock limit of one ensemble.
    engine : {'auto', 'synapseml', 'lightgbm'}
        What is to train; ``auto`` begins with SynapseML where its classes are, and goes on with LightGBM if
        its native library does not load.

    Raises
    ------
    ConfigurationError
        If SynapseML is asked for and the session does not have it.
    """

    def __init__(self, spark: SparkSession, timeout_seconds: float = 3600, engine: str = "auto") -> None:
        self.spark = spark
        self.timeout_seconds = timeout_seconds
        self.engine = synapse()
        """Name and version of what has trained."""
        self._falls_back = engine == "auto"
        self._synapse = SynapseTrainer(spark, timeout_seconds)
        self._driver: driver_training.DriverTrainer | None = None
        self.search: Train | None = None
        """What grows candidates whose trees are not kept, if that is sooner: a Spark job costs seconds."""
        lacking = None if engine == "lightgbm" else jars.lacking(spark)
        if lacking is not None and engine == "synapseml":
            raise jars.MissingError(lacking)
        if lacking is not None or engine == "lightgbm":
            self._train_on_driver()
        elif engine == "auto" and driver_training.installed():
            self.search = driver_training.DriverTrainer(driver_cores(), timeout_seconds)

    def __call__(self, table: TrainingTable, settings: TreeSettings) -> str:
        """LightGBM text of one ensemble, cut at the best tree (see ``core.training_table.Train``).

        Raises
        ------
        TransientError
            If it takes too long, or an executor is lost.
        ConfigurationError
            If SynapseML is asked for and its native library does not load.
        """
        if self._driver is None and table.features is not None:
            log.info("SynapseML does not learn from columns: the official LightGBM trains")
            self._train_on_driver()
        if self._driver is None:
            tell(f"growing at most {settings.max_trees:,} trees")  # it says nothing while it trains
            try:
                return self._synapse(table, settings)
            except SPARK_ERRORS as error:
                reason = native_failure(error)
                if reason is None:
                    raise explained(error) or error from error
                self.fall_back(reason)
        assert self._driver is not None
        return self._driver(table, settings)

    @property
    def by_synapse(self) -> bool:
        """Whether SynapseML trains."""
        return self._driver is None

    def fall_back(self, reason: str) -> None:
        """Let the official LightGBM train from now on, since SynapseML does not load.

        Raises
        ------
        ConfigurationError
            If SynapseML is asked for.
        """
        if not self._falls_back:
            raise ConfigurationError(
                f"SynapseML's native LightGBM does not load here ({reason}): it needs x86-64, glibc 2.27 or "
                "later, libgomp, and a java.io.tmpdir from which programs may be started. Mend that, or "
                "set calibrator.engine: auto, and the official LightGBM trains"
            )
        self._train_on_driver()
        log.warning(
            "SynapseML does not load: the official LightGBM trains", reason=reason, engine=self.engine
        )

    def _train_on_driver(self) -> None:
        self.engine = f"{driver_training.engine()} on the driver"
        # Nothing else runs there meanwhile.
        self._driver = driver_training.DriverTrainer(driver_cores(), self.timeout_seconds)
