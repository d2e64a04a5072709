"""A judge that takes the prompt at its word, against the labels of the examples.

It flags a value whose source the prompt does not name (E6), and a value of another type than the
tool's specification where the prompt does not allow it (E5). Of what the labels call correct it
must flag nothing. Without the sentences that admit these values it flags as many as stated below,
as a real judge may that is not told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from apbjudge.judge import Task

from .test_prompts import ROOT, render, tasks


def correct(name: str) -> list[Task]:
    """The rows of an example file that its labels call correct."""
    path = ROOT / "examples" / "labels" / f"{name}.jsonl"
    labels = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    wrong = {(x["item_id"], x["tested_model"]) for x in labels if not x["is_correct"]}
    known = {(x["item_id"], x["tested_model"]) for x in labels}
    rows = ((task, (task.item.item_id, task.item.tested_model)) for task in tasks(name))
    return [task for task, key in rows if key in known - wrong]


def values(argument: Any) -> Iterator[Any]:
    """Every string and number in an argument."""
    if isinstance(argument, dict | list):
        for child in argument.values() if isinstance(argument, dict) else argument:
            yield from values(child)
    elif argument is not None and not isinstance(argument, bool):
        yield argument


def without_source(task: Task, prompt: str) -> list[str]:
    """The values of a proposal that have none of the sources that the prompt names."""
    item = task.item
    sources = [item.query, json.dumps(item.trajectory, ensure_ascii=False)]
    if "the system prompt, a file" in prompt:
        sources.append(item.system_prompt)
    if "the tool's own specification" in prompt and item.tools is not None:
        sources.append(item.tools.text)
    known = "\n".join(sources)
    missing: list[str] = []
    for value in (str(v) for call in item.prediction.calls for v in values(call.arguments)):
        is_calculated = re.fullmatch(r"[\d\s.,:()*/+-]+", value) and "plain calculation" in prompt
        is_prose = len(value.split()) > 1 and "free text that the tool asks for" in prompt
        is_placeholder = value == "PREVIOUS_RESULT" and "A placeholder for a value" in prompt
        if not (value in known or is_calculated or is_prose or is_placeholder):
            missing.append(value)
    return missing


def test_no_value_of_a_correct_step_lacks_a_source_that_the_prompt_names() -> None:
    rows = correct("step_wise")
    assert len(rows) == 21
    flagged = 0
    for task in rows:
        prompt = render(task).system
        assert without_source(task, prompt) == [], task.item.item_id
        strict = re.sub(r"(?m)^- Every id.*\n|; free text.*$", "", prompt)
        assert strict.count("\n") == prompt.count("\n") - 1
        flagged += bool(without_source(task, strict))
    assert flagged == 14


def ill_typed(task: Task, prompt: str) -> list[str]:
    """The parameters of a plan that hold text where the specification wants something else."""
    if "a description may stand for a number, date, list or object" in prompt:
        return []
    item, found = task.item, list[str]()
    for call in item.prediction.calls:
        tool = item.tools and item.tools.by_name.get(call.name)
        schema = ((tool and tool.parameters) or {}).get("properties", {})
        for name, value in (call.arguments or {}).items():
            kind = schema.get(name, {}).get("type")
            if isinstance(value, str) and kind in (
                "number",
                "integer",
                "array",
                "object",
                "boolean",
            ):
                found.append(f"{call.name}.{name}")
    return found


def test_descriptions_in_correct_plans_are_no_errors_of_type() -> None:
    rows = correct("holistic")
    assert len(rows) == 15
    prompts = [render(task).system for task in rows]
    assert not any(map(ill_typed, rows, prompts))
    untold = [re.sub(r"(?m)^- A value may be given or described.*\n", "", text) for text in prompts]
    assert sum(bool(ill_typed(task, text)) for task, text in zip(rows, untold, strict=True)) == 9
