"""Numbers as the decimals that they are written as."""

from __future__ import annotations

from decimal import Decimal

import numpy as np

from mcspark.core.cells.levels import FloatArray

LARGEST_EXACT = 2.0**53
"""Whole numbers below this are doubles."""


LARGEST_WHOLE = 2.0**63
"""Whole numbers below this have 64 bits."""


def decimal_ratio(number: float) -> tuple[float, float]:
    """Two whole numbers whose quotient is the shortest decimal of a number; itself and 1 if they are large.

    A multiple of the number is then one rounded division away, as the decimal itself would be rounded.
    """
    digits = Decimal(repr(number))
    exponent = int(digits.as_tuple().exponent)
    if exponent < -22:  # its power of ten is no double
        return number, 1.0
    bottom = 10.0 ** max(-exponent, 0)
    top = float(digits.scaleb(max(-exponent, 0)))
    return (top, bottom) if top < LARGEST_EXACT else (number, 1.0)


def divided(value: FloatArray, divide_by: float) -> FloatArray:
    """``floor(value / divide_by)`` of the decimals that the numbers are written as; shape (N,).

    The double 0.6 / 0.1 is below 6. So a guess is corrected by the edges between the quotients: 0.6 is as
    many tenths as the decimal says. Values of 32 bits are taken as they are written, too. NaN where it is no
    whole number of 64 bits, as of infinity.
    """
    if value.dtype == np.float32:
        value = np.array([float(str(v)) for v in value])
    top, bottom = decimal_ratio(divide_by)
    quotient = value / divide_by
    guess = np.floor(quotient)
    exact = guess - (value < guess * top / bottom) + (value >= (guess + 1) * top / bottom)
    found = np.where(np.abs(guess) < LARGEST_EXACT, exact, guess)
    return np.asarray(np.where(np.abs(quotient) < LARGEST_WHOLE, found, np.nan), dtype=np.float64)
