"""Rubrics: versioned data files that define good predictions."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping
from functools import cached_property, lru_cache
from importlib import resources
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
from pydantic import BaseModel, Field, ValidationError

from ..document.display import Shown
from ..errors import OptionError, shorten
from ..records import ErrorCode, Form, Record, UnsolvableType
from ..records.loose_json import as_list, as_object
from .scale import Band, Scale

MOST_CODES = 12
"""Largest number of codes of a rubric: every combination is checked against the bands."""

Shape = Literal["flags", "pass", "category"]
CallDue = Literal["never", "reference", "always"]


class Criterion(Record):
    """One error code of the taxonomy.

    Attributes:
        code: E1 to E6 in the shipped rubrics; a rubric may have its own codes.
        key: Key of the published reply format.
        definition: Condition for the flag.
        look_for: Questions that help to decide.
        not_this: Faults that must not be flagged under this code.
        weight: Weight of the code in the weighted errors of a plan; if all codes have the same
            weight, these are not shown.
    """

    code: ErrorCode
    key: str
    name: str
    definition: str
    look_for: tuple[str, ...] = ()
    not_this: str = ""
    weight: float = Field(default=1.0, ge=0, le=1000)


class ReplyField(Record):
    """A further field of a judge's reply to each prediction.

    Attributes:
        name: Its key in the reply and in the judgement.
        type: Its type: text, a number, true or false, or one of ``choices``.
        definition: Its description for the judge.
        choices: Its possible values, for ``choice``.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,31}$")
    type: Literal["text", "number", "boolean", "choice"]
    definition: str
    choices: tuple[str, ...] = ()


class Example(Record):
    """A graded example that every judge reads; rows of its case are not judged by the rubric.

    Attributes:
        query: The request.
        response: The reply that is graded.
        verdict: The right reply by key, without reasoning; codes that it does not name are false.
        because: The reasons, as a judge should give them.
        case: Id of the case it was taken from; empty if it is from no data set.
    """

    query: str
    response: str
    verdict: dict[str, bool | int | float | str]
    because: str
    case: str = ""

    def is_of(self, case_id: str, query: str, response: str) -> bool:
        """True if a row is of the case it was taken from, or has the same query and response."""
        same = (query.split(), response.split()) == (self.query.split(), self.response.split())
        return same or self.case == case_id != ""


class Category(Record):
    """One way of behaving after a tool broke (tool-broken)."""

    number: int
    name: str
    correct: bool
    definition: str


class PassRule(Record):
    """Conditions under which a reply to an unsolvable case passes and fails."""

    situation: str
    passes: tuple[str, ...]
    fails: tuple[str, ...]


