"""Whole trajectories of agents: read from any log, measured and diagnosed by rule."""

from .base import (
    Evaluation,
    Evaluator,
    EvaluatorSettings,
    LogEntry,
    Question,
    TrajectoryMetric,
    TrajectoryProtocol,
    TrajectoryTable,
)
from .table import TRAJECTORY_PROTOCOLS, trajectory_protocol

__all__ = [
    "TRAJECTORY_PROTOCOLS",
    "Evaluation",
    "Evaluator",
    "EvaluatorSettings",
    "LogEntry",
    "Question",
    "TrajectoryMetric",
    "TrajectoryProtocol",
    "TrajectoryTable",
    "trajectory_protocol",
]
