"""A small lending library in the files of PlanBench-XL, and an environment that writes its logs.

All names, values and texts are invented. One record; tools with one and two inputs; two tasks with
several paths; a composite that no path uses; two noisy siblings and three blockers for each tool.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

EXAMPLE = Path(__file__).parents[3] / "examples" / "trajectories" / "library"
FILES: dict[str, Any] = {
    path.name: json.loads(path.read_text()) for path in sorted((EXAMPLE / "data").iterdir())
}
RECORD: Mapping[str, str] = FILES["database.json"]["order_cases"]["only"]
INTERFACES: Mapping[str, tuple[tuple[str, ...], str]] = {
    tool["name"]: (tuple(tool["input_datatypes"]), tool["output_datatype"])
    for tool in FILES["baseline_tools.json"]
}
PATHS = {
    "t1": [
        ["member_of_card", "loan_of_member", "copy_of_loan", "shelf_of_copy"],
        [
            "member_of_card",
            "loan_of_member",
            "title_of_loan",
            "branch_of_member",
            "shelf_of_title_at_branch",
        ],
    ],
    "t2": [["title_of_loan", "shelf_of_title_at_branch"], ["copy_of_loan", "shelf_of_copy"]],
    "t3": [["member_of_card", "loan_of_member", "copy_of_loan"]],
}


def write_data(folder: Path, **changed: Any) -> Path:
    """Writes the data folder; files are changed by name without ``.json``, or left out for None."""
    folder.mkdir(parents=True, exist_ok=True)
    files = FILES | {f"{name}.json": content for name, content in changed.items()}
    for name, content in files.items():
        if content is not None:
            (folder / name).write_text(json.dumps(content))
    return folder


QUERY = {query["query_id"]: query for query in FILES["queries.json"]}
BASELINE = {tool["name"]: tool for tool in FILES["baseline_tools.json"]}
NOISY = {tool["name"]: tool for tool in FILES["noisy_tools.json"]}
BLOCKERS = {tool["name"]: tool for tool in FILES["blocker_tools.json"]}
TOOLS = {**BASELINE, **NOISY, **BLOCKERS}


@dataclass
class LibraryRun:
    """A trajectory of a query; every method is one response of the model.

    Attributes:
        blocked: Tools that searches return stand-ins for.
    """

    query_id: str
    blocked: Collection[str] = ()
    trace: list[dict[str, Any]] = field(default_factory=list)
    feedback: list[str | None] = field(default_factory=list)
    final_answer: str | None = None
    reason: str | None = "exceeded_max_steps"

    def __post_init__(self) -> None:
        self.held = set(QUERY[self.query_id]["input_datatypes"])
        self.trusted = {datatype: {RECORD[datatype]} for datatype in self.held}
        self.untrusted: dict[str, set[str]] = {}
        self.found: set[str] = set()

    def _add(self, feedback: str | None, **entry: Any) -> LibraryRun:
        self.trace.append({"step_id": len(self.trace) + 1, **entry})
        self.feedback.append(feedback)
        return self

    def search(
        self, *inputs: str, output: str = "", only: Collection[str] | None = None
    ) -> LibraryRun:
        """Searches by exact interface; ``only`` leaves out what else would be returned."""
        names: list[str] = []
        for name, (needs, gives) in INTERFACES.items():
            if (not inputs or {*needs} == {*inputs}) and (not output or gives == output):
                if name in self.blocked:
                    names += [f"{name}_down", f"{name}_odd", f"{name}_near"]
                else:
                    names += [name, f"{name}_old", f"{name}_cached"]
        names = [name for name in names if only is None or name in only]
        self.found.update(names)
        facts = ("description", "input_datatypes", "output_datatype")
        tools = [
            {"name": name, "tool_type": self._type(name)} | {of: TOOLS[name][of] for of in facts}
            for name in names
        ]
        kind = "by_io_info" if inputs and output else "by_inputs" if inputs else "by_output_info"
        matched: dict[str, Any] = {"input_information": list(inputs)} if inputs else {}
        matched |= {"output_information": output} if output else {}
        return self._add(
            f"{len(tools)} tools",
            action="retrieve_tools",
            request={"meta_tool": kind, **matched},
            matched_information=matched,
            retrieval_result={"tools": tools},
        )

    def bad_search(self, *, can_be_read: bool = False) -> LibraryRun:
        """A search that is no JSON, or one with an empty list of inputs."""
        if can_be_read:
            request = {"meta_tool": "by_inputs", "input_information": []}
            return self._add("bad", action="retrieve_tools", request=request)
        raw = "<retrieve_tools>?</retrieve_tools>"
        return self._add("bad", action="retrieve_tools", parse_ok=False, raw_output=raw)

    def call(self, name: str, **values: Any) -> LibraryRun:
        """Calls a tool with the record's values, or with others by datatype."""
        tool = TOOLS.get(name, {"surface_argument_to_datatype": {}, "input_datatypes": []})
        names: Mapping[str, str] = tool["surface_argument_to_datatype"]
        given = {d: values.get(d, RECORD.get(d)) for d in names.values()}
        request = {"name": name, "arguments": {a: given[d] for a, d in names.items()}}
        entry: dict[str, Any] = {"action": "call_tool", "request": request}
        if name not in self.found:
            return self._add("no such tool", **entry)
        if "wrong" in values:
            entry["request"] = {"name": name, "arguments": {"wrong": values["wrong"]}}
            return self._add("wrong arguments", **entry)
        untrusted = [
            d
            for d, value in given.items()
            if value in self.untrusted.get(d, ()) and value not in self.trusted.get(d, ())
        ]
        missing = [d for d in given if d not in self.held]
        if untrusted or missing:
            fault = "untrusted_input_rejected" if untrusted else "missing_required_input"
            return self._add("inputs", **entry, internal_error_type=fault)
        output = tool["output_datatype"]
        if name in BASELINE:
            is_known = all(RECORD[d] == value for d, value in given.items())
            value = RECORD[output] if is_known else None
            provenance = "trusted" if is_known else "none"
        else:
            value, provenance = tool["return_value"], "untrusted"
            self.untrusted.setdefault(output, set()).add(value)
        if provenance == "trusted":
            self.held.add(output)
            self.trusted.setdefault(output, set()).add(value)
        result = {
            "success": tool.get("noise_type") not in {"explicit failures", "deprecated"},
            "output_datatype": output,
            "output_value": value,
            "tool_type": self._type(name),
            "output_provenance": provenance,
        }
        return self._add("done", **entry, tool_result=result)

    def bad_call(self) -> LibraryRun:
        """A call that is no JSON."""
        raw = "<tool_call>{</tool_call>"
        return self._add("bad", action="call_tool", parse_ok=False, raw_output=raw)

    def babble(self) -> LibraryRun:
        """A response without an action."""
        return self._add("no tag", action="others", raw_output="Let me think.")

    def answer(self, text: str) -> LibraryRun:
        """Ends the trajectory with an answer."""
        self.final_answer, gold = text, QUERY[self.query_id]["correct_answer"]
        reached = QUERY[self.query_id]["target_datatype"] in self.held
        self.reason = None
        if not (reached and gold.lower() in text.lower()):
            self.reason = "final_answer_wrong" if reached else "target_datatype_not_reached"
        return self._add(None, action="final_answer", answer=text)

    def stop(self, reason: str) -> LibraryRun:
        """Ends the trajectory by a limit."""
        self.reason = reason
        return self

    def along(self, *names: str) -> LibraryRun:
        """Searches for each of some tools by inputs and output, and calls it."""
        for name in names:
            inputs, output = INTERFACES[name]
            self.search(*inputs, output=output).call(name)
        return self

    @staticmethod
    def _type(name: str) -> str:
        if name in BASELINE:
            return "baseline"
        return "noisy_misleading" if name in NOISY else "blocker_misleading"

    def result(self) -> dict[str, Any]:
        """The row of ``result.jsonl``."""
        row = {
            "query_id": self.query_id,
            "stop_reason": "normal",
            "status": "success" if self.reason is None else "failed",
            "final_answer": self.final_answer,
            "steps": len(self.trace),
            "trace": self.trace,
        }
        return row if self.reason is None else {**row, "failure_reason_detail": self.reason}

    def progress(self, *, error: str | None = None, is_finished: bool = True) -> dict[str, Any]:
        """The file of ``progress/queries``; unfinished, with what broke the next request."""
        turns: list[dict[str, Any]] = [
            {"turn_id": i, "llm_raw_response": f"response {i}", "feedback_to_model": feedback}
            for i, feedback in enumerate(self.feedback, start=1)
        ]
        if not is_finished:
            broke = None if error is None else {"type": "runtime_error", "message": error}
            turns.append({"turn_id": len(turns) + 1, "status": "error", "error": broke})
        messages = [
            {"role": "system", "content": "You look things up."},
            {"role": "user", "content": QUERY[self.query_id]["query_text"]},
            {"role": "user", "content": "Environment feedback"},
        ]
        return {
            "query_id": self.query_id,
            "latest_state": {"steps_trace": self.trace},
            "resume_checkpoint": {"effective_history": messages},
            "turns": turns,
            "final_result": self.result() if is_finished else None,
        }