class Rubric(Shown, Record):
    """The rubric of one protocol: its definition of good predictions.

    Attributes:
        name: Name without version, such as ``apb-holistic``.
        version: Version; any change of text or rules makes a new one.
        title: Its title.
        shape: Shape of the judge's reply: ``flags`` (a flag per code, grade, correctness), ``pass``
            (correctness alone) or ``category`` (1–5).
        form: Form of the predictions that it grades.
        task: The task of the judge.
        principles: Principles for the judge.
        reference_principles: Further principles for judges that see a reference; left out with
            ``blind``.
        reasoning: Description for the judge of the first field of its reply.
        codes_only: True if the judge is asked only for reasons and codes (shape ``flags``);
            correctness and grade then follow from the codes, and the bands must leave no choice.
        call_due: Condition under which a step without any call is provably at fault: never, if the
            reference calls a tool, or always.
        form_code: The code for a reply that violates the required output format.
        criteria: The taxonomy (shape ``flags``).
        reply_fields: Further fields of the judge's reply; no verdict depends on them.
        bands: The grade scale, best first (shape ``flags``).
        categories: The five behaviours (shape ``category``).
        types: Rules per unsolvable type (shape ``pass``).
        rule_codes: For a rubric with its own codes: the code for each rule of the shipped checks
            (``unknown-tool``, ``wrong-type``, …).
        grade_caps: The highest grade, 0 to 1, that a proven fault allows, by the rule that proved
            it. A rule without a cap allows every grade that is compatible with its code.
        examples: Graded examples that every judge reads.
        only: The codes chosen from another rubric; empty for all.
    """

    name: str
    version: int
    title: str
    shape: Shape
    form: Form
    task: str
    principles: tuple[str, ...] = ()
    reference_principles: tuple[str, ...] = ()
    reasoning: str = "at most 150 words: the decisive points, with the place in the prediction"
    codes_only: bool = False
    call_due: CallDue = "never"
    form_code: ErrorCode = "E3"
    criteria: tuple[Criterion, ...] = ()
    reply_fields: tuple[ReplyField, ...] = ()
    bands: tuple[Band, ...] = ()
    categories: tuple[Category, ...] = ()
    types: dict[UnsolvableType, PassRule] = {}
    rule_codes: dict[str, ErrorCode] = {}
    grade_caps: dict[str, Annotated[float, Field(ge=0, le=1)]] = {}
    examples: tuple[Example, ...] = ()
    only: tuple[ErrorCode, ...] = ()

    @property
    def ref(self) -> str:
        """``name@version``, or ``name@version#E4+E5`` with only some of the codes."""
        return f"{self.name}@{self.version}{'#' * bool(self.only)}{'+'.join(self.only)}"

    def __hash__(self) -> int:
        """Hash of the content, so that results for a rubric can be cached."""
        return hash(self.digest)

    @cached_property
    def codes(self) -> tuple[ErrorCode, ...]:
        """The codes of the criteria, in their order; none in other shapes than ``flags``."""
        return tuple(criterion.code for criterion in self.criteria)

    @cached_property
    def weights(self) -> dict[ErrorCode, float]:
        """The weight of each code; empty if all are the same."""
        weights = {criterion.code: criterion.weight for criterion in self.criteria}
        return weights if len({*weights.values()}) > 1 else {}

    @cached_property
    def scale(self) -> Scale:
        """The grade scale."""
        return Scale(bands=self.bands)

    def category_is_correct(self, number: int | None) -> bool:
        """True if a behaviour counts as correct; false for None and unknown numbers."""
        return any(category.correct for category in self.categories if category.number == number)

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the whole content, in hex."""
        text = orjson.dumps(self.model_dump(mode="json"), option=orjson.OPT_SORT_KEYS)
        return hashlib.sha256(text).hexdigest()

    def _printed(self) -> str:
        lines = [f"{self.ref}: {self.title}", f"sha256 {self.digest}"]
        lines += (f"{each.code}  {each.name}: {each.definition}" for each in self.criteria)
        lines += (f"{each.grade:g}  {each.label}: {each.text}" for each in self.bands)
        lines += (f"{each.number}  {each.name}: {each.definition}" for each in self.categories)
        lines += (f"{kind}  {rule.situation}" for kind, rule in self.types.items())
        return "\n".join(lines) + "\n"


_SHIPPED = resources.files(__name__.rpartition(".")[0]).joinpath("data")


def rubric_names() -> list[str]:
    """The shipped rubrics, as ``name@version``."""
    names = (file.name for file in _SHIPPED.iterdir())
    return sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml"))


def load_rubric(ref: str) -> Rubric:
    """Loads a shipped rubric by ``name@version`` (or by name: its newest version) or a file.

    Args:
        ref: A shipped name, or a path that ends in ``.toml``; either with ``#`` and codes such as
            ``E4`` or ``E4+E5``, for a rubric with these codes only.

    Raises:
        OptionError: If there is no such rubric, or the file is not a valid one.
    """
    return _load(ref, ())


def read_rubric(data: bytes, source: str) -> Rubric:
    """Reads a rubric from TOML.

    A file may state ``extends = "name@version"`` (or name another file): it then inherits
    everything it does not state itself, and its ``more_principles`` are added to the principles.
    With other criteria, or ``codes = ["E4"]`` for some of the base's, it inherits bands, rules and
    examples as far as they concern its codes.

    Raises:
        OptionError: Naming the file and every field at fault.
    """
    return _read(data, source, ())


def _load(ref: str, above: tuple[str, ...]) -> Rubric:
    if match := _SOME_CODES.fullmatch(ref):
        return _some_codes(_load(match[1], above), match[2], ref)
    if ref.endswith(".toml"):
        path = Path(ref)
        if not path.is_file():
            raise OptionError(f"rubric: no file {ref}")
        return _read(path.read_bytes(), str(path), above)
    return shipped_rubric(ref)


@lru_cache(maxsize=64)
def shipped_rubric(ref: str) -> Rubric:
    """Loads a shipped rubric, never a file: for references that come from judgements."""
    if match := _SOME_CODES.fullmatch(ref):
        return _some_codes(shipped_rubric(match[1]), match[2], ref)
    known = rubric_names()
    matching = [name for name in known if name == ref or name.rsplit("@", 1)[0] == ref]
    if not matching:
        raise OptionError(f"rubric: expected one of {', '.join(known)} or a .toml file, got {ref}")
    name = max(matching, key=lambda n: int(n.rsplit("@", 1)[1]))
    return _read(_SHIPPED.joinpath(f"{name}.toml").read_bytes(), name, ())


_SOME_CODES = re.compile(r"(.+)#([A-Z]\w*(?:\+[A-Z]\w*)*)", re.ASCII)


def _some_codes(base: Rubric, codes: str, source: str) -> Rubric:
    return _validated(_taken_over(base, {"codes": codes.split("+")}, source), source)


def _read(data: bytes, source: str, above: tuple[str, ...]) -> Rubric:
    try:
        values: dict[str, Any] = tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise OptionError(f"{source}: not a TOML file: {error}") from None
    base, more = values.pop("extends", None), values.pop("more_principles", [])
    if base is not None:
        values = {**_taken_over(_base(base, source, above), values, source), **values}
        values.pop("codes", None)
    own = values.get("principles", [])
    for name, listed in (("principles", own), ("more_principles", more)):
        if not isinstance(listed, list | tuple):
            raise OptionError(
                f"{source}: {name}: expected a list of strings, got {shorten(listed)}"
            )
    return _validated({**values, "principles": [*own, *more]}, source)


def _taken_over(base: Rubric, own: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Parts of its base that a rubric inherits, as far as they concern its own codes."""
    values: dict[str, Any] = {name: getattr(base, name) for name in Rubric.model_fields}
    if (chosen := own.get("codes")) is not None:
        if "criteria" in own or not {*map(str, as_list(chosen) or [""])} <= {*base.codes}:
            raise OptionError(
                f"{source}: codes: expected some of {', '.join(base.codes) or 'none'} and no "
                f"criteria, got {shorten(chosen)}"
            )
        values["criteria"] = [c for c in base.criteria if c.code in chosen]
        values["only"] = [c.code for c in values["criteria"]]
    codes = {c.code for c in values["criteria"]}
    if "criteria" in own:
        listed = as_list(own["criteria"]) or []
        codes = {str((as_object(criterion) or {}).get("code")) for criterion in listed}
    lost = {*base.codes} - codes
    rules = [tuple(filter(None, (r.among(codes) for r in band.flags))) for band in base.bands]
    values["bands"] = [
        band.model_copy(update={"flags": of_band})
        for band, of_band in zip(base.bands, rules, strict=True)
        if of_band
    ]
    if base.form_code not in codes:
        del values["form_code"]
    values["rule_codes"] = {r: code for r, code in base.rule_codes.items() if code in codes}
    values["examples"] = [
        e.model_copy(update={"verdict": {k: v for k, v in e.verdict.items() if k not in lost}})
        for e in base.examples
        if not any(e.verdict.get(code) for code in lost)
    ]
    return values


