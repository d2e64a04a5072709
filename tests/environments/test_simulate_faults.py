"""Episodes and faults: kills in the middle of one, nonsense for a hundred turns, bad data, and
environments whose own code fails."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import apbjudge
from apbjudge.environments.base import Score
from apbjudge.environments.native import ToolDialogue
from apbjudge.environments.simulate import simulate
from apbjudge.errors import InputError, PluginError
from apbjudge.llm.base import Completion, ScriptedClient
from apbjudge.records import Usage
from apbjudge.records.trajectories import ToolResult, trajectory_of
from tests.support.commands import start
from tests.support.server import PATIENCE_S, Answer, Behaviour, Hang, Seen

from .counting import Counter as CountingEnvironment
from .counting import Counting
from .test_simulate import one_by_one

DATA = Path(__file__).parents[2] / "examples" / "runs" / "library" / "data"
MODEL = "hosted_vllm/agent"


def content(name: str) -> Any:
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))


TOOLS = {tool["name"]: tool for tool in content("baseline_tools")}
QUERIES = {query["query_text"]: query for query in content("queries")}
PATHS = {task["task_id"]: task["one_available_path"] for task in content("tasks")}
RECORDS = content("database")["order_cases"].values()


def expert(messages: list[dict[str, Any]]) -> str:
    """Searches for each tool of a known path, calls it, and answers."""
    query = QUERIES[messages[1]["content"]]
    path, done = PATHS[query["task_id"]], (len(messages) - 2) // 2
    if done >= 2 * len(path):
        return f"<final_answer>{query['correct_answer']}</final_answer>"
    tool = TOOLS[path[done // 2]]
    if done % 2 == 0:
        search = {"meta_tool": "by_output_info", "output_information": tool["output_datatype"]}
        return f"<retrieve_tools>{json.dumps(search)}</retrieve_tools>"
    record = next(
        record
        for record in RECORDS
        if record[query["target_datatype"]] == query["correct_answer"]
        and all(str(record[name]) in query["query_text"] for name in query["input_datatypes"])
    )
    arguments = {
        name: record[datatype] for name, datatype in tool["surface_argument_to_datatype"].items()
    }
    call = {"name": tool["name"], "arguments": arguments}
    return f"<tool_call>{json.dumps(call)}</tool_call>"


def answers(seen: Seen) -> Behaviour:
    return Answer(expert(seen.body["messages"]))


@pytest.mark.slow
def test_a_killed_episode_goes_on_with_the_replies_it_had(
    serve: Any, command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    out = tmp_path / "out"
    server = serve(lambda seen: answers(seen) if seen.number <= 9 else Hang())
    arguments = [
        "simulate",
        DATA,
        "--model",
        f"{MODEL}@{server.address}",
        "--out",
        out,
        "--no-cache",
    ]
    arguments += ["--config", "max_concurrency=1", "--config", "retries=0"]
    with start(*arguments) as process:
        server.wait_for(10)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=PATIENCE_S)
    before = Counter(seen.text for seen in server.requests)
    server.behave = answers
    server.forget()
    done = command(*arguments)
    assert done.code == 0, done.err
    after = Counter(seen.text for seen in server.requests)
    repeated = [text for text in before if text in after]
    assert len(repeated) == 1  # the call that was in flight
    lines = (out / "trajectories.jsonl").read_text(encoding="utf-8").splitlines()
    runs = [trajectory_of(json.loads(line)) for line in lines]
    assert sorted(run.case_id for run in runs) == sorted(q["query_id"] for q in QUERIES.values())
    assert {run.termination for run in runs} == {"normal"}
    graded = apbjudge.grade(out / "trajectories.jsonl", protocol="planbench-xl", cases=DATA)
    assert all(judgement.is_correct for judgement in graded.judgements)


def reply(text: str) -> Completion:
    return Completion(text=text, finish_reason="stop", usage=Usage(calls=1), cost_usd=0.0)


SEARCH = '{"meta_tool": "by_output_info", "output_information": "x"}'


@pytest.mark.parametrize(
    ("text", "ending", "turns"),
    [
        ("I think, therefore I am.", "exceeded_max_label_errors", 3),
        ("<tool_call>{</tool_call>", "exceeded_max_tool_call_errors", 3),
        ("<retrieve_tools>[]</retrieve_tools>", "exceeded_max_retrieval_errors", 3),
        ("<final_answer>no</final_answer>", "target_datatype_not_reached", 1),
        (f"<retrieve_tools>{SEARCH}</retrieve_tools>", "exceeded_max_steps", 100),
    ],
)
def test_a_model_that_answers_nonsense_comes_to_an_end(text: str, ending: str, turns: int) -> None:
    run = simulate(DATA, model=MODEL, client=ScriptedClient(lambda request: reply(text)))
    ended = [trajectory_of(row) for row in run]
    assert {each.termination for each in ended} == {ending}
    assert {row["turns"] for row in run} == {turns}
    assert not any(each.outcome and each.outcome.is_success for each in ended)


def broken(name: str, change: Any) -> Any:
    def make(folder: Path) -> None:
        path = folder / name
        value = json.loads(path.read_text(encoding="utf-8"))
        change(value)
        path.write_text(json.dumps(value), encoding="utf-8")

    return make


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: (folder / "database.json").unlink(), "database.json: can't be read"),
        (
            broken("baseline_tools.json", lambda v: v[0].update(output_datatype="ghost")),
            "baseline_tools.json: .*ghost",
        ),
        (
            broken("paths_set_catalog.json", lambda v: v["t1"][0]["tool_set"].append("ghost")),
            "paths_set_catalog.json: .*t1.*ghost",
        ),
        (
            broken("database.json", lambda v: next(iter(v["order_cases"].values())).pop("shelf")),
            r"database.json: .*order_cases\..*\.shelf",
        ),
    ],
    ids=["no file", "unknown datatype", "unknown tool", "record without a field"],
)
def test_a_bad_folder_is_one_message_before_any_call(
    tmp_path: Path, make: Any, message: str
) -> None:
    data = tmp_path / "data"
    shutil.copytree(DATA, data)
    make(data)
    client = ScriptedClient(lambda request: reply("never asked"))
    with pytest.raises(InputError, match=message):
        simulate(data, model=MODEL, client=client)
    assert not client.requests


class Faulty(Counting):
    """A world in whose task 2 a method of the environment is another one."""

    def __init__(self, method: str, code: Callable[..., Any]) -> None:
        super().__init__("1", "2", "3")
        self.replaced = {method: code}

    def dialogue(self, task: str) -> ToolDialogue:
        environment = CountingEnvironment()
        if task == "2":
            vars(environment).update(self.replaced)
        opening = [{"role": "user", "content": f"Reach {task}."}]
        return ToolDialogue(environment, task, opening, world=self.name)


def counted(world: Any, **settings: Any) -> Any:
    client = ScriptedClient(one_by_one)
    return simulate(world, model={"model": MODEL, "retries": 0}, client=client, **settings)


def failures(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "failures.jsonl").read_text().splitlines()]


REWARD = "RowError: field reward: expected a number from 0 to 1, got"


@pytest.mark.parametrize(
    ("method", "code", "said"),
    [
        ("reset", lambda _: int("x"), "ValueError: invalid literal"),
        ("tools", lambda: None, "<lambda>: field result: expected Sequence, got nothing"),
        ("call", lambda *_: 1 // 0, "ZeroDivisionError: "),
        ("call", lambda *_: sys.exit(3), "SystemExit: 3"),
        *(
            (
                "call",
                lambda *_, value=value: value,
                f"field result: expected ToolResult, got {got}",
            )
            for value, got in (
                ("on", "'on'"),
                (None, "nothing"),
            )
        ),
        *(
            ("call", lambda *_, value=value: ToolResult(value), f"field content{said}")
            for value, said in (
                ({"a": float("nan")}, ".a: expected a number that JSON has, got nan"),
                ("\ud800", ": expected JSON values: str is not valid UTF-8"),
            )
        ),
        ("score", lambda: {}["reward"], "KeyError: 'reward'"),
        ("score", lambda: 1.0, "field result: expected Score, got 1.0"),
        ("score", lambda: Score(1.0, {"x": float("inf")}), "field details.x: expected a number"),
        ("score", lambda: Score(1.01), f"{REWARD} 1.01"),
    ],
)
def test_a_fault_of_an_environment_is_that_episodes_alone_and_has_its_place(
    tmp_path: Path, method: str, code: Callable[..., Any], said: str
) -> None:
    run = counted(Faulty(method, code), out=tmp_path)
    assert {row["case_id"] for row in run} == {"1", "3"}
    assert run.counts[MODEL].failed == {"infrastructure": 1}
    (failure,) = failures(tmp_path)
    assert failure["detail"].startswith("environment counting: ")
    assert said in failure["detail"]
    assert f" ({__file__}:" in failure["detail"]
    mended = counted(Counting("1", "2", "3"), out=tmp_path)
    assert (mended.failed, mended.progress.done, mended.counts[MODEL].successes) == (0, 1, 3)


def test_a_tool_that_hangs_has_a_limit(tmp_path: Path) -> None:
    end = threading.Event()
    run = counted(Faulty("call", lambda *_: end.wait()), out=tmp_path, call_seconds=1)
    end.set()
    assert {row["case_id"] for row in run} == {"1", "3"}
    (failure,) = failures(tmp_path)
    assert f"did not end within 1 s (--call-seconds) ({__file__}:" in failure["detail"]


@pytest.mark.slow
def test_a_tool_that_hangs_does_not_outlive_an_interrupt(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import threading\n"
        "from tests.environments.test_simulate_faults import Faulty, counted\n"
        "def hang(*_):\n    print('hangs', flush=True)\n    threading.Event().wait()\n"
        "counted(Faulty('call', hang), tasks=('2',), call_seconds=3600)\n"
    )
    path = os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])
    with subprocess.Popen(
        [sys.executable, str(program)],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "hangs\n"
        process.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in process.communicate(timeout=PATIENCE_S)[1]
    assert process.returncode == -signal.SIGINT


def test_the_code_of_an_episode_stays_in_one_thread_of_its_own() -> None:
    threads: list[int] = []

    class Bound(CountingEnvironment):
        def reset(self, task: str) -> None:
            threads.append(threading.get_ident())
            super().reset(task)

        def call(self, name: str, arguments: Any) -> ToolResult:
            threads.append(threading.get_ident())
            return super().call(name, arguments)

        def score(self) -> Score:
            threads.append(threading.get_ident())
            return super().score()

    class World(Counting):
        def dialogue(self, task: str) -> ToolDialogue:
            opening = [{"role": "user", "content": f"Reach {task}."}]
            return ToolDialogue(Bound(), task, opening, world=self.name)

    before = threading.active_count()
    assert counted(World("3")).failed == 0
    assert len(threads) == 5
    assert len(set(threads)) == 1
    assert threading.get_ident() not in threads
    for thread in threading.enumerate():
        if thread.ident == threads[0]:
            thread.join(PATIENCE_S)
    assert threading.active_count() <= before


class Unusable(Counting):
    """A world that is unusable from the start."""

    def __init__(self, **fields: Any) -> None:
        super().__init__("1")
        vars(self).update(fields)


class Raising(Counting):
    @property
    def tasks(self) -> Any:
        raise LookupError("no list")

    @tasks.setter
    def tasks(self, value: Any) -> None:
        pass


@pytest.mark.parametrize(
    ("world", "error", "said"),
    [
        (
            Counting("1", "2", "1"),
            InputError,
            "task 3: field id: expected an id of its own, got '1'",
        ),
        (Counting("1", ""), InputError, "task 2: field id: expected a non-empty string, got ''"),
        (Unusable(tasks=["1", 2]), InputError, "task 2: field id: expected a non-empty string"),
        (Counting(), InputError, "counting: there are no tasks"),
        (Unusable(tasks="12"), PluginError, "environment Unusable: expected .* a list of tasks"),
        (Unusable(digest=b"1"), PluginError, "expected name, setting and digest as text"),
        (Raising(), PluginError, rf"environment Raising: .*LookupError: no list \({__file__}:"),
    ],
)
def test_a_world_without_tasks_of_their_own_is_refused_at_the_start(
    world: Any, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        counted(world)
