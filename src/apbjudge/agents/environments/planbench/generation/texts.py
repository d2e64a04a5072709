"""Texts that a model may write for a generated benchmark, and the rules for its answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from pydantic import ValidationError

from .....errors import InputError
from .....protocols.leak_patterns import BROKEN, HINTS
from .....records import json_values
from .....records.base import row_error
from .....records.loose_json import as_object
from .....records.tools import pretty
from ....prediction.writing import Complaint, TextReading
from ..config import GenerateConfig, TextKind
from .domain import DatatypeSpec, Domain, ValueSource
from .tasks import Start
from .tools import Funnel, Signature, draw_records, draw_signatures

FEWEST_DATATYPES = 30
FILTERS: Mapping[str, str] = {
    "look_up": "it would have to be computed, not looked up",
    "plausible": "nobody would offer it",
    "new_information": "its output says nothing new",
    "no_reformat": "its output is an input in another form",
}
"""Claims that a model checks for a candidate, each with the reason for refusal if it is false."""
_LONGEST = 600
_FEWEST_CHARACTERS = 4
"""Smallest length, in characters, of a value that is searched for: shorter ones match by chance."""
_SPARE = 60
"""Values of a datatype in addition to those of the records, for results of noisy tools."""


@dataclass(frozen=True, slots=True)
class TextTask:
    """A text to be written.

    Attributes:
        id: The kind and the subject.
        kind: Kind of text to write.
        values: Values in the prompt, by name.
        keys: The keys of the JSON object with the answer.
        rules: Yields complaints about such an object.
    """

    id: str
    kind: TextKind
    values: Mapping[str, str]
    keys: tuple[str, ...]
    rules: Callable[[Mapping[str, Any]], Iterator[Complaint]]

    def read(self, reply: str) -> TextReading:
        """Reads a model's reply; uses the last object that has all keys."""
        objects = [value for each in json_values(reply) if (value := as_object(each))]
        answers = [value for value in objects if {*self.keys} <= value.keys()]
        if not answers:
            keys = ", ".join(f'"{key}"' for key in self.keys)
            return TextReading(
                None, (Complaint("no JSON", f"Answer with a JSON object with {keys}."),)
            )
        return self.checked(answers[-1])

    def checked(self, value: Mapping[str, Any]) -> TextReading:
        """The reading of an answer."""
        if complaints := tuple(self.rules(value)):
            return TextReading(None, complaints)
        return TextReading({**value}, ())


# Domains ------------------------------------------------------------------------------------------


def domain_task(theme: str, config: GenerateConfig) -> TextTask:
    """The request for a domain about a subject, with enough values for the records and tools."""

    def rules(answer: Mapping[str, Any]) -> Iterator[Complaint]:
        try:
            domain = Domain.model_validate(answer)
        except ValidationError as error:
            yield Complaint("unusable form", f"{row_error(error)}.")
            return
        if len(domain.datatypes) < FEWEST_DATATYPES:
            detail = f"There are {len(domain.datatypes)} datatypes, fewer than {FEWEST_DATATYPES}."
            yield Complaint("too few datatypes", detail)
            return
        rng = Random(0)  # noqa: S311 - no secrets
        try:
            records = draw_records(domain, config.records + _SPARE, ValueSource(rng))
        except InputError as error:
            yield Complaint("too few values", f"{error}.")
            return
        try:
            draw_signatures(domain, records, config.tools, rng, Funnel())
        except InputError as error:
            yield Complaint("too few tools", f"{error}.")

    values = {"theme": theme, "least": str(FEWEST_DATATYPES)}
    return TextTask("domain", "domain", values, ("name", "context", "categories"), rules)


# Filters ------------------------------------------------------------------------------------------


def filter_task(signature: Signature, domain: Domain) -> TextTask:
    """The request to judge if a look-up is plausible as a tool."""

    def rules(answer: Mapping[str, Any]) -> Iterator[Complaint]:
        for name in FILTERS:
            if not isinstance(answer[name], bool):
                yield Complaint("no verdict", f'"{name}" must be true or false.')

    values = {
        "context": domain.context,
        "inputs": "\n".join(_shown(domain.datatypes[name]) for name in signature.inputs),
        "output": _shown(domain.datatypes[signature.output]),
    }
    return TextTask(f"filter: {signature}", "filters", values, (*FILTERS,), rules)


def refusal_of(answer: Mapping[str, Any]) -> str:
    """Reason for refusing a candidate: the first filter that it fails; empty if none."""
    return next((reason for name, reason in FILTERS.items() if not answer[name]), "")


def _shown(datatype: DatatypeSpec) -> str:
    return f"{datatype.name}: {datatype.about}"


# Descriptions -------------------------------------------------------------------------------------

