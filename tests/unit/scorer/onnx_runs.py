"""Tables through ONNX Runtime, in one thread."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pandas as pd


def session(model: bytes, table: pd.DataFrame) -> tuple[Any, dict[str, np.ndarray]]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    run = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    given = {}
    for one in run.get_inputs():
        column = table[one.name]
        if one.type == "tensor(string)":
            given[one.name] = np.array(["" if pd.isna(v) else str(v) for v in column], dtype=object)
        else:
            given[one.name] = pd.to_numeric(column).to_numpy(float)
    return run, given


def scored(model: bytes, table: pd.DataFrame) -> np.ndarray:
    run, given = session(model, table)
    return run.run(["calibrated_score"], given)[0]
