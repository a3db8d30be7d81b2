"""Groups as Spark columns: from definitions to chosen groups to signatures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    NumericType,
    StringType,
)

from mcspark.core.cells.decimals import LARGEST_EXACT, LARGEST_WHOLE, decimal_ratio
from mcspark.core.cells.definitions import defined, learned_from
from mcspark.core.cells.groups import MAX_GROUPS, Category, Family, FittedGroups
from mcspark.core.cells.levels import FloatArray, IntArray
from mcspark.errors import ContractError
from mcspark.identifiers import quote_identifier
from mcspark.ml.cells.features import all_categories
from mcspark.ml.cells.shares import category_shares, shares_of
from mcspark.ml.cells.signatures import (
    category_name,
    signature_weights,
    signature_weights_of,
)
from mcspark.runtime.columns import as_double, column, with_columns
from mcspark.runtime.process.settings import setting

if TYPE_CHECKING:
    from mcspark.config import Features, Groups

_ANSI = "spark.sql.ansi.enabled"


JointWeights = Callable[[FittedGroups], tuple[FloatArray, float]]


@dataclass(frozen=True)
class GroupSet:
    """What groups are wanted; :meth:`fit` chooses those that are large enough.

    Parameters
    ----------
    families : tuple of Family
        Definitions, without categories.
    min_share : float
        A category is a group if it holds more than this share of the (weighted) labelled rows.
    intersections : {1, 2}
        2 adds every pair of groups that passes ``min_share``.
    features : tuple of Family
        What trees learn from: the families, then further columns. None: trees learn from the groups.
    """

    families: tuple[Family, ...]
    min_share: float = 0.01
    intersections: int = 1
    features: tuple[Family, ...] = ()

    @classmethod
    def from_config(
        cls, groups: Groups | Mapping[str, Any], features: Features | Mapping[str, Any] | None = None
    ) -> GroupSet:
        """Definitions from the sections ``groups`` and ``features`` of a configuration.

        Parameters
        ----------
        groups, features : model of the section, or plain mapping
        """
        from mcspark.config import Features, Groups  # noqa: PLC0415  (workers need no parsers)

        section = groups if isinstance(groups, Groups) else Groups.model_validate(groups)
        families = defined(section)
        learned: tuple[Family, ...] = ()
        if features is not None:
            given = features if isinstance(features, Features) else Features.model_validate(features)
            learned = learned_from(given, families)
        return cls(families, section.min_share, section.intersections, learned)

    @property
    def signed(self) -> tuple[Family, ...]:
        """The families that rows are summed up by."""
        return self.features or self.families

    @property
    def measured(self) -> GroupSet:
        """The same groups, whatever trees learn from."""
        return replace(self, features=())

    @property
    def columns(self) -> tuple[str, ...]:
        """Attribute columns that the groups and the trees read, each once."""
        return FittedGroups(self.signed).columns

    def fit(
        self, frame: DataFrame, weight: str | None = None, joint: JointWeights | None = None
    ) -> FittedGroups:
        """Choose the groups on labelled rows that carry the category columns of :func:`with_categories`.

        Parameters
        ----------
        frame : DataFrame
            Labelled rows.
        weight : str, optional
            Column of non-negative weights.
        joint : callable, optional
            Where signatures are too many for the driver: the weight of the rows in each two of some groups,
            and that of all rows.

        Raises
        ------
        ContractError
            If a column has more than ``MAX_CATEGORIES`` distinct values, no row has any weight, no category
            is large enough to be a group, more than ``MAX_GROUPS`` are, or trees would learn from too many
            categories.
        """
        shares = category_shares(frame, self.signed, weight)
        return self._fitted(shares, lambda groups: signature_weights(frame, groups, weight), joint)

    def fit_table(self, cells: pa.Table | None) -> FittedGroups:
        """As :meth:`fit`, on an Arrow table of cells by their categories; None is a table of no cell."""
        return self._fitted(shares_of(cells, self.signed), partial(signature_weights_of, cells))

    def _fitted(
        self, shares: Sequence[Mapping[Category, float]],
        weights_of: Callable[[FittedGroups], tuple[IntArray, FloatArray]], joint: JointWeights | None = None,
    ) -> FittedGroups:  # fmt: skip
        fitted = self.chosen(shares)
        if self.intersections == 2 and joint is None:
            fitted = self.paired(fitted, *weights_of(fitted))
        elif self.intersections == 2 and joint is not None:
            fitted = _checked(fitted.with_joint(*joint(fitted), self.min_share))
        if not self.features:
            return fitted
        return replace(fitted, features=all_categories(self.features, shares))

    def chosen(self, shares: Sequence[Mapping[Category, float]]) -> FittedGroups:
        """The groups by the share of each category of each family, without intersections.

        Raises
        ------
        ContractError
            As :meth:`fit` does.
        """
        families, dropped = [], []
        for i, family in enumerate(self.families):
            seen = dict(sorted(shares[i].items(), key=lambda item: item[0]))
            kept = tuple(c for c, share in seen.items() if share > self.min_share)
            if family.kind == "predicate":
                kept = (1,)
            for category, share in seen.items():
                if category not in kept:
                    reason = f"share {share:.6f} is not above min_share {self.min_share:g}"
                    dropped.append((family.group_name(category), reason))
            families.append(
                Family(**{**vars(family), "categories": kept, "seen": () if family.where else tuple(seen)})
            )
        fitted = FittedGroups(tuple(families), (), tuple(dropped))
        if self.families and not fitted.names:
            raise ContractError(self._no_group(shares))
        return _checked(fitted)

    def paired(self, fitted: FittedGroups, words: IntArray, weight: FloatArray) -> FittedGroups:
        """The same groups with their intersections; see :meth:`FittedGroups.with_pairs`."""
        return _checked(fitted.with_pairs(words, weight, self.min_share))

    def _no_group(self, shares: Sequence[Mapping[Category, float]]) -> str:
        found = [
            (share, family.group_name(category))
            for family, of_family in zip(self.families, shares, strict=True)
            for category, share in of_family.items()
        ]
        share, largest = max(found, default=(0.0, ""))
        why = f"the largest is {largest} with {share:.4f}" if found else "all their values are missing"
        return (
            f"no group is left: no category of {', '.join(self.columns)} holds more than the share "
            f"{self.min_share:g} of the labelled rows ({why}); lower groups.min_share, or name other columns"
        )


def _checked(groups: FittedGroups) -> FittedGroups:
    if (count := len(groups.base_names) + len(groups.pairs)) > MAX_GROUPS:
        pairs = ", or set groups.intersections to 1" if groups.pairs else ", or leave a column out"
        raise ContractError(
            f"{'over ' if groups.pairs else ''}{count} groups; a calibrator has {MAX_GROUPS} at the most; "
            f"raise groups.min_share{pairs}"
        )
    if twice := [name for name, n in Counter(groups.names).items() if n > 1]:
        raise ContractError(
            f"two groups have the name {twice[0]!r}; rename the predicate, or one of the columns"
        )
    return groups


def with_categories(frame: DataFrame, families: tuple[Family, ...]) -> DataFrame:
    """Add the category of each family, null where the attribute is missing or in no bin.

    Integral categories are ``bigint``, predicates are 0 or 1, all others strings. NaN is a missing attribute.
    What a condition cannot compute is null: a division by zero, a text that is no number beside a number, a
    whole number too large for its type; the row is no member, whatever ``spark.sql.ansi.enabled`` says.

    Raises
    ------
    ContractError
        If an attribute has another type than the categories that were chosen before, or no number where
        one is needed, or a condition does not fit the types of its columns.
    """
    # Spark takes the mode into an expression when it is made.
    with setting(frame.sparkSession, _ANSI, "false"):
        return _with_categories(frame, families)


def _with_categories(frame: DataFrame, families: tuple[Family, ...]) -> DataFrame:
    for family in families:
        _check_condition(frame, family)
    types = {f.name.lower(): f.dataType for f in frame.schema.fields}
    categories = {
        category_name(i): _category(family, types.get(family.column.lower()))
        for i, family in enumerate(families)
    }
    # Predicates are texts that read the attributes by their names: NaN must be gone from the columns.
    read = {name.lower() for family in families if family.where for name in family.columns}
    kinds = {f.name: f.dataType for f in frame.schema.fields if f.name.lower() in read}
    floats = [name for name, kind in kinds.items() if _is_float(kind)]
    kept = {f"__given_{i}": column(name) for i, name in enumerate(floats)}
    as_written = {name: _as_written(column(name), kinds[name]) for name in floats}
    for columns in (kept, as_written, categories, dict(zip(floats, map(column, kept), strict=True))):
        frame = with_columns(frame, columns)
    return frame.drop(*kept)


def _check_condition(frame: DataFrame, family: Family) -> None:
    if family.where is None:
        return
    try:
        kind = frame.select(_condition(family)).schema[0].dataType
    except AnalysisException as error:
        reason = str(error).strip().splitlines()[0]
        raise ContractError(
            f"the condition of group {family.column!r} does not fit its columns ({reason}); correct it"
        ) from error
    if not isinstance(kind, BooleanType):
        raise ContractError(
            f"the condition of group {family.column!r} is {kind.simpleString()}, neither true nor false; "
            "write a comparison"
        )


def _condition(family: Family) -> Column:
    from mcspark.predicates import computed  # noqa: PLC0415  (workers need no parsers)

    return F.expr(computed(str(family.where)))


def unseen_categories(frame: DataFrame, groups: FittedGroups) -> dict[str, int]:
    """Rows whose category was never met when the groups were chosen, by attribute column."""
    names, counts = [], []
    for i, family in enumerate(groups.signed):
        if family.kind != "predicate":
            category = F.col(category_name(i))
            known = category.isin(list(family.seen or family.categories))
            names.append(family.column)
            counts.append(F.count_if(category.isNotNull() & ~known))
    if not counts:
        return {}
    row = frame.agg(*counts).first()
    assert row is not None
    return most_by_column(names, row)


def most_by_column(names: Sequence[str], rows: Iterable[int]) -> dict[str, int]:
    """Counts above 0 by attribute column, from those by family; of several cuts of a column the most."""
    found: dict[str, int] = {}
    for name, n in zip(names, rows, strict=True):
        if n:
            found[name] = max(int(n), found.get(name, 0))
    return found


def _category(family: Family, kind: DataType | None) -> Column:
    if family.kind == "predicate":
        assert family.where is not None
        return F.coalesce(_condition(family).cast("int"), F.lit(0)).cast("long")
    value = _as_written(column(family.column), kind)
    if family.kind == "value":
        whole = isinstance(kind, IntegralType)
        if any(isinstance(c, int) != whole for c in family.categories):
            raise ContractError(
                f"column {family.column!r} is {kind.simpleString() if kind else 'unknown'}, but was "
                f"{'text' if whole else 'whole numbers'} when the groups were chosen; store it with that type"
            )
        return value.cast("long") if whole else _text(family.column, value, kind)
    if isinstance(kind, StringType):
        # Attributes of a CSV arrive as text; what is no number, "nan" among it, is in no bin.
        value = F.nanvl(as_double(family.column, kind), F.lit(None))
    elif not isinstance(kind, NumericType):
        raise ContractError(
            f"groups over column {family.column!r} need numbers for bins or divide_by, "
            f"but its type is {kind.simpleString() if kind else 'unknown'}"
        )
    if family.kind == "divide":
        return _divided(value.cast("double"), float(family.divide_by or 1))
    assert family.bins is not None
    place = sum(((value >= F.lit(edge)).cast("long") for edge in family.bins[1:-1]), F.lit(0).cast("long"))
    return F.when((value >= F.lit(family.bins[0])) & (value < F.lit(family.bins[-1])), place)


def _as_written(value: Column, kind: DataType | None) -> Column:
    """A number as it is written: the shortest decimal that is this number and no other of its type.

    A float of 32 bits that is written 0.7 is no double 0.7; here it becomes one. NaN is null, -0.0 is 0.0.
    """
    if not _is_float(kind):
        return value
    if isinstance(kind, FloatType):
        value = value.cast("string").cast("double")
    return F.nanvl(value, F.lit(None)) + F.lit(0.0)


def _text(name: str, value: Column, kind: DataType | None) -> Column:
    """A category as text; of a decimal the shortest, so that 1.5 is 1.5 at every scale and as a double."""
    plain = value.cast("string")
    if not isinstance(kind, DecimalType) or kind.scale == 0:
        return plain
    again = F.expr(f"try_cast(cast({quote_identifier(name)} as double) as {kind.simpleString()})")
    return F.when(again == value, value.cast("double").cast("string")).otherwise(plain)


def _divided(value: Column, divide_by: float) -> Column:
    """``floor(value / divide_by)`` of the decimals; equal to :func:`mcspark.core.cells.groups.divided`.

    Null where it is no whole number of 64 bits, as of infinity.
    """
    top, bottom = decimal_ratio(divide_by)
    quotient = value / F.lit(divide_by)
    guess = F.floor(quotient).cast("double")
    low, high = (step * F.lit(top) / F.lit(bottom) for step in (guess, guess + 1))
    exact = guess - (value < low).cast("int") + (value >= high).cast("int")
    found = F.when(F.abs(quotient) < F.lit(LARGEST_EXACT), exact).otherwise(guess)
    return F.when(F.abs(quotient) < F.lit(LARGEST_WHOLE), found.cast("long"))


def _is_float(kind: DataType | None) -> bool:
    return isinstance(kind, FloatType | DoubleType)
