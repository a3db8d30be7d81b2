"""Chances and names: what all makers of a pair draw from."""

from __future__ import annotations

from random import Random

NAMES = (
    "id", "person no", "a.b", "a`b", "ünï", "x'y", 'q"r', "SELECT", "ID2",
    "a,b",     "a{b}", "k=v", "0", "run_id", "group", "_c0", "bell😀", "score", "label", "weight", "rate %",
    "[1]", "a/b",     "ds2", "value", "w", "y", "f", "level", "metric", "stage", "é", "Region",
    "AGE", "job-title", "(x)", "a\\b",
)  # fmt: skip
HOSTILE_NAMES = (
    "__x", "__score", "__family_0", "__unmatched", "calibrated_score", "ds", "split", "reasons", "source",
)  # fmt: skip
FOLDERS = ("scored", "a b", "é", "x[1]", "a{b,c}", "p%20q", "day=1", "a+b", "q?", "star*")


class Draws:
    """One source of chance, the names that are taken, and what was done that is odd."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.odd: list[str] = []
        self.taken: set[str] = set()

    def chance(self, p: float, odd: str | None = None) -> bool:
        """True with this probability; what is odd is noted."""
        hit = self.rng.random() < p
        if hit and odd:
            self.odd.append(odd)
        return hit

    def name(self) -> str:
        """A column name; now and then one that is refused, or the twin of another in capitals."""
        rng = self.rng
        if self.taken and self.chance(0.004, "twin"):
            return rng.choice(sorted(self.taken)).swapcase()
        if self.chance(0.015, "hostile name"):
            return rng.choice(HOSTILE_NAMES)
        free = [n for n in NAMES if n.casefold() not in self.taken]
        found = rng.choice(free)
        self.taken.add(found.casefold())
        return found

    def folder(self, plain: str) -> str:
        return f"{plain} {self.rng.choice(FOLDERS)}" if self.chance(0.1) else plain
