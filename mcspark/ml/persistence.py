"""A fitted calibrator as files: one versioned JSON, the LightGBM texts, the additive form as tables.

``model.json`` is all that scoring reads. Files are not trusted: sizes, schema and every number are checked.
"""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Generic, Protocol, TypeVar

import pandas as pd
import pyarrow as pa
import structlog
from pyspark.sql import SparkSession

from mcspark.core.calibrator import SignatureCalibrator
from mcspark.core.cells.groups import FittedGroups
from mcspark.core.model.stages import Stages
from mcspark.core.saved import (
    COLUMNS,
    MAX_BYTES,
    SCHEMA_VERSION,
    SavedModel,
    digest,
    saved_model,
    segment_file,
    with_parts,
)
from mcspark.core.segments import SegmentTable
from mcspark.errors import ConfigurationError, ContractError
from mcspark.ml.fit_summary import FitSummary
from mcspark.runtime.files.driver_tables import write_parquet
from mcspark.runtime.files.files import Files, beside, leaf
from mcspark.runtime.files.untrusted import read_json

log = structlog.get_logger(__name__)

_SCHEMAS = {
    "curves": {
        "group": pa.int64(), "bin": pa.int64(), "lower": pa.float64(), "upper": pa.float64(),
        "value": pa.float64(), "stage": pa.int64(), "link": pa.string(), "group_name": pa.string(),
    },
    "pairs": {"first": pa.int64(), "second": pa.int64(), "value": pa.float64(), "stage": pa.int64()},
}  # fmt: skip
"""Of the tables: a calibrator that no group changes has nulls alone for the names of its groups."""


class Savable(Protocol):
    """What a fitted calibrator has that is saved, and how it is made again."""

    fitted: FittedGroups
    calibrator: SignatureCalibrator
    method: str
    texts: tuple[str, ...]
    summary: FitSummary | None
    table: SegmentTable | None
    parts: tuple[Any, ...]

    def __init__(
        self, fitted: FittedGroups, calibrator: SignatureCalibrator, method: str = "trees"
    ) -> None: ...

    @property
    def stages(self) -> Stages | None:
        """The stages of a calibrator made of trees."""

    def getOrDefault(self, param: str) -> Any:
        """Value of a Spark ML parameter."""

    def _set(self, **columns: str) -> object: ...


M = TypeVar("M", bound=Savable)


class CalibratorWriter:
    """Writes a model to a folder, in the manner of Spark ML's writers."""

    def __init__(self, model: Savable) -> None:
        self._model = model
        self._overwrite = False

    def overwrite(self) -> CalibratorWriter:
        """Replace what is there."""
        self._overwrite = True
        return self

    def save(self, path: str) -> None:
        """Write the folder: aside first, so that an old model stands until the new one is whole.

        Should the process be killed between the two renames, the next job that reads the model finds the old
        one aside, and puts it back.

        Raises
        ------
        ConfigurationError
            If something is there already and :meth:`overwrite` was not called.
        """
        spark = SparkSession.active()
        files = Files(spark, path)
        place = files.qualify(path)
        if files.exists(place) and not self._overwrite:
            raise ConfigurationError(f"{path} exists; call overwrite() to replace it")
        staging, aside = (beside(place, f".{leaf(place)}.{what}-saved") for what in ("staging", "old"))
        files.delete(staging)
        self.write_to(staging)
        if files.exists(place):
            files.delete(aside)
            files.move(place, aside)
        files.move(staging, place)
        files.delete(aside)

    def write_to(self, folder: str) -> None:
        """Write the files of the model to a new folder, as they stand; for callers that publish it."""
        files = Files(SparkSession.active(), folder)
        digests = []
        for number, part in enumerate(self._model.parts):
            digests.append(_write_texts(files, f"{folder}/{segment_file(number)}", part))
        if self._model.stages is not None:
            _write_tables(files, folder, _tables(self._model.stages))
        if self._model.parts:
            parts = [_tables(part.stages) for part in self._model.parts]
            _write_tables(files, f"{folder}/segments", _by_segment(parts))
        _write_texts(files, folder, self._model, tuple(digests))


def _write_texts(files: Files, folder: str, model: Savable, digests: tuple[str, ...] = ()) -> str:
    """Write one calibrator without its tables; returns the checksum of its file."""
    for i, text in enumerate(model.texts):
        files.write_text(f"{folder}/trees_{i}.txt", text)
    plain = _plain(model, digests)
    files.write_text(f"{folder}/model.json", _checked_text(type(model), plain))
    return str(plain["sha256"])


def _write_tables(files: Files, folder: str, tables: dict[str, pd.DataFrame]) -> None:
    for name, table in tables.items():
        kinds = {**_SCHEMAS[name], **({"segment": pa.int64()} if "segment" in table else {})}
        found = pa.Table.from_pandas(table, pa.schema(list(kinds.items())), preserve_index=False)
        write_parquet(files, f"{folder}/{name}", found)
        files.write_text(f"{folder}/{name}/_SUCCESS", "")


