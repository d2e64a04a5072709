"""Wire rows and domain records: input and output, without any decisions."""

from .base import Record, row_error
from .consensus import Consensus, ConsensusTable, majority, resolve
from .construction import Bound, Composite, Construction
from .items import UNSOLVABLE_TYPES, Condition, FileRef, Item, Reference, UnsolvableType
from .judgements import (
    ERROR_CODES,
    Certainty,
    ErrorCode,
    Finding,
    Judgement,
    Override,
    Uncertainty,
    Unscored,
    Usage,
    Verdict,
    check_written_row,
    judgement_row,
    read_judgement,
)
from .labels import HumanLabel, read_labels
from .predictions import Call, Form, FormProblem, Prediction, Step
from .responses import call_name, json_values, message_calls, message_tools
from .tools import Tool, Toolset
from .wire import SPLITS, Row

__all__ = [
    "ERROR_CODES",
    "SPLITS",
    "UNSOLVABLE_TYPES",
    "Bound",
    "Call",
    "Certainty",
    "Composite",
    "Condition",
    "Consensus",
    "ConsensusTable",
    "Construction",
    "ErrorCode",
    "FileRef",
    "Finding",
    "Form",
    "FormProblem",
    "HumanLabel",
    "Item",
    "Judgement",
    "Override",
    "Prediction",
    "Record",
    "Reference",
    "Row",
    "Step",
    "Tool",
    "Toolset",
    "Uncertainty",
    "Unscored",
    "UnsolvableType",
    "Usage",
    "Verdict",
    "call_name",
    "check_written_row",
    "json_values",
    "judgement_row",
    "majority",
    "message_calls",
    "message_tools",
    "read_judgement",
    "read_labels",
    "resolve",
    "row_error",
]
