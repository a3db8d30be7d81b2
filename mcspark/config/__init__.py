"""The configuration: one frozen schema, loaded from a file, the environment and ``--set``."""

from mcspark.config.calibrator import Calibrator, Split
from mcspark.config.features import FeatureColumn, Features
from mcspark.config.groups import GroupColumn, Groups, Predicate
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
from mcspark.config.secrets import redact, redact_uri
from mcspark.config.segments import Segments
from mcspark.config.sources import load_config
from mcspark.config.tables import AttributeTable, Dedupe, LabelTable, Output, ScoredTable

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
    "FeatureColumn",
    "Features",
    "Gate",
    "GroupColumn",
    "Groups",
    "LabelTable",
    "Model",
    "Output",
    "Predicate",
    "Report",
    "ScoredTable",
    "Segments",
    "Split",
    "Tracking",
    "load_config",
    "redact",
    "redact_uri",
    "required",
]
