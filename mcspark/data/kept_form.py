"""Description of the kept cells of a partition, in a file that may be torn or forged; read without Spark."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from mcspark.core.cells.levels import ScoreBins
from mcspark.core.saved import digest, value_errors
from mcspark.identifiers import check_run_id
from mcspark.runtime.files.untrusted import read_json

SCHEMA_VERSION = 1

MAX_BYTES = 64 * 1024 * 1024
"""No such file is larger."""

_KINDS = re.compile(r"(__family_\d+ (bigint|string)(, (?=_)|\Z))*")
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*\.parquet")


@dataclass(frozen=True)
class KeptForm:
    """Description of the kept cells of a partition.

    Parameters
    ----------
    partition : str
        Such as ``ds=2026-11-26``.
    run_id : str
        The run that has made them.
    configuration : str
        Hash of what of the configuration decides them.
    inputs : mapping of str to str
        State of each input before it was read.
    bins : ScoreBins
    weight_unit, weight_sq_unit : float
        Powers of two by which the sums were scaled.
    kinds : str
        Schema of the category columns.
    rows, cells : int
    weight, weight_sq : float
        Sums over the rows.
    learning : tuple of int, length n_bins
        Weight, in the unit, of the rows in each bin that are not test rows.
    files : mapping of str to int
        Bytes of each file.
    content : str
        Digest of the cells, see :func:`mcspark.data.kept.content_of`.
    """

    partition: str
    run_id: str
    configuration: str
    inputs: Mapping[str, str]
    bins: ScoreBins
    weight_unit: float
    weight_sq_unit: float
    kinds: str
    rows: int
    cells: int
    weight: float
    weight_sq: float
    learning: tuple[int, ...]
    files: Mapping[str, int]
    content: str

    def to_text(self) -> str:
        """JSON with a checksum of itself."""
        plain = {
            **asdict(self),
            "bins": self.bins.to_dict(),
            "learning": list(self.learning),
            "schema_version": SCHEMA_VERSION,
        }
        return json.dumps({**plain, "sha256": digest(plain)}, sort_keys=True) + "\n"


def parse_kept(text: str) -> KeptForm:
    """The form in a text; whatever the text is, nothing but ``ValueError`` is raised.

    Raises
    ------
    ValueError
        If it is not as this program writes it.
    """
    with value_errors():
        return _parsed(read_json(text))


def _parsed(plain: Any) -> KeptForm:
    if not isinstance(plain, dict):
        raise ValueError("it is no JSON object")
    found = plain.get("schema_version")
    if type(found) is not int or found != SCHEMA_VERSION:
        raise ValueError(f"its schema version is {found!r}; this program reads version {SCHEMA_VERSION}")
    names = set(KeptForm.__dataclass_fields__) | {"schema_version", "sha256"}
    if set(plain) != names:
        raise ValueError(f"its keys differ by {sorted(set(plain) ^ names)}")
    if plain["sha256"] != digest(plain):
        raise ValueError("it was changed after it was written")
    for name in ("partition", "configuration", "kinds", "content"):
        if not isinstance(plain[name], str):
            raise ValueError(f"its {name} is no text")
    if not _KINDS.fullmatch(plain["kinds"]):
        raise ValueError("its category columns have other types")
    bins = ScoreBins.from_dict(plain["bins"])
    learning = tuple(_whole(weight) for weight in plain["learning"])
    if len(learning) != bins.n_bins:
        raise ValueError(f"it has {bins.n_bins} score bins and {len(learning)} weights of them")
    files = {str(name): _whole(size) for name, size in plain["files"].items()}
    if not files or not all(_FILE.fullmatch(name) for name in files):
        raise ValueError("its files have other names")
    return KeptForm(
        partition=plain["partition"],
        run_id=check_run_id(plain["run_id"]),
        configuration=plain["configuration"],
        inputs={str(place): str(state) for place, state in plain["inputs"].items()},
        bins=bins,
        weight_unit=_positive(plain["weight_unit"]),
        weight_sq_unit=_positive(plain["weight_sq_unit"]),
        kinds=plain["kinds"],
        rows=_whole(plain["rows"]),
        cells=_whole(plain["cells"]),
        weight=_positive(plain["weight"]),
        weight_sq=_positive(plain["weight_sq"]),
        learning=learning,
        files=files,
        content=plain["content"],
    )


def _whole(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} stands where a count does")
    return value


def _positive(value: Any) -> float:
    if type(value) not in (int, float) or not value > 0:
        raise ValueError(f"{value!r} stands where a sum of weights does")
    return float(value)
