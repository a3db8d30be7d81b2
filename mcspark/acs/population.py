"""A synthetic ACS-like population with known truth, defined once for NumPy and for Spark.

Every random number is a hash of (person, stream, seed), so a person is the same wherever and in whatever
order it is made. What the score gets wrong is an effect of groups and of pairs of groups on the logit
scale, the same in every population: the seed draws people, not effects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Values: TypeAlias = Any
"""One value a person: a NumPy array, or a Spark ``Column``."""

LabelKind = Literal["binary", "real"]

PERSONS_PER_HOUSEHOLD = 3
SERIAL_PREFIX = "2024HU"
SERIAL_DIGITS = 9
PUMA_DIGITS = 5

# Shares per mille, as among employed New Yorkers of 2024.
_RACE = {1: 630, 2: 95, 3: 4, 5: 3, 6: 110, 7: 1, 8: 74, 9: 83}
_SEX = {1: 500, 2: 500}
_AGE = {(17, 18): 8, (18, 25): 120, (25, 35): 206, (35, 45): 199, (45, 65): 367, (65, 85): 98, (85, 95): 2}
_SCHOOLING = {(1, 16): 76, (16, 18): 210, (18, 20): 165, (20, 21): 93, (21, 22): 254, (22, 25): 202}
_OCCUPATION = {
    47: 58, 23: 51, 36: 45, 4: 36, 42: 31, 32: 31, 40: 29, 91: 29, 0: 26, 10: 25, 96: 24, 7: 23, 20: 22,
    1: 22, 62: 21, 8: 20, 25: 19, 41: 18, 21: 17, 57: 17, 48: 17, 2: 16, 52: 15, 51: 15, 46: 15, 58: 14,
    30: 14, 3: 13, 39: 12,
    # The rest are below the share of one per cent that makes a group.
    **dict.fromkeys((22, 26, 27, 28, 38, 45, 49, 50, 54, 55, 59, 63, 72, 73, 77), 8),
    **dict.fromkeys((5, 6, 9, 11, 12, 13, 14, 15, 18, 31, 33, 34, 35, 37, 53, 56, 64, 78, 87, 89), 7),
    **dict.fromkeys((17, 19, 24, 29, 43), 9),
}  # fmt: skip
_CLASS_OF_WORKER = {1: 640, 2: 110, 3: 90, 4: 50, 5: 30, 6: 55, 7: 25}
_MARITAL = {1: 470, 2: 20, 3: 90, 4: 20, 5: 400}

_AGE_EDGES = (18, 25, 35, 45, 65, 85)
_SCHOOLING_EDGES = (16, 18, 20, 21, 22)

# Streams of random numbers: of the person, and of the effects.
_STREAMS = (
    "RAC1P", "SEX", "AGEP", "age", "SCHL", "schooling", "OCCP", "occupation", "COW", "MAR", "WKHP", "PUMA",
    "PWGTP", "latent", "label",
)  # fmt: skip
_PERSON = {name: place for place, name in enumerate(_STREAMS)}
_EFFECTS_SEED = 10
_STEEPNESS = 1.0
_NOISE = 0.8
"""A real label strays this far towards the nearer end of [0, 1]."""

_MISTAKES: tuple[tuple[tuple[str, ...], float], ...] = (
    (("race",), 0.8),
    (("sex",), 0.5),
    (("age",), 1.0),
    (("schooling",), 1.0),
    (("occupation",), 1.2),
    (("sex", "occupation"), 1.8),
    (("race", "schooling"), 1.2),
    (("age", "schooling"), 1.2),
)
"""Attributes, one or a pair, and how far (in logits) the score may be off for a value of theirs."""


class Backend(Protocol):
    """The few operations in which NumPy and Spark differ; arithmetic is the operators' own."""

    def constant(self, value: float) -> Values:
        """The same value for every person."""
        ...

    def uniform(self, seed: int, stream: int, *values: Values) -> Values:
        """Doubles in [0, 1): a hash of integer ``values``, which must not be null."""
        ...

    def look_up(self, place: Values, table: Sequence[int]) -> Values:
        """Entry of ``table`` at each integer place."""
        ...

    def floor(self, value: Values) -> Values:
        """Largest integer that is not above ``value``."""
        ...

    def integer(self, condition: Values) -> Values:
        """1 where true, 0 where false."""
        ...

    def log(self, value: Values) -> Values:
        """Natural logarithm."""
        ...

    def exp(self, value: Values) -> Values:
        """Exponential."""
        ...

    def least(self, one: Values, other: Values) -> Values:
        """The smaller of the two."""
        ...


