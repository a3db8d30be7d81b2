"""Stages: a fitted calibrator as a short sequence of additive corrections, each fed the last one's output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import numpy as np

from mcspark.core.cells.levels import FloatArray, IntArray
from mcspark.core.model.additive import AdditiveForm, BoolArray, Members, checked_members

Link = Literal["identity", "logit"]

SCHEMA = 1
"""Version of the plain form that :meth:`Stages.to_dict` writes and :meth:`Stages.from_dict` reads."""

LOGIT_EPS = 1e-6
"""Scores are kept this far from 0 and 1 before their logit is taken: finer than the finest score bin."""

MAX_STAGES = 1000

_CHUNK = 2**14  # rows at a time: the working arrays stay in a core's cache
_MAX_STEPS = 8  # thresholds in one slot of the look-up grid, beyond which bisection is as fast


def logit(score: FloatArray) -> FloatArray:
    """Log-odds of a score in [0, 1], kept ``LOGIT_EPS`` away from 0 and 1."""
    inner = np.clip(score, LOGIT_EPS, 1 - LOGIT_EPS)
    return np.asarray(np.log(inner) - np.log1p(-inner), dtype=np.float64)


def sigmoid(log_odds: FloatArray) -> FloatArray:
    """Probability of a log-odds, without overflow."""
    small = np.exp(-np.abs(log_odds))
    return np.asarray(np.where(log_odds >= 0, 1.0, small) / (1.0 + small), dtype=np.float64)


def corrected(score: FloatArray, correction: FloatArray, link: Link) -> FloatArray:
    """Score after one stage: ``clip(f + r, 0, 1)``, or ``sigmoid(logit(f) + r)`` with the logit link."""
    if link == "logit":
        return sigmoid(logit(score) + correction)
    return np.clip(score + correction, 0.0, 1.0)


def corrected_one(score: float, correction: float, link: Link) -> float:
    """One score after one stage, the same bit for bit as :func:`corrected`; a tenth of its cost."""
    if link == "logit":
        inner = min(max(score, LOGIT_EPS), 1 - LOGIT_EPS)
        log_odds = float(np.log(inner) - np.log1p(-inner)) + correction
        small = float(np.exp(-abs(log_odds)))
        return (1.0 if log_odds >= 0 else small) / (1.0 + small)
    return min(max(score + correction, 0.0), 1.0)


@dataclass(frozen=True, eq=False)
class Stage:
    """One boosted ensemble in additive form.

    Parameters
    ----------
    link : {"identity", "logit"}
        What the correction is added to: the score, or its log-odds.
    form : AdditiveForm
        A function of the stage's incoming score (never of its logit) and the groups.
    trees : int
        Number of trees that were compiled into ``form``.
    """

    link: Link
    form: AdditiveForm
    trees: int

    def __post_init__(self) -> None:
        if self.link not in get_args(Link):
            raise ValueError(f"stage: link must be one of {get_args(Link)}, not {self.link!r}")
        if not isinstance(self.trees, int) or self.trees < 0:
            raise ValueError(f"stage: trees must be a whole number, not {self.trees!r}")

    def apply(self, score: FloatArray, membership: BoolArray) -> FloatArray:
        """Scores in [0, 1] after this stage; shapes (N,) and (N, G) as in :meth:`Stages.apply`."""
        return corrected(score, self.form.evaluate(score, membership), self.link)


@dataclass(frozen=True, eq=False)
class Stages:
    """A calibrator: turns (score, groups) into a calibrated score.

    Parameters
    ----------
    stages : tuple of Stage
        In order of application. None at all is the identity: the base score ships as it is.
    groups : tuple of str, length G
        Group names, in the order of the columns of every membership table.
    """

    stages: tuple[Stage, ...]
    groups: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.stages) > MAX_STAGES:
            raise ValueError(f"stages: {len(self.stages)} are more than {MAX_STAGES}")
        if not all(isinstance(name, str) and name for name in self.groups):
            raise ValueError("stages: every group needs a name")
        if len(set(self.groups)) != len(self.groups):
            raise ValueError("stages: two groups have the same name")
        for i, stage in enumerate(self.stages):
            if stage.form.n_groups != len(self.groups):
                raise ValueError(
                    f"stage {i}: {stage.form.n_groups} groups where {len(self.groups)} are named"
                )

    @property
    def trees(self) -> int:
        """Number of trees in all stages."""
        return sum(stage.trees for stage in self.stages)

    def then(self, stage: Stage) -> Stages:
        """The same calibrator followed by one more stage."""
        return Stages((*self.stages, stage), self.groups)

    def apply(self, score: FloatArray, membership: BoolArray) -> FloatArray:
        """Calibrated scores of rows: the plain way, and the reference for the fast one.

        Parameters
        ----------
        score : ndarray, shape (N,), range [0, 1]
        membership : ndarray of bool, shape (N, G)

        Returns
        -------
        ndarray, shape (N,), range [0, 1]

        Raises
        ------
        ValueError
            If a score is NaN or outside [0, 1], or the membership has another shape.
        """
        result = _checked_score(score).copy()
        for stage in self.stages:
            result = stage.apply(result, membership)
        return result

    def apply_signatures(self, score: FloatArray, signature: IntArray, members: Members) -> FloatArray:
        """Calibrated scores of rows whose groups are given by signature; see :class:`SignatureScorer`."""
        return SignatureScorer(self, members)(score, signature)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON form, with its schema version."""
        stages = [
            {"link": stage.link, "trees": stage.trees, "form": stage.form.to_dict()} for stage in self.stages
        ]
        return {"schema": SCHEMA, "groups": list(self.groups), "stages": stages}

    @classmethod
    def from_dict(cls, plain: Any) -> Stages:
        """Inverse of :meth:`to_dict`, for files that are not trusted.

        Raises
        ------
        ValueError
            If the schema version is another, or anything is missing, of the wrong type or out of range.
        """
        if not isinstance(plain, dict) or plain.get("schema") != SCHEMA:
            found = plain.get("schema") if isinstance(plain, dict) else None
            raise ValueError(f"stages: schema {SCHEMA} is needed, found {found!r}")
        if set(plain) != {"schema", "groups", "stages"}:
            raise ValueError("stages: exactly the keys groups, schema and stages are needed")
        if not isinstance(plain["groups"], list) or not isinstance(plain["stages"], list):
            raise ValueError("stages: groups and stages must be lists")
        if len(plain["stages"]) > MAX_STAGES:
            raise ValueError(f"stages: {len(plain['stages'])} are more than {MAX_STAGES}")
        return cls(tuple(map(_stage_from_dict, plain["stages"])), tuple(plain["groups"]))


