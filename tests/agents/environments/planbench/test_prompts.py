"""Prompts of a user's files: byte for byte, and what is wrong with them by name."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from apbjudge.agents.environments.planbench import (
    EpisodeConfig,
    PlanBenchDatabase,
    PlanBenchDialogue,
    PlanBenchRules,
    load_database,
)
from apbjudge.agents.environments.planbench.database import inputs_of
from apbjudge.agents.environments.simulate import simulate
from apbjudge.errors import ApbJudgeError
from apbjudge.llm.base import Completion, ScriptedClient

from .world import EXAMPLE, RECORDS, Agent, rules

INVENTED = {
    "system_runtime_prompt": "Be an agent in {domain_context}\n{max_steps} steps. "
    "{retrieve_request_instructions}|{tool_call_format_instructions}|{tool_call_identifier_rules}",
    "domain_context_retail": "a museum ~ é\n",
    "error_label_format": "No tag, {current_attempt}/{max_label_errors}. { x }",
    "error_retrieve_json_format": "No search, {current_attempt}/{max_retrieval_errors}.",
    "error_retrieve_semantic": "Bad search. {retrieve_request_instructions}",
    "error_call_json_format": "No call, {current_attempt}/{max_call_errors}.",
    "error_call_tool_not_available": "No such tool.\n",
    "error_call_wrong_inputs": "{tool_name} does not take {provided_arguments}.",
    "error_call_missing_inputs": "Inputs are missing.",
    "error_call_blocked": "Blocked, {which} is not read.",
}
TEXTS: dict[str, Any] = {
    "prefix": "Reply:\n",
    "wrong_answer": "Go on.",
    "instructions": {
        "retrieve_request_instructions": "Search like {this}.",
        "tool_call_format_instructions": "Call.",
        "tool_call_identifier_rules": "- By name.",
    },
    "no_match": {"by_inputs_2": "No tool takes both."},
    "search": {
        "text": "Tools.\n{content}",
        "content": {"asked": "{request}", "note": "{note}", "n": "{tool_count}", "of": ["{tools}"]},
        "tool": {"strict": True, "name": "{name}", "is": "{description}", "in": "{parameters}"},
    },
    "result": {
        "text": "Done.\n{content}",
        "content": {"call": "{request}", "ok": "{success}", "value": "{output_value}"},
    },
    "no_result": {
        "error": "Nothing for {inputs}.",
        "text": "{error}\n{content}",
        "content": {"call": "{request}", "error": "{error}", "value": "{output_value}"},
    },
}


def toml(value: Any) -> str:
    """A JSON value as TOML."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{json.dumps(k)} = {toml(v)}' for k, v in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    return json.dumps(value)


def write(folder: Path, prompts: dict[str, str], texts: dict[str, Any]) -> dict[str, Any]:
    """Writes the files; returns the settings that name them."""
    (folder / "prompts").mkdir()
    for name, text in prompts.items():
        (folder / "prompts" / f"{name}.txt").write_text(text, "utf-8")
    lines = [f"{name} = {toml(value)}" for name, value in texts.items()]
    (folder / "texts.toml").write_text("\n".join(lines), "utf-8")
    return {"prompts": folder / "prompts", "runtime_texts": folder / "texts.toml"}


def test_the_example_of_runtime_texts_has_their_form(tmp_path: Path) -> None:
    texts = EXAMPLE.parent / "runtime_texts.toml"
    settings = write(tmp_path, INVENTED, TEXTS) | {"runtime_texts": texts}
    agent = Agent(rules(**settings), "m1")
    agent.search("ticket", "room")
    assert agent.told.startswith("From the environment:\nTools:\n{")


