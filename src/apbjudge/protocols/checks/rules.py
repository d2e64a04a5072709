"""The rules that find facts, each with the sentence that a judge reads.

The sentence never quotes the prediction: the judge believes facts, so they must not contain
anything that a tested model wrote.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...records import Certainty, ErrorCode, Finding

RULES: Mapping[str, str] = {
    "unknown-tool": "the tool called here is not in the list of available tools",
    "distractor": "the tool called here is one of the planted distractors",
    "missing-parameter": "a required parameter of the tool is missing in this call",
    "unknown-parameter": "this call passes a parameter that the tool does not have",
    "wrong-type": "an argument has a type that the tool's schema does not allow",
    "not-allowed-value": "an argument is not one of the values that the tool's schema allows",
    "schema-violation": "an argument breaks a limit of the tool's schema",
    "used-before-made": "a result is used here before the call that yields it",
    "format": "the reply breaks the required output format",
    "empty-plan": "no call is planned at all",
    "call-due": "a tool call was due and none is made",
    "retry-broken-tool": "the broken tool is called again",
    "says-nothing": "the reply neither plans, nor declines, nor asks",
    "offline-tool": "the tool called here is out of service, as the query states",
    "carried-on": "the plan is carried out although the case can't be solved",
    "low-overlap": "hardly any tool of the reference chain is used",
    "repeated-call": "an identical call was made before",
    "vague-value": "an argument is empty or a stopgap",
    "null-optional": "an optional parameter is passed as null",
    "unchecked-arguments": "the arguments of this call were not held against the tool's schema",
    "parameters-not-given": "the call does not say which parameters it uses",
    "early-reference": "a numbered step is referred to that comes later",
}

_PLACE = re.compile(r"^[a-z_]+(?:\[\d+\])?(?:\.tool_calls\[\d+\])?")


def finding(rule: str, code: ErrorCode, certainty: Certainty, where: str, message: str) -> Finding:
    """Builds a finding; ``rule`` must be one of RULES."""
    return Finding(code=code, certainty=certainty, where=where, message=message, rule=rule)


def fact_line(fact: Finding, rules: Mapping[str, str] = RULES) -> str:
    """A proven finding as a judge reads it: code, place and the fixed sentence of its rule."""
    code = f"{fact.code}, " if fact.code else ""
    sentence = rules.get(fact.rule, f"the check {fact.rule} proves a fault")
    return f"{code}{_place(fact.where)}: {sentence}"


def ending_line(where: str) -> str:
    """A call that ends the task, as a judge reads it: a fact, but not a fault by itself."""
    return f"{_place(where)}: the tool called here only ends the task"


def _place(where: str) -> str:
    place = _PLACE.match(where)
    return place.group() if place else "response"
