"""The nodes of an ONNX graph, written one after the other: double precision, one value a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

OPSET, OPSET_ML, IR_VERSION = 18, 3, 9


class Nodes:
    """Operations on columns; every column is named by the text that makes it.

    Names of tensors begin with ``mcspark/``, so that none is the name of an input.
    """

    def __init__(self) -> None:
        import onnx  # noqa: PLC0415  (an extra)

        self._onnx = onnx
        self._nodes: list[Any] = []
        self._inputs: dict[str, Any] = {}
        self._tensors: dict[Any, tuple[str, Any]] = {}

    def input(self, name: str, text: bool) -> str:
        """A column that is given: texts, or doubles."""
        kind = self._onnx.TensorProto.STRING if text else self._onnx.TensorProto.DOUBLE
        self._inputs[name] = self._onnx.helper.make_tensor_value_info(name, kind, ["rows"])
        return name

    def constant(self, values: Any) -> str:
        """An array of doubles or whole numbers; equal ones are stored once."""
        array = np.asarray(values)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._tensors:
            name = f"mcspark/constant{len(self._tensors)}"
            self._tensors[key] = (name, self._onnx.numpy_helper.from_array(array, name))
        return self._tensors[key][0]

    def __call__(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """The only output of a new node."""
        name = f"mcspark/{kind.lower()}{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def sum(self, terms: Sequence[str]) -> str:
        """The sum of one or more columns."""
        total = terms[0]
        for term in terms[1:]:
            total = self("Add", total, term)
        return total

    def place_of_text(self, column: str, words: Sequence[str]) -> str:
        """The place from 1 of every text among ``words``; 0 where it is none of them."""
        return self(
            "LabelEncoder", column, domain="ai.onnx.ml", keys_strings=list(words),
            values_int64s=list(range(1, len(words) + 1)), default_int64=0,
        )  # fmt: skip

    def count_below(self, column: str, edges: NDArray[np.float64], or_equal: bool = False) -> str:
        """How many of the increasing ``edges`` are below (or at) every number; 0 for NaN.

        Bisection: the edges are padded with infinity to one less than a power of two, which is halved until
        nothing is left. Infinity itself, with ``or_equal``, is above the padding too.
        """
        steps = len(edges).bit_length()
        padded = self.constant(np.concatenate([edges, np.full(2**steps - 1 - len(edges), np.inf)]))
        place = ""
        for power in reversed(range(steps)):
            half = 2**power
            if place:
                probed = self("Gather", padded, self("Add", place, self.constant(np.int64(half - 1))))
            else:
                probed = self.constant(np.float64(edges[half - 1] if half <= len(edges) else np.inf))
            above = self("LessOrEqual" if or_equal else "Less", probed, column)
            step = self("Mul", self("Cast", above, to=7), self.constant(np.int64(half)))
            place = self("Add", place, step) if place else step
        return place or self("Cast", self("Less", column, column), to=7)

    def place_of_number(self, column: str, numbers: NDArray[np.float64]) -> str:
        """The place from 1 of every number among ``numbers``; 0 where it is none of them, or NaN."""
        order = np.argsort(numbers, kind="stable")
        at = self.count_below(column, numbers[order])
        size = 2 ** len(numbers).bit_length()
        ordered, places = np.full(size, np.nan), np.zeros(size, dtype=np.int64)
        ordered[: len(numbers)], places[: len(numbers)] = numbers[order], order + 1
        same = self("Equal", self("Gather", self.constant(ordered), at), column)
        return self("Mul", self("Gather", self.constant(places), at), self("Cast", same, to=7))

    def model(self, output: str, name: str, description: str) -> bytes:
        """The checked model whose only output is a column of doubles."""
        onnx = self._onnx
        self._nodes.append(onnx.helper.make_node("Identity", [output], [name]))
        value = onnx.helper.make_tensor_value_info(name, onnx.TensorProto.DOUBLE, ["rows"])
        read = {name for node in self._nodes for name in node.input}
        tensors = [tensor for tensor_name, tensor in self._tensors.values() if tensor_name in read]
        graph = onnx.helper.make_graph(
            self._nodes, "mcspark", list(self._inputs.values()), [value], initializer=tensors
        )
        sets = [onnx.helper.make_opsetid("", OPSET), onnx.helper.make_opsetid("ai.onnx.ml", OPSET_ML)]
        made = onnx.helper.make_model(
            graph, opset_imports=sets, ir_version=IR_VERSION, producer_name="mcspark", doc_string=description
        )
        onnx.checker.check_model(made, full_check=True)
        return bytes(made.SerializeToString())