def test_what_agents_read_is_in_the_files(tmp_path: Path) -> None:
    """Slots are replaced once, all else stays; what a value holds is no slot."""
    settings = write(tmp_path, INVENTED, TEXTS)
    agent = Agent(rules(**settings, max_turns=50, max_faults=9, explore=1), "m1")
    system, query = agent.dialogue.messages
    assert system["content"] == (
        "Be an agent in a museum ~ é\n\n50 steps. Search like {this}.|Call.|- By name."
    )
    assert query["content"] == agent.dialogue.environment.query.query_text

    def answer(reply: str) -> str:
        agent.reply(reply)
        return agent.told.removeprefix("Reply:\n")

    assert answer("hm") == "No tag, 1/9. { x }"
    assert answer("<retrieve_tools>?</retrieve_tools>") == "No search, 1/9."
    bad = '<retrieve_tools>{"meta_tool": "x"}</retrieve_tools>'
    assert answer(bad) == "Bad search. Search like {this}."
    assert answer("<tool_call>?</tool_call>") == "No call, 1/9."
    unnamed = '<tool_call>{"tool_id": "T1", "arguments": {}}</tool_call>'
    assert answer(unnamed) == "No such tool.\n"
    agent.search("ticket", "room")
    asked = {"domain": "retail", "meta_tool": "by_inputs", "input_information": ["ticket", "room"]}
    nothing = {"asked": asked, "note": "No tool takes both.", "n": 0, "of": [[]]}
    assert agent.told == f"Reply:\nTools.\n{json.dumps(nothing, indent=2)}"
    agent.search("ticket", output="visit")
    shown = json.loads(agent.told.removeprefix("Reply:\nTools.\n"))
    assert (shown["note"], shown["n"]) == (None, len(shown["of"][0]))
    assert [*shown["of"][0][0]] == ["strict", "name", "is", "in"]
    agent.call("visit_of_ticket", **{"{inputs}": 1})
    assert agent.told == "Reply:\nvisit_of_ticket does not take ['{inputs}']."
    agent.call("visit_of_ticket", ticket_ref="T9 {error}")
    assert agent.told.startswith('Reply:\nNothing for ticket_ref="T9 {error}".\n{\n')
    call = {
        "tool_name": "visit_of_ticket",
        "arguments": {"ticket_ref": RECORDS["monday"]["ticket"]},
    }
    value = RECORDS["monday"]["visit"]
    done = {"arguments": call["arguments"], "why": "é", "name": "visit_of_ticket"}
    text = answer(f"<tool_call>{json.dumps({**call, 'why': 'é'})}</tool_call>")
    assert json.loads(text.removeprefix("Done.\n")) == {"call": done, "ok": True, "value": value}
    assert '"why": "é"' in text
    assert answer("<final_answer>?</final_answer>") == "Go on."
    agent.answer("?")
    assert agent.dialogue.messages[-1]["role"] == "assistant"


def test_the_manifest_has_the_hash_of_each_file(tmp_path: Path) -> None:
    settings = write(tmp_path, INVENTED, TEXTS)
    client = ScriptedClient(lambda request: "<final_answer>?</final_answer>")
    options = [f"{name}={path}" for name, path in settings.items()]
    run = simulate(
        EXAMPLE, model="hosted_vllm/m", client=client, options=options, out=tmp_path / "run"
    )
    files = {file.name: file for file in (*settings["prompts"].iterdir(), tmp_path / "texts.toml")}
    del files["error_call_blocked.txt"]
    hashes = {name: sha256(file.read_bytes()).hexdigest() for name, file in files.items()}
    assert run.manifest["prompt_files"] == hashes
    identity = run.manifest["identity"]["benchmark"]
    assert identity != simulate(EXAMPLE, model="hosted_vllm/m", client=client).manifest["identity"]


def _without(name: str) -> dict[str, str]:
    return {key: text for key, text in INVENTED.items() if key != name}