class CalibratorReader(Generic[M]):
    """Reads a model from a folder, in the manner of Spark ML's readers."""

    def __init__(self, cls: type[M]) -> None:
        self._cls = cls

    def load(self, path: str) -> M:
        """Read the model.

        Raises
        ------
        ContractError
            If there is none, or it is truncated, edited, too large or of another version.
        """
        files = Files(SparkSession.active(), path)

        def read(name: str) -> Any:
            try:
                text = files.read_text(f"{path}/{name}", limit=MAX_BYTES)
            except (OSError, ValueError) as error:
                raise ContractError(
                    f"{path}/{name}: no readable model ({error}); write it again with calibrate"
                ) from error
            return read_json(text)

        try:
            model = _model(self._cls, with_parts(saved_model(read("model.json")), read))
        except ValueError as error:
            raise ContractError(f"{path}/model.json: not a model of this program ({error})") from error
        for number, part in enumerate(model.parts):
            part.texts = _texts(files, f"{path}/{segment_file(number)}", part)
        model.texts = _texts(files, path, model)
        return model


def _texts(files: Files, path: str, model: Savable) -> tuple[str, ...]:
    """The LightGBM texts beside the model, all or none, kept to be saved with it again."""
    count = len(model.stages.stages) if model.stages else 0
    try:
        return tuple(files.read_text(f"{path}/trees_{i}.txt", limit=MAX_BYTES) for i in range(count))
    except (OSError, ValueError) as error:
        log.info("a model without its LightGBM texts", model=path, reason=str(error))
        return ()


def _plain(model: Savable, digests: tuple[str, ...] = ()) -> dict[str, Any]:
    plain = {
        "schema_version": SCHEMA_VERSION,
        "mcspark": own_version(),
        "method": model.method,
        "groups": model.fitted.to_dict(),
        "group_names": list(model.fitted.names),
        "calibrator": model.calibrator.to_dict(),
        "columns": {name: model.getOrDefault(name) for name in COLUMNS},
        "trees": len(model.texts),
        "fit": None if model.summary is None else model.summary.to_dict(),
    }
    if model.fitted.features:
        plain["features"] = model.fitted.features_to_dict()
    if model.table is not None:
        plain["segments"] = {"table": model.table.to_dict(), "sha256": list(digests)}
    return {**plain, "sha256": digest(plain)}


def _checked_text(kind: type[Savable], plain: dict[str, Any]) -> str:
    """The text of ``model.json``, read once as it will be read: what cannot be read is not published.

    Raises
    ------
    ContractError
        If the model is larger than what is read.
    """
    text = json.dumps(plain)
    if len(text) > MAX_BYTES:  # as it is ASCII
        raise ContractError(
            f"the model takes {len(text) / 2**20:.0f} MiB, and {MAX_BYTES // 2**20} are read; use fewer "
            "groups (raise groups.min_share), features of fewer categories, or fewer calibrator.rounds"
        )
    try:
        model_from_text(kind, text)
    except ValueError as error:
        raise ContractError(
            f"the model cannot be read again ({error}); use fewer groups, or another method"
        ) from error
    return text


def model_from_text(cls: type[M], text: str) -> M:
    """Rebuild a model from the text of its ``model.json``; whatever the text is, nothing else is raised.

    Raises
    ------
    ValueError
        If it is not a model as this program writes it.
    """
    return model_from_plain(cls, read_json(text))


def model_from_plain(cls: type[M], plain: Any) -> M:
    """Rebuild a model from its JSON form, checking every part.

    Raises
    ------
    ValueError
        If anything is not as it was written.
    """
    return _model(cls, saved_model(plain))


def _model(cls: type[M], saved: SavedModel) -> M:
    model = cls(saved.groups, saved.calibrator, method=saved.method)
    model._set(**saved.columns)
    model.summary = FitSummary.from_dict(saved.fit, saved.groups.names, saved.calibrator)
    model.table, model.parts = saved.table, tuple(_model(cls, part) for part in saved.parts)
    return model


def _tables(stages: Stages) -> dict[str, pd.DataFrame]:
    """The additive form as two tables, for databases and people."""
    curves, pairs = [], []
    for i, stage in enumerate(stages.stages):
        curve = pd.DataFrame(stage.form.curves_table()).assign(stage=i, link=stage.link)
        curve["group_name"] = [stages.groups[g] if g >= 0 else None for g in curve["group"]]
        pair = pd.DataFrame(stage.form.pairs_table()).assign(stage=i)
        curves.append(curve)
        pairs.append(pair)
    tables = {"curves": curves, "pairs": pairs}
    return {
        name: pd.concat(parts, ignore_index=True) for name, parts in tables.items() if sum(map(len, parts))
    }


def _by_segment(parts: list[dict[str, pd.DataFrame]]) -> dict[str, pd.DataFrame]:
    """The tables of all segments, by their numbers."""
    found = {
        name: [tables[name].assign(segment=number) for number, tables in enumerate(parts) if name in tables]
        for name in _SCHEMAS
    }
    return {name: pd.concat(some, ignore_index=True) for name, some in found.items() if some}


def own_version() -> str:
    """Version of this program."""
    try:
        return version("mcspark")
    except PackageNotFoundError:
        return "unknown"
