"""The paper's baselines, each fitted on cells and replayed on rows.

Every fit is a frozen dataclass of plain arrays with ``apply(score, membership)``, the fast path
``apply_signatures(score, signature, membership_table)`` and ``to_dict`` / ``from_dict``.
"""
