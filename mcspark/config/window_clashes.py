"""What does not go together of windows, kept cells and the split."""

from __future__ import annotations

from collections.abc import Iterator

from mcspark.config.models import Config
from mcspark.config.problems import Problem


def window_problems(config: Config) -> Iterator[Problem]:
    """What does not go together of ``cells``, ``learn``, ``split`` and ``calibrator``."""
    cells, learn, split = config.cells, config.learn, config.split
    if learn is not None and cells is None:
        yield Problem(("learn",), "needs kept cells; name their folder by cells.path")
    if learn is not None and cells is not None and cells.keep < (span := learn.last + learn.mature_after):
        what = f"is less than the {span} days of learn.last and learn.mature_after, which are needed again"
        yield Problem(("cells", "keep"), what, cells.keep)
    if cells is not None and config.calibrator.training == "rows":
        what = "trains on rows, and cells alone are kept; write cells, or leave the section cells out"
        yield Problem(("calibrator", "training"), what, "rows")
    if split.by == "time":
        if learn is None:
            what = "holds out the latest partition of a window; say which one by learn, or write hash"
            yield Problem(("split", "by"), what, "time")
        elif learn.last < 2:
            what = "is held out by split.by: time, so nothing is left to learn from; write 2 or more"
            yield Problem(("learn", "last"), what, learn.last)
        if split.column is not None:
            what = "says what is held out, and so does by: time; leave one of them out"
            yield Problem(("split", "column"), what, split.column)