def attributes(ops: Backend, person: Values, seed: int) -> dict[str, Values]:
    """Integer attributes of each person: ``SPORDER RAC1P SEX AGEP SCHL OCCP COW MAR WKHP PWGTP``, ``PUMA``.

    Parameters
    ----------
    ops : Backend
    person : Values
        Number of the person, from 0; alone decides everything about it.
    seed : int
        Draws the population.
    """

    def draw(name: str) -> Values:
        return ops.uniform(seed, _PERSON[name], person)

    def category(name: str, shares: Mapping[int, int]) -> Values:
        return ops.look_up(ops.floor(draw(name) * 1000), _per_mille(shares))

    def within(name: str, inner: str, shares: Mapping[tuple[int, int], int]) -> Values:
        low = category(name, {low: share for (low, _), share in shares.items()})
        width = ops.look_up(low, _by_code({low: high - low for low, high in shares}))
        return low + ops.floor(draw(inner) * width)

    return {
        "SPORDER": person % PERSONS_PER_HOUSEHOLD + 1,
        "RAC1P": category("RAC1P", _RACE),
        "SEX": category("SEX", _SEX),
        "AGEP": within("AGEP", "age", _AGE),
        "SCHL": within("SCHL", "schooling", _SCHOOLING),
        "OCCP": category("OCCP", _OCCUPATION) * 100 + ops.floor(draw("occupation") * 10) * 10,
        "COW": category("COW", _CLASS_OF_WORKER),
        "MAR": category("MAR", _MARITAL),
        "WKHP": 5 + ops.floor(draw("WKHP") * 56),
        "PUMA": 100 + ops.floor(draw("PUMA") * 140),
        # Skewed as real person weights are: median near 73, a tenth of them 17 or less.
        "PWGTP": 1 + ops.floor(ops.exp(3.6 * draw("PWGTP")) * 12),
    }


def scores(ops: Backend, person: Values, traits: Mapping[str, Values], seed: int) -> dict[str, Values]:
    """True probability ``truth`` and base ``score``, doubles in (0, 1), from the attributes.

    ``logit(score) - logit(truth)`` depends on the groups alone, so a correction on the logit scale with
    single groups and pairs of groups can be exact.
    """
    places = {
        "race": traits["RAC1P"],
        "sex": traits["SEX"],
        "age": _band(ops, traits["AGEP"], _AGE_EDGES),
        "schooling": _band(ops, traits["SCHL"], _SCHOOLING_EDGES),
        "occupation": ops.floor(traits["OCCP"] / 100),
    }
    # Within [0.005, 0.995], so that no logit is out of bounds.
    latent = ops.uniform(seed, _PERSON["latent"], person) * 0.99 + 0.005
    logit = ops.log(latent / (1.0 - latent)) * _STEEPNESS + (traits["SCHL"] - 19.0) * 0.15 - 0.2
    mistake = ops.constant(0.0)
    for stream, (names, size) in enumerate(_MISTAKES):
        effect = ops.uniform(_EFFECTS_SEED, stream, *(places[name] for name in names))
        mistake = mistake + (effect * 2.0 - 1.0) * size
    return {
        "truth": 1.0 / (ops.exp(-logit) + 1.0),
        "score": 1.0 / (ops.exp(-(logit + mistake)) + 1.0),
    }


def label(ops: Backend, person: Values, truth: Values, seed: int, kind: LabelKind) -> Values:
    """Label whose expectation is the truth: 0 or 1, or a double in [0, 1] spread evenly around the truth.

    Parameters
    ----------
    truth : Values
        The double that :func:`scores` made.
    """
    draw = ops.uniform(seed, _PERSON["label"], person)
    if kind == "binary":
        return ops.integer(draw < truth) * 1.0
    return truth + (draw * 2.0 - 1.0) * _NOISE * ops.least(truth, 1.0 - truth)


