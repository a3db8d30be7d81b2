"""Files that are almost as this program writes them: bytes changed, or values changed inside the JSON."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import strategies as st

ODD_VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.integers(), st.floats(), st.text(max_size=8),
    st.sampled_from([
        2**31, 2**63, 10**400, -1, 0, 1e308, 5e-324, "", "../x", "__reduce__", "reflect('java.lang.Runtime')",
        "<script>", [], {}, [[]], [None], {"": None},
    ]),
    st.lists(st.integers(-2, 5) | st.floats(-2, 2), max_size=4),
)  # fmt: skip


@st.composite
def changed_bytes(draw: st.DrawFn, whole: bytes) -> bytes:
    """A stretch cut out, repeated, or replaced by something else."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 12)))
        data[start:end] = draw(
            st.sampled_from(
                [b"", b"]", b"}", b",", b"-", b"9", b'"', b"\x00", b"\xff", b"null", b"1e999", b"NaN"]
            )
            | st.binary(max_size=6)
            | st.just(bytes(data[start:end]) * 2)
        )
    return bytes(data) if draw(st.booleans()) else bytes(data[: draw(st.integers(0, len(data)))])


def places(plain: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where something stands in a JSON value."""
    found = [above] if above else []
    if isinstance(plain, dict):
        for key, value in plain.items():
            found += places(value, (*above, key))
    elif isinstance(plain, list):
        for i, value in enumerate(plain[:6]):
            found += places(value, (*above, i))
    return found


@st.composite
def changed_values(draw: st.DrawFn, whole: Any) -> Any:
    """The JSON value with up to three places changed, removed, added to or exchanged."""
    plain = copy.deepcopy(whole)
    for _ in range(draw(st.integers(1, 3))):
        known = places(plain)
        if not known:
            break
        where = draw(st.sampled_from(known))
        holder = plain
        for step in where[:-1]:
            holder = holder[step]
        value, kind = holder[where[-1]], draw(st.integers(0, 4))
        if kind == 0:
            del holder[where[-1]]
        elif kind == 1 and isinstance(holder, dict):
            holder[draw(st.text(max_size=6))] = copy.deepcopy(draw(ODD_VALUES))
        elif kind == 2:
            holder[where[-1]] = value * 2 if isinstance(value, str | list) else [value]
        elif kind == 3 and isinstance(value, int | float):
            factor = draw(st.sampled_from([1, 10**12, 10**300]))  # an integer may be too large for a float
            holder[where[-1]] = -value * (factor if isinstance(value, int) else float(factor))
        else:
            holder[where[-1]] = copy.deepcopy(draw(ODD_VALUES))
    return plain


def texts(whole: str) -> st.SearchStrategy[str]:
    """Damaged and forged texts of a file, and texts that have nothing to do with it."""
    raw = whole.encode()
    plain = json.loads(whole)
    return st.one_of(
        changed_bytes(raw).map(lambda data: data.decode("utf-8", "replace")),
        changed_values(plain).map(json.dumps),
        st.sampled_from(
            ["", "null", "[]", "{}", "0", '"x"', "[" * 5000, '{"a":' * 5000, "\ud800", "9" * 5000]
        ),
        st.binary(max_size=60).map(lambda data: data.decode("utf-8", "replace")),
    )
