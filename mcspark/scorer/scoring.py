"""A saved model as a function of tables and of rows, equal to what Spark computes with it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from mcspark.core.cells.groups import Family, distinct_rows
from mcspark.core.cells.levels import FloatArray, IntArray
from mcspark.core.cells.readable import readable_names
from mcspark.core.model.additive import BoolArray, Members
from mcspark.core.model.explanation import Explanation, explained
from mcspark.core.model.stages import Stage, Stages, corrected_one
from mcspark.core.saved import MAX_BYTES, SavedModel, saved_model, with_parts
from mcspark.core.segments import SegmentedCalibrator
from mcspark.errors import ContractError
from mcspark.identifiers import folded
from mcspark.runtime.files.untrusted import read_json
from mcspark.scorer.categories import FamilyCodes
from mcspark.scorer.columns import Column, column_of
from mcspark.scorer.one_row import OtherValueError, one_row_code

REMEMBERED = 4096
"""Values of each attribute, and signatures, that are remembered for rows that come one at a time."""


def read_model(path: str | Path) -> SavedModel:
    """The parts of a model's folder, or of its ``model.json``, on this machine.

    Raises
    ------
    ContractError
        If there is none, or it is truncated, edited, too large or of another version.
    """
    place = Path(str(path).removeprefix("file:"))
    try:
        place = place / "model.json" if place.is_dir() else place
        model = saved_model(_json(place))
        return with_parts(model, lambda name: _json(place.parent / name))
    except OSError as error:
        raise ContractError(f"{place}: no readable model ({error}); copy its folder here") from error
    except ValueError as error:
        raise ContractError(f"{place}: not a model of this program ({error})") from error


def _json(place: Path) -> Any:
    with place.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"{place.name} is larger than {MAX_BYTES} bytes")
    return read_json(content.decode())


class Scorer:
    """Applies a saved model without Spark. It does not change, so threads may share it.

    Parameters
    ----------
    model : SavedModel
    score : str, optional
        Column of the score; the model's own if absent.

    Raises
    ------
    ConfigurationError
        If a group has a condition that cannot be evaluated without Spark.

    Examples
    --------
    >>> scorer = Scorer.load("data/model")                            # doctest: +SKIP
    >>> table["calibrated"] = scorer.score(table)                     # doctest: +SKIP
    """

    def __init__(self, model: SavedModel, score: str | None = None) -> None:
        self.groups = model.scoring.groups
        self.method = model.method
        self.calibrator = model.scoring.calibrator
        self.score_column = score or model.columns["scoreCol"]
        self.prediction_column = model.columns["predictionCol"]
        self._families = [FamilyCodes(family) for family in self.groups.signed]
        stages = self.calibrator.stages if isinstance(self.calibrator, Stages) else ()
        self._wanted = set(self.columns)
        self._stages = [_OneRowStage(stage) for stage in stages]
        self._layout, self._n_words = self.groups.layout, self.groups.n_words
        self._first_group = np.cumsum([0, *(len(f.categories) for f in self.groups.signed)])
        self._pairs = np.array(self.groups.learned.pairs, dtype=np.int64).reshape(-1, 2)
        families = zip(self._families, self.groups.signed, self._layout, strict=True)
        self._one_row_codes = [(_one_row_code(c, f), f.columns, place) for c, f, place in families]
        self._terms = lru_cache(REMEMBERED)(self._terms_of_signature)

    @classmethod
    def load(cls, path: str | Path, score: str | None = None) -> Scorer:
        """Read a model's folder, or its ``model.json``, on this machine.

        Parameters
        ----------
        path : str or Path
        score : str, optional
            Column of the score; the one that the model was fitted to if absent.

        Raises
        ------
        ContractError
            If there is none, or it is truncated, edited, too large or of another version.
        """
        return cls(read_model(path), score)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read: the score, and the attributes of the groups and features."""
        return (self.score_column, *self.groups.columns)

    @property
    def names(self) -> dict[str, str]:
        """What people read for the id of each group, in the order of the groups."""
        return readable_names(self.groups.signed, self.groups.learned_names)

    def score(self, table: Any) -> FloatArray:
        """Calibrated scores of the rows of a table.

        Parameters
        ----------
        table : pandas.DataFrame, pyarrow.Table, pyarrow.RecordBatch or mapping of str to sequence
            With the columns of :attr:`columns`, in whatever capitals.

        Returns
        -------
        ndarray, shape (N,), range [0, 1]

        Raises
        ------
        ContractError
            If a column is missing or of a type that has no such categories, or a score is missing or
            outside [0, 1].
        """
        score, signature, words = self.signatures(table)
        return self.calibrator.apply_signatures(score, signature, self.groups.members(words))

    def signatures(self, table: Any) -> tuple[FloatArray, IntArray, IntArray]:
        """The scores (N,), the place of each row's signature (N,), and the distinct signatures (S, words)."""
        read: dict[str, Column] = {}

        def of(name: str) -> Column:
            if name not in read:
                read[name] = column_of(table, name)
                rows = len(read[self.score_column])
                if len(read[name]) != rows:  # one value would be taken for every row's
                    raise ContractError(
                        f"column {name!r} has {len(read[name])} rows, but {self.score_column!r} has {rows}; "
                        "give a value for every row"
                    )
            return read[name]

        score = self._checked_score(of(self.score_column))
        codes = np.zeros((len(score), len(self._families)), dtype=np.int64)
        for i, family in enumerate(self._families):
            codes[:, i] = family.of(of)
        words, signature = distinct_rows(self.groups.words(codes))
        return score, signature, words

    def score_one(self, row: Mapping[str, Any]) -> float:
        """Calibrated score of one row.

        Parameters
        ----------
        row : mapping of str to value
            Values of the columns of :attr:`columns`; None is missing.

        Raises
        ------
        ContractError
            As :meth:`score` does.
        """
        score, words = self._score_and_words(row)
        if not isinstance(self.calibrator, Stages):
            return self._slow_one(score, words)
        for stage, groups, offset in self._terms(words):
            score = stage.apply(score, groups, offset)
        return score

    def explain_one(self, row: Mapping[str, Any], *, readable: bool = False) -> Explanation:
        """From the score of one row to its calibrated score, step by step.

        Parameters
        ----------
        row : mapping of str to value
            As for :meth:`score_one`.
        readable : bool
            Call the groups by their titles and labels, where the model has them, and not by their ids.

        Raises
        ------
        ContractError
            As :meth:`score_one` does, and if the calibrator is not made of trees, which alone has steps.
        """
        score, words = self._score_and_words(row)
        return self._explained(score, self._members(words), readable=readable)

    def explain(self, table: Any) -> list[Explanation]:
        """The same for every row of a table of a few; see :meth:`score` and :meth:`explain_one`."""
        score, signature, words = self.signatures(table)
        member = self.groups.members(words)
        return [self._explained(f, member[s]) for f, s in zip(score.tolist(), signature, strict=True)]

    def _explained(self, score: float, member: Members, *, readable: bool = False) -> Explanation:
        groups, calibrator = self.groups, self.calibrator
        if isinstance(calibrator, SegmentedCalibrator):
            part, member = calibrator.part_of(member)
            groups, calibrator = part.groups, part.calibrator
        if isinstance(calibrator, Stages):
            words = readable_names(groups.signed, groups.learned_names) if readable else {}
            return explained(calibrator, score, member, tuple(words.values()) or None)
        raise ContractError(
            f"a calibrator of the method {self.method!r} has no steps to explain; fit one with "
            "calibrator.method: trees"
        )

    def _score_and_words(self, row: Mapping[str, Any]) -> tuple[float, tuple[int, ...]]:
        """The checked score and the signature of one row."""
        if not self._wanted <= row.keys():
            row = {name: row[self._key_of(name, row)] for name in self.columns}
        score = row[self.score_column]
        if type(score) is not float or not 0 <= score <= 1:
            score = float(self._checked_score(column_of({self.score_column: [score]}, self.score_column))[0])
        return float(score), self._words_of(row)

    def _words_of(self, row: Mapping[str, Any]) -> tuple[int, ...]:
        """The signature of one row."""
        words = [0] * self._n_words
        try:
            for code, columns, place in self._one_row_codes:
                words[place.word] |= code(*[row[name] for name in columns]) << place.shift
        except TypeError as error:  # a list, or something else without a hash
            raise ContractError(f"an attribute of the row is neither a number nor text ({error})") from error
        return tuple(words)

    def _key_of(self, name: str, row: Mapping[str, Any]) -> str:
        keys = [key for key in row if folded(key) == folded(name)]
        if len(keys) != 1:
            raise ContractError(
                f"the row has {'two columns' if keys else 'no column'} {name!r}; give each of "
                f"{', '.join(self.columns)}, and None for what is missing"
            )
        return keys[0]

    def _terms_of_signature(self, words: tuple[int, ...]) -> list[tuple[_OneRowStage, IntArray, float]]:
        """By stage, the groups of a signature, and what does not depend on the score."""
        groups = np.flatnonzero(self._members(words))
        return [(stage, groups, stage.offset(groups)) for stage in self._stages]

    def _members(self, words: tuple[int, ...]) -> BoolArray:
        """Groups of one signature, shape (G,): :meth:`FittedGroups.membership` without making their names."""
        codes = np.array([(words[p.word] >> p.shift) & ((1 << p.bits) - 1) for p in self._layout], dtype=int)
        base = np.zeros(self._first_group[-1], dtype=bool)
        base[self._first_group[:-1][codes > 0] + codes[codes > 0] - 1] = True
        return np.concatenate([base, base[self._pairs[:, 0]] & base[self._pairs[:, 1]]])

    def _slow_one(self, score: float, words: tuple[int, ...]) -> float:
        member = self.groups.membership(np.array([words], dtype=np.int64))
        one = np.zeros(1, dtype=np.int64)
        return float(self.calibrator.apply_signatures(np.array([score]), one, member)[0])

    def _checked_score(self, column: Column) -> FloatArray:
        score = column.numbers()
        wrong = ~((score >= 0) & (score <= 1))
        if wrong.any():
            raise ContractError(
                f"{int(wrong.sum())} of {len(score)} scores in column {column.name!r} are missing or outside "
                f"[0, 1], such as {score[wrong][0]} in row {int(np.flatnonzero(wrong)[0])}; leave them out"
            )
        return score


