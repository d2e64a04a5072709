"""Replays gold actions of a domain through the adapter and the package's own evaluators.

A program of its own, as each episode needs a process and the package may warn where it is imported:
``python -m tests.agents.environments.execution.tau2_replays OPTIONS NUMBER`` writes a line of JSON
about the benchmark, and one for each of the first tasks.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable
from typing import Any

from apbjudge.agents.environments.execution.hosted import tau2


def in_child(work: Callable[[], Any]) -> Any:
    """What ``work`` gives in a process of its own, as JSON."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        try:
            with os.fdopen(writing, "w") as file:
                json.dump(work(), file)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        text = file.read()
    os.waitpid(child, 0)
    return json.loads(text)


def replayed(
    benchmark: Any, task_id: str, calls: list[Any], said: list[str], others: list[Any]
) -> dict[str, Any]:
    """Scores of an episode, by the adapter before and after the calls and by the package.

    Args:
        benchmark: The adapter's.
        task_id: The task.
        calls: Made one after the other.
        said: What the agent says at the end.
        others: Two environments for the package's evaluator.
    """
    messages = importlib.import_module("tau2.data_model.message")
    episode = benchmark.begin(task_id)
    before = episode.score()
    trajectory: list[Any] = []
    for number, call in enumerate(calls):
        text, is_error = episode.call(call["name"], call["arguments"], call["by"])
        if not number:
            episode.score()  # which must not change what follows
        by = "user" if call["by"] == "user" else "assistant"
        names = {"id": str(number), "requestor": by}
        made = messages.ToolCall(name=call["name"], arguments=call["arguments"], **names)
        sender = messages.UserMessage if by == "user" else messages.AssistantMessage
        trajectory.append(sender(role=by, tool_calls=[made]))
        trajectory.append(messages.ToolMessage(role="tool", content=text, error=is_error, **names))
    for text in said:
        episode.say(text)
        trajectory.append(messages.AssistantMessage(role="assistant", content=text))
    after = episode.score()
    task = benchmark._tasks[task_id]
    return {
        "before": before,
        "after": after,
        "again": episode.score(),
        "package": package_rewards(task, trajectory, others),
    }


def package_rewards(task: Any, trajectory: list[Any], environments: list[Any]) -> Any:
    """The package's reward, that of the environment alone, and whether the state is right.

    It makes the calls again and raises where the results are not those of the trajectory. None
    where an assertion about something that isn't there raises.
    """

    made = iter(environments)
    env = importlib.import_module("tau2.evaluator.evaluator_env").EnvironmentEvaluator
    try:
        environment = env.calculate_reward(
            environment_constructor=lambda **_: next(made), task=task, full_trajectory=trajectory
        )
    except ValueError as error:
        if str(error).startswith("Task ") and str(error).endswith("not found"):
            return None
        raise
    reward = environment.reward
    for basis in ("communicate", "action"):
        if basis.upper() in task.evaluation_criteria.reward_basis:
            module = importlib.import_module(f"tau2.evaluator.evaluator_{basis}")
            evaluate = getattr(module, f"{basis.capitalize()}Evaluator").calculate_reward
            reward *= evaluate(task=task, full_trajectory=trajectory).reward
    state = environment.db_check.db_match
    return {"reward": reward, "environment": environment.reward, "state": state}


def main(options: dict[str, str], number: int) -> None:
    benchmark = tau2.benchmark(options)
    tasks = benchmark.tasks()
    print(json.dumps({"version": benchmark.version, "tasks": len(tasks), "first": tasks[0]}))
    module = importlib.import_module(f"tau2.domains.{options['domain']}.environment")
    others = [
        module.get_environment(solo_mode=benchmark._environment.solo_mode),
        module.get_environment(),
    ]
    kits = [kit for kit in (others[1].tools, others[1].user_tools) if kit is not None]
    types = {name: kit.tool_type(name).value for kit in kits for name in kit.get_tools()}
    for task in tasks[:number]:
        (gold,) = task["reference"]
        facts = benchmark._tasks[task["id"]].evaluation_criteria.communicate_info or []
        writes = [place for place, call in enumerate(gold) if types[call["name"]] == "write"]
        episodes = {"gold": (gold, [f"It is {fact}." for fact in facts]), "nothing": ([], [])}
        if facts:
            episodes["silent"] = (gold, [])
        if writes:
            last = writes[-1]
            episodes["unfinished"] = ([*gold[:last], *gold[last + 1 :]], [])
        line: dict[str, Any] = {
            name: in_child(lambda: replayed(benchmark, task["id"], calls, said, others))  # noqa: B023
            for name, (calls, said) in episodes.items()
        }
        for tools, by in ((task["tools"], "agent"), (task["user_tools"], "user")):
            line[by] = {each["function"]["name"]: each["function"]["parameters"] for each in tools}
        line |= {"id": task["id"], "reference": gold}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), int(sys.argv[2]))
