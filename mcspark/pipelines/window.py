"""Learning from kept cells: of the run's own partition, and of the partitions of a window."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import structlog
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mcspark.core.cells.cells import Cells, Role
from mcspark.core.cells.groups import FittedGroups
from mcspark.core.cells.levels import ScoreBins
from mcspark.data.kept import KeptStore, Wanted
from mcspark.data.kept_form import KeptForm
from mcspark.errors import ContractError, TransientError
from mcspark.ml.cells.cells import make_cells
from mcspark.ml.cells.driver_cells import are_few
from mcspark.ml.cells.groups import GroupSet
from mcspark.ml.cells.kept_cells import (
    LEAST_DEPTH,
    Part,
    learning_weights,
    put_together,
    refuse_weights,
    shared_scale,
    window_bins,
)
from mcspark.ml.cells.working import WORKING
from mcspark.ml.learning import learning_bins
from mcspark.ml.methods import estimator_of
from mcspark.pipelines.judging.measuring import driver_cells
from mcspark.pipelines.reading.input_state import table_states
from mcspark.pipelines.reading.inputs import read_inputs
from mcspark.pipelines.reading.partitions import Partitions
from mcspark.pipelines.reading.rows import Inputs
from mcspark.pipelines.reading.workspace import Workspace
from mcspark.pipelines.run import Run
from mcspark.runtime.columns import column

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Window:
    """What a run learns from.

    Parameters
    ----------
    cells : Cells
        Of all rows that were learned from or held out.
    groups : FittedGroups
    test : Cells
        Of the held-out rows, in finer bins.
    used, missing : tuple of str
        Partitions with labelled rows, and without.
    computed : mapping of str to str
        Partitions whose cells were not there as they were needed, and why.
    held_out : str or None
        The partition that was held out.
    own : str
        The partition of the run.
    """

    cells: Cells
    groups: FittedGroups
    test: Cells
    used: tuple[str, ...]
    missing: tuple[str, ...]
    computed: Mapping[str, str]
    held_out: str | None

    own: str

    def with_roles(self, inputs: Inputs) -> Inputs:
        """The rows of the run's own partition with what they were for: nothing, where it was not used."""
        labelled = column(WORKING.label).isNotNull()
        if self.own not in self.used:
            role = F.lit(None).cast("string")
        elif self.own == self.held_out:
            role = F.when(labelled, F.lit(Role.test.name))
        else:
            return inputs
        return inputs.with_frame(inputs.frame.withColumn(str(WORKING.split), role))

    def summary(self) -> dict[str, Any]:
        """Part of the summary line."""
        return {
            "partitions": list(self.used),
            "held_out": self.held_out,
            "missing": list(self.missing),
            "computed": dict(self.computed),
            "rows": int(self.cells.n.sum()),
            "test": int(self.test.n.sum()),
        }