Family = Mapping[str, Mapping[str, Any]]
"""Tools by label: an executable tool, its noisy siblings and its blockers."""
EXECUTABLE = "executable"


def description_task(family: Family, domain: Domain, stated: Collection[str]) -> TextTask:
    """The request for the descriptions of a family of tools.

    Args:
        family: The tools, with drafts of their descriptions.
        domain: Their domain.
        stated: Values of records, which descriptions must not contain.
    """
    tool = family[EXECUTABLE]
    signature = Signature(tuple(tool["input_datatypes"]), tool["output_datatype"])
    datatypes = {*signature.inputs, *(each["output_datatype"] for each in family.values())}
    specs = [of for name, of in domain.datatypes.items() if name in datatypes]
    honest = [label for label, each in family.items() if "tool_type" not in each]

    def rules(answer: Mapping[str, Any]) -> Iterator[Complaint]:
        texts = as_object(answer["descriptions"]) or {}
        if texts.keys() != family.keys():
            labels = ", ".join(family)
            yield Complaint("labels", f'"descriptions" must have exactly the labels {labels}.')
            return
        written: set[str] = set()
        for label, value in texts.items():
            text = _text(value)
            subject = f"The description of {label!r}"
            yield from _length(subject, text)
            if text in written:
                yield Complaint("same text", f"{subject} is that of another tool.")
            written.add(text)
            for name in (*family[label]["input_datatypes"], family[label]["output_datatype"]):
                if not _names(domain.datatypes[name], text):
                    is_output = name == family[label]["output_datatype"]
                    code = "output not named" if is_output else "input not named"
                    yield Complaint(code, f"{subject} does not name {name!r}.")
            if label in honest and (match := HINTS[BROKEN].search(text)):
                detail = (
                    f"{subject} states a doubt that its draft does not have: {match.group()!r}."
                )
                yield Complaint("doubt added", detail)
            yield from _values_in(text, stated, subject)

    values = {
        "context": domain.context,
        "tools": pretty({label: each["description"] for label, each in family.items()}),
        "names": "\n".join(", ".join((of.name, *of.aliases)) for of in specs),
    }
    return TextTask(f"description: {signature}", "descriptions", values, ("descriptions",), rules)


# Queries ------------------------------------------------------------------------------------------


def query_task(
    start: Start, draft: str, record: Mapping[str, Any], domain: Domain, tools: Sequence[str]
) -> TextTask:
    """The request for a query in natural language.

    Args:
        start: The task.
        draft: The query by template.
        record: The record that the query is about.
        domain: The domain.
        tools: Names of tools, which a query must not contain.
    """
    answer_text = str(record[start.target])
    values = [str(record[name]) for name in start.inputs]
    others = [str(v) for name, v in record.items() if name not in (*start.inputs, start.target)]
    target = domain.datatypes[start.target]

    def rules(answer: Mapping[str, Any]) -> Iterator[Complaint]:
        text, subject = _text(answer["query"]), "The query"
        yield from _length(subject, text)
        for value in values:
            if value not in text:
                yield Complaint("value missing", f"{subject} lacks the value {value!r}.")
        if answer_text in text:
            yield Complaint("answer told", f"{subject} states its answer, {answer_text!r}.")
        if not _names(target, text):
            yield Complaint("target not named", f"{subject} does not ask for {target.name!r}.")
        rest = text
        for value in values:
            rest = rest.replace(value, " ")
        yield from _values_in(rest, others, subject)
        for name in tools:
            if name in text:
                yield Complaint("tool named", f"{subject} names the tool {name!r}.")

    shown = {
        "query": draft,
        "values": "\n".join(values),
        "names": ", ".join((target.name, *target.aliases)),
    }
    name = f"query: {', '.join(start.inputs)} → {start.target}"
    return TextTask(name, "queries", shown, ("query",), rules)


# Shared rules -------------------------------------------------------------------------------------


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _length(subject: str, text: str) -> Iterator[Complaint]:
    if not text:
        yield Complaint("empty", f"{subject} is empty or no text.")
    elif len(text) > _LONGEST:
        detail = f"{subject} has {len(text)} characters, more than the {_LONGEST} allowed."
        yield Complaint("too long", detail)


def _names(datatype: DatatypeSpec, text: str) -> bool:
    """True if a text contains a name of a datatype; ignores case, underscores and hyphens."""

    def plain(words: str) -> str:
        return " ".join(words.lower().replace("_", " ").replace("-", " ").split())

    names: Iterable[str] = (datatype.name, datatype.about, *datatype.aliases)
    return any(plain(name) in plain(text) for name in names)


def _values_in(text: str, values: Collection[str], subject: str) -> Iterator[Complaint]:
    for value in values:
        if len(value) >= _FEWEST_CHARACTERS and value in text:
            yield Complaint("value told", f"{subject} states {value!r}, a value of a record.")
