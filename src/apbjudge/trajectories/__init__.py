"""Whole runs of agents: read from any log, measured and diagnosed by rule."""

from .base import (
    Evaluation,
    Evaluator,
    EvaluatorSettings,
    LogEntry,
    Question,
    RunTable,
    TrajectoryMetric,
    TrajectoryProtocol,
)
from .table import RUN_PROTOCOLS, run_protocol

__all__ = [
    "RUN_PROTOCOLS",
    "Evaluation",
    "Evaluator",
    "EvaluatorSettings",
    "LogEntry",
    "Question",
    "RunTable",
    "TrajectoryMetric",
    "TrajectoryProtocol",
    "run_protocol",
]