class SignatureScorer:
    """Scores rows by signature: the cost is a row's handful of groups, not the trees, nor all groups.

    Make one for a table of signatures and use it for batch after batch. A row's result is the same, bit for
    bit, whichever batch it comes in, and that of :meth:`Stages.apply` up to 1e-15.

    Parameters
    ----------
    stages : Stages
    members : ndarray of bool, shape (S, G), or of int, shape (S, K)
        The groups of each signature.
    """

    def __init__(self, stages: Stages, members: Members) -> None:
        members = checked_members(members, len(stages.groups))
        self._n_signatures = len(members)
        is_in = members if members.dtype == np.bool_ else members >= 0
        self._size = is_in.sum(axis=1)
        # Row k holds the k-th group of each signature; what lies beyond a signature's size is never read.
        self._kth_group = np.zeros((int(self._size.max(initial=0)), len(members)), dtype=np.int64)
        owner, group = np.nonzero(is_in)
        place = np.arange(len(owner)) - (np.cumsum(self._size) - self._size)[owner]
        self._kth_group[place, owner] = group if is_in is members else members[owner, group]
        self._stages = [_StageTables(stage, members, self._kth_group) for stage in stages.stages]

    def __call__(self, score: FloatArray, signature: IntArray) -> FloatArray:
        """Calibrated scores.

        Parameters
        ----------
        score : ndarray, shape (N,), range [0, 1]
        signature : ndarray of int, shape (N,)
            Row of ``membership`` in 0..S-1.

        Returns
        -------
        ndarray, shape (N,), range [0, 1]

        Raises
        ------
        ValueError
            If a score is NaN or outside [0, 1], or a signature is not in the table.
        """
        score = _checked_score(score)
        signature = np.asarray(signature)
        if signature.shape != score.shape or signature.dtype.kind not in "iu":
            raise ValueError(f"signature must be int of shape {score.shape}")
        if len(score) and not 0 <= int(signature.min()) <= int(signature.max()) < self._n_signatures:
            raise ValueError(f"a signature is outside the table of {self._n_signatures}")
        result = np.empty(len(score))
        for start in range(0, len(score), _CHUNK):
            rows = slice(start, start + _CHUNK)
            result[rows] = self._chunk(score[rows], signature[rows].astype(np.int64))
        return result

    def _chunk(self, score: FloatArray, signature: IntArray) -> FloatArray:
        # Rows in order of falling size, so that the rows with a k-th group are always the first ones.
        size = self._size[signature]
        order = np.argsort(-size.astype(np.int16), kind="stable")
        with_kth = len(score) - np.cumsum(np.bincount(size, minlength=len(self._kth_group) + 1))
        current, signature = score[order], signature[order]
        for stage in self._stages:
            current = stage.apply(current, signature, with_kth)
        result = np.empty_like(current)
        result[order] = current
        return result


