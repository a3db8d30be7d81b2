"""The figures of a report, each a matplotlib figure from a table.

From the metrics table of a run (``pandas.read_parquet`` of the summary's ``paths.metrics``):
:func:`error_by_grid`, :func:`reliability`, :func:`gap_map`. From ``MulticalibratorModel.curves()``:
:func:`correction_curves`, :func:`correction_map`. From the points of a training curve: :func:`training`.
"""

from mcspark.report.plots.corrections import correction_curves, correction_map
from mcspark.report.plots.diagrams import reliability
from mcspark.report.plots.errors import error_by_grid
from mcspark.report.plots.maps import gap_map, gap_scale
from mcspark.report.plots.training import training

__all__ = [
    "correction_curves",
    "correction_map",
    "error_by_grid",
    "gap_map",
    "gap_scale",
    "reliability",
    "training",
]
