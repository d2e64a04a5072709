"""Prompts of judges, rendered from a rubric, an item and its findings.

Parts that many requests share come first (rubric, then the case, then the prediction), so that
replies of several tested models to one case hit the prefix caches of providers and servers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import cache, cached_property, lru_cache
from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import orjson

from ..records import Finding, Item, Record
from ..records.tools import pretty
from ..rubrics import Rubric
from ..rubrics.reply import example_reply
from .base import FINDINGS_PER_RULE
from .checks.names import ending_calls
from .checks.rules import RULES, ending_line, fact_line
from .fence import fence
from .images import NO_FILES, ImagePart, ShownFiles, content_of

if TYPE_CHECKING:
    from jinja2 import Template
    from jinja2.sandbox import ImmutableSandboxedEnvironment


class Prompt(Record):
    """The prompt of a judge.

    Attributes:
        system: Rubric and rules: the same for every item of a run.
        case: The case: the same for every tested model.
        files: Files of the case; the pictures are between the two texts.
        prediction: The prediction, with verified facts.
    """

    system: str
    case: str
    files: ShownFiles = NO_FILES
    prediction: str

    @cached_property
    def parts(self) -> tuple[str | ImagePart, ...]:
        """The user's message: texts, and pictures in their places, below their labels."""
        if not self.files.images:
            return (f"{self.case}\n\n{self.prediction}",)
        pictures = (part for image in self.files.images for part in (image.label, image) if part)
        return (self.case, *pictures, self.prediction)

    def messages(self) -> list[dict[str, Any]]:
        """As chat messages: plain text, or content parts when there are pictures."""
        user = {"role": "user", "content": content_of(self.parts)}
        return [{"role": "system", "content": self.system}, user]


class PromptMaker:
    """Renders the prompts of a run; the part that all items share is rendered once per process.

    Args:
        blind: True to leave out the reference.
        evidence: True to show the judge the proven findings; suspected ones are never shown.
    """

    def __init__(self, *, blind: bool = False, evidence: bool = True) -> None:
        self._blind = blind
        self._evidence = evidence

    def make(
        self,
        item: Item,
        rubric: Rubric,
        *,
        template: str = "judge@1",
        findings: Iterable[Finding] = (),
        rules: Mapping[str, str] = MappingProxyType({}),
        files: ShownFiles = NO_FILES,
    ) -> Prompt:
        """The prompt for one item.

        Args:
            item: The item.
            rubric: The rubric to judge by.
            template: Folder of templates, with version.
            findings: Facts that rules have proven or suspect.
            rules: The sentences for a protocol's own rules.
            files: The item's files to show, already read.
        """
        sentences = {**RULES, **rules}
        proven = [f for f in findings if f.certainty == "proven" and self._evidence]
        facts = [fact_line(finding, sentences) for finding in proven]
        if rubric.shape == "category" and self._evidence:
            facts += [ending_line(call.where) for call in ending_calls(item)[:FINDINGS_PER_RULE]]
        prediction = _template(template, "prediction").render(
            fence=fence,
            horizon=item.condition.horizon,
            unsolvable_type=item.condition.unsolvable_type,
            response=item.response,
            # a rubric with its own codes may have none for the form
            form_code=rubric.form_code if rubric.form_code in rubric.codes else None,
            form_demanded=item.format_demanded,
            form=item.form,
            facts="\n".join(dict.fromkeys(facts)),
        )
        return Prompt(
            system=self.system(rubric, template),
            case=_case_text(item, rubric, template, files, blind=self._blind),
            files=files,
            prediction=prediction,
        )

    def system(self, rubric: Rubric, template: str) -> str:
        """The system message."""
        return _system(rubric, template, blind=self._blind, evidence=self._evidence)


@lru_cache(maxsize=64)
def _system(rubric: Rubric, template: str, *, blind: bool, evidence: bool) -> str:
    principles = (*(() if blind else rubric.reference_principles), *rubric.principles)
    examples = [(e, example_reply(rubric, e).model_dump_json()) for e in rubric.examples]
    text = _template(template, "system").render(
        rubric=rubric, principles=principles, evidence=evidence, examples=examples, fence=fence
    )
    return text.strip()


def _case_text(item: Item, rubric: Rubric, template: str, files: ShownFiles, *, blind: bool) -> str:
    condition = item.condition
    replacement = condition.replacement
    unsolvable = condition.unsolvable_type if rubric.shape == "pass" else None
    if item.tools is None:
        tools = ""
    else:
        tools = item.tools.text if item.tools.tools else "\n".join(sorted(item.tools.names))
    return (
        _template(template, "case")
        .render(
            fence=fence,
            form=item.form,
            horizon=condition.horizon,
            tools=tools,
            has_tool_list=item.tools is not None,
            has_definitions=item.tools is not None and bool(item.tools.tools),
            system_prompt=item.system_prompt,
            query=item.query,
            files=files.values,
            trajectory=pretty(item.trajectory) if item.trajectory else "",
            extraneous="\n".join(condition.extraneous),
            broken_tool=condition.broken_tool if rubric.shape == "category" else None,
            broken_tool_name=condition.broken_tool or "",
            replacement=replacement.name if replacement else "",
            unsolvable_type=condition.unsolvable_type,
            claims={} if item.construction is None else item.construction.claims,
            pass_rule=rubric.types.get(unsolvable) if unsolvable else None,
            reference="" if blind or item.reference is None else item.reference.text,
        )
        .strip()
    )


_TEMPLATES = resources.files(__name__.rpartition(".")[0]).joinpath("templates")


@cache
def _environment() -> ImmutableSandboxedEnvironment:
    """The environment of all templates; a judge by rule, which has no prompts, never loads it."""
    from jinja2 import FunctionLoader, StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Environment(ImmutableSandboxedEnvironment):
        """Calls our own fence, several times per prompt, without the check for safety."""

        def call(self, context: Any, obj: Any, *args: Any, **kwargs: Any) -> Any:
            if obj is fence:
                return fence(*args)
            return super().call(context, obj, *args, **kwargs)

    return Environment(
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
        loader=FunctionLoader(lambda name: _TEMPLATES.joinpath(name).read_text(encoding="utf-8")),
    )


@lru_cache(maxsize=16)
def _template(folder: str, name: str) -> Template:
    return compiled(_TEMPLATES.joinpath(folder, f"{name}.j2").read_text(encoding="utf-8"))


def compiled(source: str) -> Template:
    """A template that can neither change nor reach anything except its values.

    Raises:
        jinja2.TemplateSyntaxError: If it can't be read.
    """
    template = _environment().from_string(source)
    template.globals = dict(template.globals)  # copied for every prompt: a plain dict is quicker
    return template


@cache
def template_digest(folder: str) -> str:
    """SHA-256 over the templates of a folder and those that all folders share, in hex."""
    files = (f for each in (folder, "shared") for f in _TEMPLATES.joinpath(each).iterdir())
    parts = {file.name: file.read_text(encoding="utf-8") for file in files}
    return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()


def rubric_text(rubric: Rubric) -> str:
    """A rubric as a judge gets it."""
    lines = [f"{rubric.ref}: {rubric.title}\nsha256 {rubric.digest}\n"]
    lines.append(PromptMaker().system(rubric, "judge@1"))
    for kind, rule in rubric.types.items():
        lines.append(f"\n{kind}: {rule.situation}")
        lines += (f"  passes: {text}" for text in rule.passes)
        lines += (f"  fails: {text}" for text in rule.fails)
    return "\n".join(lines) + "\n"