class _StageTables:
    """One stage laid out for gathering."""

    def __init__(self, stage: Stage, members: Members, kth_group: IntArray) -> None:
        self._link = stage.link
        self._bins = _BinLookup(stage.form.thresholds)
        self._base = stage.form.base
        self._offset = stage.form.signature_offset(members)
        self._curves = stage.form.curves.reshape(-1)
        self._kth_curve = kth_group * stage.form.n_bins

    def apply(self, score: FloatArray, signature: IntArray, with_kth: IntArray) -> FloatArray:
        bins = self._bins.find(score)
        correction = self._base[bins] + self._offset[signature]
        for curve, n in zip(self._kth_curve, with_kth.tolist(), strict=False):
            place = curve.take(signature[:n])
            place += bins[:n]
            correction[:n] += self._curves.take(place)
        return corrected(score, correction, self._link)


class _BinLookup:
    """Number of thresholds below a score in [0, 1], by a uniform grid and a few steps from there.

    The grid has a power of two slots, so a score's slot is exact, and with it the result.
    """

    def __init__(self, thresholds: FloatArray) -> None:
        self._thresholds = thresholds
        self._padded = np.concatenate((thresholds, [np.inf]))
        for exponent in range(10, 17):
            self._slots = 2.0**exponent
            edges = np.arange(2**exponent + 1) / self._slots
            self._start = np.searchsorted(thresholds, edges, side="left")
            self._steps = int(np.diff(self._start).max())
            if self._steps <= 1:
                break

    def find(self, score: FloatArray) -> IntArray:
        if self._steps > _MAX_STEPS:
            return np.searchsorted(self._thresholds, score, side="left")
        bins = self._start[(score * self._slots).astype(np.int64)]
        for _ in range(self._steps):
            bins += self._padded[bins] < score
        return bins


def _checked_score(score: FloatArray) -> FloatArray:
    score = np.asarray(score, dtype=np.float64)
    if score.ndim != 1:
        raise ValueError(f"score must have one dimension, not shape {score.shape}")
    if len(score) and not (score.min() >= 0 and score.max() <= 1):
        wrong = ~((score >= 0) & (score <= 1))
        raise ValueError(f"{wrong.sum()} scores are NaN or outside [0, 1], such as {score[wrong][0]}")
    return score


def _stage_from_dict(plain: Any) -> Stage:
    if not isinstance(plain, dict) or set(plain) != {"link", "trees", "form"}:
        raise ValueError("stage: an object with exactly the keys form, link and trees is needed")
    if not isinstance(plain["link"], str) or isinstance(plain["trees"], bool):
        raise ValueError("stage: link must be a word and trees a whole number")
    return Stage(cast("Link", plain["link"]), AdditiveForm.from_dict(plain["form"]), plain["trees"])