class Learning:
    """The kept cells that a run is about.

    Parameters
    ----------
    run : Run
    plan : GroupSet
    inputs : Inputs
        The rows of the run's own partition, joined and kept.
    workspace : Workspace
    """

    def __init__(self, run: Run, plan: GroupSet, inputs: Inputs, workspace: Workspace) -> None:
        assert run.config.cells is not None
        self._run, self._plan, self._inputs, self._workspace = run, plan, inputs, workspace
        self._partitions = Partitions(run.config)
        self._store = KeptStore(run.spark, run.config.cells.path, run.run_id)
        self._scale = shared_scale(run.config.cells.typical_weight)
        self._computed: dict[str, str] = {}

    def window(self) -> Window:
        """Bring the cells of all partitions up to date, and put those to learn from together.

        Raises
        ------
        ContractError
            If a partition has no rows, or no labels, and none may be missing; or none has both.
        """
        run, partitions = self._run, self._partitions
        own = partitions.name
        wanted = [
            partitions.wanted(name, table_states(run, partitions.config_of(name)))
            for name in dict.fromkeys([*partitions.window, own])
        ]
        found = self._store.find(wanted)
        kept: dict[str, KeptForm] = {}
        missing: dict[str, str] = {}
        for one in wanted:
            name, held = one.partition, found[one.partition]
            if isinstance(held, KeptForm):
                kept[name] = held
            elif isinstance(computed := self._computed_now(one, held), KeptForm):
                kept[name] = computed
            elif name in partitions.window:
                missing[name] = computed
        self._refuse_missing(missing, [name for name in partitions.window if name in kept])
        result = self._put_together(
            [kept[name] for name in partitions.window if name in kept], tuple(missing)
        )
        assert run.config.cells is not None
        removed = self._store.prune(partitions.column, run.config.cells.keep, partitions.needed)
        if removed:
            log.info("kept cells of old partitions are removed", partitions=removed)
        return result

    def _refuse_missing(self, missing: Mapping[str, str], used: Sequence[str]) -> None:
        learn, source, window = self._run.config.learn, self._inputs.source, self._partitions.window
        first, why = next(iter(missing.items()), ("", ""))
        if not used:
            raise ContractError(
                f"{source}: none from {window[0]} to {window[-1]} can be learned from ({first} {why}); "
                "wait until labels have come, or choose other days by learn.last and learn.mature_after"
            )
        if missing and not (learn and learn.allow_missing):
            raise ContractError(
                f"{source}: {len(missing)} of the {len(window)} partitions to learn from cannot be, such as "
                f"{first}, which {why}; supply them, or set learn.allow_missing"
            )
        if self._partitions.held_out is not None and len(used) < 2:
            raise ContractError(
                f"{source}: of the partitions to learn from {used[0]} alone has labels, and split.by: time "
                "holds it out; wait for more days, or set learn.last higher"
            )

    def _computed_now(self, wanted: Wanted, reason: str) -> KeptForm | str:
        """The cells of a partition from its own rows; or words on what it lacks."""
        name, partitions = wanted.partition, self._partitions
        if name == partitions.name:
            return self._kept(wanted, self._inputs, reason)
        config = partitions.config_of(name).model_copy(update={"allow_empty": True})
        run = replace(self._run, config=config)
        log.info("a partition is computed anew", partition=name, reason=reason)
        inputs = read_inputs(run, self._plan.families, self._plan.columns, needs_label=True, labels_due=False)
        if not inputs.report.labelled:
            return self._kept(wanted, inputs, reason)
        with run.stage("window", f"join the attributes of {name}"):
            inputs = inputs.with_frame(self._workspace.keep(inputs.frame, name))
            inputs.refuse_unmatched()
        try:
            return self._kept(wanted, inputs, reason)
        finally:
            self._workspace.drop(name)

    def _kept(self, wanted: Wanted, inputs: Inputs, reason: str) -> KeptForm | str:
        if not inputs.n_accepted:
            return "has no rows"
        if not inputs.n_labelled:
            return "has no labels"
        report = inputs.report
        refuse_weights(self._scale, report.labelled, report.weight, report.weight_sq, inputs.source)
        with self._run.stage("keep", f"sum the rows of {wanted.partition} to cells") as counts:
            form = self._written(wanted, inputs)
            counts.update(rows=form.rows, cells=form.cells)
        self._computed[wanted.partition] = reason
        return form

    def _written(self, wanted: Wanted, inputs: Inputs) -> KeptForm:
        run, names = self._run, replace(WORKING, weight=inputs.weight)
        calibrator = run.config.calibrator
        levels = [*run.config.evaluation.levels, *estimator_of(calibrator).grids]
        bins = learning_bins(inputs.labelled, names, levels, calibrator.score_bins, self._scale)
        bins = bins.at_least(LEAST_DEPTH)
        with make_cells(inputs.labelled, names, self._plan.families, bins, self._scale) as table:

            def form(blocks: DataFrame, content: str) -> KeptForm:
                weights, rows = learning_weights(blocks, bins)
                if rows != inputs.n_labelled:
                    raise TransientError(
                        f"{wanted.partition}: {rows} rows were summed to cells, and {inputs.n_labelled} were "
                        "expected; run again, and if this persists look for an input that changes meanwhile"
                    )
                return KeptForm(
                    partition=wanted.partition,
                    run_id=run.run_id,
                    configuration=wanted.configuration,
                    inputs={place: str(state) for place, state in wanted.inputs.items() if state},
                    bins=bins,
                    weight_unit=self._scale.weight,
                    weight_sq_unit=self._scale.weight_sq,
                    kinds=table.kinds,
                    rows=rows,
                    cells=int(content.split("-")[1]),
                    weight=inputs.report.weight,
                    weight_sq=inputs.report.weight_sq,
                    learning=tuple(weights.tolist()),
                    files={},
                    content=content,
                )

            return self._store.keep(wanted.partition, table.merged, form)

    def _put_together(self, forms: Sequence[KeptForm], missing: tuple[str, ...]) -> Window:
        run = self._run
        rows, weight, weight_sq = (
            sum(getattr(f, what) for f in forms) for what in ("rows", "weight", "weight_sq")
        )
        refuse_weights(self._scale, rows, weight, weight_sq, "the window")
        held_out = forms[-1].partition if run.config.split.by == "time" else None
        factor = self._factors()
        parts = [
            Part(self._store.blocks(f), f.kinds, f.bins, f.partition == held_out, factor(f)) for f in forms
        ]
        learns = [f for f in forms if f.partition != held_out]
        by = window_bins(
            [f.bins for f in learns],
            [np.asarray(f.learning) for f in learns],
            run.config.calibrator.score_bins,
        )
        fine = ScoreBins.common([f.bins for f in forms])
        by = ScoreBins.common([by, fine])
        tests = [part for part in parts if part.held_out or held_out is None]
        limit = driver_cells(run)
        few = are_few(limit.rows(sum(form.cells for form in forms)), len(self._plan.families))
        with run.stage("cells", "put the cells of the partitions together") as counts:
            with put_together(parts, by, self._scale, few=few) as table:
                cells, groups = table.collect_chosen(self._plan, limit.most)
            with put_together(tests, fine, self._scale, (Role.test,), few=few) as table:
                test = table.collect(groups, limit.most)
            self._store.refuse_replaced(forms)
            counts.update(rows=rows, cells=len(cells), partitions=len(forms))
            counts.update(signatures=len(cells.membership), groups=len(groups.names))
        return Window(
            cells,
            groups,
            test,
            tuple(f.partition for f in forms),
            missing,
            dict(self._computed),
            held_out,
            self._partitions.name,
        )

    def _factors(self) -> Callable[[KeptForm], float | None]:
        """What the weights of a partition are multiplied by."""
        learn = self._run.config.learn
        if learn is None or learn.half_life is None:
            return lambda _: None
        half_life, days = learn.half_life, self._partitions.window
        return lambda form: 2.0 ** ((days.index(form.partition) - len(days) + 1) / half_life)
