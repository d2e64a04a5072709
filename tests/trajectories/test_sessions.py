"""Sessions of coding agents: its messages are found among the lines of its client."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apbjudge.errors import RowError
from apbjudge.records.trajectories import Trajectory
from apbjudge.trajectories.detection import detect
from apbjudge.trajectories.formats.derived import message_of
from apbjudge.trajectories.reading import read_log
from tests.records.test_message_dialects import (
    QUESTION,
    SYSTEM,
    Run,
    anthropic,
    read_back,
    runs,
    seen,
    text_of,
)

Line = dict[str, Any]


def written(folder: Path, lines: list[Line]) -> Path:
    path = folder / "log.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path


def contents(path: Path) -> list[Trajectory | RowError]:
    return [entry.content for entry in read_log(path)]


def read(folder: Path, lines: list[Line], name: str) -> Trajectory:
    path = written(folder, lines)
    assert detect(path) == name
    (run,) = contents(path)
    assert isinstance(run, Trajectory), run
    return run


# A trajectory as the lines of a session -----------------------------------------------------------


def unique(run: Run) -> Run:
    """The trajectory with ids that occur once, as those of a provider do."""
    return [
        replace(turn, calls=tuple(replace(of, call_id=f"{n}-{of.call_id}") for of in turn.calls))
        for n, turn in enumerate(run)
    ]


class Claude:
    """Writes lines of Claude Code; what is left out stands between them."""

    def __init__(self, chance: Random, *, is_stream: bool) -> None:
        self.lines: list[Line] = []
        self.own: list[int] = []
        self.n_branches = self.n_agents = 0
        self._chance, self._is_stream = chance, is_stream
        self._tip: str | None = None

    def add(self, parent: str | None = "", **fields: Any) -> str:
        uuid = f"u{len(self.lines)}"
        line = {"uuid": uuid, **fields}
        if self._is_stream:
            line |= {"session_id": "s", "parent_tool_use_id": fields.get("parent_tool_use_id")}
        else:
            line |= {"sessionId": "s", "isSidechain": fields.get("isSidechain", False)}
            line["parentUuid"] = self._tip if parent == "" else parent
        self.lines.append(line)
        return uuid

    def add_own(self, parent: str | None = "", **fields: Any) -> str:
        """Adds a line of the trajectory, perhaps after something that is not."""
        chosen = self._chance.randrange(6)
        if chosen == 0:
            self.n_agents += 1
            name = f"a{self.n_agents}"
            of: Line = {"parent_tool_use_id": name}
            of = of if self._is_stream else {"isSidechain": True, "agentId": name}
            said = {"role": "user", "content": f"go, {name}"}
            at = self.add(None, type="user", message=said, **of)
            block = {"type": "tool_use", "id": name, "name": "find", "input": {"of": name}}
            self.add(at, type="assistant", message=self.said(name, block), **of)
        elif chosen == 1 and not self._is_stream and self._tip:
            self.n_branches += 1
            asked = {"role": "user", "content": f"no, number {self.n_branches}"}
            at = self.add(type="user", message=asked)
            block = {"type": "text", "text": f"well, {at}"}
            self.add(at, type="assistant", message=self.said(at, block))
        elif chosen == 2 and not self._is_stream:
            self._tip = self.add(type="progress", toolUseID="t", data={"type": "waiting"})
        self.own.append(len(self.lines))
        self._tip = self.add(parent or self._tip, **fields)
        return self._tip

    def said(self, name: str, block: Line) -> Line:
        said = {"id": name, "type": "message", "role": "assistant", "model": "demo-1"}
        return {**said, "content": [block], "usage": {"input_tokens": 1, "output_tokens": 2}}

    def write(self, run: Run) -> None:
        _, asked, *messages = anthropic(run)
        self.add_own(type="user", isMeta=True, message={"role": "user", "content": SYSTEM})
        self.add_own(type="user", message=asked)
        places: dict[str, str] = {}
        for n, message in enumerate(messages):
            for block in message["content"]:
                if message["role"] == "assistant":
                    at = self.add_own(type="assistant", message=self.said(f"m{n}", block))
                    places[block.get("id", "")] = at
                    continue
                # results of parallel calls stand below their own calls, and not each on the path
                parent = places[block["tool_use_id"]] if self._chance.randrange(2) else ""
                copy = block["content"][0]["text"]
                line = {"type": "user", "message": {"role": "user", "content": [block]}}
                key = "tool_use_result" if self._is_stream else "toolUseResult"
                self.add_own(parent, **line, **{key: copy})


def compare(
    run: Trajectory, drawn: Run, remarks: dict[str, int], dialect: str = "anthropic"
) -> None:
    _, *steps = run.steps
    assert [read_back(message_of(step)) for step in steps] == [
        seen(turn, dialect) for turn in drawn
    ]
    assert [step.source for step in run.steps] == ["user", *["agent"] * len(drawn)]
    assert (run.query, run.system_prompt, run.tested_model) == (QUESTION, SYSTEM, "demo-1")
    counts = {
        "parallel calls": sum(len(turn.calls) > 1 for turn in drawn),
        "calls without results": sum(len(turn.calls) - len(turn.answered) for turn in drawn),
    }
    assert run.remarks == {name: n for name, n in (counts | remarks).items() if n}


@settings(max_examples=50)
@given(run=runs(), chance=st.randoms(use_true_random=False), is_stream=st.booleans())
def test_a_run_among_the_lines_of_claude_code(
    run: Run, chance: Random, tmp_path_factory: pytest.TempPathFactory, *, is_stream: bool
) -> None:
    run = unique(run)
    log = Claude(chance, is_stream=is_stream)
    log.write(run)
    folder = tmp_path_factory.getbasetemp()
    read_run = read(folder, log.lines, "claude-code")
    left = {"abandoned branches": log.n_branches, "sub-agents": log.n_agents}
    compare(read_run, run, left)
    prompt, *rest = log.own
    assert log.lines[prompt]["isMeta"]
    assert sorted(at for step in read_run.steps for at in step.sources) == rest
    assert read_run.usage == {"input_tokens": len(run), "output_tokens": 2 * len(run)}


def responses(run: Run) -> list[Line]:
    """The items of the Responses API."""
    items: list[Line] = [{"role": "user", "content": [{"type": "input_text", "text": QUESTION}]}]
    for turn in run:
        if turn.reasoning:
            summary = [{"type": "summary_text", "text": turn.reasoning}]
            items.append({"type": "reasoning", "summary": summary})
        if turn.text:
            content = [{"type": "output_text", "text": turn.text}]
            items.append({"type": "message", "role": "assistant", "content": content})
        for of in turn.calls:
            called = {"call_id": of.call_id, "name": of.name, "arguments": json.dumps(of.arguments)}
            items.append({"type": "function_call", **called})
        for of in turn.answers:
            answer = {"call_id": of.call_id, "output": text_of(of.result)}
            items.append({"type": "function_call_output", **answer})
    return items


@settings(max_examples=40)
@given(run=runs(), chance=st.randoms(use_true_random=False))
def test_a_run_among_the_lines_of_codex(
    run: Run, chance: Random, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # only a result or another speaker ends a step of items
    steps = [replace(turn, answered=turn.answered or (0,)) for turn in run[:-1] if turn.calls]
    run = [*steps, run[-1]]
    lines = [
        {"type": "session_meta", "payload": {"id": "s", "base_instructions": {"text": SYSTEM}}},
        {"type": "turn_context", "payload": {"model": "demo-1"}},
    ]
    n_branches, own = 0, list[int]()
    for item in responses(run):
        if own and chance.randrange(5) == 0:
            n_branches += 1
            asked = {"type": "message", "role": "user", "content": f"no, number {n_branches}"}
            lines.append({"type": "response_item", "payload": asked})
            back = {"type": "thread_rolled_back", "num_turns": 1}
            lines.append({"type": "event_msg", "payload": back})
        own.append(len(lines))
        lines.append({"type": "response_item", "payload": item})
        if item.get("role"):
            event = {"type": f"{item['role']}_message", "message": item["content"][0]["text"]}
            lines.append({"type": "event_msg", "payload": event})
    read_run = read(tmp_path_factory.getbasetemp(), lines, "codex")
    compare(read_run, run, {"abandoned branches": n_branches}, "openai")
    assert sorted(at for step in read_run.steps for at in step.sources) == own


STATUS = {True: "error", False: "success", None: "cancelled"}


@settings(max_examples=40)
@given(run=runs(), chance=st.randoms(use_true_random=False), is_object=st.booleans())
def test_a_run_among_the_lines_of_the_gemini_cli(
    run: Run, chance: Random, tmp_path_factory: pytest.TempPathFactory, *, is_object: bool
) -> None:
    run = [
        replace(
            turn,
            calls=tuple(replace(of, result=text_of(of.result)) for of in turn.calls),
            answered=tuple(sorted(turn.answered)),
        )
        for turn in unique(run)
    ]
    head = {"sessionId": "s", "projectHash": "p", "startTime": "2026-05-04T09:00:00Z"}
    stamp = {"timestamp": "2026-05-04T09:00:00Z"}
    context = {"id": "0", **stamp, "type": "user", "content": f"<session_context>{SYSTEM}"}
    messages: list[Line] = [
        context,
        {"id": "1", **stamp, "type": "user", "content": [{"text": QUESTION}]},
    ]
    for n, turn in enumerate(run):
        calls: list[Line] = []
        for at, of in enumerate(turn.calls):
            answer = {"id": of.call_id, "name": of.name, "response": {"output": of.result}}
            calls.append({"id": of.call_id, "name": of.name, "args": of.arguments, **stamp})
            if at in turn.answered:
                result = {"result": [{"functionResponse": answer}], "status": STATUS[of.failed]}
                calls[-1] |= {**result, "resultDisplay": of.result}
        thoughts = [{"subject": turn.reasoning, **stamp}] if turn.reasoning else []
        messages.append({"id": f"g{n}", **stamp, "type": "gemini", "content": turn.text})
        messages[-1] |= {"model": "demo-1", "thoughts": thoughts, "toolCalls": calls}
    lines: list[Line] = [head]
    n_branches = 0
    for message in messages:
        if chance.randrange(4) == 0:
            n_branches += 1
            name = f"x{n_branches}"
            lines.append({"id": name, **stamp, "type": "user", "content": f"no, {name}"})
            lines.append({"$rewindTo": name})
        if message.get("toolCalls"):
            lines.append(message | {"toolCalls": []})  # then again, with its calls
        lines.append(message)
    path = tmp_path_factory.getbasetemp() / "log.jsonl"
    if is_object:
        n_branches = 0
        path.write_text(json.dumps(head | {"messages": messages}, indent=1), encoding="utf-8")
    else:
        written(path.parent, lines)
    assert detect(path) == "gemini-cli"
    (read_run,) = contents(path)
    assert isinstance(read_run, Trajectory), read_run
    prompt = read_run.system_prompt.removeprefix("<session_context>")
    read_run = replace(read_run, system_prompt=prompt)
    compare(read_run, run, {"abandoned branches": n_branches})


# Traps -------------------------------------------------------------------------------------------


def user(content: Any, **fields: Any) -> Line:
    line = {"type": "user", "sessionId": "s", "message": {"role": "user", "content": content}}
    return line | fields


def agent(*blocks: Line, message: Line | None = None, **fields: Any) -> Line:
    said = {"role": "assistant", "model": "m", "content": list(blocks), **(message or {})}
    return {"type": "assistant", "sessionId": "s", "message": said, **fields}


def text(words: str) -> Line:
    return {"type": "text", "text": words}


def call(name: str = "find", call_id: str = "c1") -> Line:
    return {"type": "tool_use", "id": call_id, "name": name, "input": {"path": "a.py"}}


def answer(content: str, noted: Any = None, call_id: str = "c1") -> Line:
    block = {"type": "tool_result", "tool_use_id": call_id, "content": content}
    return user([block], **({} if noted is None else {"toolUseResult": noted}))


def item(**fields: Any) -> Line:
    return {"type": "response_item", "payload": fields}


def event(**fields: Any) -> Line:
    return {"type": "event_msg", "payload": fields}


def done(**fields: Any) -> Line:
    return {"type": "item.completed", "item": fields}


def adk(author: str, *parts: Line, role: str = "", **fields: Any) -> Line:
    content = {"role": role or ("user" if author == "user" else "model"), "parts": [*parts]}
    return {"author": author, "invocationId": "e-1", "content": content, **fields}


def chat(type_: str, source: str, content: Any, **fields: Any) -> Line:
    about = {"source": source, "models_usage": None, "metadata": {}, "created_at": "2026-01-01"}
    return {**about, "content": content, "type": type_, **fields}


def autogen_calls(source: str, *call_ids: str, result: str = "R") -> list[Line]:
    calls = [{"id": of, "name": "find", "arguments": '{"q": 1}'} for of in call_ids]
    results = [{"call_id": of, "name": "find", "content": result + of} for of in call_ids]
    results[-1]["is_error"] = True
    spent = {"models_usage": {"prompt_tokens": 2, "completion_tokens": 1}}
    asked = chat("ToolCallRequestEvent", source, calls, **spent)
    return [asked, chat("ToolCallExecutionEvent", source, results)]


def smol(*calls: Line, says: str | None = None, seen: str | None = None, **fields: Any) -> Line:
    executed = {"tool_calls": [*calls], "observations": seen, "action_output": None, "error": None}
    reply = {"role": "assistant", "content": says, "tool_calls": None}
    return {**executed, "model_output_message": reply, "model_output": says, **fields}


def smol_call(call_id: str, name: str, arguments: Any) -> Line:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def printed(role: str, content: str) -> str:
    role = f"<MessageRole.{role.upper()}: {role!r}>"
    return f"ChatMessage(role={role}, content={content}, tool_calls=None, raw=None)"


LONG = "\n".join(f"line {n} of the output" for n in range(100))
FAILED = json.dumps({"output": "no", "metadata": {"exit_code": 2}})
SHELL = {"type": "command_execution"}
ASKED = {"type": "mcp_tool_call", "server": "docs", "tool": "find", "arguments": {"q": 1}}
HEAD = {"sessionId": "s", "projectHash": "p"}
ANEW = {"id": "2", "type": "user", "content": [{"text": "New."}]}
FOUND = {"id": "c", "name": "find", "args": {"q": 1}}
GO = chat("TextMessage", "user", "Go.")
PAIR = autogen_calls("desk", "1", "2")
SUMMED = chat("ToolCallSummaryMessage", "desk", "R1\nR2", tool_calls=PAIR[0]["content"])
SUMMED["results"] = PAIR[1]["content"]
CHUNK = "ModelClientStreamingChunkEvent"
PASSED = "Over to help."
GENERATED = chat("CodeGenerationEvent", "coder", "So:", code_blocks=[{"code": "1/0"}])
EXECUTED = chat("CodeExecutionEvent", "coder", None, result={"exit_code": 1, "output": "Oh."})
ASKED_MODEL = {"type": "UserMessage", "source": "user", "content": "Go."}
ANSWERED = {"type": "AssistantMessage", "source": "desk", "thought": "Hm.", "content": "Gone."}
CONTEXT = {"type": "AssistantAgentState", "llm_context": {"messages": [ASKED_MODEL, ANSWERED]}}
EDIT = {"filePath": "a.py", "originalFile": "never shown", "structuredPatch": [{"lines": ["-x"]}]}
TRAPS: dict[str, tuple[str, list[Line], dict[str, Any]]] = {
    "what a client adds is not the user's": (
        "claude-code",
        [
            user("Caveat: ignore this.", isMeta=True),
            user("<command-name>/model</command-name>"),
            user("<local-command-stdout>set</local-command-stdout>"),
            user("<command-name>/review</command-name>"),
            {"type": "system", "subtype": "info", "content": "Compiled.", "sessionId": "s"},
            {"type": "attachment", "attachment": {"type": "queued_command", "prompt": "Hurry!"}},
            agent(text("Fine.")),
        ],
        {
            "query": "<command-name>/review</command-name>",
            "said": [
                "user <command-name>/review</command-name>",
                *("system Compiled.", "user Hurry!", "agent Fine."),
            ],
        },
    ),
    "a context that was summed up is not asked again": (
        "claude-code",
        [
            user("Go.", uuid="1", parentUuid=None),
            agent(text("Gone."), uuid="2", parentUuid="1"),
            {"type": "system", "subtype": "compact_boundary", "content": "Compacted"}
            | {"uuid": "3", "parentUuid": None, "logicalParentUuid": "2"},
            user("They went.", uuid="4", parentUuid="3", isCompactSummary=True),
            user("On.", uuid="5", parentUuid="4"),
            agent(text("Yes."), uuid="6", parentUuid="5"),
        ],
        {
            "remarks": {"rewritten context": 1},
            "said": ["user Go.", "agent Gone.", "user On.", "agent Yes."],
        },
    ),
    "a line that is missing breaks no path, another beginning does": (
        "claude-code",
        [
            user("Go.", uuid="1", parentUuid=None),
            user("Go on.", uuid="2", parentUuid=None),
            agent(text("Gone."), uuid="3", parentUuid="lost"),
        ],
        {"remarks": {"abandoned branches": 1}, "said": ["user Go on.", "agent Gone."]},
    ),
    "what a client notes of results": (
        "claude-code",
        [
            user("Go."),
            agent(call()),
            answer("     1→import a\n     2→b = 1", {"file": {"content": "import a\nb = 1"}}),
            agent(call(call_id="c2")),
            answer("<tool_use_error>No.</tool_use_error>", "Error: No.", "c2"),
            agent(call(call_id="c3")),
            answer(f"cut here\n{LONG[-900:]}", {"stdout": LONG}, "c3"),
            agent(call(call_id="c4")),
            answer("done", EDIT, "c4"),
            agent(call(call_id="c5")),
            answer("ok", {"stdout": "another text"}, "c5"),
        ],
        {"remarks": {"duplicate carriers": 2, "cut content": 1, "unread content": 1}},
    ),
    "errors of the API are not the agent's": (
        "claude-code",
        [
            user("Go."),
            agent(text("Fine."), call()),
            agent(text("API Error: 529"), message={"model": "<synthetic>"}, isApiErrorMessage=True),
        ],
        {
            "error": "API Error: 529",
            "final": None,
            "said": ["user Go.", "agent Fine.", "system API Error: 529"],
        },
    ),
    "how a stream begins and ends": (
        "claude-code",
        [
            {"type": "system", "subtype": "init", "session_id": "s", "tools": ["find", "Bash"]}
            | {"model": "m-0", "slash_commands": ["a b"]},
            agent(text("Fine.")),
            {"type": "result", "subtype": "error_max_turns", "is_error": True, "session_id": "s"}
            | {"usage": {"input_tokens": 7}, "total_cost_usd": 0.5},
        ],
        {
            "error": "",
            "end": "error_max_turns",
            "final": "Fine.",
            "usage": {"input_tokens": 7, "total_cost_usd": 0.5},
            "tools": ({"name": "find"}, {"name": "Bash"}),
        },
    ),
    "a rollout with context, a summary and codes": (
        "codex",
        [
            item(type="message", role="user", content="<environment_context>x"),
            item(type="message", role="user", content="Go."),
            item(type="function_call", name="run", arguments="{}", call_id="1"),
            item(type="function_call_output", call_id="1", output=FAILED),
            item(type="local_shell_call", call_id="2", action={"command": ["ls"]}),
            event(type="exec_command_end", call_id="2", exit_code=0, stdout="a.py"),
            item(type="local_shell_call_output", call_id="2", output="a.py"),
            {"type": "compacted", "payload": {"message": "They went."}},
            item(type="reasoning", summary=[], encrypted_content="gA"),
            item(type="message", role="assistant", content=[{"type": "output_text", "text": "Hm"}]),
            event(type="turn_aborted", reason="interrupted"),
            event(type="error", message="no more credit"),
        ],
        {
            "said": ["user Go.", "agent", "agent", "agent Hm"],
            "failed": [True, False],
            "remarks": {"rewritten context": 1, "cut content": 1},
            "end": "interrupted",
            "error": "no more credit",
        },
    ),
    "a rollout of events alone": (
        "codex",
        [
            event(type="user_message", message="Go."),
            event(type="agent_reasoning", text="Hm."),
            event(type="agent_message", message="Gone."),
            event(type="token_count", info={"total_token_usage": {"input_tokens": 3}}),
        ],
        {"said": ["user Go.", "agent Gone."], "usage": {"input_tokens": 3}},
    ),
    "what exec prints": (
        "codex",
        [
            {"type": "thread.started", "thread_id": "t"},
            {"type": "turn.started"},
            done(id="0", type="reasoning", text="Hm."),
            {"type": "item.started", "item": {"id": "1", **SHELL, "command": "sleep 9"}},
            done(id="2", **SHELL, command="ls", exit_code=1, aggregated_output="b.py"),
            done(id="3", **ASKED, result={"content": [text("R")]}, status="completed"),
            done(id="4", type="file_change", changes=[{"path": "a", "kind": "add"}]),
            done(id="5", type="agent_message", text="Gone."),
            {"type": "turn.completed", "usage": {"input_tokens": 9}},
        ],
        {
            "id": "t",
            "said": ["agent", "agent", "agent", "agent Gone."],
            "calls": [*["command_execution"] * 2, "mcp__docs__find", "file_change"],
            "failed": [True, None, None],
            "remarks": {"parallel calls": 1, "calls without results": 1},
            "final": "Gone.",
            "usage": {"input_tokens": 9},
        },
    ),
    "a session of two agents, streamed, with a failure": (
        "adk",
        [
            {"id": "s7", "appName": "desk", "userId": "u", "state": {"place": "Rome", "n": 2}}
            | {
                "events": [
                    adk("user", {"text": "Go."}),
                    adk("desk", {"text": "On"}, partial=True),
                    adk("desk", {"text": "On my"}, partial=True),
                    adk("desk", {"text": "On my way."}, {"functionCall": FOUND})
                    | {"modelVersion": "m-1", "usageMetadata": {"promptTokenCount": 5}},
                    adk("desk", {"functionResponse": {**FOUND, "response": {"ok": 1}}}, role="user")
                    | {"actions": {"stateDelta": {"place": "Rome"}}},
                    adk("desk", errorCode="429", errorMessage="no quota"),
                    adk("help", {"text": "Gone."}, usageMetadata={"promptTokenCount": 4}),
                ]
            }
        ],
        {
            "id": "s7",
            "model": "m-1",
            "said": ["user Go.", "agent On my way.", "environment no quota", "agent Gone."],
            "speakers": ["", "desk", "", "help"],
            "calls": ["find"],
            "results": [{"ok": 1}],
            "task": {"state": {"place": "Rome", "n": 2}},
            "error": "",
            "usage": {"promptTokenCount": 9},
            "remarks": {},
        },
    ),
    "events of a session that ends with a failure": (
        "adk",
        [
            {"author": "user", "invocation_id": "i", "content": {"parts": [{"text": "Go."}]}},
            {"author": "desk", "invocation_id": "i", "error_code": "SAFETY", "content": None},
            {"author": "desk", "invocation_id": "i", "actions": {"state_delta": {"n": 1}}},
        ],
        {
            "said": ["user Go.", "environment SAFETY"],
            "error": "SAFETY",
            "task": {"state": {"n": 1}},
            "remarks": {},
        },
    ),
    "steps of an agent that writes code": (
        "smolagents",
        [
            {"task": "Go.", "task_images": ["<PIL.Image.Image>"]},
            {"plan": "I plan:\nFind it.", "model_output_message": {"content": "Find it."}}
            | {"model_input_messages": [{"role": "user", "content": "Plan!"}]},
            smol(
                smol_call("c1", "python_interpreter", "print({'of': 'a\\nb'})"),
                says="Hm. <code>print({'of': 'a\\nb'})",
                model_output="Hm. <code>print({'of': 'a\\nb'})</code>",
                model_input_messages=[{"role": "system", "content": [text("Be kind.")]}],
                code_action="print({'of': 'a\\nb'})",
                seen="Logs:\n{'of': 'a\\nb'}",
                action_output={"of": "a\nb"},
                is_final_answer=False,
                token_usage={"input_tokens": 3},
            ),
            smol(
                smol_call("c2", "python_interpreter", [1, 2]),  # it is logged parsed
                says="No. <code>[1, 2]</code>",
                code_action="[1, 2]",
                seen="Logs:",
                error={"type": "AgentExecutionError", "message": "It broke."},
                is_final_answer=False,
            ),
            smol(says="Hm.", error={"type": "AgentParsingError", "message": "No code."}),
            smol(
                smol_call("c3", "python_interpreter", "final_answer(0)"),
                seen="Logs:\n0",
                action_output=0,
                is_final_answer=True,
                token_usage={"input_tokens": 4},
            ),
        ],
        {
            "id": "log",
            "system": "Be kind.",
            "said": [
                *("user Go.", "agent I plan:\nFind it."),
                *("agent Hm. <code>print({'of': 'a\\nb'})</code>", "agent No. <code>[1, 2]</code>"),
                *("agent Hm.", "environment No code.", "agent"),
            ],
            "arguments": [
                {"code": "print({'of': 'a\\nb'})"},
                {"code": "[1, 2]"},
                {"code": "final_answer(0)"},
            ],
            "results": ["Logs:\n{'of': 'a\\nb'}", "Logs:\nIt broke.", "Logs:\n0"],
            "failed": [False, True, False],
            "final": "0",
            "usage": {"input_tokens": 7},
            "remarks": {"attachments": 1, "duplicate carriers": 1},
        },
    ),
    "a result of parallel calls, a failed one, and no step left": (
        "smolagents",
        [
            {"output": "Enough.", "state": "max_steps_error", "timing": {"duration": 1}}
            | {
                "steps": [
                    {"task": "Go.", "task_images": None},
                    smol(
                        smol_call("c1", "find", {"q": 1}),
                        smol_call("c2", "find", {"q": 2}),
                        seen="one\ntwo\nthree",
                    ),
                    smol(
                        error={"type": "AgentToolExecutionError", "message": "no such tool"},
                        model_output_message={
                            "content": None,
                            "tool_calls": [smol_call("c3", "seek", {"q": 3})],
                            "raw": {"model": "m-1", "choices": [{"message": {}}]},
                        },
                    ),
                    smol(
                        error={"type": "AgentMaxStepsError", "message": "no step left"},
                        model_output_message=None,
                        action_output="Enough.",
                    ),
                ]
            }
        ],
        {
            "id": "log",
            "model": "m-1",
            "said": [
                *("user Go.", "agent", "environment one\ntwo\nthree", "agent"),
                *("environment no step left", "agent Enough."),
            ],
            "arguments": [{"q": 1}, {"q": 2}, {"q": 3}],
            "results": ["no such tool"],
            "failed": [True],
            "final": "Enough.",
            "end": "AgentMaxStepsError",
            "remarks": {
                "parallel calls": 1,
                "calls without results": 2,
                "results without calls": 1,
            },
        },
    ),
    "messages that older versions print, and texts that they make up": (
        "smolagents",
        [
            {"task": "Go.", "task_images": None},
            smol(
                smol_call("c1", "find", {"q": 1}),
                model_output_message=printed("assistant", repr('It\'s "here".')),
                model_output="Called Tool: 'find'",
                model_input_messages=[printed("system", f"[{ {'type': 'text', 'text': 'Be.'} }]")],
                seen="one",
            ),
            smol(
                smol_call("c2", "final_answer", {"answer": "two"}),
                model_output_message=printed("assistant", "None"),
                action_output="two",
            ),
            smol(
                error={"type": "AgentGenerationError", "message": "no quota"},
                model_output_message=None,
            ),
        ],
        {
            "system": "Be.",
            "said": ["user Go.", 'agent It\'s "here".', "agent", "environment no quota"],
            "results": ["one", "two"],
            "final": None,
            "error": "no quota",
            "end": "AgentGenerationError",
            "remarks": {"duplicate carriers": 3},
        },
    ),
    "the state of a graph's thread": (
        "langgraph",
        [
            {
                "values": {
                    "messages": [
                        {"type": "human", "content": "Go."},
                        {"type": "ai", "content": "", "tool_calls": [FOUND]},
                        {"type": "tool", "content": "R", "tool_call_id": "c", "name": "find"},
                        {"type": "ai", "content": "Gone."},
                    ],
                    "place": "Rome",
                },
                "next": ["a node"],
                "config": {"configurable": {"thread_id": "t-7", "checkpoint_id": "1f"}},
                "metadata": {"step": 3, "source": "loop"},
                "tasks": [{"id": "x", "name": "node", "error": "no quota", "interrupts": []}],
            }
        ],
        {
            "id": "t-7",
            "said": ["user Go.", "agent", "agent Gone."],
            "calls": ["find"],
            "results": ["R"],
            "task": {"state": {"place": "Rome"}},
            "error": "no quota",
            "remarks": {},
        },
    ),
    "a result that ends with a summary of its calls": (
        "autogen",
        [
            {"id": "s7", "case_id": "c", "reward": 1, "stop_reason": "Maximum of 9 reached."}
            | {"messages": [GO, chat("ThoughtEvent", "desk", "Hm."), *PAIR, SUMMED]}
        ],
        {
            "id": "s7",
            "said": ["user Go.", "agent"],
            "thoughts": ["", "Hm."],
            "speakers": ["", "desk"],
            "calls": ["find", "find"],
            "results": ["R1", "R2"],
            "failed": [None, True],
            "end": "Maximum of 9 reached.",
            "final": "R1\nR2",
            "usage": {"prompt_tokens": 2, "completion_tokens": 1},
            "remarks": {"parallel calls": 1, "duplicate carriers": 1},
        },
    ),
    "a result without events, with a summary in other words": (
        "autogen",
        [{"messages": [GO, SUMMED | {"content": "Two: R1, R2"}], "stop_reason": None}],
        {
            "said": ["user Go.", "agent", "agent Two: R1, R2"],
            "results": ["R1", "R2"],
            "final": "Two: R1, R2",
            "remarks": {"parallel calls": 1},
        },
    ),
    "a stream of two turns with a handoff, a person and the results": (
        "autogen-events",
        [
            *(turn := [GO, *autogen_calls("desk", "1", result=PASSED)]),
            handoff := chat("HandoffMessage", "desk", f"{PASSED}1", target="help", context=[]),
            {"messages": [*turn, handoff], "stop_reason": "Handed over."},
            chat("UserInputRequestedEvent", "ann", "", request_id="r"),
            chat("TextMessage", "ann", "On."),
            *(chat(CHUNK, "help", of, full_message_id="m") for of in ("Go", "ne.")),
            end := chat("TextMessage", "help", "Gone.", id="m"),
            {"messages": [end], "stop_reason": "Done."},
        ],
        {
            "said": [
                *("user Go.", "agent", "environment Handed over.", "user On.", "agent Gone."),
            ],
            "speakers": ["", "desk", "", "ann", "help"],
            "calls": ["find"],
            "end": "Done.",
            "remarks": {"duplicate carriers": 8},
        },
    ),
    "a stream of other messages": (
        "autogen-events",
        [
            chat("MultiModalMessage", "user", ["Look.", {"data": "iVBORw0KGgo"}]),
            chat("SelectSpeakerEvent", "chief", ["coder"]),
            chat(
                "MemoryQueryEvent", "coder", [{"content": {"of": "old"}, "mime_type": "text/plain"}]
            ),
            *(GENERATED, EXECUTED, chat("TextMessage", "coder", "Oh.")),
            chat("ThoughtEvent", "coder", "Hm."),
            chat("StructuredMessage[Answer]", "desk", {"is": "a b"}, format_string="So {is}"),
        ],
        {
            "said": [
                *("user Look.", "environment coder", 'system {"of":"old"}', "agent So:"),
                *("agent Oh.", "agent", 'agent {"is":"a b"}'),
            ],
            "thoughts": ["", "", "", "", "", "Hm.", ""],
            "speakers": ["", "chief", "coder", "coder", "coder", "coder", "desk"],
            "calls": ["code_execution"],
            "results": ["Oh."],
            "failed": [True],
            "remarks": {"attachments": 1},
        },
    ),
    "the state of an agent": (
        "autogen",
        [CONTEXT],
        {
            "said": ["user Go.", "agent Gone."],
            "thoughts": ["", "Hm."],
            "remarks": {},
        },
    ),
    "the state of a team": (
        "autogen",
        [
            {
                "type": "TeamState",
                "agent_states": {
                    "desk": {"agent_state": {"llm_context": {"messages": [ASKED_MODEL]}}},
                    "chief": {"message_thread": [GO, *PAIR], "current_speaker": "desk"},
                },
            }
        ],
        {
            "said": ["user Go.", "agent"],
            "calls": ["find", "find"],
            "remarks": {"parallel calls": 1},
        },
    ),
    "a chat that was rewritten, with notes of its client": (
        "gemini-cli",
        [
            HEAD,
            {"id": "1", "timestamp": "t", "type": "user", "content": "Old."},
            {"$set": {"messages": [ANEW, {"id": "3", "type": "error", "content": "[API: 429]"}]}},
        ],
        {
            "said": ["user New.", "environment [API: 429]"],
            "error": "[API: 429]",
            "remarks": {"rewritten context": 1},
        },
    ),
    "a chat whose content has its calls too": (
        "gemini-cli",
        [
            HEAD,
            {"id": "1", "timestamp": "t", "type": "user", "content": "Go."},
            {"id": "2", "timestamp": "t", "type": "gemini", "model": "m"}
            | {"content": [{"text": "Hm.", "thought": True}, {"functionCall": FOUND}]}
            | {"thoughts": [{"subject": "Hm.", "description": ""}]}
            | {"toolCalls": [{**FOUND, "agentId": "a", "status": "error", "result": "broken"}]},
        ],
        {"calls": ["find"], "failed": [True], "remarks": {"sub-agents": 1}, "error": ""},
    ),
}


@pytest.mark.parametrize("name", TRAPS)
def test_traps_of_sessions(name: str, tmp_path: Path) -> None:
    format_, lines, expected = TRAPS[name]
    run = read(tmp_path, lines, format_)
    results = [of for step in run.steps for of in step.observations]
    found = {
        "id": run.trajectory_id,
        "model": run.tested_model,
        "task": run.task,
        "speakers": [step.speaker for step in run.steps],
        "thoughts": [step.thought for step in run.steps],
        "results": [of.content for of in results],
        "query": run.query,
        "said": [f"{step.source} {step.text}".strip() for step in run.steps],
        "system": run.system_prompt,
        "calls": [of.name for step in run.steps for of in step.calls],
        "arguments": [of.arguments for step in run.steps for of in step.calls],
        "failed": [of.is_error for of in results],
        "remarks": run.remarks,
        "final": run.final_answer,
        "end": run.termination,
        "error": run.infrastructure_error,
        "usage": run.usage,
        "tools": run.tools,
    }
    assert {key: found[key] for key in expected} == expected


def test_of_a_thread_one_state_is_read(tmp_path: Path) -> None:
    state = {"values": {"messages": [{"type": "human", "content": "Go."}]}, "next": []}
    lines: list[Line] = [
        state | {"config": {"configurable": {"thread_id": name}}} for name in ("a", "b", "a")
    ]
    twice, once = contents(written(tmp_path, lines))
    assert "one state of thread a, the latest, got '2 of it'" in str(twice)
    assert isinstance(once, Trajectory)
    assert once.trajectory_id == "b"


def test_lines_without_a_session_go_with_those_around_them(tmp_path: Path) -> None:
    title = {"type": "summary", "summary": "A title", "leafUuid": "2"}
    lines = [title, user("Go."), agent(text("Gone.")), title]
    other = [line | {"sessionId": "t"} for line in (user("Stop."), agent(text("Halt.")))]
    path = written(tmp_path, [*lines, *other, title])
    ids = [of.trajectory_id for of in contents(path) if isinstance(of, Trajectory)]
    assert ids == ["s", "t"]
    (nothing,) = contents(written(tmp_path, [title, user("", isSidechain=True, message=None)]))
    assert "a session with messages" in str(nothing)


def test_results_of_smolagents_are_a_run_each(tmp_path: Path) -> None:
    steps = [{"task": "Go.", "task_images": None}, smol(says="Gone.")]
    runs = [{"output": n, "state": "success", "messages": steps} for n in range(2)]
    path = written(tmp_path, [*runs, {"output": None, "state": "success", "steps": []}])
    *read_runs, nothing = contents(path)
    answers = [
        (of.trajectory_id, of.final_answer) for of in read_runs if isinstance(of, Trajectory)
    ]
    assert answers == [("log-1", "0"), ("log-2", "1")]
    assert "a session with messages" in str(nothing)
    path.write_text(json.dumps(steps), encoding="utf-8")
    (run,) = contents(path)
    assert isinstance(run, Trajectory)
    assert (run.trajectory_id, run.final_answer) == ("log", None)


def test_a_sub_agent_alone_is_a_run_and_two_rollouts_in_a_file_are_refused(tmp_path: Path) -> None:
    aside = {"isSidechain": True, "agentId": "a1"}
    run = read(tmp_path, [user("Go.", **aside), agent(text("Gone."), **aside)], "claude-code")
    assert (run.trajectory_id, run.query, run.remarks) == ("s/a1", "Go.", {})
    meta = {"type": "session_meta", "payload": {"id": "s"}}
    asked = item(type="message", role="user", content="Go.")
    fork = [meta, meta | {"payload": {"id": "t"}}, asked]
    assert read(tmp_path, fork, "codex").trajectory_id == "s"
    (refused,) = contents(written(tmp_path, [*fork, meta, asked]))
    assert "one session in a file" in str(refused)