@pytest.mark.parametrize(
    ("prompts", "texts", "message"),
    [
        (_without("error_call_missing_inputs"), TEXTS, "error_call_missing_inputs.txt: can't be"),
        (_without("domain_context_retail"), TEXTS, "domain_context_retail.txt: can't be read"),
        (
            INVENTED | {"error_label_format": "{current_attempt}"},
            TEXTS,
            "expected {current_attempt}, {max_label_errors}, and there is no {max_label_errors}",
        ),
        (
            INVENTED | {"error_call_missing_inputs": "{tool_name}"},
            TEXTS,
            "error_call_missing_inputs.txt: expected no slots, got the slot {tool_name}",
        ),
        (INVENTED, TEXTS | {"more": ""}, "texts.toml: field more: "),
        (
            INVENTED,
            TEXTS | {"no_match": {"by_input": "x"}},
            "texts.toml: no_match: expected by_output_info, by_inputs_1, ",
        ),
        (
            INVENTED,
            TEXTS | {"result": TEXTS["result"] | {"text": "Done."}},
            "texts.toml: result.text: expected {content}, and there is no {content}",
        ),
        (
            INVENTED,
            TEXTS | {"result": {"text": "{content}", "content": {"of": ["{note}"]}}},
            "result.content: expected {request}, {success}, {output_value}, got the slot {note}",
        ),
    ],
)
def test_a_bad_file_is_one_message(
    tmp_path: Path, prompts: dict[str, str], texts: dict[str, Any], message: str
) -> None:
    settings = write(tmp_path, prompts, texts)
    with pytest.raises(ApbJudgeError) as caught:
        rules(**settings)
    assert message in str(caught.value)


def test_prompts_go_with_their_runtime_texts(tmp_path: Path) -> None:
    with pytest.raises(ApbJudgeError, match="--with prompts: expected together with runtime_texts"):
        simulate(EXAMPLE, model="hosted_vllm/m", options=[f"prompts={tmp_path}"])


# The authors' runtime -----------------------------------------------------------------------------

CHECKOUT = os.environ.get("PLANBENCH_XL", "")
"""A checkout of the authors' repository, which has no licence and is not shipped."""
FAULTS = 9


def authors_runner(folder: Path, generate: Callable[[Any], str]) -> Any:
    """Their runner, as their ``run.py`` puts it together, with a scripted model."""
    config_of: Any = import_module("env.core.config")
    runner: Any = import_module("env.runtime.runner")
    parts: Any = SimpleNamespace(
        **{
            name: getattr(import_module(f"env.{module}"), name)
            for name, module in {
                "DomainToolExecutor": "domains.executor",
                "EventController": "events.controller",
                "NoisyToolAugmenter": "events.noisy",
                "SemanticRetriever": "retriever.semantic",
                "PromptManager": "runtime.prompts",
            }.items()
        }
    )
    root = Path(CHECKOUT) / "src"
    runs = root / "env" / "config" / "runs" / "retail" / "gpt-5.4"
    changed: dict[str, Any] = {f"runtime.max_{kind}_errors": FAULTS for kind in ("label", "call")}
    changed |= {"runtime.max_retrieval_errors": FAULTS, "output.root_dir": str(folder)}
    changed |= {"runtime.incorrect_final_answer_feedback_budget": 1}
    config: Any = config_of.load_config(runs / "retail_gpt5.4_feedback.yaml", cli_overrides=changed)
    config.runtime.max_concurrency = 1
    baseline = runner.load_all_baseline_tools(root / "data")
    noisy, by_domain = runner.load_noisy_tools_file(config.data.noisy_tools_file, domain="retail")
    blockers, blockers_by_domain = runner.load_all_blocker_tools(root / "data")
    datatypes = runner.load_all_datatypes(root / "data")
    limit = config.noise.max_total_tools
    return runner.EnvRunner(
        config=config,
        llm_client=type("Model", (), {"generate": staticmethod(generate)})(),
        retriever=parts.SemanticRetriever(baseline, datatypes, config.retriever.embedding_model),
        event_controller=parts.EventController(blockers_by_domain, False, None),
        noisy_tool_augmenter=parts.NoisyToolAugmenter(
            by_domain, config.noise.mode, max_total_tools=limit
        ),
        tool_executor=parts.DomainToolExecutor(runner.load_all_databases(root / "data")),
        prompt_manager=parts.PromptManager(config.prompt.prompt_dir),
        tool_registry={**baseline, **noisy, **blockers},
    )


