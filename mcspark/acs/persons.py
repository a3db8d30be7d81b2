"""Reads PUMS person files, CSV and Parquet alike, under canonical names and types."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession, types
from pyspark.sql import functions as sf

from mcspark.acs.columns import COLUMNS, KEY, Kind, PersonColumn, disagreements, locate
from mcspark.engine.errors import SPARK_ERRORS
from mcspark.engine.literal import literal_reader
from mcspark.errors import ConfigurationError, ContractError

_FAULT = "__fault"
_INTEGER_TEXT = r"^\s*[+-]?\d{1,18}\s*$"


@dataclass(frozen=True)
class Persons:
    """Person records of one or several files.

    Parameters
    ----------
    frame : DataFrame
        Canonical columns; ``code`` columns are strings, ``integer`` columns bigint.
    rows : int
        Number of records.
    absent : dict of str to str
        Wanted columns that are not in ``frame``, each with the reason.
    """

    frame: DataFrame
    rows: int
    absent: Mapping[str, str]


def file_format(path: str) -> str:
    """``csv`` or ``parquet``, by the name of the file; other names are a :class:`ConfigurationError`."""
    name = path.rstrip("/").lower()
    if name.endswith((".csv", ".csv.gz")):
        return "csv"
    if name.endswith(".parquet"):
        return "parquet"
    hint = "; unpack it first" if name.endswith(".zip") else ""
    raise ConfigurationError(f"{path}: a person file must end in .csv, .csv.gz or .parquet{hint}")


def check_inputs(paths: Sequence[str]) -> None:
    """Refuse names that cannot be read, without Spark; files in remote stores are found out by Spark.

    Raises
    ------
    ConfigurationError
        No file is named, a local file does not exist, is named twice, or has an unknown format.
    """
    if not paths:
        raise ConfigurationError("no input file is named: give at least one --input FILE")
    for path in paths:
        file_format(path)
    missing = [p for p in paths if "://" not in p and not Path(p).exists()]
    if missing:
        raise ConfigurationError(
            f"{len(missing)} of {len(paths)} input files do not exist, the first is {missing[0]}"
        )
    twice = [p for p in dict.fromkeys(paths) if list(paths).count(p) > 1]
    if twice:
        raise ConfigurationError(f"{twice[0]} is named twice: name every input file once")


def read_persons(
    spark: SparkSession, paths: Sequence[str], required: Sequence[str], wanted: Sequence[str] = ()
) -> Persons:
    """Read, name and type the person records of some files, and check them.

    Parameters
    ----------
    spark : SparkSession
    paths : sequence of str
        Census CSV and Parquet files, of one or several states and years.
    required, wanted : sequence of str
        Canonical columns that every file must have, and those taken only if every file has them.

    Raises
    ------
    ConfigurationError
        A file does not exist or has an unknown format.
    ContractError
        A file is not readable, lacks a required column, holds one in a type that cannot be trusted, or
        holds a value that is no integer; a key is missing or occurs twice.
    """
    check_inputs(paths)
    schemas = {path: _schema(spark, path) for path in paths}
    located = {path: locate(schema.names) for path, schema in schemas.items()}
    _refuse_missing(located, required)
    reasons = disagreements(list(located.values()))
    absent = {name: reasons[name] for name in dict.fromkeys((*required, *wanted)) if name in reasons}
    mixed = [name for name in required if name in absent]
    if mixed:
        raise ContractError(f"column {mixed[0]} cannot be used: {absent[mixed[0]]}; prepare the years apart")
    names = [name for name in dict.fromkeys((*KEY, *required, *wanted)) if name not in absent]

    alike: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path, schema in schemas.items():
        alike[file_format(path), schema.json()].append(path)
    frames = [
        _typed(_read(spark, kind, files), names, located[files[0]], files[0])
        for (kind, _), files in alike.items()
    ]
    frame = reduce(DataFrame.unionByName, frames)
    rows = _refuse_faults(frame)
    frame = frame.drop(_FAULT)
    _refuse_duplicates(frame)
    return Persons(frame, rows, absent)


def _read(spark: SparkSession, kind: str, paths: Sequence[str]) -> DataFrame:
    if kind == "csv":
        return literal_reader(spark).csv(list(paths), header=True, inferSchema=False)
    return literal_reader(spark).parquet(*paths)


def _schema(spark: SparkSession, path: str) -> types.StructType:
    try:
        return _read(spark, file_format(path), [path]).schema
    except AnalysisException as error:
        first = str(error).splitlines()[0]
        if "PATH_NOT_FOUND" in first:
            raise ConfigurationError(f"{path} does not exist") from error
        raise ContractError(f"{path} cannot be read as {file_format(path)}: {first}") from error
    except SPARK_ERRORS as error:
        raise ContractError(f"{path} cannot be read as {file_format(path)}: it may be cut short") from error


def _refuse_missing(located: Mapping[str, Mapping[str, str]], required: Sequence[str]) -> None:
    for path, found in located.items():
        missing = [name for name in required if name not in found]
        if missing:
            spelled = ", ".join(COLUMNS[name].describe() for name in missing)
            raise ContractError(
                f"{path} lacks {len(missing)} of {len(required)} required columns: {spelled}; "
                "give a person file of the ACS public use sample with them"
            )


def _typed(frame: DataFrame, names: Sequence[str], found: Mapping[str, str], path: str) -> DataFrame:
    values: list[Column] = []
    faults: list[Column] = []
    for name in names:
        raw = sf.col(f"`{found[name]}`")
        source = frame.schema[found[name]].dataType
        value, bad = _cast(raw, source, COLUMNS[name], path)
        values.append(value.alias(name))
        if bad is not None:
            text = sf.concat(sf.lit(f"{found[name]} holds '"), raw.cast("string"), sf.lit("'"))
            faults.append(sf.when(bad, text))
    fault = sf.coalesce(*faults) if faults else sf.lit(None).cast("string")
    where = sf.concat(fault, sf.lit(" in "), sf.input_file_name())
    return frame.select(*values, where.alias(_FAULT))


def _cast(
    raw: Column, source: types.DataType, column: PersonColumn, path: str
) -> tuple[Column, Column | None]:
    """Typed value, and the condition under which the raw value is no value of the type."""
    if column.kind is Kind.code:
        if isinstance(source, types.StringType):
            return raw, None
        raise ContractError(
            f"{path}: column {column.name} is {source.simpleString()} and must be string, "
            "or its leading zeros are lost; write it as a string"
        )
    if isinstance(source, types.IntegralType):
        return raw.cast("bigint"), None
    if isinstance(source, types.StringType):
        whole = raw.rlike(_INTEGER_TEXT)
        return sf.when(whole, raw.cast("bigint")), raw.isNotNull() & ~whole
    if isinstance(source, types.FractionalType):
        number = sf.nanvl(raw.cast("double"), sf.lit(None).cast("double"))
        whole = (number == sf.floor(number)) & (sf.abs(number) < 2.0**53)
        return sf.when(whole, number.cast("bigint")), number.isNotNull() & ~whole
    raise ContractError(f"{path}: column {column.name} is {source.simpleString()} and must be an integer")


def _refuse_faults(frame: DataFrame) -> int:
    keyless = reduce(or_, (sf.col(name).isNull() for name in KEY))
    seen = frame.agg(
        sf.count(sf.lit(1)).alias("rows"),
        sf.count(_FAULT).alias("faults"),
        sf.min(_FAULT).alias("example"),
        sf.count(sf.when(keyless, 1)).alias("keyless"),
    ).first()
    assert seen is not None  # an aggregate without keys has one row
    if seen["faults"]:
        raise ContractError(
            f"{seen['faults']} of {seen['rows']} rows hold a value that is no integer, such as: "
            f"{seen['example']}; mend the file or read it from the Census Bureau again"
        )
    if seen["keyless"]:
        raise ContractError(f"{seen['keyless']} of {seen['rows']} rows have no {' or no '.join(KEY)}")
    return int(seen["rows"])


def _refuse_duplicates(frame: DataFrame) -> None:
    twice = frame.groupBy(*KEY).count().where("count > 1").orderBy(*KEY).limit(5).collect()
    if twice:
        keys = ", ".join(f"({row[KEY[0]]}, {row[KEY[1]]})" for row in twice)
        raise ContractError(f"the key {KEY} occurs more than once, first for {keys}; name every file once")
