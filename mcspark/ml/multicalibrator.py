"""The calibrator in the manner of Spark ML: an estimator that learns it and a model that applies it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal

import pandas as pd
import structlog
from pyspark import keyword_only
from pyspark.ml import Estimator, Model
from pyspark.sql import DataFrame, SparkSession

from mcspark.core.calibrator import SignatureCalibrator
from mcspark.core.cells.cells import Cells
from mcspark.core.cells.groups import FittedGroups
from mcspark.core.model.stages import Stages
from mcspark.core.saved import COLUMNS, SavedModel
from mcspark.core.segments import Part, SegmentTable, segmented
from mcspark.core.training.growing import Growing
from mcspark.core.training.rounds import Round, check_saturation
from mcspark.core.training.training_curve import CurvePoint, training_curve
from mcspark.core.training.training_table import Train, TreeSettings
from mcspark.errors import ContractError
from mcspark.ml.cells.groups import GroupSet, with_categories
from mcspark.ml.cells.working import WORKING, working_columns
from mcspark.ml.curves import curves_frame, pairs_frame
from mcspark.ml.fit_summary import FitSummary, trees_of
from mcspark.ml.learning import learning_cells
from mcspark.ml.params import SEARCHED_PARAMS, TreeParams
from mcspark.ml.persistence import CalibratorReader, CalibratorWriter
from mcspark.ml.scoring import with_calibrated
from mcspark.ml.training.training import TreeTrainer
from mcspark.runtime.process.progress import tell
from mcspark.scorer import Scorer

log = structlog.get_logger(__name__)


class Multicalibrator(TreeParams, Estimator["MulticalibratorModel"]):
    """Learns the paper's calibrator: depth-2 trees over the score and the groups, fitted to the residual.

    Parameters
    ----------
    groups : GroupSet or mapping
        The groups, or the ``groups`` section of a configuration; what trees learn from, where it is columns.
    scoreCol, labelCol : str
        Doubles in [0, 1]; rows with a null label are not learned from.
    weightCol : str, optional
        Non-negative weight.
    splitCol : str
        ``fit``, ``early_stopping`` or ``test``; test rows are not learned from.
    predictionCol : str
        Column that the model adds, default ``calibrated_score``.
    recipe : str
        ``auto`` chooses link, learningRate, minRowsInLeaf, earlyStoppingRounds, rounds and refit by the rows
        and their early-stopping loss, except those that are set (:mod:`mcspark.core.training.recipe`);
        ``paper`` takes the settings below as they stand.
    learningRate, featureFraction, maxTrees, earlyStoppingRounds, link, minRowsInLeaf, seed
        See :class:`mcspark.core.training.training_table.TreeSettings`.
    rounds : str or int
        A whole number, or ``auto``.
    refit : bool
        Choose the number of trees on the early-stopping rows, then grow them on those rows too.
    monotone : bool
        Let the calibrated score never fall where the score rises and the groups stay: the correction itself
        may not fall, so scores that are too extreme are not drawn together.
    engine : str
        What grows the trees: ``synapseml`` in the cluster, the official ``lightgbm`` on the driver, or
        ``auto``: SynapseML where the session has its classes.
    scoreBins : int
        Wanted number of equally heavy score bins beside the edges of the levels.
    levels : list of int
        Evaluation grids, whose edges are score bin edges.
    timeoutSeconds : float
        Wall-clock limit of training one ensemble.

    Examples
    --------
    >>> estimator = Multicalibrator(groups=groups, splitCol="split")   # doctest: +SKIP
    >>> model = estimator.fit(labelled)                                # doctest: +SKIP
    >>> scored = model.transform(everyone)                             # doctest: +SKIP
    """

    @keyword_only
    def __init__(
        self,
        *,
        groups: GroupSet | Mapping[str, Any] | None = None,
        scoreCol: str = "score",
        labelCol: str = "label",
        weightCol: str | None = None,
        splitCol: str = "split",
        predictionCol: str = "calibrated_score",
        recipe: str = "auto",
        learningRate: float = 0.1,
        featureFraction: float = 1.0,
        maxTrees: int = 5000,
        earlyStoppingRounds: int = 50,
        link: str = "identity",
        rounds: str | int = "1",
        scoreBins: int = 255,
        minRowsInLeaf: int = 20,
        seed: int = 1,
        levels: list[int] | None = None,
        refit: bool = False,
        monotone: bool = False,
        engine: str = "auto",
        timeoutSeconds: float = 3600.0,
    ) -> None:
        super().__init__()
        kwargs = {k: v for k, v in vars(self)["_input_kwargs"].items() if v is not None and k != "groups"}
        self._set(**kwargs)
        if groups is not None:
            self.setGroups(groups)

    def _fit(self, dataset: DataFrame) -> MulticalibratorModel:
        cells, groups = learning_cells(dataset, self)
        return self.fit_cells(cells, groups, self.trainer(dataset.sparkSession))

    def trainer(self, spark: SparkSession) -> TreeTrainer:
        """What grows the trees of this estimator.

        Raises
        ------
        ConfigurationError
            If that is SynapseML, and the session does not have its classes.
        """
        return TreeTrainer(spark, self.getOrDefault("timeoutSeconds"), self.getOrDefault("engine"))

    def fit_cells(
        self, cells: Cells, groups: FittedGroups, train: Train, *, saturation: bool = True
    ) -> MulticalibratorModel:
        """Learn from cells that are already there.

        Parameters
        ----------
        cells : Cells
        groups : FittedGroups
            The groups that the cells' membership is about.
        train : callable
            See :data:`mcspark.core.training.training_table.Train`.
        saturation : bool
            Whether to run the calibrator once more on its own output and measure the gain.
        """
        if not len(cells):
            raise ContractError("there is no labelled row to learn from; check the label column")
        fit, settings, recipe = self.growing.fit(
            cells, train, on_round=lambda number, found: tell(_words(number, found), lasting=True),
            tried=lambda candidate: tell(candidate.words, lasting=True),
        )  # fmt: skip
        if not fit.stages.stages:
            log.warning(
                "nothing was gained on held-out rows: the score ships as it is", rounds=len(fit.rounds)
            )
        elif settings.refit and not fit.refitted:
            log.warning("the refit lost where it had learned: the trees stay as they were chosen")
        again = check_saturation(cells, fit.stages, settings, train) if saturation else None
        model = MulticalibratorModel(groups, fit.stages, method="trees", texts=fit.texts)
        model.summary = FitSummary(
            groups.names,
            trees_of(fit.stages),
            fit.rounds,
            again,
            getattr(train, "engine", None),
            recipe,
            cells,
        )
        for warning in model.summary.warnings:
            log.warning(warning)
        return self._copyValues(model)

    @property
    def growing(self) -> Growing:
        """How the trees are grown."""
        given = frozenset(name for name, param in SEARCHED_PARAMS.items() if self.isSet(param))
        return Growing(self.getOrDefault("recipe"), self.settings, self._rounds(), given)

    @property
    def grids(self) -> tuple[int, ...]:
        """Grids whose edges must be score bin edges, beside those of the evaluation: none."""
        return ()

    @property
    def settings(self) -> TreeSettings:
        """How an ensemble is grown."""
        get = self.getOrDefault
        return TreeSettings(
            learning_rate=get("learningRate"),
            feature_fraction=get("featureFraction"),
            max_trees=get("maxTrees"),
            early_stopping_rounds=get("earlyStoppingRounds"),
            link=get("link"),
            min_rows_in_leaf=get("minRowsInLeaf"),
            seed=get("seed"),
            refit=get("refit"),
            monotone=get("monotone"),
        )

    def _rounds(self) -> int | Literal["auto"]:
        value = self.getOrDefault("rounds")
        return "auto" if value == "auto" else int(value)


def _words(number: int, found: Round) -> str:
    kept = "" if found.kept else ", not kept"
    losses = f"held-out loss {found.loss_before:.6f} → {found.loss_after:.6f}"
    return f"round {number}: {found.trees:,} trees, {losses}{kept}"


MOST_EXPLAINED = 1000
"""Rows that :meth:`MulticalibratorModel.explain` takes at once."""


class MulticalibratorModel(TreeParams, Model):
    """A fitted calibrator: turns (score, groups) into a calibrated score. Needs no SynapseML.

    Parameters
    ----------
    fitted : FittedGroups
    calibrator : SignatureCalibrator
        The arithmetic; :class:`mcspark.core.model.stages.Stages` for the trees.
    method : str
        Which calibrator it is.
    texts : tuple of str
        LightGBM text of each stage, for other tools; scoring does not read it.
    """

    def __init__(
        self,
        fitted: FittedGroups,
        calibrator: SignatureCalibrator,
        method: str = "trees",
        texts: tuple[str, ...] = (),
    ) -> None:
        super().__init__()
        self.fitted = fitted
        self.calibrator = calibrator
        self.method = method
        self.texts = texts
        self.summary: FitSummary | None = None
        """What the fit did, of a fitted or a loaded model."""
        self.table: SegmentTable | None = None
        """The segments with a calibrator of their own; this one is for all other rows then."""
        self.parts: tuple[MulticalibratorModel, ...] = ()
        """The calibrators of these segments."""

    def with_segments(
        self, table: SegmentTable, parts: Sequence[MulticalibratorModel]
    ) -> MulticalibratorModel:
        """The same model, with calibrators for some segments of the rows.

        Parameters
        ----------
        table : SegmentTable
        parts : sequence of MulticalibratorModel
            One a segment, for groups of the same definitions.

        Raises
        ------
        ValueError
            If they do not fit together.
        """
        model: MulticalibratorModel = self.copy()
        model.table, model.parts = table if len(table) else None, tuple(parts)
        _ = model.scoring
        return model

    @property
    def scoring(self) -> Part:
        """What scores a row of whatever segment, and the groups that this is about."""
        parts = [Part(part.fitted, part.calibrator) for part in self.parts]
        return segmented(self.table, Part(self.fitted, self.calibrator), parts)

    def _transform(self, dataset: DataFrame) -> DataFrame:
        scoring = self.scoring
        missing = [c for c in scoring.groups.columns if c.lower() not in {n.lower() for n in dataset.columns}]
        if missing:
            raise ContractError(
                f"the table lacks the group column(s) {missing} that the model was fitted with"
            )
        frame = working_columns(dataset, self._columns(), labelled=False)
        frame = with_categories(frame, scoring.groups.signed)
        name = self.getOrDefault("predictionCol")
        scored = with_calibrated(frame, WORKING.score, scoring, name)
        return scored.drop(*(set(scored.columns) - {*dataset.columns, name}))

    @property
    def stages(self) -> Stages | None:
        """The stages of a calibrator made of trees."""
        return self.calibrator if isinstance(self.calibrator, Stages) else None

    @property
    def changes(self) -> bool:
        """Whether it may change a score at all."""
        every = (self, *self.parts)
        return any(model.stages is None or bool(model.stages.stages) for model in every)

    def curves(self) -> pd.DataFrame:
        """What the calibrator adds across the score range: of every row, and of the members of each group.

        Returns
        -------
        DataFrame
            ``stage, link, group, lower, upper, correction``, see :func:`mcspark.ml.curves.curves_frame`;
            no rows for a calibrator that is not made of trees.
        """
        return curves_frame(self.stages or Stages((), self.fitted.learned_names))

    def pairs(self) -> pd.DataFrame:
        """What members of two groups get on top, largest first; see :func:`mcspark.ml.curves.pairs_frame`."""
        return pairs_frame(self.stages or Stages((), self.fitted.learned_names))

    def explain(self, frame: Any) -> pd.DataFrame:
        """From score to calibrated score, step by step, of a few rows.

        Parameters
        ----------
        frame : pandas.DataFrame, pyarrow.Table or pyspark.sql.DataFrame
            With the score and the group columns; of a Spark DataFrame take the rows that you ask about first.

        Returns
        -------
        DataFrame
            ``row`` (from 0), ``stage`` (from 0), ``link``, ``kind``, ``name``, ``value``, one row a step, see
            :class:`mcspark.core.model.explanation.Step`; the values of a row and a stage sum to its change.

        Raises
        ------
        ContractError
            If there are more than ``MOST_EXPLAINED`` rows, the calibrator is not made of trees, or a column
            or a score is not as it must be.
        """
        rows = frame.limit(MOST_EXPLAINED + 1).toPandas() if isinstance(frame, DataFrame) else frame
        if len(rows) > MOST_EXPLAINED:
            raise ContractError(f"over {MOST_EXPLAINED} rows to explain; choose those that you ask about")
        columns = {name: self.getOrDefault(name) for name in COLUMNS}
        scorer = Scorer(self._saved(columns))
        steps = [{"row": i, **step} for i, one in enumerate(scorer.explain(rows)) for step in one.rows()]
        return pd.DataFrame(steps, columns=["row", "stage", "link", "kind", "name", "value"])

    def _saved(self, columns: Mapping[str, str]) -> SavedModel:
        parts = tuple(part._saved(columns) for part in self.parts)
        return SavedModel(
            self.method, self.fitted, self.calibrator, columns, 0, None, table=self.table, parts=parts
        )

    def training_curve(self) -> pd.DataFrame:
        """Loss of the fitting and the early-stopping rows as trees were added.

        Returns
        -------
        DataFrame
            ``stage`` (from 0), ``trees``, ``fit``, ``early_stopping``, see
            :class:`mcspark.core.training.training_curve.CurvePoint`; no rows for a calibrator that is not
            made of trees.

        Raises
        ------
        ValueError
            If the model was loaded: the rows that it learned from are not kept with it.
        """
        if self.summary is None or self.summary.cells is None:
            raise ValueError(
                "a loaded model does not have the rows it was trained on; ask the one that fit returned"
            )
        stages = self.stages or Stages((), self.fitted.learned_names)
        points = training_curve(self.summary.cells, stages, self.texts)
        return pd.DataFrame([vars(point) for point in points], columns=[f.name for f in fields(CurvePoint)])

    def write(self) -> CalibratorWriter:
        """Writer in the manner of Spark ML: ``model.write().overwrite().save(path)``."""
        return CalibratorWriter(self)

    def save(self, path: str) -> None:
        """Save to a new folder."""
        self.write().save(path)

    @classmethod
    def read(cls) -> CalibratorReader[MulticalibratorModel]:
        """Reader in the manner of Spark ML."""
        return CalibratorReader(cls)

    @classmethod
    def load(cls, path: str) -> MulticalibratorModel:
        """Load a model; what is truncated, edited or of a newer version is refused with ``ContractError``."""
        return cls.read().load(path)
