"""mcgrad's scores of a table, in mcgrad's own environment: ``mcgrad_scores.py TABLE OUTPUT``.

The table is a Parquet file with ``score``, ``label``, ``weight``, ``split`` and one column ``family_…`` for
each attribute; the output has one calibrated score a test row, in the table's order. Prints seconds as JSON.
"""

import json
import sys
import time

import pandas as pd
from mcgrad.methods import MCGrad, RegressionMCGrad


def main(table: str, output: str) -> None:
    rows = pd.read_parquet(table)
    families = [name for name in rows.columns if name.startswith("family_")]
    rows[families] = rows[families].astype("string").fillna("none")
    learning, test = rows[rows.split != "test"], rows[rows.split == "test"]
    binary = bool(rows.label.isin([0, 1]).all())
    # mcgrad holds rows out by itself; its own defaults decide how many.
    peer = MCGrad() if binary else RegressionMCGrad()
    start = time.monotonic()
    peer.fit(
        learning,
        prediction_column_name="score",
        label_column_name="label",
        weight_column_name="weight",
        categorical_feature_column_names=families,
    )
    fitted = time.monotonic()
    score = peer.predict(test, prediction_column_name="score", categorical_feature_column_names=families)
    pd.DataFrame({"score": score}).to_parquet(output)
    print(json.dumps({"fit": fitted - start, "score": time.monotonic() - fitted}))


if __name__ == "__main__":
    main(*sys.argv[1:])
