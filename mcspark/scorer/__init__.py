"""Scoring with a saved model without Spark: NumPy alone, for a table or for one row.

Examples
--------
>>> from mcspark.scorer import Scorer
>>> scorer = Scorer.load("data/model")                            # doctest: +SKIP
>>> scorer.score(table)                                           # doctest: +SKIP
>>> scorer.score_one({"score": 0.3, "SEX": 2, "AGEP": 67})        # doctest: +SKIP
"""

from mcspark.scorer.scoring import Scorer

__all__ = ["Scorer"]