def authors_texts(runner: Any) -> dict[str, Any]:
    """The texts in their code, taken from what it writes for values that can be told apart."""
    schema: Any = import_module("env.retriever.schema")

    def form(message: str, *slots: tuple[str, ...], **replaced: str) -> dict[str, Any]:
        start, _, rest = message.partition("```json\n")
        content, _, end = rest.rpartition("\n```")
        value = json.loads(content)
        for *place, last in slots:
            inner = value
            for name in place:
                inner = inner[name]
            inner[last] = f"{{{'note' if last == 'retriever_note' else last}}}"
        for text, slot in replaced.items():
            start = start.replace(text, slot)
        return {"text": f"{start}```json\n{{content}}\n```{end}", "content": value}

    tool: dict[str, Any] = {
        "name": "N",
        "description": "D",
        "strict": True,
        "parameters": {},
        "type": "function",
    }
    result = SimpleNamespace(request={}, model_retriever_note=None)
    search = runner._format_retrieve_feedback(result, [tool])
    (shown,) = json.loads(search.partition("```json\n")[2].rpartition("\n```")[0])[
        "retrieval_result"
    ]["tools"]
    call = {"name": next(iter(runner.tool_registry)), "arguments": {"a": 1}}
    done = SimpleNamespace(tool_type="noisy", output_value=1, success=True)
    nothing = SimpleNamespace(tool_type="baseline", output_value=None, success=True)
    error = runner._format_missing_output_feedback(call, nothing).partition("\n```json")[0]
    in_result = ("tool_result", "output_value")
    notes: dict[str, str] = {}
    for kind, phrases in {
        "by_inputs_1": ["order item id"],
        "by_inputs_2": ["refund time", "variant id"],
        "by_io_info_1": ["refund time"],
        "by_io_info_2": ["refund time", "variant id"],
    }.items():
        asked = {"domain": "retail", "meta_tool": kind[:-2], "input_information": phrases}
        asked |= {"output_information": "refund time"} if "io" in kind else {}
        note = runner.retriever.retrieve_tools(asked).model_retriever_note
        notes |= {kind: note} if note else {}
    return {
        "prefix": runner._append_turn_messages([], "", "|")[1]["content"].removesuffix("|"),
        "wrong_answer": runner._format_incorrect_final_answer_feedback(),
        "instructions": {
            "retrieve_request_instructions": schema.format_retrieve_request_instructions(),
            "tool_call_format_instructions": runner._build_tool_call_format_instructions(),
            "tool_call_identifier_rules": runner._build_tool_call_identifier_rules(),
        },
        "no_match": notes,
        "search": {
            **form(
                search,
                ("request",),
                ("retriever_note",),
                ("retrieval_result", "tool_count"),
                ("retrieval_result", "tools"),
            ),
            "tool": {
                name: f"{{{name}}}" if name in {"name", "description", "parameters"} else value
                for name, value in shown.items()
            },
        },
        "result": form(
            runner._format_tool_feedback(call, done),
            ("request",),
            ("tool_result", "success"),
            in_result,
        ),
        "no_result": {
            **form(
                runner._format_missing_output_feedback(call, nothing),
                ("request",),
                ("error",),
                in_result,
                **{error: "{error}"},
            ),
            "error": error.replace("a=1", "{inputs}"),
        },
    }


