"""The folder of kept cells: one folder a partition, written aside and renamed, checked whenever it is read.

``<path>/ds=2026-11-26/`` holds ``cells.json`` (:mod:`mcspark.data.kept_form`), a folder ``cells`` of Parquet
with blocks of :mod:`mcspark.runtime.tasks.blocks`, and the mark of this program. What is torn, forged, of
another version or made from other inputs is reported and computed again; nothing of anybody else's is
removed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import structlog
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mcspark.data.kept_form import MAX_BYTES, KeptForm, parse_kept
from mcspark.data.leases.lease import SHARED_WAIT, Lease
from mcspark.data.leases.ownership import refuse_others_folder
from mcspark.data.publishing.sink import Publication
from mcspark.engine.errors import SPARK_ERRORS
from mcspark.engine.literal import literal_reader
from mcspark.errors import McsparkError, TransientError
from mcspark.runtime.files.files import Files, java_reason
from mcspark.runtime.tasks.blocks import SCHEMA

log = structlog.get_logger(__name__)

KIND = "cells"
"""What the folder of a partition is, as its mark says."""

_FORM, _CELLS = "cells.json", "cells"


@dataclass(frozen=True)
class Wanted:
    """The cells of a partition as a run needs them.

    Parameters
    ----------
    partition : str
        Such as ``ds=2026-11-26``.
    configuration : str
        Hash of what of the configuration decides them.
    inputs : mapping of str to (str or None)
        State of each input now; None where it is unknown.
    """

    partition: str
    configuration: str
    inputs: Mapping[str, str | None]


@dataclass(frozen=True)
class KeptStore:
    """Kept cells below one folder.

    Parameters
    ----------
    spark : SparkSession
    path : str
    run_id : str
    """

    spark: SparkSession
    path: str
    run_id: str

    def place(self, partition: str) -> str:
        """The folder of a partition."""
        return f"{Files(self.spark, self.path).qualify(self.path)}/{partition}"

    def blocks(self, form: KeptForm) -> DataFrame:
        """The kept cells of a partition."""
        return _blocks(self.spark, f"{self.place(form.partition)}/{_CELLS}")

    def find(self, wanted: Sequence[Wanted]) -> dict[str, KeptForm | str]:
        """By partition, what is kept of it as it is needed; otherwise why it must be computed."""
        reported: dict[str, KeptForm | str] = {one.partition: self._told(one) for one in wanted}
        forms = [form for form in reported.values() if isinstance(form, KeptForm)]
        content = self._content(forms)
        for form in forms:
            found = content[form.partition]
            if found != form.content:
                reported[form.partition] = f"its cells were changed after they were written ({found})"
        return reported

    def _told(self, wanted: Wanted) -> KeptForm | str:
        try:
            form = self._form(wanted.partition)
        except FileNotFoundError:
            return "there are no kept cells"
        except (OSError, ValueError, *SPARK_ERRORS) as error:
            return f"its kept cells cannot be read ({error})"
        return _difference(form, wanted) or form

    def _form(self, partition: str) -> KeptForm:
        place = self.place(partition)
        files = Files(self.spark, place)
        form = parse_kept(files.read_text(f"{place}/{_FORM}", limit=MAX_BYTES))
        sizes = {name: size for name, size, _ in files.stamps(f"{place}/{_CELLS}") if name in form.files}
        if sizes != form.files:
            raise ValueError("torn: files are missing, or of another size")
        if form.partition != partition:
            raise ValueError(f"they are those of {form.partition}")
        return form

    def refuse_replaced(self, forms: Sequence[KeptForm]) -> None:
        """Refuse what was read of partitions that another run has replaced since they were found.

        Their cells would have been taken for others: in the bins, and with the sums, of those before.

        Raises
        ------
        TransientError
        """
        for form in forms:
            try:
                same = self._form(form.partition).to_text() == form.to_text()
            except (OSError, ValueError, *SPARK_ERRORS):
                same = False
            if not same:
                raise TransientError(
                    f"{self.place(form.partition)}: another run has replaced these kept cells while they "
                    "were read; nothing was published; run again"
                )

    def _content(self, forms: Sequence[KeptForm]) -> dict[str, str]:
        """Digest of the cells of each partition, or words on why they cannot be read; one job if they can."""
        try:
            return content_of({form.partition: self.blocks(form) for form in forms})
        except SPARK_ERRORS as error:
            if len(forms) == 1:
                return {forms[0].partition: java_reason(error)}
            return {name: found for form in forms for name, found in self._content([form]).items()}

    def keep(self, partition: str, blocks: DataFrame, form: Callable[[DataFrame, str], KeptForm]) -> KeptForm:
        """Write the cells of a partition, in the place of what is kept of it.

        Parameters
        ----------
        partition : str
        blocks : DataFrame
        form : callable
            Makes the form, but for its files, from the blocks as they were read back and their digest.

        Raises
        ------
        ConfigurationError
            If anything is there that this program has not made.
        OutputHeldError
            If another run does not finish replacing it.
        """
        place = self.place(partition)
        files = Files(self.spark, place)
        made: list[KeptForm] = []

        def write(folder: str) -> None:
            blocks.write.parquet(f"{folder}/{_CELLS}")
            written = _blocks(self.spark, f"{folder}/{_CELLS}")
            found = form(written, content_of({partition: written})[partition])
            stamps = files.stamps(f"{folder}/{_CELLS}")
            sizes = {name: size for name, size, _ in stamps if name.endswith(".parquet") and name[0] != "."}
            found = KeptForm(**{**vars(found), "files": sizes})
            files.write_text(f"{folder}/{_FORM}", found.to_text())
            made.append(found)

        with (
            Lease(self.spark, place, self.run_id, wait=SHARED_WAIT) as lease,
            Publication(self.spark, self.run_id, lease) as publication,
        ):
            publication.stage_folder(place, write, kind=KIND)
            publication.publish()
        return made[0]

    def prune(self, column: str, keep: int, needed: Collection[str]) -> list[str]:
        """Remove the oldest partitions beyond so many; returns their names.

        Parameters
        ----------
        column : str
            Partition column.
        keep : int
        needed : collection of str
            Partitions that stay in any case.
        """
        files = Files(self.spark, self.path)
        root = files.qualify(self.path)
        there = [
            n for n in files.names(root) if n.startswith(f"{column}=") and files.exists(f"{root}/{n}/{_FORM}")
        ]
        spare = sorted((name for name in there if name not in needed), reverse=True)
        room = max(keep - (len(there) - len(spare)), 0)
        return [name for name in spare[room:] if self._removed(files, f"{root}/{name}")]

    def _removed(self, files: Files, place: str) -> bool:
        try:
            with Lease(self.spark, place, self.run_id):
                refuse_others_folder(files, place, KIND, [place])
                files.delete(place)
        except McsparkError as error:
            log.warning("kept cells are not removed", folder=place, reason=str(error))
            return False
        return True


def _difference(form: KeptForm, wanted: Wanted) -> str | None:
    """Why kept cells are not those that are wanted; None where they are."""
    if form.configuration != wanted.configuration:
        return "its kept cells were made with other settings"
    if unknown := [name for name, state in wanted.inputs.items() if state is None]:
        return f"nobody can tell whether {', '.join(unknown)} has changed"
    places = form.inputs.keys() | wanted.inputs.keys()
    changed = sorted(name for name in places if wanted.inputs.get(name) != form.inputs.get(name))
    return f"{', '.join(changed)} has changed" if changed else None


def content_of(partitions: Mapping[str, DataFrame]) -> dict[str, str]:
    """Digest of the blocks of each partition, in whatever order they are read; one job."""
    if not partitions:
        return {}
    hashed = [
        blocks.select(F.lit(name).alias("part"), "rows", F.xxhash64("block", "rows").alias("hash"))
        for name, blocks in partitions.items()
    ]
    every = hashed[0]
    for one in hashed[1:]:
        every = every.union(one)
    rows = every.groupBy("part").agg(F.count("hash"), F.sum("rows"), F.bit_xor("hash")).collect()
    found = {row[0]: f"{row[1]}-{row[2]}-{row[3] & (2**64 - 1):016x}" for row in rows}
    return {name: found.get(name, "empty") for name in partitions}


def _blocks(spark: SparkSession, folder: str) -> DataFrame:
    return literal_reader(spark).schema(SCHEMA).parquet(folder)
