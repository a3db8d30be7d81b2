"""The configuration: one frozen schema, loaded from a file, the environment and ``--set``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcspark.config.calibrator import Calibrator, Split
    from mcspark.config.groups import GroupColumn, Groups, Predicate
    from mcspark.config.identifiers import check_run_id, quote_identifier, quote_table
    from mcspark.config.models import (
        Compare,
        CompareOutput,
        CompareTask,
        Config,
        Evaluation,
        Gate,
        Model,
        Report,
        required,
    )
    from mcspark.config.monitoring import Drift, Tracking
    from mcspark.config.predicates import check_predicate
    from mcspark.config.secrets import redact, redact_uri
    from mcspark.config.sources import load_config
    from mcspark.config.tables import AttributeTable, Dedupe, Output, ScoredTable

__all__ = [
    "AttributeTable",
    "Calibrator",
    "Compare",
    "CompareOutput",
    "CompareTask",
    "Config",
    "Dedupe",
    "Drift",
    "Evaluation",
    "Gate",
    "GroupColumn",
    "Groups",
    "Model",
    "Output",
    "Predicate",
    "Report",
    "ScoredTable",
    "Split",
    "Tracking",
    "check_predicate",
    "check_run_id",
    "load_config",
    "quote_identifier",
    "quote_table",
    "redact",
    "redact_uri",
    "required",
]

_HOMES = {
    "AttributeTable": "mcspark.config.tables",
    "Calibrator": "mcspark.config.calibrator",
    "Compare": "mcspark.config.models",
    "CompareOutput": "mcspark.config.models",
    "CompareTask": "mcspark.config.models",
    "Config": "mcspark.config.models",
    "Dedupe": "mcspark.config.tables",
    "Drift": "mcspark.config.monitoring",
    "Evaluation": "mcspark.config.models",
    "Gate": "mcspark.config.models",
    "GroupColumn": "mcspark.config.groups",
    "Groups": "mcspark.config.groups",
    "Model": "mcspark.config.models",
    "Output": "mcspark.config.tables",
    "Predicate": "mcspark.config.groups",
    "Report": "mcspark.config.models",
    "ScoredTable": "mcspark.config.tables",
    "Split": "mcspark.config.calibrator",
    "Tracking": "mcspark.config.monitoring",
    "check_predicate": "mcspark.config.predicates",
    "check_run_id": "mcspark.config.identifiers",
    "load_config": "mcspark.config.sources",
    "quote_identifier": "mcspark.config.identifiers",
    "quote_table": "mcspark.config.identifiers",
    "redact": "mcspark.config.secrets",
    "redact_uri": "mcspark.config.secrets",
    "required": "mcspark.config.models",
}


def __getattr__(name: str) -> Any:
    # Imported when first used: Python workers quote names of columns, and need no parsers for it.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