def _per_mille(shares: Mapping[int, int]) -> list[int]:
    return [code for code, share in shares.items() for _ in range(share)]


def _by_code(values: Mapping[int, int]) -> list[int]:
    return [values.get(code, 0) for code in range(max(values) + 1)]


def _band(ops: Backend, value: Values, edges: Sequence[int]) -> Values:
    band = ops.integer(value >= edges[0])
    for edge in edges[1:]:
        band = band + ops.integer(value >= edge)
    return band


class NumpyBackend:
    """The population in memory; its hash is Spark's ``xxhash64`` of bigints, computed independently."""

    def constant(self, value: float) -> NDArray[np.float64]:
        """The same value for every person."""
        return np.full(1, value)

    def uniform(self, seed: int, stream: int, *values: NDArray[np.int64]) -> NDArray[np.float64]:
        """Doubles in [0, 1)."""
        state = np.full(1, 42, dtype=np.uint64)
        for value in (np.full(1, seed), np.full(1, stream), *values):
            state = _xxhash_of_long(np.asarray(value, dtype=np.int64).view(np.uint64), state)
        return (state >> np.uint64(11)) * 2.0**-53

    def look_up(self, place: NDArray[np.int64], table: Sequence[int]) -> NDArray[np.int64]:
        """Entry of ``table`` at each integer place."""
        return np.asarray(table, dtype=np.int64)[place]

    def floor(self, value: NDArray[np.float64]) -> NDArray[np.int64]:
        """Largest integer that is not above ``value``."""
        return np.floor(value).astype(np.int64)

    def integer(self, condition: NDArray[np.bool_]) -> NDArray[np.int64]:
        """1 where true, 0 where false."""
        return condition.astype(np.int64)

    def log(self, value: NDArray[np.float64]) -> NDArray[np.float64]:
        """Natural logarithm."""
        return np.asarray(np.log(value))

    def exp(self, value: NDArray[np.float64]) -> NDArray[np.float64]:
        """Exponential."""
        return np.asarray(np.exp(value))

    def least(self, one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
        """The smaller of the two."""
        return np.minimum(one, other)


def population_arrays(rows: int, seed: int, kind: LabelKind = "binary") -> dict[str, NDArray[Any]]:
    """The whole population in memory, without Spark.

    Returns
    -------
    dict of str to ndarray, shape (rows,)
        ``SERIALNO`` (strings), integer attributes, and the doubles ``truth``, ``score`` and ``label``.
    """
    ops = NumpyBackend()
    person = np.arange(rows, dtype=np.int64)
    traits = attributes(ops, person, seed)
    made = scores(ops, person, traits, seed)
    household = person // PERSONS_PER_HOUSEHOLD
    return {
        "SERIALNO": np.char.add(SERIAL_PREFIX, np.char.zfill(household.astype(str), SERIAL_DIGITS)),
        **{name: value for name, value in traits.items() if name != "PUMA"},
        "PUMA": np.char.zfill(traits["PUMA"].astype(str), PUMA_DIGITS),
        **made,
        "label": label(ops, person, made["truth"], seed, kind),
    }


_PRIMES = tuple(
    np.uint64(p)
    for p in (
        0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5,
    )
)  # fmt: skip


def _rotated(value: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    return np.asarray((value << np.uint64(bits)) | (value >> np.uint64(64 - bits)))


def _xxhash_of_long(value: NDArray[np.uint64], state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """XXH64 of eight bytes, seeded with ``state``."""
    p1, p2, p3, p4, p5 = _PRIMES
    h = (state + p5 + np.uint64(8)) ^ (_rotated(value * p2, 31) * p1)
    h = _rotated(h, 27) * p1 + p4
    h = (h ^ (h >> np.uint64(33))) * p2
    h = (h ^ (h >> np.uint64(29))) * p3
    return np.asarray(h ^ (h >> np.uint64(32)))