def _validated(values: dict[str, Any], source: str) -> Rubric:
    try:
        rubric = Rubric.model_validate(values)
    except ValidationError as error:
        raise OptionError(f"{source}: {_faults(error)}") from None
    _check(rubric, source)
    return rubric


def _faults(error: ValidationError) -> str:
    return "; ".join(
        f"{'.'.join(map(str, e['loc'])) or 'file'}: {e['msg'].lower()}, got {e['input']!r:.60}"
        for e in error.errors()
    )


def _base(ref: object, source: str, above: tuple[str, ...]) -> Rubric:
    if not isinstance(ref, str):
        raise OptionError(f"{source}: extends: expected a rubric's name, got {shorten(ref)}")
    if source in above:
        raise OptionError(f"{source}: extends: goes round in a circle")
    try:
        return _load(ref, (*above, source))
    except OptionError as error:
        raise OptionError(f"{source}: extends: {error}") from None


def _check(rubric: Rubric, source: str) -> None:
    """Checks across fields: all parts that the shape needs are there."""
    for i, field in enumerate(rubric.reply_fields):
        place = f"{source}: reply_fields.{i}"
        # a reply is a pydantic model, whose attributes can't be fields
        taken = field.name in _TAKEN or hasattr(BaseModel, field.name)
        if taken or field.name in [f.name for f in rubric.reply_fields[:i]]:
            raise OptionError(f"{place}.name: expected a name of its own, got {field.name}")
        if (field.type == "choice") != bool(field.choices):
            raise OptionError(
                f"{place}.choices: expected choices with type choice and only there, got "
                f"{', '.join(field.choices) or 'none'} with {field.type}"
            )
    if rubric.shape == "category":
        if [c.number for c in rubric.categories] != [1, 2, 3, 4, 5]:
            raise OptionError(f"{source}: categories: expected the numbers 1 to 5 in order")
    elif rubric.shape == "pass":
        if not rubric.types:
            raise OptionError(f"{source}: types: expected at least one unsolvable type")
    else:
        _check_flags(rubric, source)
    from .reply import example_reply  # it imports rubrics

    for i, example in enumerate(rubric.examples):
        try:
            example_reply(rubric, example)
        except ValueError as error:
            why = _faults(error) if isinstance(error, ValidationError) else error
            raise OptionError(f"{source}: examples.{i}.verdict: {why}") from None


