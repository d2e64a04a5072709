"""A scripted stand-in for tested models and a critic: it answers from the examples.

It speaks the OpenAI chat-completions protocol, so that the whole way from cases to refined and
graded predictions can be tried and tested offline. It plans nothing: figures made with it say
nothing about any model.

    python examples/scripted_model.py --port 8001
    apbjudge predict examples/cases.jsonl --model hosted_vllm/cress-small@http://127.0.0.1:8001/v1

Asked as ``alder-large``, ``birch-medium`` or ``cress-small``, it gives the prediction that this
tested model has for the case in the examples. Asked to review an answer, it says what the human
label of that answer says. Asked for a final answer after a review, it takes over a prediction of
the examples that is correct, if there is one; ``cress-small`` heeds every second review only. Asked
for a substep of a plan in ``trajectories/slate_cases.jsonl``, it does what the reference does, but
is torn at the first call: three of five replies do without a tool there. Asked why a run failed, it
names that call. In ``trajectories/library/data`` and ``own_benchmarks/museum``, and in what
``apbjudge planbench generate`` makes by default, it searches for each tool of a known path, calls
it, and answers; asked to write for such a benchmark, it approves every tool and repeats the draft
of a text. In ``own_benchmarks/storeroom.py`` it plans and acts as the solution says, or as
its plan does; ``cress-small`` forgets the last call of every second task, and ``birch-medium`` of
one. The address is the first line on stdout; port 0 takes a free one.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from functools import cached_property
from itertools import count
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from own_benchmarks import storeroom
from scripted_judge import HERE, Handler, UnknownRequestError, least, serve

from apbjudge import Item, Row, planbench_generate
from apbjudge.agents.prediction.config import TestedModelSpec
from apbjudge.agents.prediction.prompts import CasePromptMaker
from apbjudge.trajectories.planbench.data import DataFolder, PlanbenchTool, Query
from apbjudge.trajectories.planbench.single_step import load_single_step

FILES = ("holistic", "step_wise", "tool_extraneous", "tool_broken", "unsolvable", "efficiency")
HESITANT = "cress-small"
_TURNS = count()


class Known(NamedTuple):
    """A prediction of the examples with what people say of it."""

    item: Item
    label: dict[str, Any]


class Examples:
    """The predictions of the examples by what a prompt shows of their cases."""

    def __init__(self, folder: Path, prompts: str = "neutral@1") -> None:
        self._maker = CasePromptMaker.of(prompts, (folder,), TestedModelSpec(model="scripted"))
        self._folder = folder
        self._by_prompt: dict[str, list[Known]] = {}
        for known in self._all:
            prompt = self._maker.make(known.item)
            self._by_prompt.setdefault(_text(prompt.messages()), []).append(known)

    @cached_property
    def _all(self) -> list[Known]:
        return [
            Known(item, labels[item.item_id, item.tested_model])
            for name in FILES
            for labels in [self._labels(name)]
            for item in _items(self._folder / f"{name}.jsonl")
        ]

    def _labels(self, name: str) -> dict[tuple[str, str], dict[str, Any]]:
        rows = _lines(self._folder / "labels" / f"{name}.jsonl")
        return {(row["item_id"], row["tested_model"]): row for row in rows}

    def reply(self, messages: list[dict[str, Any]], model: str) -> str:
        """The reply to a request.

        Raises:
            UnknownRequestError: If it is about no example.
        """
        if "<retrieve_tools>" in str(messages[0]["content"]):
            return self._search(messages)
        text = _text(messages)
        if "You keep a storeroom" in text:
            return _keep(messages, model)
        if "assistant" in {message["role"] for message in messages}:
            return self._final(messages, model)
        if substep := re.search(r"Do substep ([0-9.]+) now", text):
            return self._action(text, substep[1])
        if (known := self._by_prompt.get(text)) is not None:
            return _of_model(known, model).item.response
        return self._review(text)

    @cached_property
    def _worlds(self) -> list[dict[str, Any]]:
        folders = [
            self._folder / "trajectories" / "library" / "data",
            self._folder / "own_benchmarks" / "museum",
        ]
        return [_world(folder) for folder in folders]

    @cached_property
    def _generated(self) -> list[dict[str, Any]]:
        """The benchmarks that ``apbjudge planbench generate`` makes without further options."""
        worlds: list[dict[str, Any]] = []
        for domain in ("clinic", "freight"):
            with TemporaryDirectory() as folder:
                planbench_generate(domain=domain, out=folder)
                worlds.append(_world(Path(folder)))
        return worlds

    def _search(self, messages: list[dict[str, Any]]) -> str:
        """The next action on the way to an answer: a search, a call, the answer."""
        asked = str(messages[1]["content"])
        if asked in self._single:
            return _single_step(*self._single[asked], len(messages))
        world, query = next(
            (
                (world, query)
                for worlds in (lambda: self._worlds, lambda: self._generated)
                for world in worlds()
                for query in world["queries"]
                if query["query_text"] == asked
            ),
            (None, None),
        )
        if world is None or query is None:
            raise UnknownRequestError("this question is none of the examples")
        tasks = {task["task_id"]: task["one_available_path"] for task in world["tasks"]}
        tools = {tool["name"]: tool for tool in world["baseline_tools"]}
        path, done = tasks[query["task_id"]], (len(messages) - 2) // 2
        if done >= 2 * len(path):
            return f"<final_answer>{query['correct_answer']}</final_answer>"
        tool = tools[path[done // 2]]
        if done % 2 == 0:
            request = {
                "meta_tool": "by_io_info",
                "input_information": tool["input_datatypes"],
                "output_information": tool["output_datatype"],
            }
            return f"<retrieve_tools>{json.dumps(request)}</retrieve_tools>"
        record = next(
            record
            for record in world["database"]["order_cases"].values()
            if str(record[query["target_datatype"]]) == query["correct_answer"]
            and all(str(record[name]) in query["query_text"] for name in query["input_datatypes"])
        )
        arguments = {
            name: record[datatype]
            for name, datatype in tool["surface_argument_to_datatype"].items()
        }
        return (
            f"<tool_call>{json.dumps({'name': tool['name'], 'arguments': arguments})}</tool_call>"
        )

    @cached_property
    def _single(self) -> dict[str, tuple[PlanbenchTool, Query]]:
        """Single-step tasks of the museum by what they ask."""
        data = load_single_step(DataFolder(self._folder / "own_benchmarks" / "museum"))
        return {q.query_text: (data.baseline[name], q) for name, q in data.queries.items()}

    @cached_property
    def _plans(self) -> list[dict[str, Any]]:
        return _lines(self._folder / "trajectories" / "slate_cases.jsonl")

    def _action(self, text: str, substep: str) -> str:
        """What is done for a substep of a plan."""
        known = [case for case in self._plans if case["query"] in text]
        case = min(known, key=lambda case: text.index(case["query"]), default={})  # then a memory's
        plan = case.get("plan", ())
        step = next((each for each in plan if each["step"] == substep), None)
        if step is None:
            raise UnknownRequestError("this plan is of no example")
        first = next(each["step"] for each in plan if each.get("tool"))
        if substep == first and next(_TURNS) % 5 < 3:
            return json.dumps({"tool": None})
        return json.dumps({"tool": step.get("tool"), "arguments": step.get("arguments", {})})

    def _final(self, messages: list[dict[str, Any]], model: str) -> str:
        """A correct prediction for the case, or the draft again."""
        known = self._by_prompt.get(_text(messages[:2]))
        if known is None:
            raise UnknownRequestError("this prompt is about no example")
        draft = str(messages[2]["content"])
        right = [each.item.response for each in known if each.label["is_correct"]]
        heeds = model != HESITANT or Random(draft).random() < 1 / 2
        return right[0] if right and heeds else draft

    def _review(self, text: str) -> str:
        """What the label of the answer says that a review is asked of; or why a run failed."""
        if "state rules for the next attempt" in text:
            return "The first call was left out. Make it."
        known = [
            each
            for each in self._all
            if each.item.query in text and each.item.response.strip() in text
        ]
        if not known:
            raise UnknownRequestError("this prompt is about no example")
        label = max(known, key=lambda each: len(each.item.response)).label
        return f"{label['note']}\n\nVERDICT: {'KEEP' if label['is_correct'] else 'CHANGE'}"


def _single_step(tool: PlanbenchTool, query: Query, n_messages: int) -> str:
    """A search by the output, a call of the one tool that is needed, the answer."""
    if n_messages == 2:
        request = {"meta_tool": "by_output_info", "output_information": tool.output_datatype}
        return f"<retrieve_tools>{json.dumps(request)}</retrieve_tools>"
    if n_messages == 4:
        datatypes = tool.surface_argument_to_datatype.items()
        arguments = {name: query.input_values[datatype] for name, datatype in datatypes}
        call = {"name": tool.name, "arguments": arguments}
        return f"<tool_call>{json.dumps(call)}</tool_call>"
    return f"<final_answer>{query.correct_answer}</final_answer>"


def _generated_text(text: str) -> str:
    """A text of a generated benchmark: the draft with a word more; every look-up is approved."""
    drafts = re.search(r"The (?:draft|tools):\n<data[^>]*>\n(.*?)\n</data", text, re.DOTALL)
    if drafts is None:
        return json.dumps(
            dict.fromkeys(("look_up", "plausible", "new_information", "no_reformat"), True)
        )
    if '"query"' in text:
        return json.dumps({"query": f"Please help: {drafts[1]}"})
    tools = json.loads(drafts[1]).items()
    return json.dumps({"descriptions": {label: f"{draft} ({label[0]})" for label, draft in tools}})


def _world(folder: Path) -> dict[str, Any]:
    return {file.stem: json.loads(file.read_text("utf-8")) for file in folder.glob("*.json")}


def _keep(messages: list[dict[str, Any]], model: str) -> str:
    """What a storekeeper plans, does next, or says of a plan."""
    text, last = _text(messages), str(messages[-1]["content"])
    names = list(storeroom.TASKS)
    task = next((name for name in names if storeroom.TASKS[name][0] in text), None)
    if task is None:
        raise UnknownRequestError("this task is none of the storeroom's")
    calls, at = storeroom.TASKS[task][1], names.index(task)
    forgets = {"cress-small": at % 2 == 0, "birch-medium": at == 1}.get(model, False)
    known = calls[:-1] if forgets else calls
    if "assistant" in {message["role"] for message in messages}:
        return _plan(calls, text)
    if "You plan how a task" in text:
        return _plan(known, text)
    if "You carry out a task" not in text:
        is_whole = text.count('"reason"') > len(calls)
        return f"Is every call there?\n\nVERDICT: {'KEEP' if is_whole else 'CHANGE'}"
    if "This plan was made" in text:
        known = calls[: str(messages[0]["content"]).partition("This plan")[2].count('"reason"')]
    done = last.count('"role": "assistant"')
    if done < len(known):
        name, arguments = known[done]
        call = {"type": "function", "function": {"name": name, "arguments": arguments}}
        return json.dumps({"role": "assistant", "thought": "next", "tool_calls": [call]})
    said = " ".join(storeroom.SAID.get(task, ["Done."]))
    return json.dumps({"role": "assistant", "content": said, "tool_calls": []})


def _plan(calls: list[tuple[str, dict[str, Any]]], text: str) -> str:
    """Calls as a plan: with values where that is asked for, else with descriptions of them."""
    key = "arguments" if '"$from"' in text else "parameter_description"
    chain = [{"name": n, key: arguments, "reason": "it is asked for"} for n, arguments in calls]
    return json.dumps({"plan": "call by call", "tool_chain": chain})


def _of_model(known: list[Known], model: str) -> Known:
    for each in known:
        if each.item.tested_model == model:
            return each
    names = ", ".join(each.item.tested_model for each in known)
    raise UnknownRequestError(f"the examples have predictions of {names}, not of {model}")


def _items(path: Path) -> Iterator[Item]:
    for number, row in enumerate(_lines(path), start=1):
        yield Row(row, number).to_item()


def _lines(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def _text(messages: list[dict[str, Any]]) -> str:
    """The texts of messages, without pictures."""
    contents = [message["content"] for message in messages]
    parts = [part for c in contents for part in ([{"text": c}] if isinstance(c, str) else c)]
    return "\n".join(part["text"] for part in parts if "text" in part)


class TestedModelHandler(Handler):
    """Answers ``POST …/chat/completions`` with plans, reviews and final answers."""

    examples: Examples

    def answer_text(self, request: dict[str, Any]) -> str:
        """The text of the reply; the least where no asked_model is asked, as by a doctor."""
        if len(request["messages"]) == 1:
            return json.dumps(least(request))
        if "a test of how well assistants" in str(request["messages"][0]["content"]):
            return _generated_text(_text(request["messages"]))
        return self.examples.reply(request["messages"], request["model"])


def main() -> None:
    parser = argparse.ArgumentParser(description="Scripted stand-in for tested models.")
    parser.add_argument("--port", type=int, default=8001, help="0 takes a free one")
    parser.add_argument("--examples", type=Path, default=HERE, help="folder of the examples")
    parser.add_argument("--prompts", default="neutral@1", help="the prompt set it is asked with")
    options = parser.parse_args()
    TestedModelHandler.examples = Examples(options.examples, options.prompts)
    serve(options.port, TestedModelHandler)


if __name__ == "__main__":
    main()