def long_run() -> LibraryRun:
    """Something of every kind."""
    run = LibraryRun("q1", blocked=["copy_of_loan"])
    run.babble().bad_search().bad_search(can_be_read=True).bad_call()
    run.search("card").call("teleport").call("member_of_card", wrong=1).call("copy_of_card_old")
    run.search("loan", output="copy").call("copy_of_loan_odd").call("member_of_card")
    run.search("member").call("loan_of_member_cached").call("loan_of_member")
    run.search("loan").call("due_of_loan", loan="L-31-2019").call("copy_of_loan_down")
    return run.search("branch", "due").search(output="title").answer("I don't know")


def write_run(
    folder: Path,
    runs: Iterable[LibraryRun] = (),
    *,
    unfinished: Mapping[str, dict[str, Any]] | None = None,
    config: Mapping[str, Any] | None = None,
    model: str = "librarian-1",
    results: bool = True,
) -> Path:
    """Writes a run folder; without ``results``, only what is there before one is finished."""
    queries = folder / "progress" / "queries"
    queries.mkdir(parents=True)
    metadata = {"domain": "library", "model_name": model, "config": dict(config or {})}
    (folder / "metadata.json").write_text(json.dumps(metadata))
    files = {run.query_id: run.progress() for run in runs} | dict(unfinished or {})
    for query_id, content in files.items():
        (queries / f"{query_id}.json").write_text(json.dumps(content))
    index = {"queries": [{"query_id": query_id} for query_id in files]}
    (folder / "progress" / "index.json").write_text(json.dumps(index))
    if results:
        rows = [json.dumps(run.result()) for run in runs]
        (folder / "result.jsonl").write_text("".join(f"{row}\n" for row in rows))
    return folder