def _one_row_code(codes: FamilyCodes, family: Family) -> Callable[..., int]:
    """The code of a family for the values of its columns; what takes long is remembered."""
    columns, quick = family.columns, one_row_code(family)

    @lru_cache(REMEMBERED, typed=True)  # 1, 1.0 and True are three values
    def code(*values: Any) -> int:
        row = {name: [value] for name, value in zip(columns, values, strict=True)}
        return int(codes.of(lambda name: column_of(row, name))[0])

    if quick is None:
        return code

    def of(*values: Any) -> int:
        try:
            return quick(*values)
        except OtherValueError:
            return code(*values)

    return of


class _OneRowStage:
    """One stage laid out for rows that come one at a time; sums run in the order of :class:`Stage`."""

    def __init__(self, stage: Stage) -> None:
        form = stage.form
        self._link, self._form = stage.link, form
        self._thresholds, self._base = form.thresholds.tolist(), form.base.tolist()
        self._pairs = form.pairs[:, 0] * form.n_groups + form.pairs[:, 1]

    def offset(self, groups: IntArray) -> float:
        """What members of these groups, in increasing order, get at every score."""
        total = float(self._form.constant)
        if len(self._pairs):
            wanted = (groups[:, None] * self._form.n_groups + groups).reshape(-1)
            at = np.minimum(np.searchsorted(self._pairs, wanted), len(self._pairs) - 1)
            for value in self._form.pair_values[at[self._pairs[at] == wanted]].tolist():
                total += value
        return total

    def apply(self, score: float, groups: IntArray, offset: float) -> float:
        """The score after this stage."""
        place = bisect_left(self._thresholds, score)
        total = self._base[place] + offset
        for value in self._form.curves[groups, place].tolist():
            total += value
        return corrected_one(score, total, self._link)