_TAKEN = ("reasoning", "grade", "category", "is_correct")
_NO_CODES = {"cr", "grade", "none"}
"""Names that can't be codes: metrics other than those of codes, and a label's word for none."""


def _check_flags(rubric: Rubric, source: str) -> None:
    codes = rubric.codes
    names = {code.lower() for code in codes}  # labels may write a code in any letter case
    if not 1 <= len(codes) <= MOST_CODES or len(names) != len(codes) or names & _NO_CODES:
        raise OptionError(
            f"{source}: criteria: expected 1 to {MOST_CODES} codes, each once in any letter case, "
            f"none of them CR, Grade or None, got {', '.join(codes) or 'none'}"
        )
    # a rubric with its own codes need not name one for the form
    named = [("form_code", rubric.form_code)] if "form_code" in rubric.model_fields_set else []
    named += [(f"rule_codes.{rule}", code) for rule, code in rubric.rule_codes.items()]
    for i, band in enumerate(rubric.bands):
        stated = (code for rule in band.flags for code in (*(rule.of or ()), *rule.without))
        named += [(f"bands.{i}.flags", code) for code in stated]
    for field, code in named:
        if code not in codes:
            raise OptionError(
                f"{source}: {field}: expected a code of the criteria ({', '.join(codes)}), "
                f"got {code}"
            )
    grades = rubric.scale.grades
    if len(set(grades)) != len(grades) or list(grades) != sorted(grades, reverse=True):
        raise OptionError(f"{source}: bands: expected different grades, best first, got {grades}")
    if rubric.scale.allowed(()) != (1.0,):
        raise OptionError(
            f"{source}: bands: without a flag, grade 1.0 and no other must be allowed"
        )
    sets = (flags for size in range(len(codes)) for flags in combinations(codes, size + 1))
    for flags, allowed in ((flags, rubric.scale.allowed(flags)) for flags in sets):
        got = f"{', '.join(map(str, allowed)) or 'no grade'} for {'+'.join(flags)}"
        if not allowed or 1.0 in allowed:
            raise OptionError(f"{source}: bands: expected grades below 1.0, got {got}")
        if rubric.codes_only and len(allowed) > 1:
            raise OptionError(f"{source}: bands: with codes_only expected one grade, got {got}")