def script(database: PlanBenchDatabase, query_id: str) -> Iterator[str]:
    """Replies with every fault and every kind of answer, for a query of the released data."""
    query = database.data.queries[query_id]
    path = database.data.tasks[query.task_id].one_available_path
    first = database.tools[path[0]]
    record = max(
        database.records.values(),
        key=lambda record: sum(str(record[d]) in query.query_text for d in query.input_datatypes),
    )

    def tag(name: str, content: Any) -> str:
        return f"<{name}>{content if isinstance(content, str) else json.dumps(content)}</{name}>"

    def search(inputs: list[str], output: str = "") -> str:
        kind = "by_io_info" if inputs and output else "by_inputs" if inputs else "by_output_info"
        asked: dict[str, Any] = {"meta_tool": kind}
        asked |= {"input_information": inputs} if inputs else {}
        asked |= {"output_information": output} if output else {}
        return "Next.\n" + tag("retrieve_tools", asked)

    yield from ("hm", "<tool_call>{}</tool_call><final_answer>x</final_answer>")
    yield from (tag("retrieve_tools", "?"), tag("retrieve_tools", {"meta_tool": " "}))
    yield tag("retrieve_tools", {"meta_tool": "by_inputs", "input_information": []})
    yield search(["refund  time", "variant id"])
    yield search(["refund time"], "refund time")
    yield search(["refund time", "variant id"], "refund time")
    yield search(["é {name}"])
    yield from (tag("tool_call", "?"), tag("tool_call", {"arguments": {}}))
    yield tag("tool_call", {"tool_id": "T1", "arguments": {}})
    yield tag("tool_call", {"name": "no_such_tool", "arguments": {"a": [1, None]}})
    inputs = [*inputs_of(first)]
    yield search(inputs, first.output_datatype)
    yield search([], query.target_datatype)
    yield tag("tool_call", {"name": first.name, "arguments": {"{tool_name}": 1, "b": "é"}})
    later = next(
        tool
        for tool in database.data.baseline.values()
        if tool.output_datatype == query.target_datatype
        and not tool.input_datatypes & {*query.input_datatypes}
    )
    values = dict.fromkeys(later.surface_argument_to_datatype, "x")
    yield tag("tool_call", {"name": later.name, "arguments": values})
    wrong = dict.fromkeys(first.surface_argument_to_datatype, 'none " é')
    yield tag("tool_call", {"name": first.name, "arguments": wrong})
    right = {a: record[d] for a, d in first.surface_argument_to_datatype.items()}
    for kind in database.siblings[first.name]:
        names = {d: a for a, d in kind.surface_argument_to_datatype.items()}
        arguments = {names[d]: record[d] for d in first.input_datatypes}
        yield tag("tool_call", {"arguments": arguments, "name": kind.name})
    yield tag("tool_call", {"tool_name": first.name, "arguments": right, "why": {"a": 1.50}})
    yield "<final_answer>no</final_answer>"
    yield "<final_answer>no</final_answer>"


@pytest.mark.skipif(not CHECKOUT, reason="PLANBENCH_XL names no checkout")
def test_requests_are_those_of_the_authors_runtime(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Query 1, every fault and every kind of answer: the same bytes."""
    monkeypatch.setattr(sys, "path", [str(Path(CHECKOUT) / "src"), *sys.path])
    data = Path(CHECKOUT) / "src" / "data" / "retail"
    database = load_database(data)
    query_id = next(iter(database.data.queries))
    replies = [*script(database, query_id)]
    theirs: list[Any] = []

    def generate(history: Any) -> str:
        theirs.append(json.loads(json.dumps(history)))
        return replies[len(theirs) - 1]

    runner = authors_runner(tmp_path / "theirs", generate)
    settings = write(tmp_path, {}, authors_texts(runner))
    settings["prompts"] = Path(CHECKOUT) / "src" / "env" / "prompt"
    load_queries: Any = import_module("env.runtime.runner").load_queries
    runner.run(load_queries(data / "queries.json")[:1], {})
    config = EpisodeConfig(**settings, max_faults=FAULTS, explore=1)
    dialogue = PlanBenchDialogue(PlanBenchRules(database, config), query_id)
    ours: list[Any] = []
    while not dialogue.ended:
        ours.append([dict(message) for message in dialogue.messages])
        text = replies[len(ours) - 1]
        dialogue.answer(Completion(text=text, finish_reason="stop"))
    assert len(ours) == len(theirs) == len(replies)
    for number, (own, other) in enumerate(zip(ours, theirs, strict=True)):
        assert own == other, number
