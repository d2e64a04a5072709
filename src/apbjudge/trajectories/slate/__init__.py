"""SLATE (arXiv:2604.12126): executions of a given plan among recorded tools."""

from .cases import PlanStep, SlateCase, SlateCases, SlateTool, load_cases, validate
from .evaluator import SlateEvaluator
from .protocol import SLATE

__all__ = [
    "SLATE",
    "PlanStep",
    "SlateCase",
    "SlateCases",
    "SlateEvaluator",
    "SlateTool",
    "load_cases",
    "validate",
]
